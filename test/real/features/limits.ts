/**
 * What a broker announces in CONNACK is shown, and kept before anything is sent; what a client announces is kept by the broker; and reason codes for
 * what is not allowed.
 */
import { expect } from 'vitest'
import { account, limits as narrow } from '../brokers.js'
import type { Feature } from '../target.js'
import { eventually, failure, sequence, take, takeTexts, textsUntil, within } from '../waiting.js'

/** Fixed header 3, length of the topic 2, properties 1. */
function largest(topic: string, limit: number): Uint8Array {
  return new Uint8Array(limit - 6 - Buffer.byteLength(topic))
}

export const limits: readonly Feature[] = [
  {
    name: 'server keep alive',
    title: 'Server Keep Alive takes the place of a longer keep-alive, and is shown',
    setup: 'narrow',
    reach: 'TCP',
    async run(world) {
      const longer = await world.connect({ keepAlive: 60 })
      expect(longer.negotiated).toMatchObject({
        keepAlive: narrow.keepAlive,
        serverKeepAlive: narrow.keepAlive,
      })
      expect((await world.connect({ keepAlive: 10 })).negotiated?.keepAlive).toBe(10)
    },
  },
  {
    name: 'largest packet of the broker',
    title: 'Maximum Packet Size of the broker is shown, and kept to the byte',
    setup: 'narrow',
    reach: 'TCP',
    async run(world) {
      const [topic, limit] = [world.topic('a'), narrow.maximumPacketSize]
      const [sender, subscription] = await world.pair(topic)
      expect(sender.negotiated?.maximumPacketSize).toBe(limit)
      await sender.publish(topic, largest(topic, limit))
      expect((await take(subscription)).payload.length).toBe(largest(topic, limit).length)
      const above = new Uint8Array(largest(topic, limit).length + 1)
      const error = await failure(sender.publish(topic, above), 'a byte more')
      expect(error).toMatchObject({ code: 'ERR_PACKET_TOO_LARGE', outcome: 'not-sent' })
    },
  },
  {
    name: 'largest packet of the client',
    title:
      'what exceeds the Maximum Packet Size of the client is left out by the broker, and what follows arrives',
    reach: 'TCP',
    async run(world) {
      const topic = world.topic('a')
      const [sender, client] = [
        await world.connect(),
        await world.connect({ maximumPacketSize: 500 }),
      ]
      const subscription = await client.subscribe(topic, { qos: 1 })
      for (const qos of [0, 1] as const) {
        await within(sender.publish(topic, 'x'.repeat(1000), { qos }), 'the receipt')
        await within(sender.publish(topic, `after ${qos}`, { qos }), 'the receipt')
        expect(await textsUntil(subscription, `after ${qos}`)).toEqual([])
      }
      expect(client.state).toBe('connected')
    },
  },
  {
    name: 'inbound window at QoS 2',
    title:
      'at QoS 2 too an unread subscription stops the broker at Receive Maximum, and nothing is lost or comes twice',
    reach: 'TCP',
    async run(world) {
      const topic = world.topic('slow')
      const [sender, client] = [await world.connect(), await world.connect({ receiveMaximum: 5 })]
      const stalled = await client.subscribe(topic, { qos: 2 })
      await within(
        Promise.all(sequence(50).map((text) => sender.publish(topic, text, { qos: 2 }))),
        'the receipts',
      )
      await eventually(() => stalled.size === 5, 'the window to fill')
      expect(await takeTexts(stalled, 50)).toEqual(sequence(50))
      await within(sender.publish(topic, 'last', { qos: 2 }), 'the receipt')
      expect(await textsUntil(stalled, 'last')).toEqual([])
    },
  },
  {
    name: 'maximum QoS',
    title: 'Maximum QoS 1 is shown; a subscription at 2 is granted 1',
    setup: 'lesser',
    reach: 'TCP',
    async run(world) {
      const topic = world.topic('a')
      const client = await world.connect()
      expect(client.negotiated?.maximumQoS).toBe(1)
      const [grant] = (await client.subscribe(topic, { qos: 2 })).granted
      expect([grant?.qos, grant?.reasonCode, grant?.error]).toEqual([1, 1, undefined])
    },
  },
  {
    name: 'no retained messages',
    title: 'Retain Available 0 is shown',
    setup: 'lesser',
    reach: 'TCP',
    async run(world) {
      expect((await world.connect()).negotiated?.retainAvailable).toBe(false)
    },
  },
  {
    name: 'will above the limits',
    title: 'a will above the limits is refused with 0x9B or 0x9A',
    setup: 'lesser',
    reach: 'TCP',
    async run(world) {
      const qos = await failure(
        world.connect({ will: { topic: world.topic('will'), qos: 2 } }),
        'a will at QoS 2',
      )
      expect(qos).toMatchObject({ code: 'ERR_CONNECT_REFUSED', reasonCode: 0x9b })
      const retain = await failure(
        world.connect({ will: { topic: world.topic('will'), retain: true } }),
        'a retained will',
      )
      expect(retain).toMatchObject({ code: 'ERR_CONNECT_REFUSED', reasonCode: 0x9a })
    },
  },
]

