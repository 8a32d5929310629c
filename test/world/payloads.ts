/** Payloads of which every byte is known: a name, a dot, and then text that follows from both name and place. And the secret that nothing may print. */
import { inspect } from 'node:util'

const encoder = new TextEncoder()

/** Forms in which an application hands bytes over; `'text'` as a string. All but that lie in memory that it writes over once it is its own again. */
export type Form = 'text' | 'bytes' | 'buffer' | 'offset' | 'shared' | 'array-buffer' | 'data-view'

/** The payload of that name, padded to `size` bytes; just the name where that is longer. */
export function payloadOf(name: string, size = 0): Uint8Array {
  const head = encoder.encode(name)
  if (size <= head.length) return head
  const bytes = new Uint8Array(size)
  bytes.set(head)
  bytes[head.length] = 0x2e
  let sum = 7
  for (const byte of head) sum = (sum * 31 + byte) % 9973
  for (let at = head.length + 1; at < size; at++)
    bytes[at] = 48 + ((at * 7 + (at >> 8) * 13 + sum) % 75)
  return bytes
}

/** What differs from the payload of that name and size; undefined where nothing does. */
export function differs(bytes: Uint8Array, name: string, size = 0): string | undefined {
  const wanted = payloadOf(name, size)
  if (bytes.length !== wanted.length) return `${bytes.length} bytes, not ${wanted.length}`
  for (let at = 0; at < wanted.length; at++)
    if (bytes[at] !== wanted[at])
      return `byte ${at} of ${wanted.length} is ${bytes[at]}, not ${wanted[at]}`
  return undefined
}

/** Bytes in the caller's memory, and how the caller writes over them. */
interface Given {
  readonly payload: string | ArrayBuffer | ArrayBufferView
  /** False where somebody else had written to it. */
  readonly overwrite: () => boolean
}

export function given(bytes: Uint8Array, form: Form): Given {
  if (form === 'text') return { payload: new TextDecoder().decode(bytes), overwrite: () => true }
  if (form === 'bytes') return over(bytes, bytes)
  if (form === 'buffer') {
    const buffer = Buffer.from(bytes)
    return over(buffer, buffer)
  }
  if (form === 'shared') {
    const shared = new Uint8Array(new SharedArrayBuffer(bytes.length))
    shared.set(bytes)
    return over(shared, shared)
  }
  const room = new Uint8Array(bytes.length + 24)
  room.fill(0x3f)
  room.set(bytes, 11)
  if (form === 'offset') return over(room.subarray(11, 11 + bytes.length), room)
  if (form === 'data-view') return over(new DataView(room.buffer, 11, bytes.length), room)
  const whole = bytes.slice()
  return over(whole.buffer, whole)
}

function over(payload: ArrayBuffer | ArrayBufferView, memory: Uint8Array): Given {
  const lent = memory.slice()
  const overwrite = (): boolean => {
    const isSame = memory.every((byte, at) => byte === lent[at])
    for (const each of [memory, lent]) each.fill(0x21)
    return isSame
  }
  return { payload, overwrite }
}

export const canary = 'tweety-5up3r-s3cr3t'

const codes = [...canary].map((character) => character.charCodeAt(0))
const decimal = codes.join(',')
const hexadecimal = codes.map((code) => code.toString(16)).join('')

/** True when the text holds a secret, also as the bytes that `inspect` and JSON print. */
export function tells(text: string): boolean {
  if (text.includes(canary)) return true
  const dense = text.replace(/\s+/g, '')
  return dense.includes(decimal) || dense.includes(hexadecimal)
}

/** Everything that a careless program prints of a value: `inspect` with depth, message, stack, JSON. */
export function printed(value: unknown): string {
  const parts = [
    inspect(value, { depth: 6, breakLength: Number.POSITIVE_INFINITY, maxArrayLength: 64 }),
  ]
  if (value instanceof Error) parts.push(value.message, value.stack ?? '', String(value))
  try {
    parts.push(JSON.stringify(value) ?? '')
  } catch {
    // Circular: `inspect` has shown it.
  }
  return parts.join('\n')
}
