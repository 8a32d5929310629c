/**
 * The progress of a queue for watchers: counts, a rate, and the remaining time.
 *
 * A listener is called at most four times a second, and once more at the end; without watchers
 * there is no timer.
 */
import { Meter } from './meter.js'
import type { QueueStatus } from './types.js'

/** Milliseconds between two reports. */
const interval = 250

/** Values counted elsewhere. */
export interface Counted {
  readonly pending: number
  readonly inFlight: number
  readonly bytes: number
}

/** One reader of the status. */
interface Watcher {
  /** It has not seen the latest status. */
  fresh: boolean
  wake: (() => void) | undefined
}

/** Progress of one queue. */
export class Progress {
  #delivered = 0
  #lost = 0
  readonly #meter = new Meter()
  readonly #counted: () => Counted
  readonly #report: (status: QueueStatus) => void
  readonly #hasListener: () => boolean
  readonly #watchers = new Set<Watcher>()
  #timer: ReturnType<typeof setTimeout> | undefined
  #over = false

  constructor(
    counted: () => Counted,
    report: (status: QueueStatus) => void,
    hasListener: () => boolean,
  ) {
    this.#counted = counted
    this.#report = report
    this.#hasListener = hasListener
  }

  /** The current status. */
  get status(): QueueStatus {
    const { pending, inFlight, bytes } = this.#counted()
    const rate = this.#meter.rate(performance.now())
    const timeLeft = rate > 0 ? (pending / rate) * 1000 : undefined
    return {
      pending,
      inFlight,
      bytes,
      delivered: this.#delivered,
      lost: this.#lost,
      rate,
      timeLeft,
    }
  }

  /** An entry was delivered. */
  handleDelivered(): void {
    this.#delivered += 1
    this.#meter.count(performance.now())
    this.handleChange()
  }

  /** An entry was given up. */
  handleLost(): void {
    this.#lost += 1
    this.handleChange()
  }

  /** Something has changed. */
  handleChange(): void {
    if (
      this.#timer !== undefined ||
      this.#over ||
      !(this.#watchers.size > 0 || this.#hasListener())
    )
      return
    const timer = setTimeout(() => this.#notify(), interval)
    // Does not keep the process alive.
    ;(timer as { unref?: () => void }).unref?.()
    this.#timer = timer
  }

  /** The current status, and each later one. */
  async *watch(): AsyncIterableIterator<QueueStatus> {
    const watcher: Watcher = { fresh: true, wake: undefined }
    this.#watchers.add(watcher)
    try {
      while (watcher.fresh || !this.#over) {
        if (!watcher.fresh)
          await new Promise<void>((resolve) => {
            watcher.wake = resolve
          })
        if (!watcher.fresh) continue
        watcher.fresh = false
        yield this.status
      }
    } finally {
      this.#watchers.delete(watcher)
    }
  }

  /** Nothing changes any more: watchers get the last status. */
  end(): void {
    if (this.#over) return
    this.#over = true
    clearTimeout(this.#timer)
    this.#notify()
  }

  #notify(): void {
    this.#timer = undefined
    if (this.#hasListener()) this.#report(this.status)
    for (const watcher of this.#watchers) {
      watcher.fresh = true
      watcher.wake?.()
      watcher.wake = undefined
    }
  }
}
