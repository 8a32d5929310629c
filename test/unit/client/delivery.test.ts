/** Inbound PUBLISH: exchanges, violations, topic aliases, and messages that are in hand or buffered when a connection is lost. */
import { describe, expect, it } from 'vitest'
import type {
  ClientOptions,
  Message,
  SubscribeOptions,
  Subscription,
} from '../../../src/client/options/index.js'
import type { PacketInput } from '../../../src/wire/encode.js'
import { comeBack, lose, again as reconnected, short, steady, willing } from './across.js'
import { times, type World } from './harness.js'
import {
  acks,
  agreed,
  bytesOf,
  gate,
  goodbyeCode,
  obliging,
  pubacks,
  publish,
  quick,
  quiet,
  read,
  subscribe,
  taken,
  takenTexts,
} from './incoming.js'
import { loop } from './steps.js'

const qos2 = (text: string, packetId: number) => publish('a', text, packetId, { qos: 2 })

const manual = { ack: 'manual' } as const

/** A client with a loop over `#` at QoS 2. */
async function looping(): Promise<{ world: World; texts: string[] }> {
  const world = await agreed()
  return { world, texts: read(await subscribe(world, '#', { qos: 2 })).texts }
}

/** A client with a subscription to `a` that nothing reads by itself. */
async function idle(): Promise<{ world: World; subscription: Subscription }> {
  const world = await agreed()
  return { world, subscription: await subscribe(world, 'a', { qos: 2, ...manual }) }
}

describe('exchanges', () => {
  it.each([
    ['QoS 0: nothing sent', [publish('a', 'x')], ''],
    ['[MQTT-3.3.4-1] [MQTT-4.3.2-4] QoS 1: PUBACK', [publish('a', 'x', 0x1234)], '40021234'],
    [
      '[MQTT-4.3.3-8] [MQTT-4.3.3-11] QoS 2: both',
      [qos2('x', 5), { type: 'pubrel', packetId: 5 }],
      '5002000570020005',
    ],
  ] as [string, PacketInput[], string][])(
    'in their shortest form: %s',
    async (_title, packets, hex) => {
      const { world, texts } = await looping()
      const before = world.peer.bytes.length
      for (const packet of packets) await world.send(packet)
      expect(texts).toEqual(['x'])
      expect(Buffer.from(world.peer.bytes.slice(before)).toString('hex')).toEqual(hex)
    },
  )

  it('every property reaches the reader, at each QoS', async () => {
    const { world, subscription } = await idle()
    const userProperties: [string, string][] = [
      ['k', '1'],
      ['k', '2'],
      ['', ''],
    ]
    const correlationData = Uint8Array.of(0, 255)
    const properties = {
      ...{
        payloadFormatIndicator: 1,
        messageExpiryInterval: 60,
        contentType: 'text/plain',
        responseTopic: 'r',
      },
      ...{ correlationData, subscriptionIdentifiers: [7], userProperties },
    }
    for (const qos of [0, 1, 2] as const)
      await world.send(publish('a', String(qos), qos || undefined, { qos, properties }))
    for (const qos of [0, 1, 2]) {
      const message = taken(subscription)
      expect([message.qos, message.text(), message.topic]).toEqual([qos, String(qos), 'a'])
      expect(message.properties).toEqual(properties)
    }
  })

  it('a message without properties has none, and retain, dup and redelivered are as sent', async () => {
    const { world, subscription } = await idle()
    const retained = publish('a', 'x', undefined, { retain: true })
    await world.send(retained, publish('a', 'y', 1, { dup: true }))
    const [first, second] = [taken(subscription), taken(subscription)]
    expect(Object.values(first.properties).filter((value) => value !== undefined)).toEqual([])
    expect([first.retain, first.dup, first.redelivered]).toEqual([true, false, false])
    expect([second.retain, second.dup, second.redelivered]).toEqual([false, true, true])
  })
})

it('[MQTT-3.3.4-9] more than our Receive Maximum is borne with: delivered, acknowledged in order, logged once, counted', async () => {
  const warnings: string[] = []
  const logger = { warn: (text: string) => void warnings.push(text) }
  const world = await agreed({ receiveMaximum: 3, stats: true, logger })
  const subscription = await subscribe(world, 'a', { qos: 2, ack: 'manual', buffer: 2 })
  await world.send(...times(500, (index) => publish('a', String(index), index + 1)))
  const { receiveMaximumExceeded } = world.client.stats()
  expect([world.client.state, receiveMaximumExceeded]).toEqual(['connected', 497])
  expect([subscription.size, subscription.dropped]).toEqual([500, 0])
  expect(warnings).toEqual([expect.stringMatching(/Receive Maximum$/)])
  for (let count = 0; count < 500; count++) taken(subscription).ack()
  await world.settle()
  expect(acks(world)).toEqual(pubacks(1, 500))
})

describe('topic aliases', () => {
  const aliased = (topic: string, topicAlias: number) =>
    publish(topic, 'x', undefined, { properties: { topicAlias } })
  const numbered = (count: number) => times(count, (index) => aliased(`${long}${index}`, index + 1))
  const long = 'x'.repeat(60_000)
  const announced = (world: World) => world.peer.last('connect').properties.topicAliasMaximum

  it('[MQTT-3.3.2-10] by default none is announced, as brokers that store messages under them lose their topics, and 10 are taken', async () => {
    const world = await agreed()
    expect(announced(world)).toBeUndefined()
    await world.send(...numbered(10), aliased('', 3))
    const message = world.seen('unclaimed').at(-1)?.message
    expect([message?.topic === `${long}2`, message?.properties]).toEqual([true, {}])
    await world.send(aliased(long, 11))
    expect(goodbyeCode(world)).toBe(0x94)
  })

  it('count as bytes: a quarter of the memory budget is theirs, beyond it 0x97', async () => {
    const world = await agreed({ topicAliasMaximum: 65_535, memoryBudget: 4 * 1024 * 1024 })
    await world.send(...numbered(8))
    expect(world.client.state).toBe('connected')
    await world.send(aliased(`${long}8`, 9))
    expect(goodbyeCode(world)).toBe(0x97)
  })
})

