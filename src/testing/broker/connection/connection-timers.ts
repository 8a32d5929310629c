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
  /** When data was last received. */
  #heard: number

  constructor(clock: BrokerClock, life: Pick<ConnectionLife, 'over'>) {
    this.#clock = clock
    this.#life = life
    this.#heard = clock.now()
  }

  /** Data was received. */
  hear(): void {
    this.#heard = this.#clock.now()
  }

  /**
   * Calls `isSilent` once `limit` milliseconds have passed without a packet, or a part of one. The
   * period starts again whenever it ends while `isBusy()` is true.
   */
  watchSilence(limit: number, isBusy: () => boolean, isSilent: () => void): void {
    this.later(Math.max(1, this.#heard + limit - this.#clock.now()), () => {
      if (isBusy()) this.hear()
      if (this.#clock.now() - this.#heard < limit) this.watchSilence(limit, isBusy, isSilent)
      else isSilent()
    })
  }

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
