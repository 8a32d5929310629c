/** Several local subscriptions on one filter: one broker subscription, merged options, late joiners, retained messages. */
import { describe, expect, it } from 'vitest'
import type { Filters, SubscribeOptions, Subscription } from '../../../src/client/api/index.js'
import type { Answer } from '../../../src/testing/scripted-peer.js'
import { agreeable, connected, type World } from './harness.js'
import { acks, agreed, publish, quiet, read, subscribe, taken, takenTexts } from './incoming.js'

const silent: Answer = (packet) => (packet.type === 'subscribe' ? undefined : agreeable(packet))

async function suback(world: World, ...reasonCodes: number[]): Promise<void> {
  await world.send({ type: 'suback', packetId: world.peer.last('subscribe').packetId, reasonCodes })
}

const leave = (world: World, subscription?: Subscription) =>
  Promise.all([subscription?.unsubscribe(), world.settle()])
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

/** Subscribes where that is refused: what it comes to. */
const refusal = (world: World, filters: Filters, options?: SubscribeOptions) =>
  world.outcome(quiet(world.client.subscribe(filters, options)))
const rejected = (error: object) => ({ state: 'rejected', error })

/** Two readers of one filter. */
async function both(one: SubscribeOptions = {}, other: SubscribeOptions = {}, filter = 'a') {
  const world = await agreed()
  const first = await subscribe(world, filter, one)
  const second = await subscribe(world, filter, other)
  return { world, first, second }
}

