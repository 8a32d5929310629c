/**
 * What a broker announces in CONNACK is shown, and kept before anything is sent; what a client announces is kept by the broker.
 */
import { expect } from 'vitest'
import type { Client, ClientEvents } from '../../../src/client/node.js'
import { limits as narrow } from '../brokers.js'
import type { Feature, World } from '../target.js'
import { eventually, failure, sequence, take, takeTexts, textsUntil, within } from '../waiting.js'

/** The refusals of a client, none of which may cost it a byte or the connection. */
async function refusesLocally(
  world: World,
  calls: (client: Client) => Record<string, [code: string, promise: Promise<unknown>]>,
): Promise<void> {
  const [client, subscription] = [
    await world.connect(),
    await (await world.connect()).subscribe(world.topic('#')),
  ]
  const sent: string[] = []
  client.on('packet', ({ direction, packet }) => {
    if (direction === 'out') sent.push(packet.type)
  })
  for (const [name, [code, promise]] of Object.entries(calls(client))) {
    expect(await failure(promise, name), name).toMatchObject({
      code,
      outcome: 'not-sent',
      fault: 'local',
    })
  }
  expect(sent).toEqual([])
  await within(client.publish(world.topic('fits'), 'x', { qos: 1 }), 'a publish afterwards')
  expect((await take(subscription)).topic).toBe(world.topic('fits'))
  expect(client.state).toBe('connected')
}

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
      const above = Buffer.concat([largest(topic, limit), Buffer.from('x')])
      await refusesLocally(world, (client) => ({
        publish: ['ERR_PACKET_TOO_LARGE', client.publish(topic, above)],
        'publish at QoS 1': [
          'ERR_PACKET_TOO_LARGE',
          client.publish(topic, largest(topic, limit), { qos: 1 }),
        ],
        'size of a filter': ['ERR_PACKET_TOO_LARGE', client.subscribe('a'.repeat(limit))],
        'size of an UNSUBSCRIBE': ['ERR_PACKET_TOO_LARGE', client.unsubscribe('b'.repeat(limit))],
      }))
      const [sender, subscription] = await world.pair(topic)
      expect(sender.negotiated?.maximumPacketSize).toBe(limit)
      await sender.publish(topic, largest(topic, limit))
      expect((await take(subscription)).payload.length).toBe(largest(topic, limit).length)
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
    title: 'Maximum QoS 1 is shown; QoS 2 is refused locally; a subscription at 2 is granted 1',
    setup: 'lesser',
    reach: 'TCP',
    async run(world) {
      const topic = world.topic('a')
      await refusesLocally(world, (client) => ({
        'QoS 2': ['ERR_QOS_UNSUPPORTED', client.publish(topic, 'x', { qos: 2 })],
      }))
      const client = await world.connect()
      expect(client.negotiated?.maximumQoS).toBe(1)
      const [grant] = (await client.subscribe(topic, { qos: 2 })).granted
      expect([grant?.qos, grant?.reasonCode, grant?.error]).toEqual([1, 1, undefined])
      const required = await failure(
        client.subscribe(world.topic('b'), { qos: 2, requireQos: true }),
        'a required QoS',
      )
      expect(required.code).toBe('ERR_SUBSCRIBE_REFUSED')
    },
  },
  {
    name: 'no retained messages',
    title: 'Retain Available 0 is shown; RETAIN is refused locally',
    setup: 'lesser',
    reach: 'TCP',
    async run(world) {
      const topic = world.topic('a')
      await refusesLocally(world, (client) => ({
        retain: ['ERR_RETAIN_UNSUPPORTED', client.publish(topic, 'x', { retain: true })],
      }))
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
