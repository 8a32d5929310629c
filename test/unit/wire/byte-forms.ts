/**
 * The forms in which callers and sockets hand bytes in: Buffers, pieces of larger arrays, arrays of other realms, one array that is used again and again.
 *
 * Each form lends its bytes. Once they are given back it tells whether anybody wrote into them, or around them, and overwrites them: what still reads
 * them, or shares their memory, shows.
 */
import { runInNewContext } from 'node:vm'

/** Bytes on loan. */
export interface Loan {
  readonly bytes: Uint8Array
  /** Ends the loan. @throws Error when somebody wrote into the memory */
  readonly back: () => void
}

/** Lends bytes in one form, one loan after the other. */
export type Lend = (bytes: Uint8Array) => Loan

/** The first bytes of a form's memory, and behind them. */
const margin = 5
const around = 0x5a
const overwritten = 0xee

// A view of the memory from `offset` on. `makes` gives the view that is lent.
function lendFrom(
  memory: Uint8Array,
  offset: number,
  given: Uint8Array,
  makes: (memory: Uint8Array, offset: number, length: number) => Uint8Array,
): Loan {
  memory.fill(around)
  memory.set(given, offset)
  const before = Uint8Array.from(memory)
  return {
    bytes: makes(memory, offset, given.length),
    back: () => {
      if (Buffer.compare(memory, before) !== 0) throw new Error('somebody wrote into the bytes')
      memory.fill(overwritten)
    },
  }
}

const plain = (memory: Uint8Array, offset: number, length: number): Uint8Array =>
  new Uint8Array(memory.buffer, memory.byteOffset + offset, length)
const buffer = (memory: Uint8Array, offset: number, length: number): Buffer =>
  Buffer.from(memory.buffer, memory.byteOffset + offset, length)

/** A Uint8Array that tells lies about itself. */
class Liar extends Uint8Array {
  override get length(): number {
    return 3
  }
  override get byteLength(): number {
    return 70_000
  }
  override get byteOffset(): number {
    return 1
  }
  override slice(): never {
    throw new Error('not to be called')
  }
  override subarray(): never {
    throw new Error('not to be called')
  }
}

const OtherRealm = runInNewContext('Uint8Array') as typeof Uint8Array

/** Every form by name. What a form keeps between loans is of its own. */
export const byteForms: Readonly<Record<string, () => Lend>> = {
  'a Uint8Array': () => (bytes) => lendFrom(new Uint8Array(bytes.length), 0, bytes, plain),
  'a Uint8Array at an offset': () => (bytes) =>
    lendFrom(new Uint8Array(bytes.length + 2 * margin), margin, bytes, plain),
  'a Buffer': () => (bytes) => lendFrom(new Uint8Array(bytes.length), 0, bytes, buffer),
  'a Buffer at an offset': () => (bytes) =>
    lendFrom(new Uint8Array(bytes.length + 2 * margin), margin, bytes, buffer),
  'one array, used again': () => reusing(plain),
  'one Buffer, used again': () => reusing(buffer),
  'another realm': () => (bytes) =>
    lendFrom(new OtherRealm(bytes.length), 0, bytes, (memory) => memory),
  'a subclass that lies': () => (bytes) =>
    lendFrom(
      new Uint8Array(bytes.length + 2 * margin),
      margin,
      bytes,
      (memory, offset, length) => new Liar(memory.buffer as ArrayBuffer, offset, length),
    ),
  'an array with members of its own that lie': () => (bytes) =>
    lendFrom(new Uint8Array(bytes.length + 2 * margin), margin, bytes, (memory, offset, length) =>
      Object.defineProperties(plain(memory, offset, length), {
        length: { value: 3 },
        buffer: { value: new ArrayBuffer(9) },
        byteOffset: { value: 1 },
      }),
    ),
  'shared memory': () => (bytes) =>
    lendFrom(
      new Uint8Array(new SharedArrayBuffer(bytes.length + 2 * margin)),
      margin,
      bytes,
      plain,
    ),
  'memory that can grow': () => (bytes) => {
    const Resizable = ArrayBuffer as new (
      size: number,
      options: { maxByteLength: number },
    ) => ArrayBuffer
    const memory = new Resizable(bytes.length, { maxByteLength: bytes.length + 100 })
    return lendFrom(new Uint8Array(memory), 0, bytes, (view) => view)
  },
}

/** Their names, for `it.each`. */
export const formNames = Object.keys(byteForms)

/** Those that a transport hands over, and the client's own memory: read without a look at what they are. */
export const transportForms = formNames.filter(
  (name) => !name.endsWith('that lies') && !name.endsWith('that lie'),
)

function reusing(makes: Parameters<typeof lendFrom>[3]): Lend {
  let memory = new Uint8Array(0)
  return (bytes) => {
    if (memory.length < bytes.length + 2 * margin)
      memory = new Uint8Array(bytes.length * 2 + 2 * margin)
    return lendFrom(memory, margin, bytes, makes)
  }
}

/** The chunks in a form: each is given back, and overwritten, before the next is lent and behind the last. */
export function* inForm(form: string, chunks: Iterable<Uint8Array>): Generator<Uint8Array> {
  const lend = (byteForms[form] as () => Lend)()
  for (const chunk of chunks) {
    const { bytes, back } = lend(chunk)
    try {
      yield bytes
    } finally {
      back()
    }
  }
}
