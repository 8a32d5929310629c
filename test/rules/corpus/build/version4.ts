/** MQTT 3.1.1: the same packets without properties, and with rules of their own. */
import { type Bytes, fill, frame, prefixed, string, text, u16, vbi } from '../bytes.js'
import { type Book, broken, ids, partial, type Step, shown, step } from '../case.js'
import { badTexts, firstByte, goodTexts, type PacketName } from '../facts.js'
import { ack, ackFirst, type PublishParts, pingresp, publish as publish5 } from '../packets.js'
import type { RuleName } from '../rules.js'
import { limits } from '../states.js'
import {
  addForeign,
  addFraming,
  addIncomplete,
  addLengths,
  addReserved,
  addShort,
  type Layout,
} from './framing.js'

const connack = (code = 0, present = false): Step =>
  step([0x20, 2, present ? 1 : 0, code], { kind: 'connack', code, present })
const suback = (id: number, codes: Bytes): Step =>
  step(frame(0x90, u16(id), codes), { kind: 'suback', id, count: codes.length })
const unsuback = (id: number): Step =>
  step(frame(0xb0, u16(id)), { kind: 'unsuback', id, count: 0 })
const publish = (parts: PublishParts = {}): Step => publish5(parts, 4)

export function addVersion4(book: Book): void {
  for (const layout of layouts) {
    const most = ['connack', 'suback', 'unsuback'].includes(layout.type) ? 100_000 : 10_000
    addFraming(book, layout, most, (size) =>
      frame(layout.first, fill(size - (most > 16_383 ? 4 : 3), 0)),
    )
  }
  addConnack(book)
  addPublish(book)
  addAcks(book)
  addAnswers(book)
  addNever(book)
  addSequences(book)
}

const layouts: readonly Layout[] = [
  {
    type: 'connack',
    first: 0x20,
    fields: { 'Connect Acknowledge Flags': [0], 'Connect Return code': [0] },
  },
  ...(['puback', 'pubrec', 'pubrel', 'pubcomp'] as const).map(
    (type): Layout => ({
      type,
      first: firstByte(type),
      fields: { 'packet identifier': u16(type === 'pubrel' ? ids.theirs2 : ids.ours) },
    }),
  ),
  {
    type: 'suback',
    first: 0x90,
    fields: { 'packet identifier': u16(ids.subscribing), 'return codes': [0, 0] },
    openEnd: 'return codes',
  },
  { type: 'unsuback', first: 0xb0, fields: { 'packet identifier': u16(ids.unsubscribing) } },
  { type: 'pingresp', first: 0xd0, fields: {} },
]

function addConnack(book: Book): void {
  const { add, bad } = book.of('connack')
  for (const code of [0, 1, 2, 3, 4, 5]) add(`return code ${code}`, connack(code))
  for (const code of [1, 5])
    bad('Session Present in a refusal', `return code ${code}`, [0x20, 2, 1, code])
  for (const code of [6, 0x10, 0x80, 0x84, 0xff])
    bad('return code unknown on 3.1.1', shown(code), [0x20, 2, 0, code])
  for (const flags of [2, 4, 8, 16, 32, 64, 128, 255])
    bad('flags of CONNACK', shown(flags), [0x20, 2, flags, 0])
  add('Session Present', connack(0, true))
  bad('bytes behind the last field', 'properties, as in 5.0', [0x20, 6, 0, 0, 3, 0x21, 0, 9])
}

