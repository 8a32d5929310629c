/**
 * The topics that have been seen, as a tree, in bounded memory. Pure.
 */

/** Most nodes; messages on further topics are only counted. */
const mostNodes = 100_000

/** Most bytes of a value that are kept, and numbers of a series. */
const mostBytes = 512
const mostNumbers = 16

const decoder = new TextDecoder()

/** What was last seen on a topic. */
export interface Value {
  readonly bytes: Uint8Array
  /** Bytes of the whole payload. */
  readonly size: number
  readonly retain: boolean
  /** Milliseconds of the clock of the caller. */
  readonly time: number
}

/** A level of a topic. */
export class TopicNode {
  readonly name: string
  readonly parent: TopicNode | undefined
  readonly children = new Map<string, TopicNode>()
  /** Messages of it and of all below. */
  count = 0
  last: Value | undefined
  before: Value | undefined
  /** The latest numbers, if its payloads are numbers. */
  readonly numbers: number[] = []
  isOpen = false
  #countThen = 0
  #then = 0
  #rate = 0

  constructor(name: string, parent: TopicNode | undefined) {
    this.name = name
    this.parent = parent
  }

  /** The whole topic. */
  get path(): string {
    const above = this.parent
    return above?.parent === undefined ? this.name : `${above.path}/${this.name}`
  }

  /** Messages a second, as of a time in milliseconds; averaged over some seconds. */
  rateAt(time: number): number {
    const span = (time - this.#then) / 1000
    if (span < 0.25) return this.#rate
    const latest = (this.count - this.#countThen) / span
    const weight = this.#then === 0 ? 1 : 1 - Math.exp(-span / 2)
    this.#rate += (latest - this.#rate) * weight
    this.#countThen = this.count
    this.#then = time
    return this.#rate
  }
}

/** All topics. */
export class Topics {
  readonly root = new TopicNode('', undefined)
  #nodes = 0
  /** Messages on topics that had no room. */
  beyond = 0

  /** Number of levels that are kept. */
  get size(): number {
    return this.#nodes
  }

  /** A message came. */
  add(topic: string, value: Value): void {
    const node = this.#nodeOf(topic)
    if (node === undefined) {
      this.beyond += 1
      this.root.count += 1
      return
    }
    for (let each: TopicNode | undefined = node; each !== undefined; each = each.parent)
      each.count += 1
    node.before = node.last
    node.last = { ...value, bytes: value.bytes.slice(0, mostBytes) }
    const number = value.size < 32 ? Number(decoder.decode(value.bytes) || 'none') : Number.NaN
    if (Number.isFinite(number)) node.numbers.push(number)
    if (node.numbers.length > mostNumbers) node.numbers.shift()
  }

  #nodeOf(topic: string): TopicNode | undefined {
    let node = this.root
    for (const name of topic.split('/')) {
      let next = node.children.get(name)
      if (next === undefined) {
        if (this.#nodes >= mostNodes) return undefined
        next = new TopicNode(name, node)
        node.children.set(name, next)
        this.#nodes += 1
      }
      node = next
    }
    return node
  }

  /** The rows that are shown: children of open levels, in the order of names. */
  rows(): { readonly topic: TopicNode; readonly depth: number }[] {
    const rows: { topic: TopicNode; depth: number }[] = []
    const visit = (topic: TopicNode, depth: number): void => {
      for (const child of sorted(topic)) {
        rows.push({ topic: child, depth })
        if (child.isOpen) visit(child, depth + 1)
      }
    }
    visit(this.root, 0)
    return rows
  }

  /** Topics with messages whose name contains this, at most so many. */
  search(text: string, most: number): TopicNode[] {
    const found: TopicNode[] = []
    const visit = (topic: TopicNode): void => {
      if (found.length >= most) return
      if (topic.last !== undefined && topic.path.includes(text)) found.push(topic)
      for (const child of topic.children.values()) visit(child)
    }
    visit(this.root)
    return found
  }
}

function sorted({ children }: TopicNode): TopicNode[] {
  return [...children.values()].sort((one, other) => (one.name < other.name ? -1 : 1))
}

/** The numbers as eight heights. */
export function sparkline(numbers: readonly number[]): string {
  const [least, most] = [Math.min(...numbers), Math.max(...numbers)]
  const heights = '▁▂▃▄▅▆▇█'
  return numbers
    .map(
      (number) => heights[most === least ? 3 : Math.round(((number - least) / (most - least)) * 7)],
    )
    .join('')
}

/** What differs between two JSON values, a line for each path; undefined when one is not JSON. */
export function differences(before: string, after: string): string[] | undefined {
  try {
    return [...differing(JSON.parse(before), JSON.parse(after), '')]
  } catch {
    return undefined
  }
}

function* differing(before: unknown, after: unknown, path: string): Generator<string> {
  if (isObject(before) && isObject(after)) {
    for (const name of new Set([...Object.keys(before), ...Object.keys(after)]))
      yield* differing(before[name], after[name], path === '' ? name : `${path}.${name}`)
    return
  }
  const [one, other] = [JSON.stringify(before) ?? '(none)', JSON.stringify(after) ?? '(none)']
  if (one !== other) yield `${path === '' ? '' : `${path}: `}${one} → ${other}`
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null
}
