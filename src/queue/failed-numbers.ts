/**
 * Numbers of entries whose addition failed, as ranges, because a failing store produces many in a
 * row. A failed addition may be stored all the same. The caller reports what was deleted.
 */

interface Range {
  from: number
  to: number
}

/** Numbers whose records must be deleted. */
export class FailedNumbers {
  readonly #ranges: Range[] = []

  /** True when nothing is left to delete. */
  get isEmpty(): boolean {
    return this.#ranges.length === 0
  }

  /** Adds a number that is higher than all before. */
  add(id: number): void {
    const last = this.#ranges.at(-1)
    if (last?.to === id - 1) last.to = id
    else this.#ranges.push({ from: id, to: id })
  }

  has(id: number): boolean {
    return this.#ranges.some(({ from, to }) => from <= id && id <= to)
  }

  /** The first numbers, at most `most`. */
  first(most: number): number[] {
    const ids: number[] = []
    for (const { from, to } of this.#ranges)
      for (let id = from; id <= to && ids.length < most; id++) ids.push(id)
    return ids
  }

  /** The first `count` numbers were deleted. */
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