function addPublish(book: Book): void {
  const { add, bad, allBad } = book.of('publish')
  const fields = { topic: string('t'), 'packet identifier': u16(ids.fresh) }
  const layout: Layout = { type: 'publish', first: 0x32, fields }
  addLengths(book, layout)
  addShort(book, layout)
  addIncomplete(book, { ...layout, fields: { ...fields, payload: text('payload') } })
  for (const qos of [0, 1, 2] as const) {
    const first = 0x30 | (qos << 1)
    for (const retain of [false, true])
      for (const dup of [false, true])
        add(`QoS ${qos}, RETAIN ${retain}, DUP ${dup}`, publish({ qos, retain, dup }))
    const id = qos > 0 ? u16(ids.fresh) : []
    bad('topic empty without an alias', `at QoS ${qos}`, frame(first, string(''), id))
    if (qos === 0) continue
    bad('packet identifier 0', `QoS ${qos}`, frame(first, string('t'), u16(0)))
    for (const dup of [false, true]) {
      const at = `QoS ${qos}, DUP ${dup}`
      add(`${at}, identifier of a QoS 1 message in hand`, publish({ qos, dup, id: ids.theirs1 }))
      add(`${at}, identifier of a QoS 2 message under way`, publish({ qos, dup, id: ids.theirs2 }))
    }
  }
  for (const first of [0x36, 0x37, 0x3e, 0x3f])
    bad('QoS 3', shown(first), frame(first, string('t'), u16(1)))
  for (const [how, topic] of Object.entries(badTexts))
    bad('string ill-formed', `topic, ${how}`, frame(0x30, prefixed(topic)))
  for (const [how, topic] of Object.entries(goodTexts))
    add(`topic: ${how}`, publish({ topic, qos: 1 }))
  for (const topic of ['#', 'a/+/b', 'a#'])
    bad('topic with a wildcard', topic, frame(0x30, string(topic)))
  const { maximumPacketSize } = limits
  for (const length of [127, 128, 16_383, 16_384, maximumPacketSize - 4])
    add(`Remaining Length ${length}`, publish({ payload: fill(length - 3, 0x78) }))
  allBad('packet above our Maximum Packet Size', {
    'by one byte, header alone': [0x30, ...vbi(maximumPacketSize - 3)],
    'the largest there is': [0x30, 0xff, 0xff, 0xff, 0x7f],
  })
}

const tellingIds = {
  'our publish': ids.ours,
  'a SUBSCRIBE': ids.subscribing,
  'an UNSUBSCRIBE': ids.unsubscribing,
  'their QoS 1 message': ids.theirs1,
  'their QoS 2 message': ids.theirs2,
  nothing: ids.fresh,
}

function addAcks(book: Book): void {
  for (const kind of ['puback', 'pubrec', 'pubrel', 'pubcomp'] as const) {
    const { add, bad, allBad } = book.of(kind)
    for (const [what, id] of Object.entries(tellingIds)) {
      add(`for ${what}`, ack(kind, id))
      add(`for ${what}, twice`, ack(kind, id), ack(kind, id))
    }
    bad('packet identifier 0', '', frame(ackFirst[kind], u16(0)))
    const with5 = (...rest: number[]): Bytes => frame(ackFirst[kind], u16(ids.ours), rest)
    allBad('bytes behind the last field', {
      'a reason code, as in 5.0': with5(0x10),
      'a reason code and a Property Length, as in 5.0': with5(0x87, 0),
    })
  }
}

function addAnswers(book: Book): void {
  const { add, bad } = book.of('suback')
  for (const code of [0, 1, 2, 0x80]) {
    add(`codes ${shown(code)} twice`, suback(ids.subscribing, [code, code]))
    add(`code ${shown(code)} alone, for nothing`, suback(ids.fresh, [code]))
  }
  for (const code of [3, 4, 0x11, 0x7f, 0x81, 0x87, 0xff])
    bad('return code unknown on 3.1.1', shown(code), frame(0x90, u16(ids.subscribing), [0, code]))
  for (const count of [1, 3, 500]) add(`${count} codes`, suback(ids.subscribing, fill(count, 0)))
  add('for our publish', suback(ids.ours, [0, 0]))
  add('for an UNSUBSCRIBE', suback(ids.unsubscribing, [0, 0]))
  for (const [what, id] of Object.entries(tellingIds))
    if (!what.startsWith('their')) book.add('unsuback', `for ${what}`, unsuback(id))
  bad('no reason codes', '', frame(0x90, u16(ids.subscribing)))
  bad('packet identifier 0', '', frame(0x90, u16(0), [0]))
  const answer = book.of('unsuback')
  answer.bad('packet identifier 0', '', frame(0xb0, u16(0)))
  const codes = frame(0xb0, u16(ids.unsubscribing), [0, 0, 0])
  answer.bad('bytes behind the last field', 'reason codes, as in 5.0', codes)
  for (const count of [1, 2, 10])
    book.add('pingresp', `unasked, ${count} in a row`, ...Array.from({ length: count }, pingresp))
}

