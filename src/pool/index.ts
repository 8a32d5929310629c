/**
 * `mqwire/pool`: one publisher over several connections to the same broker or brokers.
 *
 * Brokers limit the unacknowledged publishes of each connection, and many also its messages per
 * second; a pool multiplies these limits. It is not faster where one connection is fast enough.
 *
 * @module
 */
import { Client } from 'mqwire'
import type { Endpoint } from '../client/options/index.js'
import { poolOf } from './publisher-pool.js'
import type { Pool, PoolOptions } from './types.js'

export type { MemberEvents } from '../members/listeners.js'
export type { MemberClient } from '../members/member.js'
export type { OnLost, Routing } from '../members/router.js'
export type { Pool, PoolMember, PoolOptions, PoolStats } from './types.js'

/**
 * Creates a pool. It connects on `connect()`, on the first publish, or when `writable` is read.
 * @throws MqttError ERR_INVALID_OPTION; as `new Client()` for the endpoints and `options`
 */
export function createPool(endpoints: Endpoint | readonly Endpoint[], options?: PoolOptions): Pool {
  return poolOf((at, given) => new Client(at, given), endpoints, options)
}
