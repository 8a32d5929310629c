/** Several local subscriptions on one filter: one broker subscription, merged options, late joiners, retained messages. */
import { describe, expect, it } from 'vitest'
import type { Answer } from '../../../src/testing/scripted-peer.js'
import { agreeable, connected, type World } from './harness.js'
import { acks, agreed, publish, quiet, read, subscribe, taken, takenTexts } from './incoming.js'

const silent: Answer = (packet) => (packet.type === 'subscribe' ? undefined : agreeable(packet))

async function suback(world: World, ...reasonCodes: number[]): Promise<void> {
  await world.send({ type: 'suback', packetId: world.peer.last('subscribe').packetId, reasonCodes })
}

const retained = (text: string, packetId?: number) => publish('a', text, packetId, { retain: true })
const requests = (world: World) =>
  world.peer.all('subscribe').map((packet) => packet.subscriptions.map((item) => [item.filter, item.qos, item.retainHandling]))

describe('one subscription on the broker', () => {
  it('three in one turn: one SUBSCRIBE, three deliveries, UNSUBSCRIBE after the third has left', async () => {
    const world = await agreed()
    const calls = [world.client.subscribe('a'), world.client.subscribe('a', { qos: 1 }), world.client.subscribe('a')]
    await world.settle()
    const subscriptions = await Promise.all(calls)
    expect(requests(world)).toEqual([[['a', 1, 0]]])
    const readings = subscriptions.map((subscription) => read(subscription))
    await world.send(publish('a', 'x'))
    expect(readings.map((reading) => reading.texts)).toEqual([['x'], ['x'], ['x']])
    for (const subscription of subscriptions.slice(0, 2)) {
      const left = subscription.unsubscribe()
      await world.settle()
      await left
      expect(world.peer.all('unsubscribe')).toEqual([])
    }
    await world.send(publish('a', 'y'))
    expect(readings.map((reading) => reading.texts)).toEqual([['x'], ['x'], ['x', 'y']])
    expect(readings.map((reading) => reading.end.state)).toEqual(['done', 'done', 'running'])
    const last = subscriptions[2]?.unsubscribe()
    await world.settle()
    await last
    expect(world.peer.all('unsubscribe').map((packet) => packet.filters)).toEqual([['a']])
    expect(readings[2]?.end.state).toBe('done')
  })

  it('one filter twice in a list: one line, two grants, one delivery', async () => {
    const world = await agreed()
    const subscription = await subscribe(world, ['a', { filter: 'a', qos: 1 }])
    expect(requests(world)).toEqual([[['a', 1, 0]]])
    expect(subscription.granted.map((grant) => grant.filter)).toEqual(['a', 'a'])
    await world.send(publish('a', 'x', 1))
    expect(takenTexts(subscription)).toEqual(['x'])
  })

  it('a second subscription later is no silent no-op: granted, and delivered to', async () => {
    const world = await agreed()
    await subscribe(world, 'a', { qos: 1, retainHandling: 1 })
    const second = await subscribe(world, 'a', { qos: 1, retainHandling: 1 })
    expect(second.granted).toMatchObject([{ filter: 'a', qos: 1 }])
    await world.send(publish('a', 'x', 1))
    expect(takenTexts(second)).toEqual(['x'])
  })

  it('a joiner of a SUBSCRIBE that is not answered waits for the same answer', async () => {
    const world = await connected({}, silent)
    const first = quiet(world.client.subscribe('a', { retainHandling: 2 }))
    await world.settle()
    const second = quiet(world.client.subscribe('a', { retainHandling: 2 }))
    await world.settle()
    expect(world.peer.all('subscribe')).toHaveLength(1)
    await suback(world, 0x87)
    for (const call of [first, second]) expect(await world.outcome(call)).toMatchObject({ state: 'rejected', error: { reasonCode: 0x87 } })
  })

  it('one of a joined list is on the broker already: the rest is subscribed', async () => {
    const world = await agreed()
    await subscribe(world, 'a', { retainHandling: 2 })
    const both = await subscribe(world, ['a', 'b'], { retainHandling: 2 })
    expect(requests(world)).toEqual([[['a', 0, 2]], [['b', 0, 2]]])
    await world.send(publish('a', 'x'), publish('b', 'y'))
    expect(takenTexts(both)).toEqual(['x', 'y'])
  })
})

