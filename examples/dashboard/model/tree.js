/**
 * Topics as a tree: a row for each level, with what its topics have together. Pure.
 */

/** A level of the tree: a topic, what topics have in common, or both. */
export class Level {
  /** Levels above it. */
  depth
  /** Its path, which is a topic where there is an entry. */
  topic
  /** The last level of the path, in one line. */
  name
  /** The row of the topic itself, if there is one. */
  entry
  /** Topics in it, with itself. */
  topics = 0
  count = 0
  rate = 0
  at = 0
  children = new Map()

  constructor(topic, name, depth) {
    this.topic = topic
    this.name = name
    this.depth = depth
  }

  get isBranch() {
    return this.children.size > 0
  }

  get value() {
    const below = this.topics - (this.entry === undefined ? 0 : 1)
    const topics = below === 1 ? '1 topic' : `${below.toLocaleString('en')} topics`
    return this.entry?.value ?? topics
  }

  get qos() {
    return this.entry?.qos ?? ''
  }

  get retain() {
    return this.entry?.retain ?? false
  }

  add({ count, rate, at }) {
    this.topics += 1
    this.count += count
    this.rate += rate
    this.at = Math.max(this.at, at)
  }
}

/** Levels of a topic that are told apart; the rest is one name. */
const deepest = 32

/** The tree of these rows. `nameOf` makes a name that is safe to show. */
export function treeOf(entries, nameOf) {
  const root = new Level('', '', -1)
  for (const entry of entries) {
    const parts = entry.topic.split('/')
    const names =
      parts.length <= deepest
        ? parts
        : [...parts.slice(0, deepest - 1), parts.slice(deepest - 1).join('/')]
    let level = root
    let path = ''
    for (const [depth, part] of names.entries()) {
      path = depth === 0 ? part : `${path}/${part}`
      let next = level.children.get(part)
      if (next === undefined) {
        next = new Level(path, nameOf(part), depth)
        level.children.set(part, next)
      }
      next.add(entry)
      level = next
    }
    level.entry = entry
  }
  return root
}

/** The levels that are seen, in order: those whose branches are all open. */
export function seenIn(root, isOpen, order) {
  const rows = []
  const walk = (level) => {
    for (const child of [...level.children.values()].sort(order)) {
      rows.push(child)
      if (child.isBranch && isOpen(child)) walk(child)
    }
  }
  walk(root)
  return rows
}
