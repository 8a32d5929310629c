/** Several packets in one sequence: whole exchanges, what follows what, and everything that may come behind a CONNACK. */
import { block, frame, string, text, u16, vbi } from '../bytes.js'
import { type Book, broken, ids, partial, type Step } from '../case.js'
import { firstByte, type PacketName } from '../facts.js'
import {
  ack,
  aliasProperty,
  auth,
  authenticated,
  connack,
  dataProperty,
  disconnect,
  fullAck,
  goodbye,
  identifierProperty,
  pairProperty,
  pingresp,
  publish,
  reasonedAck,
  suback,
  unsuback,
} from '../packets.js'
import { counts, limits } from '../states.js'

/** One of each that is welcome on an open connection. */
const welcome: Readonly<Record<string, () => Step>> = {
  'PUBLISH at QoS 0': () => publish(),
  'PUBLISH at QoS 1': () => publish({ qos: 1, id: 500 }),
  'PUBLISH at QoS 2': () => publish({ qos: 2, id: 501 }),
  PUBACK: () => ack('puback', ids.fresh),
  PUBREC: () => ack('pubrec', ids.fresh),
  PUBREL: () => ack('pubrel', ids.fresh),
  PUBCOMP: () => ack('pubcomp', ids.fresh),
  SUBACK: () => suback(ids.fresh, [0]),
  UNSUBACK: () => unsuback(ids.fresh, [0]),
  PINGRESP: pingresp,
}

const ends: Readonly<Record<string, readonly [type: PacketName, step: Step]>> = {
  'reserved type': ['reserved', broken('reserved packet type', [0, 0])],
  'CONNECT, first byte': ['connect', broken('packet that only a client sends', [0x10])],
  'second CONNACK': ['connack', connack()],
  'CONNACK that refuses': ['connack', connack(0x87)],
  'CONNACK with flags': ['connack', broken('flags of CONNACK', [0x20, 3, 2, 0, 0])],
  'PUBLISH with QoS 3': ['publish', broken('QoS 3', frame(0x36, string('t'), u16(1), block()))],
  'PUBLISH with a wildcard': [
    'publish',
    broken('topic with a wildcard', frame(0x30, string('#'), block())),
  ],
  'PUBLISH with an alias of 65,535': ['publish', publish({ alias: 65_535 })],
  'PUBACK of identifier 0': ['puback', broken('packet identifier 0', frame(0x40, u16(0)))],
  'PUBREC with an unknown code': [
    'pubrec',
    broken('reason code of no or another packet', frame(0x50, u16(1), [0x7f])),
  ],
  'PUBREL with wrong flags': ['pubrel', broken('flags of the fixed header', frame(0x60, u16(1)))],
  'PUBCOMP with two reasons': [
    'pubcomp',
    broken(
      'property repeated',
      frame(0x70, u16(1), [0], block([0x1f, ...string('a')], [0x1f, ...string('b')])),
    ),
  ],
  'SUBSCRIBE, first byte': ['subscribe', broken('packet that only a client sends', [0x82])],
  'SUBACK without codes': [
    'suback',
    broken('no reason codes', frame(0x90, u16(ids.fresh), block())),
  ],
  'UNSUBSCRIBE, first byte': ['unsubscribe', broken('packet that only a client sends', [0xa2])],
  'UNSUBACK cut off': ['unsuback', broken('body ends inside a field', frame(0xb0, [0]))],
  'PINGREQ, first byte': ['pingreq', broken('packet that only a client sends', [0xc0])],
  'PINGRESP with a body': ['pingresp', broken('bytes behind the last field', [0xd0, 1, 0])],
  'PINGRESP that is far too large': [
    'pingresp',
    broken('packet above our Maximum Packet Size', [0xd0, 0xff, 0xff, 0xff, 0x7f]),
  ],
  DISCONNECT: ['disconnect', goodbye()],
  'DISCONNECT Session taken over': ['disconnect', disconnect(0x8e)],
  'DISCONNECT Server shutting down': ['disconnect', disconnect(0x8b, pairProperty())],
  'AUTH without a method': ['auth', broken('AUTH without a method', [0xf0, 0])],
  'AUTH of no exchange': ['auth', auth(0)],
}

export function addSequences(book: Book): void {
  addFollowers(book)
  addEnds(book)
  addFlows(book)
  addWindow(book)
  addBehindConnack(book)
}

/** Each pair of welcome packets, and a packet that has arrived in part behind each. */
function addFollowers(book: Book): void {
  const all = (): Step[] => Object.values(welcome).map((make) => make())
  for (const [first, makeFirst] of Object.entries(welcome)) {
    const { add } = book.of(makeFirst().meaning.kind as PacketName)
    for (const [second, makeSecond] of Object.entries(welcome)) {
      if (first !== second) add(`${first}, then ${second}`, makeFirst(), makeSecond())
    }
    add(`${first}, then half of a PUBLISH`, makeFirst(), partial([0x32, 20, 0, 1]))
    add(`${first}, then a first byte`, makeFirst(), partial([firstByte('suback')]))
  }
  book.add('publish', 'one of each that is welcome', ...all())
  book.add('publish', 'one of each that is welcome, last one first', ...all().toReversed())
}

