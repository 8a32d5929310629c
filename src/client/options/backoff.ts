/**
 * The delay before the next attempt to connect.
 *
 * Pure functions of the attempt, the error and a random source. Full jitter spreads clients that
 * lost the same broker over the whole window; a delay is never below `min` or above `max`.
 */

import { duration, invalid, object, oneOf, withDefault } from '../../common/schema.js'
import type { Backoff, ExponentialOptions } from './index.js'

const options = object<{
  readonly min: number
  readonly max: number
  readonly jitter: 'full' | 'none'
}>({
  min: withDefault(duration, 1000),
  max: withDefault(duration, 30_000),
  jitter: withDefault(oneOf('full', 'none'), 'full'),
})

/** Delays that double, from `min` to `max`. @throws MqttError ERR_INVALID_OPTION */
export function exponential(given: ExponentialOptions = {}): Backoff {
  const { min, max, jitter } = options(given, '')
  if (max < min) invalid('max', `at least min, ${min}`)
  return (attempt, _error, random = Math.random) => {
    const step = (doublings: number): number => Math.min(max, Math.max(1, min) * 2 ** doublings)
    // The window extends to the next step, so that even the first delay is random. Otherwise a
    // thousand clients would all return after `min`.
    return jitter === 'none' ? step(attempt - 1) : min + random() * (step(attempt) - min)
  }
}

/** The same delay each time, in milliseconds. @throws MqttError ERR_INVALID_OPTION */
export function constant(milliseconds: number): Backoff {
  const delay = duration(milliseconds, 'milliseconds')
  return () => delay
}
