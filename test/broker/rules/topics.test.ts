/**
 * Proofs of the server role, section 4.7: Topic Names and Topic Filters as the broker in memory takes, refuses and compares them.
 *
 * The matrix of filters against topics is in `broker-publish.test.ts`.
 */
import { describe, expect, it } from 'vitest'
import { type RawClient, type World, world } from '../raw-client.js'
import { heard, hexOf, packetOf, say, textOf } from './wire.js'

async function joined(options: Parameters<typeof world>[0] = {}): Promise<World & { client: RawClient }> {
  const all = world(options)
  const client = await all.join('a')
  heard(client)
  return { ...all, client }
}

const subscribe = (filter: string): string => packetOf('82', '00 01 00', filter, '00')
const unsubscribe = (filter: string): string => packetOf('a2', '00 02 00', filter)
const publish = (topic: string): string => packetOf('30', topic, '00 78')

/** Sends the packet on a fresh connection; the code of the DISCONNECT that must follow, with the end. */
async function refusal(packet: string): Promise<string | undefined> {
  const { client, broker } = await joined()
  const [last, ...more] = await say(client, packet)
  expect([last?.slice(0, 2), more, client.ended !== undefined, broker.accepted.length]).toEqual(['e0', [], true, 0])
  return last?.slice(6, 8)
}

describe('wildcards', () => {
  it.each(['+', '#', 'a/+', 'a/#', '+/a', 'a/+/b', 'a+', '#a'])(
    '%s is no Topic Name: not of PUBLISH, a will, a Response Topic [MQTT-4.7.0-1]',
    async (topic) => {
      expect(await refusal(publish(textOf(topic)))).toMatch(/8[12]|90/)
      expect(await refusal(packetOf('30', textOf('t'), packetOf('', '08', textOf(topic)), '78'))).toMatch(/8[12]|90/)
      const { dial, broker } = world()
      const client = dial()
      const [connack] = await say(client, packetOf('10', textOf('MQTT'), '05 06 00 00 00', textOf('a'), '00', textOf(topic), '00 00'))
      expect(connack).toMatch(/^20 03 00 (?:8[12]|90) 00$/)
      expect([client.ended !== undefined, broker.sessions.size]).toEqual([true, 0])
    },
  )

  it.each(['a#', 'a/#/b', '##', '#/a', '#/', 'a/b#', '/#/', '$share/g/a#', '$share/g/#/a'])(
    '%s is no filter: # stands alone, at the end [MQTT-4.7.1-1]',
    async (filter) => {
      for (const packet of [subscribe(textOf(filter)), unsubscribe(textOf(filter))]) expect(await refusal(packet)).toMatch(/8[12f]/)
    },
  )

  it.each(['a+', '+a', 'a/b+/c', '++', 'a/+b', '$share/g/+a'])('%s is no filter: + fills a level [MQTT-4.7.1-2]', async (filter) => {
    for (const packet of [subscribe(textOf(filter)), unsubscribe(textOf(filter))]) expect(await refusal(packet)).toMatch(/8[12f]/)
  })

  it.each([
    ['#', ['a', 'a/b', '/', '/a'], ['$a', '$a/b']],
    ['a/#', ['a', 'a/', 'a/b', 'a/b/c'], ['b', 'ab', '/a', 'A']],
    ['/#', ['/', '/a', '/a/b'], ['a', 'a/b']],
    ['+', ['a', 'é'], ['a/b', '/a', 'a/', '/', '$a']],
    ['+/+', ['a/b', '/', 'a/', '/a'], ['a', 'a/b/c', '$a/b']],
    ['/+', ['/a', '/'], ['a', 'a/b', '/a/b']],
    ['a/+', ['a/', 'a/b'], ['a', 'a/b/c', 'b/a']],
    ['a/+/b', ['a/x/b', 'a//b'], ['a/b', 'a/x/y/b', 'a/x/b/']],
    ['+/a/#', ['x/a', 'x/a/b', '/a'], ['a', 'x/b', '$x/a']],
    ['$x/#', ['$x', '$x/a'], ['x', 'x/a', '$X/a']],
    ['$x/+', ['$x/a'], ['$x', 'x/a']],
  ])('%s matches %j, and not %j [MQTT-4.7.1-1] [MQTT-4.7.1-2] [MQTT-4.7.2-1]', async (filter, matching, others) => {
    const { client } = await joined()
    expect(await say(client, subscribe(textOf(filter)))).toEqual(['90 04 00 01 00 00'])
    for (const topic of matching) expect(await say(client, publish(textOf(topic)))).toEqual([publish(textOf(topic))])
    for (const topic of others) expect([topic, await say(client, publish(textOf(topic)))]).toEqual([topic, []])
  })
})