describe('one subscription on the broker', () => {
  it('three in one turn: one SUBSCRIBE, three deliveries, UNSUBSCRIBE after the third has left', async () => {
    const world = await agreed()
    const calls = [{}, { qos: 1 } as const, {}].map((options) =>
      world.client.subscribe('a', options),
    )
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

  it('a second subscription later is no silent no-op: granted, and delivered to', async () => {
    const options = { qos: 1, retainHandling: 1 } as const
    const { world, second } = await both(options, options)
    expect(second.granted).toMatchObject([{ filter: 'a', qos: 1 }])
    await world.send(publish('a', 'x', 1))
    expect(takenTexts(second)).toEqual(['x'])
  })

  it('a joiner of a SUBSCRIBE that is not answered waits for the same answer', async () => {
    const world = await connected({}, silent)
    const calls: Promise<unknown>[] = []
    for (let count = 0; count < 2; count++) {
      calls.push(quiet(world.client.subscribe('a', { retainHandling: 2 })))
      await world.settle()
    }
    expect(world.peer.all('subscribe')).toHaveLength(1)
    await suback(world, 0x87)
    for (const call of calls)
      expect(await world.outcome(call)).toMatchObject(rejected({ reasonCode: 0x87 }))
  })

  it('one of a joined list is on the broker already: the rest is subscribed', async () => {
    const world = await agreed()
    await subscribe(world, 'a', { retainHandling: 2 })
    const list = await subscribe(world, ['a', 'b'], { retainHandling: 2 })
    expect(requests(world)).toEqual(['a 0 2', 'b 0 2'])
    await world.send(publish('a', 'x'), publish('b', 'y'))
    expect(takenTexts(list)).toEqual(['x', 'y'])
  })
})

describe('merged options', () => {
  it.each<[string, SubscribeOptions, SubscribeOptions, string[], number]>([
    [
      'a higher QoS with Retain Handling 1',
      { qos: 0 },
      { qos: 2, retainHandling: 1 },
      ['a 0 0', 'a 2 2'],
      2,
    ],
    [
      'a higher QoS with Retain Handling 2',
      { qos: 0 },
      { qos: 2, retainHandling: 2 },
      ['a 0 0', 'a 2 2'],
      2,
    ],
    ['a higher QoS with retained messages wanted', { qos: 0 }, { qos: 1 }, ['a 0 0', 'a 1 0'], 1],
    ['a joiner never lowers the QoS', { qos: 2 }, { qos: 0 }, ['a 2 0', 'a 2 0'], 2],
    ['no higher QoS, Retain Handling 1', { qos: 1 }, { qos: 1, retainHandling: 1 }, ['a 1 0'], 1],
    ['no higher QoS, Retain Handling 2', { qos: 1 }, { qos: 0, retainHandling: 2 }, ['a 1 0'], 1],
  ])('%s', async (_what, one, other, sent, granted) => {
    const { world, second } = await both(one, other)
    expect([requests(world), second.granted[0]?.qos]).toEqual([sent, granted])
  })

  it.each([{ noLocal: true }, { retainAsPublished: true }])(
    '%j against its absence: ERR_SUBSCRIPTION_CONFLICT, nothing sent',
    async (options) => {
      const world = await agreed()
      const conflict = rejected({ code: 'ERR_SUBSCRIPTION_CONFLICT', outcome: 'not-sent' })
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

  it('a raise that is refused leaves the first one alone', async () => {
    const world = await connected({}, (packet) =>
      packet.type === 'subscribe' && packet.subscriptions[0]?.qos === 1
        ? { type: 'suback', packetId: packet.packetId, reasonCodes: [0x97] }
        : agreeable(packet),
    )
    const first = read(await subscribe(world, 'a'))
    expect(await refusal(world, 'a', { qos: 1 })).toMatchObject(rejected({ reasonCode: 0x97 }))
    await world.send(publish('a', 'x'))
    expect([first.texts, world.peer.all('unsubscribe')]).toEqual([['x'], []])
  })

  it('$share is never subscribed again for a joiner, whatever it asks; requireQos refuses what it does not have', async () => {
    const { world, first, second } = await both({ qos: 0 }, { qos: 2 }, '$share/g/a')
    expect([requests(world), second.granted[0]?.qos]).toEqual([['$share/g/a 0 0'], 0])
    const required = await refusal(world, '$share/g/a', { qos: 2, requireQos: true })
    expect(required).toMatchObject(rejected({ code: 'ERR_SUBSCRIBE_REFUSED' }))
    second.detach()
    await world.send(publish('a', 'x'))
    expect([takenTexts(first), world.peer.all('unsubscribe')]).toEqual([['x'], []])
  })
})

describe('retained messages and late joiners', () => {
  it('after SUBACK: only the joiner gets them', async () => {
    const world = await agreed()
    const first = read(await subscribe(world, 'a'))
    await world.send(retained('old'))
    const second = read(await subscribe(world, 'a'))
    expect(requests(world)).toEqual(['a 0 0', 'a 0 0'])
    await world.send(retained('old'))
    expect([first.texts, second.texts]).toEqual([['old'], ['old']])
    await world.send(publish('a', 'live'))
    for (const { texts } of [first, second]) expect(texts).toEqual(['old', 'live'])
  })

  it.each([true, false])(
    '[MQTT-3.8.4-2] each of three in a row gets them once, before SUBACK or after it (early: %s)',
    async (early) => {
      const world = await connected({}, silent)
      const readings = []
      for (let index = 0; index < 3; index++) {
        const call = world.client.subscribe('a')
        await world.settle()
        if (early) await world.send(retained('old'))
        await suback(world, 0)
        if (!early) await world.send(retained('old'))
        readings.push(read(await call))
        await world.settle()
        expect(readings.map(({ texts }) => texts)).toEqual(readings.map(() => ['old']))
      }
    },
  )

  it('a first subscription does not lose its retained messages to a joiner that came before they arrived', async () => {
    const world = await connected({}, silent)
    const first = world.client.subscribe('a')
    await world.settle()
    const { packetId } = world.peer.last('subscribe')
    const second = world.client.subscribe('a')
    await world.settle()
    await world.send({ type: 'suback', packetId, reasonCodes: [0] }, retained('old'))
    await suback(world, 0)
    await world.send(retained('old'))
    for (const call of [first, second]) expect(takenTexts(await call)).toContain('old')
  })

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

  it('Retain As Published: RETAIN 1 says nothing, so everybody gets every copy', async () => {
    const { world, first, second } = await both(
      { retainAsPublished: true },
      { retainAsPublished: true },
    )
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
  async function acknowledged(
    world: World,
    subscription: Subscription,
    reasonCode?: number,
  ): Promise<string[]> {
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

  it('one that acknowledges twice does not count for the other', async () => {
    const { world, first } = await both(manual, manual)
    await world.send(publish('a', 'x', 1))
    const message = taken(first)
    expect([message.ack(), message.ack()]).toEqual([true, false])
    await world.settle()
    expect(acks(world)).toEqual([])
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
  })

  it('a stalled consumer that leaves does not hold the message any more', async () => {
    const { world, first: slow, second: fast } = await both({ qos: 1 }, manual)
    await world.send(publish('a', 'x', 1))
    expect(await acknowledged(world, fast)).toEqual([])
    await leave(world, slow)
    expect(acks(world)).toEqual(['puback 1'])
  })

  it('each has bytes and properties of its own', async () => {
    const { world, first, second } = await both()
    const properties = {
      correlationData: Uint8Array.of(1, 2),
      userProperties: [['k', 'v']] as [string, string][],
    }
    await world.send(publish('a', 'abc', undefined, { properties }))
    const [one, other] = [taken(first), taken(second)]
    one.payload.fill(0)
    one.properties.correlationData?.fill(0)
    expect([other.text(), other.properties.correlationData]).toEqual(['abc', Uint8Array.of(1, 2)])
    expect(one.payload.buffer).not.toBe(other.payload.buffer)
  })
})
