/** A client that nobody listens to: what it reports instead, under virtual time. */

import { BaseClient } from '../../../src/client/client.js'
import type { ClientOptions } from '../../../src/client/options/index.js'
import { spaced } from '../../../src/client/platform.js'
import { type Answer, ScriptedPeer } from '../../../src/testing/scripted-peer.js'
import { VirtualClock } from '../../../src/testing/virtual-clock.js'
import { virtualPlatform } from '../../../src/testing/virtual-platform.js'
import { memoryPair } from '../../../src/transport/memory.js'
import { agreeable } from './harness.js'

export class Unheard {
  readonly clock = new VirtualClock()
  readonly client: BaseClient
  readonly peers: ScriptedPeer[] = []
  answer: Answer = agreeable
  /** Code and sentence of each report. */
  readonly said: string[] = []
  /** What was printed below each. */
  readonly details: (string | undefined)[] = []
  /** Lines of the log, of those who ask for one. */
  readonly lines: string[] = []

  constructor(options: ClientOptions = {}) {
    const transport = async () => {
      const [near, far] = memoryPair({
        schedule: (callback, delay) => this.clock.setTimer(callback, delay),
      })
      this.peers.push(
        new ScriptedPeer(far, options.protocolVersion === 4 ? 4 : 5, (packet) =>
          this.answer(packet),
        ),
      )
      return near
    }
    const report = spaced(
      (code, text, detail) => {
        this.said.push(`${code} ${text}`)
        this.details.push(detail)
      },
      (callback) => void this.clock.setTimer(callback, 1000),
    )
    const all = { clientId: 'unheard', keepAlive: false, reconnect: false, ...options } as const
    this.client = new BaseClient(
      { ...virtualPlatform(this.clock), report },
      { url: 'memory://test', transport },
      all,
    )
  }

  get peer(): ScriptedPeer {
    return this.peers.at(-1) as ScriptedPeer
  }

  async connect(): Promise<this> {
    const connecting = this.client.connect()
    await this.settle()
    await connecting
    return this
  }

  settle(): Promise<void> {
    return this.clock.settle()
  }
}

/** A logger that keeps what it gets. */
export function logger(lines: string[]): NonNullable<ClientOptions['logger']> {
  const note = (level: string) => (line: string) => void lines.push(`${level} ${line}`)
  return { debug: () => undefined, info: () => undefined, warn: note('warn'), error: note('error') }
}
