/**
 * The arguments of operations, taken from a tape and kept in words: what a finding prints of a program.
 *
 * Shared by the application's operations and the peer's, which take turns at one tape.
 */
import type { Tape } from './tape.js'

/** Reads arguments, and writes down what they were. */
export class Arguments {
  /** A line for each operation. */
  readonly text: string[] = []
  readonly tape: Tape

  constructor(tape: Tape) {
    this.tape = tape
  }

  /** An operation begins. */
  say(text: string): void {
    if (this.text.length < 200) this.text.push(text)
  }

  /** One of its arguments. */
  tell(text: string | number): void {
    this.text.push(`${this.text.pop() ?? ''} ${text}`)
  }

  /** One of them, by the next byte. */
  pick<T extends string | number>(items: readonly T[]): T {
    const item = this.tape.pick(items)
    this.tell(item)
    return item
  }

  /** One of what there is, if there is anything. */
  of<T>(items: readonly T[]): T | undefined {
    const byte = this.tape.byte()
    return items.length === 0 ? undefined : items[byte % items.length]
  }

  /** The next byte, as bits. */
  flags(): number {
    const byte = this.tape.byte()
    this.tell(`0x${byte.toString(16)}`)
    return byte
  }
}

/** Topic names to choose from, good and bad ones. */
export const topics = ['t', 'a/b', 'l', 'mqwire/answers', '$SYS/x', '', 'a/+', 'ü'] as const
/** Topic filters to choose from. */
export const filters = ['t', '#', 'a/+', '$share/g/t', 'l', 'a/b', 'ü', '+/#/x'] as const
/** Milliseconds. */
export const waits = [0, 1, 20, 100, 1000, 3000, 11_000, 31_000, 61_000, 130_000] as const
/** Bytes of a payload. */
export const sizes = [0, 1, 5, 60, 130, 40_000] as const
/** Reason codes, of one packet or another. */
export const codes = [0, 0, 0x10, 0x80, 0x87, 0x91, 0x93, 0x97, 0x99, 0x82, 0x01, 0x02, 0x8e, 0x9c, 0x19, 0xff] as const
