/**
 * The independent reader of packets, on bytes written out by hand.
 */
import { describe, expect, test } from 'vitest'
import { bytesOf, readVectors, type Vector } from '../unit/wire/vector-files.js'
import { connect, publish, pubrel } from './packets.js'
import { Random } from './random.js'
import { Malformed, readPacket, Splitter } from './reader.js'

const vectors = readVectors('../rules/vectors.json').filter(({ fill }) => fill === undefined)
const valid = vectors.filter((vector) => vector.valid && vector.layer !== 'session' && !Array.isArray(vector.decoded))
const old = readVectors('./vectors-311.json').filter((vector) => vector.valid && vector.fill === undefined && vector.layer !== 'session')

/** What both know of a packet. */
function decoded({ decoded: value }: Vector): Record<string, unknown> {
  return value as Record<string, unknown>
}

describe('the reader of the world', () => {
  test.each([
    ['5.0', valid, 5],
    ['3.1.1', old, 4],
  ] as const)('reads every valid vector of MQTT %s as the vectors say', (_name, list, version) => {
    expect(list.length).toBeGreaterThan(30)
    for (const vector of list) {
      const wanted = decoded(vector)
      const seen = readPacket(bytesOf(vector), version)
      expect(seen.kind, vector.name).toBe(wanted['type'])
      expect(seen.id, vector.name).toBe(wanted['packetId'] ?? 0)
      if (seen.kind === 'publish')
        expect([seen.qos, seen.dup, seen.retain, seen.topic], vector.name).toEqual([wanted['qos'], wanted['dup'], wanted['retain'], wanted['topic']])
      if (seen.kind === 'connect')
        expect([seen.cleanStart, seen.keepAlive, seen.clientId], vector.name).toEqual([wanted['cleanStart'], wanted['keepAlive'], wanted['clientId']])
      if (seen.kind === 'connack') expect([seen.sessionPresent, seen.reason], vector.name).toEqual([wanted['sessionPresent'], wanted['reasonCode']])
    }
  })

  test('refuses nearly every malformed vector, and what it lets pass is about values it has no use for', () => {
    const bad = vectors.filter(({ valid: good, layer, error }) => !good && layer === 'codec' && error === 'MalformedPacket')
    const passed = bad.filter((vector) => {
      try {
        readPacket(bytesOf(vector), 5)
        return true
      } catch (error) {
        expect(error, vector.name).toBeInstanceOf(Malformed)
        return false
      }
    })
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
    expect(() => readPacket(Uint8Array.from(bytes), name.includes('3.1.1') ? 4 : 5)).toThrow(Malformed)
  })

  test('any bytes are read or refused as malformed; nothing else escapes', () => {
    const random = new Random(7)
    const samples = valid.map(bytesOf)
    for (let round = 0; round < 20_000; round++) {
      const bytes = random.pick(samples).slice(0, 200)
      for (let changes = random.below(4); changes >= 0; changes--) bytes[random.below(bytes.length)] = random.below(256)
      try {
        readPacket(bytes, random.pick([4, 5]))
      } catch (error) {
        expect(error).toBeInstanceOf(Malformed)
      }
    }
  })

  test('a stream in pieces of any size gives the same packets', () => {
    const packets = [connect(), publish({ qos: 2, id: 7 }), pubrel(7), publish({ qos: 0 })]
    const all = Uint8Array.from(packets.flatMap((packet) => [...packet]))
    for (let size = 1; size <= all.length; size++) {
      const splitter = new Splitter()
      const got: Uint8Array[] = []
      for (let at = 0; at < all.length; at += size) got.push(...splitter.push(all.slice(at, at + size)).map((packet) => packet.slice()))
      expect(got).toEqual(packets)
      expect(splitter.pending).toBe(0)
    }
  })

  test('a packet beyond all bounds is refused at its header', () => {
    expect(() => new Splitter().push(Uint8Array.of(0x30, 0xff, 0xff, 0xff, 0x7f))).toThrow(Malformed)
    expect(() => new Splitter().push(Uint8Array.of(0x30, 0xff, 0xff, 0xff, 0xff))).toThrow(Malformed)
  })
})
