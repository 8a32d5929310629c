/** Packets by hand, for the tests of reader and monitor: a third opinion on the bytes, as small as can be. */

type Bytes = readonly number[]

const text = (value: string): number[] => [
  value.length >> 8,
  value.length & 255,
  ...[...value].map((character) => character.charCodeAt(0)),
]
const two = (value: number): number[] => [value >> 8, value & 255]

function packet(first: number, body: Bytes): Uint8Array {
  if (body.length > 127) throw new Error('too long for this builder')
  return Uint8Array.of(first, body.length, ...body)
}

export function connect({ clean = true, id = 'c', keepAlive = 30, version = 5 } = {}): Uint8Array {
  return packet(0x10, [
    ...text('MQTT'),
    version,
    clean ? 2 : 0,
    ...two(keepAlive),
    ...(version === 5 ? [0] : []),
    ...text(id),
  ])
}

/** `properties` are bytes of the property block, without its length. */
export function connack({
  present = false,
  reason = 0,
  properties = [] as Bytes,
  version = 5,
} = {}): Uint8Array {
  return packet(0x20, [
    present ? 1 : 0,
    reason,
    ...(version === 5 ? [properties.length, ...properties] : []),
  ])
}

export const receiveMaximum = (value: number): Bytes => [0x21, ...two(value)]
export const aliasMaximum = (value: number): Bytes => [0x22, ...two(value)]
export const packetSize = (value: number): Bytes => [0x27, 0, 0, ...two(value)]
export const maximumQos = (value: number): Bytes => [0x24, value]
export const noRetain: Bytes = [0x25, 0]
export const assigned = (id: string): Bytes => [0x12, ...text(id)]

export function publish({
  id = 1,
  qos = 1,
  dup = false,
  retain = false,
  topic = 't',
  payload = 'm',
  alias = 0,
} = {}): Uint8Array {
  const flags = (dup ? 8 : 0) | (qos << 1) | (retain ? 1 : 0)
  const properties = alias === 0 ? [0] : [3, 0x23, ...two(alias)]
  return packet(0x30 | flags, [
    ...text(topic),
    ...(qos > 0 ? two(id) : []),
    ...properties,
    ...[...payload].map((character) => character.charCodeAt(0)),
  ])
}

const ack =
  (first: number) =>
  (id: number, reason = 0): Uint8Array =>
    packet(first, reason === 0 ? two(id) : [...two(id), reason])

export const puback = ack(0x40)
export const pubrec = ack(0x50)
export const pubrel = ack(0x62)
export const pubcomp = ack(0x70)

export function subscribe(id: number, filter = 'a/#', options = 1): Uint8Array {
  return packet(0x82, [...two(id), 0, ...text(filter), options])
}

export const pingreq = Uint8Array.of(0xc0, 0)
export const disconnect = Uint8Array.of(0xe0, 0)
export const auth = Uint8Array.of(0xf0, 0)
