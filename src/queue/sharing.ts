/**
 * Whether a queue and its publisher's session share one store: then an entry and its publish end in
 * one batch, which makes QoS 2 exactly once.
 */

import { access, type ClientAccess, innermost } from '../client/access.js'
import type { Publisher } from '../client/options/index.js'
import type { Store } from '../store/base/store.js'

/** The internals of a client; undefined for any other publisher. */
export function accessOf(publisher: Publisher<unknown>): ClientAccess | undefined {
  return (publisher as { [access]?(): ClientAccess })[access]?.()
}

/** True when this publisher's session is in `store`, which must be an innermost store. */
export function shares(publisher: Publisher<unknown>, store: Store): boolean {
  const kept = accessOf(publisher)?.options?.store
  return kept !== undefined && innermost('batch' in kept ? kept : kept.store) === store
}
