/**
 * Proofs of the server role, sections 2.2.1 and 4.3: the three qualities of service, with the broker in memory as sender and as receiver.
 *
 * What is sent again on the next connection is in `broker-session.test.ts`; that identifiers go round and leave out those in use takes long and is in
 * `test/broker/flow.test.ts`.
 */
import { describe, expect, it } from 'vitest'
import { durable, type RawClient, type World, world } from '../raw-client.js'
import { heard, packetOf, propertiesOf, say, textOf } from './wire.js'

const publish = (first: string, packetId: string, payload = '78', properties = '00'): string =>
  packetOf(first, textOf('t'), packetId, properties, payload)

/** A sender and a subscriber of `t` at QoS 0, which hears of every delivery. */
async function receiver(options: Parameters<typeof world>[0] = {}): Promise<World & { sender: RawClient; taken: () => Promise<string[]> }> {
  const all = world(options)
  const [sender, watcher] = [await all.join('sender', durable), await all.join('watcher')]
  await watcher.subscribe({ filter: 't', qos: 0 })
  heard(sender)
  watcher.take()
  return { ...all, sender, taken: () => watcher.messages() }
}

/** A subscriber of `t` at QoS 2 that acknowledges nothing by itself. */
async function subscriber(): Promise<World & { client: RawClient }> {
  const all = world()
  const client = await all.join('a', durable)
  await client.subscribe('t')
  heard(client)
  return { ...all, client }
}

/** The identifiers of publishes as hex. */
const idsOf = (packets: readonly string[]): number[] => packets.map((packet) => Number.parseInt(packet.slice(15, 20).replace(' ', ''), 16))

describe('QoS 0, the broker as sender', () => {
  it('has no packet identifier, neither QoS nor DUP bits, and is sent once [MQTT-2.2.1-2] [MQTT-4.3.1-1]', async () => {
    const { client, broker, join } = await subscriber()
    broker.publish({ topic: 't', payload: 'x' })
    await client.send()
    expect(heard(client)).toEqual(['30 05 00 01 74 00 78'])
    await client.cut()
    expect(heard(await join('a', durable))).toHaveLength(1)
  })
})

describe('QoS 1 and 2, the broker as sender', () => {
  it('a new message has an identifier that is neither 0 nor in use, QoS, and no DUP [MQTT-2.2.1-4] [MQTT-4.3.2-1] [MQTT-4.3.2-2] [MQTT-4.3.3-1] [MQTT-4.3.3-2]', async () => {
    const { client, broker } = await subscriber()
    for (let i = 0; i < 40; i++) broker.publish({ topic: 't', qos: i % 2 === 0 ? 1 : 2 })
    await client.send()
    const packets = heard(client)
    expect(packets.map((packet) => packet.slice(0, 2))).toEqual(Array.from({ length: 40 }, (_none, at) => (at % 2 === 0 ? '32' : '34')))
    expect(new Set(idsOf(packets)).size).toBe(40)
    expect(idsOf(packets)).not.toContain(0)
    // Across a connection those that are open stay so.
    await client.cut()
    expect(broker.sessions.get('a')?.inflight).toBe(40)
  })

  it('QoS 1 is open until its PUBACK, and only that one’s [MQTT-4.3.2-3]', async () => {
    const { client, broker } = await subscriber()
    for (let i = 0; i < 2; i++) broker.publish({ topic: 't', qos: 1 })
    await client.send()
    heard(client)
    await say(client, '40 02 00 07', '70 02 00 01')
    expect(broker.sessions.get('a')?.inflight).toBe(2)
    await say(client, '40 02 00 01')
    expect(broker.sessions.get('a')?.inflight).toBe(1)
    await say(client, '40 02 00 02')
    expect(broker.sessions.get('a')?.inflight).toBe(0)
  })

  it('QoS 2 is open until its PUBREC, then until its PUBCOMP [MQTT-4.3.3-3] [MQTT-4.3.3-4] [MQTT-4.3.3-5]', async () => {
    const { client, broker, join } = await subscriber()
    broker.publish({ topic: 't', qos: 2 })
    await client.send()
    heard(client)
    // PUBCOMP before its time ends nothing.
    await say(client, '70 02 00 01')
    expect(broker.sessions.get('a')?.inflight).toBe(1)
    expect(await say(client, '50 02 00 01')).toEqual(['62 02 00 01'])
    await client.cut()
    const again = await join('a', durable)
    expect(heard(again).slice(1)).toEqual(['62 02 00 01'])
    await say(again, '70 02 00 01')
    expect(broker.sessions.get('a')?.inflight).toBe(0)
  })

  it.each(['00', '10'])('a PUBREC of %s is answered by PUBREL [MQTT-4.3.3-4]', async (code) => {
    const { client, broker } = await subscriber()
    broker.publish({ topic: 't', qos: 2 })
    await client.send()
    heard(client)
    // 0x10 is for servers to say: a client that says it is in error, and gets no PUBREL.
    expect(await say(client, `50 03 00 01 ${code}`)).toEqual(code === '00' ? ['62 02 00 01'] : [expect.stringMatching(/^e0 .. 8[12]/)])
  })

  it('one of 0x80 or more is not, and its identifier and place are free again [MQTT-4.3.3-4] [MQTT-4.9.0-2]', async () => {
    const { broker, join } = world()
    const client = await join('a', { properties: { receiveMaximum: 1 } })
    await client.subscribe('t')
    for (let i = 0; i < 2; i++) broker.publish({ topic: 't', qos: 2 })
    await client.send()
    heard(client)
    expect(await say(client, '50 03 00 01 80')).toEqual(['34 06 00 01 74 00 02 00'])
    expect(broker.sessions.get('a')?.inflight).toBe(1)
  })

  it('expiry is not for what was sent: PUBLISH and PUBREL come again all the same [MQTT-4.3.3-7]', async () => {
    const { client, broker, join, clock } = await subscriber()
    for (let i = 0; i < 2; i++) broker.publish({ topic: 't', qos: 2, properties: { messageExpiryInterval: 1 } })
    await client.send()
    await say(client, '50 02 00 01')
    await client.cut()
    await clock.advance(2000)
    const again = await join('a', durable)
    expect(heard(again).slice(1)).toEqual(['62 02 00 01', '3c 0b 00 01 74 00 02 05 02 00 00 00 00'])
    expect(await say(again, '70 02 00 01', '50 02 00 02')).toEqual(['62 02 00 02'])
  })
})

