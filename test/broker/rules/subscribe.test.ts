/**
 * Proofs of the server role, sections 3.8 and 3.9: SUBSCRIBE and SUBACK of the broker in memory.
 */
import { describe, expect, it } from 'vitest'
import type { Properties, ServerPacket } from '../../../src/wire/index.js'
import { durable, type RawClient, type World, world } from '../raw-client.js'
import { endOf, heard, hexOfCode, packetOf, propertiesOf, publishesOf, say, someCodes, textOf } from './wire.js'

/** SUBSCRIBE by its identifier and filters with their options. */
const subscribe = (packetId: string, ...filters: [filter: string, options: string][]): string =>
  packetOf('82', packetId, '00', ...filters.map(([filter, options]) => `${textOf(filter)} ${options}`))

async function joined(options: Parameters<typeof world>[0] = {}): Promise<World & { client: RawClient }> {
  const all = world(options)
  const client = await all.join('a')
  heard(client)
  return { ...all, client }
}

const refusing = {
  authorizeSubscribe: (_client: unknown, { filter }: { filter: string }) => (filter === 'forbidden' ? false : filter === 'odd' ? 0x83 : true),
}

describe('malformed and forbidden', () => {
  it.each(['80', '81', '83', '86', '8a', '8f'])(
    'SUBSCRIBE that begins with %s is malformed: 0x81, and no subscription [MQTT-3.8.1-1]',
    async (first) => {
      const { broker, join } = world()
      const client = await join('a', durable)
      heard(client)
      const [last, ...more] = await say(client, `${first}${subscribe('00 01', ['t', '00']).slice(2)}`)
      expect([last?.slice(0, 2), last?.slice(6, 8), more, client.ended !== undefined]).toEqual(['e0', '81', [], true])
      expect(broker.sessions.get('a')?.subscriptions).toEqual([])
    },
  )

  it.each(['40', '80', 'c0', '41'])('reserved bits in the options (%s) are malformed: 0x81 [MQTT-3.8.3-5]', async (options) => {
    const { client, broker } = await joined()
    const [last] = await say(client, subscribe('00 01', ['fine', '00'], ['t', options]))
    expect([last?.slice(0, 2), last?.slice(6, 8), client.ended !== undefined, broker.publish({ topic: 'fine' })]).toEqual(['e0', '81', true, false])
  })

  it('No Local on a share is a protocol error: 0x82 [MQTT-3.8.3-4]', async () => {
    for (const options of ['04', '05', '0e']) {
      const { client } = await joined()
      const [last] = await say(client, subscribe('00 01', ['$share/g/a', options]))
      expect([last?.slice(0, 2), last?.slice(6, 8), client.ended !== undefined]).toEqual(['e0', '82', true])
    }
    // Without it a share is fine, as is No Local without a share.
    const { client } = await joined()
    expect(await say(client, subscribe('00 01', ['$share/g/a', '02'], ['share/g/a', '06']))).toEqual(['90 05 00 01 00 02 02'])
  })
})

describe('No Local', () => {
  it('one’s own messages do not come back, by the client identifier; others’ do [MQTT-3.8.3-3]', async () => {
    const { client, join } = await joined()
    const other = await join('b')
    for (const each of [client, other]) await say(each, subscribe('00 01', ['t', '04']), subscribe('00 02', ['back', '00']))
    heard(other)
    expect(await say(client, packetOf('31', textOf('t'), '00 61'), packetOf('30', textOf('back'), '00 62'))).toEqual([
      '30 08 00 04 62 61 63 6b 00 62',
    ])
    expect(heard(other)).toEqual(['30 05 00 01 74 00 61', '30 08 00 04 62 61 63 6b 00 62'])
    // Judged by the identifier, on a later connection too, and for what is retained.
    await client.cut()
    const again = await join('a')
    heard(again)
    expect(await say(again, subscribe('00 01', ['t', '04']))).toEqual(['90 04 00 01 00 00'])
  })
})

