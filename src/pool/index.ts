/**
 * `mqwire/pool`: one publisher over several connections to the same broker or brokers.
 *
 * A broker allows each connection so many publishes without an answer, and many brokers so many messages a second: connections add up. What one connection
 * is fast enough for, several do no faster.
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
 * Makes a pool. It connects with `connect()`, with its first publish, or when `writable` is waited for.
 * @throws MqttError ERR_INVALID_OPTION; as `new Client()` for the endpoints and `options`
 */
export function createPool(endpoints: Endpoint | readonly Endpoint[], options?: PoolOptions): Pool {
  return poolOf((at, given) => new Client(at, given), endpoints, options)
}
