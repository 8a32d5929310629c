/**
 * A set of values under Topic Filters, looked up by Topic Name (section 4.7).
 *
 * The cost of a look-up depends on the levels of the topic and on the branches that match, not on how many filters there are. Levels are keys of
 * Maps, since peers and applications choose them. Nothing here recurses: a filter may have 65,535 levels. Filters and topics must be valid.
 */
import { parseShare } from './topics.js'

class Node<T> {
  children: Map<string, Node<T>> | undefined
  /** Values of the filters that end here, by the filter as given: with or without a share [MQTT-4.8.2-1]. */
  values: Map<string, Set<T>> | undefined
}

function levelsOf(filter: string): string[] {
  return (parseShare(filter)?.filter ?? filter).split('/')
}

/** Values by Topic Filter. A value is held once per filter; `$share/{name}/{filter}` is another filter than `{filter}` and matches alike. */
export class TopicTrie<T> {
  readonly #root = new Node<T>()
  #size = 0
  /** Changes with everything that is added or removed: what was matched before may not hold any more. */
  version = 0

  /** How many pairs of filter and value are held. */
  get size(): number {
    return this.#size
  }

  /** Adds a value; false when the filter has it already. */
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

  /** Removes a value, or without one all values of the filter; false when there was nothing to remove. */
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
    // The branch goes as far as nothing else hangs on it.
    for (
      let node = path.pop();
      path.length > 0 && !node?.values?.size && !node?.children?.size;
      node = path.pop()
    ) {
      path.at(-1)?.children?.delete(levels[path.length - 1] as string)
    }
    return set.size < before
  }

  /** Calls `visit` with each value of each filter that matches the topic, once per filter, in no particular order. */
  match(topic: string, visit: (value: T) => void): void {
    // Leading wildcards do not match topics that begin with `$` [MQTT-4.7.2-1].
    let wild = !topic.startsWith('$')
    let nodes = [this.#root]
    // Level by level: of a topic with 65,535 of them no more is looked at than filters have.
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
        // A topic has no wildcards, but one that breaks this rule must not be taken for a filter.
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

  /** What {@link match} visits, as a list. */
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
