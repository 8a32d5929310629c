/**
 * A file of lines that another process appends to. It reads what is new, and only whole lines.
 */
import { closeSync, existsSync, fstatSync, openSync, readSync } from 'node:fs'

/** Lines, as words. */
export class LineFile {
  readonly #place: string
  readonly #lines: (readonly string[])[] = []
  #read = 0

  constructor(place: string) {
    this.#place = place
  }

  /** All lines that are there by now. */
  lines(): readonly (readonly string[])[] {
    if (!existsSync(this.#place)) return this.#lines
    const file = openSync(this.#place, 'r')
    try {
      const bytes = Buffer.alloc(fstatSync(file).size - this.#read)
      const count = readSync(file, bytes, 0, bytes.length, this.#read)
      const end = bytes.subarray(0, count).lastIndexOf('\n')
      if (end < 0) return this.#lines
      this.#read += end + 1
      for (const line of bytes.toString('utf8', 0, end).split('\n'))
        this.#lines.push(line.split(' '))
    } finally {
      closeSync(file)
    }
    return this.#lines
  }
}
