/**
 * Everything that the dashboard remembers, behind two calls: `received()` for each batch of messages, and `tick()` four times a second.
 *
 * It is bounded whatever comes and however long it stays, also in a page whose timers are held back: then the messages themselves make it tick. Pure:
 * no clock, no page, no network.
 */
import { History } from './history.js'
import { numbersIn } from './numbers.js'
import { Rates } from './rates.js'
import { SeriesStore } from './series.js'
import { isOfServer, Topics, limits as topicLimits } from './topics.js'

/** Milliseconds between two ticks, and topics without a chart that are looked into at each. */
export const interval = 250
const probes = 200

/** The memory of the page. */
export class Recorder {
  topics = new Topics()
  history = new History()
  series = new SeriesStore()
  rates = new Rates()
  /** Messages that came during the pause, which are counted and not kept; undefined while there is none. */
  missed
  /** A topic that keeps its place in the table; undefined when none is selected. */
  selected
  /** What is selected are all topics below it as well. */
  selectsBelow = false
  /** Topics that have, or had, a series: no more than there are places for them, but for those that made room. */
  #charted = new Set()
  #ticked = 0
  #rated = 0

  received(messages, now) {
    let bytes = 0
    for (const { payloadLength } of messages) bytes += payloadLength
    this.rates.add(messages.length, bytes)
    if (this.missed !== undefined) this.missed += messages.length
    else for (const message of messages) this.#keep(message, now)
    if (now - this.#ticked > 2 * interval) this.tick(now)
  }

  tick(now) {
    this.#ticked = now
    this.rates.tick(now)
    if (this.missed !== undefined) return
    this.#digest()
    this.series.commit(now)
    // The clock may have been set back.
    if (Math.abs(now - this.#rated) < 950) return
    this.#rated = now
    this.topics.rate(now)
  }

  /** The last records of what is selected, newest first. */
  get records() {
    if (this.selected === undefined) return []
    return this.selectsBelow ? this.history.below(this.selected) : this.history.of(this.selected)
  }

  /** All that is kept of it. */
  get kept() {
    return this.selectsBelow
      ? this.history.below(this.selected, Number.POSITIVE_INFINITY)
      : this.records
  }

  pause() {
    this.missed ??= 0
  }

  resume() {
    this.missed = undefined
    this.series.interrupt()
  }

  /** The connection is gone: lines end here. */
  interrupt() {
    this.series.interrupt()
  }

  /** Takes messages `{ message, at }` of another time, of which no chart is drawn. */
  load(records) {
    for (const { message, at } of records) {
      if (this.topics.add(message, at, undefined, false)) this.history.add(message, at)
      if (this.topics.waiting > topicLimits.waiting) this.topics.digest(() => undefined)
    }
    this.topics.digest(() => undefined)
    this.topics.settle()
  }

  /** Forgets topics, messages and charts; the totals stay. */
  clear() {
    this.topics.clear()
    this.history.clear()
    this.series.clear()
    this.#charted.clear()
  }

  /** Draws a number of a topic from now on, and those of it that are kept; other charts keep these fields. False when there is no chart for it. */
  chart(topic, name, kept) {
    const series = this.series.pin(topic, name, kept)
    if (series === undefined) return false
    this.#charted.add(topic)
    if (series.count > 0) return true
    for (const { message, at } of this.history.of(topic).reverse()) {
      const [, value] = numbersIn(message).find(([field]) => field === name) ?? []
      if (value !== undefined) this.series.fill(series, at, value)
    }
    return true
  }

  #keep(message, now) {
    if (!this.topics.add(message, now, this.selected)) return
    this.history.add(message, now)
    if (this.topics.waiting > topicLimits.waiting) this.#digest()
  }

  #digest() {
    let left = probes
    if (this.#charted.size > topicLimits.topics) this.#charted.clear()
    this.topics.digest((message) => {
      const { topic } = message
      // Of thousands of topics only so many can have a chart. Those of the server have one when it is asked for.
      if (!this.#charted.has(topic) && (isOfServer(topic) || left-- <= 0)) return
      for (const [name, value] of numbersIn(message))
        if (this.series.set(topic, name, value)) this.#charted.add(topic)
    })
  }
}
