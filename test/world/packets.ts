/** Packets for the tests of reader and monitor, built by hand like those of the fuzzer: nothing of the reader. */
import * as build from '../fuzz/build.js'

export function connect({ clean = true, id = 'c', keepAlive = 30, version = 5 } = {}): Uint8Array {
  return build.connect({ version: version as 4 | 5 }, id, clean ? 2 : 0, keepAlive)
}

/** `properties` are bytes of the property block, without its length. */
export function connack({
  present = false,
  reason = 0,
  properties = [] as readonly number[],
  version = 5,
} = {}): Uint8Array {
  const block = version === 5 ? [properties.length, ...properties] : []
  return build.packet(0x20, present ? 1 : 0, reason, block)
}

export const aliasMaximum = (value: number): number[] => [0x22, ...build.two(value)]
export const assigned = (id: string): number[] => [0x12, ...build.field(id)]

export function publish({
  id = 1,
  qos = 1,
  dup = false,
  retain = false,
  topic = 't',
  payload = 'm',
  alias = 0,
} = {}): Uint8Array {
  const pairs: build.Pairs = alias === 0 ? [] : [[0x23, alias]]
  return build.publish({ version: 5 }, topic, payload, { id, qos, dup, retain, pairs })
}

const ack =
  (type: number) =>
  (id: number, reason = 0): Uint8Array =>
    build.acknowledge({ version: 5 }, type, id, reason)

export const puback = ack(4)
export const pubrec = ack(5)
export const pubrel = ack(6)
export const pubcomp = ack(7)

export const subscribe = (id: number, filter = 'a/#', options = 1): Uint8Array =>
  build.subscribe({ version: 5 }, id, [[filter, options]])

export const { pingreq } = build
export const disconnect = build.disconnect({ version: 5 })
export const auth = build.packet(0xf0)
