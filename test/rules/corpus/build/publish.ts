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
import { type Book, broken, ids } from '../case.js'
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

const add = (book: Book, how: string, parts: PublishParts): void =>
  book.add(type, how, publish(parts))

function addFlagsOfPublish(book: Book): void {
  const { bad } = book.of(type)
  for (const qos of levels) {
    for (const retain of [false, true]) {
      for (const dup of [false, true]) {
        const how = `QoS ${qos}${retain ? ', RETAIN' : ''}${dup ? ', DUP' : ''}`
        const first = 0x30 | (dup ? 8 : 0) | (qos << 1) | (retain ? 1 : 0)
        if (qos > 0 || !dup) add(book, how, { qos, retain, dup })
        else bad('DUP at QoS 0', retain ? 'with RETAIN' : '', frame(first, string('t'), block()))
      }
    }
  }
  for (const first of [0x36, 0x37, 0x3e, 0x3f]) {
    bad(
      'QoS 3',
      `first byte 0x${first.toString(16)}`,
      frame(first, string('t'), u16(ids.fresh), block()),
    )
    bad('QoS 3', `first byte 0x${first.toString(16)} alone`, [first])
  }
  for (const first of [0x38, 0x39])
    bad('DUP at QoS 0', `first byte 0x${first.toString(16)} alone`, [first])
}

function addTopics(book: Book): void {
  const { bad } = book.of(type)
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
  for (const [how, topic] of Object.entries(good)) {
    add(book, `topic: ${how}`, { topic })
    add(book, `topic: ${how}, at QoS 2`, { topic, qos: 2 })
  }
  const wild: Readonly<Record<string, string>> = {
    '#': '#',
    '+': '+',
    'a level #': 'a/#',
    'a level +': 'a/+/b',
    '# inside a level': 'a#b',
    '+ at an end': 'ab+',
  }
  for (const [how, topic] of Object.entries(wild)) {
    bad('topic with a wildcard', how, frame(0x30, string(topic), block()))
    bad(
      'topic with a wildcard',
      `${how}, at QoS 1`,
      frame(0x32, string(topic), u16(ids.fresh), block()),
    )
  }
  for (const [how, topic] of Object.entries(badTexts))
    bad('string ill-formed', `topic, ${how}`, frame(0x30, prefixed(topic), block()))
  for (const qos of levels) {
    bad(
      'topic empty without an alias',
      `at QoS ${qos}`,
      frame(0x30 | (qos << 1), string(''), qos > 0 ? u16(ids.fresh) : [], block()),
    )
  }
  bad(
    'topic empty without an alias',
    'with other properties',
    frame(0x30, string(''), block(pairProperty(), identifierProperty(1))),
  )
  bad('string beyond its block', 'topic', frame(0x30, [0, 9, 0x61], block()))
  bad(
    'string beyond its block',
    'topic of the largest length',
    frame(0x30, [255, 255, 0x61, 0x62], block()),
  )
  for (const [how, topic] of Object.entries({ empty: '', 'with #': 'a/#', 'with +': '+/a' })) {
    bad(
      'response topic that is no topic name',
      how,
      frame(0x30, string('t'), block([0x08, ...string(topic)])),
    )
  }
}

function addIdentifiers(book: Book): void {
  for (const qos of [1, 2] as const) {
    for (const dup of [false, true]) {
      const flags = (qos << 1) | (dup ? 8 : 0)
      const again = dup ? ', DUP' : ''
      book.addBroken(
        type,
        'packet identifier 0',
        `QoS ${qos}${again}`,
        frame(0x30 | flags, string('t'), u16(0), block()),
      )
      add(book, `QoS ${qos}${again}, identifier of a QoS 1 message in hand`, {
        qos,
        dup,
        id: ids.theirs1,
      })
      add(book, `QoS ${qos}${again}, identifier of a QoS 2 message under way`, {
        qos,
        dup,
        id: ids.theirs2,
      })
      add(book, `QoS ${qos}${again}, identifier that is ours`, { qos, dup, id: ids.ours })
    }
    add(book, `QoS ${qos}, identifier 1`, { qos, id: 1 })
    add(book, `QoS ${qos}, identifier 65,535`, { qos, id: 65_535 })
  }
}

function addPayloads(book: Book): void {
  const { bad } = book.of(type)
  // Remaining Length at each edge of its encoding: 4 bytes are there besides the payload.
  for (const length of [127, 128, 16_383, 16_384]) {
    add(book, `Remaining Length ${length}`, { payload: fill(length - 4, 0x78) })
  }
  const size = limits.maximumPacketSize
  add(book, 'as long as we take', { payload: fill(size - 8, 0x78) })
  const rule = 'packet above our Maximum Packet Size'
  bad(rule, 'by one byte, header alone', [0x30, ...vbi(size - 3)])
  bad(rule, 'by one byte, at QoS 2, header alone', [0x34, ...vbi(size - 3)])
  bad(rule, 'by one byte, all of it', frame(0x30, string('t'), block(), fill(size - 7, 0x78)))
  bad(rule, 'the largest there is, header alone', [0x30, 0xff, 0xff, 0xff, 0x7f])
  bad(rule, 'the largest there is, and a bit', [
    0x32,
    0xff,
    0xff,
    0xff,
    0x7f,
    ...string('t'),
    ...u16(ids.fresh),
    0,
  ])
  bad(rule, 'the smallest of four bytes of length', [0x3b, ...vbi(2_097_152)])
  add(book, 'payload that looks like packets', {
    payload: [0xe0, 0x00, 0xd0, 0x00, 0x20, 0x03, 0x00, 0x00, 0x00],
  })
  add(book, 'payload that is no UTF-8, and says so', {
    properties: [[0x01, 0]],
    payload: [0xff, 0xfe],
  })
  add(book, 'payload that is no UTF-8, and says otherwise', {
    properties: [[0x01, 1]],
    payload: [0xff, 0xfe],
  })
  add(book, 'payload of zeros', { qos: 1, payload: fill(20, 0) })
  add(book, 'message that is about to expire', {
    qos: 2,
    properties: [[0x02, 0, 0, 0, 0]],
    payload: text('x'),
  })
  bad(
    'flag neither 0 nor 1',
    'Payload Format Indicator at QoS 2',
    frame(0x34, string('t'), u16(ids.fresh), block([0x01, 3]), text('x')),
  )
}

