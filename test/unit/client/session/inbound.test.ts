/** Incoming messages at QoS 1 and 2 on one connection: what is delivered, answered, refused, and how many may be open; topic aliases in both directions. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { AckQueue } from '../../../../src/client/session/actions.js'
import { InboundAliases, OutboundAliases } from '../../../../src/client/session/aliases.js'
import { type TopicRecord, topicRecord } from '../../../../src/wire/topic-table.js'
import {
  type Ack,
  connackPacket,
  connected,
  connectPacket,
  type Driven,
  durablyConnected,
} from './drive.js'

/** How identifier 5 comes into a state; what a PUBLISH at QoS 1 and 2 with it is then, and a PUBREL. */
const broken = 'fault, close 130'
const unknown = 'pubcomp 5 0x92'
const taken = 'in 5 q2 = 0; settle 0 = true'
const states: [state: string, script: string, qos1: string, qos2: string, pubrel: string][] = [
  ['not in use', '', '0', '0', unknown],
  ['QoS 1 in hand', 'in 5 q1 = 0', broken, broken, 'close 130'],
  [
    'QoS 1 behind another',
    'in 9 q1 = 0; in 5 q1 = 1; settle 1 = true',
    broken,
    broken,
    'close 130',
  ],
  ['QoS 1 acknowledged', 'in 5 q1 = 0; settle 0 = true, puback 5', '1', '1', unknown],
  ['QoS 2 in hand', 'in 5 q2 = 0', broken, 'repeat', 'close 130'],
  [
    'QoS 2 behind another',
    'in 9 q2 = 0; in 5 q2 = 1; settle 1 = true',
    broken,
    'repeat',
    'close 130',
  ],
  ['durable: QoS 2 being stored', `${taken}, put-inbound 5`, broken, 'repeat', 'close 130'],
  ['PUBREC sent', `${taken}, pubrec 5`, broken, 'repeat, pubrec 5', 'pubcomp 5'],
  [
    'durable: PUBREL came, being forgotten',
    `${taken}, put-inbound 5; grant 0 = pubrec 5; pubrel 5 = delete-inbound 5`,
    ...([broken, 'repeat', ''] as const),
  ],
  ['PUBREC 0x80 sent', 'in 5 q2 = 0; settle 0 0x80 = true, pubrec 5 0x80', '1', '1', unknown],
  ['PUBCOMP sent', `${taken}, pubrec 5; pubrel 5 = pubcomp 5`, '1', '1', unknown],
]

it.each(states)(
  'an identifier "%s": PUBLISH and PUBREL are what the standard says',
  (state, script, qos1, qos2, pubrel) => {
    for (const input of [`in 5 q1 = ${qos1}`, `in 5 q2 = ${qos2}`, `pubrel 5 = ${pubrel}`]) {
      const session = state.startsWith('durable') ? durablyConnected() : connected()
      session.play(script).play(input)
      expect(session.state).toBe(input.endsWith('close 130') ? 'closed' : 'connected')
    }
  },
)

it('incoming QoS 1 (section 4.3.2): nothing is acknowledged before it is settled, then once; its identifier is a new message then, also in one read [MQTT-4.3.2-4] [MQTT-4.3.2-5]', () => {
  connected().play(`
    in 4660 q1 = 0; settle 0 = true, puback 4660; settle 0 = false; in 4660 q1 = 1
    settle 1 = true, puback 4660; read open unsettled = 0 0`)
})

describe('incoming QoS 2 (section 4.3.3)', () => {
  it('PUBREC, then PUBREL, PUBCOMP, each time; then the identifier is new again [MQTT-4.3.3-8] [MQTT-4.3.3-11] [MQTT-4.3.3-12]', () => {
    connected().play(`
      in 65535 q2 = 0; settle 0 = true, pubrec 65535; read open = 1; pubrel 65535 = pubcomp 65535
      read open = 0; in 65535 q2 = 1; settle 1 = true, pubrec 65535; read open = 1
      pubrel 65535 = pubcomp 65535; read open = 0; pubrel 65535 = pubcomp 65535 0x92
      pubrel 65535 = pubcomp 65535 0x92; read open = 0`)
  })

  it('an error code ends the exchange at PUBREC, one below 0x80 does not [MQTT-4.3.3-9]', () => {
    connected({ receiveMaximum: 1 }).play(`
      in 6 q2 = 0; settle 0 0x87 = true, pubrec 6 0x87; read open full = 0 false; in 6 q2 = 1
      settle 1 0x10 = true, pubrec 6 0x10; read open full = 1 true; pubrel 6 = pubcomp 6`)
  })
})