describe('merged options', () => {
  it.each([1, 2] as const)('raising the QoS with Retain Handling %i subscribes again, with Retain Handling 2', async (retainHandling) => {
    const world = await agreed()
    await subscribe(world, 'a', { qos: 0 })
    const second = await subscribe(world, 'a', { qos: 2, retainHandling })
    expect(requests(world)).toEqual([[['a', 0, 0]], [['a', 2, 2]]])
    expect(second.granted[0]?.qos).toBe(2)
  })

  it('raising the QoS with retained messages wanted uses Retain Handling 0', async () => {
    const world = await agreed()
    await subscribe(world, 'a', { qos: 0 })
    await subscribe(world, 'a', { qos: 1 })
    expect(requests(world)).toEqual([[['a', 0, 0]], [['a', 1, 0]]])
  })

  it('a joiner never lowers the QoS', async () => {
    const world = await agreed()
    await subscribe(world, 'a', { qos: 2 })
    await subscribe(world, 'a', { qos: 0 })
    expect(requests(world)).toEqual([[['a', 2, 0]], [['a', 2, 0]]])
  })

  it('Retain Handling 1 or 2 at no higher QoS needs no SUBSCRIBE', async () => {
    const world = await agreed()
    await subscribe(world, 'a', { qos: 1 })
    await subscribe(world, 'a', { qos: 1, retainHandling: 1 })
    await subscribe(world, 'a', { qos: 0, retainHandling: 2 })
    expect(world.peer.all('subscribe')).toHaveLength(1)
  })

  it.each([{ noLocal: true }, { retainAsPublished: true }])('%j against its absence: ERR_SUBSCRIPTION_CONFLICT, nothing sent', async (options) => {
    const world = await agreed()
    const first = await subscribe(world, 'a')
    const call = quiet(world.client.subscribe(['b', { filter: 'a', ...options }]))
    expect(await world.outcome(call)).toMatchObject({ state: 'rejected', error: { code: 'ERR_SUBSCRIPTION_CONFLICT', outcome: 'not-sent' } })
    expect(world.peer.all('subscribe')).toHaveLength(1)
    await world.send(publish('a', 'x'), publish('b', 'y'))
    expect(takenTexts(first)).toEqual(['x'])
    expect(world.seen('unclaimed')).toHaveLength(1)
  })

  it('a conflict inside one list', async () => {
    const world = await agreed()
    const call = quiet(world.client.subscribe([{ filter: 'a', noLocal: true }, { filter: 'a' }]))
    expect(await world.outcome(call)).toMatchObject({ state: 'rejected', error: { code: 'ERR_SUBSCRIPTION_CONFLICT' } })
    expect(world.peer.all('subscribe')).toEqual([])
  })

  it('after the last has left, other options are no conflict', async () => {
    const world = await agreed()
    const first = await subscribe(world, 'a')
    const left = first.unsubscribe()
    await world.settle()
    await left
    await subscribe(world, 'a', { noLocal: true })
    expect(world.peer.last('subscribe').subscriptions[0]?.noLocal).toBe(true)
  })

  it('a raise that is refused leaves the first one alone', async () => {
    const world = await connected({}, (packet) =>
      packet.type === 'subscribe' && packet.subscriptions[0]?.qos === 1
        ? { type: 'suback', packetId: packet.packetId, reasonCodes: [0x97] }
        : agreeable(packet),
    )
    const first = read(await subscribe(world, 'a'))
    const call = quiet(world.client.subscribe('a', { qos: 1 }))
    expect(await world.outcome(call)).toMatchObject({ state: 'rejected', error: { reasonCode: 0x97 } })
    await world.send(publish('a', 'x'))
    expect(first.texts).toEqual(['x'])
    expect(world.peer.all('unsubscribe')).toEqual([])
  })
})

