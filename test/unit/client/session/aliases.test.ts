/** Topic aliases in both directions: bounds, who makes room, and that none outlives its connection (section 3.3.2.3.4). */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { InboundAliases, OutboundAliases } from '../../../../src/client/session/aliases.js'
import { type TopicRecord, topicRecord } from '../../../../src/wire/topic-table.js'
import { connackPacket, connected, connectPacket } from './drive.js'

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
