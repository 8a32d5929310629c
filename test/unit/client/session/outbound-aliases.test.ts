/** Topic aliases that we give: which topic has which, who makes room, and that none outlives its connection (section 3.3.2.3.4). */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { OutboundAliases } from '../../../../src/client/session/aliases.js'
import { connected, reconnect } from './drive.js'

/** `a` where the topic is sent, `ar` where the alias alone is enough. */
function sent(maximum: number, topics: string): string {
  const aliases = new OutboundAliases()
  aliases.start(maximum)
  return [...topics]
    .map((topic) => {
      const alias = aliases.use(topic)
      return alias > 0 ? `${topic}r` : alias < 0 ? topic : `${topic}-`
    })
    .join(' ')
}

describe('topic aliases of ours', () => {
  it.each([
    [1, 'aa', 'a ar'],
    [2, 'bab', 'b a br'],
    [2, 'abcbca', 'a b c br cr a'],
    [1, 'aba', 'a b a'],
    [3, 'abcabc', 'a b c ar br cr'],
    [2, 'abacb', 'a b ar c b'],
    [0, 'aab', 'a- a- b-'],
  ])('with %d: %s is sent as %s; the one unused for longest makes room', (maximum, topics, expected) => {
    expect(sent(maximum, topics)).toBe(expected)
  })

  it('lie from 1 to what the server takes, each for one topic at a time [MQTT-3.2.2-17] [MQTT-3.2.2-18] [MQTT-3.3.2-8]', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 6 }), fc.array(fc.nat(9), { maxLength: 80 }), (maximum, topics) => {
        const aliases = new OutboundAliases()
        aliases.start(maximum)
        // What the server has learned.
        const server = new Map<number, string>()
        for (const number of topics) {
          const topic = `topic ${number}`
          const alias = aliases.use(topic)
          expect(Math.abs(alias)).toBeGreaterThanOrEqual(1)
          expect(Math.abs(alias)).toBeLessThanOrEqual(maximum)
          if (alias < 0) server.set(-alias, topic)
          else expect(server.get(alias)).toBe(topic)
        }
      }),
    )
  })

  it('a packet that did not leave has taught the server nothing', () => {
    const aliases = new OutboundAliases()
    aliases.start(2)
    const alias = aliases.use('a')
    aliases.forget('a')
    expect(aliases.use('a')).toBeLessThan(0)
    expect([alias, aliases.use('a')]).toEqual([-1, 1])
  })

  it('what is not known cannot be forgotten: an alias comes back once, and no other topic loses its own', () => {
    const aliases = new OutboundAliases()
    aliases.start(3)
    aliases.forget('never seen')
    expect([aliases.use('a'), aliases.use('b')]).toEqual([-1, -2])
    aliases.forget('a')
    aliases.forget('a')
    expect([aliases.use('c'), aliases.use('b'), aliases.use('d')]).toEqual([-1, 2, -3])
  })

  it('forgetting gives the alias to another topic, and never the same one to two', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.nat(6), fc.boolean()), { maxLength: 60 }), (steps) => {
        const aliases = new OutboundAliases()
        aliases.start(3)
        const server = new Map<number, string>()
        for (const [number, fails] of steps) {
          const topic = `topic ${number}`
          const alias = aliases.use(topic)
          expect(Math.abs(alias)).toBeLessThanOrEqual(3)
          if (alias > 0) expect(server.get(alias)).toBe(topic)
          else if (fails) aliases.forget(topic)
          else server.set(-alias, topic)
        }
      }),
    )
  })

  it('are a bounded number, however many the server would take', () => {
    const aliases = new OutboundAliases()
    aliases.start(65_535)
    const seen = new Set<number>()
    for (let number = 0; number < 5000; number++) seen.add(-aliases.use(`topic ${number}`))
    expect(seen.size).toBeLessThanOrEqual(256)
    expect(aliases.use('topic 4999')).toBeGreaterThan(0)
    expect(aliases.use('topic 0')).toBeLessThan(0)
  })

  it('end with the connection: the next one teaches the server anew [MQTT-3.3.2-7]', () => {
    const session = connected({}, { topicAliasMaximum: 5 })
    expect([session.topics.use('a'), session.topics.use('a')]).toEqual([-1, 1])
    reconnect(session, true, { topicAliasMaximum: 5 })
    expect([session.topics.use('a'), session.topics.use('a')]).toEqual([-1, 1])
    reconnect(session)
    expect(session.topics.use('a')).toBe(0)
  })

  it('there are none before CONNACK, and none where CONNACK named no maximum [MQTT-3.2.2-18]', () => {
    const session = connected()
    expect(session.topics.use('a')).toBe(0)
    expect(new OutboundAliases().use('a')).toBe(0)
  })
})
