/** Every string field that is not a property, in both directions and versions: UTF-8, U+0000, topic names and topic filters. */
import { describe, expect, it } from 'vitest'
import type { PacketInput } from '../../../src/wire/index.js'
import { decode, encode, validateTopicFilter, validateTopicName } from '../../../src/wire/index.js'
import { block, failure, field, frame, hexOf, type Version } from './hex.js'

const text = (value: string): string => hexOf(Buffer.from(value))

/** Where a text may stand: what may, in which packet with @ in its place and P for properties, and the same for the encoder. */
interface Place {
  name: string
  takes: 'text' | 'topic' | 'filter'
  form: readonly [first: string, body: string]
  packet: (value: string) => object
}

const connect = (flags: string, rest: string) =>
  ['10', `00044d5154540V${flags}0000P${rest}`] as const
const publish = (body: string) => ['30', body] as const
const topicOf = (topic: string) => ({ type: 'publish', topic })
const willOf = (topic: string, responseTopic?: string) => {
  return { type: 'connect', will: { topic, properties: { responseTopic } } }
}
const messageOf = (responseTopic: string) => {
  return { type: 'publish', topic: 't', properties: { responseTopic } }
}
const subscribeOf = (filter: string) => {
  return { type: 'subscribe', packetId: 1, subscriptions: [{ filter }] }
}
const connectOf = (field: string) => (value: string) => ({ type: 'connect', [field]: value })
const unsubscribeOf = (filter: string) => ({ type: 'unsubscribe', packetId: 1, filters: [filter] })
const responseOfWill = connect('06', '000163[08@]0001770000')

const places = (
  [
    ['the client identifier', 'text', connect('02', '@'), connectOf('clientId')],
    ['the user name', 'text', connect('82', '000163@'), connectOf('username')],
    ['the will topic', 'topic', connect('06', '000163P@0000'), willOf],
    ['the response topic of a will', 'topic', responseOfWill, (value) => willOf('w', value)],
    ['the topic of a PUBLISH from a client', 'topic', publish('@P'), topicOf],
    ['the topic of a PUBLISH from a server', 'topic', publish('@P'), topicOf],
    ['the response topic of a PUBLISH from a server', 'topic', publish('000174[08@]'), messageOf],
    ['the filter of a SUBSCRIBE', 'filter', ['82', '0001P00016100@00'], subscribeOf],
    ['the filter of an UNSUBSCRIBE', 'filter', ['a2', '0001P000161@'], unsubscribeOf],
  ] as [Place['name'], Place['takes'], Place['form'], Place['packet']][]
).map(([name, takes, form, packet]): Place => ({ name, takes, form, packet }))

const fromOf = ({ name }: Place) => (name.endsWith('server') ? 'server' : 'client')
const versionsOf = ({ form: [, body] }: Place): Version[] => (body.includes('[') ? [5] : [4, 5])

function bytesOf({ form: [first, body] }: Place, hex: string, version: Version): string {
  const whole = body.replace('[08@]', () => block(`08${field(hex)}`)).replace('@', () => field(hex))
  const none = version === 5 ? '00' : ''
  return frame(first, whole.replace('V', String(version)).replaceAll('P', none))
}

const encoded = ({ packet }: Place, value: string, protocolVersion: Version): string =>
  hexOf(encode(packet(value) as PacketInput, { protocolVersion }))

/** Never text, whatever the field (section 1.5.4) [MQTT-1.5.4-1] [MQTT-1.5.4-2]. */
const illFormed = [
  // U+0000: alone, at the end, at the beginning, in two bytes.
  '00 6100 0061 61c080',
  // Continuations alone, and leads without all of theirs.
  '80 61bf 61c2 c241 c3c3a9 e282 e28261 f09f98 61f0',
  // Longer than needed.
  'c0af c1bf e09fbf f08fbfbf',
  // Surrogates: the first and last of both kinds, and a pair.
  'eda080 edafbf edb080 edbfbf eda0bdedb880',
  // Beyond U+10FFFF.
  'f4908080 f5808080 f888808080 fc8480808080 fe 61ff',
].flatMap((line) => line.split(' '))

/** Well-formed, if strange: taken and kept as it is [MQTT-1.5.4-3]. */
const wellFormed = [
  ...['a b~', '\u0001', '\u001f\u007f', '\u0080', '\u07ff', '\u0800', '\ud7ff', '\ue000'],
  ...['\ufdd0', '\uffff', '\u{10000}', '\u{10ffff}', '\ufeff', '\ufeffa\ufeff', 'e\u0301'],
  'größenwahnsinnige Übermut 日本語 😀',
  // Around the length up to which strings are not left to the platform.
  ...['abcdefghijklmnopqrstuvwx', 'abcdefghijklmnopqrstuvwxy', 'abcdefghijklmnopqrstuvü'],
]
const badText = ['a\0', '\0', '\ud800', 'a\udbff', '\udc00', '\udfffa', '\udc00\ud800']
const tooLong = ['x'.repeat(65_536), 'ü'.repeat(32_768), '日'.repeat(21_846)]
const longest = ['x'.repeat(65_535), `${'ü'.repeat(32_767)}x`, '/'.repeat(65_535)]

const malformed = { kind: 'malformed', reasonCode: 0x81 }

const spoken = places.flatMap((place) =>
  versionsOf(place).map((version) => [place.name, version, place] as const),
)

