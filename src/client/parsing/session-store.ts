/**
 * The `store` option: a store, or a store with what is kept in it.
 */
import type { Store } from '../../store/base/store.js'
import { anyObject, boolean, invalid, type Parser } from '../common/schema.js'

/** Where the session is kept. */
export interface StoreConfig {
  readonly store: Store
  /** Incoming messages are kept, too. */
  readonly inbound: boolean
}

/** Parses it. */
export const sessionStore: Parser<StoreConfig> = (value, path) => {
  const { store = value as Store, inbound = true } = anyObject(value, path) as Partial<StoreConfig>
  if (typeof store?.batch !== 'function' || typeof store.entries !== 'function') invalid(path, 'a store')
  return { store, inbound: boolean(inbound, `${path}.inbound`) }
}