/** Each end behind a welcome packet, before one (which then does not count), and behind all of them. */
function addEnds(book: Book): void {
  const makers = Object.entries(welcome)
  Object.entries(ends).forEach(([what, [type, end]], index) => {
    const [before, make] = makers[index % makers.length] ?? ['PINGRESP', pingresp]
    const [behind, makeBehind] = makers[(index + 3) % makers.length] ?? ['PINGRESP', pingresp]
    book.add(type, `${what}, behind ${before}`, make(), end)
    book.add(type, `${what}, behind one of each`, ...makers.map(([, each]) => each()), end)
    // What follows a CONNACK has a list of its own.
    if (what === 'second CONNACK') return
    book.add(type, `${what}, ${behind} behind it`, end, makeBehind())
    book.add(type, `${what}, DISCONNECT behind it`, end, goodbye())
  })
}

const message = (qos: 0 | 1 | 2, id: number, dup = false): Step =>
  publish({ qos, id, dup, payload: text('m') })
const many = (count: number, make: (index: number) => Step | Step[]): Step[] =>
  Array.from({ length: count }, (_, index) => make(index)).flat()

/** Exchanges from their beginning to their end, and in odd orders. */
function addFlows(book: Book): void {
  const [one, two, again] = [message(1, 600), message(2, 600), message(2, 600, true)]
  const release = ack('pubrel', 600)
  book.of('publish').all({
    'QoS 2 and its PUBREL': [two, release],
    'QoS 2, repeated, and its PUBREL': [two, again, release],
    'QoS 2, repeated without DUP, and its PUBREL': [two, two, release],
    'QoS 2, repeated at QoS 1': [two, message(1, 600, true)],
    'QoS 1, again with DUP': [one, message(1, 600, true)],
    'QoS 1, again without DUP': [one, one],
    'QoS 1, then QoS 2 with its identifier': [one, two],
    'QoS 2 and its PUBREL, then the same identifier at QoS 1': [two, release, one],
    'QoS 2 and its PUBREL, three times': [1, 2, 3].flatMap(() => [two, release]),
    'QoS 0, 1 and 2 in turn': [0, 1, 2, 0, 1].map((qos, at) => message(qos as 0, 600 + at)),
    '50 at QoS 0': many(50, () => message(0, 0)),
    '50 at QoS 1': many(50, (at) => message(1, 1000 + at)),
    '50 exchanges at QoS 2, one by one': many(50, (at) => [
      message(2, 1000 + at),
      ack('pubrel', 1000 + at),
    ]),
    'two at QoS 2, released in the other order': [
      ...[601, 602].map((id) => message(2, id)),
      ...[602, 601].map((id) => ack('pubrel', id)),
    ],
  })
  book.of('pubrel').all({
    'twice for a message of this sequence': [two, release, release],
    'with 0x92 for a message of this sequence': [two, fullAck('pubrel', 600, 0x92)],
    'before its PUBLISH': [release, two],
    'for a QoS 1 message of this sequence': [one, release],
  })
  addOurFlows(book)
}

// What answers our own PUBLISH, SUBSCRIBE and UNSUBSCRIBE.
function addOurFlows(book: Book): void {
  const [rec, comp] = [ack('pubrec', ids.ours), ack('pubcomp', ids.ours)]
  book.of('pubrec').all({
    'and PUBCOMP': [rec, comp],
    'twice, and PUBCOMP': [rec, rec, comp],
    'refused, and PUBCOMP': [reasonedAck('pubrec', ids.ours, 0x97), comp],
    'and PUBACK': [rec, ack('puback', ids.ours)],
    'and PUBCOMP, and PUBREC once more': [rec, comp, rec],
    'and one that refuses': [rec, reasonedAck('pubrec', ids.ours, 0x80)],
    'No matching subscribers, and PUBCOMP': [reasonedAck('pubrec', ids.ours, 0x10), comp],
  })
  book.of('pubcomp').all({
    'Packet Identifier not found, behind PUBREC': [rec, reasonedAck('pubcomp', ids.ours, 0x92)],
    'before PUBREC': [comp, rec],
  })
  book.of('puback').all({
    'and PUBREC': [ack('puback', ids.ours), rec],
    'for our publish, the SUBACK and the UNSUBACK': [
      ack('puback', ids.ours),
      suback(ids.subscribing, [1, 2]),
      unsuback(ids.unsubscribing, [0, 0x11]),
    ],
  })
  book.of('suback').all({
    'behind the UNSUBACK': [
      unsuback(ids.unsubscribing, [0x11, 0]),
      suback(ids.subscribing, [0x87, 0]),
    ],
    'behind retained messages of its subscription': [
      publish({ retain: true }),
      publish({ retain: true, qos: 1 }),
      suback(ids.subscribing, [2, 2]),
    ],
  })
  book.of('unsuback').all({
    'behind a message': [publish({ qos: 1 }), unsuback(ids.unsubscribing, [0, 0])],
    'with the codes of the SUBACK behind it': [
      unsuback(ids.unsubscribing, [0, 0]),
      suback(ids.unsubscribing, [0, 0]),
    ],
  })
}

