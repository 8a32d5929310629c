/**
 * Proofs of the server role, sections 3.10 and 3.11: UNSUBSCRIBE and UNSUBACK of the broker in memory.
 */
import { describe, expect, it } from 'vitest'
import type { Properties, ServerPacket } from '../../../src/wire/index.js'
import { durable, type RawClient, type World, world } from '../raw-client.js'
import { endOf, heard, packetOf, say, textOf } from './wire.js'

const unsubscribe = (packetId: string, ...filters: string[]): string => packetOf('a2', packetId, '00', ...filters.map(textOf))

async function subscribed(...filters: string[]): Promise<World & { client: RawClient }> {
  const all = world()
  const client = await all.join('a', durable)
  for (const filter of filters) await client.subscribe({ filter, qos: 2 })
  client.take()
  heard(client)
  return { ...all, client }
}

describe('UNSUBSCRIBE', () => {
  it.each(['a0', 'a1', 'a3', 'a6', 'aa', 'af'])(
    'that begins with %s is malformed: 0x81, and the subscription stays [MQTT-3.10.1-1]',
    async (first) => {
      const { client, broker } = await subscribed('t')
      const [last, ...more] = await say(client, `${first}${unsubscribe('00 01', 't').slice(2)}`)
      expect([last?.slice(0, 2), last?.slice(6, 8), more, client.ended !== undefined]).toEqual(['e0', '81', [], true])
      expect(broker.sessions.get('a')?.subscriptions).toMatchObject([{ filter: 't' }])
    },
  )

  it('takes away the subscription whose filter is the same to the character, and no other [MQTT-3.10.4-1]', async () => {
    const { client, broker } = await subscribed('a/#', 'é')
    for (const filter of ['a/+', 'A/#', 'a', 'a/', '#', 'e\u0301', '/a/#']) {
      expect([filter, await say(client, unsubscribe('00 01', filter))]).toEqual([filter, ['b0 04 00 01 00 11']])
    }
    broker.publish({ topic: 'a/b' })
    expect(await client.messages()).toEqual(['a/b '])
    heard(client)
    expect(await say(client, unsubscribe('00 01', 'a/#'))).toEqual(['b0 04 00 01 00 00'])
    broker.publish({ topic: 'a/b' })
    expect(await client.messages()).toEqual([])
    broker.publish({ topic: 'é' })
    expect(await client.messages()).toEqual(['é '])
  })

  it('from then on nothing more is added for the client, connected or away [MQTT-3.10.4-2]', async () => {
    const { client, broker, join } = await subscribed('t')
    // Sent before in the same write comes, sent after does not.
    const publish = (payload: string) => packetOf('32', textOf('t'), payload, '00', payload)
    expect((await say(client, publish('00 01'), unsubscribe('00 02', 't'), publish('00 03'))).map((packet) => packet.slice(0, 2))).toEqual([
      '32',
      '40',
      'b0',
      '40',
    ])
    expect(broker.publish({ topic: 't', qos: 1 })).toBe(false)
    await client.cut()
    broker.publish({ topic: 't', qos: 1 })
    expect(broker.sessions.get('a')).toMatchObject({ queued: 0, inflight: 1 })
    const again = await join('a', durable)
    expect(
      heard(again)
        .slice(1)
        .map((packet) => packet.slice(0, 2)),
    ).toEqual(['3a'])
  })

  it('deliveries that have begun are carried through, on this connection and the next [MQTT-3.10.4-3]', async () => {
    const { client, broker, join } = await subscribed('t')
    for (const qos of [1, 2, 2, 2] as const) broker.publish({ topic: 't', qos })
    await client.send()
    await say(client, '50 02 00 02')
    expect(await say(client, unsubscribe('00 09', 't'))).toEqual(['b0 04 00 09 00 00'])
    expect(await say(client, '50 02 00 03')).toEqual(['62 02 00 03'])
    expect(await say(client, '70 02 00 03')).toEqual([])
    await client.cut()
    const again = await join('a', durable)
    expect(heard(again).slice(1)).toEqual(['62 02 00 02', '3a 06 00 01 74 00 01 00', '3c 06 00 01 74 00 04 00'])
    expect(await say(again, '70 02 00 02', '40 02 00 01', '50 02 00 04', '70 02 00 04')).toEqual(['62 02 00 04'])
    expect([broker.sessions.get('a')?.inflight, broker.violations]).toEqual([0, []])
  })

  it('has one UNSUBACK each, also where nothing was subscribed, with its identifier [MQTT-3.10.4-4] [MQTT-3.10.4-5] [MQTT-2.2.1-6]', async () => {
    const { client } = await subscribed('t')
    expect(await say(client, unsubscribe('00 09', 'unknown'), unsubscribe('ff ff', 't'), unsubscribe('01 00', 't'))).toEqual([
      'b0 04 00 09 00 11',
      'b0 04 ff ff 00 00',
      'b0 04 01 00 00 11',
    ])
  })

  it('with several filters does what that many single ones do, with one UNSUBACK whose codes are in their order [MQTT-3.10.4-6] [MQTT-3.11.3-1] [MQTT-3.11.3-2]', async () => {
    const { client, broker } = await subscribed('known/1', 'known/2', 'stays')
    expect(await say(client, unsubscribe('00 05', 'known/1', 'unknown', 'known/2', 'known/1'))).toEqual(['b0 07 00 05 00 00 11 00 11'])
    expect(broker.sessions.get('a')?.subscriptions.map(({ filter }) => filter)).toEqual(['stays'])
  })

  it('whose identifier is in use is refused by 0x91 for every filter, with nothing done [MQTT-3.11.3-2]', async () => {
    const { client, broker } = await subscribed('a', 'b')
    await say(client, packetOf('34', textOf('t'), '00 05 00'))
    expect(await say(client, unsubscribe('00 05', 'a', 'b'))).toEqual(['b0 05 00 05 00 91 91'])
    expect(broker.sessions.get('a')?.subscriptions).toHaveLength(2)
  })

  it.each([0x00, 0x11, 0x80, 0x83, 0x87, 0x8f, 0x91])(
    'a fault can make it say %i, and nothing that it cannot [MQTT-3.11.3-2]',
    async (reasonCode) => {
      const { client, broker } = await subscribed('a', 'b')
      broker.faults.add({ packet: 'unsubscribe', direction: 'in', nth: 1, action: { reasonCode } })
      const code = reasonCode.toString(16).padStart(2, '0')
      expect(await say(client, unsubscribe('00 05', 'a', 'b'))).toEqual([`b0 05 00 05 00 ${code} ${code}`])
      for (let other = 0; other < 256; other++) {
        const sayable = [0x00, 0x11, 0x80, 0x83, 0x87, 0x8f, 0x91].includes(other)
        const add = () => broker.faults.add({ packet: 'unsubscribe', direction: 'in', nth: 1, action: { reasonCode: other } })
        if (sayable) add()
        else expect(add).toThrow(/reason code/)
      }
    },
  )
})

describe('what explains is left out where it does not fit', () => {
  const explained: Properties[] = [{ reasonString: 'why it is so' }, { userProperties: [['name', 'value']] }]

  it.each(explained)('%j in UNSUBACK [MQTT-3.11.2-1] [MQTT-3.11.2-2]', async (properties) => {
    const { join } = world({
      intercept: (direction, packet) => (direction === 'out' && packet.type === 'unsuback' ? ({ ...packet, properties } as ServerPacket) : undefined),
    })
    const answer = async (maximumPacketSize: number) => {
      const client = await join('a', { properties: { maximumPacketSize } })
      heard(client)
      return [...(await say(client, unsubscribe('00 01', 't'))), endOf(client).closed]
    }
    const [whole] = await answer(1000)
    const size = (whole as string).split(' ').length
    expect(size).toBeGreaterThan(18)
    expect(await answer(size)).toEqual([whole, false])
    expect(await answer(size - 1)).toEqual(['b0 04 00 01 00 11', false])
    expect(await answer(16)).toEqual(['b0 04 00 01 00 11', false])
  })
})
