/**
 * Whether a queue and the session of its publisher share one store: then an entry and its publish end in one batch, which makes QoS 2 exactly once.
 */

import { type Behind, type Inside, innermost, inside } from '../client/internals.js'
import type { Publisher } from '../client/options/index.js'
import type { Store } from '../store/base/store.js'

/** What is behind a client; undefined for any other publisher. */
export function insideOf(publisher: Publisher<unknown>): (Inside & Behind) | undefined {
  return (publisher as { [inside]?(): Inside & Behind })[inside]?.()
}

/** True when the session of this publisher is kept in that store, which is the innermost. */
export function shares(publisher: Publisher<unknown>, store: Store): boolean {
  const kept = insideOf(publisher)?.options?.store
  return kept !== undefined && innermost('batch' in kept ? kept : kept.store) === store
}
