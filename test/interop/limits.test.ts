/** What a broker announces in CONNACK is shown, and kept before anything is sent (pain 9). */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Client, ClientEvents, QoS } from '../../src/client/node.js'
import { type Broker, startAedes, startMosquitto, withMosquitto } from './brokers.js'
import { inWorld, type Target, type World } from './target.js'
import { eventually, failure, sequence, take, within } from './waiting.js'

const packetLimit = 2000
const window = 20

function on(target: Target, title: string, run: (world: World) => Promise<void>): void {
  let broker: Broker | undefined
  beforeAll(async () => {
    broker = await target.start()
  })
  afterAll(() => broker?.stop())
  it(title, () => inWorld(target, broker as Broker, run))
}

/** Publishes of a client that are in flight, now and at most. */
function inFlight(client: Client): { now: number; peak: number } {
  const count = { now: 0, peak: 0 }
  client.on('packet', ({ direction, packet }: ClientEvents['packet']) => {
    if (direction === 'out' && packet.type === 'publish' && packet.qos > 0) count.now += 1
    if (direction === 'in' && (packet.type === 'puback' || packet.type === 'pubcomp')) count.now -= 1
    count.peak = Math.max(count.peak, count.now)
  })
  return count
}

async function keepsTheWindow(world: World): Promise<void> {
  const topic = world.topic('load')
  const [sender, subscription] = await world.pair(topic, { qos: 2 })
  expect(sender.negotiated?.receiveMaximum).toBe(window)
  const count = inFlight(sender)
  const got: string[] = []
  const reading = (async () => {
    for await (const message of subscription) got.push(message.text())
  })()
  reading.catch(() => undefined)
  const sent = sequence(1000).map((text, index) => sender.publish(topic, text, { qos: (1 + (index % 2)) as QoS }))
  await within(Promise.all(sent), 'the receipts')
  await eventually(() => got.length >= 1000, 'every message')
  expect(count).toEqual({ now: 0, peak: window })
  expect([...got].sort()).toEqual(sequence(1000).sort())
  for (const parity of [0, 1]) {
    expect(got.filter((text) => Number(text) % 2 === parity)).toEqual(sequence(1000).filter((text) => Number(text) % 2 === parity))
  }
}

/** The refusals of a client, none of which may cost it a byte or the connection. */
async function refusesLocally(world: World, calls: (client: Client) => Record<string, [code: string, promise: Promise<unknown>]>): Promise<void> {
  const [client, subscription] = [await world.connect(), await (await world.connect()).subscribe(world.topic('#'))]
  const sent: string[] = []
  client.on('packet', ({ direction, packet }) => {
    if (direction === 'out') sent.push(packet.type)
  })
  for (const [name, [code, promise]] of Object.entries(calls(client))) {
    expect(await failure(promise, name), name).toMatchObject({ code, outcome: 'not-sent', fault: 'local' })
  }
  expect(sent).toEqual([])
  await within(client.publish(world.topic('fits'), 'x', { qos: 1 }), 'a publish afterwards')
  expect((await take(subscription)).topic).toBe(world.topic('fits'))
  expect(client.state).toBe('connected')
}

/** Fixed header 3, length of the topic 2, properties 1. */
function largest(topic: string): Uint8Array {
  return new Uint8Array(packetLimit - 6 - Buffer.byteLength(topic))
}

const asAedes = (options: Parameters<typeof startAedes>[0]): Target => ({
  broker: 'aedes',
  transport: 'TCP',
  start: () => startAedes(options),
  clientOptions: { receiveMaximum: 65_535 },
  lacks: {},
})
const asMosquitto = (lines: readonly string[], listenerLines: readonly string[] = []): Target => ({
  broker: 'mosquitto',
  transport: 'TCP',
  start: () => startMosquitto({ lines, listenerLines }),
  lacks: {},
})

describe('aedes with limits', () => {
  const target = asAedes({ receiveMaximum: window, maximumPacketSize: packetLimit, keepaliveLimit: 1 })
  describe('window', () => on(target, 'F01 F03 pain 9: 1,000 publishes at QoS 1 and 2 at once keep to a Receive Maximum of 20', keepsTheWindow))
  describe('keep-alive', () => {
    on(target, 'A20 B01: Server Keep Alive 1 takes the place of ours, and keeps the client connected', async (world) => {
      const client = await world.connect({ keepAlive: 60 })
      expect(client.negotiated).toMatchObject({
        keepAlive: 1,
        serverKeepAlive: 1,
        maximumPacketSize: packetLimit,
        sharedSubscriptionAvailable: false,
      })
      let pings = 0
      client.on('packet', ({ packet }) => {
        if (packet.type === 'pingreq') pings += 1
      })
      const began = performance.now()
      await eventually(() => performance.now() - began >= 2500, 'the time in which the server would give up')
      expect(client.state).toBe('connected')
      expect(pings).toBeGreaterThanOrEqual(2)
    })
  })
  describe('packet size', () => {
    on(target, 'D33 pain 9: Maximum Packet Size is kept to the byte', async (world) => {
      const topic = world.topic('a')
      await refusesLocally(world, (client) => ({
        publish: ['ERR_PACKET_TOO_LARGE', client.publish(topic, Buffer.concat([largest(topic), Buffer.from('x')]))],
        'publish at QoS 1': ['ERR_PACKET_TOO_LARGE', client.publish(topic, largest(topic), { qos: 1 })],
      }))
      const [sender, subscription] = await world.pair(topic)
      await sender.publish(topic, largest(topic))
      expect((await take(subscription)).payload.length).toBe(largest(topic).length)
    })
  })
})

