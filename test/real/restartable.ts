/**
 * A mosquitto that is killed and started again in its place, again and again: same ports, same folder, and whatever it remembers from its last life.
 *
 * It assumes that `missingForMosquitto()` found nothing missing. `stop()` works in every state, and a process that dies takes its broker along.
 */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { type Memory, makeMosquitto } from './brokers.js'
import { type ProcessBroker, startProcess } from './process-broker.js'
import { eventually } from './waiting.js'

export type { Memory } from './brokers.js'

/** Enough for every message of a long run; and for those that a broker fallen back holds on to, because their senders are done with them. */
const limits = ['max_queued_messages 1000000', 'max_queued_bytes 0', 'max_inflight_messages 0']
/** Else its answers wait for the kernel's delayed acknowledgements. */
const prompt = 'set_tcp_nodelay true'

export class Restartable {
  /** Times that it was killed. */
  kills = 0
  readonly #broker: ProcessBroker

  private constructor(broker: ProcessBroker) {
    this.#broker = broker
  }

  static async start({
    memory = 'nothing',
  }: {
    readonly memory?: Memory
  } = {}): Promise<Restartable> {
    return new Restartable(
      await startProcess(() => makeMosquitto({ memory, lines: [...limits, prompt] })),
    )
  }

  get url(): string {
    return this.#broker.urls.TCP ?? ''
  }

  get port(): number {
    return Number(new URL(this.url).port)
  }

  /** True once it has something to remember. */
  get saved(): boolean {
    return existsSync(join(this.#broker.folder, 'mosquitto.db'))
  }

  /** Starts it again, after `kill()`. Fulfils when it accepts connections. */
  async live(): Promise<void> {
    // It is gone at once when somebody else has its port meanwhile: it gets it back.
    const attempt = async (): Promise<boolean> => {
      try {
        await this.#broker.live()
        return true
      } catch {
        await this.#broker.kill()
        return false
      }
    }
    await eventually(attempt, `mosquitto accepting at ${this.port}`)
  }

  /** SIGKILL. Fulfils when it is gone. */
  async kill(): Promise<void> {
    this.kills += 1
    await this.#broker.kill()
  }

  stop(): Promise<void> {
    return this.#broker.stop()
  }
}
