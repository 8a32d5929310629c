/**
 * Numbers of entries that could not be added, in ranges: while a store fails there are many, one behind the other. What failed may be there all the same.
 *
 * It knows no store: its caller says what was deleted.
 */

interface Range {
  from: number
  to: number
}

/** Numbers under which nothing may stay. */
export class FailedNumbers {
  readonly #ranges: Range[] = []

  /** True when nothing is to be deleted. */
  get isEmpty(): boolean {
    return this.#ranges.length === 0
  }

  /** A number that is higher than those before. */
  add(id: number): void {
    const last = this.#ranges.at(-1)
    if (last?.to === id - 1) last.to = id
    else this.#ranges.push({ from: id, to: id })
  }

  has(id: number): boolean {
    return this.#ranges.some(({ from, to }) => from <= id && id <= to)
  }

  /** The first of them, at most so many. */
  first(most: number): number[] {
    const ids: number[] = []
    for (const { from, to } of this.#ranges)
      for (let id = from; id <= to && ids.length < most; id++) ids.push(id)
    return ids
  }

  /** The first of them are deleted. */
  forget(count: number): void {
    for (let left = count; left > 0 && this.#ranges[0] !== undefined; ) {
      const [range] = this.#ranges
      const length = Math.min(left, range.to - range.from + 1)
      range.from += length
      left -= length
      if (range.from > range.to) this.#ranges.shift()
    }
  }
}
