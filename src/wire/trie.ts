/**
 * A set of values under Topic Filters, looked up by Topic Name (section 4.7).
 *
 * The cost of a look-up depends on the levels of the topic and on the branches that match, not on how many filters there are. Levels are keys of
 * Maps, since peers and applications choose them. Nothing here recurses: a filter may have 65,535 levels. Filters and topics must be valid.
 */
import { parseShare } from './topics.js'

interface Node<T> {
  readonly parent: Node<T> | undefined
  readonly level: string
  children: Map<string, Node<T>> | undefined
  /** Values of the filter that ends here, by share name; '' is the filter itself, since no share name is empty [MQTT-4.8.2-1]. */
  values: Map<string, Set<T>> | undefined
}

function createNode<T>(parent: Node<T> | undefined, level: string): Node<T> {
  return { parent, level, children: undefined, values: undefined }
}

/** Values by Topic Filter. A value is held once per filter; `$share/{name}/{filter}` is another filter than `{filter}` and matches alike. */
export class TopicTrie<T> {
  readonly #root: Node<T> = createNode(undefined, '')
  #size = 0

  /** How many pairs of filter and value are held. */
  get size(): number {
    return this.#size
  }

  /** Adds a value; false when the filter has it already. */
  add(filter: string, value: T): boolean {
    const share = parseShare(filter)
    let node = this.#root
    for (const level of (share?.filter ?? filter).split('/')) {
      node.children ??= new Map()
      let child = node.children.get(level)
      if (child === undefined) {
        child = createNode(node, level)
        node.children.set(level, child)
      }
      node = child
    }
    const values = setOf(node, share?.shareName ?? '')
    if (values.has(value)) return false
    values.add(value)
    this.#size++
    return true
  }

  /** Removes a value, or without one all values of the filter; false when there was nothing to remove. */
  remove(filter: string, ...only: [value?: T]): boolean {
    const share = parseShare(filter)
    const node = this.#find(share?.filter ?? filter)
    const shareName = share?.shareName ?? ''
    const values = node?.values?.get(shareName)
    if (node === undefined || values === undefined) return false
    const before = values.size
    if (only.length === 0) values.clear()
    else values.delete(only[0] as T)
    this.#size -= before - values.size
    if (values.size === 0) {
      node.values?.delete(shareName)
      prune(node)
    }
    return values.size < before
  }

  #find(filter: string): Node<T> | undefined {
    let node: Node<T> | undefined = this.#root
    for (const level of filter.split('/')) {
      node = node.children?.get(level)
      if (node === undefined) break
    }
    return node
  }

  /** Calls `visit` with each value of each filter that matches the topic, once per filter, in no particular order. */
  match(topic: string, visit: (value: T) => void): void {
    // Leading wildcards do not match topics that begin with `$` [MQTT-4.7.2-1].
    let wild = !topic.startsWith('$')
    let nodes: Node<T>[] = [this.#root]
    let start = 0
    while (nodes.length > 0 && start >= 0) {
      const slash = topic.indexOf('/', start)
      const level = slash < 0 ? topic.slice(start) : topic.slice(start, slash)
      const next: Node<T>[] = []
      for (const { children } of nodes) {
        if (children === undefined) continue
        if (wild) {
          visitValues(children.get('#'), visit)
          keep(next, children.get('+'))
        }
        // A topic has no wildcards, but one that breaks this rule must not be taken for a filter.
        if (level !== '+' && level !== '#') keep(next, children.get(level))
      }
      nodes = next
      wild = true
      start = slash < 0 ? -1 : slash + 1
    }
    if (start >= 0) return
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

function setOf<T>(node: Node<T>, shareName: string): Set<T> {
  node.values ??= new Map()
  let values = node.values.get(shareName)
  if (values === undefined) {
    values = new Set()
    node.values.set(shareName, values)
  }
  return values
}

/** Takes away the branch of a node as far as nothing else hangs on it. */
function prune<T>(node: Node<T>): void {
  if (node.values?.size === 0) node.values = undefined
  let leaf = node
  while (leaf.parent !== undefined && leaf.values === undefined && leaf.children === undefined) {
    const parent: Node<T> = leaf.parent
    parent.children?.delete(leaf.level)
    if (parent.children?.size === 0) parent.children = undefined
    leaf = parent
  }
}

function keep<T>(nodes: Node<T>[], node: Node<T> | undefined): void {
  if (node !== undefined) nodes.push(node)
}

function visitValues<T>(node: Node<T> | undefined, visit: (value: T) => void): void {
  node?.values?.forEach((values) => {
    values.forEach((value) => {
      visit(value)
    })
  })
}
