/**
 * Waiting that takes its part of the time of a `drain()`.
 */

import type { CheckedDisconnect } from '../client/options/check-calls.js'
import { deferred, onAbort } from '../common/abort.js'
import type { Time } from './time.js'

/** Waits until it has settled, or the time is over; gives the options for what is left of it. */
export async function settledInTime(
  promise: Promise<unknown>,
  options: CheckedDisconnect,
  time: Time,
): Promise<CheckedDisconnect> {
  const since = time.now()
  const { timeout, signal } = options
  const over = deferred<void>()
  const cancel = time.setTimer(over.resolve, timeout)
  const stop = onAbort(signal, over.resolve as () => void)
  await Promise.race([promise.catch(() => undefined), over.promise])
  cancel()
  stop()
  return { ...options, timeout: Math.max(0, Math.floor(timeout - (time.now() - since))) }
}
