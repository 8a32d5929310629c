/**
 * How the package's objects print: short, limited and the same on every console. Imports nothing.
 * The caller decides which fields are shown, and must not include a secret.
 */

/** The method that Node, Deno and Bun call to print an object. */
export const inspectSymbol: unique symbol = Symbol.for('nodejs.util.inspect.custom') as never

/** An object with the same fields whose class has this name. */
export function printedAs(name: string, fields: object): object {
  const { [name]: Shown = Object } = { [name]: class {} }
  return Object.assign(new Shown(), fields)
}

/** Prints as the result of `toJSON()`, under the name of its class. */
export abstract class Printed {
  /** The fields that consoles print. */
  abstract toJSON(): object

  [inspectSymbol](): object {
    return printedAs(this.constructor.name, this.toJSON())
  }
}

const mostShown = 64

/** The first bytes as text if possible, otherwise in hexadecimal; `…` if there are more. */
export function shownBytes(bytes: Uint8Array): string {
  // Of transferred memory, no part can be taken.
  if (bytes.length === 0) return ''
  const more = bytes.length > mostShown ? '…' : ''
  const first = bytes.subarray(0, mostShown)
  try {
    // The last character may be cut off.
    const text = new TextDecoder('utf-8', { fatal: true }).decode(first, { stream: more !== '' })
    // Control characters other than white space mean that it is not text.
    if (!first.some((byte) => byte < 9 || (byte > 13 && byte < 32))) return text + more
  } catch {
    // It is not text.
  }
  return `0x${Array.from(first, (byte) => byte.toString(16).padStart(2, '0')).join('')}${more}`
}
