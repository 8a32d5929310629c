/** Queues, pools and groups take timers and dates from the platform: while a world runs, these are the world's. */

export interface TimeSource {
  now(): number
  /** Sets a timer of whatever process runs now. */
  setTimer(callback: () => void, delay: number): () => void
}

/** Puts the timers and the clocks of a world in place of the platform's; gives what puts them back. */
export function takeOverTime(source: TimeSource): () => void {
  const { setTimeout, clearTimeout } = globalThis
  const { now } = Date
  const since = performance.now
  const timers = new Map<number, () => void>()
  let last = 0
  globalThis.setTimeout = ((callback: () => void, delay = 0) => {
    const id = ++last
    const cancel = source.setTimer(() => {
      timers.delete(id)
      callback()
    }, delay)
    timers.set(id, cancel)
    return id
  }) as never
  globalThis.clearTimeout = ((id: number | undefined) => {
    timers.get(id ?? 0)?.()
    timers.delete(id ?? 0)
  }) as never
  Date.now = source.now
  performance.now = source.now
  return () => {
    globalThis.setTimeout = setTimeout
    globalThis.clearTimeout = clearTimeout
    Date.now = now
    performance.now = since
  }
}
