/** Every string field that is not a property, in both directions and versions: UTF-8, U+0000, topic names and topic filters. */
import { describe, expect, it } from 'vitest'
import type { PacketInput, WireError } from '../../../src/wire/index.js'
import { decode, encode, validateTopicFilter, validateTopicName } from '../../../src/wire/index.js'

type Version = 4 | 5

const u16 = (value: number): string => value.toString(16).padStart(4, '0')
const field = (hex: string): string => u16(hex.length / 2) + hex
const text = (value: string): string => Buffer.from(value).toString('hex')

function frame(first: string, body: string): Uint8Array {
  const length = body.length / 2
  const size =
    length < 128
      ? [length]
      : length < 16_384
        ? [(length & 127) | 128, length >> 7]
        : [(length & 127) | 128, ((length >> 7) & 127) | 128, length >> 14]
  return Buffer.from(first + Buffer.from(size).toString('hex') + body, 'hex')
}

const none = (version: Version): string => (version === 5 ? '00' : '')
const begin = (version: Version, flags: string): string => `00044d5154540${version}${flags}0000${none(version)}`

interface Place {
  name: string
  from: 'client' | 'server'
  versions: Version[]
  /** What may stand there: any text, a topic name, or a topic filter. */
  takes: 'text' | 'topic' | 'filter'
  bytes(hex: string, version: Version): Uint8Array
  packet(value: string): PacketInput
}

const publish = (from: 'client' | 'server'): Place => ({
  name: `the topic of a PUBLISH from a ${from}`,
  from,
  versions: [4, 5],
  takes: 'topic',
  bytes: (hex, version) => frame('30', field(hex) + none(version)),
  packet: (topic) => ({ type: 'publish', topic }),
})

const places: Place[] = [
  {
    name: 'the client identifier',
    from: 'client',
    versions: [4, 5],
    takes: 'text',
    bytes: (hex, version) => frame('10', begin(version, '02') + field(hex)),
    packet: (clientId) => ({ type: 'connect', clientId }),
  },
  {
    name: 'the user name',
    from: 'client',
    versions: [4, 5],
    takes: 'text',
    bytes: (hex, version) => frame('10', begin(version, '82') + field('63') + field(hex)),
    packet: (username) => ({ type: 'connect', username }),
  },
  {
    name: 'the will topic',
    from: 'client',
    versions: [4, 5],
    takes: 'topic',
    bytes: (hex, version) => frame('10', begin(version, '06') + field('63') + none(version) + field(hex) + field('')),
    packet: (topic) => ({ type: 'connect', will: { topic } }),
  },
  {
    name: 'the response topic of a will',
    from: 'client',
    versions: [5],
    takes: 'topic',
    bytes: (hex) => frame('10', `${begin(5, '06')}${field('63')}${properties(`08${field(hex)}`)}${field('77')}${field('')}`),
    packet: (responseTopic) => ({ type: 'connect', will: { topic: 'w', properties: { responseTopic } } }),
  },
  publish('client'),
  publish('server'),
  {
    name: 'the response topic of a PUBLISH',
    from: 'server',
    versions: [5],
    takes: 'topic',
    bytes: (hex) => frame('30', field('74') + properties(`08${field(hex)}`)),
    packet: (responseTopic) => ({ type: 'publish', topic: 't', properties: { responseTopic } }),
  },
  {
    name: 'the filter of a SUBSCRIBE',
    from: 'client',
    versions: [4, 5],
    takes: 'filter',
    bytes: (hex, version) => frame('82', `0001${none(version)}${field('61')}00${field(hex)}00`),
    packet: (filter) => ({ type: 'subscribe', packetId: 1, subscriptions: [{ filter }] }),
  },
  {
    name: 'the filter of an UNSUBSCRIBE',
    from: 'client',
    versions: [4, 5],
    takes: 'filter',
    bytes: (hex, version) => frame('a2', `0001${none(version)}${field('61')}${field(hex)}`),
    packet: (filter) => ({ type: 'unsubscribe', packetId: 1, filters: [filter] }),
  },
]

function properties(hex: string): string {
  const length = hex.length / 2
  return (
    (length < 128
      ? Buffer.of(length)
      : length < 16_384
        ? Buffer.of((length & 127) | 128, length >> 7)
        : Buffer.of((length & 127) | 128, ((length >> 7) & 127) | 128, length >> 14)
    ).toString('hex') + hex
  )
}

function failure(bytes: Uint8Array, from: 'client' | 'server', protocolVersion: Version): WireError | undefined {
  try {
    decode(bytes, { from, protocolVersion })
  } catch (error) {
    return error as WireError
  }
  return undefined
}

