/** PUBLISH (section 3.3) from a server: flags, topics, identifiers, aliases, Subscription Identifiers, payloads of every size that matters. */
import {
  type Bytes,
  block,
  fill,
  frame,
  prefixed,
  stretched,
  string,
  text,
  u16,
  vbi,
} from '../bytes.js'
import { type Book, broken, ids, shown } from '../case.js'
import { badTexts, goodTexts } from '../facts.js'
import {
  aliasProperty,
  identifierProperty,
  type PublishParts,
  pairProperty,
  publish,
} from '../packets.js'
import { counts, limits } from '../states.js'
import { addIncomplete, addLengths, addShort, type Layout } from './framing.js'
import { addProperties, type Shape } from './properties.js'

const type = 'publish'
const layout: Layout = {
  type,
  first: 0x32,
  fields: {
    topic: string('t'),
    'packet identifier': u16(ids.fresh),
    properties: block(pairProperty()),
  },
}
const shape = (qos: 0 | 1): Shape => ({
  type,
  continues: true,
  wrap: (encoded) => frame(0x30 | (qos << 1), string('t'), qos > 0 ? u16(ids.fresh) : [], encoded),
  mean: ({ pairs, identifiers }) => ({
    kind: type,
    qos,
    id: ids.fresh,
    ...(pairs !== undefined && { pairs }),
    ...(identifiers !== undefined && { identifiers }),
  }),
})
const levels: readonly (0 | 1 | 2)[] = [0, 1, 2]

export function addPublish(book: Book): void {
  addLengths(book, layout)
  addShort(book, layout)
  addIncomplete(book, { ...layout, fields: { ...layout.fields, payload: text('payload') } })
  addProperties(book, shape(1), ['Topic Alias'])
  addFlagsOfPublish(book)
  addTopics(book)
  addIdentifiers(book)
  addPayloads(book)
  addAliases(book)
  addSubscriptionIdentifiers(book)
}

const publishes = (book: Book, cases: Readonly<Record<string, PublishParts>>): void => {
  for (const [how, parts] of Object.entries(cases)) book.add(type, how, publish(parts))
}
/** A PUBLISH whose topic is given with its length. */
const raw = (qos: number, topic: Bytes, ...encoded: Bytes[]): Bytes =>
  frame(0x30 | (qos << 1), topic, qos > 0 ? u16(ids.fresh) : [], block(...encoded))

function addFlagsOfPublish(book: Book): void {
  const { bad } = book.of(type)
  for (const retain of [false, true]) {
    const how = `RETAIN ${retain}`
    publishes(book, { [`QoS 0, ${how}`]: { retain } })
    for (const qos of [1, 2] as const)
      for (const dup of [false, true])
        publishes(book, { [`QoS ${qos}, ${how}, DUP ${dup}`]: { qos, retain, dup } })
    const first = retain ? 0x39 : 0x38
    bad('DUP at QoS 0', how, frame(first, string('t'), block()))
    bad('DUP at QoS 0', `${how}, first byte alone`, [first])
  }
  for (const first of [0x36, 0x37, 0x3e, 0x3f]) {
    bad('QoS 3', shown(first), frame(first, string('t'), u16(ids.fresh), block()))
    bad('QoS 3', `${shown(first)} alone`, [first])
  }
}