const { receiveMaximum } = limits
const open = (count: number, dup = false): Step[] =>
  many(count, (at) => publish({ qos: 2, id: 700 + at, dup }))

/** Messages that are open until PUBREL comes, up to our Receive Maximum and above it. */
function addWindow(book: Book): void {
  const { add, all } = book.of('publish')
  for (let count = 2; count <= receiveMaximum + 2; count++)
    add(`${count} at QoS 2, none released`, ...open(count))
  const full = open(receiveMaximum)
  const releases = many(receiveMaximum, (at) => ack('pubrel', 700 + at))
  all({
    'a full window, then QoS 0': [...full, publish()],
    'a full window, then QoS 1': [...full, publish({ qos: 1 })],
    'a full window, one released, one more': [
      ...full,
      ack('pubrel', 700),
      publish({ qos: 2, id: 800 }),
    ],
    'a full window, all repeated with DUP': [...full, ...open(receiveMaximum, true)],
    'a full window, all released, and as many again': [...full, ...releases, ...full, ...releases],
    'as many at QoS 1 as at QoS 2': [
      ...open(2),
      ...many(5, (at) => publish({ qos: 1, id: 751 + at })),
    ],
    'one above the window, with an alias': [...full, publish({ qos: 2, id: 800, alias: 1 })],
  })
  for (const count of [3, 4, 5])
    add(`${count} at QoS 1`, ...many(count, (at) => publish({ qos: 1, id: 720 + at })))
}

/** A PUBLISH with very many properties. */
const crowded = ({ pairs = 0, identifiers = 0 }): Step =>
  publish({
    properties: [
      ...Array.from({ length: pairs }, () => pairProperty()),
      ...Array.from({ length: identifiers }, (_, index) => identifierProperty(index + 1)),
    ],
    pairs,
    identifiers,
  })

/** A CONNACK, and in the same breath what a server says then. */
function addBehindConnack(book: Book): void {
  const { add, all } = book.of('connack')
  const behind: Readonly<Record<string, readonly Step[]>> = {
    ...Object.fromEntries(Object.entries(welcome).map(([what, make]) => [what, [make()]])),
    ...Object.fromEntries(Object.entries(ends).map(([what, [, end]]) => [what, [end]])),
    'one of each': Object.values(welcome).map((make) => make()),
    'half of a packet': [partial([0x30, 10, 0])],
    'QoS 2 and its PUBREL': [publish({ qos: 2 }), ack('pubrel', ids.fresh)],
    'one message more than the window': open(receiveMaximum + 1),
    'an alias set and used': [publish({ alias: 1 }), publish({ alias: 1, topic: [] })],
    'an alias never set': [publish({ alias: 1, topic: [] })],
    'alias 0': [
      broken('topic alias outside our range', frame(0x30, string('t'), block(aliasProperty(0)))),
    ],
    'a PUBACK that is far too long': [
      broken('packet above what its kind needs', [0x40, ...vbi(50_000)]),
    ],
    'a PUBLISH that is too long': [
      broken('packet above our Maximum Packet Size', [0x30, ...vbi(150_000)]),
    ],
    'more user properties than we take': [crowded({ pairs: counts.pairs + 1 })],
    'more Subscription Identifiers than we take': [
      crowded({ identifiers: counts.identifiers + 1 }),
    ],
    'a full window, repeated, and one more': [
      ...open(receiveMaximum),
      ...open(receiveMaximum, true),
      publish({ qos: 1, id: 800 }),
    ],
    AUTH: [auth(0x18, dataProperty(1))],
  }
  for (const [opening, first] of Object.entries({
    CONNACK: connack(),
    'CONNACK with the method': authenticated(),
    'CONNACK with Session Present': connack(0, true),
  })) {
    for (const [what, steps] of Object.entries(behind))
      add(`${opening}, then ${what}`, first, ...steps)
    add(`${opening} behind AUTH`, auth(0x18), first)
    add(`${opening} behind PINGRESP`, pingresp(), first)
  }
  all({
    'refusal, then CONNACK': [connack(0x89), connack()],
    'refusal, then PUBLISH': [connack(0x87), publish({ qos: 1 })],
    'refusal, then garbage': [connack(0x87), broken('reserved packet type', [0, 0, 0])],
    'refusal, then DISCONNECT': [connack(0x97), disconnect(0x97)],
  })
}