export const access: readonly Feature[] = [
  ...([1, 2] as const).map(
    (qos): Feature => ({
      name: `refused publish at QoS ${qos}`,
      title: `a publish that is not allowed rejects with 0x87 of ${qos === 1 ? 'PUBACK' : 'PUBREC'}; the connection goes on`,
      setup: 'guarded',
      reach: 'TCP',
      async run(world) {
        const client = await world.connect(account)
        const all = await client.subscribe(world.topic('#'), { qos: 1 })
        const error = await failure(
          client.publish(world.topic('denied/a'), 'x', { qos }),
          'the publish',
        )
        expect(error).toMatchObject({
          code: 'ERR_PUBLISH_REFUSED',
          reasonCode: 0x87,
          outcome: 'refused',
          fault: 'remote',
        })
        await within(
          client.publish(world.topic('allowed'), 'last', { qos }),
          'a publish afterwards',
        )
        expect(await textsUntil(all, 'last')).toEqual([])
        expect(client.state).toBe('connected')
      },
    }),
  ),
  {
    name: 'refused publish at QoS 0',
    title:
      'a publish at QoS 0 that is not allowed is dropped by the broker; the connection goes on',
    setup: 'guarded',
    reach: 'TCP',
    async run(world) {
      const client = await world.connect(account)
      const all = await client.subscribe(world.topic('#'), { qos: 1 })
      await client.publish(world.topic('denied/a'), 'x')
      await within(
        client.publish(world.topic('allowed'), 'last', { qos: 1 }),
        'a publish afterwards',
      )
      expect(await textsUntil(all, 'last')).toEqual([])
    },
  },
  {
    name: 'refused subscription',
    title:
      'a filter that is not allowed is refused with 0x87, and others of the same SUBSCRIBE are granted',
    setup: 'guarded',
    reach: 'TCP',
    async run(world) {
      const client = await world.connect(account)
      const error = await failure(
        client.subscribe(world.topic('denied/#'), { qos: 1 }),
        'subscribing',
      )
      expect(error).toMatchObject({
        code: 'ERR_SUBSCRIBE_REFUSED',
        reasonCode: 0x87,
        fault: 'remote',
      })
      const mixed = await within(
        client.subscribe([world.topic('denied/a'), world.topic('allowed')], { qos: 1 }),
        'subscribing',
      )
      expect(mixed.granted.map(({ reasonCode, error }) => [reasonCode, error?.code])).toEqual([
        [0x87, 'ERR_SUBSCRIBE_REFUSED'],
        [0x01, undefined],
      ])
      await within(client.publish(world.topic('allowed'), 'x', { qos: 1 }), 'the receipt')
      expect((await take(mixed)).text()).toBe('x')
    },
  },
  {
    name: 'no matching subscribers',
    ownBroker: true,
    title: 'a publish at QoS 1 that nobody has subscribed to is acknowledged with 0x10',
    reach: 'TCP',
    async run(world) {
      const client = await world.connect()
      const receipt = await within(
        client.publish(world.topic('nobody'), 'x', { qos: 1 }),
        'the receipt',
      )
      expect(receipt).toMatchObject({ reasonCode: 0x10, reasonName: 'No matching subscribers' })
    },
  },
]
