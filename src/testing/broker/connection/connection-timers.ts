/**
 * Timers of one connection: keep-alive, and actions that are cancelled when the connection ends.
 */
import { after, type BrokerClock } from '../common/clock.js'
import type { ConnectionLife } from './ports.js'

/** See the file's comment. */
export class ConnectionTimers {
  readonly #clock: BrokerClock
  readonly #life: Pick<ConnectionLife, 'over'>
  readonly #cancels = new Set<() => void>()
  /** When the client was heard last. */
  #heard: number

  constructor(clock: BrokerClock, life: Pick<ConnectionLife, 'over'>) {
    this.#clock = clock
    this.#life = life
    this.#heard = clock.now()
  }

  /** The client was heard. */
  hear(): void {
    this.#heard = this.#clock.now()
  }

  /** Calls back once so many milliseconds have passed without a packet, or a part of one. A client that is busy is not silent. */
  watchSilence(limit: number, isBusy: () => boolean, isSilent: () => void): void {
    this.later(Math.max(1, this.#heard + limit - this.#clock.now()), () => {
      if (isBusy()) this.hear()
      if (this.#clock.now() - this.#heard < limit) this.watchSilence(limit, isBusy, isSilent)
      else isSilent()
    })
  }

  /** Calls back after so many milliseconds. */
  later(delay: number, callback: () => void): void {
    const cancel = after(this.#clock, delay, () => {
      this.#cancels.delete(cancel)
      if (!this.#life.over) callback()
    })
    this.#cancels.add(cancel)
  }

  stop(): void {
    for (const cancel of this.#cancels) cancel()
  }
}