it('twenty thousand messages in one segment reach a reader, and a synchronous handler', async () => {
  const world = await agreed()
  const reading = read(await subscribe(world, 'a', { qos: 0 }))
  let count = 0
  const handling = world.client.listen('a', () => void count++)
  await world.settle()
  await handling
  await world.sendBytes(bytesOf(quick('a', 20_000)))
  await world.settle()
  expect([reading.texts.length, reading.texts.at(-1), count]).toEqual([20_000, '20000', 20_000])
  expect(world.client.state).toBe('connected')
})

it('publish in the loop body: order kept', async () => {
  const world = await agreed({ receiveMaximum: 2 }, obliging)
  const subscription = await subscribe(world, 'a', { qos: 1 })
  ;(async () => {
    for await (const message of subscription)
      await world.client.publish('b', message.text(), { qos: 1 })
  })()
  const ids = [1, 2, 3, 4, 5, 6]
  for (const id of ids) await world.send(publish('a', String(id), id))
  const published = world.peer.all('publish').map((packet) => short(packet).split(' ')[1])
  expect(published).toEqual(ids.map((id) => `b=${id}`))
  expect(acks(world)).toEqual(pubacks(1, 6))
})

const kept = willing(true)
const first = (text: string, id: number, qos: 1 | 2 = 1) => publish('t', text, id, { qos })
const repeat = (text: string, id: number, qos: 1 | 2 = 1) =>
  publish('t', text, id, { qos, dup: true })
const again = (world: World): Promise<unknown> => reconnected(world, kept)

/** A reader of `t`, to which these messages come. */
async function reader(
  options: SubscribeOptions,
  messages: ReturnType<typeof first>[] = [],
  client: ClientOptions = {},
) {
  const world = await steady(client, willing(false))
  const subscription = await subscribe(world, 't', { qos: 1, ...options })
  await world.send(...messages)
  return { world, subscription }
}

/** Acknowledges what waits, and gives the acknowledgements that have left by now. */
async function acked(world: World, ...messages: Message[]): Promise<string[]> {
  expect(messages.map((message) => message.ack())).toEqual(messages.map(() => true))
  await world.settle()
  return acks(world)
}
describe('a message in hand when the connection is lost', () => {
  it('`ack()` in the gap is true and remembered; the acknowledgement leaves after the repeat, which is not delivered', async () => {
    const { world, subscription } = await reader(manual, [first('one', 7)])
    const message = taken(subscription)
    await lose(world)
    expect([message.ack(), message.ack()]).toEqual([true, false])
    await comeBack(world, kept)
    await world.clock.advance(60_000)
    expect(acks(world)).toEqual([])
    await world.send(repeat('one', 7))
    expect([acks(world), takenTexts(subscription)]).toEqual([['puback 7'], []])
  })

  it('of a loop: the body runs on over the drop, its end acknowledges after the repeat, the next message follows', async () => {
    const { world, subscription } = await reader({})
    const gates = [gate(), gate(), gate()]
    const got: string[] = []
    quiet(loop(subscription, (message) => gates[got.push(message.text()) - 1]?.promise))
    await world.send(first('one', 1), first('two', 2))
    await again(world)
    gates[0]?.open()
    await world.settle()
    expect([got, acks(world)]).toEqual([['one', 'two'], []])
    await world.send(repeat('one', 1), repeat('two', 2), first('three', 3))
    expect(acks(world)).toEqual(['puback 1'])
    gates[1]?.open()
    await world.settle()
    expect([got, acks(world)]).toEqual([['one', 'two', 'three'], pubacks(1, 2)])
  })
})

it('a message in the buffer when the connection is lost is read once, though its repeat came before it was read', async () => {
  const { world, subscription } = await reader({ qos: 2 }, [first('one', 1), first('two', 2, 2)])
  await again(world)
  await world.send(repeat('one', 1), repeat('two', 2, 2))
  expect(subscription.size).toBe(2)
  expect(takenTexts(subscription)).toEqual(['one', 'two'])
  expect(subscription.read()).toBeUndefined()
  await world.settle()
  expect(acks(world)).toEqual(['puback 1', 'pubrec 2'])
})

it('several consumers: one acknowledgement after all have settled, with a drop in between; success if any succeeded', async () => {
  const { world, subscription: one } = await reader(manual)
  const two = await subscribe(world, 't', { qos: 1, ack: 'manual', retainHandling: 2 })
  await world.send(first('x', 1))
  const second = taken(two)
  taken(one).ack(0x80)
  await again(world)
  await world.send(repeat('x', 1))
  expect(acks(world)).toEqual([])
  expect(await acked(world, second)).toEqual(['puback 1'])
  expect([takenTexts(one), takenTexts(two)]).toEqual([[], []])
})

it('detached messages wait through a drop, their repeats are not delivered twice, and the next subscription gets them once', async () => {
  const session = { clientId: 'c', cleanStart: false }
  const { world, subscription } = await reader(manual, [first('one', 1), first('two', 2)], session)
  taken(subscription)
  subscription.detach()
  await again(world)
  await world.send(repeat('one', 1), repeat('two', 2))
  expect(acks(world)).toEqual([])
  const reading = read(await subscribe(world, 't', { qos: 1 }))
  await world.settle()
  expect([reading.texts, acks(world)]).toEqual([['one', 'two'], pubacks(1, 2)])
})
