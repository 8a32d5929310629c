/**
 * Will Messages (section 3.1.2.5): delays them, and publishes them if the hook allows it.
 *
 * The callers decide whether a connection has a will to publish, and publish a delayed will when
 * its session ends.
 */
import type { PublishPacket, Will } from '../../../wire/packets.js'
import { after } from '../common/clock.js'
import type { BrokerClient } from '../common/events.js'
import { isPromise } from '../common/hooks.js'
import { type BrokerMessage, messageOf } from '../common/message.js'
import { publishVerdict } from '../common/verdicts.js'
import type { WillHost } from './ports.js'
import type { SessionState } from './session-state.js'

/** See the file's comment. */
export class Wills {
  readonly #host: WillHost
  /** Incremented by `forget`, so that wills waiting for a hook at that moment are discarded. */
  #age = 0

  constructor(host: WillHost) {
    this.#host = host
  }

  /** Handles the end of a session's connection: publishes its will, now or after its delay. */
  take(session: SessionState, will: Will | undefined, from: BrokerClient): void {
    if (will === undefined) return
    const message = messageOf(
      { ...will, type: 'publish', dup: false, packetId: undefined },
      session.clientId,
      0,
    )
    // If the session ends before the delay has passed, `SessionStore` publishes the will then.
    const delay = will.properties.willDelayInterval ?? 0
    if (delay === 0) {
      this.publish(message, from)
      return
    }
    const cancel = after(this.#host.settings.clock, delay * 1000, () => {
      session.will = undefined
      this.publish(message, from)
    })
    session.will = { message, from, cancel }
  }

  /** Publishes a will, if the hook allows it. */
  publish(message: BrokerMessage, from: BrokerClient): void {
    const packet = (): PublishPacket => ({
      ...message,
      type: 'publish',
      dup: false,
      packetId: undefined,
      properties: { ...message.properties },
    })
    const code = publishVerdict(this.#host, from, packet)
    if (!isPromise(code)) {
      this.#publishAllowed(message, code)
      return
    }
    const age = this.#age
    void code.then((verdict) => {
      if (this.#age === age) this.#publishAllowed(message, verdict)
    })
  }

  /** Discards wills that wait for a hook. */
  forget(): void {
    this.#age++
  }

  #publishAllowed(message: BrokerMessage, code: number): void {
    if (code >= 0x80 || (message.retain && !this.#host.retained.hasRoom(message))) return
    this.#host.publish(
      { ...message, time: this.#host.clock.now() },
      { packetId: undefined, dup: false, will: true },
    )
  }
}
