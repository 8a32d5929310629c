/**
 * Overflow policies that may drop what is too much, once their consumers had a turn: also when nothing further comes in.
 */
import { SparseSet } from '../../common/sparse.js'
import type { Platform } from '../platform.js'
import type { Sweepable } from './ports.js'

/** Looks after buffers that are not empty. */
export class OverflowSweep {
  readonly #platform: Platform
  readonly #policies = new SparseSet<Sweepable>()
  #queued = false

  constructor(platform: Platform) {
    this.#platform = platform
  }

  /** Its consumer has more to read. */
  add(policy: Sweepable): void {
    this.#policies.add(policy)
    this.queue()
  }

  /** Looks at all of them when the turn has ended. */
  queue(): void {
    if (this.#queued || this.#policies.size === 0) return
    this.#queued = true
    this.#platform.nextTurn(() => {
      this.#queued = false
      for (const policy of this.#policies) if (!policy.relieve()) this.#policies.delete(policy)
    })
  }
}
