/**
 * Time for the in-memory broker: a clock that tests may replace, and timers longer than the
 * platform's.
 *
 * No other file of this folder may read the time. Pending timers do not keep the process alive.
 */

/** The clock of a broker. A `VirtualClock` is one. */
export interface BrokerClock {
  /** Milliseconds since an arbitrary moment; never goes back. */
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

/** The longest delay of a platform timer, in milliseconds; a longer one would run at once. */
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