describe('our Receive Maximum (section 3.1.2.11.3)', () => {
  it.each([1, 2])('a message at QoS %i that is taken back does not count', (qos) => {
    const session = connected({ receiveMaximum: 1 }).play(`in 5 q${qos} = 0`)
    session.receiveWindow.takeBack()
    session.play(`read full open unsettled = false 0 0; in 5 q${qos} = 0`)
  })

  it.each([
    [1, 1],
    [1, 2],
    [3, 1],
    [3, 2],
    [256, 2],
    [65_535, 1],
  ])("'disconnect': %i at QoS %i, one more is close(0x93) [MQTT-3.3.4-9]", (most, qos) => {
    const session = connected({ receiveMaximum: most, receiveMaximumExceeded: 'disconnect' })
    for (let id = 1; id <= most; id++)
      expect([session.receiveWindow.full, session.receive(id, qos)]).toEqual([false, id - 1])
    session.play(`read full open unsettled = true ${most} ${most}`)
    // A repeat is no further message.
    if (qos === 2) session.play('in 1 q2 = repeat')
    // An identifier beyond the range stands for one that is free: all 65,535 may be in use.
    session.play(`in ${most === 65_535 ? 0 : most + 1} q${qos} = fault, close 147`)
  })

  it.each([1, 2])(
    'all 65,535 identifiers may be open at QoS %i beyond it: told once a connection, counted, acknowledged in order',
    (qos) => {
      const session = connected({ receiveMaximum: 3, ownsSession: true }, {}, { cleanStart: false })
      const arrive = (from: number, to: number) =>
        Array.from({ length: to + 1 - from }, (_, at) => session.receive(from + at, qos))
      const tickets = arrive(1, 65_535)
      expect(tickets).toEqual([...tickets.keys()])
      session.play('read open unsettled excess full = 65535 65535 65532 true, exceeded')
      for (const ticket of tickets.reverse()) session.settle(ticket)
      expect(session.takeAcks().map(([, id]) => id)).toEqual(
        Array.from({ length: 65_535 }, (_, index) => index + 1),
      )
      if (qos === 2)
        for (let id = 1; id <= 65_535; id++) session.play(`pubrel ${id} = pubcomp ${id}`)
      session.play('read open unsettled full = 0 0 false')
      // What grew for it goes on as before.
      expect(arrive(1, 4)).toEqual([65_535, 65_536, 65_537, 65_538])
      const type = qos === 1 ? 'puback' : 'pubrec'
      session.play(`settle 65536 = true; settle 65535 = true, ${type} 1, ${type} 2; next`)
      arrive(11, 15)
      session.play('read excess = 65535, exceeded')
    },
  )

  it('QoS 2 occupies its place until PUBCOMP, QoS 1 until PUBACK, also settled behind an open one', () => {
    connected({ receiveMaximum: 2 }).play(`
      in 1 q2 = 0; settle 0 = true, pubrec 1; in 2 q1 = 1; settle 1 = true, puback 2
      read open unsettled full = 1 0 false; in 3 q1 = 2; read open unsettled full = 2 1 true
      pubrel 1 = pubcomp 1; read open unsettled full = 1 1 false; in 4 q1 = 3; settle 3 = true
      read open unsettled full oldestTicket = 2 2 true 2; settle 2 = true, puback 3, puback 4
      read open unsettled full oldestTicket = 0 0 false 4`)
  })
})

