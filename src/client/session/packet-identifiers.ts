/**
 * Tables of packet identifiers (section 2.2.1), for both directions, and the states of those that
 * this client uses.
 */
const pageBits = 8
const pageSize = 1 << pageBits

/** Highest packet identifier (section 2.2.1). */
export const maximumPacketIdentifier = 65_535

/**
 * A small integer for each packet identifier from 1 to 65,535, in pages that are allocated on
 * demand; 0 means "not in use".
 *
 * An idle client holds no page. Callers must not pass identifiers outside 0 to 65,535; the codec
 * has rejected those.
 */
export class IdTable {
  /** Number of identifiers in use. */
  size = 0
  readonly #pages: (Uint8Array | undefined)[] = []
  /** By page; undefined until the first. */
  #used: number[] | undefined
  #spare: Uint8Array | undefined

  get(id: number): number {
    const page = this.#pages[id >> pageBits]
    return page === undefined ? 0 : (page[id & (pageSize - 1)] as number)
  }

  set(id: number, state: number): void {
    const index = id >> pageBits
    const offset = id & (pageSize - 1)
    const page = this.#pages[index] ?? this.#open(index)
    const before = page[offset] as number
    page[offset] = state
    if (before === 0 && state !== 0) this.#count(index, 1)
    else if (before !== 0 && state === 0) this.#count(index, -1)
  }

  /** Replaces the state of every identifier in use by the result of `change`. */
  update(change: (state: number) => number): void {
    this.#pages.forEach((page, index) => {
      if (page === undefined) return
      for (let offset = 0; offset < pageSize; offset++) {
        const before = page[offset] as number
        if (before !== 0) this.set((index << pageBits) | offset, change(before))
      }
    })
  }

  clear(): void {
    this.#pages.length = 0
    this.#spare = undefined
    this.size = 0
  }

  #open(index: number): Uint8Array {
    const page = this.#spare ?? new Uint8Array(pageSize)
    this.#spare = undefined
    while (this.#pages.length <= index) this.#pages.push(undefined)
    this.#pages[index] = page
    this.#used ??= []
    this.#used[index] = 0
    return page
  }

  #count(index: number, change: 1 | -1): void {
    this.size += change
    const pages = this.#used as number[]
    const used = (pages[index] as number) + change
    pages[index] = used
    if (used === 0) {
      this.#spare = this.#pages[index]
      this.#pages[index] = undefined
    }
  }
}

// States of a packet identifier.
export const AWAIT_PUBACK = 1
export const AWAIT_PUBREC = 2
export const STORING_RELEASE = 3
export const AWAIT_PUBCOMP = 4
export const AWAIT_SUBACK = 5
export const AWAIT_UNSUBACK = 6
/** PUBREL was sent for an identifier of a foreign session. */
export const CLEARING = 7
/** Known to be free on the server, and kept for the next QoS 2 publish. */
export const CLEAR = 8
/** In use on the server by an earlier process. */
export const DISOWNED = 9
/** Added to the state of a publish that the current connection has not carried. */
export const held = 16