describe('SUBACK', () => {
  it('answers every SUBSCRIBE: allowed, refused, mixed [MQTT-3.8.4-1] [MQTT-3.9.3-1]', async () => {
    const { client } = await joined(refusing)
    expect(
      await say(
        client,
        subscribe('00 01', ['a', '01']),
        subscribe('00 02', ['forbidden', '01']),
        subscribe('00 03', ['a', '00'], ['forbidden', '02'], ['b', '02'], ['odd', '00']),
      ),
    ).toEqual(['90 04 00 01 00 01', '90 04 00 02 00 87', '90 07 00 03 00 00 87 02 83'])
  })

  it('repeats the identifier [MQTT-3.8.4-2] [MQTT-2.2.1-6]', async () => {
    const { client } = await joined()
    const answers = await say(
      client,
      subscribe('00 01', ['a', '00']),
      subscribe('01 00', ['b', '00']),
      subscribe('ff ff', ['c', '00']),
      subscribe('00 07', ['d', '00']),
      packetOf('a2', 'ff fe 00', textOf('d')),
    )
    expect(answers).toEqual(['90 04 00 01 00 00', '90 04 01 00 00 00', '90 04 ff ff 00 00', '90 04 00 07 00 00', 'b0 04 ff fe 00 00'])
  })

  it('has one code for each filter [MQTT-3.8.4-6]', async () => {
    const { client } = await joined()
    for (const count of [1, 2, 10, 200]) {
      const filters = Array.from({ length: count }, (_none, at): [string, string] => [`f/${at}`, '01'])
      const [suback, ...more] = await say(client, subscribe('00 01', ...filters))
      expect(suback).toBe(packetOf('90', '00 01 00', '01'.repeat(count)))
      expect(more).toEqual([])
    }
  })

  it('a code grants no more than was asked for, or says that there is no subscription [MQTT-3.8.4-7]', async () => {
    const { client, broker } = await joined({ ...refusing, maximumQoS: 1 })
    expect(await say(client, subscribe('00 01', ['zero', '00'], ['one', '01'], ['two', '02'], ['forbidden', '02']))).toEqual([
      '90 07 00 01 00 00 01 01 87',
    ])
    client.take()
    for (const topic of ['zero', 'one', 'two', 'forbidden']) broker.publish({ topic, qos: 2, retain: true })
    expect((await publishesOf(client)).map(({ topic, qos }) => [topic, qos])).toEqual([
      ['zero', 0],
      ['one', 1],
      ['two', 1],
    ])
    heard(client)
    // Nor is what is retained sent for a refusal.
    expect(await say(client, subscribe('00 02', ['forbidden', '02']))).toEqual(['90 04 00 02 00 87'])
  })

  it('whatever a hook or a bound decides, the code is one of SUBACK’s own [MQTT-3.9.3-2]', async () => {
    const allowed = '00 01 02 80 83 87 8f 91 97 9e a1 a2'.split(' ')
    let verdict = 0
    const { client, broker } = await joined({ authorizeSubscribe: () => verdict })
    for (verdict of someCodes) {
      const wanted = hexOfCode(verdict)
      const code = verdict < 0x80 ? '02' : allowed.includes(wanted) ? wanted : '80'
      expect([verdict, await say(client, subscribe('00 01', [`f${verdict}`, '02']))]).toEqual([verdict, [`90 04 00 01 00 ${code}`]])
      expect(broker.publish({ topic: `f${verdict}` })).toBe(verdict < 0x80)
      await client.send()
      heard(client)
    }
    const bounded = await joined({ maxSubscriptions: 1, maxTopicLevels: 2 })
    expect(await say(bounded.client, subscribe('00 01', ['a/b/c', '00'], ['a', '00'], ['b', '00']))).toEqual(['90 06 00 01 00 8f 00 97'])
  })
})

