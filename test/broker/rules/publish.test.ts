/**
 * Proofs of the server role, section 3.3: what the broker in memory takes as a PUBLISH, what it makes of it, and what its subscribers get.
 *
 * Acknowledgements are in `broker-acks.test.ts`, quota and aliases of the server in `broker-flow-control.test.ts`.
 */
import { describe, expect, it } from 'vitest'
import type { Properties } from '../../../src/wire/index.js'
import { bytes, durable, type RawClient, world } from '../raw-client.js'
import { endOf, heard, packetOf, propertiesOf, publishesOf, say, textOf } from './wire.js'

/** PUBLISH on `t` by its first byte; at QoS 1 and 2 with the identifier 1. */
function publish(first: string, payload = '78', properties = '00', topic = textOf('t')): string {
  const withId = (Number.parseInt(first, 16) & 6) > 0 ? '00 01' : ''
  return packetOf(first, topic, withId, properties, payload)
}

/** SUBSCRIBE to `t` by its options. */
const subscribe = (options: string, packetId = '00 01'): string => packetOf('82', packetId, '00', textOf('t'), options)

async function pair(): Promise<ReturnType<typeof world> & { sender: RawClient; taker: RawClient }> {
  const all = world()
  const [sender, taker] = [await all.join('sender'), await all.join('taker')]
  heard(sender)
  heard(taker)
  return { ...all, sender, taker }
}

describe('DUP and QoS', () => {
  it('DUP of the publisher stays with the publisher: the copy has 0 [MQTT-3.3.1-3]', async () => {
    const { sender, taker } = await pair()
    await say(taker, subscribe('02'))
    await say(sender, publish('3a'), publish('3c').replace('00 01 00 78', '00 02 00 78'))
    expect(heard(taker)).toEqual(['32 07 00 01 74 00 01 00 78', '34 07 00 01 74 00 02 00 78'])
  })

  it('a PUBLISH of QoS 0 with DUP, or of QoS 3, is malformed and goes nowhere [MQTT-3.3.1-2] [MQTT-3.3.1-4]', async () => {
    for (const first of ['38', '36', '37', '3e', '3f']) {
      const { sender, taker, clock } = await pair()
      await say(taker, subscribe('02'))
      const [last] = await say(sender, publish(first))
      expect([last?.slice(0, 2), last?.slice(6, 8), sender.ended !== undefined]).toEqual(['e0', '81', true])
      await clock.settle()
      expect(heard(taker)).toEqual([])
    }
  })

  it('a copy of QoS 0 never has DUP, also when it waited in a session [MQTT-3.3.1-2] [MQTT-4.3.1-1]', async () => {
    const { join, broker } = world({ queueQoS0: true })
    const client = await join('a', durable)
    await client.subscribe({ filter: 't', qos: 0 })
    await client.cut()
    for (const qos of [0, 1, 2] as const) broker.publish({ topic: 't', qos, retain: true })
    const again = await join('a', durable)
    expect(heard(again).slice(1)).toEqual(['30 04 00 01 74 00', '30 04 00 01 74 00', '30 04 00 01 74 00'])
    await again.cut()
    // Sent once is sent for good.
    expect(heard(await join('a', durable))).toHaveLength(1)
  })
})

