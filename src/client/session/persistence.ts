/**
 * Tokens for what must be safe before it is acknowledged or sent [MQTT-4.1.0-1].
 *
 * With a memory store (`durable: false`) nothing is queued and requests are granted on the spot, at no cost. With a durable store each request
 * becomes a `persist` action and waits for `handlePersisted(token)`. It must never grant what the store has not confirmed.
 */

import { SparseMap } from '../common/sparse.js'
import type { Action, PersistOperation } from './actions.js'

/** What the two halves of the session see of it. */
export interface PersistPort {
  readonly durable: boolean
  /** Asks for a write; `granted` is called once it is safe. Only where `durable`. */
  request(operation: PersistOperation, id: number, granted: () => void): void
  /** A write that nobody waits for. */
  note(operation: PersistOperation, id: number): void
}

/** Turns requests into `persist` actions. */
export class Persistence implements PersistPort {
  readonly durable: boolean
  readonly #actions: Action[]
  readonly #waiting = new SparseMap<number, () => void>()
  #token = 0

  constructor(durable: boolean, actions: Action[]) {
    this.durable = durable
    this.#actions = actions
  }

  request(operation: PersistOperation, id: number, granted: () => void): void {
    this.#token += 1
    this.#waiting.set(this.#token, granted)
    this.#actions.push({ type: 'persist', operation, id, token: this.#token })
  }

  note(operation: PersistOperation, id: number): void {
    if (this.durable) this.#actions.push({ type: 'persist', operation, id, token: 0 })
  }

  /** A write is safe. Unknown tokens (of a session that was reset) are ignored. */
  handlePersisted(token: number): void {
    const granted = this.#waiting.get(token)
    if (granted === undefined) return
    this.#waiting.delete(token)
    granted()
  }

  reset(): void {
    this.#waiting.clear()
  }
}