describe('QoS 1, the broker as receiver', () => {
  it('takes the message over and answers PUBACK with its identifier [MQTT-4.3.2-4]', async () => {
    const { sender, taken } = await receiver()
    expect(await say(sender, publish('32', '12 34'))).toEqual(['40 02 12 34'])
    expect(await taken()).toEqual(['t x'])
  })

  it('after PUBACK the same identifier is a new message, with DUP or without [MQTT-4.3.2-5]', async () => {
    const { sender, taken } = await receiver()
    for (const first of ['32', '3a', '32']) expect(await say(sender, publish(first, '00 05'))).toEqual(['40 02 00 05'])
    expect(await taken()).toEqual(['t x', 't x', 't x'])
  })
})

describe('QoS 2, the broker as receiver', () => {
  it('takes the message over and answers PUBREC with its identifier [MQTT-4.3.3-8]', async () => {
    const { sender, taken } = await receiver()
    expect(await say(sender, publish('34', '01 02'))).toEqual(['50 02 01 02'])
    expect(await taken()).toEqual(['t x'])
  })

  it('until PUBREL a repeat is answered by PUBREC and not delivered, on this connection and the next [MQTT-4.3.3-10]', async () => {
    const { sender, taken, join } = await receiver()
    for (const first of ['34', '34', '3c']) expect(await say(sender, publish(first, '00 07'))).toEqual(['50 02 00 07'])
    await sender.cut()
    const again = await join('sender', durable)
    heard(again)
    for (const first of ['3c', '34']) expect(await say(again, publish(first, '00 07'))).toEqual(['50 02 00 07'])
    expect(await taken()).toEqual(['t x'])
    expect(await say(again, '62 02 00 07')).toEqual(['70 02 00 07'])
    expect(await taken()).toEqual([])
  })

  it('PUBREL is answered by PUBCOMP with its identifier, known or not [MQTT-4.3.3-11]', async () => {
    const { sender } = await receiver()
    await say(sender, publish('34', '00 07'))
    expect(await say(sender, '62 02 00 08', '62 02 00 07', '62 03 00 07 00', '62 04 00 07 92 00')).toEqual([
      '70 03 00 08 92',
      '70 02 00 07',
      '70 03 00 07 92',
      '70 03 00 07 92',
    ])
  })

  it('after PUBCOMP the same identifier is a new message [MQTT-4.3.3-12]', async () => {
    const { sender, taken } = await receiver()
    for (let i = 0; i < 3; i++) {
      expect(await say(sender, publish('34', '00 08'), '62 02 00 08')).toEqual(['50 02 00 08', '70 02 00 08'])
    }
    expect(await taken()).toEqual(['t x', 't x', 't x'])
  })

  it('after a PUBREC of 0x80 or more too [MQTT-4.3.3-9]', async () => {
    let verdict = 0x97
    const { sender, taken } = await receiver({ authorizePublish: () => verdict })
    for (verdict of [0x97, 0x87, 0x80]) expect(await say(sender, publish('34', '00 06'))).toEqual([`50 03 00 06 ${verdict.toString(16)}`])
    verdict = 0
    expect(await taken()).toEqual([])
    expect(await say(sender, publish('34', '00 06', '79'), '62 02 00 06')).toEqual(['50 02 00 06', '70 02 00 06'])
    expect(await taken()).toEqual(['t y'])
  })

  it('the handshake is finished though the message has expired [MQTT-4.3.3-13]', async () => {
    const { sender, clock, join } = await receiver()
    expect(await say(sender, publish('34', '00 05', '78', propertiesOf('02 00 00 00 01')))).toEqual(['50 02 00 05'])
    await clock.advance(2000)
    expect(await say(sender, publish('3c', '00 05', '78', propertiesOf('02 00 00 00 01')))).toEqual(['50 02 00 05'])
    await sender.cut()
    await clock.advance(2000)
    const again = await join('sender', durable)
    heard(again)
    expect(await say(again, '62 02 00 05')).toEqual(['70 02 00 05'])
  })
})