describe('RETAIN', () => {
  it('a retained message takes the place of the one before, for who comes later [MQTT-3.3.1-5]', async () => {
    const { sender, taker } = await pair()
    await say(sender, publish('31', '41'), publish('31', '42'))
    expect(await say(taker, subscribe('00'))).toEqual(['90 04 00 01 00 00', '31 05 00 01 74 00 42'])
  })

  it('an empty one reaches those who are there, and clears its topic [MQTT-3.3.1-6]', async () => {
    const { sender, taker, join } = await pair()
    await say(sender, publish('31', '41'))
    await say(taker, subscribe('00'))
    await say(sender, publish('31', ''))
    expect(heard(taker)).toEqual(['30 04 00 01 74 00'])
    const late = await join('late')
    heard(late)
    expect(await say(late, subscribe('00'))).toEqual(['90 04 00 01 00 00'])
  })

  it('an empty one is never kept itself [MQTT-3.3.1-7]', async () => {
    for (const first of ['31', '33', '35']) {
      const { sender, taker, broker } = await pair()
      await say(sender, publish(first, ''))
      expect(await say(taker, subscribe('00'))).toEqual(['90 04 00 01 00 00'])
      expect(broker.retained.size).toBe(0)
    }
  })

  it('a message without RETAIN, empty or not, leaves what is kept alone [MQTT-3.3.1-8]', async () => {
    const { sender, taker } = await pair()
    await say(sender, publish('30', '40'))
    expect(await say(taker, subscribe('00'))).toEqual(['90 04 00 01 00 00'])
    await say(sender, publish('31', '41'), publish('30', '42'), publish('30', ''), publish('32', ''))
    heard(taker)
    expect((await say(taker, subscribe('00', '00 02'))).slice(1)).toEqual(['31 05 00 01 74 00 41'])
  })

  it.each([
    ['0: every time', '00', [1, 1, 1]],
    ['1: when there was no subscription', '10', [1, 0, 1]],
    ['2: never', '20', [0, 0, 0]],
  ])('Retain Handling %s [MQTT-3.3.1-9] [MQTT-3.3.1-10] [MQTT-3.3.1-11]', async (_what, options, counts) => {
    const { sender, taker } = await pair()
    await say(sender, publish('31'))
    const count = async (packetId: string) => {
      const [suback, ...retained] = await say(taker, subscribe(options, packetId))
      expect(suback?.slice(0, 2)).toBe('90')
      expect(retained.every((packet) => packet === '31 05 00 01 74 00 78')).toBe(true)
      return retained.length
    }
    const seen = [await count('00 01'), await count('00 02')]
    await say(taker, packetOf('a2', '00 03 00', textOf('t')))
    expect([...seen, await count('00 04')]).toEqual(counts)
    // Live messages come whatever it says.
    await say(sender, publish('30', '79'))
    expect(heard(taker)).toEqual(['30 05 00 01 74 00 79'])
  })

  it.each([
    ['0 clears RETAIN', '00', ['30', '30']],
    ['1 keeps it as it was set', '08', ['31', '30']],
  ])('Retain As Published %s [MQTT-3.3.1-12] [MQTT-3.3.1-13]', async (_what, options, firsts) => {
    const { sender, taker } = await pair()
    await say(taker, subscribe(options))
    await say(sender, publish('31'), publish('30'))
    expect(heard(taker).map((packet) => packet.slice(0, 2))).toEqual(firsts)
  })
})

describe('Topic Name and properties that are malformed or against the rules', () => {
  it.each([
    ['a topic that is no UTF-8', publish('30', '', '00', '00 02 c3 28')],
    ['a topic longer than the packet', '30 04 00 09 74 00'],
    ['a Response Topic that is no UTF-8', publish('30', '', propertiesOf('08 00 02 c3 28'))],
    ['a Content Type that is no UTF-8', publish('30', '', propertiesOf('03 00 01 ff'))],
  ])('%s: DISCONNECT 0x81, and nothing is delivered [MQTT-3.3.2-1] [MQTT-3.3.2-13] [MQTT-3.3.2-19]', async (_what, packet) => {
    const { sender, broker } = await pair()
    const [last] = await say(sender, packet)
    expect([last?.slice(0, 2), last?.slice(6, 8), sender.ended !== undefined, broker.accepted.length]).toEqual(['e0', '81', true, 0])
  })

  it.each(['#', '+', 'a/#', 'a/+', 'a+', 'a#b'])(
    'the wildcards of %s are refused in a Topic Name and a Response Topic [MQTT-3.3.2-2] [MQTT-3.3.2-14]',
    async (topic) => {
      for (const packet of [publish('30', '', '00', textOf(topic)), publish('30', '', propertiesOf('08', textOf(topic)))]) {
        const { sender, broker } = await pair()
        const [last] = await say(sender, packet)
        expect([last?.slice(0, 2), last?.slice(6, 8), sender.ended !== undefined, broker.accepted.length]).toEqual([
          'e0',
          expect.stringMatching(/8[12]|90/),
          true,
          0,
        ])
      }
    },
  )

  it('Topic Alias 0 is refused by 0x94 [MQTT-3.3.2-8]', async () => {
    const { sender, broker } = await pair()
    const end = await say(sender, publish('30', '', propertiesOf('23 00 00')))
    expect([end[0]?.slice(6, 8), sender.ended !== undefined, broker.accepted.length]).toEqual(['94', true, 0])
  })
})

