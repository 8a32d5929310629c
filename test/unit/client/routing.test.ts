/** Which reader gets a message: shares, Subscription Identifiers, overlapping filters, a handler that is one for many filters; and messages that nothing here claims. */
import { describe, expect, it } from 'vitest'
import { access } from '../../../src/client/access.js'
import { oneCopy } from '../../../src/client/options/hidden.js'
import type { Filters, Handler, Subscription } from '../../../src/client/options/index.js'
import { willing } from './across.js'
import { agreeable, connected, times, type World } from './harness.js'
import {
  acks,
  agreed,
  pubacks,
  publish,
  quick,
  quiet,
  read,
  resumed,
  series,
  subscribe,
  taken,
  takenTexts,
} from './incoming.js'
import { Rig } from './rig.js'
import { leave, listen } from './steps.js'

const without = (sessionPresent: boolean) =>
  willing(sessionPresent, { subscriptionIdentifierAvailable: 0 })

const identifiers = (world: World): number[] =>
  world.peer.all('subscribe').flatMap((packet) => packet.properties.subscriptionIdentifiers ?? [])
const tagged = (topic: string, text: string, ...subscriptionIdentifiers: number[]) =>
  publish(topic, text, undefined, { properties: { subscriptionIdentifiers } })

it('$share/g/f matches on f, and each share is a subscription of its own', async () => {
  const world = await agreed()
  const shared = await subscribe(world, '$share/g/a/+')
  const other = await subscribe(world, '$share/h/a/+')
  const [g = 0, h = 0] = identifiers(world)
  await world.send(tagged('a/b', 'for g', g), tagged('a/b', 'for h', h), publish('$share/g/a', ''))
  expect([takenTexts(shared), takenTexts(other)]).toEqual([['for g'], ['for h']])
})

it('Subscription Identifiers: the filters of one packet share one, other packets have others, all within range', async () => {
  const world = await agreed()
  for (const filter of [['a', 'b/+'], 'c', 'd']) await subscribe(world, filter)
  const given = identifiers(world)
  expect([given.length, new Set(given).size]).toEqual([3, 3])
  expect(given.every((id) => id >= 1 && id <= 268_435_455)).toBe(true)
})

it('Subscription Identifiers: they start at a random base', async () => {
  const bases = new Set<number>()
  for (const seed of [1, 7919, 104_729]) {
    const rig = await new Rig({}, { seed }).up()
    rig.client.subscription('a')
    await rig.settle()
    bases.add(rig.peer.last('subscribe').properties.subscriptionIdentifiers?.[0] ?? 0)
  }
  expect(bases.size).toBe(3)
  expect(Math.max(...bases)).toBeGreaterThan(1000)
})

it('Subscription Identifiers: subscribing again for a joiner keeps the identifier of the filter', async () => {
  const world = await agreed()
  await subscribe(world, ['a', 'b'])
  await subscribe(world, ['b', 'c'])
  const sent = world.peer.all('subscribe').map(({ subscriptions, properties }) => ({
    filters: subscriptions.map((item) => item.filter).join(),
    id: properties.subscriptionIdentifiers?.[0],
  }))
  const id = sent[0]?.id
  expect(sent).toContainEqual({ filters: 'b', id })
  expect(sent).toContainEqual({ filters: 'c', id: expect.any(Number) as number })
  expect(sent).not.toContainEqual({ filters: 'c', id })
})

it.each(['', 'after its subscription has gone'])(
  'Subscription Identifiers: one of the user is not given %s',
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

  it.each([
    ['[MQTT-3.3.4-3] [MQTT-3.3.4-4] one copy with two identifiers', ['w n'], ['w n'], ['w n']],
    ['[MQTT-3.3.4-5] two copies with one each', ['w', 'n'], ['w'], ['n']],
    ['an unknown identifier: by topic alone', ['unknown'], ['unknown'], ['unknown']],
    ['one known, one unknown: the known one decides', ['unknown n'], [], ['unknown n']],
    ['no identifier at all: by topic alone', [''], [''], ['']],
  ])('%s: each subscription that matches once', async (_what, copies, forWide, forNarrow) => {
    const { world, texts, ...ids } = await overlapping()
    for (const names of copies) {
      const numbers = (names.match(/\w+/g) ?? []) as ('w' | 'n' | 'unknown')[]
      await world.send(tagged('a/b', names, ...numbers.map((name) => ids[name])))
    }
    await world.send(tagged('other', 'y', ids.unknown))
    expect(texts()).toEqual([forWide, forNarrow])
    expect(world.client.state).toBe('connected')
  })

  it('the identifier and the topic must both match: a group is not given what its other filters ask for', async () => {
    const { world, texts, n } = await overlapping(['x/y', 'a/b'])
    await world.send(tagged('a/c', 'x', n))
    expect(texts()).toEqual([['x'], []])
  })

  it.each([false, true])(
    'one without an identifier gets the copy, too (sent: %s)',
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

  it.each(['before UNSUBACK', 'after it'])('a copy is for who took it again, %s', async (when) => {
    const { world, wide, narrow, n } = await overlapping()
    if (when === 'after it') await leave(world, narrow)
    else {
      world.answer = (packet) => (packet.type === 'unsubscribe' ? undefined : agreeable(packet))
      narrow.unsubscribe().catch(() => undefined)
    }
    const again = await subscribe(world, 'a/b')
    await world.send(tagged('a/b', 'late', n))
    expect([takenTexts(wide), takenTexts(again)]).toEqual([[], ['late']])
  })

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
})