describe('tickets', () => {
  it('that were never given are refused; those settled but not yet acknowledged keep their first code', () => {
    connected().play(`
      in 1 q1 = 0; in 2 q1 = 1; settle -2 = false; settle -1 = false; settle 2 = false
      settle 1000 = false; settle 1 0x10 = true; settle 1 0x80 = false
      settle 0 = true, puback 1, puback 2 0x10`)
  })

  it('of a session that was reset are stale, and its identifiers and places are free', () => {
    connected({ receiveMaximum: 3 }).play(`
      in 1 q1 = 0; in 2 q2 = 1; settle 1 = true; in 3 q2 = 2; reset
      read open unsettled full oldestTicket = 0 0 false 3; settle 0 = false; settle 1 = false
      settle 2 = false; in 2 q2 = 3; settle 3 = true, pubrec 2`)
  })
})

interface Arrival {
  readonly qos: 1 | 2
  readonly code: number
  /** When the application settles it, or the store has it: lowest first. */
  readonly rank: number
}

const arrival: fc.Arbitrary<Arrival> = fc.record({
  qos: fc.constantFrom(1 as const, 2 as const),
  code: fc.constantFrom(0, 0, 0, 0x10, 0x80, 0x97),
  rank: fc.nat(),
})

/** Finishes these by rank: at each moment the finished beginning of all has left, and nothing else. */
function expectInOrder(
  session: Driven,
  all: readonly Arrival[],
  last: number[],
  end: (at: number) => void,
): void {
  const expected = all.map(
    ({ qos, code }, at): Ack => [qos === 1 ? 'puback' : 'pubrec', at + 1, code],
  )
  const open = new Set(last)
  const seen = session.takeAcks()
  for (const at of last.sort((a, b) => (all[a]?.rank ?? 0) - (all[b]?.rank ?? 0))) {
    end(at)
    open.delete(at)
    seen.push(...session.takeAcks())
    expect(seen).toEqual(expected.slice(0, Math.min(all.length, ...open)))
  }
  expect([seen.length, session.receiveWindow.unsettled]).toEqual([all.length, 0])
}

it.each([
  [1, 'puback 5, puback 3, puback 9', 'MQTT-4.6.0-2'],
  [2, 'pubrec 5, pubrec 3, pubrec 9', 'MQTT-4.6.0-3'],
])('QoS %i, ids 5, 3, 9, settled backwards: %s [%s]', (qos, answers) => {
  const session = connected()
  const [five = -9, three = -9, nine = -9] = [5, 3, 9].map((id) => session.receive(id, qos))
  session.settle(nine)
  session.settle(three)
  expect([session.answers(), session.settle(five), session.answers()]).toEqual(['', true, answers])
})

it('for any messages settled in any order: at each moment the settled beginning, nothing else [MQTT-4.6.0-2] [MQTT-4.6.0-3]', () => {
  fc.assert(
    fc.property(fc.array(arrival, { minLength: 1, maxLength: 80 }), (all) => {
      const session = connected({ receiveMaximum: 100 })
      const tickets = all.map(({ qos }, at) => session.receive(at + 1, qos))
      expectInOrder(session, all, [...all.keys()], (at) => {
        expect(session.settle(tickets[at] as number, all[at]?.code)).toBe(true)
      })
    }),
  )
})

it('with a store that confirms in any order it is the same', () => {
  fc.assert(
    fc.property(fc.array(arrival, { minLength: 1, maxLength: 30 }), (all) => {
      const session = durablyConnected({ receiveMaximum: 100 })
      const tickets = all.map(({ qos }, at) => session.receive(at + 1, qos))
      for (const [at, { code }] of all.entries()) session.settle(tickets[at] as number, code)
      const stored = [...all.keys()].filter(
        (at) => all[at]?.qos === 2 && (all[at]?.code ?? 0) < 0x80,
      )
      expect(session.port.requests.map(([, id]) => id - 1)).toEqual(stored)
      fc.pre(stored.length > 0)
      expectInOrder(session, all, [...stored], (at) => session.port.grant(stored.indexOf(at)))
    }),
  )
})

