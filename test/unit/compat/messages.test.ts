/** Messages: what the event gives, its order, overlapping filters, sessions, and a `handleMessage` of one's own. */
import { describe, expect, it } from 'vitest'
import type { IPublishPacket, MqttClient } from '../../../src/compat/index.js'
import { type Broker, startMosquitto, withMosquitto } from '../../real/brokers.js'
import { eventually } from '../../real/waiting.js'
import { atEnd, soon, started, tcp, toldOf, up, wayTo } from './world.js'

function texts(client: MqttClient): string[] {
  const got: string[] = []
  client.on('message', (_topic, payload) => got.push(payload.toString()))
  return got
}

describe.each([4, 5] as const)('messages, protocol version %d', (protocolVersion) => {
  const options = { ...soon, protocolVersion }

  it('topic, a Buffer of its own, and the packet', async () => {
    const { client, told } = await up(await tcp(), options)
    await client.subscribeAsync('a/+', { qos: 2 })
    await client.publishAsync('a/b', 'text', { qos: 1, retain: true })
    await client.publishAsync('a/c', Buffer.alloc(0), { qos: 2 })
    await client.publishAsync('a/d', 'x')
    await toldOf(told, 'message', 3)
    const [first, second, third] = told.filter(([event]) => event === 'message') as unknown as [
      string,
      string,
      Buffer,
      IPublishPacket,
    ][]
    expect(first?.[1]).toBe('a/b')
    expect(Buffer.isBuffer(first?.[2])).toBe(true)
    expect(first?.[2].toString('utf8')).toBe('text')
    expect(first?.[3]).toMatchObject({
      cmd: 'publish',
      topic: 'a/b',
      qos: 1,
      retain: false,
      dup: false,
    })
    expect(first?.[3].payload).toBe(first?.[2])
    expect([second?.[2].length, second?.[3].qos, third?.[3].qos]).toEqual([0, 2, 0])
  })

  it('in the order of arrival, where some overlap and others do not', async () => {
    const url = await tcp()
    const [{ client }, sender] = [await up(url, options), await up(url, options)]
    const got: string[] = []
    const came: string[] = []
    client.on(
      'packetreceive',
      (packet) => packet.cmd === 'publish' && came.push(String(packet.payload)),
    )
    client.on('message', (_topic, payload) => got.push(payload.toString()))
    await client.subscribeAsync('#', { qos: 1 })
    await client.subscribeAsync('a/+', { qos: 1 })
    for (let n = 0; n < 100; n++)
      sender.client.publish(n % 3 === 0 ? 'b' : 'a/x', `${n}`, { qos: 1 })
    await sender.client.publishAsync('b', 'last', { qos: 1 })
    await eventually(() => got.includes('last'))
    expect(got).toEqual(came)
  })

  it('resubscribe: false: they are not', async () => {
    const url = await tcp()
    const way = await wayTo(url)
    const { client, told } = await up(way.url, { ...options, resubscribe: false })
    const got = texts(client)
    await client.subscribeAsync(['a', 'b'], { qos: 1 })
    way.cut()
    await toldOf(told, 'connect', 2)
    expect(await client.subscribeAsync('b', { qos: 1 })).toHaveLength(1)
    const sender = await up(url, options)
    await sender.client.publishAsync('a', 'a', { qos: 1 })
    await sender.client.publishAsync('b', 'b', { qos: 1 })
    await eventually(() => got.includes('b'))
    expect(got).toEqual(['b'])
  })

  it('clean: false: what came meanwhile is told to a new client that has not subscribed', async () => {
    const url = await tcp()
    const durable = {
      ...options,
      clean: false,
      clientId: 'durable',
      ...(protocolVersion === 5 && { properties: { sessionExpiryInterval: 100 } }),
    }
    const first = await up(url, durable)
    await first.client.subscribeAsync('a', { qos: 1 })
    await first.client.endAsync()
    const sender = await up(url, options)
    await sender.client.publishAsync('a', 'meanwhile', { qos: 1 })
    const second = await up(url, durable)
    expect(second.told[0]?.[1]).toMatchObject({ sessionPresent: true })
    await toldOf(second.told, 'message')
    expect(String(second.told.find(([event]) => event === 'message')?.[2])).toBe('meanwhile')
  })
})

