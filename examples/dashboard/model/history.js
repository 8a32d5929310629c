/**
 * The last messages of each topic, for the inspector, within budgets: so many messages and bytes of a topic, so many messages and bytes in all.
 *
 * The newest message of a topic is kept even when it is larger than the budget of its topic. Over the budget of all the oldest message of all goes first. Pure: the caller tells the time.
 */

/** Messages and bytes of a topic, messages in all, and bytes in all. */
export const limits = {
  perTopic: 500,
  topicBytes: 1024 * 1024,
  messages: 20_000,
  bytes: 16 * 1024 * 1024,
}

/** Bytes of the objects around a message; an estimate. */
const objects = 600

/** About how many bytes keeping a message costs. */
export function costOf({ topic, payloadLength, properties }) {
  let cost = objects + 2 * topic.length + payloadLength
  const { contentType = '', responseTopic = '', correlationData, userProperties = [] } = properties
  cost += 2 * (contentType.length + responseTopic.length) + (correlationData?.length ?? 0)
  for (const [name, value] of userProperties) cost += 100 + 2 * (name.length + value.length)
  return cost
}

/** True for a topic and for those below it. */
export const isWithin = (topic, path) =>
  topic.startsWith(path) && (topic.length === path.length || topic[path.length] === '/')

/** Messages with when they came. */
export class History {
  /** What is kept is worth so many bytes. */
  bytes = 0
  /** Messages that are kept. */
  size = 0
  #topics = new Map()
  /** Messages in the order of arrival from `#head` on: `{ topic, record }`, without the record of those that have gone. */
  #queue = []
  #head = 0
  #number = 0

  add(message, now) {
    const { topic } = message
    const place = { topic, record: undefined }
    const record = { message, at: now, number: this.#number++, cost: costOf(message), place }
    place.record = record
    const kept = this.#topics.get(topic) ?? { records: [], bytes: 0 }
    if (kept.records.length === 0) this.#topics.set(topic, kept)
    kept.records.push(record)
    kept.bytes += record.cost
    this.#queue.push(place)
    this.size += 1
    this.bytes += record.cost
    while (
      kept.records.length > limits.perTopic ||
      (kept.records.length > 1 && kept.bytes > limits.topicBytes)
    )
      this.#dropOldest(topic)
    while (this.size > limits.messages || this.bytes > limits.bytes) this.#dropFirst()
    this.#tidy()
  }

  /** Records `{ message, at, number }` of a topic, newest first. */
  of(topic) {
    return [...(this.#topics.get(topic)?.records ?? [])].reverse()
  }

  /** The last records of a topic and of all below it, newest first. */
  below(path, most = limits.perTopic) {
    const found = []
    for (let at = this.#queue.length - 1; at >= this.#head && found.length < most; at -= 1) {
      const { topic, record } = this.#queue[at]
      if (record !== undefined && isWithin(topic, path)) found.push(record)
    }
    return found
  }

  clear() {
    this.#topics.clear()
    this.#queue = []
    this.#head = 0
    this.size = 0
    this.bytes = 0
  }

  #dropFirst() {
    const { record, topic } = this.#queue[this.#head]
    this.#head += 1
    // The oldest of all is the oldest of its topic.
    if (record !== undefined) this.#dropOldest(topic)
  }

  #dropOldest(topic) {
    const kept = this.#topics.get(topic)
    const { place, cost } = kept.records.shift()
    kept.bytes -= cost
    place.record = undefined
    this.size -= 1
    this.bytes -= cost
    if (kept.records.length === 0) this.#topics.delete(topic)
  }

  // Once in so many messages, so that each pays little for it.
  #tidy() {
    if (this.#queue.length < 2 * limits.messages) return
    this.#queue = this.#queue.slice(this.#head).filter(({ record }) => record !== undefined)
    this.#head = 0
  }
}