function addTopics(book: Book): void {
  const { bad, allBad } = book.of(type)
  const good: Readonly<Record<string, Bytes>> = {
    ...goodTexts,
    'a single slash': text('/'),
    'empty levels': text('//a//'),
    'a blank': text(' '),
    'begins with $SYS': text('$SYS/broker/uptime'),
    'begins with $share': text('$share/g/t'),
    'of the largest length': fill(65_535, 0x61),
    '65,000 levels': fill(65_000, 0x2f),
    'letters of four scripts': text('tëmp/気温/температура/حرارة'),
  }
  for (const [how, topic] of Object.entries(good))
    publishes(book, {
      [`topic: ${how}`]: { topic },
      [`topic: ${how}, at QoS 2`]: { topic, qos: 2 },
    })
  for (const topic of ['#', '+', 'a/#', 'a/+/b', 'a#b', 'ab+']) {
    bad('topic with a wildcard', topic, raw(0, string(topic)))
    bad('topic with a wildcard', `${topic}, at QoS 1`, raw(1, string(topic)))
  }
  for (const [how, topic] of Object.entries(badTexts))
    bad('string ill-formed', `topic, ${how}`, raw(0, prefixed(topic)))
  for (const qos of levels)
    bad('topic empty without an alias', `at QoS ${qos}`, raw(qos, string('')))
  const others = raw(0, string(''), pairProperty(), identifierProperty(1))
  bad('topic empty without an alias', 'with other properties', others)
  allBad('string beyond its block', {
    topic: raw(0, [0, 9, 0x61]),
    'topic of the largest length': raw(0, [255, 255, 0x61, 0x62]),
  })
  for (const topic of ['', 'a/#', '+/a'])
    bad(
      'response topic that is no topic name',
      `'${topic}'`,
      raw(0, string('t'), [0x08, ...string(topic)]),
    )
}

function addIdentifiers(book: Book): void {
  for (const qos of [1, 2] as const) {
    for (const dup of [false, true]) {
      const at = `QoS ${qos}, DUP ${dup}`
      const first = 0x30 | (qos << 1) | (dup ? 8 : 0)
      book.addBroken(type, 'packet identifier 0', at, frame(first, string('t'), u16(0), block()))
      publishes(book, {
        [`${at}, identifier of a QoS 1 message in hand`]: { qos, dup, id: ids.theirs1 },
        [`${at}, identifier of a QoS 2 message under way`]: { qos, dup, id: ids.theirs2 },
        [`${at}, identifier that is ours`]: { qos, dup, id: ids.ours },
      })
    }
    for (const id of [1, 65_535]) publishes(book, { [`QoS ${qos}, identifier ${id}`]: { qos, id } })
  }
}

function addPayloads(book: Book): void {
  const { bad, allBad } = book.of(type)
  const size = limits.maximumPacketSize
  // Remaining Length at each edge of its encoding, and of what we take: 4 bytes are there besides the payload.
  for (const length of [127, 128, 16_383, 16_384, size - 4])
    publishes(book, { [`Remaining Length ${length}`]: { payload: fill(length - 4, 0x78) } })
  const largest = [0xff, 0xff, 0xff, 0x7f]
  allBad('packet above our Maximum Packet Size', {
    'by one byte, header alone': [0x30, ...vbi(size - 3)],
    'by one byte, at QoS 2, header alone': [0x34, ...vbi(size - 3)],
    'by one byte, all of it': frame(0x30, string('t'), block(), fill(size - 7, 0x78)),
    'the largest there is, header alone': [0x30, ...largest],
    'the largest there is, and a bit': [0x32, ...largest, ...string('t'), ...u16(ids.fresh), 0],
    'the smallest of four bytes of length': [0x3b, ...vbi(2_097_152)],
  })
  publishes(book, {
    'payload that looks like packets': {
      payload: [0xe0, 0x00, 0xd0, 0x00, 0x20, 0x03, 0x00, 0x00, 0x00],
    },
    'payload that is no UTF-8, and says so': { properties: [[1, 0]], payload: [0xff, 0xfe] },
    'payload that is no UTF-8, and says otherwise': {
      properties: [[1, 1]],
      payload: [0xff, 0xfe],
    },
    'payload of zeros': { qos: 1, payload: fill(20, 0) },
    'message that is about to expire': {
      qos: 2,
      properties: [[0x02, 0, 0, 0, 0]],
      payload: text('x'),
    },
  })
  bad('flag neither 0 nor 1', 'Payload Format Indicator at QoS 2', raw(2, string('t'), [0x01, 3]))
}