describe('properties on their way through', () => {
  const passing: [string, string][] = [
    ['Payload Format Indicator 0', '01 00'],
    ['Payload Format Indicator 1', '01 01'],
    ['none', ''],
    ['Response Topic', `08 ${textOf('r/1/ü')}`],
    ['Correlation Data', '09 00 03 00 ff 80'],
    ['empty Correlation Data', '09 00 00'],
    [
      'User Properties with repeats and empty strings',
      `26 ${textOf('b')} ${textOf('2')} 26 ${textOf('a')} ${textOf('1')} 26 ${textOf('b')} ${textOf('1')} 26 00 00 00 00`,
    ],
    ['Content Type', `03 ${textOf('application/json; charset=utf-8')}`],
    ['empty Content Type', '03 00 00'],
  ]

  it.each(passing)(
    'unchanged, byte by byte, live, retained and after waiting: %s [MQTT-3.3.2-4] [MQTT-3.3.2-15] [MQTT-3.3.2-16] [MQTT-3.3.2-17] [MQTT-3.3.2-18] [MQTT-3.3.2-20]',
    async (_what, properties) => {
      const { sender, taker, join } = await pair()
      const body = `${textOf('t')} 00 01 ${propertiesOf(properties)} 78`
      const away = await join('away', durable)
      await away.subscribe({ filter: 't', qos: 1 })
      await away.cut()
      await say(taker, subscribe('01'))
      await say(sender, packetOf('33', body))
      expect(heard(taker)).toEqual([packetOf('32', body)])
      expect(heard(await join('away', durable)).slice(1)).toEqual([packetOf('32', body)])
      const late = await join('late')
      heard(late)
      expect((await say(late, subscribe('01')))[1]).toBe(packetOf('33', body))
    },
  )

  it('a will passes them as well [MQTT-3.3.2-4] [MQTT-3.3.2-15] [MQTT-3.3.2-16] [MQTT-3.3.2-18] [MQTT-3.3.2-20]', async () => {
    const { join, taker } = await pair()
    await say(taker, subscribe('00'))
    const properties: Properties = {
      userProperties: [
        ['b', '2'],
        ['a', '1'],
        ['b', '1'],
      ],
      payloadFormatIndicator: 1,
      contentType: 'c',
      responseTopic: 'r',
      correlationData: Uint8Array.of(0, 255, 128),
    }
    await (await join('dies', { will: { topic: 't', properties } })).cut()
    expect(await publishesOf(taker)).toMatchObject([{ properties }])
  })

  it('a message that expired before its delivery began is deleted: in a session, behind a full quota, retained [MQTT-3.3.2-5]', async () => {
    const { sender, taker, join, clock, broker } = await pair()
    const [away, busy] = [await join('away', durable), await join('busy', { properties: { receiveMaximum: 1 } })]
    for (const client of [away, busy]) await client.subscribe({ filter: 't', qos: 1 })
    await away.cut()
    await say(sender, publish('32', '61'))
    await say(sender, publish('33', '62', propertiesOf('02 00 00 00 01')))
    await clock.advance(1000)
    heard(busy)
    expect(await say(busy, '40 02 00 01')).toEqual([])
    expect(heard(await join('away', durable)).slice(1)).toEqual(['32 07 00 01 74 00 01 00 61'])
    expect(await say(taker, subscribe('00'))).toEqual(['90 04 00 01 00 00'])
    expect(broker.sessions.get('busy')).toMatchObject({ queued: 0, inflight: 0, expired: 1 })
  })

  it('what is left of the expiry interval is told, in a session and retained [MQTT-3.3.2-6]', async () => {
    const { sender, taker, join, clock } = await pair()
    const away = await join('away', durable)
    await away.subscribe({ filter: 't', qos: 1 })
    await away.cut()
    await say(sender, publish('33', '78', propertiesOf('02 00 00 00 0a')))
    await clock.advance(3000)
    expect(heard(await join('away', durable)).slice(1)).toEqual(['32 0c 00 01 74 00 01 05 02 00 00 00 07 78'])
    expect((await say(taker, subscribe('00')))[1]).toBe('31 0a 00 01 74 05 02 00 00 00 07 78')
    await clock.advance(6999)
    expect((await say(taker, subscribe('00', '00 02')))[1]).toBe('31 0a 00 01 74 05 02 00 00 00 01 78')
    await clock.advance(1)
    expect(await say(taker, subscribe('00', '00 03'))).toHaveLength(1)
  })
})