describe.each(spoken)('%s, version %i', (_name, version, place) => {
  const from = fromOf(place)

  it('is malformed when it is ill-formed', () => {
    for (const hex of illFormed) {
      expect(failure(bytesOf(place, hex, version), from, version), hex).toMatchObject(malformed)
    }
  })

  it('is kept as it is when it is well-formed, and encodes to the same bytes', () => {
    for (const value of wellFormed) {
      const hex = bytesOf(place, text(value), version)
      const packet = decode(Buffer.from(hex, 'hex'), { from, protocolVersion: version })
      expect(JSON.stringify(packet)).toContain(JSON.stringify(value))
      expect(hexOf(encode(packet as PacketInput, { protocolVersion: version })), value).toBe(hex)
    }
  })

  it('may have 65,535 bytes, and not one that is missing', () => {
    for (const value of longest) {
      expect(failure(bytesOf(place, text(value), version), from, version)).toBeUndefined()
      expect(() => encoded(place, value, version)).not.toThrow()
    }
    // The length says one more than there is in the packet.
    const whole = Buffer.from(bytesOf(place, text('cut'), version), 'hex')
    const at = whole.indexOf('cut')
    whole[at - 1] = whole.length - at + 1
    expect(failure(hexOf(whole), from, version)).toMatchObject(malformed)
  })
})

describe('a UTF-8 sequence that the string cuts off, while what follows would complete it [MQTT-1.5.4-1]', () => {
  const cut = '30050001c38000 30060001e282ac00 30060002e282ac00 30060001f09f9880 30070003f09f988000'
  it.each(cut.split(' '))('is malformed: %s', (hex) => {
    expect(failure(hex, 'server', 4)).toMatchObject({
      ...malformed,
      message: 'string is not well-formed UTF-8',
    })
  })
})

/** Texts by whether they are a topic name, a filter on 5.0, and a filter on 3.1.1 (section 4.7). */
const groups: [name: boolean, filter: boolean, plain: boolean, values: string][] = [
  [true, true, true, 'a|/|//|/a|a/|a//b| |a b|$|$SYS/a|\ufeff'],
  [false, true, true, '#|+|/#|/+|+/|+/+|+/#|a/#|a/+|+/a|a/+/b|$SYS/#|\n/+/\n/#|😀/+|+/a/#'],
  [
    false,
    false,
    false,
    '|##|#/|#/a|a/#/|a/#/b|a#|#a|a/b#|a/#b|++|+a|a+|a/b+|a/+b|a/+b/c|+#|#+|+\n|\n#|#\n|😀+|+😀|ü#',
  ],
  // Shared subscriptions are of 5.0; their names are topic names like others (section 4.8.2).
  [
    true,
    true,
    true,
    '$share|$share/g/a|$share/g//|$share/g//a|$share/ü/😀|$share/$share/$share/g|/$share//a',
  ],
  [true, false, true, '$share/|$share//|$share/g|$share/g/|$share//a'],
  [
    false,
    true,
    true,
    '$share/g/#|$share/g/+|$share/g/+/a|$share/g/$SYS/#|$sharex/+/a|$SHARE/+/a|a/$share/+/b',
  ],
  [false, false, true, '$share/+/a|$share/#|$share/+'],
  [false, false, false, '$share/g/a#|$share/g/#/a|$share/#/a|$share/g+/a|$share/+g/a|$share/g#/a'],
]
const topics = groups.flatMap(([name, filter, plain, values]) => {
  return values.split('|').map((value) => [value, name, filter, plain] as const)
})

const judged = (value: string) => [validateTopicName(value), validateTopicFilter(value)]

describe('topic names and topic filters [MQTT-4.7.0-1] [MQTT-4.7.1-1] [MQTT-4.7.1-2] [MQTT-4.7.3-1] [MQTT-4.8.2-1] [MQTT-4.8.2-2]', () => {
  it.each(topics)(
    '%j: topic name %s, filter %s, filter on 3.1.1 %s',
    (value, name, filter, plain) => {
      expect(judged(value).map((wrong) => wrong === undefined)).toEqual([name, filter])
      for (const place of places.filter(({ takes }) => takes !== 'text')) {
        for (const version of versionsOf(place)) {
          const valid = place.takes === 'topic' ? name : version === 5 ? filter : plain
          const found = failure(bytesOf(place, text(value), version), fromOf(place), version)
          const where = `${place.name}, version ${version}`
          if (valid) expect(found, where).toBeUndefined()
          else expect(found, where).toMatchObject({ kind: 'protocol', reasonCode: 0x82 })
          const attempt = (): unknown => encoded(place, value, version)
          if (valid) expect(attempt, where).not.toThrow()
          else expect(attempt, where).toThrow(expect.objectContaining({ fault: 'local' }))
        }
      }
    },
  )

  it('say what is wrong with text that is ill-formed or too long, and take 65,535 bytes', () => {
    for (const value of [...badText, ...tooLong]) {
      expect(judged(value)).toEqual([expect.any(String), expect.any(String)])
    }
    for (const value of longest) expect(judged(value)).toEqual([undefined, undefined])
  })

  it('No Local is for filters that are not shared [MQTT-3.8.3-4]', () => {
    for (const [value] of topics.filter(([, , filter]) => filter)) {
      const shared = value.startsWith('$share/')
      const found = failure(frame('82', `000100${field(text(value))}04`), 'client', 5)
      if (shared) expect(found, value).toMatchObject({ kind: 'protocol', reasonCode: 0x82 })
      else expect(found, value).toBeUndefined()
      const subscriptions = [{ filter: value, noLocal: true }]
      const attempt = (): unknown => encode({ type: 'subscribe', packetId: 1, subscriptions })
      if (shared)
        expect(attempt, value).toThrow(
          expect.objectContaining({ option: 'subscriptions[0].noLocal' }),
        )
      else expect(attempt, value).not.toThrow()
    }
  })
})
