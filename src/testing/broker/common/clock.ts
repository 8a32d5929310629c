/**
 * Time for the in-memory broker: a clock that tests may replace, and timers longer than the platform's.
 *
 * Nothing else in this folder may look at the time. Waiting timers keep no process alive.
 */

/** Where a broker takes its time from. A `VirtualClock` is one. */
export interface BrokerClock {
  /** Milliseconds since some moment; never goes back. */
  now(): number
  /** Calls back once after `delay` milliseconds; returns a function that cancels it. */
  setTimer(callback: () => void, delay: number): () => void
}

/** Real time. */
export const realClock: BrokerClock = {
  now: () => performance.now(),
  setTimer(callback, delay) {
    const timer = setTimeout(callback, delay)
    // Node's timers are objects and would keep the process running.
    ;(timer as { unref?: () => void }).unref?.()
    return () => clearTimeout(timer)
  },
}

/** Most milliseconds that a platform's timer takes; more would run at once. */
const longest = 2_147_483_647

/** Like `setTimer`, for any delay; never calls back for `Infinity`. */
export function after(clock: BrokerClock, delay: number, callback: () => void): () => void {
  if (delay === Infinity) return () => undefined
  const until = clock.now() + delay
  let cancel = clock.setTimer(wait, Math.min(delay, longest))
  function wait(): void {
    const rest = until - clock.now()
    if (delay <= longest || rest <= 0) callback()
    else cancel = clock.setTimer(wait, Math.min(rest, longest))
  }
  return () => cancel()
}
