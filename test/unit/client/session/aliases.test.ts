import { describe, expect, it } from 'vitest'
import { InboundAliases } from '../../../../src/client/session/aliases.js'
import { type TopicRecord, topicRecord } from '../../../../src/wire/topic-table.js'
import { connackPacket, connected, connecting, connectPacket, takeActions } from './drive.js'

describe('topic aliases that the server sets up (section 3.3.2.3.4)', () => {
  const record = (name: string): TopicRecord => topicRecord(name)
  const nameOf = (found: TopicRecord | number): string | number => (typeof found === 'number' ? found : found.name)

  it('gives back the topic of an alias', () => {
    const aliases = new InboundAliases<TopicRecord>(10)
    const topics = [record('a/b'), record('c')]
    expect(aliases.resolve(3, topics[0], 1000)).toBe(topics[0])
    expect(aliases.resolve(1, topics[1], 1000)).toBe(topics[1])
    expect([aliases.resolve(1, undefined, 1000), aliases.resolve(3, undefined, 1000)]).toEqual([topics[1], topics[0]])
  })

  it('accepts 1 to our maximum and nothing else [MQTT-3.3.2-8] [MQTT-3.3.2-9]', () => {
    const verdicts = (maximum: number, given: readonly number[]): (string | number)[] => {
      const aliases = new InboundAliases<TopicRecord>(maximum)
      return given.map((alias) => nameOf(aliases.resolve(alias, record('x'), 1000)))
    }
    expect(verdicts(10, [0, 1, 10, 11, 65_535])).toEqual([0x94, 'x', 'x', 0x94, 0x94])
    expect(verdicts(65_535, [0, 1, 65_535])).toEqual([0x94, 'x', 'x'])
  })

  it('accepts none when we announced none', () => {
    const aliases = new InboundAliases<TopicRecord>(0)
    expect([0, 1, 2, 65_535].map((alias) => aliases.resolve(alias, record('x'), 1000))).toEqual([0x94, 0x94, 0x94, 0x94])
  })

  it('knows no topic for an alias that was never defined', () => {
    const aliases = new InboundAliases<TopicRecord>(10)
    aliases.resolve(5, record('x'), 1000)
    expect([1, 4, 6, 10].map((alias) => aliases.resolve(alias, undefined, 1000))).toEqual([0x82, 0x82, 0x82, 0x82])
  })

  it('takes the newest topic of an alias, and counts that alone', () => {
    const aliases = new InboundAliases<TopicRecord>(10)
    aliases.resolve(2, record('older'), 1000)
    expect(aliases.bytes).toBe(10)
    aliases.resolve(2, record('new'), 1000)
    expect(nameOf(aliases.resolve(2, undefined, 1000))).toBe('new')
    expect(aliases.bytes).toBe(6)
  })

  it('forgets every alias with the connection [MQTT-3.3.2-7]', () => {
    const session = connecting()
    session.handlePacket(connackPacket(), 0)
    session.aliases.resolve(1, record('a'), 1000)
    session.fail(0x82, 'test')
    session.connect(connectPacket())
    takeActions(session)
    expect(session.aliases.resolve(1, undefined, 1000)).toBe(0x82)
    session.aliases.resolve(2, record('b'), 1000)
    expect([1, 2].map((alias) => nameOf(session.aliases.resolve(alias, undefined, 1000)))).toEqual([0x82, 'b'])
  })

  const open = () => connected({}, {}, { properties: { topicAliasMaximum: 3 } })

  it('a topic with an alias defines it, an alias alone stands for it', () => {
    const { aliases } = open()
    const told = (['a', undefined, 'b', undefined] as const).map((topic) => aliases.resolve(3, topic === undefined ? undefined : record(topic), 1000))
    expect(told.map(nameOf)).toEqual(['a', 'a', 'b', 'b'])
  })

  it.each([
    ['an alias above our maximum: 0x94 [MQTT-3.3.2-9]', 4, 'a', 0x94],
    ['an alias without a topic that was never defined: 0x82', 2, undefined, 0x82],
    ['topics that take more bytes than they may: 0x97', 1, 'x'.repeat(501), 0x97],
  ] as const)('%s', (_title, alias, topic, reasonCode) => {
    expect(open().aliases.resolve(alias, topic === undefined ? undefined : record(topic), 1000)).toBe(reasonCode)
  })
})
