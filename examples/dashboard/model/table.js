/**
 * Which rows of the table of topics are seen: filtered by text, sorted by a column, as a list or a tree, a page at a time. Pure.
 */
import { oneLine } from './payload.js'
import { isOfServer } from './topics.js'
import { seenIn } from './tree.js'

/** Rows of a page. */
export const pageSize = 50

const collator = new Intl.Collator('en', { numeric: true })
const byTopic = (one, other) => collator.compare(one.topic, other.topic)

/** Column to order: what is smaller, or longer ago, comes first. */
const orders = {
  topic: byTopic,
  value: (one, other) => collator.compare(one.value, other.value),
  qos: (one, other) => one.qos - other.qos,
  retain: (one, other) => Number(one.retain) - Number(other.retain),
  count: (one, other) => one.count - other.count,
  rate: (one, other) => one.rate - other.rate,
  age: (one, other) => other.at - one.at,
}

/** The columns. */
export const columns = Object.keys(orders)

/** What the user wants to see. */
export class TableView {
  column = 'topic'
  descending = false
  text = ''
  page = 0
  /** Topics are shown as a tree. */
  isTree = false
  /** Topics of the server itself are shown as well, behind the others. */
  withServer = true
  /** Paths of the branches that are open. */
  open = new Set()
  /** Rows of topics that match. */
  #matching = []
  #rows = []
  #stamp

  /** Sorts by a column; by the one that it is sorted by already, the other way round. What was silent longest is looked for first. */
  sortBy(column) {
    this.descending = this.column === column ? !this.descending : column === 'age'
    this.column = column
    this.page = 0
  }

  search(text) {
    this.text = text
    this.page = 0
  }

  /** Opens a branch, or closes it. */
  toggle(path, opens = !this.open.has(path)) {
    if (opens) this.open.add(path)
    else this.open.delete(path)
  }

  /** Arranges the rows anew where that can make a difference; `still` leaves them where they are as long as none goes. */
  arrange(topics, still = false) {
    const wanted = `${this.column} ${this.descending} ${this.isTree} ${this.withServer} ${this.text}`
    // The order of the topics themselves changes only with them; a tree has sums.
    const stamp =
      this.column === 'topic' && this.text === '' && !this.isTree
        ? `${wanted} ${topics.version}`
        : undefined
    if (stamp !== undefined && stamp === this.#stamp) return
    const text = this.text.toLowerCase()
    const matches = ({ topic, name, value }) =>
      (this.withServer || !isOfServer(topic)) &&
      (text === '' || name.toLowerCase().includes(text) || value.toLowerCase().includes(text))
    const isSame =
      still &&
      !this.isTree &&
      this.wanted === wanted &&
      this.#matching.every((entry) => topics.entries.get(entry.topic) === entry)
    if (isSame) return this.#append(topics, matches)
    this.wanted = wanted
    this.#stamp = stamp
    this.#matching = [...topics.entries.values()].filter(matches)
    const order = orders[this.column]
    const sign = this.descending ? -1 : 1
    // Sums change while rows stay in their places; new ones come last.
    const places = new Map(still ? this.#rows.map(({ topic }, place) => [topic, place]) : [])
    const placeOf = ({ topic }) => places.get(topic) ?? places.size
    const sorted = (one, other) =>
      isOfServer(one.topic) - isOfServer(other.topic) ||
      (still ? placeOf(one) - placeOf(other) : sign * order(one, other)) ||
      byTopic(one, other)
    // What is searched for is to be seen.
    const isOpen = ({ topic }) => text !== '' || this.open.has(topic)
    this.#rows = this.isTree
      ? seenIn(this.#matching, { isOpen, order: sorted, nameOf: oneLine })
      : this.#matching.sort(sorted)
  }

  // Behind the rows that stay in their places.
  #append(topics, matches) {
    const known = new Set(this.#matching)
    const fresh = [...topics.entries.values()].filter(
      (entry) => !known.has(entry) && matches(entry),
    )
    this.#matching.push(...fresh.sort(byTopic))
  }

  /** Rows on all pages. */
  get size() {
    return this.#rows.length
  }

  /** Topics that match. */
  get topics() {
    return this.#matching.map(({ topic }) => topic)
  }

  get pages() {
    return Math.max(1, Math.ceil(this.#rows.length / pageSize))
  }

  /** The rows of the page. */
  get rows() {
    this.page = Math.min(Math.max(0, this.page), this.pages - 1)
    return this.#rows.slice(this.page * pageSize, (this.page + 1) * pageSize)
  }
}
