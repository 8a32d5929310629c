/** Several local subscriptions on one filter: one broker subscription, merged options, late joiners, retained messages. */
import { describe, expect, it } from 'vitest'
import type { Filters, SubscribeOptions, Subscription } from '../../../src/client/options/index.js'
import { agreeable, connected, failure, type World } from './harness.js'
import {
  acks,
  agreed,
  answer,
  publish,
  quiet,
  read,
  subscribe,
  taken,
  takenTexts,
} from './incoming.js'
import { deafTo, leave, settled } from './steps.js'

const silent = deafTo('subscribe')

const retained = (text: string, packetId?: number) => publish('a', text, packetId, { retain: true })
/** Filter, QoS and Retain Handling of each SUBSCRIBE, as `a 1 0`. */
const requests = (world: World): string[] =>
  world.peer
    .all('subscribe')
    .map(({ subscriptions }) =>
      subscriptions
        .map(({ filter, qos, retainHandling }) => `${filter} ${qos} ${retainHandling}`)
        .join(),
    )

/** Subscribes where that is refused. */
const refusal = (world: World, filters: Filters, options?: SubscribeOptions) =>
  settled(world, failure(world.client.subscribe(filters, options)))

/** Two readers of one filter. */
async function both(one: SubscribeOptions = {}, other: SubscribeOptions = {}, filter = 'a') {
  const world = await agreed()
  const first = await subscribe(world, filter, one)
  const second = await subscribe(world, filter, other)
  return { world, first, second }
}

it('three in one turn: one SUBSCRIBE, three deliveries, UNSUBSCRIBE after the third has left', async () => {
  const world = await agreed()
  const calls = [{}, { qos: 1 } as const, {}].map((options) => world.client.subscribe('a', options))
  await world.settle()
  const subscriptions = await Promise.all(calls)
  expect(requests(world)).toEqual(['a 1 0'])
  const readings = subscriptions.map((subscription) => read(subscription))
  await world.send(publish('a', 'x'))
  for (const subscription of subscriptions.slice(0, 2)) await leave(world, subscription)
  expect(world.peer.all('unsubscribe')).toEqual([])
  await world.send(publish('a', 'y'))
  expect(readings.map(({ texts }) => texts.join(''))).toEqual(['x', 'x', 'xy'])
  expect(readings.map(({ end }) => end.state)).toEqual(['done', 'done', 'running'])
  await leave(world, subscriptions[2])
  expect(world.peer.all('unsubscribe')).toMatchObject([{ filters: ['a'] }])
  expect(readings[2]?.end.state).toBe('done')
})

it('one filter twice in a list: one line, two grants, one delivery', async () => {
  const world = await agreed()
  const subscription = await subscribe(world, ['a', { filter: 'a', qos: 1 }])
  expect(requests(world)).toEqual(['a 1 0'])
  expect(subscription.granted.map((grant) => grant.filter)).toEqual(['a', 'a'])
  await world.send(publish('a', 'x', 1))
  expect(takenTexts(subscription)).toEqual(['x'])
})

it('a joiner of a SUBSCRIBE that is not answered waits for the same answer', async () => {
  const world = await connected({}, silent)
  const call = () => failure(world.client.subscribe('a', { retainHandling: 2 }))
  const first = call()
  await world.settle()
  const second = call()
  await world.settle()
  expect(requests(world)).toEqual(['a 0 2'])
  await answer(world, 'subscribe', 0x87)
  const refused = { reasonCode: 0x87 }
  expect([await first, await second]).toMatchObject([refused, refused])
})

it('one of a joined list is on the broker already: the rest is subscribed', async () => {
  const world = await agreed()
  await subscribe(world, 'a', { retainHandling: 2 })
  const list = await subscribe(world, ['a', 'b'], { retainHandling: 2 })
  expect(requests(world)).toEqual(['a 0 2', 'b 0 2'])
  await world.send(publish('a', 'x'), publish('b', 'y'))
  expect(takenTexts(list)).toEqual(['x', 'y'])
})

it.each<[string, SubscribeOptions, SubscribeOptions, string[], number]>([
  ['a higher QoS', { qos: 0 }, { qos: 2, retainHandling: 1 }, ['a 0 0', 'a 2 2'], 2],
  ['a higher QoS with retained messages wanted', { qos: 0 }, { qos: 1 }, ['a 0 0', 'a 1 0'], 1],
  ['a joiner never lowers the QoS', { qos: 2 }, { qos: 0 }, ['a 2 0', 'a 2 0'], 2],
  ['no higher QoS, Retain Handling 1', { qos: 1 }, { qos: 1, retainHandling: 1 }, ['a 1 0'], 1],
  ['no higher QoS, Retain Handling 2', { qos: 1 }, { qos: 0, retainHandling: 2 }, ['a 1 0'], 1],
])('merged options: %s', async (_what, one, other, sent, granted) => {
  const { world, second } = await both(one, other)
  expect([requests(world), second.granted[0]?.qos]).toEqual([sent, granted])
})