describe('aliases of the client', () => {
  const alias = (id: string, topic = '00 00'): string => publish('30', '78', propertiesOf('23', id), topic)

  it('every one up to the maximum of CONNACK stands for its topic, and is not passed on [MQTT-3.3.2-12]', async () => {
    const { join } = world({ topicAliasMaximum: 20 })
    const client = await join('a')
    await client.subscribe({ filter: '#', qos: 0 })
    heard(client)
    const ids = Array.from({ length: 20 }, (_none, at) => `00 ${(at + 1).toString(16).padStart(2, '0')}`)
    const expected = ids.map((id) => packetOf('30', textOf(`topic ${id}`), '00 78'))
    expect(await say(client, ...ids.map((id) => alias(id, textOf(`topic ${id}`))))).toEqual(expected)
    expect(await say(client, ...ids.map((id) => alias(id)))).toEqual(expected)
    const [last] = await say(client, alias('00 15', textOf('t')))
    expect(last?.slice(6, 8)).toBe('94')
  })

  it('they end with the connection, though the session goes on [MQTT-3.3.2-7]', async () => {
    const { join, broker } = world()
    const first = await join('a', durable)
    await say(first, alias('00 01', textOf('t')), alias('00 01'))
    await first.cut()
    expect(broker.accepted).toHaveLength(2)
    const again = await join('a', durable)
    heard(again)
    await say(again, alias('00 01'))
    expect(again.goodbye).toBe(0x82)
    expect([broker.accepted.length, endOf(again).closed]).toEqual([2, true])
  })
})