describe('length and characters', () => {
  it('an empty filter, and an empty topic without an alias, are errors [MQTT-4.7.3-1]', async () => {
    expect(await refusal(subscribe('00 00'))).toMatch(/8[12f]/)
    expect(await refusal(unsubscribe('00 00'))).toMatch(/8[12f]/)
    expect(await refusal(publish('00 00'))).toBe('82')
    expect(await refusal(packetOf('32', '00 00', '00 01 00'))).toBe('82')
  })

  it('one character is enough, also a separator or a space [MQTT-4.7.3-1]', async () => {
    for (const topic of ['a', '/', ' ']) {
      const { client } = await joined()
      await say(client, subscribe(textOf(topic)))
      expect(await say(client, publish(textOf(topic)))).toEqual([publish(textOf(topic))])
    }
  })

  it('NUL is malformed in a topic and in a filter: 0x81 [MQTT-4.7.3-2]', async () => {
    const nul = '00 03 61 00 62'
    expect([await refusal(publish(nul)), await refusal(subscribe(nul)), await refusal(unsubscribe(nul))]).toEqual(['81', '81', '81'])
  })

  it.each([
    ['one byte a character', 'x'.repeat(65_535)],
    ['two', `${'é'.repeat(32_767)}x`],
    ['four', `${'\u{1f600}'.repeat(16_383)}xyz`],
  ])('65,535 bytes of UTF-8 work end to end, as topic and filter, %s [MQTT-4.7.3-3]', async (_what, topic) => {
    const { client, broker } = await joined()
    await client.subscribe({ filter: topic, qos: 0 })
    heard(client)
    const packet = Uint8Array.from([0x30, 0x83, 0x80, 0x04, 0xff, 0xff, ...new TextEncoder().encode(topic), 0, 0x78])
    await client.sendBytes(packet)
    // Compared as a whole: a difference of that size helps nobody.
    expect(heard(client).join() === hexOf(packet)).toBe(true)
    expect(broker.accepted[0]?.topic === topic).toBe(true)
  })
})

describe('comparison', () => {
  it.each([
    ['é', 'e\u0301'],
    ['\u212b', '\u00c5'],
    ['A', 'a'],
    ['a//b', 'a/b'],
    ['a/b/', 'a/b'],
    ['/a', 'a'],
    ['a ', 'a'],
    ['\ufeffa', 'a'],
    ['ß', 'ss'],
    ['\u{10ffff}', '\ufffd'],
  ])('nothing is normalised: %j and %j are two topics [MQTT-4.7.3-4] [MQTT-1.5.4-3]', async (one, other) => {
    for (const [filter, topic] of [
      [one, other],
      [other, one],
    ] as const) {
      const { client } = await joined()
      await say(client, subscribe(textOf(filter)))
      expect(await say(client, publish(textOf(topic)))).toEqual([])
      expect(await say(client, publish(textOf(filter)))).toEqual([publish(textOf(filter))])
    }
  })

  it('EF BB BF is passed on wherever it stands [MQTT-1.5.4-3]', async () => {
    const { client, broker } = await joined()
    const topic = '00 07 ef bb bf 61 ef bb bf'
    await say(client, subscribe(topic), subscribe(textOf('a')))
    expect(await say(client, publish(topic))).toEqual([`30 0b ${topic} 00 78`])
    expect(broker.accepted[0]?.topic).toBe('\ufeffa\ufeff')
    expect(hexOf(new TextEncoder().encode(broker.sessions.get('a')?.subscriptions[0]?.filter))).toBe(topic.slice(6))
  })
})
