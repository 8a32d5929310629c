/**
 * Checks the arguments of pool methods.
 */
import type { ConnectOptions, Publisher } from '../client/options/index.js'
import {
  anyObject,
  integer,
  invalid,
  object,
  oneOf,
  optional,
  orFunction,
  type Parser,
  signal,
  text,
  withDefault,
} from '../common/schema.js'
import { baseOptions } from '../members/members.js'
import type { PoolOptions } from './types.js'

/** Most connections of a pool. */
const mostConnections = 1000

const publisher: Parser<Publisher<unknown>> = (value, path) => {
  const given = anyObject(value, path) as Partial<Publisher<unknown>>
  return typeof given.publish === 'function'
    ? (given as Publisher<unknown>)
    : invalid(path, 'a publisher, with publish()')
}

const size = integer(1, mostConnections)

const schema = {
  size: withDefault(size, 4),
  clientId: optional(orFunction(text) as Parser<string | ((n: number) => string)>),
  routing: withDefault(oneOf('round-robin', 'hash', 'least-in-flight'), 'round-robin'),
  onLost: withDefault(oneOf('wait', 'move'), 'wait'),
  fallback: optional(publisher),
  offline: withDefault(oneOf('queue', 'reject'), 'queue'),
  options: withDefault(baseOptions, {}),
}

const parse =
  object<{ -readonly [K in keyof typeof schema]: ReturnType<(typeof schema)[K]> }>(schema)

/** Options of a pool, checked. */
export type PoolConfig = ReturnType<typeof parse>

/**
 * Checks the options of a pool; those of clients are checked by the clients.
 * @throws MqttError ERR_INVALID_OPTION
 */
export function poolConfig(given: PoolOptions | undefined): PoolConfig {
  return parse(given)
}

/** Checks the size of a pool. @throws MqttError ERR_INVALID_OPTION */
export function poolSize(given: unknown): number {
  return size(given, 'size')
}

/** Checks the options of `connect`. @throws MqttError ERR_INVALID_OPTION */
export const connectCall = object<ConnectOptions>({ signal: optional(signal) })