/** `[what, hex]`: never text, whatever the field (section 1.5.4) [MQTT-1.5.4-1] [MQTT-1.5.4-2]. */
const illFormed: [string, string][] = [
  ['U+0000', '00'],
  ['U+0000 at the end', '6100'],
  ['U+0000 at the beginning', '0061'],
  ['U+0000 in two bytes', '61c080'],
  ['a continuation alone', '80'],
  ['the last continuation alone', '61bf'],
  ['a lead alone', '61c2'],
  ['a lead before ASCII', 'c241'],
  ['a lead before a lead', 'c3c3a9'],
  ['two of three bytes', 'e282'],
  ['two of three bytes, then ASCII', 'e28261'],
  ['three of four bytes', 'f09f98'],
  ['one of four bytes', '61f0'],
  ['overlong / in two', 'c0af'],
  ['overlong 0x7F in two', 'c1bf'],
  ['overlong in three', 'e09fbf'],
  ['overlong in four', 'f08fbfbf'],
  ['the first surrogate', 'eda080'],
  ['the last high surrogate', 'edafbf'],
  ['the first low surrogate', 'edb080'],
  ['the last surrogate', 'edbfbf'],
  ['a pair of surrogates', 'eda0bdedb880'],
  ['U+110000', 'f4908080'],
  ['F5', 'f5808080'],
  ['five bytes', 'f888808080'],
  ['six bytes', 'fc8480808080'],
  ['FE', 'fe'],
  ['FF', '61ff'],
]

/** Well-formed, if strange: taken and kept as it is [MQTT-1.5.4-3]. */
const wellFormed: [string, string][] = [
  ['ASCII', 'a b~'],
  ['U+0001', '\u0001'],
  ['U+001F and U+007F', '\u001f\u007f'],
  ['U+0080', '\u0080'],
  ['U+07FF', '\u07ff'],
  ['U+0800', '\u0800'],
  ['U+D7FF', '\ud7ff'],
  ['U+E000', '\ue000'],
  ['U+FDD0, a non-character', '\ufdd0'],
  ['U+FFFF', '\uffff'],
  ['U+10000', '\u{10000}'],
  ['U+10FFFF', '\u{10ffff}'],
  ['a byte order mark', '\ufeff'],
  ['two byte order marks', '\ufeffa\ufeff'],
  ['a decomposed letter', 'e\u0301'],
  ['more than a dozen characters, not all ASCII', 'größenwahnsinnige Übermut 日本語 😀'],
]

const versionOf = (version: Version): string => (version === 5 ? '5.0' : '3.1.1')

for (const place of places) {
  for (const version of place.versions) {
    describe(`${place.name}, ${versionOf(version)}`, () => {
      it('is malformed when it is ill-formed', () => {
        for (const [what, hex] of illFormed) {
          expect(failure(place.bytes(hex, version), place.from, version), what).toMatchObject({ kind: 'malformed', reasonCode: 0x81 })
        }
      })

      it('is kept as it is when it is well-formed, and encodes to the same bytes', () => {
        for (const [what, value] of wellFormed) {
          const bytes = place.bytes(text(value), version)
          const packet = decode(bytes, { from: place.from, protocolVersion: version })
          expect(JSON.stringify(packet), what).toContain(JSON.stringify(value))
          expect(Buffer.compare(encode(packet as PacketInput, { protocolVersion: version }), bytes), what).toBe(0)
        }
      })

      it('may have 65,535 bytes, and not one that is missing', () => {
        for (const value of ['x'.repeat(65_535), `${'ü'.repeat(32_767)}x`, `${'/'.repeat(65_535)}`]) {
          expect(failure(place.bytes(text(value), version), place.from, version)).toBeUndefined()
          expect(() => encode(place.packet(value), { protocolVersion: version })).not.toThrow()
        }
        // The length says one more than there is in the packet.
        const whole = Buffer.from(place.bytes(text('cut'), version))
        const at = whole.indexOf('cut')
        whole[at - 1] = whole.length - at + 1
        expect(failure(whole, place.from, version)).toMatchObject({ kind: 'malformed', reasonCode: 0x81 })
      })

      it('is never encoded ill-formed or too long', () => {
        for (const value of [
          'a\0',
          '\0',
          '\ud800',
          'a\udbff',
          '\udc00',
          '\udfffa',
          '\udc00\ud800',
          'x'.repeat(65_536),
          'ü'.repeat(32_768),
          '日'.repeat(21_846),
        ]) {
          expect(() => encode(place.packet(value), { protocolVersion: version })).toThrow(
            expect.objectContaining({ fault: 'local', reasonCode: undefined }),
          )
        }
      })
    })
  }
}