function addAliases(book: Book): void {
  const { bad, all } = book.of(type)
  const { topicAliasMaximum: most } = limits
  const topic: Bytes = []
  const zero = broken('topic alias outside our range', raw(0, string('t'), aliasProperty(0)))
  for (const qos of levels) {
    const at = `at QoS ${qos}`
    publishes(book, {
      [`alias set ${at}`]: { qos, alias: 1 },
      [`largest alias set ${at}`]: { qos, alias: most },
      [`alias used that may be known ${at}`]: { qos, alias: 2, topic },
      [`alias used that was never set ${at}`]: { qos, alias: 3, topic },
      [`alias above our maximum ${at}`]: { qos, alias: most + 1 },
      [`largest alias there is ${at}`]: { qos, alias: 65_535 },
      [`alias above our maximum used without a topic ${at}`]: { qos, alias: most + 1, topic },
    })
    bad('topic alias outside our range', `0 ${at}`, raw(qos, string('t'), aliasProperty(0)))
    const set = publish({ qos, alias: 1, id: 400 })
    all({
      [`alias set and used ${at}`]: [set, publish({ qos, alias: 1, topic, id: 401 })],
      [`alias set, set anew and used ${at}`]: [
        set,
        publish({ qos, alias: 1, topic: text('u'), id: 401 }),
        publish({ qos, alias: 1, topic, id: 402 }),
      ],
      [`one alias set, another used ${at}`]: [set, publish({ qos, alias: 3, topic, id: 401 })],
      [`alias set, alias 0 behind it ${at}`]: [set, zero],
    })
  }
  bad('topic alias outside our range', '0 without a topic', raw(0, string(''), aliasProperty(0)))
  all({
    'every alias set, then used in turn': [
      ...[1, 2, 3].map((alias) => publish({ alias, topic: text(`t${alias}`) })),
      ...[3, 1, 2].map((alias) => publish({ alias, topic })),
    ],
  })
  publishes(book, {
    'alias behind other properties': { alias: 1, properties: [pairProperty(), [0x01, 1]] },
    'alias and a topic of the largest length': { alias: 1, topic: fill(65_535, 0x62) },
  })
}

function addSubscriptionIdentifiers(book: Book): void {
  const { bad, allBad } = book.of(type)
  const several = (identifiers: number, qos: 0 | 1 | 2 = 0): PublishParts => ({
    qos,
    properties: Array.from({ length: identifiers }, (_, index) => identifierProperty(index + 1)),
    identifiers,
  })
  const [one, five, pair] = [identifierProperty(1), identifierProperty(5), pairProperty()]
  publishes(book, {
    'two Subscription Identifiers': several(2),
    'two equal Subscription Identifiers': { properties: [five, five], identifiers: 2 },
    'as many Subscription Identifiers as we take': several(counts.identifiers, 1),
    'one Subscription Identifier more than we take': several(counts.identifiers + 1),
    'one Subscription Identifier more than we take, at QoS 2': several(counts.identifiers + 1, 2),
    'Subscription Identifiers between user properties': {
      properties: [one, pair, five, pair],
      identifiers: 2,
      pairs: 2,
    },
  })
  const of = (...value: number[]): Bytes => raw(0, string('t'), [0x0b, ...value])
  for (const size of [2, 3, 4])
    bad('Subscription Identifier not minimal', `${size} bytes for one`, of(...stretched(1, size)))
  allBad('Subscription Identifier not minimal', {
    'four bytes for three': of(...stretched(20_000, 4)),
  })
  allBad('Subscription Identifier of five bytes', {
    'value of one': of(...stretched(1, 5)),
    'too large for four': of(0xff, 0xff, 0xff, 0xff, 0x01),
  })
  const zero = raw(0, string('t'), one, [0x0b, 0])
  bad('zero where it is forbidden', 'second of two Subscription Identifiers', zero)
  for (const size of [1, 2, 3]) {
    const how = `Subscription Identifier goes on after ${size} bytes`
    bad('property cut off', how, of(...fill(size, 0x80)))
  }
}