it.each([{ noLocal: true }, { retainAsPublished: true }])(
  'merged options: %j against its absence: ERR_SUBSCRIPTION_CONFLICT, nothing sent',
  async (options) => {
    const world = await agreed()
    const conflict = { code: 'ERR_SUBSCRIPTION_CONFLICT', outcome: 'not-sent' }
    // Also inside one list.
    expect(await refusal(world, [{ filter: 'b', ...options }, 'b'])).toMatchObject(conflict)
    const first = await subscribe(world, 'a')
    expect(await refusal(world, ['b', { filter: 'a', ...options }])).toMatchObject(conflict)
    expect(requests(world)).toEqual(['a 0 0'])
    await world.send(publish('a', 'x'), publish('b', 'y'))
    expect([takenTexts(first), world.seen('unclaimed').length]).toEqual([['x'], 1])
    // After the last has left, other options are no conflict.
    await leave(world, first)
    await subscribe(world, 'a', options)
    expect(world.peer.last('subscribe').subscriptions).toMatchObject([options])
  },
)

it('merged options: a raise that is refused leaves the first one alone', async () => {
  const world = await connected({}, (packet) =>
    packet.type === 'subscribe' && packet.subscriptions[0]?.qos === 1
      ? { type: 'suback', packetId: packet.packetId, reasonCodes: [0x97] }
      : agreeable(packet),
  )
  const first = read(await subscribe(world, 'a'))
  expect(await refusal(world, 'a', { qos: 1 })).toMatchObject({ reasonCode: 0x97 })
  await world.send(publish('a', 'x'))
  expect([first.texts, world.peer.all('unsubscribe')]).toEqual([['x'], []])
})

it('merged options: $share is never subscribed again for a joiner, whatever it asks; requireQos refuses what it does not have', async () => {
  const { world, first, second } = await both({ qos: 0 }, { qos: 2 }, '$share/g/a')
  expect([requests(world), second.granted[0]?.qos]).toEqual([['$share/g/a 0 0'], 0])
  const required = await refusal(world, '$share/g/a', { qos: 2, requireQos: true })
  expect(required).toMatchObject({ code: 'ERR_SUBSCRIBE_REFUSED' })
  second.detach()
  await world.send(publish('a', 'x'))
  expect([takenTexts(first), world.peer.all('unsubscribe')]).toEqual([['x'], []])
})

describe('retained messages and late joiners', () => {
  it('in one turn, only those get them who wanted them', async () => {
    const world = await agreed()
    const calls = ([1, 2] as const).map((retainHandling) =>
      world.client.subscribe('a', { retainHandling }),
    )
    await world.settle()
    expect(requests(world)).toEqual(['a 0 1'])
    await world.send(retained('old'))
    expect((await Promise.all(calls)).map(takenTexts)).toEqual([['old'], []])
  })

  const asPublished = { retainAsPublished: true }

  it('Retain As Published: RETAIN 1 says nothing, so everybody gets every copy', async () => {
    const { world, first, second } = await both(asPublished, asPublished)
    await world.send(retained('live'))
    expect(taken(first)).toMatchObject({ retain: true })
    expect(takenTexts(second)).toEqual(['live'])
  })

  it('a retained copy at QoS 1 for a joiner who has left is acknowledged and counted', async () => {
    const { world, first, second } = await both({ qos: 1 }, { qos: 1 })
    await leave(world, second)
    await world.send(retained('old', 1))
    expect([takenTexts(first), acks(world)]).toEqual([[], ['puback 1']])
  })
})