describe('$share', () => {
  it('is never subscribed again for a joiner, whatever it asks', async () => {
    const world = await agreed()
    await subscribe(world, '$share/g/a', { qos: 0 })
    const second = await subscribe(world, '$share/g/a', { qos: 2 })
    expect(world.peer.all('subscribe')).toHaveLength(1)
    expect(second.granted[0]?.qos).toBe(0)
  })

  it('requireQos refuses what the shared subscription does not have', async () => {
    const world = await agreed()
    const first = read(await subscribe(world, '$share/g/a', { qos: 0 }))
    const call = quiet(world.client.subscribe('$share/g/a', { qos: 2, requireQos: true }))
    expect(await world.outcome(call)).toMatchObject({ state: 'rejected', error: { code: 'ERR_SUBSCRIBE_REFUSED' } })
    await world.send(publish('a', 'x'))
    expect(first.texts).toEqual(['x'])
    expect(world.peer.all('unsubscribe')).toEqual([])
  })
})

describe('retained messages and late joiners', () => {
  it('after SUBACK: only the joiner gets them', async () => {
    const world = await agreed()
    const first = read(await subscribe(world, 'a'))
    await world.send(retained('old'))
    const second = read(await subscribe(world, 'a'))
    expect(requests(world)).toEqual([[['a', 0, 0]], [['a', 0, 0]]])
    await world.send(retained('old'))
    expect([first.texts, second.texts]).toEqual([['old'], ['old']])
    await world.send(publish('a', 'live'))
    expect([first.texts, second.texts]).toEqual([
      ['old', 'live'],
      ['old', 'live'],
    ])
  })

  it('[MQTT-3.8.4-2] before SUBACK: only the joiner gets them', async () => {
    const world = await connected({}, silent)
    const call = world.client.subscribe('a')
    await world.settle()
    await world.send(retained('old'))
    await suback(world, 0)
    const first = read(await call)
    await world.settle()
    expect(first.texts).toEqual(['old'])
    const joined = world.client.subscribe('a')
    await world.settle()
    await world.send(retained('old'))
    await suback(world, 0)
    const second = read(await joined)
    await world.settle()
    expect(second.texts).toEqual(['old'])
    expect(first.texts).toEqual(['old'])
  })

  it('two joiners in a row: each gets them once, in both broker orders', async () => {
    for (const early of [true, false]) {
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
      }
      expect(readings.map((reading) => reading.texts)).toEqual([['old'], ['old'], ['old']])
    }
  })

  it('a first subscription does not lose its retained messages to a joiner that came before they arrived', async () => {
    const world = await connected({}, silent)
    const first = quiet(world.client.subscribe('a'))
    await world.settle()
    const [packet] = world.peer.all('subscribe')
    const second = quiet(world.client.subscribe('a'))
    await world.settle()
    await world.send({ type: 'suback', packetId: packet?.packetId ?? 0, reasonCodes: [0] }, retained('old'))
    await suback(world, 0)
    await world.send(retained('old'))
    expect(takenTexts(await first)).toContain('old')
    expect(takenTexts(await second)).toContain('old')
  })

  it('in one turn, only those get them who wanted them', async () => {
    const world = await agreed()
    const wanting = world.client.subscribe('a', { retainHandling: 1 })
    const averse = world.client.subscribe('a', { retainHandling: 2 })
    await world.settle()
    expect(requests(world)).toEqual([[['a', 0, 1]]])
    await world.send(retained('old'))
    expect(takenTexts(await wanting)).toEqual(['old'])
    expect(takenTexts(await averse)).toEqual([])
  })

  it('Retain As Published: RETAIN 1 says nothing, so everybody gets every copy', async () => {
    const world = await agreed()
    const first = await subscribe(world, 'a', { retainAsPublished: true })
    const second = await subscribe(world, 'a', { retainAsPublished: true })
    await world.send(retained('live'))
    expect(taken(first)).toMatchObject({ retain: true })
    expect(takenTexts(second)).toEqual(['live'])
  })

  it('a retained copy at QoS 1 for a joiner who has left is acknowledged and counted', async () => {
    const world = await agreed()
    const first = await subscribe(world, 'a', { qos: 1 })
    const second = await subscribe(world, 'a', { qos: 1 })
    const left = second.unsubscribe()
    await world.settle()
    await left
    await world.send(retained('old', 1))
    expect(takenTexts(first)).toEqual([])
    expect(acks(world)).toEqual(['puback 1'])
  })
})