it('the queue keeps type, identifier and reason code, first in, first out, whatever the mix of pushes, shifts and clears', () => {
  const id = fc.oneof(
    fc.integer({ min: 1, max: 65_535 }),
    fc.constantFrom(1, 255, 256, 32_768, 65_535),
  )
  const entry = fc.tuple(fc.integer({ min: 4, max: 7 }), id, fc.integer({ min: 0, max: 255 }))
  const step = fc.oneof(
    { weight: 5, arbitrary: fc.array(entry, { maxLength: 40 }) },
    { weight: 5, arbitrary: fc.integer({ min: 1, max: 40 }) },
    { weight: 1, arbitrary: fc.constant('clear' as const) },
  )
  fc.assert(
    fc.property(fc.array(step, { maxLength: 30 }), (steps) => {
      const queue = new AckQueue()
      let model: [number, number, number][] = []
      const expectNext = (taken: typeof model): void => {
        for (const [type, packetId, code] of taken) {
          const next = queue.entries[queue.head++] ?? 0
          expect([next >>> 24, next & 0xffff, (next >>> 16) & 0xff]).toEqual([type, packetId, code])
        }
      }
      for (const one of [...steps, 100_000]) {
        if (typeof one === 'number') expectNext(model.splice(0, one))
        else if (one === 'clear') {
          queue.clear()
          model = []
        } else {
          for (const [type, packetId, code] of one) queue.push(type, packetId, code)
          model.push(...one)
        }
        expect(queue.length).toBe(model.length)
      }
    }),
  )
})

describe('topic aliases that the server sets up', () => {
  /** What an alias stands for: a topic's name, or the reason code of the refusal. */
  function resolve(aliases: InboundAliases<TopicRecord>, alias: number, topic?: string) {
    const found = aliases.resolve(alias, topic === undefined ? undefined : topicRecord(topic), 1000)
    return typeof found === 'number' ? found : found.name
  }

  it.each([
    [10, [0, 1, 10, 11, 65_535], [0x94, 'x', 'x', 0x94, 0x94]],
    [65_535, [0, 1, 65_535], [0x94, 'x', 'x']],
    [0, [0, 1, 2, 65_535], [0x94, 0x94, 0x94, 0x94]],
  ])('announced %i, %j are %j [MQTT-3.3.2-8] [MQTT-3.3.2-9]', (maximum, given, verdicts) => {
    const aliases = new InboundAliases<TopicRecord>(maximum)
    expect(given.map((alias) => resolve(aliases, alias, 'x'))).toEqual(verdicts)
  })

  it('gives back the very record of an alias, the newest, and counts the bytes of that alone', () => {
    const aliases = new InboundAliases<TopicRecord>(10)
    const [one, other] = [topicRecord('a/b'), topicRecord('c')]
    expect([aliases.resolve(3, one, 1000), aliases.resolve(1, other, 1000)]).toEqual([one, other])
    expect(aliases.resolve(1, undefined, 1000)).toBe(other)
    expect(aliases.resolve(3, undefined, 1000)).toBe(one)
    const counted = new InboundAliases<TopicRecord>(10)
    expect([resolve(counted, 2, 'older'), counted.bytes]).toEqual(['older', 10])
    expect([resolve(counted, 2, 'new'), resolve(counted, 2)]).toEqual(['new', 'new'])
    expect(counted.bytes).toBe(6)
  })

  it('knows no topic for an alias that was never defined: 0x82; and topics that take more bytes than they may are 0x97', () => {
    const aliases = new InboundAliases<TopicRecord>(10)
    resolve(aliases, 5, 'x')
    expect([1, 4, 6, 10].map((alias) => resolve(aliases, alias))).toEqual([0x82, 0x82, 0x82, 0x82])
    expect(resolve(aliases, 1, 'x'.repeat(501))).toBe(0x97)
  })

  it('are as many as CONNECT announced, and end with the connection [MQTT-3.3.2-7] [MQTT-3.3.2-9]', () => {
    const session = connected({}, {}, { properties: { topicAliasMaximum: 3 } })
    expect([
      resolve(session.aliases, 3, 'a'),
      resolve(session.aliases, 3),
      resolve(session.aliases, 4, 'a'),
    ]).toEqual(['a', 'a', 0x94])
    session.fail(0x82, 'test')
    session.connect(connectPacket())
    expect([
      resolve(session.aliases, 3),
      resolve(session.aliases, 2, 'b'),
      resolve(session.aliases, 2),
    ]).toEqual([0x82, 'b', 'b'])
    session.handlePacket(connackPacket(), 0)
    expect(resolve(session.aliases, 10, 'c')).toBe('c')
  })
})