function mosquittoTests(): void {
  describe('mosquitto with a window', () => {
    const target = asMosquitto([`max_inflight_messages ${window}`])
    on(target, 'F01 F03 pain 9: 1,000 publishes at QoS 1 and 2 at once keep to a Receive Maximum of 20', keepsTheWindow)
  })
  const limited = asMosquitto([`max_packet_size ${packetLimit}`, 'max_keepalive 15', 'retain_available false'], ['max_qos 1'])
  describe('mosquitto with limits', () => {
    on(limited, 'A20: each limit is shown', async (world) => {
      const wanted = { maximumQoS: 1, retainAvailable: false, maximumPacketSize: packetLimit, keepAlive: 15, serverKeepAlive: 15 }
      expect((await world.connect({ keepAlive: 60 })).negotiated).toMatchObject(wanted)
      expect((await world.connect({ keepAlive: 10 })).negotiated).toMatchObject({ keepAlive: 10, serverKeepAlive: undefined })
    })
  })
  describe('mosquitto with limits', () => {
    on(limited, 'pain 9 D21 D22: QoS, RETAIN and size above the limits are refused locally, and the connection stays up', async (world) => {
      const topic = world.topic('a')
      await refusesLocally(world, (client) => ({
        'QoS 2': ['ERR_QOS_UNSUPPORTED', client.publish(topic, 'x', { qos: 2 })],
        retain: ['ERR_RETAIN_UNSUPPORTED', client.publish(topic, 'x', { retain: true })],
        size: ['ERR_PACKET_TOO_LARGE', client.publish(topic, Buffer.concat([largest(topic), Buffer.from('x')]))],
        'size at QoS 1': ['ERR_PACKET_TOO_LARGE', client.publish(topic, largest(topic), { qos: 1 })],
        'size of a filter': ['ERR_PACKET_TOO_LARGE', client.subscribe('a'.repeat(packetLimit))],
        'size of an UNSUBSCRIBE': ['ERR_PACKET_TOO_LARGE', client.unsubscribe('b'.repeat(packetLimit))],
      }))
      const [sender, subscription] = await world.pair(topic)
      await sender.publish(topic, largest(topic))
      expect((await take(subscription)).payload.length).toBe(largest(topic).length)
    })
  })
  describe('mosquitto with limits', () => {
    on(limited, 'I10 C03 D06: what was queued before CONNACK is refused alone; a subscription is granted less than asked', async (world) => {
      const client = world.client()
      const fits = client.publish(world.topic('a'), 'fits', { qos: 1 })
      const above = failure(client.publish(world.topic('a'), 'above', { qos: 2 }), 'QoS 2')
      const retained = failure(client.publish(world.topic('a'), 'retained', { qos: 1, retain: true }), 'retain')
      await within(client.connect(), 'connecting')
      // D06: nobody has subscribed.
      expect(await within(fits, 'the one that fits')).toMatchObject({ reasonCode: 0x10, reasonName: 'No matching subscribers' })
      expect(await above).toMatchObject({ code: 'ERR_QOS_UNSUPPORTED', outcome: 'not-sent' })
      expect(await retained).toMatchObject({ code: 'ERR_RETAIN_UNSUPPORTED', outcome: 'not-sent' })
      expect((await client.subscribe(world.topic('a'), { qos: 2 })).granted).toMatchObject([{ qos: 1, reasonCode: 1, error: undefined }])
      const required = await failure(client.subscribe(world.topic('b'), { qos: 2, requireQos: true }), 'a required QoS')
      expect(required.code).toBe('ERR_SUBSCRIBE_REFUSED')
    })
  })
  describe('mosquitto with limits', () => {
    on(limited, 'A34 A35: a will above the limits is refused with 0x9B or 0x9A', async (world) => {
      const qos = await failure(world.connect({ will: { topic: world.topic('will'), qos: 2 } }), 'a will at QoS 2')
      expect(qos).toMatchObject({ code: 'ERR_CONNECT_REFUSED', reasonCode: 0x9b })
      const retain = await failure(world.connect({ will: { topic: world.topic('will'), retain: true } }), 'a retained will')
      expect(retain).toMatchObject({ code: 'ERR_CONNECT_REFUSED', reasonCode: 0x9a })
    })
  })
}

withMosquitto(['TCP'], mosquittoTests)
