import { describe, expect, it } from 'vitest'
import { InboundAliases } from '../../../src/client/session/aliases.js'
import { connackPacket, connected, connecting, connectPacket, expectClose, takeActions } from './drive.js'

describe('topic aliases that the server sets up (section 3.3.2.3.4)', () => {
  it('J01 gives back the topic of an alias', () => {
    const aliases = new InboundAliases(10)
    aliases.define(3, 'a/b')
    aliases.define(1, 'c')
    expect([aliases.topic(1), aliases.topic(3)]).toEqual(['c', 'a/b'])
  })

  it('J02 J03 accepts 1 to our maximum and nothing else [MQTT-3.3.2-8] [MQTT-3.3.2-9]', () => {
    const aliases = new InboundAliases(10)
    expect([0, 1, 10, 11, 65_535].map((alias) => aliases.accepts(alias))).toEqual([false, true, true, false, false])
    const most = new InboundAliases(65_535)
    expect([0, 1, 65_535].map((alias) => most.accepts(alias))).toEqual([false, true, true])
  })

  it('J05 accepts none when we announced none', () => {
    const aliases = new InboundAliases(0)
    expect([0, 1, 2, 65_535].map((alias) => aliases.accepts(alias))).toEqual([false, false, false, false])
  })

  it('J04 knows no topic for an alias that was never defined', () => {
    const aliases = new InboundAliases(10)
    aliases.define(5, 'x')
    expect([1, 4, 6, 10].map((alias) => aliases.topic(alias))).toEqual([undefined, undefined, undefined, undefined])
  })

  it('J07 takes the newest topic of an alias', () => {
    const aliases = new InboundAliases(10)
    aliases.define(2, 'old')
    aliases.define(2, 'new')
    expect(aliases.topic(2)).toBe('new')
  })

  it('forgets every alias with the connection [MQTT-3.3.2-7]', () => {
    const session = connecting()
    session.handlePacket(connackPacket(), 0)
    session.aliases.define(1, 'a')
    session.fail(0x82, 'test')
    session.connect(connectPacket())
    takeActions(session)
    expect(session.aliases.topic(1)).toBeUndefined()
    session.aliases.define(2, 'b')
    expect([session.aliases.topic(1), session.aliases.topic(2)]).toEqual([undefined, 'b'])
  })

  const open = () => connected({}, {}, { properties: { topicAliasMaximum: 3 } })

  it('J01 J07 a topic with an alias defines it, an alias alone stands for it', () => {
    const session = open()
    expect(session.resolve(3, 'a', 1000)).toBe('a')
    expect(session.resolve(3, undefined, 1000)).toBe('a')
    expect(session.resolve(3, 'b', 1000)).toBe('b')
    expect(session.resolve(3, undefined, 1000)).toBe('b')
    expect(session.state).toBe('connected')
  })

  it.each([
    ['J03 T09 an alias above our maximum: close(0x94) [MQTT-3.3.2-9]', 4, 'a', 0x94],
    ['J04 an alias without a topic that was never defined: close(0x82)', 2, undefined, 0x82],
    ['T09 topics that take more bytes than they may: close(0x97)', 1, 'x'.repeat(501), 0x97],
  ] as const)('%s', (_title, alias, topic, reasonCode) => {
    const session = open()
    expect(session.resolve(alias, topic, 1000)).toBeUndefined()
    expectClose(session, reasonCode)
  })
})
