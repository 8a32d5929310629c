/**
 * Whether a queue and the session of its publisher share one store: then an entry and its publish end in one batch, which makes QoS 2 exactly once.
 */

import { access, type ClientAccess, innermost } from '../client/access.js'
import type { Publisher } from '../client/options/index.js'
import type { Store } from '../store/base/store.js'

/** What is behind a client; undefined for any other publisher. */
export function accessOf(publisher: Publisher<unknown>): ClientAccess | undefined {
  return (publisher as { [access]?(): ClientAccess })[access]?.()
}

/** True when the session of this publisher is kept in that store, which is the innermost. */
export function shares(publisher: Publisher<unknown>, store: Store): boolean {
  const kept = accessOf(publisher)?.options?.store
  return kept !== undefined && innermost('batch' in kept ? kept : kept.store) === store
}
