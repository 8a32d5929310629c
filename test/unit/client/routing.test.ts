/** Who gets a message: filters and topics, Subscription Identifiers, overlapping filters, groups. */
import { describe, expect, it } from 'vitest'
import type { Filters, Subscription } from '../../../src/client/api/index.js'
import { BaseClient } from '../../../src/client/client.js'
import { ScriptedPeer } from '../../../src/testing/scripted-peer.js'
import { VirtualClock } from '../../../src/testing/virtual-clock.js'
import { virtualPlatform } from '../../../src/testing/virtual-platform.js'
import { memoryPair } from '../../../src/transport/memory.js'
import { agreeable, connected, type World } from './harness.js'
import { acks, agreed, publish, quick, subscribe, taken, takenTexts } from './incoming.js'

const withoutIdentifiers = () =>
  connected({}, (packet) =>
    packet.type === 'connect'
      ? { type: 'connack', sessionPresent: false, reasonCode: 0, properties: { subscriptionIdentifierAvailable: 0 } }
      : agreeable(packet),
  )

const identifiers = (world: World): number[] => world.peer.all('subscribe').flatMap((packet) => packet.properties.subscriptionIdentifiers ?? [])
const tagged = (topic: string, text: string, ...subscriptionIdentifiers: number[]) =>
  publish(topic, text, undefined, { properties: { subscriptionIdentifiers } })

describe('filters and topics', () => {
  it.each([
    ['a/+', 'a/b', true],
    ['a/+', 'a', false],
    ['a/+', 'a/b/c', false],
    ['a/+', 'a/', true],
    ['+', 'a', true],
    ['+', '/a', false],
    ['+/+', '/a', true],
    ['/+', '/a', true],
    ['#', 'a/b/c', true],
    ['#', '/', true],
    ['a/#', 'a', true],
    ['a/#', 'a/', true],
    ['a/#', 'a/b/c', true],
    ['a/#', 'ab', false],
    ['a//b', 'a//b', true],
    ['a/+/b', 'a//b', true],
    ['a/b', 'a/B', false],
    ['#', '$SYS/x', false],
    ['+/x', '$SYS/x', false],
    ['$SYS/#', '$SYS/x', true],
    ['$SYS/+', '$SYS/x', true],
    ['a/$SYS/#', 'a/$SYS/x', true],
    ['a b/ü', 'a b/ü', true],
  ])('[MQTT-4.7.1-1] [MQTT-4.7.1-2] %s and %s: %s', async (filter, topic, matches) => {
    const world = await agreed()
    const subscription = await subscribe(world, filter)
    await world.send(publish(topic, 'x'))
    expect(takenTexts(subscription)).toEqual(matches ? ['x'] : [])
    expect(world.seen('unclaimed')).toHaveLength(matches ? 0 : 1)
  })

  it('a topic and filters of more than 65,000 bytes and levels', async () => {
    const world = await agreed()
    const topic = '/'.repeat(65_000)
    const exact = await subscribe(world, topic)
    const deep = await subscribe(world, `${'+/'.repeat(32_000)}#`)
    await world.send(publish(topic, 'x'))
    expect(takenTexts(exact)).toEqual(['x'])
    expect(takenTexts(deep)).toEqual(['x'])
  })

  it('$share/g/f matches on f, and each share is a subscription of its own', async () => {
    const world = await agreed()
    const shared = await subscribe(world, '$share/g/a/+')
    const other = await subscribe(world, '$share/h/a/+')
    const [g, h] = identifiers(world)
    await world.send(tagged('a/b', 'for g', g ?? 0), tagged('a/b', 'for h', h ?? 0), publish('$share/g/a/b', 'no'))
    expect(takenTexts(shared)).toEqual(['for g'])
    expect(takenTexts(other)).toEqual(['for h'])
  })

  it('added, overlapping, removed, removed again, added again', async () => {
    const world = await agreed()
    const wide = await subscribe(world, 'a/#')
    for (let round = 0; round < 3; round++) {
      const narrow = await subscribe(world, 'a/b')
      const identifier = identifiers(world)
      await world.send(tagged('a/b', `r${round}`, identifier[0] ?? 0, identifier.at(-1) ?? 0))
      expect(takenTexts(narrow)).toEqual([`r${round}`])
      expect(takenTexts(wide)).toEqual([`r${round}`])
      for (let time = 0; time < 2; time++) {
        const left = narrow.unsubscribe()
        await world.settle()
        await left
      }
      await world.send(publish('a/b', 'after'))
      expect(takenTexts(wide)).toEqual(['after'])
      expect(narrow.size).toBe(0)
    }
  })

  it('of very many subscriptions only those that match are given a message', async () => {
    const world = await agreed()
    const filters = Array.from({ length: 20_000 }, (_, index) => `many/${index}`)
    const crowd = await Promise.all([subscribe(world, filters.slice(1)), subscribe(world, 'many/0')])
    await world.send(publish('many/0', 'x'), publish('many/19999', 'y'))
    expect(crowd.map((subscription) => takenTexts(subscription))).toEqual([['y'], ['x']])
  })
})

