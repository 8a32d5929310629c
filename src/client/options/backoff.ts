/**
 * How long to wait before the next attempt to connect.
 *
 * Pure functions of the attempt, the error and a source of randomness. Full jitter spreads many clients that lost the same broker over the whole
 * window; no delay is ever below `min` or above `max`.
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
    // The window is the next step: the first delay is drawn too, or a thousand clients would all come back after `min`.
    return jitter === 'none' ? step(attempt - 1) : min + random() * (step(attempt) - min)
  }
}

/** The same delay each time, in milliseconds. @throws MqttError ERR_INVALID_OPTION */
export function constant(milliseconds: number): Backoff {
  const delay = duration(milliseconds, 'milliseconds')
  return () => delay
}