it('order: what one subscription gets is what the broker sent, in order (I3, [MQTT-4.6.0-6])', async () => {
  const world = await agreed()
  const subscription = await subscribe(world, ['a', 'b'])
  const sent = quick('a', 50).flatMap((packet, index) => [packet, publish('b', `b${index}`)])
  await world.send(...sent)
  const texts = times(50, (index) => [`${index + 1}`, `b${index}`]).flat()
  expect(takenTexts(subscription)).toEqual(texts)
})

const unclaimed = (world: World): string[] =>
  world.seen('unclaimed').map(({ message }) => message.text())

describe('messages without a subscription, after Session Present 1', () => {
  it('QoS 1 and 2 wait for a subscription, and reach it in order', async () => {
    const world = await resumed()
    await world.send(publish('a', '1', 1), publish('a', '2', 2, { qos: 2 }), publish('a', '3', 3))
    expect([acks(world), unclaimed(world)]).toEqual([[], []])
    expect(takenTexts(world.client.subscription('a', { qos: 2 }))).toEqual(['1', '2', '3'])
    await world.settle()
    expect(acks(world)).toEqual(['puback 1', 'pubrec 2', 'puback 3'])
  })

  it('after unclaimedHold they are acknowledged in order, with an event each; later ones at once', async () => {
    const lines: string[] = []
    const world = await resumed({ logger: { warn: (line: string) => void lines.push(line) } })
    await world.send(...series('a', 2))
    await world.clock.advance(29_000)
    expect(acks(world)).toEqual([])
    await world.clock.advance(1001)
    expect([acks(world), unclaimed(world)]).toEqual([pubacks(1, 2), ['1', '2']])
    expect(lines.join()).toContain(
      '2 messages acknowledged unread: nobody subscribed within unclaimedHold (30000 ms)',
    )
    await world.send(publish('a', '3', 3))
    expect([acks(world), unclaimed(world)]).toEqual([pubacks(1, 3), ['1', '2', '3']])
  })

  it.each([1000, 0])('a hold of %d ms runs from CONNACK', async (unclaimedHold) => {
    const world = await resumed({ unclaimedHold })
    await world.clock.advance(0.9 * unclaimedHold)
    await world.send(publish('a', '1', 1))
    expect(acks(world)).toEqual(unclaimedHold === 0 ? ['puback 1'] : [])
    await world.clock.advance(101)
    expect(acks(world)).toEqual(['puback 1'])
  })

  it('only what matches is claimed; the rest waits on, and holds back the acks behind it', async () => {
    const world = await resumed()
    await world.send(publish('other', '1', 1), publish('a', '2', 2))
    const reading = read(world.client.subscription('a', { qos: 1 }))
    await world.settle()
    expect([reading.texts, acks(world)]).toEqual([['2'], []])
    await world.clock.advance(30_000)
    expect([acks(world), unclaimed(world)]).toEqual([pubacks(1, 2), ['1']])
  })

  it('a subscription that asks for QoS 0 does not delay the ack', async () => {
    const world = await resumed()
    await world.send(publish('a', '1', 1))
    const subscription = await subscribe(world, 'a', { qos: 0 })
    expect(acks(world)).toEqual(['puback 1'])
    expect(takenTexts(subscription)).toEqual(['1'])
  })

  it('disconnect() leaves what is held unacknowledged', async () => {
    const world = await resumed()
    await world.send(publish('a', '1', 1))
    await Promise.all([world.client.disconnect(), world.settle()])
    expect(acks(world)).toEqual([])
    expect(world.clock.pending).toBe(0)
  })
})