describe('several consumers of one message', () => {
  const manual = { qos: 1, ack: 'manual' } as const

  /** Acknowledges what waits, with a reason code; what the broker has got by then. */
  async function acknowledged(world: World, subscription: Subscription, reasonCode?: number) {
    expect(taken(subscription).ack(reasonCode)).toBe(true)
    await world.settle()
    return acks(world)
  }

  it.each([
    ['one PUBACK, after all have settled', undefined, undefined, 'puback 1'],
    ['success if any succeeded', 0x80, 0, 'puback 1'],
    ['success if any succeeded, whichever is first', 0, 0x97, 'puback 1'],
    ['a failure when all failed', 0x80, 0x80, 'puback 1 0x80'],
  ])('%s', async (_what, one, other, expected) => {
    const { world, first, second } = await both(manual, manual)
    await world.send(publish('a', 'x', 1))
    expect(await acknowledged(world, first, one)).toEqual([])
    expect(await acknowledged(world, second, other)).toEqual([expected])
  })

  it('a consumer that asked for QoS 0 never delays an ack', async () => {
    const { world, first: lazy, second: keen } = await both({ qos: 0 }, manual)
    await world.send(publish('a', 'x', 1))
    expect(await acknowledged(world, keen)).toEqual(['puback 1'])
    expect(taken(lazy).ack()).toBe(true)
    // Where only such consumers are left of a QoS 1 subscription: at once.
    await leave(world, keen)
    await world.send(publish('a', 'x', 2))
    expect(acks(world)).toEqual(['puback 1', 'puback 2'])
    await subscribe(world, 'a', { qos: 0 })
    await world.send(publish('a', 'x', 3))
    expect(acks(world)).toEqual(['puback 1', 'puback 2', 'puback 3'])
  })

  it('a stalled consumer that leaves does not hold the message any more', async () => {
    const { world, first: slow, second: fast } = await both({ qos: 1 }, manual)
    await world.send(publish('a', 'x', 1))
    expect(await acknowledged(world, fast)).toEqual([])
    await leave(world, slow)
    expect(acks(world)).toEqual(['puback 1'])
  })
})

/** Readers that subscribe when told; the test answers. */
async function readers() {
  const world = await connected({ keepAlive: false })
  /** What each has got, in their order. */
  const seen: string[][] = []
  return {
    world,
    seen,
    async join(options = {}) {
      const texts: string[] = []
      seen.push(texts)
      const handler = (message: { text(): string }) => void texts.push(message.text())
      quiet(world.client.listen('a', handler, { qos: 1, ...options }))
      await world.settle()
    },
    /** The answer to the SUBSCRIBE of this number. */
    suback(index: number, qos = 1) {
      const packetId = world.peer.all('subscribe')[index]?.packetId ?? 0
      return { type: 'suback', packetId, reasonCodes: [qos] } as const
    },
  }
}

it('retained messages behind SUBACK, as mosquitto sends them: the next subscriber gets none of the first reader’s, once the habit is known', async () => {
  const { world, seen, join, suback } = await readers()
  await join()
  await world.send(suback(0), retained('1'))
  await join()
  await world.send(suback(1))
  await join()
  await world.send(retained('2'), suback(2), retained('3'))
  expect(seen).toEqual([['1'], ['2'], ['3']])
})

it('retained messages behind SUBACK, as mosquitto sends them: a SUBSCRIBE that leaves before they came takes them from nobody', async () => {
  const { world, seen, join, suback } = await readers()
  await join()
  await world.send(suback(0))
  await join()
  await world.send(retained('1'), suback(1), retained('2'))
  expect([seen[0]?.includes('1'), seen[0]?.includes('2'), seen[1]?.includes('2')]).toEqual([
    true,
    false,
    true,
  ])
})

it('[MQTT-3.8.4-2] retained messages of a server that sends them before SUBACK: each of several that wait gets its own', async () => {
  const { world, seen, join, suback } = await readers()
  for (let count = 0; count < 3; count++) await join()
  await world.send(retained('1'), suback(0), retained('2'), suback(1), retained('3'), suback(2))
  expect(seen).toEqual([['1'], ['2'], ['3']])
})

it('a filter that has messages as they were published says nothing of the habit: any of them may have RETAIN 1', async () => {
  const { world, seen, join, suback } = await readers()
  quiet(world.client.subscribe('b', { qos: 1, retainAsPublished: true }))
  await world.settle()
  await world.send(suback(0), publish('b', 'x', undefined, { retain: true }))
  for (let count = 0; count < 2; count++) await join()
  await world.send(retained('1'), suback(1), retained('2'), suback(2))
  expect(seen).toEqual([['1'], ['2']])
})

it('retained messages on both sides of SUBACK, as of a server whose window is full: nobody misses any', async () => {
  const { world, seen, join, suback } = await readers()
  await join()
  await world.send(retained('1'), suback(0), retained('2'))
  await join()
  await world.send(retained('3'), suback(1), retained('4'))
  expect(seen[0]).toEqual(expect.arrayContaining(['1', '2', '3']))
  expect(seen[1]).toEqual(expect.arrayContaining(['3', '4']))
})

it('retained messages on both sides of SUBACK, as of a server whose window is full: a SUBSCRIBE that asks for none changes nothing', async () => {
  const { world, seen, join, suback } = await readers()
  await join()
  await world.send(suback(0), retained('1'))
  await join({ qos: 2, retainHandling: 2 })
  await world.send(retained('2'), suback(1, 2), retained('3'))
  expect(seen[0]).toEqual(['1', '2', '3'])
})
