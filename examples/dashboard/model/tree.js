/**
 * Topics as a tree: a row for each level that is seen, with what its topics have together. Pure.
 */

/** Levels of a topic that are rows of their own; the rest is one name. */
const deepest = 32

/** A level of the tree: a topic, what topics have in common, or both. */
export class Level {
  /** The row of the topic itself, if there is one. */
  entry
  /** Rows of the topics below it. */
  below = []
  count = 0
  rate = 0
  at = 0

  /** `topic` is its path, `name` the last level of it, and `depth` the number of levels above. */
  constructor(topic, name, depth) {
    this.topic = topic
    this.name = name
    this.depth = depth
  }

  get isBranch() {
    return this.below.length > 0
  }

  get value() {
    const { length } = this.below
    return this.entry?.value ?? (length === 1 ? '1 topic' : `${length.toLocaleString('en')} topics`)
  }

  get qos() {
    return this.entry?.qos ?? ''
  }

  get retain() {
    return this.entry?.retain ?? false
  }

  add(entry, isItself) {
    if (isItself) this.entry = entry
    else this.below.push(entry)
    this.count += entry.count
    this.rate += entry.rate
    this.at = Math.max(this.at, entry.at)
  }
}

/** The levels that begin at this character of each topic. */
function levelsFrom(start, depth, entries, nameOf) {
  const levels = new Map()
  for (const entry of entries) {
    const { topic } = entry
    const slash = depth < deepest - 1 ? topic.indexOf('/', start) : -1
    const end = slash < 0 ? topic.length : slash
    const part = topic.slice(start, end)
    let level = levels.get(part)
    if (level === undefined) {
      level = new Level(topic.slice(0, end), nameOf(part) || '(empty)', depth)
      levels.set(part, level)
    }
    level.add(entry, end === topic.length)
  }
  return [...levels.values()]
}

/**
 * The levels that are seen, in order: those whose branches are all open. What is closed costs nothing but its sums. `nameOf` makes a name that is safe
 * to show.
 */
export function seenIn(entries, { isOpen, order, nameOf }) {
  const rows = []
  const walk = (start, depth, inside) => {
    for (const level of levelsFrom(start, depth, inside, nameOf).sort(order)) {
      rows.push(level)
      if (level.isBranch && isOpen(level)) walk(level.topic.length + 1, depth + 1, level.below)
    }
  }
  walk(0, 0, entries)
  return rows
}