describe('several consumers of one message', () => {
  it('one PUBACK, after all have settled', async () => {
    const world = await agreed()
    const first = await subscribe(world, 'a', { qos: 1, ack: 'manual' })
    const second = await subscribe(world, 'a', { qos: 1, ack: 'manual' })
    await world.send(publish('a', 'x', 1))
    expect(taken(first).ack()).toBe(true)
    await world.settle()
    expect(acks(world)).toEqual([])
    expect(taken(second).ack()).toBe(true)
    await world.settle()
    expect(acks(world)).toEqual(['puback 1'])
  })

  it.each([
    ['success if any succeeded', 0x80, 0, 'puback 1'],
    ['success if any succeeded, whoever is first', 0, 0x97, 'puback 1'],
    ['a failure when all failed', 0x80, 0x80, 'puback 1 0x80'],
  ])('%s', async (_what, one, other, expected) => {
    const world = await agreed()
    const first = await subscribe(world, 'a', { qos: 1, ack: 'manual' })
    const second = await subscribe(world, 'a', { qos: 1, ack: 'manual' })
    await world.send(publish('a', 'x', 1))
    taken(first).ack(one)
    taken(second).ack(other)
    await world.settle()
    expect(acks(world)).toEqual([expected])
  })

  it('one that acknowledges twice does not count for the other', async () => {
    const world = await agreed()
    const first = await subscribe(world, 'a', { qos: 1, ack: 'manual' })
    await subscribe(world, 'a', { qos: 1, ack: 'manual' })
    await world.send(publish('a', 'x', 1))
    const message = taken(first)
    expect([message.ack(), message.ack()]).toEqual([true, false])
    await world.settle()
    expect(acks(world)).toEqual([])
  })

  it('a consumer that asked for QoS 0 never delays an ack', async () => {
    const world = await agreed()
    const [lazy, keen] = await Promise.all([subscribe(world, 'a', { qos: 0 }), subscribe(world, 'a', { qos: 1, ack: 'manual' })])
    await world.send(publish('a', 'x', 1))
    taken(keen).ack()
    await world.settle()
    expect(acks(world)).toEqual(['puback 1'])
    expect(taken(lazy).ack()).toBe(true)
  })

  it('only QoS 0 consumers are left of a QoS 1 subscription: acknowledged at once', async () => {
    const world = await agreed()
    await subscribe(world, 'a', { qos: 0 })
    const keen = await subscribe(world, 'a', { qos: 1 })
    const left = keen.unsubscribe()
    await world.settle()
    await left
    await world.send(publish('a', 'x', 1))
    expect(acks(world)).toEqual(['puback 1'])
  })

  it('a stalled consumer that leaves does not hold the message any more', async () => {
    const world = await agreed()
    const slow = await subscribe(world, 'a', { qos: 1 })
    const quick = await subscribe(world, 'a', { qos: 1, ack: 'manual' })
    await world.send(publish('a', 'x', 1))
    taken(quick).ack()
    await world.settle()
    expect(acks(world)).toEqual([])
    const left = slow.unsubscribe()
    await world.settle()
    await left
    expect(acks(world)).toEqual(['puback 1'])
  })

  it('each has bytes and properties of its own', async () => {
    const world = await agreed()
    const first = await subscribe(world, 'a')
    const second = await subscribe(world, 'a')
    await world.send(publish('a', 'abc', undefined, { properties: { correlationData: Uint8Array.of(1, 2), userProperties: [['k', 'v']] } }))
    const [one, other] = [taken(first), taken(second)]
    one.payload.fill(0)
    one.properties.correlationData?.fill(0)
    expect(other.text()).toBe('abc')
    expect(other.properties.correlationData).toEqual(Uint8Array.of(1, 2))
    expect(one.payload.buffer).not.toBe(other.payload.buffer)
  })
})