describe('Subscription Identifiers', () => {
  it('the filters of one packet share one, other packets have others, all within range', async () => {
    const world = await agreed()
    await subscribe(world, ['a', 'b/+'])
    await subscribe(world, 'c')
    await subscribe(world, 'd')
    const given = identifiers(world)
    expect(given).toHaveLength(3)
    expect(new Set(given).size).toBe(3)
    for (const identifier of given) {
      expect(identifier).toBeGreaterThanOrEqual(1)
      expect(identifier).toBeLessThanOrEqual(268_435_455)
    }
  })

  it('they start at a random base', async () => {
    const bases = new Set<number>()
    for (let seed = 1; seed <= 5; seed++) {
      const clock = new VirtualClock()
      let peer: ScriptedPeer | undefined
      const transport = async () => {
        const [near, far] = memoryPair({ schedule: (callback, delay) => clock.setTimer(callback, delay) })
        peer = new ScriptedPeer(far, 5, agreeable)
        return near
      }
      const client = new BaseClient(virtualPlatform(clock, seed * 7919), { url: 'memory://x', transport }, {})
      const connecting = client.connect()
      client.subscription('a')
      await clock.settle()
      await connecting
      bases.add(peer?.last('subscribe').properties.subscriptionIdentifiers?.[0] ?? 0)
    }
    expect(bases.size).toBe(5)
    expect(Math.max(...bases)).toBeGreaterThan(1000)
  })

  it('subscribing again for a joiner keeps the identifier of the filter', async () => {
    const world = await agreed()
    await subscribe(world, ['a', 'b'])
    await subscribe(world, ['b', 'c'])
    const sent = world.peer
      .all('subscribe')
      .map((packet) => [packet.subscriptions.map((item) => item.filter), packet.properties.subscriptionIdentifiers?.[0]])
    const group = sent[0]?.[1]
    expect(sent).toContainEqual([['b'], group])
    const fresh = sent.find(([filters]) => (filters as string[]).includes('c'))
    expect(fresh?.[0]).toEqual(['c'])
    expect(fresh?.[1]).not.toBe(group)
  })

  it("a user's own identifier is never allocated automatically", async () => {
    const world = await agreed()
    await subscribe(world, 'a')
    const next = (identifiers(world)[0] ?? 0) + 1
    await subscribe(world, 'b', { properties: { subscriptionIdentifier: next } })
    await subscribe(world, 'c')
    expect(identifiers(world)[2]).not.toBe(next)
  })

  it("a user's own identifier is not allocated after its subscription has gone either", async () => {
    const world = await agreed()
    await subscribe(world, 'a')
    const next = (identifiers(world)[0] ?? 0) + 1
    const own = await subscribe(world, 'b', { properties: { subscriptionIdentifier: next } })
    const left = own.unsubscribe()
    await world.settle()
    await left
    await subscribe(world, 'c')
    expect(identifiers(world)[2]).not.toBe(next)
  })

  it("a user's own identifier routes like ours", async () => {
    const world = await agreed()
    const own = await subscribe(world, 'a/b', { properties: { subscriptionIdentifier: 5 } })
    const wide = await subscribe(world, 'a/#')
    await world.send(tagged('a/b', 'x', 5))
    expect(takenTexts(own)).toEqual(['x'])
    expect(takenTexts(wide)).toEqual([])
  })

  it('the message tells the identifiers that it came with', async () => {
    const world = await agreed()
    const subscription = await subscribe(world, 'a')
    await world.send(tagged('a', 'x', 3, 4))
    expect(taken(subscription).properties.subscriptionIdentifiers).toEqual([3, 4])
  })
})

