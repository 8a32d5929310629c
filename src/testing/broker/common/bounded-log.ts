/**
 * A list of the latest entries, limited by their number and by the bytes that they report.
 *
 * When it is full, the older half is removed, so that adding stays cheap.
 */

/** See the file's comment. */
export class BoundedLog<T> {
  /** Everything that was ever added. */
  total = 0
  readonly entries: T[] = []
  readonly #most: number
  readonly #mostBytes: number
  readonly #sizeOf: (entry: T) => number
  #bytes = 0

  constructor(most: number, mostBytes = Infinity, sizeOf: (entry: T) => number = () => 0) {
    this.#most = most
    this.#mostBytes = mostBytes
    this.#sizeOf = sizeOf
  }

  add(entry: T): void {
    this.total++
    this.#bytes += this.#sizeOf(entry)
    this.entries.push(entry)
    while (
      this.entries.length > this.#most ||
      (this.#bytes > this.#mostBytes && this.entries.length > 0)
    )
      this.#halve()
  }

  #halve(): void {
    for (const entry of this.entries.splice(0, Math.ceil(this.entries.length / 2)))
      this.#bytes -= this.#sizeOf(entry)
  }
}