describe('what a SUBSCRIBE does', () => {
  it('to the same filter again replaces the subscription: options and identifier [MQTT-3.8.4-3]', async () => {
    const { client, broker } = await joined()
    await say(
      client,
      packetOf('82', '00 01', propertiesOf('0b 01'), textOf('a'), '0a'),
      packetOf('82', '00 02', propertiesOf('0b 02'), textOf('a'), '00'),
    )
    broker.publish({ topic: 'a', payload: 'x', qos: 2, retain: true })
    await client.send()
    expect(heard(client)).toEqual(['30 07 00 01 61 02 0b 02 78'])
    await say(client, subscribe('00 03', ['a', '01']))
    broker.publish({ topic: 'a', payload: 'y', qos: 2 })
    await client.send()
    expect(heard(client).at(-1)).toBe('32 07 00 01 61 00 02 00 79')
    // There is one to be taken away.
    expect(await say(client, packetOf('a2', '00 04 00', textOf('a'), textOf('a')))).toEqual(['b0 05 00 04 00 00 11'])
    expect(broker.publish({ topic: 'a' })).toBe(false)
  })

  it('no live message is lost while it is replaced, and what is retained comes each time [MQTT-3.8.4-4]', async () => {
    const { client, join } = await joined()
    const sender = await join('sender')
    await say(sender, packetOf('31', textOf('kept'), '00 78'))
    await say(client, subscribe('00 01', ['+', '21']))
    for (let i = 0; i < 50; i++) {
      const number = `00 ${i.toString(16).padStart(2, '0')}`
      sender.transport.write(Uint8Array.from([0x32, 8, 0, 1, 0x74, 1, i, 0, 0, i]))
      const [suback, ...others] = await say(client, subscribe('00 01', ['+', '01']))
      const live = [suback, ...others].filter((packet) => packet?.startsWith('32'))
      expect([number, live.map((packet) => packet?.slice(-5))]).toEqual([number, [number]])
      expect([suback, ...others].filter((packet) => packet?.startsWith('31'))).toEqual(['31 08 00 04 6b 65 70 74 00 78'])
    }
  })

  it('with several filters does what that many single ones do, with one SUBACK [MQTT-3.8.4-5]', async () => {
    const { client, broker } = await joined()
    broker.publish({ topic: 'a', payload: 'x', retain: true })
    const together = await say(client, subscribe('00 01', ['a', '02'], ['b', '01'], ['a', '08']))
    expect(together.filter((packet) => packet.startsWith('90'))).toEqual(['90 06 00 01 00 02 01 00'])
    expect(broker.sessions.get('a')?.subscriptions).toEqual([
      { filter: 'a', qos: 0, noLocal: false, retainAsPublished: true, identifier: undefined },
      { filter: 'b', qos: 1, noLocal: false, retainAsPublished: false, identifier: undefined },
    ])
    const apart = await joined()
    apart.broker.publish({ topic: 'a', payload: 'x', retain: true })
    const answers = await say(apart.client, subscribe('00 01', ['a', '02']), subscribe('00 02', ['b', '01']), subscribe('00 03', ['a', '08']))
    expect(together.filter((packet) => packet.startsWith('31'))).toEqual(answers.filter((packet) => packet.startsWith('31')))
    expect(apart.broker.sessions.get('a')?.subscriptions).toEqual(broker.sessions.get('a')?.subscriptions)
  })

  it('decides the QoS of deliveries: the lower of published and granted [MQTT-3.8.4-8]', async () => {
    for (const granted of [0, 1, 2]) {
      const { client, broker } = await joined()
      await say(client, subscribe('00 01', ['t', `0${granted}`]))
      for (const qos of [0, 1, 2] as const) broker.publish({ topic: 't', qos })
      await client.send()
      expect(heard(client).map((packet) => (Number.parseInt(packet.slice(0, 2), 16) >> 1) & 3)).toEqual(
        [0, 1, 2].map((qos) => Math.min(qos, granted)),
      )
    }
  })
})

describe('what explains is left out where it does not fit', () => {
  const explained: Properties[] = [{ reasonString: 'why it is so' }, { userProperties: [['name', 'value']] }]

  it.each(explained)('%j in SUBACK [MQTT-3.9.2-1] [MQTT-3.9.2-2]', async (properties) => {
    const { join } = world({
      authorizeSubscribe: () => false,
      intercept: (direction, packet) => (direction === 'out' && packet.type === 'suback' ? ({ ...packet, properties } as ServerPacket) : undefined),
    })
    const answer = async (maximumPacketSize: number) => {
      const client = await join('a', { properties: { maximumPacketSize } })
      heard(client)
      return [...(await say(client, subscribe('00 01', ['t', '00']))), endOf(client).closed]
    }
    const [whole] = await answer(1000)
    const size = (whole as string).split(' ').length
    expect(size).toBeGreaterThan(18)
    expect(await answer(size)).toEqual([whole, false])
    expect(await answer(size - 1)).toEqual(['90 04 00 01 00 87', false])
    expect(await answer(16)).toEqual(['90 04 00 01 00 87', false])
  })
})
