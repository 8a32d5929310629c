/**
 * How many messages and bytes come in: totals, and rates over the last second, with a window of them for the chart. Pure: the caller tells the time.
 */

/** Points that are kept, milliseconds that they reach back, and milliseconds that a rate is taken over. */
export const limits = { points: 1200, window: 300_000, average: 1000 }

/** Counts what comes in. */
export class Rates {
  messages = 0
  bytes = 0
  /** Messages and bytes a second. */
  perSecond = { messages: 0, bytes: 0 }
  /** For the chart: seconds since 1970, and messages a second. */
  times = []
  values = []
  /** Totals at the ticks of the last second. */
  #before = []

  add(messages, bytes) {
    this.messages += messages
    this.bytes += bytes
  }

  tick(now) {
    const { messages, bytes } = this
    const before = this.#before
    // One that is as old as the average, and everything younger.
    while (before.length > 1 && !(before[1].now > now - limits.average)) before.shift()
    const [since] = before
    if (since !== undefined && now > since.now) {
      const seconds = (now - since.now) / 1000
      this.perSecond = {
        messages: (messages - since.messages) / seconds,
        bytes: (bytes - since.bytes) / seconds,
      }
    }
    // A clock that was set back begins anew.
    if (since !== undefined && now < since.now) before.length = 0
    before.push({ now, messages, bytes })
    this.times.push(Math.max(now / 1000, (this.times.at(-1) ?? 0) + 0.001))
    this.values.push(this.perSecond.messages)
    const recent = this.times.findIndex((time) => time * 1000 > now - limits.window)
    const places = Math.max(0, recent, this.times.length - limits.points)
    this.times.splice(0, places)
    this.values.splice(0, places)
  }
}
