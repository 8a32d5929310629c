/**
 * Topic Names and Topic Filters (section 4.7): validation, shared subscriptions, matching.
 *
 * Peers choose these texts, so every function walks them once, without recursion or regular
 * expressions.
 */
import { MAXIMUM_STRING_LENGTH } from './constants.js'
import { HASH, PLUS, SLASH, utf8Length } from './utf8.js'

const DOLLAR = 0x24
const empty = 'must not be empty'

/** Whether the text holds `+` or `#`. */
export function hasWildcard(text: string): boolean {
  return text.includes('+') || text.includes('#')
}

/** Why the text is not a Topic Name [MQTT-4.7.0-1] [MQTT-4.7.3-1], or `undefined` when it is. */
export function validateTopicName(topic: string): string | undefined {
  return hasWildcard(topic) ? 'must not hold a wildcard' : validateText(topic)
}

/**
 * Why the text is not a Topic Filter [MQTT-4.7.1-1] [MQTT-4.7.1-2] [MQTT-4.7.3-1], or `undefined`
 * when it is. A filter that begins with `$share/` must be a complete shared subscription
 * [MQTT-4.8.2-1] [MQTT-4.8.2-2].
 */
export function validateTopicFilter(filter: string): string | undefined {
  return validateText(filter) ?? validateLevels(filter, true)
}

/**
 * The same for a text that is known to be a valid UTF-8 Encoded String. Without `shares`, as on
 * 3.1.1, there are no shared subscriptions.
 */
export function validateLevels(filter: string, shares: boolean): string | undefined {
  if (filter === '') return empty
  if (hasStrayWildcard(filter)) return 'must have wildcards alone in their levels, and # at its end'
  if (!shares || !isShared(filter)) return undefined
  const share = parseShare(filter)
  return share === undefined || hasWildcard(share.shareName)
    ? 'must have a share name without wildcards and a filter'
    : undefined
}

// True for a wildcard that shares its level with other text, or `#` before the last level.
function hasStrayWildcard(filter: string): boolean {
  const last = filter.length - 1
  for (let at = 0; at <= last; at++) {
    const unit = filter.charCodeAt(at)
    if (unit !== PLUS && unit !== HASH) continue
    if (at > 0 && filter.charCodeAt(at - 1) !== SLASH) return true
    if (at < last && (unit === HASH || filter.charCodeAt(at + 1) !== SLASH)) return true
  }
  return false
}

function validateText(text: string): string | undefined {
  if (text === '') return empty
  return validateSize(text.length > MAXIMUM_STRING_LENGTH ? text.length : utf8Length(text))
}

/** Why a string of this many bytes, or {@link ILL_FORMED}, cannot be sent (section 1.5.4). */
export function validateSize(size: number): string | undefined {
  if (size > MAXIMUM_STRING_LENGTH) return 'must not exceed 65,535 bytes'
  return size < 0 ? 'must not hold U+0000 or a lone surrogate' : undefined
}

/** Whether the filter begins with `$share/` (section 4.8.2). */
export function isShared(filter: string): boolean {
  return filter.startsWith('$share/')
}

/** The parts of a shared subscription (section 4.8.2). */
export interface Share {
  /** Name of the group. */
  shareName: string
  /** The filter of the group. */
  filter: string
}

/**
 * The parts of `$share/{ShareName}/{filter}` (section 4.8.2); `undefined` when a part is missing or
 * the filter is not shared.
 */
export function parseShare(filter: string): Share | undefined {
  if (!isShared(filter)) return undefined
  const start = '$share/'.length
  const slash = filter.indexOf('/', start)
  const shared = filter.slice(slash + 1)
  return slash > start && shared !== ''
    ? { shareName: filter.slice(start, slash), filter: shared }
    : undefined
}

/**
 * True when a valid Topic Filter matches a Topic Name; a shared one by its inner filter. Leading
 * wildcards do not match topics that begin with `$` [MQTT-4.7.2-1].
 */
export function matches(filter: string, topic: string): boolean {
  const pattern = parseShare(filter)?.filter ?? filter
  if (topic.charCodeAt(0) === DOLLAR && pattern.charCodeAt(0) !== DOLLAR) return false
  let at = 0
  let i = 0
  while (i < pattern.length) {
    const unit = pattern.charCodeAt(i)
    if (unit === HASH) return true
    if (unit === PLUS) {
      const slash = topic.indexOf('/', at)
      at = slash < 0 ? topic.length : slash
    } else if (at < topic.length && topic.charCodeAt(at) === unit) at++
    // `a/#` matches `a` too (section 4.7.1.2).
    else
      return (
        at === topic.length &&
        unit === SLASH &&
        i + 2 === pattern.length &&
        pattern.charCodeAt(i + 1) === HASH
      )
    i++
  }
  return at === topic.length
}