/** Packets that no server of 3.1.1 sends. */
function addNever(book: Book): void {
  const both = (type: PacketName, rule: RuleName, first: number): void =>
    book.of(type).allBad(rule, {
      whole: [first, 0],
      'first byte alone': [first],
      'with a reason code, as in 5.0': frame(first, [0x87]),
      'far too large': [first, 0xff, 0xff, 0xff, 0x7f],
    })
  both('disconnect', 'DISCONNECT from a server on 3.1.1', 0xe0)
  both('auth', 'AUTH on 3.1.1', 0xf0)
  for (const flags of [1, 2, 4, 8, 15]) {
    const [goodbye, auth] = [0xe0 + flags, 0xf0 + flags]
    book.addBroken('disconnect', 'flags of the fixed header', shown(goodbye), [goodbye, 0])
    book.addBroken('auth', 'AUTH on 3.1.1', `with flags ${flags}`, [auth, 0])
  }
  addForeign(book, 'connect', frame(0x10, string('MQTT'), [4, 2, 0, 60], string('c')))
  addForeign(book, 'subscribe', frame(0x82, u16(1), string('t'), [0]))
  addForeign(book, 'unsubscribe', frame(0xa2, u16(1), string('t')))
  addForeign(book, 'pingreq', [0xc0, 0])
  addReserved(book)
}

function addSequences(book: Book): void {
  const welcome: readonly (readonly [string, Step])[] = [
    ['PUBLISH at QoS 1', publish({ qos: 1, id: 500 })],
    ['PUBLISH at QoS 2', publish({ qos: 2, id: 501 })],
    ['PUBREC', ack('pubrec', ids.fresh)],
    ['PUBREL', ack('pubrel', ids.fresh)],
    ['PINGRESP', pingresp()],
  ]
  const ends: readonly (readonly [string, PacketName, Step])[] = [
    ['a second CONNACK', 'connack', connack()],
    ['the reserved type', 'reserved', broken('reserved packet type', [0])],
    ['a packet with wrong flags', 'puback', broken('flags of the fixed header', [0x41, 2, 0, 1])],
    ['DISCONNECT', 'disconnect', broken('DISCONNECT from a server on 3.1.1', [0xe0, 0])],
    ['PINGREQ', 'pingreq', broken('packet that only a client sends', [0xc0, 0])],
    ['half of a packet', 'publish', partial([0x30, 9, 0])],
  ]
  const { add } = book.of('connack')
  for (const [before, first] of welcome) {
    for (const [what, type, end] of ends) {
      book.add(type, `${what} behind ${before}`, first, end)
      add(`CONNACK, ${before}, then ${what}`, connack(), first, end)
    }
  }
  for (const [what, , end] of ends) {
    add(`CONNACK with Session Present, then ${what}`, connack(0, true), end)
    add(`refusal, then ${what}`, connack(5), end)
  }
  add('CONNACK, then one of each', connack(), ...welcome.map(([, each]) => each))
  const [one, two, release] = [publish({ qos: 1 }), publish({ qos: 2 }), ack('pubrel', ids.fresh)]
  const flood = Array.from({ length: 300 }, (_, index) => publish({ qos: 2, id: 1000 + index }))
  book.of('publish').all({
    'QoS 2 and its PUBREL': [two, release],
    'QoS 2, repeated, and its PUBREL': [two, publish({ qos: 2, dup: true }), release],
    'QoS 1, again with DUP': [one, publish({ qos: 1, dup: true })],
    'QoS 1, again without DUP': [one, one],
    '300 at QoS 2, none released': flood,
  })
  const [rec, comp] = [ack('pubrec', ids.ours), ack('pubcomp', ids.ours)]
  book.of('pubrec').all({ 'and PUBCOMP': [rec, comp], 'twice, and PUBCOMP': [rec, rec, comp] })
  const all = [suback(ids.subscribing, [0, 2]), unsuback(ids.unsubscribing)]
  book.add('puback', 'for our publish, SUBACK and UNSUBACK', ack('puback', ids.ours), ...all)
}
