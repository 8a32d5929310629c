/** Which reader gets a message: filters and topics, Subscription Identifiers, overlapping filters, groups. */
import { describe, expect, it } from 'vitest'
import type { Filters, Subscription } from '../../../src/client/api/index.js'
import { willing } from './across.js'
import { agreeable, type World } from './harness.js'
import { acks, agreed, publish, quick, subscribe, taken, takenTexts } from './incoming.js'
import { Rig } from './rig.js'

const without = (sessionPresent: boolean) =>
  willing(sessionPresent, { subscriptionIdentifierAvailable: 0 })

const identifiers = (world: World): number[] =>
  world.peer.all('subscribe').flatMap((packet) => packet.properties.subscriptionIdentifiers ?? [])
const tagged = (topic: string, text: string, ...subscriptionIdentifiers: number[]) =>
  publish(topic, text, undefined, { properties: { subscriptionIdentifiers } })
const leave = (world: World, subscription: Subscription) =>
  Promise.all([subscription.unsubscribe(), world.settle()])

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
    expect([takenTexts(exact), takenTexts(deep)]).toEqual([['x'], ['x']])
  })

  it('$share/g/f matches on f, and each share is a subscription of its own', async () => {
    const world = await agreed()
    const shared = await subscribe(world, '$share/g/a/+')
    const other = await subscribe(world, '$share/h/a/+')
    const [g = 0, h = 0] = identifiers(world)
    await world.send(
      tagged('a/b', 'for g', g),
      tagged('a/b', 'for h', h),
      publish('$share/g/a/b', 'no'),
    )
    expect([takenTexts(shared), takenTexts(other)]).toEqual([['for g'], ['for h']])
  })

  it('added, overlapping, removed, removed again, added again', async () => {
    const world = await agreed()
    const wide = await subscribe(world, 'a/#')
    for (let round = 0; round < 3; round++) {
      const narrow = await subscribe(world, 'a/b')
      const [first = 0, ...rest] = identifiers(world)
      await world.send(tagged('a/b', `r${round}`, first, rest.at(-1) ?? 0))
      expect([takenTexts(narrow), takenTexts(wide)]).toEqual([[`r${round}`], [`r${round}`]])
      for (let time = 0; time < 2; time++) await leave(world, narrow)
      await world.send(publish('a/b', 'after'))
      expect([takenTexts(wide), narrow.size]).toEqual([['after'], 0])
    }
  })
})

describe('Subscription Identifiers', () => {
  it('the filters of one packet share one, other packets have others, all within range', async () => {
    const world = await agreed()
    for (const filter of [['a', 'b/+'], 'c', 'd']) await subscribe(world, filter)
    const given = identifiers(world)
    expect([given.length, new Set(given).size]).toEqual([3, 3])
    expect(Math.min(...given)).toBeGreaterThanOrEqual(1)
    expect(Math.max(...given)).toBeLessThanOrEqual(268_435_455)
  })

  it('they start at a random base', async () => {
    const bases = new Set<number>()
    for (let seed = 1; seed <= 5; seed++) {
      const rig = await new Rig({}, { seed: seed * 7919 }).up()
      rig.client.subscription('a')
      await rig.settle()
      bases.add(rig.peer.last('subscribe').properties.subscriptionIdentifiers?.[0] ?? 0)
    }
    expect(bases.size).toBe(5)
    expect(Math.max(...bases)).toBeGreaterThan(1000)
  })

  it('subscribing again for a joiner keeps the identifier of the filter', async () => {
    const world = await agreed()
    await subscribe(world, ['a', 'b'])
    await subscribe(world, ['b', 'c'])
    const sent = world.peer.all('subscribe').map(({ subscriptions, properties }) => ({
      filters: subscriptions.map((item) => item.filter).join(),
      id: properties.subscriptionIdentifiers?.[0],
    }))
    const id = sent[0]?.id
    expect(sent).toContainEqual({ filters: 'b', id })
    expect(sent.filter(({ filters }) => filters.includes('c'))).toEqual([
      { filters: 'c', id: expect.any(Number) },
    ])
    expect(sent).not.toContainEqual({ filters: 'c', id })
  })

  it.each(['', 'after its subscription has gone'])(
    "a user's own identifier is never allocated automatically %s",
    async (gone) => {
      const world = await agreed()
      await subscribe(world, 'a')
      const next = (identifiers(world)[0] ?? 0) + 1
      const own = await subscribe(world, 'b', { properties: { subscriptionIdentifier: next } })
      if (gone !== '') await leave(world, own)
      await subscribe(world, 'c')
      expect(identifiers(world)[2]).not.toBe(next)
    },
  )

  it("a user's own identifier routes like ours", async () => {
    const world = await agreed()
    const own = await subscribe(world, 'a/b', { properties: { subscriptionIdentifier: 5 } })
    const wide = await subscribe(world, 'a/#')
    await world.send(tagged('a/b', 'x', 5))
    expect([takenTexts(own), takenTexts(wide)]).toEqual([['x'], []])
  })

  it('the message tells the identifiers that it came with', async () => {
    const world = await agreed()
    const subscription = await subscribe(world, 'a')
    await world.send(tagged('a', 'x', 3, 4))
    expect(taken(subscription).properties.subscriptionIdentifiers).toEqual([3, 4])
  })
})

