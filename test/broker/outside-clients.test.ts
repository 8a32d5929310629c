/** The broker in memory on sockets, seen by a client of others: MQTT.js over TCP and WebSocket, on 5.0 and 3.1.1. */
import mqtt, { type IClientOptions, type IPublishPacket, type MqttClient } from 'mqtt'
import { afterEach, describe, expect, it } from 'vitest'
import type { MemoryBrokerOptions } from '../../src/testing/index.js'
import { MemoryBroker } from '../../src/testing/node.js'
import { within } from '../real/waiting.js'

let broker: MemoryBroker
let urls: Readonly<Record<'TCP' | 'WebSocket', string>>
const ends: (() => unknown)[] = []

afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end()
})

async function start(options: MemoryBrokerOptions = {}): Promise<void> {
  broker = new MemoryBroker(options)
  const { tcp, ws } = await broker.serve({ tcp: 0, ws: 0 })
  urls = { TCP: tcp?.url ?? '', WebSocket: ws?.url ?? '' }
  const made = broker
  ends.push(() => made.close())
}

const numbers = Array.from({ length: 20 }, (_none, index) => String(index))

describe.each([
  ['TCP', 5],
  ['WebSocket', 5],
  ['TCP', 4],
  ['WebSocket', 4],
] as const)('MQTT.js over %s, protocol level %i', (transport, protocolVersion) => {
  function dial(options: IClientOptions): MqttClient {
    const all = { protocolVersion, reconnectPeriod: 0, ...options }
    const client = mqtt.connect(urls[transport], all)
    client.on('error', () => undefined)
    ends.push(() => client.end(true))
    return client
  }

  function happens<T extends unknown[]>(client: MqttClient, event: string): Promise<T> {
    const came = new Promise<T>((resolve) => {
      client.once(event as 'close', (...values: unknown[]) => resolve(values as T))
    })
    return within(came, event)
  }

  async function join(options: IClientOptions = {}) {
    const client = dial(options)
    const messages: [text: string, packet: IPublishPacket][] = []
    client.on('message', (topic, payload, packet) => messages.push([`${topic} ${payload}`, packet]))
    const [connack] = await happens<[{ sessionPresent: boolean; properties?: object }]>(
      client,
      'connect',
    )
    const got = (...texts: string[]) =>
      expect.poll(() => messages.map(([text]) => text)).toEqual(texts)
    return Object.assign(client, { connack, messages, got })
  }

  it('publishes and receives at each QoS in order, keeps a message, and unsubscribes', async () => {
    await start()
    const [sender, receiver] = [await join(), await join()]
    await sender.publishAsync('events/kept', 'x', { qos: 1, retain: true })
    await receiver.subscribeAsync('events/+', { qos: 2 })
    for (const qos of [0, 1, 2] as const)
      await Promise.all(numbers.map((text) => sender.publishAsync(`events/${qos}`, text, { qos })))
    const texts = [0, 1, 2].flatMap((qos) => numbers.map((text) => `events/${qos} ${text}`))
    await receiver.got('events/kept x', ...texts)
    await receiver.unsubscribeAsync('events/+')
    expect([broker.publish({ topic: 'events/a' }), broker.violations]).toEqual([false, []])
  })

  it('is back in its session after a restart: QoS 1 and 2 arrive, QoS 2 once', async () => {
    await start()
    const properties = protocolVersion === 5 ? { properties: { sessionExpiryInterval: 60 } } : {}
    const client = await join({ clientId: 'a', clean: false, ...properties, reconnectPeriod: 20 })
    await client.subscribeAsync('t', { qos: 2 })
    broker.faults.add({ packet: 'pubrec', direction: 'out', nth: 2, action: 'restart-keep' })
    await Promise.all(numbers.map((text) => client.publishAsync('t', text, { qos: 2 })))
    await expect
      .poll(() => client.messages.map(([text]) => text).sort())
      .toEqual(numbers.map((text) => `t ${text}`).sort())
    expect(broker.accepted).toHaveLength(numbers.length)
    // MQTT.js repeats without the flag.
    const texts = new Set(broker.violations.map(({ text }) => text))
    expect([...texts].filter((text) => !text.includes('MQTT-3.3.1-1'))).toEqual([])
  })

  it('has a will, which a goodbye takes back; is taken over, and refused', async () => {
    await start({ authenticate: ({ username }) => username !== 'no' })
    const will = { topic: 'will', payload: Buffer.from('gone'), qos: 1 as const, retain: false }
    const watcher = await join()
    await watcher.subscribeAsync('will')
    await (await join({ clientId: 'polite', will })).endAsync()
    const older = await join({ clientId: 'same', will })
    const closed = happens(older, 'close')
    await join({ clientId: 'same' })
    await closed
    await watcher.got('will gone')
    const [error] = await happens<[{ code: number }]>(dial({ username: 'no' }), 'error')
    expect(error.code).toBe(protocolVersion === 5 ? 0x87 : 5)
  })

  if (protocolVersion !== 5 || transport !== 'TCP') return

  it('learns the limits, carries properties both ways, and goes through an exchange', async () => {
    const limits = { receiveMaximum: 7, topicAliasMaximum: 4, serverKeepAlive: 33 }
    const start0 = (data: Uint8Array | undefined) => ({ data: data ?? new Uint8Array(0) })
    await start({ ...limits, auth: { plain: { start: start0, continue: () => ({}) } } })
    const exchange = { authenticationMethod: 'plain', authenticationData: Buffer.from('secret') }
    const client = await join({ clientId: '', properties: exchange })
    const assigned = { assignedClientIdentifier: 'auto-1' }
    expect(client.connack.properties).toMatchObject({ ...limits, ...exchange, ...assigned })
    await client.subscribeAsync('t', { qos: 1, properties: { subscriptionIdentifier: 12 } })
    const properties = {
      payloadFormatIndicator: true,
      messageExpiryInterval: 600,
      contentType: 'text/plain',
      responseTopic: 'back',
      correlationData: Buffer.from([1, 2]),
      userProperties: { a: ['1', '2'], b: '3' },
    }
    await client.publishAsync('t', 'x', { qos: 1, properties })
    await client.got('t x')
    const own = { ...properties, subscriptionIdentifier: 12 }
    expect(client.messages[0]?.[1].properties).toMatchObject(own)
  })
})