class Node<T> {
  children: Map<string, Node<T>> | undefined
  /**
   * Values of the filters that end at this node, by the complete filter, with or without a share
   * [MQTT-4.8.2-1].
   */
  values: Map<string, Set<T>> | undefined
}

function levelsOf(filter: string): string[] {
  return (parseShare(filter)?.filter ?? filter).split('/')
}

/**
 * Values by Topic Filter. Each value is stored once per filter; `$share/{name}/{filter}` and
 * `{filter}` are different filters that match the same topics.
 */
export class TopicTrie<T> {
  readonly #root = new Node<T>()
  #size = 0
  /** Changes with every addition or removal: earlier matches may be outdated. */
  version = 0

  /** Number of pairs of filter and value. */
  get size(): number {
    return this.#size
  }

  /** Adds a value; false when the filter already has it. */
  add(filter: string, value: T): boolean {
    let node = this.#root
    for (const level of levelsOf(filter)) {
      node.children ??= new Map()
      const child = node.children.get(level) ?? new Node()
      node.children.set(level, child)
      node = child
    }
    node.values ??= new Map()
    const values = node.values.get(filter) ?? new Set()
    if (values.has(value)) return false
    node.values.set(filter, values.add(value))
    this.#size++
    this.version++
    return true
  }

  /**
   * Removes a value, or all values of the filter if none is given; false when there was nothing to
   * remove.
   */
  remove(filter: string, ...only: [value?: T]): boolean {
    const levels = levelsOf(filter)
    const path = [this.#root]
    for (const level of levels) {
      const child = path.at(-1)?.children?.get(level)
      if (child === undefined) return false
      path.push(child)
    }
    const { values } = path.at(-1) as Node<T>
    const set = values?.get(filter)
    if (set === undefined) return false
    const before = set.size
    if (only.length === 0) set.clear()
    else set.delete(only[0] as T)
    this.#size -= before - set.size
    this.version++
    if (set.size === 0) values?.delete(filter)
    // Removes nodes that have become empty.
    for (
      let node = path.pop();
      path.length > 0 && !node?.values?.size && !node?.children?.size;
      node = path.pop()
    ) {
      path.at(-1)?.children?.delete(levels[path.length - 1] as string)
    }
    return set.size < before
  }

  /**
   * Calls `visit` with each value of each filter that matches the topic, once per filter, in no
   * particular order.
   */
  match(topic: string, visit: (value: T) => void): void {
    // Leading wildcards do not match topics that begin with `$` [MQTT-4.7.2-1].
    let wild = !topic.startsWith('$')
    let nodes = [this.#root]
    // Level by level: of a topic with 65,535 levels, only as many are visited as filters have.
    for (let at = 0; at <= topic.length; ) {
      const slash = topic.indexOf('/', at)
      const end = slash < 0 ? topic.length : slash
      const level = topic.slice(at, end)
      at = end + 1
      const next: Node<T>[] = []
      const keep = (node: Node<T> | undefined): void => {
        if (node !== undefined) next.push(node)
      }
      for (const { children } of nodes) {
        if (!children?.size) continue
        if (wild) {
          visitValues(children.get('#'), visit)
          keep(children.get('+'))
        }
        // A topic has no wildcards; an invalid one must not match a filter literally.
        if (level !== '+' && level !== '#') keep(children.get(level))
      }
      if (next.length === 0) return
      nodes = next
      wild = true
    }
    for (const node of nodes) {
      visitValues(node, visit)
      // `a/#` matches `a` too (section 4.7.1.2).
      visitValues(node.children?.get('#'), visit)
    }
  }

  /** The values that {@link match} visits, as a list. */
  matchAll(topic: string): T[] {
    const values: T[] = []
    this.match(topic, (value) => values.push(value))
    return values
  }
}

function visitValues<T>(node: Node<T> | undefined, visit: (value: T) => void): void {
  node?.values?.forEach((values) => {
    values.forEach((value) => {
      visit(value)
    })
  })
}