describe('delivery', () => {
  const filters = ['nobody/has', '#', '+', '+/+', '/+', 'a', 'a/#', 'a/+', 'a/+/c', '/', '$SYS/#', '$SYS/+', '+/b', 'a/b/', 'A', 'a//b']
  const topics = ['a', '/', 'a/', '/a', 'a/b', 'a/b/c', 'a/b/', 'a//b', 'A', '$SYS/b', '$SYS', 'b']
  /** By topic, the filters that match it (section 4.7), written by hand. */
  const matching: Record<string, string[]> = {
    a: ['#', '+', 'a', 'a/#'],
    '/': ['#', '+/+', '/+', '/'],
    'a/': ['#', '+/+', 'a/#', 'a/+'],
    '/a': ['#', '+/+', '/+'],
    'a/b': ['#', '+/+', 'a/#', 'a/+', '+/b'],
    'a/b/c': ['#', 'a/#', 'a/+/c'],
    'a/b/': ['#', 'a/#', 'a/b/'],
    'a//b': ['#', 'a/#', 'a//b'],
    A: ['#', '+', 'A'],
    '$SYS/b': ['$SYS/#', '$SYS/+'],
    $SYS: ['$SYS/#'],
    b: ['#', '+'],
  }

  it('a subscriber gets a message exactly when its filter matches, live and retained [MQTT-3.3.2-3] [MQTT-4.7.2-1]', async () => {
    const { join, broker } = world()
    const clients = new Map<string, RawClient>()
    for (const filter of filters) {
      const client = await join(filter)
      await client.subscribe({ filter, qos: 0 })
      client.take()
      clients.set(filter, client)
    }
    for (const topic of topics) {
      broker.publish({ topic, payload: 'x', retain: true })
      const got: string[] = []
      for (const [filter, client] of clients) if ((await client.messages()).includes(`${topic} x`)) got.push(filter)
      expect([topic, got]).toEqual([topic, matching[topic]])
    }
    for (const filter of filters) {
      const late = await join(`late ${filter}`)
      await late.subscribe({ filter, qos: 0 })
      const kept = late.received.flatMap((packet) => (packet.type === 'publish' ? [packet.topic] : []))
      expect([filter, kept.sort()]).toEqual([filter, topics.filter((topic) => matching[topic]?.includes(filter)).sort()])
    }
  })

  it('overlapping filters: one copy, at the highest QoS of those that match, with all their identifiers [MQTT-3.3.4-2] [MQTT-3.3.4-3] [MQTT-3.3.4-4]', async () => {
    const { sender, taker } = await pair()
    const filters = [
      packetOf('82', '00 01', propertiesOf('0b 01'), textOf('a/+'), '00'),
      packetOf('82', '00 02', propertiesOf('0b 80 02'), textOf('a/#'), '02'),
      packetOf('82', '00 03', '00', textOf('#'), '01'),
      // These do not match: neither their QoS nor their identifiers count.
      packetOf('82', '00 04', propertiesOf('0b 07'), textOf('b'), '02'),
    ]
    await say(taker, ...filters)
    await say(sender, packetOf('34', textOf('a/b'), '00 01 00'))
    expect(heard(taker)).toEqual([expect.stringMatching(/^34 0d 00 03 61 2f 62 00 01 05 (?:0b 01 0b 80 02|0b 80 02 0b 01)$/)])
    await say(taker, packetOf('a2', '00 05 00', textOf('a/#')))
    await say(sender, packetOf('32', textOf('a/b'), '00 02 00'))
    expect(heard(taker).at(-1)).toBe('32 0a 00 03 61 2f 62 00 02 02 0b 01')
  })

  it('where copies are sent apart, each has the identifier of its own subscription [MQTT-3.3.4-5] [MQTT-3.3.4-3]', async () => {
    const { sender, taker } = await pair()
    // Shared subscriptions of two groups, and one that is not shared.
    await say(taker, packetOf('82', '00 01', propertiesOf('0b 01'), textOf('$share/g/t'), '00'))
    await say(taker, packetOf('82', '00 02', propertiesOf('0b 02'), textOf('$share/h/+'), '00'))
    await say(taker, packetOf('82', '00 03', propertiesOf('0b 03'), textOf('t'), '00'))
    await say(sender, publish('30'))
    expect(heard(taker).sort()).toEqual(['01', '02', '03'].map((id) => `30 07 00 01 74 02 0b ${id} 78`))
  })

  it('a message of each QoS is answered by its kind: nothing, PUBACK, PUBREC [MQTT-3.3.4-1]', async () => {
    const { sender, taker } = await pair()
    await say(taker, subscribe('02'))
    expect(await say(sender, publish('30'), 'c0 00')).toEqual(['d0 00'])
    expect(await say(sender, publish('32'), 'c0 00')).toEqual(['40 02 00 01', 'd0 00'])
    expect(await say(sender, publish('34'), 'c0 00')).toEqual(['50 02 00 01', 'd0 00'])
    expect((await publishesOf(taker)).map(({ qos, payload }) => [qos, payload])).toEqual([0, 1, 2].map((qos) => [qos, bytes('x')]))
  })
})