describe('topic aliases of ours', () => {
  function started(maximum: number): OutboundAliases {
    const aliases = new OutboundAliases()
    aliases.start(maximum)
    return aliases
  }

  // `a` where the topic is sent, `ar` where the alias alone is enough, `a-` without alias.
  it.each([
    [1, 'aa', 'a ar'],
    [2, 'bab', 'b a br'],
    [2, 'abcbca', 'a b c br cr a'],
    [1, 'aba', 'a b a'],
    [3, 'abcabc', 'a b c ar br cr'],
    [2, 'abacb', 'a b ar c b'],
    [0, 'aab', 'a- a- b-'],
  ])('with %d: %s is %s; the least recent makes room', (maximum, topics, expected) => {
    const aliases = started(maximum)
    const sent = [...topics].map(
      (topic) => topic + ['', '-', 'r'][Math.sign(aliases.use(topic)) + 1],
    )
    expect(sent.join(' ')).toBe(expected)
  })

  it('lie from 1 to what the server takes, each for one topic, also where a packet does not leave [MQTT-3.2.2-17] [MQTT-3.2.2-18] [MQTT-3.3.2-8]', () => {
    const most = fc.integer({ min: 1, max: 6 })
    const step = fc.tuple(fc.nat(9), fc.boolean())
    fc.assert(
      fc.property(
        most,
        fc.boolean(),
        fc.array(step, { maxLength: 80 }),
        (maximum, mayFail, steps) => {
          const aliases = started(maximum)
          // What the server has learned.
          const server = new Map<number, string>()
          for (const [number, fails] of steps) {
            const topic = `topic ${number}`
            const alias = aliases.use(topic)
            expect(Math.abs(alias)).toBeGreaterThanOrEqual(1)
            expect(Math.abs(alias)).toBeLessThanOrEqual(maximum)
            if (alias > 0) expect(server.get(alias)).toBe(topic)
            else if (fails && mayFail) aliases.forget(topic)
            else server.set(-alias, topic)
          }
        },
      ),
    )
  })

  it('a packet that did not leave has taught the server nothing; its alias comes back once, and no other topic loses its own', () => {
    const aliases = started(3)
    aliases.forget('never seen')
    expect(['a', 'b'].map((topic) => aliases.use(topic))).toEqual([-1, -2])
    aliases.forget('a')
    aliases.forget('a')
    expect(['c', 'b', 'd', 'c'].map((topic) => aliases.use(topic))).toEqual([-1, 2, -3, 1])
  })

  it('are a bounded number, however many the server would take', () => {
    const aliases = started(65_535)
    const seen = new Set(
      Array.from({ length: 5000 }, (_, number) => aliases.use(`topic ${number}`)),
    )
    expect(seen.size).toBeLessThanOrEqual(256)
    expect(aliases.use('topic 4999')).toBeGreaterThan(0)
    expect(aliases.use('topic 0')).toBeLessThan(0)
  })

  it('end with the connection; there are none before CONNACK, nor where it names no maximum [MQTT-3.3.2-7] [MQTT-3.2.2-18]', () => {
    expect([new OutboundAliases().use('a'), connected().topics.use('a')]).toEqual([0, 0])
    const session = connected({}, { topicAliasMaximum: 5 })
    for (let round = 0; round < 2; round++) {
      expect([session.topics.use('a'), session.topics.use('a')]).toEqual([-1, 1])
      session.reconnect(true, { topicAliasMaximum: 5 })
    }
    session.reconnect()
    expect(session.topics.use('a')).toBe(0)
  })
})