describe('overlapping filters', () => {
  /** Readers of `a/#` and of another filter, with their identifiers and one that is unknown. */
  async function overlapping(narrowFilters: Filters = 'a/b') {
    const world = await agreed()
    const wide = await subscribe(world, 'a/#')
    const narrow = await subscribe(world, narrowFilters)
    const [w = 0, n = 0] = identifiers(world)
    const unknown = [1, 2, 3].find((value) => value !== w && value !== n) ?? 0
    /** What each has got. */
    const texts = () => [takenTexts(wide), takenTexts(narrow)]
    return { world, wide, narrow, w, n, unknown, texts }
  }

  type Send = (ids: { w: number; n: number; unknown: number }) => ReturnType<typeof publish>[]
  it.each<[string, Send, string[], string[]]>([
    [
      '[MQTT-3.3.4-3] [MQTT-3.3.4-4] one copy with two identifiers',
      ({ w, n }) => [tagged('a/b', 'x', w, n)],
      ['x'],
      ['x'],
    ],
    [
      '[MQTT-3.3.4-5] two copies with one each',
      ({ w, n }) => [tagged('a/b', 'w', w), tagged('a/b', 'n', n)],
      ['w'],
      ['n'],
    ],
    [
      'an unknown identifier: by topic alone',
      ({ unknown }) => [tagged('a/b', 'x', unknown)],
      ['x'],
      ['x'],
    ],
    [
      'one known, one unknown: the known one decides',
      ({ n, unknown }) => [tagged('a/b', 'x', unknown, n)],
      [],
      ['x'],
    ],
    ['no identifier at all: by topic alone', () => [publish('a/b', 'x')], ['x'], ['x']],
  ])('%s: each subscription that matches once', async (_what, send, forWide, forNarrow) => {
    const { world, texts, ...ids } = await overlapping()
    await world.send(...send(ids), tagged('other', 'y', ids.unknown))
    expect(texts()).toEqual([forWide, forNarrow])
    expect(world.client.state).toBe('connected')
  })

  it('the identifier and the topic must both match: a group is not given what its other filters ask for', async () => {
    const { world, texts, n } = await overlapping(['x/y', 'a/b'])
    await world.send(tagged('a/c', 'x', n))
    expect(texts()).toEqual([['x'], []])
  })

  it('one subscription on two overlapping filters of one packet: one copy, once', async () => {
    const world = await agreed()
    const subscription = await subscribe(world, ['a/#', 'a/b'], { qos: 1 })
    await world.send(
      publish('a/b', 'x', 1, { properties: { subscriptionIdentifiers: identifiers(world) } }),
    )
    expect(takenTexts(subscription)).toEqual(['x'])
    await world.settle()
    expect(acks(world)).toEqual(['puback 1'])
  })

  it.each([false, true])(
    'a filter of a connection without identifiers, beside one that has one: both get the copy (sent before: %s)',
    async (before) => {
      const { world, wide, w } = await overlapping('x')
      if (before)
        world.answer = (packet) => (packet.type === 'subscribe' ? undefined : agreeable(packet))
      const early = before ? world.client.subscribe('a/b') : undefined
      await world.settle()
      world.answer = without(true)
      await Promise.all([world.client.reconnect({ force: true }), world.clock.advance(2000)])
      const nameless = await (early ?? subscribe(world, 'a/b'))
      await world.send(tagged('a/b', 'x', w))
      expect([takenTexts(wide), takenTexts(nameless)]).toEqual([['x'], ['x']])
    },
  )

  it('a copy that names another subscription is not for one whose SUBSCRIBE has not left', async () => {
    const { world, wide, w } = await overlapping('x')
    let early: Promise<Subscription> | undefined
    world.client.on('packet', ({ direction, packet }) => {
      if (direction === 'in' && packet.type === 'publish') early ??= world.client.subscribe('a/b')
    })
    await world.send(tagged('a/b', 'x', w))
    expect([takenTexts(wide), takenTexts((await early) as Subscription)]).toEqual([['x'], []])
  })

  it('a copy for a filter that was left a moment ago is not for the others, who get their own', async () => {
    const { world, wide, narrow, w, n } = await overlapping()
    await leave(world, narrow)
    const late = publish('a/b', 'late', 1, { properties: { subscriptionIdentifiers: [n] } })
    await world.send(late, tagged('a/b', 'own', w))
    expect([takenTexts(wide), acks(world)]).toEqual([['own'], ['puback 1']])
    // Others that are not asked about are as before.
    await world.send(publish('a/b', 'no identifier'), tagged('a/c', 'own too', w))
    expect(takenTexts(wide)).toEqual(['no identifier', 'own too'])
  })

  it('a copy for a share that was left is told: no other member of the group gets it', async () => {
    const { world, wide, narrow, n } = await overlapping('$share/g/a/b')
    await leave(world, narrow)
    await world.send(tagged('a/b', 'late', n))
    expect(takenTexts(wide)).toEqual([])
    expect(world.seen('unclaimed')).toMatchObject([{ message: { topic: 'a/b' } }])
  })

  it.each(['before UNSUBACK', 'after it'])(
    'a copy for a filter that was left is for a reader that took it again, %s',
    async (when) => {
      const { world, wide, narrow, n } = await overlapping()
      if (when === 'after it') await leave(world, narrow)
      else {
        world.answer = (packet) => (packet.type === 'unsubscribe' ? undefined : agreeable(packet))
        narrow.unsubscribe().catch(() => undefined)
      }
      const again = await subscribe(world, 'a/b')
      await world.send(tagged('a/b', 'late', n))
      expect([takenTexts(wide), takenTexts(again)]).toEqual([[], ['late']])
    },
  )

  it('of filters that were left the last 1,024 are known, then the topic decides', async () => {
    const { world, wide, narrow, n } = await overlapping()
    await leave(world, narrow)
    for (let index = 0; index < 1024; index++)
      await leave(world, await subscribe(world, `other/${index}`))
    await world.send(tagged('a/b', 'late', n))
    expect(takenTexts(wide)).toEqual(['late'])
  })

  it('a broker without identifiers: none is sent, it shows in negotiated, and one copy reaches both', async () => {
    const world = await agreed({}, without(false))
    expect(world.client.negotiated?.subscriptionIdentifierAvailable).toBe(false)
    const [wide, narrow] = [await subscribe(world, 'a/#'), await subscribe(world, 'a/b')]
    expect(identifiers(world)).toEqual([])
    await world.send(publish('a/b', 'x'))
    expect([takenTexts(wide), takenTexts(narrow)]).toEqual([['x'], ['x']])
  })

  it.each([
    ['at QoS 1', [1, 1, 1]],
    ['of which the first is at QoS 0', [0, 0, 1]],
    ['of which the last is at QoS 0', [1, 0, 0]],
  ] as const)(
    'filters of the same subscription that all match, %s: one delivery, one ack that it owes',
    async (_what, levels) => {
      const world = await agreed({}, without(false))
      const filters = ['a/#', 'a/+', 'a/b'].map((filter, index) => ({
        filter,
        qos: levels[index] ?? 0,
      }))
      const subscription = await subscribe(world, filters, { ack: 'manual' })
      await world.send(publish('a/b', 'x', 1))
      expect([subscription.size, acks(world)]).toEqual([1, []])
      taken(subscription).ack()
      await world.settle()
      expect(acks(world)).toEqual(['puback 1'])
    },
  )

  it.each([64, 65])('%i Subscription Identifiers on one message', async (count) => {
    const world = await agreed()
    const subscription = await subscribe(world, 'a')
    await world.send(tagged('a', 'x', ...Array.from({ length: count }, (_, index) => index + 1)))
    expect(takenTexts(subscription)).toEqual(count === 64 ? ['x'] : [])
    const codes = world.peer.all('disconnect').map((packet) => packet.reasonCode)
    expect(codes).toEqual(count === 64 ? [] : [0x97])
  })
})

it('order: what one subscription gets is what the broker sent, in order (I3, [MQTT-4.6.0-6])', async () => {
  const world = await agreed()
  const subscription = await subscribe(world, ['a', 'b'])
  const sent = quick('a', 50).flatMap((packet, index) => [packet, publish('b', `b${index}`)])
  await world.send(...sent)
  const texts = Array.from({ length: 50 }, (_, index) => [`${index + 1}`, `b${index}`]).flat()
  expect(takenTexts(subscription)).toEqual(texts)
})
