/**
 * Changes to inputs, as data: each is a kind and three numbers, and gives the same bytes whenever it is applied.
 *
 * Half of them know what a packet is: they move whole packets, or keep the Remaining Length right while they change what is inside. Used by the
 * random search and by the property tests alike. They must never make an input longer than `longest`.
 */
import { fromHex, join, variable } from './build.js'

/** Bytes of an input at most. */
export const longest = 2048

const ofBytes = ['flip', 'set', 'add', 'insert', 'remove', 'repeat', 'token'] as const
const ofPackets = ['grow', 'shrink', 'length', 'retype', 'swap', 'drop', 'duplicate'] as const
/** The kinds of changes, in an order that fixed seeds stand on. */
export const mutationKinds = [...ofBytes, ...ofPackets, 'cut', 'two bytes'] as const

/** One change. The numbers may be anything from 0 on. */
export interface Mutation {
  readonly kind: (typeof mutationKinds)[number]
  readonly at: number
  readonly value: number
  readonly size: number
}

/** What MQTT is made of: properties, lengths at their edges, text that is hard to read, whole packets. */
export const tokens: readonly Uint8Array[] = `
  0101 0200000001 03000163 08000172 09000101 0b01 0bffffff7f 0b00 1100000005 11ffffffff 12000167
  130005 1500016d 16000101 1701 1900 1a000169 1c000173 1f000178 210001 210000 220002 230001
  230000 2401 2500 2600016b000176 2700000014 2700000000 2800 2900 2a00 0000 0001 ffff 8000
  80808001 ffffff7f ffffffff c080 eda080 efbbbf f48fbfbf 00044d515454
  100d00044d5154540502001e000000 2003000000 20020000 2003010000 3206000174000100
  3406000174000200 3c06000174000200 300700017403230001 3006000003230001 40020001 4003000191
  50020002 5003000280 62020002 70020002 7003000292 900400010001 b00400010011 d000 e000 e0028e00
  f00618041500016d`
  .trim()
  .split(/\s+/)
  .map(fromHex)

/** Where packets lie in a stream, as far as its headers can be believed. */
export function packetsIn(
  bytes: Uint8Array,
  from: number,
): (readonly [start: number, body: number, end: number])[] {
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
  const changed = (ofPackets as readonly string[]).includes(mutation.kind)
    ? mutatePackets(bytes, header, mutation)
    : mutateBytes(bytes, mutation)
  return changed.length > longest ? changed.slice(0, longest) : changed
}

function splice(
  bytes: Uint8Array,
  at: number,
  removed: number,
  put: ArrayLike<number> = [],
): Uint8Array {
  return join(
    bytes.subarray(0, at),
    Uint8Array.from(put),
    bytes.subarray(Math.min(bytes.length, at + removed)),
  )
}

function mutateBytes(bytes: Uint8Array, { kind, at, value, size }: Mutation): Uint8Array {
  const place = at % (bytes.length + 1)
  const count = 1 + (size % 16)
  if (kind === 'insert') return splice(bytes, place, 0, [value & 255])
  if (kind === 'remove') return splice(bytes, place, count)
  if (kind === 'repeat')
    return splice(bytes, place, 0, bytes.slice(Math.max(0, place - count), place))
  if (kind === 'token')
    return splice(bytes, place, size & 1 ? tokenOf(value).length : 0, tokenOf(value))
  if (kind === 'cut' || bytes.length === 0) return bytes.slice(0, place)
  const index = at % bytes.length
  const before = bytes[index] as number
  if (kind === 'flip') return bytes.with(index, before ^ (1 << (value & 7)))
  if (kind === 'add')
    return bytes.with(index, before + (value & 1 ? 1 + (size & 15) : -1 - (size & 15)))
  const changed = bytes.with(index, value & 255)
  return kind === 'two bytes' && index + 1 < bytes.length
    ? changed.with(index + 1, size & 255)
    : changed
}

const tokenOf = (value: number): Uint8Array => tokens[value % tokens.length] as Uint8Array

function mutatePackets(bytes: Uint8Array, header: number, mutation: Mutation): Uint8Array {
  const packets = packetsIn(bytes, header)
  const { kind, at, value, size } = mutation
  const index = at % Math.max(1, packets.length)
  const chosen = packets[index]
  if (chosen === undefined) return mutateBytes(bytes, { ...mutation, kind: 'token' })
  const [start, body, end] = chosen
  const other = packets[value % packets.length] ?? chosen
  if (kind === 'drop') return splice(bytes, start, end - start)
  if (kind === 'duplicate') return splice(bytes, other[0], 0, bytes.slice(start, end))
  if (kind === 'retype')
    return splice(bytes, start, 1, [
      ((value & 15) << 4) | ((size & 1 ? size >> 4 : (bytes[start] as number)) & 15),
    ])
  if (kind === 'length')
    return splice(bytes, start + 1, body - start - 1, variable(value % (size & 1 ? 300 : 70_000)))
  if (kind === 'swap') {
    const [first, second] = start < other[0] ? [chosen, other] : [other, chosen]
    if (first === second) return bytes.slice()
    const between = bytes.subarray(first[2], second[0])
    const [one, two] = [first, second].map(([from, , to]) => bytes.subarray(from, to)) as [
      Uint8Array,
      Uint8Array,
    ]
    return join(bytes.subarray(0, first[0]), two, between, one, bytes.subarray(second[2]))
  }
  const content = bytes.slice(body, end)
  const place = value % (content.length + 1)
  const inside =
    kind === 'grow'
      ? splice(content, place, 0, tokenOf(size))
      : splice(content, place, 1 + (size & 3))
  return join(
    bytes.subarray(0, start),
    bytes[start] as number,
    variable(inside.length),
    inside,
    bytes.subarray(end),
  )
}

/** One input from the beginning of one and the end of another. */
export function crossed(
  first: Uint8Array,
  second: Uint8Array,
  at: number,
  from: number,
): Uint8Array {
  return join(
    first.subarray(0, at % (first.length + 1)),
    second.subarray(from % (second.length + 1)),
  ).slice(0, longest)
}
