/** The independent reader of packets, on vectors and on bytes written out by hand. */
import { expect, test } from 'vitest'
import { bytesOf, readVectors } from '../unit/wire/vector-files.js'
import { connect, publish, pubrel } from './packets.js'
import { Malformed, readPacket, type Seen, Splitter } from './reader.js'

/** What both know of a packet, of those fields that its kind has. */
const fields: Readonly<Record<string, Readonly<Record<string, keyof Seen>>>> = {
  publish: { qos: 'qos', dup: 'dup', retain: 'retain', topic: 'topic' },
  connect: { cleanStart: 'cleanStart', keepAlive: 'keepAlive', clientId: 'clientId' },
  connack: { sessionPresent: 'sessionPresent', reasonCode: 'reason' },
}

test.each([
  ['../../rules/vectors.json', 5],
  ['./vectors-311.json', 4],
] as const)('every valid vector of %s is read as the vectors say', (file, version) => {
  const valid = readVectors(file).filter(
    ({ valid: isGood, layer, fill, decoded }) =>
      isGood && layer !== 'session' && fill === undefined && !Array.isArray(decoded),
  )
  expect(valid.length).toBeGreaterThan(30)
  for (const vector of valid) {
    const wanted = vector.decoded as Record<string, unknown>
    const seen = readPacket(bytesOf(vector), version)
    expect([seen.kind, seen.id], vector.name).toEqual([wanted['type'], wanted['packetId'] ?? 0])
    for (const [theirs, ours] of Object.entries(fields[seen.kind] ?? {}))
      expect(seen[ours], vector.name).toEqual(wanted[theirs])
  }
})

test.each([
  ['packet identifier 0', [0x62, 2, 0, 0]],
  ['flags of PUBREL', [0x60, 2, 0, 1]],
  ['QoS 3', [0x36, 6, 0, 1, 0x74, 0, 1, 0]],
  ['DUP at QoS 0', [0x38, 4, 0, 1, 0x74, 0]],
  ['a wildcard in a topic', [0x30, 4, 0, 1, 0x23, 0]],
  ['no topic and no alias', [0x30, 3, 0, 0, 0]],
  ['SUBSCRIBE without a filter', [0x82, 3, 0, 1, 0]],
  ['a property of another packet', [0x30, 9, 0, 1, 0x74, 5, 0x11, 0, 0, 0, 1]],
  ['a property twice', [0x30, 10, 0, 1, 0x74, 6, 0x23, 0, 1, 0x23, 0, 1]],
  ['a length that is not minimal', [0xc0, 0x80, 0]],
  ['bytes left over', [0xc0, 1, 0]],
  ['reserved CONNACK flags', [0x20, 3, 2, 0, 0]],
  ['packet type 0', [0x00, 0]],
])('%s is refused', (_name, bytes) => {
  expect(() => readPacket(Uint8Array.from(bytes), 5)).toThrow(Malformed)
})

test('a stream in pieces of any size gives the same packets, and one beyond all bounds is refused at its header', () => {
  const packets = [connect(), publish({ qos: 2, id: 7 }), pubrel(7), publish({ qos: 0 })]
  const all = Uint8Array.from(packets.flatMap((packet) => [...packet]))
  for (let size = 1; size <= all.length; size++) {
    const splitter = new Splitter()
    const got: Uint8Array[] = []
    for (let at = 0; at < all.length; at += size)
      got.push(...splitter.push(all.slice(at, at + size)).map((packet) => packet.slice()))
    expect([got, splitter.pending]).toEqual([packets, 0])
  }
  const huge = Uint8Array.of(0x30, 0xff, 0xff, 0xff, 0x7f)
  expect(() => new Splitter().push(huge)).toThrow(Malformed)
})
