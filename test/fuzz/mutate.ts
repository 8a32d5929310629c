/**
 * Changes to inputs, as data: each is a kind and three numbers, and gives the same bytes whenever it is applied.
 *
 * Half of them know what a packet is: they move whole packets, or keep the Remaining Length right while they change what is inside. Used by the
 * random search and by the property tests alike. They must never make an input longer than `longest`.
 */
import { join, variable } from './build.js'

/** Bytes of an input at most. */
export const longest = 2048

/** The kinds of changes. */
export const mutationKinds = [
  'flip',
  'set',
  'add',
  'insert',
  'remove',
  'repeat',
  'token',
  'grow',
  'shrink',
  'length',
  'retype',
  'swap',
  'drop',
  'duplicate',
  'cut',
  'two bytes',
] as const

/** One change. The numbers may be anything from 0 on. */
export interface Mutation {
  readonly kind: (typeof mutationKinds)[number]
  readonly at: number
  readonly value: number
  readonly size: number
}

/** What MQTT is made of: properties, lengths at their edges, text that is hard to read, whole packets. */
export const tokens: readonly (readonly number[])[] = [
  [0x01, 1],
  [0x02, 0, 0, 0, 1],
  [0x03, 0, 1, 99],
  [0x08, 0, 1, 114],
  [0x09, 0, 1, 1],
  [0x0b, 1],
  [0x0b, 0xff, 0xff, 0xff, 0x7f],
  [0x0b, 0],
  [0x11, 0, 0, 0, 5],
  [0x11, 0xff, 0xff, 0xff, 0xff],
  [0x12, 0, 1, 103],
  [0x13, 0, 5],
  [0x15, 0, 1, 109],
  [0x16, 0, 1, 1],
  [0x17, 1],
  [0x19, 0],
  [0x1a, 0, 1, 105],
  [0x1c, 0, 1, 115],
  [0x1f, 0, 1, 120],
  [0x21, 0, 1],
  [0x21, 0, 0],
  [0x22, 0, 2],
  [0x23, 0, 1],
  [0x23, 0, 0],
  [0x24, 1],
  [0x25, 0],
  [0x26, 0, 1, 107, 0, 1, 118],
  [0x27, 0, 0, 0, 20],
  [0x27, 0, 0, 0, 0],
  [0x28, 0],
  [0x29, 0],
  [0x2a, 0],
  [0, 0],
  [0, 1],
  [0xff, 0xff],
  [0x80, 0],
  [0x80, 0x80, 0x80, 0x01],
  [0xff, 0xff, 0xff, 0x7f],
  [0xff, 0xff, 0xff, 0xff],
  [0xc0, 0x80],
  [0xed, 0xa0, 0x80],
  [0xef, 0xbb, 0xbf],
  [0xf4, 0x8f, 0xbf, 0xbf],
  [0, 4, 77, 81, 84, 84],
  [0x10, 13, 0, 4, 77, 81, 84, 84, 5, 2, 0, 30, 0, 0, 0],
  [0x20, 3, 0, 0, 0],
  [0x20, 2, 0, 0],
  [0x20, 3, 1, 0, 0],
  [0x32, 6, 0, 1, 116, 0, 1, 0],
  [0x34, 6, 0, 1, 116, 0, 2, 0],
  [0x3c, 6, 0, 1, 116, 0, 2, 0],
  [0x30, 7, 0, 1, 116, 3, 35, 0, 1],
  [0x30, 6, 0, 0, 3, 35, 0, 1],
  [0x40, 2, 0, 1],
  [0x40, 3, 0, 1, 0x91],
  [0x50, 2, 0, 2],
  [0x50, 3, 0, 2, 0x80],
  [0x62, 2, 0, 2],
  [0x70, 2, 0, 2],
  [0x70, 3, 0, 2, 0x92],
  [0x90, 4, 0, 1, 0, 1],
  [0xb0, 4, 0, 1, 0, 0x11],
  [0xd0, 0],
  [0xe0, 0],
  [0xe0, 2, 0x8e, 0],
  [0xf0, 6, 0x18, 4, 0x15, 0, 1, 109],
]

/** Where packets lie in a stream, as far as its headers can be believed. */
export function packetsIn(bytes: Uint8Array, from: number): (readonly [start: number, body: number, end: number])[] {
  const found: (readonly [number, number, number])[] = []
  for (let at = from; at + 1 < bytes.length; ) {
    let length = 0
    let body = at + 1
    for (let shift = 0; shift < 28 && body < bytes.length; shift += 7) {
      const byte = bytes[body++] as number
      length += (byte & 127) * 2 ** shift
      if (byte < 128) break
    }
    if (body + length > bytes.length) break
    found.push([at, body, body + length])
    at = body + length
  }
  return found
}

