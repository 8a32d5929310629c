/**
 * An input, read as decisions: each call takes the next byte, and beyond the end every byte is 0.
 *
 * So every input is a program, and a shorter one a simpler program. It must never look ahead: what comes later must not change what was decided.
 */

/** Bytes that are used up from the front. */
export class Tape {
  #at = 0
  readonly #bytes: Uint8Array

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes
  }

  /** True when nothing is left. */
  get over(): boolean {
    return this.#at >= this.#bytes.length
  }

  /** The next byte. */
  byte(): number {
    return this.#bytes[this.#at++] ?? 0
  }

  /** The next two bytes, high one first. */
  two(): number {
    return this.byte() * 256 + this.byte()
  }

  /** One of them, by the next byte. */
  pick<T>(items: readonly T[]): T {
    return items[this.byte() % items.length] as T
  }

  /** The next bytes, fewer at the end. */
  take(count: number): Uint8Array {
    const taken = this.#bytes.slice(this.#at, this.#at + count)
    this.#at += count
    return taken
  }

  /** Everything that is left. */
  rest(): Uint8Array {
    return this.take(this.#bytes.length)
  }
}

/** Sizes of pieces, drawn from a seed: the same seed gives the same cuts. */
export function* pieces(bytes: Uint8Array, seed: number): Generator<Uint8Array> {
  let state = (seed + 1) * 0x9e3779b1
  // Long streams in longer pieces, or nothing else would be done.
  const most = bytes.length > 4000 ? 2047 : 63
  for (let at = 0; at < bytes.length; ) {
    state = Math.imul(state ^ (state >>> 15), 0x85ebca6b) + 0x6d2b79f5
    const size = 1 + ((state >>> 8) & (state & 1 ? most : 3))
    yield bytes.slice(at, at + size)
    at += size
  }
}