/** `[text, is a topic name, is a filter on 5.0, is a filter on 3.1.1]` (section 4.7). */
const topics: [value: string, name: boolean, filter: boolean, plain: boolean][] = [
  ['a', true, true, true],
  ['', false, false, false],
  ['/', true, true, true],
  ['//', true, true, true],
  ['/a', true, true, true],
  ['a/', true, true, true],
  ['a//b', true, true, true],
  [' ', true, true, true],
  ['a b', true, true, true],
  ['$', true, true, true],
  ['$SYS/a', true, true, true],
  ['#', false, true, true],
  ['+', false, true, true],
  ['/#', false, true, true],
  ['/+', false, true, true],
  ['+/', false, true, true],
  ['+/+', false, true, true],
  ['+/#', false, true, true],
  ['a/#', false, true, true],
  ['a/+', false, true, true],
  ['+/a', false, true, true],
  ['a/+/b', false, true, true],
  ['$SYS/#', false, true, true],
  ['\n/+/\n/#', false, true, true],
  ['😀/+', false, true, true],
  ['##', false, false, false],
  ['#/', false, false, false],
  ['#/a', false, false, false],
  ['a/#/', false, false, false],
  ['a/#/b', false, false, false],
  ['a#', false, false, false],
  ['#a', false, false, false],
  ['a/b#', false, false, false],
  ['a/#b', false, false, false],
  ['++', false, false, false],
  ['+a', false, false, false],
  ['a+', false, false, false],
  ['a/b+', false, false, false],
  ['a/+b', false, false, false],
  ['a/+b/c', false, false, false],
  ['+#', false, false, false],
  ['#+', false, false, false],
  ['+\n', false, false, false],
  ['\n#', false, false, false],
  ['#\n', false, false, false],
  ['😀+', false, false, false],
  ['+😀', false, false, false],
  ['ü#', false, false, false],
  // Shared subscriptions are of 5.0; their names are topic names like others (section 4.8.2).
  ['$share', true, true, true],
  ['$share/', true, false, true],
  ['$share//', true, false, true],
  ['$share/g', true, false, true],
  ['$share/g/', true, false, true],
  ['$share//a', true, false, true],
  ['$share/g/a', true, true, true],
  ['$share/g//', true, true, true],
  ['$share/g//a', true, true, true],
  ['$share/g/#', false, true, true],
  ['$share/g/+', false, true, true],
  ['$share/g/+/a', false, true, true],
  ['$share/g/$SYS/#', false, true, true],
  ['$share/g/a#', false, false, false],
  ['$share/g/#/a', false, false, false],
  ['$share/+/a', false, false, true],
  ['$share/#', false, false, true],
  ['$share/#/a', false, false, false],
  ['$share/+', false, false, true],
  ['$share/g+/a', false, false, false],
  ['$share/+g/a', false, false, false],
  ['$share/ü/😀', true, true, true],
  ['$share/$share/$share/g', true, true, true],
  ['$sharex/+/a', false, true, true],
  ['$SHARE/+/a', false, true, true],
  ['a/$share/+/b', false, true, true],
  ['/$share//a', true, true, true],
]

describe('topic names and topic filters [MQTT-4.7.0-1] [MQTT-4.7.1-1] [MQTT-4.7.1-2] [MQTT-4.7.3-1] [MQTT-4.8.2-1] [MQTT-4.8.2-2]', () => {
  it.each(topics)('%j: topic name %s, filter %s, filter on 3.1.1 %s', (value, name, filter, plain) => {
    expect([validateTopicName(value) === undefined, validateTopicFilter(value) === undefined]).toEqual([name, filter])
    for (const place of places) {
      if (place.takes === 'text') continue
      for (const version of place.versions) {
        const valid = place.takes === 'topic' ? name : version === 5 ? filter : plain
        const found = failure(place.bytes(text(value), version), place.from, version)
        const where = `${place.name}, version ${version}`
        if (valid) expect(found, where).toBeUndefined()
        else expect(found, where).toMatchObject({ kind: 'protocol', reasonCode: 0x82 })
        const attempt = (): unknown => encode(place.packet(value), { protocolVersion: version })
        if (valid) expect(attempt, where).not.toThrow()
        else expect(attempt, where).toThrow(expect.objectContaining({ fault: 'local' }))
      }
    }
  })

  it('No Local is for filters that are not shared [MQTT-3.8.3-4]', () => {
    for (const [value, , filter] of topics) {
      if (!filter) continue
      const shared = value.startsWith('$share/')
      const found = failure(frame('82', `000100${field(text(value))}04`), 'client', 5)
      if (shared) expect(found, value).toMatchObject({ kind: 'protocol', reasonCode: 0x82 })
      else expect(found, value).toBeUndefined()
      const attempt = (): unknown => encode({ type: 'subscribe', packetId: 1, subscriptions: [{ filter: value, noLocal: true }] })
      if (shared) expect(attempt, value).toThrow(expect.objectContaining({ option: 'subscriptions[0].noLocal' }))
      else expect(attempt, value).not.toThrow()
    }
  })
})