describe('overlapping filters', () => {
  async function overlapping(narrowFilters: Filters = 'a/b') {
    const world = await agreed()
    const wide = await subscribe(world, 'a/#')
    const narrow = await subscribe(world, narrowFilters)
    const [wideId, narrowId] = identifiers(world)
    return { world, wide, narrow, wideId: wideId ?? 0, narrowId: narrowId ?? 0 }
  }

  it('[MQTT-3.3.4-3] [MQTT-3.3.4-4] one copy with two identifiers: each subscription once', async () => {
    const { world, wide, narrow, wideId, narrowId } = await overlapping()
    await world.send(tagged('a/b', 'x', wideId, narrowId))
    expect(takenTexts(wide)).toEqual(['x'])
    const message = taken(narrow)
    expect(message.properties.subscriptionIdentifiers).toEqual([wideId, narrowId])
    expect(narrow.size).toBe(0)
  })

  it('[MQTT-3.3.4-5] two copies with one identifier each: each subscription once', async () => {
    const { world, wide, narrow, wideId, narrowId } = await overlapping()
    await world.send(tagged('a/b', 'for wide', wideId), tagged('a/b', 'for narrow', narrowId))
    expect(takenTexts(wide)).toEqual(['for wide'])
    expect(takenTexts(narrow)).toEqual(['for narrow'])
  })

  it('the identifier and the topic must both match: a group is not given what its other filters ask for', async () => {
    const { world, wide, narrow, narrowId } = await overlapping(['x/y', 'a/b'])
    await world.send(tagged('a/c', 'x', narrowId))
    expect(takenTexts(narrow)).toEqual([])
    expect(takenTexts(wide)).toEqual(['x'])
  })

  it('one subscription on two overlapping filters of one packet: one copy, once', async () => {
    const world = await agreed()
    const subscription = await subscribe(world, ['a/#', 'a/b'], { qos: 1 })
    const [identifier] = identifiers(world)
    await world.send(publish('a/b', 'x', 1, { properties: { subscriptionIdentifiers: [identifier ?? 0] } }))
    expect(takenTexts(subscription)).toEqual(['x'])
    await world.settle()
    expect(acks(world)).toEqual(['puback 1'])
  })

  it('a filter of a connection without identifiers, beside one that has one: both get the copy', async () => {
    const { world, wide, wideId } = await overlapping('x')
    world.answer = (packet) =>
      packet.type === 'connect'
        ? { type: 'connack', sessionPresent: true, reasonCode: 0, properties: { subscriptionIdentifierAvailable: 0 } }
        : agreeable(packet)
    await Promise.all([world.client.reconnect({ force: true }), world.clock.advance(2000)])
    const nameless = await subscribe(world, 'a/b')
    await world.send(tagged('a/b', 'x', wideId))
    expect(takenTexts(wide)).toEqual(['x'])
    expect(takenTexts(nameless)).toEqual(['x'])
  })

  it('a filter that was sent with an identifier, and again on a connection that has none: both get the copy', async () => {
    const { world, wide, wideId } = await overlapping('x')
    world.answer = (packet) => (packet.type === 'subscribe' ? undefined : agreeable(packet))
    const pending = world.client.subscribe('a/b')
    await world.settle()
    expect(identifiers(world)).toHaveLength(3)
    world.answer = (packet) =>
      packet.type === 'connect'
        ? { type: 'connack', sessionPresent: true, reasonCode: 0, properties: { subscriptionIdentifierAvailable: 0 } }
        : agreeable(packet)
    await Promise.all([world.client.reconnect({ force: true }), world.clock.advance(2000)])
    await world.send(tagged('a/b', 'x', wideId))
    expect(takenTexts(wide)).toEqual(['x'])
    expect(takenTexts(await pending)).toEqual(['x'])
  })

  it('a copy that names another subscription is not for one whose SUBSCRIBE has not left', async () => {
    const { world, wide, wideId } = await overlapping('x')
    let early: Promise<Subscription> | undefined
    world.client.on('packet', ({ direction, packet }) => {
      if (direction === 'in' && packet.type === 'publish') early ??= world.client.subscribe('a/b')
    })
    await world.send(tagged('a/b', 'x', wideId))
    expect(takenTexts(wide)).toEqual(['x'])
    expect(takenTexts((await early) as Subscription)).toEqual([])
  })

  it('an unknown identifier: by topic alone', async () => {
    const { world, wide, narrow, wideId, narrowId } = await overlapping()
    const unknown = [1, 2, 3, 4].find((value) => value !== wideId && value !== narrowId) ?? 0
    await world.send(tagged('a/b', 'x', unknown), tagged('other', 'y', unknown))
    expect(takenTexts(wide)).toEqual(['x'])
    expect(takenTexts(narrow)).toEqual(['x'])
    expect(world.client.state).toBe('connected')
  })

  it('a copy for a filter that was left a moment ago is not for the others, who get their own', async () => {
    const { world, wide, narrow, wideId, narrowId } = await overlapping()
    await Promise.all([narrow.unsubscribe(), world.settle()])
    const late = publish('a/b', 'late', 1, { properties: { subscriptionIdentifiers: [narrowId] } })
    await world.send(late, tagged('a/b', 'own', wideId))
    expect(takenTexts(wide)).toEqual(['own'])
    expect(acks(world)).toEqual(['puback 1'])
    // Others that are not asked about are as before.
    await world.send(publish('a/b', 'no identifier'), tagged('a/c', 'own too', wideId))
    expect(takenTexts(wide)).toEqual(['no identifier', 'own too'])
  })

  it('a copy for a share that was left is told: no other member of the group gets it', async () => {
    const { world, wide, narrow, narrowId } = await overlapping('$share/g/a/b')
    await Promise.all([narrow.unsubscribe(), world.settle()])
    await world.send(tagged('a/b', 'late', narrowId))
    expect(takenTexts(wide)).toEqual([])
    expect(world.seen('unclaimed')).toMatchObject([{ message: { topic: 'a/b' } }])
  })

  it('a copy for a filter that was left and taken again at once is not for the others', async () => {
    const { world, wide, narrow, narrowId } = await overlapping()
    world.answer = (packet) => (packet.type === 'unsubscribe' ? undefined : agreeable(packet))
    narrow.unsubscribe().catch(() => undefined)
    const again = await subscribe(world, 'a/b')
    await world.send(tagged('a/b', 'late', narrowId))
    expect(takenTexts(wide)).toEqual([])
    expect(takenTexts(again)).toEqual(['late'])
  })

  it('a copy for a filter that was left is for who has subscribed to that filter again', async () => {
    const { world, wide, narrow, narrowId } = await overlapping()
    await Promise.all([narrow.unsubscribe(), world.settle()])
    const again = await subscribe(world, 'a/b')
    await world.send(tagged('a/b', 'late', narrowId))
    expect(takenTexts(wide)).toEqual([])
    expect(takenTexts(again)).toEqual(['late'])
  })

  it('of filters that were left the last 1,024 are known, then the topic decides', async () => {
    const { world, wide, narrow, narrowId } = await overlapping()
    await Promise.all([narrow.unsubscribe(), world.settle()])
    for (let index = 0; index < 1024; index++) {
      const other = await subscribe(world, `other/${index}`)
      await Promise.all([other.unsubscribe(), world.settle()])
    }
    await world.send(tagged('a/b', 'late', narrowId))
    expect(takenTexts(wide)).toEqual(['late'])
  })

  it('one identifier known, one unknown: the known one decides', async () => {
    const { world, wide, narrow, wideId, narrowId } = await overlapping()
    const unknown = [1, 2, 3].find((value) => value !== wideId && value !== narrowId) ?? 0
    await world.send(tagged('a/b', 'x', unknown, narrowId))
    expect(takenTexts(wide)).toEqual([])
    expect(takenTexts(narrow)).toEqual(['x'])
  })

  it('no identifier at all: by topic alone, to everybody who matches', async () => {
    const { world, wide, narrow } = await overlapping()
    await world.send(publish('a/b', 'x'))
    expect(takenTexts(wide)).toEqual(['x'])
    expect(takenTexts(narrow)).toEqual(['x'])
  })

  it('a broker without identifiers: none is sent, it shows in negotiated, and one copy reaches both', async () => {
    const world = await withoutIdentifiers()
    expect(world.client.negotiated?.subscriptionIdentifierAvailable).toBe(false)
    const wide = await subscribe(world, 'a/#')
    const narrow = await subscribe(world, 'a/b')
    expect(identifiers(world)).toEqual([])
    await world.send(publish('a/b', 'x'))
    expect([takenTexts(wide), takenTexts(narrow)]).toEqual([['x'], ['x']])
  })

  it('two filters of the same subscription that both match: one delivery, one ack', async () => {
    const world = await withoutIdentifiers()
    const subscription = await subscribe(world, ['a/#', 'a/+', 'a/b'], { qos: 1, ack: 'manual' })
    await world.send(publish('a/b', 'x', 1))
    expect(subscription.size).toBe(1)
    taken(subscription).ack()
    await world.settle()
    expect(acks(world)).toEqual(['puback 1'])
  })

  it.each(['a/#', 'a/b'])('a consumer that asked for QoS 1 on %s and for QoS 0 on the other owes the ack', async (owing) => {
    const world = await withoutIdentifiers()
    const subscription = await subscribe(
      world,
      ['a/#', 'a/b'].map((filter) => ({ filter, qos: filter === owing ? 1 : 0 })),
      { ack: 'manual' },
    )
    await world.send(publish('a/b', 'x', 1))
    expect(acks(world)).toEqual([])
    taken(subscription).ack()
    await world.settle()
    expect(acks(world)).toEqual(['puback 1'])
  })

  it.each([64, 65])('%i Subscription Identifiers on one message', async (count) => {
    const world = await agreed()
    const subscription = await subscribe(world, 'a')
    await world.send(tagged('a', 'x', ...Array.from({ length: count }, (_, index) => index + 1)))
    expect(takenTexts(subscription)).toEqual(count === 64 ? ['x'] : [])
    expect(world.peer.all('disconnect').map((packet) => packet.reasonCode)).toEqual(count === 64 ? [] : [0x97])
  })
})

it('order: what one subscription gets is what the broker sent, in order (I3, [MQTT-4.6.0-6])', async () => {
  const world = await agreed()
  const subscription = await subscribe(world, ['a', 'b'])
  const sent = quick('a', 50).flatMap((packet, index) => [packet, publish('b', `b${index}`)])
  await world.send(...sent)
  expect(takenTexts(subscription)).toEqual(Array.from({ length: 50 }, (_, index) => [`${index + 1}`, `b${index}`]).flat())
})