describe('order', () => {
  const numbers = Array.from({ length: 300 }, (_none, at) => at)

  /** The numbers of deliveries, per QoS. */
  const byQos = (packets: readonly string[]): number[][] =>
    ['0', '2', '4'].map((qos) =>
      packets.filter((packet) => packet[1] === qos).map((packet) => Number.parseInt(packet.slice(-5).replace(' ', ''), 16)),
    )

  it('messages of one publisher, topic and QoS arrive in their order: live, behind a quota, after waiting [MQTT-4.6.0-5] [MQTT-4.6.0-6]', async () => {
    const { join, broker } = world({ queueQoS0: true, maxQueuedMessages: 10_000 })
    const sender = await join('sender')
    const live = await join('live')
    const away = await join('away', durable)
    const slow = await join('slow', { properties: { receiveMaximum: 3 } })
    for (const client of [live, away, slow]) await client.subscribe({ filter: 'any/+', qos: 2 })
    await away.cut()
    for (const client of [sender, live, slow]) heard(client)
    const topic = textOf('any/name')
    const hexOf = (number: number): string => `${(number >> 8).toString(16).padStart(2, '0')} ${(number & 255).toString(16).padStart(2, '0')}`
    for (const number of numbers) {
      await say(
        sender,
        packetOf('30', topic, '00', hexOf(number)),
        packetOf('32', topic, '00 01 00', hexOf(number)),
        packetOf('34', topic, '00 02 00', hexOf(number)),
        '62 02 00 02',
      )
    }
    await live.send()
    expect(byQos(heard(live))).toEqual([numbers, numbers, numbers])
    const back = await join('away', { ...durable, cleanStart: false })
    expect(byQos(heard(back).slice(1))).toEqual([numbers, numbers, numbers])
    const received: string[] = []
    for (let news = heard(slow); news.length > 0; ) {
      received.push(...news.filter((packet) => packet.startsWith('3')))
      const answers = news.flatMap((packet) => {
        const packetId = packet.startsWith('6') ? packet.slice(6, 11) : packet.slice(6 + 3 * 10, 11 + 3 * 10)
        if (packet.startsWith('30')) return []
        return [`${packet.startsWith('32') ? '40' : packet.startsWith('34') ? '50' : '70'} 02 ${packetId}`]
      })
      news = answers.length === 0 ? [] : await say(slow, ...answers)
    }
    expect(byQos(received)).toEqual([numbers, numbers, numbers])
    expect(broker.violations).toEqual([])
  })
})