/** Applies a change. `header`: bytes at the front that are no packets. Gives other bytes; the ones given stay as they are. */
export function mutate(bytes: Uint8Array, header: number, mutation: Mutation): Uint8Array {
  const changed = isAware(mutation.kind) ? mutatePackets(bytes, header, mutation) : mutateBytes(bytes, mutation)
  return changed.length > longest ? changed.slice(0, longest) : changed
}

const aware: readonly string[] = ['grow', 'shrink', 'length', 'retype', 'swap', 'drop', 'duplicate']
const isAware = (kind: string): boolean => aware.includes(kind)

function splice(bytes: Uint8Array, at: number, removed: number, put: ArrayLike<number> = []): Uint8Array {
  return join(bytes.subarray(0, at), Uint8Array.from(put), bytes.subarray(Math.min(bytes.length, at + removed)))
}

function mutateBytes(bytes: Uint8Array, { kind, at, value, size }: Mutation): Uint8Array {
  const place = at % (bytes.length + 1)
  const count = 1 + (size % 16)
  if (kind === 'insert') return splice(bytes, place, 0, [value & 255])
  if (kind === 'remove') return splice(bytes, place, count)
  if (kind === 'repeat') return splice(bytes, place, 0, bytes.slice(Math.max(0, place - count), place))
  if (kind === 'token') return splice(bytes, place, size & 1 ? tokenOf(value).length : 0, tokenOf(value))
  if (kind === 'cut') return bytes.slice(0, place)
  const changed = bytes.slice()
  if (changed.length === 0) return changed
  const index = at % changed.length
  const before = changed[index] as number
  if (kind === 'flip') changed[index] = before ^ (1 << (value & 7))
  else if (kind === 'add') changed[index] = before + (value & 1 ? 1 + (size & 15) : -1 - (size & 15))
  else if (kind === 'two bytes') {
    changed[index] = value & 255
    if (index + 1 < changed.length) changed[index + 1] = size & 255
  } else changed[index] = value & 255
  return changed
}

function tokenOf(value: number): readonly number[] {
  return tokens[value % tokens.length] as readonly number[]
}

function mutatePackets(bytes: Uint8Array, header: number, mutation: Mutation): Uint8Array {
  const packets = packetsIn(bytes, header)
  const { kind, at, value, size } = mutation
  const index = at % Math.max(1, packets.length)
  const chosen = packets[index]
  if (chosen === undefined) return mutateBytes(bytes, { ...mutation, kind: 'token' })
  const [start, body, end] = chosen
  const other = packets[value % packets.length] ?? chosen
  const [otherStart, , otherEnd] = other
  if (kind === 'drop') return splice(bytes, start, end - start)
  if (kind === 'duplicate') return splice(bytes, otherStart, 0, bytes.slice(start, end))
  if (kind === 'retype') return splice(bytes, start, 1, [((value & 15) << 4) | ((size & 1 ? size >> 4 : (bytes[start] as number)) & 15)])
  if (kind === 'length') return splice(bytes, start + 1, body - start - 1, variable(value % (size & 1 ? 300 : 70_000)))
  if (kind === 'swap') {
    const [first, second] = start < otherStart ? [chosen, other] : [other, chosen]
    if (first === second) return bytes.slice()
    return join(
      bytes.subarray(0, first[0]),
      bytes.subarray(second[0], second[2]),
      bytes.subarray(first[2], second[0]),
      bytes.subarray(first[0], first[2]),
      bytes.subarray(second[2]),
    )
  }
  void otherEnd
  const content = bytes.slice(body, end)
  const place = value % (content.length + 1)
  const inside = kind === 'grow' ? splice(content, place, 0, tokenOf(size)) : splice(content, place, 1 + (size & 3))
  return join(bytes.subarray(0, start), bytes[start] as number, variable(inside.length), inside, bytes.subarray(end))
}

/** One input from the beginning of one and the end of another. */
export function crossed(first: Uint8Array, second: Uint8Array, at: number, from: number): Uint8Array {
  return join(first.subarray(0, at % (first.length + 1)), second.subarray(from % (second.length + 1))).slice(0, longest)
}
