/**
 * The table of topics: for each its last message, how many came, and how fast.
 *
 * A message costs a lookup and a few numbers; what is to be shown of it is made at a tick, from the last one only. The number of topics is bounded:
 * when the table is full, those give way that were silent for a minute, and what finds no room is counted. Pure: the caller tells the time.
 */
import { oneLine, preview } from './payload.js'

/**
 * Topics and characters of all of them together, milliseconds of silence after which one gives way to another, bytes that wait for a tick, and characters
 * of a name.
 */
export const limits = {
  topics: 10_000,
  characters: 4_000_000,
  silence: 60_000,
  waiting: 4 * 1024 * 1024,
  name: 200,
}

/** True for what a server says of itself: `$SYS/…` and the like (section 4.7.2). */
export const isOfServer = (topic) => topic.startsWith('$')

/** A row of the table. */
class Entry {
  count = 0
  /** Messages a second. */
  rate = 0
  /** When the last message came. */
  at = 0
  /** Its payload in one line. */
  value = ''
  /** The last message, until a tick has looked at it. */
  fresh
  /** `count` when the rate was last taken. */
  before = 0

  constructor(message) {
    this.topic = message.topic
    /** The topic in one line, for people. */
    this.name = oneLine(message.topic, limits.name)
    // What the last message was, of a new row from the start: it may be drawn before the next tick.
    this.qos = message.qos
    this.retain = message.retain
    this.size = message.payloadLength
  }
}

/** The table. */
export class Topics {
  /** Topic to row. */
  entries = new Map()
  /** Topics that gave way, and messages of topics that found no room. */
  gone = 0
  unlisted = 0
  /** Changes whenever a topic is added or goes. */
  version = 0
  /** Bytes of messages that wait for a tick. */
  waiting = 0
  /** True when there were topics of the server itself. */
  ofServer = false
  #fresh = new Set()
  #characters = 0
  #nextSweep = 0
  #rated = 0

  /** True when the message found its row. `keep` is a topic that does not give way; with `sweeps` false, none does. */
  add(message, now, keep, sweeps = true) {
    const { topic } = message
    const entry = this.entries.get(topic) ?? this.#addTopic(message, now, keep, sweeps)
    if (entry === undefined) {
      this.unlisted += 1
      return false
    }
    entry.count += 1
    entry.at = now
    this.waiting += message.payloadLength - (entry.fresh?.payloadLength ?? 0)
    entry.fresh = message
    this.#fresh.add(entry)
    return true
  }

  /** Looks at the last message of each topic that had one since the last time, and shows it to `look`. */
  digest(look) {
    for (const entry of this.#fresh) {
      const message = entry.fresh
      entry.fresh = undefined
      entry.qos = message.qos
      entry.retain = message.retain
      entry.size = message.payloadLength
      entry.value = preview(message.payload)
      look(message)
    }
    this.#fresh.clear()
    this.waiting = 0
  }

  /** Takes the rates; to be called about once a second. */
  rate(now) {
    const seconds = (now - this.#rated) / 1000
    this.#rated = now
    for (const entry of this.entries.values()) {
      const rate = seconds > 0 ? (entry.count - entry.before) / seconds : 0
      entry.before = entry.count
      // Half of what it was, so that a message every other second does not flicker.
      entry.rate = rate === 0 && entry.rate < 0.05 ? 0 : (entry.rate + rate) / 2
    }
  }

  /** True when there are topics below this one. */
  hasBelow(path) {
    const start = `${path}/`
    for (const topic of this.entries.keys()) if (topic.startsWith(start)) return true
    return false
  }

  /** What came so far has no rate. */
  settle() {
    for (const entry of this.entries.values()) entry.before = entry.count
  }

  clear() {
    this.#nextSweep = 0
    this.entries.clear()
    this.#characters = 0
    this.#fresh.clear()
    this.waiting = 0
    this.gone = 0
    this.unlisted = 0
    this.ofServer = false
    this.version += 1
  }

  #addTopic(message, now, keep, sweeps) {
    const { topic } = message
    if (sweeps && !this.#hasRoom(topic)) this.#sweep(now, keep)
    if (!this.#hasRoom(topic)) return undefined
    this.#characters += topic.length
    this.ofServer ||= isOfServer(topic)
    const entry = new Entry(message)
    this.entries.set(topic, entry)
    this.version += 1
    return entry
  }

  #hasRoom(topic) {
    return this.entries.size < limits.topics && this.#characters + topic.length <= limits.characters
  }

  // Looks through the table, and so not for each of many new topics.
  #sweep(now, keep) {
    if (now < this.#nextSweep) return
    this.#nextSweep = now + 1000
    for (const { topic, at } of this.entries.values()) {
      if (now - at < limits.silence || topic === keep) continue
      this.entries.delete(topic)
      this.#characters -= topic.length
      this.gone += 1
    }
  }
}