it('handleMessage: one after the other, acknowledged when it calls back', async () => {
  const url = await tcp()
  const { client } = started(url, {
    ...soon,
    protocolVersion: 5,
    properties: { receiveMaximum: 4 },
  })
  const waiting: { packet: IPublishPacket; done: () => void }[] = []
  let most = 0
  client.handleMessage = (packet, done) => {
    waiting.push({ packet, done })
    most = Math.max(most, waiting.length)
  }
  const acknowledged: unknown[] = []
  client.on('packetsend', (packet) => packet.cmd === 'puback' && acknowledged.push(packet))
  const got = texts(client)
  await client.subscribeAsync('a', { qos: 1 })
  await client.subscribeAsync('b', { qos: 1 })
  const sender = await up(url)
  for (let n = 0; n < 20; n++)
    await sender.client.publishAsync(n % 2 ? 'a' : 'b', `${n}`, { qos: 1 })
  await eventually(() => waiting.length === 1)
  expect(acknowledged).toEqual([])
  expect(got).toEqual(['0'])
  for (let n = 0; n < 20; n++) {
    await eventually(() => waiting.length === 1)
    expect(String(waiting[0]?.packet.payload)).toBe(got.at(-1))
    waiting.shift()?.done()
  }
  await eventually(() => acknowledged.length === 20)
  expect(most).toBe(1)
  expect(got.map(Number).sort((a, b) => a - b)).toEqual(Array.from({ length: 20 }, (_, n) => n))
})

it('handleMessage: messages that nobody subscribed to, and an error for them: nothing is left unhandled', async () => {
  const url = await tcp()
  const durable = { ...soon, clean: false, clientId: 'durable' }
  const first = await up(url, durable)
  await first.client.subscribeAsync('a', { qos: 1 })
  await first.client.endAsync()
  const sender = await up(url)
  await sender.client.publishAsync('a', 'meanwhile', { qos: 1 })
  const { client, told } = started(url, durable)
  client.handleMessage = (_packet, done) => done(new Error('never'))
  await toldOf(told, 'message')
  await client.endAsync()
})

it('handleMessage: an error: the message comes again', async () => {
  const { client } = await up(await tcp())
  let calls = 0
  client.handleMessage = (_packet, done) => done(++calls === 1 ? new Error('not yet') : undefined)
  const got = texts(client)
  await client.subscribeAsync('a', { qos: 1 })
  await client.publishAsync('a', 'x', { qos: 1 })
  await eventually(() => got.length === 2)
})

withMosquitto(['TCP', 'WebSocket'], (transport) => {
  describe.each([4, 5] as const)(
    `through mosquitto over ${transport}, protocol version %d`,
    (protocolVersion) => {
      const options = { ...soon, protocolVersion }
      const run = async (): Promise<Broker> => {
        const started = await startMosquitto({ memory: 'all of it' })
        atEnd(() => started.stop())
        return started
      }

      it('a bridge that passes properties on: none is there that the program did not ask for', async () => {
        const mosquitto = await run()
        const { client } = await up(mosquitto.urls[transport] as string, options)
        const identifiers: unknown[] = []
        const copies: IPublishPacket[] = []
        client.on('message', (topic, payload, packet) => {
          if (!topic.startsWith('in/')) return copies.push(packet)
          identifiers.push(packet.properties?.subscriptionIdentifier)
          const { subscriptionIdentifier: _, ...rest } = packet.properties ?? {}
          const properties = topic === 'in/own' ? rest : packet.properties
          return client.publish(`copy/${topic}`, payload, {
            qos: 1,
            ...(properties && { properties }),
          } as never)
        })
        await client.subscribeAsync(['in/a', 'copy/#'], { qos: 1 })
        const modern = protocolVersion === 5
        await client.subscribeAsync('in/own', {
          qos: 1,
          ...(modern && { properties: { subscriptionIdentifier: 77 } }),
        })
        const properties = {
          userProperties: { a: '1' },
          payloadFormatIndicator: true,
          contentType: 'x',
          responseTopic: 'r',
        }
        for (const topic of ['in/a', 'in/own'])
          await client.publishAsync(topic, 'x', { qos: 1, ...(modern && { properties }) })
        await eventually(() => copies.length === 2, 'both copies')
        expect(identifiers).toEqual(modern ? [undefined, 77] : [undefined, undefined])
        for (const copy of copies) expect(copy.properties).toEqual(modern ? properties : undefined)
      })

      it('the whole way: offline, overlapping filters, QoS 2, a broker that dies and comes back, the end', async () => {
        const mosquitto = await run()
        const { client, told } = started(mosquitto.urls[transport] as string, options)
        const got = texts(client)
        client.publish('early', 'lost')
        await client.subscribeAsync('a/#', { qos: 2 })
        await client.subscribeAsync('+/x', { qos: 1 })
        await client.publishAsync('a/x', 'one', { qos: 2 })
        await eventually(() => got.includes('one'))
        await mosquitto.kill()
        await toldOf(told, 'close')
        const kept = client.publishAsync('a/y', 'two', { qos: 2 })
        await mosquitto.live()
        await kept
        await eventually(() => got.includes('two'))
        await client.endAsync()
        expect(told.at(-1)).toEqual(['end'])
      })
    },
  )
})
