/**
 * How the objects of the package print: short, bounded and alike on every console.
 *
 * Imports nothing. It must never show a secret: what it is given to show is the caller's choice.
 */

/** What Node, Deno and Bun ask an object for before they print it. */
export const inspectSymbol: unique symbol = Symbol.for('nodejs.util.inspect.custom') as never

/** The same fields in an object whose class has that name. */
export function printedAs(name: string, fields: object): object {
  const { [name]: Shown = Object } = { [name]: class {} }
  return Object.assign(new Shown(), fields)
}

/** What prints as its `toJSON()`, under the name of its class. */
export abstract class Printed {
  /** What a person wants to see. */
  abstract toJSON(): object

  [inspectSymbol](): object {
    return printedAs(this.constructor.name, this.toJSON())
  }
}

const mostShown = 64

/** The first bytes as text, where they are text, else in hexadecimal; with `…` where there are more. */
export function shownBytes(bytes: Uint8Array): string {
  const more = bytes.length > mostShown ? '…' : ''
  const first = bytes.subarray(0, mostShown)
  try {
    // The last character may have been cut.
    const text = new TextDecoder('utf-8', { fatal: true }).decode(first, { stream: more !== '' })
    // Control characters are not printed, except those that lay it out.
    if (!first.some((byte) => byte < 9 || (byte > 13 && byte < 32))) return text + more
  } catch {
    // It is no text.
  }
  return `0x${Array.from(first, (byte) => byte.toString(16).padStart(2, '0')).join('')}${more}`
}