function addAliases(book: Book): void {
  const { bad } = book.of(type)
  const { topicAliasMaximum } = limits
  const empty: Bytes = []
  for (const qos of levels) {
    const at = `at QoS ${qos}`
    add(book, `alias set ${at}`, { qos, alias: 1 })
    add(book, `largest alias set ${at}`, { qos, alias: topicAliasMaximum })
    add(book, `alias used that may be known ${at}`, { qos, alias: 2, topic: empty })
    add(book, `alias used that was never set ${at}`, { qos, alias: 3, topic: empty })
    add(book, `alias above our maximum ${at}`, { qos, alias: topicAliasMaximum + 1 })
    add(book, `largest alias there is ${at}`, { qos, alias: 65_535 })
    add(book, `alias above our maximum used without a topic ${at}`, {
      qos,
      alias: topicAliasMaximum + 1,
      topic: empty,
    })
    bad(
      'topic alias outside our range',
      `0 ${at}`,
      frame(0x30 | (qos << 1), string('t'), qos > 0 ? u16(ids.fresh) : [], block(aliasProperty(0))),
    )
    book.add(
      type,
      `alias set and used ${at}`,
      publish({ qos, alias: 1, id: 400 }),
      publish({ qos, alias: 1, topic: empty, id: 401 }),
    )
    book.add(
      type,
      `alias set, set anew and used ${at}`,
      publish({ qos, alias: 1, id: 400 }),
      publish({ qos, alias: 1, topic: text('u'), id: 401 }),
      publish({ qos, alias: 1, topic: empty, id: 402 }),
    )
    book.add(
      type,
      `one alias set, another used ${at}`,
      publish({ qos, alias: 1, id: 400 }),
      publish({ qos, alias: 3, topic: empty, id: 401 }),
    )
    book.add(type, `alias set, alias 0 behind it ${at}`, publish({ qos, alias: 1, id: 400 }), {
      ...broken('topic alias outside our range', frame(0x30, string('t'), block(aliasProperty(0)))),
    })
  }
  bad(
    'topic alias outside our range',
    '0 without a topic',
    frame(0x30, string(''), block(aliasProperty(0))),
  )
  book.add(
    type,
    'every alias set, then used in turn',
    ...[1, 2, 3].map((alias) => publish({ alias, topic: text(`t${alias}`) })),
    ...[3, 1, 2].map((alias) => publish({ alias, topic: empty })),
  )
  add(book, 'alias behind other properties', { alias: 1, properties: [pairProperty(), [0x01, 1]] })
  add(book, 'alias and a topic of the largest length', { alias: 1, topic: fill(65_535, 0x62) })
}

function addSubscriptionIdentifiers(book: Book): void {
  const { bad } = book.of(type)
  const list = (count: number): Bytes[] =>
    Array.from({ length: count }, (_, index) => identifierProperty(index + 1))
  add(book, 'two Subscription Identifiers', { properties: list(2), identifiers: 2 })
  add(book, 'two equal Subscription Identifiers', {
    properties: [identifierProperty(5), identifierProperty(5)],
    identifiers: 2,
  })
  add(book, 'as many Subscription Identifiers as we take', {
    qos: 1,
    properties: list(counts.identifiers),
    identifiers: counts.identifiers,
  })
  add(book, 'one Subscription Identifier more than we take', {
    properties: list(counts.identifiers + 1),
    identifiers: counts.identifiers + 1,
  })
  add(book, 'one Subscription Identifier more than we take, at QoS 2', {
    qos: 2,
    properties: list(counts.identifiers + 1),
    identifiers: counts.identifiers + 1,
  })
  add(book, 'Subscription Identifiers between user properties', {
    properties: [identifierProperty(1), pairProperty(), identifierProperty(2), pairProperty()],
    identifiers: 2,
    pairs: 2,
  })
  for (const size of [2, 3, 4]) {
    bad(
      'Subscription Identifier not minimal',
      `${size} bytes for one`,
      frame(0x30, string('t'), block([0x0b, ...stretched(1, size)])),
    )
  }
  bad(
    'Subscription Identifier not minimal',
    'four bytes for three',
    frame(0x30, string('t'), block([0x0b, ...stretched(20_000, 4)])),
  )
  bad(
    'Subscription Identifier of five bytes',
    'value of one',
    frame(0x30, string('t'), block([0x0b, ...stretched(1, 5)])),
  )
  bad(
    'Subscription Identifier of five bytes',
    'too large for four',
    frame(0x30, string('t'), block([0x0b, 0xff, 0xff, 0xff, 0xff, 0x01])),
  )
  bad(
    'zero where it is forbidden',
    'second of two Subscription Identifiers',
    frame(0x30, string('t'), block(identifierProperty(1), [0x0b, 0])),
  )
  for (const size of [1, 2, 3]) {
    bad(
      'property cut off',
      `Subscription Identifier goes on after ${size} bytes`,
      frame(0x30, string('t'), block([0x0b, ...fill(size, 0x80)])),
    )
  }
}
