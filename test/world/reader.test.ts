/**
 * The independent reader of packets, on bytes written out by hand.
 */
import { describe, expect, test } from 'vitest'
import { bytesOf, readVectors } from '../unit/wire/vector-files.js'
import { connect, publish, pubrel } from './packets.js'
import { Random } from './random.js'
import { Malformed, readPacket, type Seen, Splitter } from './reader.js'

const vectors = readVectors('../../rules/vectors.json').filter(({ fill }) => fill === undefined)
const valid = vectors.filter(
  (vector) => vector.valid && vector.layer !== 'session' && !Array.isArray(vector.decoded),
)
const old = readVectors('./vectors-311.json').filter(
  (vector) => vector.valid && vector.fill === undefined && vector.layer !== 'session',
)

/** What both know of a packet, of those fields that its kind has. */
const fields: Readonly<Record<string, Readonly<Record<string, keyof Seen>>>> = {
  publish: { qos: 'qos', dup: 'dup', retain: 'retain', topic: 'topic' },
  connect: { cleanStart: 'cleanStart', keepAlive: 'keepAlive', clientId: 'clientId' },
  connack: { sessionPresent: 'sessionPresent', reasonCode: 'reason' },
}

/** True of a packet, false of what is malformed. */
function isRead(bytes: Uint8Array, version: number): boolean {
  try {
    readPacket(bytes, version)
    return true
  } catch (error) {
    expect(error).toBeInstanceOf(Malformed)
    return false
  }
}

describe('the reader of the world', () => {
  test.each([
    ['5.0', valid, 5],
    ['3.1.1', old, 4],
  ] as const)('reads every valid vector of MQTT %s as the vectors say', (_name, list, version) => {
    expect(list.length).toBeGreaterThan(30)
    for (const vector of list) {
      const wanted = vector.decoded as Record<string, unknown>
      const seen = readPacket(bytesOf(vector), version)
      expect([seen.kind, seen.id], vector.name).toEqual([wanted['type'], wanted['packetId'] ?? 0])
      for (const [theirs, ours] of Object.entries(fields[seen.kind] ?? {}))
        expect(seen[ours], vector.name).toEqual(wanted[theirs])
    }
  })

  // What it lets pass is about values that it has no use for.
  test('refuses nearly every malformed vector', () => {
    const bad = vectors.filter(
      ({ valid: good, layer, error }) => !good && layer === 'codec' && error === 'MalformedPacket',
    )
    const passed = bad.filter((vector) => isRead(bytesOf(vector), 5))
    expect(bad.length).toBeGreaterThan(50)
    expect(passed.length).toBeLessThan(bad.length / 4)
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
    ['AUTH on 3.1.1', [0xf0, 0]],
  ])('refuses %s', (name, bytes) => {
    expect(() => readPacket(Uint8Array.from(bytes), name.includes('3.1.1') ? 4 : 5)).toThrow(
      Malformed,
    )
  })

  test('any bytes are read or refused as malformed; nothing else escapes', () => {
    const random = new Random(7)
    const samples = valid.map(bytesOf)
    for (let round = 0; round < 20_000; round++) {
      const bytes = random.pick(samples).slice(0, 200)
      for (let changes = random.below(4); changes >= 0; changes--)
        bytes[random.below(bytes.length)] = random.below(256)
      isRead(bytes, random.pick([4, 5]))
    }
  })

  test('a stream in pieces of any size gives the same packets', () => {
    const packets = [connect(), publish({ qos: 2, id: 7 }), pubrel(7), publish({ qos: 0 })]
    const all = Uint8Array.from(packets.flatMap((packet) => [...packet]))
    for (let size = 1; size <= all.length; size++) {
      const splitter = new Splitter()
      const got: Uint8Array[] = []
      for (let at = 0; at < all.length; at += size)
        got.push(...splitter.push(all.slice(at, at + size)).map((packet) => packet.slice()))
      expect(got).toEqual(packets)
      expect(splitter.pending).toBe(0)
    }
  })

  test('a packet beyond all bounds is refused at its header', () => {
    expect(() => new Splitter().push(Uint8Array.of(0x30, 0xff, 0xff, 0xff, 0x7f))).toThrow(
      Malformed,
    )
    expect(() => new Splitter().push(Uint8Array.of(0x30, 0xff, 0xff, 0xff, 0xff))).toThrow(
      Malformed,
    )
  })
})
