/**
 * Arrays of bytes as callers hand them in: Buffers, subclasses, arrays of other realms, with methods and lengths of their own.
 *
 * What the platform knows of an array counts, never what the array says of itself. Nothing here writes into what is given.
 */
import { nothing } from './fields.js'

type Getter<T> = (this: unknown) => T

// Those of %TypedArray%, which every realm has alike and no object can replace.
function getter<T>(key: string | symbol): Getter<T> {
  return Object.getOwnPropertyDescriptor(Object.getPrototypeOf(Uint8Array.prototype), key)
    ?.get as Getter<T>
}

const tagOf = /* @__PURE__ */ getter<string | undefined>(Symbol.toStringTag)
const lengthOf = /* @__PURE__ */ getter<number>('length')
const bufferOf = /* @__PURE__ */ getter<ArrayBuffer>('buffer')
const offsetOf = /* @__PURE__ */ getter<number>('byteOffset')

/** Whether it is a Uint8Array, of this realm or another. */
export function isBytes(value: unknown): value is Uint8Array {
  return tagOf.call(value) === 'Uint8Array'
}

/** How many bytes a Uint8Array has. */
export function sizeOf(bytes: Uint8Array): number {
  const { length } = bytes
  // Where the bytes end no array can lie about, and to look there costs less than the getter.
  const honest =
    typeof length === 'number' &&
    bytes[length] === undefined &&
    (length === 0 || bytes[length - 1] !== undefined)
  return honest ? length : lengthOf.call(bytes)
}

/** The same memory as a plain array, whose methods and length are the platform's; undefined for what is no Uint8Array. */
export function plainView(value: unknown): Uint8Array | undefined {
  if (!isBytes(value)) return undefined
  const size = sizeOf(value)
  if (Object.getPrototypeOf(value) === Uint8Array.prototype && value.length === size) return value
  // Of memory that is gone there is no view.
  return size === 0 ? nothing : new Uint8Array(bufferOf.call(value), offsetOf.call(value), size)
}