it('unclaimed: [MQTT-4.5.0-2] acknowledged at once, with the event', async () => {
  const world = await agreed({ clientId: 'c', cleanStart: false })
  await world.send(publish('a', '1', 1), publish('a', '2', 2, { qos: 2 }))
  expect([acks(world), unclaimed(world)]).toEqual([
    ['puback 1', 'pubrec 2'],
    ['1', '2'],
  ])
})

it('unclaimed: the message of the event can be read, and its ack is stale', async () => {
  const world = await agreed()
  await world.send(publish('a', 'x', 1, { properties: { contentType: 't' } }))
  const [event] = world.seen('unclaimed')
  const message = event?.message
  expect([message?.text(), message?.properties.contentType]).toEqual(['x', 't'])
  expect(message?.ack()).toBe(false)
})

it('unclaimed: a listener of the event that subscribes gets what comes next', async () => {
  const world = await agreed()
  const made: Subscription[] = []
  world.client.on('unclaimed', () => void made.push(world.client.subscription('a')))
  await world.send(publish('a', '1'), publish('a', '2'))
  expect(made.map(takenTexts)).toEqual([['2']])
})

/** What it was called with, and whether that is owed an acknowledgement. */
function marked(isOne = true): { readonly texts: string[]; readonly handler: Handler } {
  const texts: string[] = []
  const handler: Handler = (message) => void texts.push(message.text())
  return { texts, handler: Object.assign(handler, { [oneCopy]: isOne ? {} : undefined }) }
}

const lifetimes = ['owned', 'borrowed'] as const

describe.each(lifetimes)('one handler for overlapping filters, %s messages', (lifetime) => {
  it('is called once for a copy, and it is acknowledged once', async () => {
    const world = await connected({ protocolVersion: 4 }, agreeable)
    const { texts, handler } = marked()
    for (const filter of ['a/+', '#', 'a/b'])
      await listen(world, filter, handler, { qos: 1, lifetime })
    await world.send(publish('a/b', '1', 1), publish('a/b', '2', 2), publish('x', '3'))
    expect(texts).toEqual(['1', '2', '3'])
    expect(acks(world)).toEqual(['puback 1', 'puback 2'])
  })

  it('is called for each copy that names one filter, and once for one that names all', async () => {
    const world = await agreed()
    const { texts, handler } = marked()
    for (const filter of ['a/+', '#']) await listen(world, filter, handler, { qos: 1, lifetime })
    const [first = 0, second = 0] = world.peer
      .all('subscribe')
      .flatMap((packet) => packet.properties.subscriptionIdentifiers ?? [])
    const tagged = (text: string, ...subscriptionIdentifiers: number[]) =>
      publish('a/b', text, undefined, { properties: { subscriptionIdentifiers } })
    await world.send(tagged('1', first), tagged('2', second), tagged('3', first, second))
    expect(texts.sort()).toEqual(['1', '2', '3'])
  })

  it('the same filter twice, at QoS 0 and 1: the one that owes the acknowledgement gets it', async () => {
    const world = await agreed()
    const { texts, handler } = marked()
    await listen(world, 'a', handler, { qos: 1, lifetime })
    await listen(world, 'a', handler, { qos: 0, lifetime })
    await world.send(publish('a', '1', 1))
    expect(texts).toEqual(['1'])
    expect(acks(world)).toEqual(['puback 1'])
  })

  it('others get their own', async () => {
    const world = await agreed()
    const [one, other, plain] = [marked(), marked(), marked(false)]
    for (const filter of ['a', '#']) {
      await listen(world, filter, one.handler, { qos: 1, lifetime })
      await listen(world, filter, plain.handler, { qos: 1, lifetime })
    }
    await listen(world, '#', other.handler, { qos: 1, lifetime })
    await world.send(publish('a', '1', 1))
    expect([one.texts, other.texts, plain.texts]).toEqual([['1'], ['1'], ['1', '1']])
    expect(acks(world)).toEqual(['puback 1'])
  })
})

it('flush() sends filters before what is published behind them in the same turn', async () => {
  const world = await agreed()
  quiet(world.client.listen('a', () => undefined))
  world.client[access]().flush?.()
  quiet(world.client.publish('a', 'x'))
  await world.settle()
  const types = world.peer.received
    .map(({ type }) => type)
    .filter((type) => type === 'subscribe' || type === 'publish')
  expect(types).toEqual(['subscribe', 'publish'])
})
