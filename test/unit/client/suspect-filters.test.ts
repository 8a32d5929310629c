/** Filters at which the server ends the connection: tried alone, refused in the end, and what must never be taken for one. */
import { describe, expect, it } from 'vitest'
import type { ClientOptions, Subscription } from '../../../src/client/api/index.js'
import { constant } from '../../../src/client/parsing/backoff.js'
import type { MqttError } from '../../../src/errors.js'
import type { PacketInput } from '../../../src/wire/packet-input.js'
import { again, pause, short } from './across.js'
import { accepting, failure } from './harness.js'
import { acks, publish, quiet, read, subscribe, takenTexts } from './incoming.js'
import { Rig, reconnect } from './rig.js'
import { type StrictBroker, type Strictness, strict } from './strict-broker.js'

const refused = { code: 'ERR_SUBSCRIBE_REFUSED', outcome: 'refused', fault: 'remote' }

/** Packets of each connection in short, without identifiers. */
const wire = (broker: StrictBroker): string[][] =>
  broker.world.peers.map((peer) => peer.received.filter(({ type }) => type !== 'connect').map((packet) => short(packet).replace(/ #\d+/, '')))

const variants: readonly (readonly [string, Strictness, ClientOptions])[] = [
  ['5.0', {}, {}],
  ['5.0 without identifiers', { properties: { subscriptionIdentifierAvailable: 0 } }, {}],
  ['5.0, a session that is lost each time', { keeps: false }, {}],
  ['a durable session', {}, { clientId: 'c', cleanStart: false }],
  ['resubscribe always', {}, { resubscribe: 'always' }],
  ['3.1.1', { keeps: false }, { protocolVersion: 4 }],
  ['a durable session on 3.1.1', {}, { protocolVersion: 4, clientId: 'c', cleanStart: false }],
]

describe.each(variants)('a filter at which the server closes, %s', (_name, how, options) => {
  it('is refused after three trials; the call and what it asked for besides lives on, and so does everything else', async () => {
    const broker = await strict({ subscribe: ['bad'], ...how }, options)
    const { world } = broker
    const before = await subscribe(world, 'before', { qos: 1 })
    const both = quiet(world.client.subscribe(['bad', 'good'], { qos: 1 }))
    const alone = failure(world.client.subscribe('bad', { qos: 1, retainHandling: options.protocolVersion === 4 ? undefined : 2 }))
    const after = quiet(world.client.subscribe('after', { qos: 1 }))
    await world.clock.advance(20_000)
    expect((await both).granted).toMatchObject([
      { filter: 'bad', qos: undefined, reasonCode: 0x80, error: refused },
      { filter: 'good', qos: 1 },
    ])
    expect(await alone).toMatchObject(refused)
    expect((await alone).message).toContain('bad')
    expect([...broker.filters].sort()).toEqual(['after', 'before', 'good'])
    // The first one, and three trials.
    expect(broker.ended).toBe(4)
    const texts = ['before', 'good', 'after'].map((topic) => publish(topic, topic))
    await world.send(...texts)
    expect([before, await both, await after].map(takenTexts)).toEqual([['before'], ['good'], ['after']])
  })

  it('is left out of resubscribing; a new call tries again', async () => {
    const broker = await strict({ subscribe: ['bad'], ...how }, options)
    const { world } = broker
    await subscribe(world, 'good')
    const first = failure(world.client.subscribe('bad'))
    await world.clock.advance(20_000)
    expect(await first).toMatchObject(refused)
    await again(world, broker.answer)
    await world.clock.advance(10_000)
    expect(broker.ended).toBe(4)
    broker.how.subscribe = []
    const second = await subscribe(world, 'bad')
    expect(second.granted).toMatchObject([{ filter: 'bad', qos: 0 }])
  })

  it('that was granted before: its readers end with the error, an `error` event tells, the others go on', async () => {
    const broker = await strict({ ...how }, options)
    const { world } = broker
    const one = read(await subscribe(world, ['bad', 'good']))
    const two = read(await subscribe(world, 'bad', { retainHandling: options.protocolVersion === 4 ? undefined : 2 }))
    broker.how = { ...how, keeps: false, subscribe: ['bad'] }
    await again(world, broker.answer)
    await world.clock.advance(20_000)
    await world.send(publish('good', 'x'))
    expect(one).toMatchObject({ texts: ['x'], end: { state: 'running' } })
    expect(two.end).toMatchObject({ state: 'failed', error: refused })
    expect(world.seen('error')).toMatchObject([{ error: refused }])
    expect([...broker.filters]).toEqual(['good'])
    // Seven: the first one, and twice as many trials as for one that was never granted.
    expect(broker.ended).toBe(7)
  })
})

describe('a suspect', () => {
  it('goes last and alone, behind a PINGREQ that was answered and the SUBACKs of the others', async () => {
    const broker = await strict({ subscribe: ['bad'], keeps: false })
    const { world } = broker
    await subscribe(world, 'a')
    for (const filter of ['bad', 'b']) quiet(world.client.subscribe(filter))
    await world.clock.advance(20_000)
    const [first, second, third] = wire(broker)
    expect(first).toEqual(['subscribe a', 'subscribe bad', 'subscribe b'])
    expect(second).toEqual(['subscribe a', 'pingreq', 'subscribe bad'])
    // What was blamed least comes first.
    expect(third).toEqual(['subscribe a', 'pingreq', 'subscribe b', 'subscribe bad'])
  })

  it('a DISCONNECT of any code is not fatal while a SUBSCRIBE has no answer', async () => {
    for (const reasonCode of [0x80, 0x82, 0x83, 0x87, 0x8b, 0x8c, 0x8e, 0x8f, 0x97, 0x98, 0x9c, 0x9d, 0x9e, 0xa1, 0xa2]) {
      const broker = await strict({ subscribe: ['bad'], reasonCode })
      const { world } = broker
      const bad = failure(world.client.subscribe('bad'))
      quiet(world.client.subscribe('good'))
      await world.clock.advance(20_000)
      expect(await bad, `0x${reasonCode.toString(16)}`).toMatchObject({ ...refused, reasonCode })
      expect(world.client.state).toBe('connected')
      // Those that say no to a filter say it once.
      expect(broker.ended).toBe([0x87, 0x8f, 0x9e, 0xa2].includes(reasonCode) ? 2 : 4)
      expect([...broker.filters]).toEqual(['good'])
    }
  })

  it.each([
    [1, 2],
    [5, 6],
    [Number.POSITIVE_INFINITY, 20],
  ])('subscriptions.poisonAfter: %d', async (poisonAfter, connections) => {
    const broker = await strict({ subscribe: ['bad'] }, { subscriptions: { poisonAfter } })
    const call = quiet(broker.world.client.subscribe('bad'))
    await broker.world.clock.advance(600_000)
    const { state } = await broker.world.outcome(call)
    expect(state).toBe(connections === 20 ? 'pending' : 'rejected')
    if (connections === 20) expect(broker.ended).toBeGreaterThan(connections)
    else expect(broker.ended).toBe(connections)
  })

  it('$share filters and handlers: the same', async () => {
    const broker = await strict({ subscribe: ['$share/g/bad', 'listened', 'answered'], reasonCode: 0x9e })
    const { client, clock } = broker.world
    const failures = [
      failure(client.subscribe('$share/g/bad')),
      failure(client.listen('listened', () => undefined)),
      failure(client.respond('answered', () => 'x')),
    ]
    await clock.advance(30_000)
    for (const error of failures) expect(await error).toMatchObject({ ...refused, reasonCode: 0x9e })
    expect(client.state).toBe('connected')
  })

  it('two requests for one filter without an answer: each is tried', async () => {
    const broker = await strict({ subscribe: ['bad'] })
    const { world } = broker
    const ask = (qos: 0 | 1): Promise<Subscription>[] => ['bad', 'f'].map((filter) => quiet(world.client.subscribe(filter, { qos })))
    const [bad, first] = ask(0)
    await world.settle()
    const [worse, second] = ask(1)
    await world.clock.advance(20_000)
    expect((await Promise.all([first, second])).map((subscription) => subscription?.granted[0]?.qos)).toEqual([1, 1])
    for (const call of [bad, worse]) expect(await failure(call as Promise<unknown>)).toMatchObject(refused)
    expect([...broker.filters]).toEqual(['f'])
  })

  it('filters of one identifier keep it', async () => {
    const broker = await strict({ subscribe: ['bad'] })
    const { world } = broker
    quiet(world.client.subscribe(['a', 'bad', 'b']))
    await world.settle()
    const [first] = world.peer.all('subscribe')
    await world.clock.advance(20_000)
    const identifiers = world.peers.flatMap((peer) => peer.all('subscribe').map(({ properties }) => properties.subscriptionIdentifiers))
    expect(new Set(identifiers.map(String))).toEqual(new Set([String(first?.properties.subscriptionIdentifiers)]))
  })

  it('a blamed ending does not raise the backoff, and is no attempt that counts', async () => {
    const broker = await strict({ subscribe: ['bad'] }, { reconnect: { ...reconnect, maxAttempts: 2 }, subscriptions: { poisonAfter: 6 } })
    const bad = failure(broker.world.client.subscribe('bad'))
    await broker.world.clock.advance(100_000)
    expect(await bad).toMatchObject(refused)
    expect(broker.world.seen('reconnecting').map(({ delay }) => delay)).toEqual(Array(7).fill(1000))
    expect(broker.world.client.state).toBe('connected')
  })
})

describe('while a filter is tried', () => {
  it.each(variants)('publishes flow, and messages that were delivered are not delivered again, %s', async (_name, how, options) => {
    const broker = await strict({ subscribe: ['bad'], ...how }, options)
    const { world } = broker
    const good = read(await subscribe(world, 'good', { qos: 1 }))
    const bad = failure(world.client.subscribe('bad'))
    const outcomes: string[] = []
    for (let number = 0; number < 300; number++) {
      world.client.publish('t', String(number), { qos: 1 }).then(
        () => outcomes.push('acknowledged'),
        (error: MqttError) => outcomes.push(error.code),
      )
      if (number % 10 === 0) await world.clock.advance(50)
    }
    await world.clock.advance(20_000)
    expect(await bad).toMatchObject(refused)
    // What was on its way when the connection ended for the first time is lost with a clean session on 3.1.1.
    expect(outcomes.filter((outcome) => outcome === 'acknowledged').length).toBeGreaterThanOrEqual(how.keeps === false ? 299 : 300)
    expect(outcomes).toHaveLength(300)
    expect(good.end.state).toBe('running')
  })

  it('it waits until what came in is acknowledged: nothing comes again', async () => {
    const broker = await strict({ subscribe: ['bad'] })
    const { world } = broker
    const slow: string[] = []
    quiet(
      world.client.listen(
        'good',
        async (message) => {
          slow.push(message.text())
          await new Promise<void>((resolve) => world.clock.setTimer(resolve, 100))
        },
        { qos: 1 },
      ),
    )
    await world.settle()
    quiet(world.client.subscribe('bad'))
    await world.settle()
    broker.greeting = [publish('good', '1', 1, { dup: true }), publish('good', '2', 2, { dup: true })]
    await world.clock.advance(1 + pause)
    await world.clock.advance(150)
    expect(acks(world)).toEqual(['puback 1'])
    expect(broker.subscribed()).toEqual([])
    await world.clock.advance(51)
    expect(wire(broker).at(-1)).toEqual(['pingreq', 'puback', 'puback', 'subscribe bad'])
    expect(slow).toEqual(['1', '2'])
  })

  it('a server that acknowledges nothing holds it up for a second', async () => {
    const broker = await strict({ subscribe: ['bad'], ignores: ['publish'] })
    const { world } = broker
    quiet(world.client.publish('t', 'x', { qos: 1 }))
    const bad = failure(world.client.subscribe('bad'))
    await world.clock.advance(1 + pause)
    expect(broker.subscribed()).toEqual([])
    await world.clock.advance(1000)
    expect(broker.ended).toBe(2)
    await world.clock.advance(60_000)
    expect(await bad).toMatchObject(refused)
  })

  it('other calls wait for its answer, five seconds at most', async () => {
    const broker = await strict({ subscribe: ['silent'] })
    const { world } = broker
    quiet(world.client.subscribe('silent'))
    await world.clock.advance(1)
    world.answer = (packet) => (short(packet).startsWith('subscribe silent') ? undefined : broker.answer(packet))
    await world.clock.advance(1000)
    const other = quiet(world.client.subscribe('other'))
    await world.clock.advance(3000)
    expect(broker.subscribed().flat()).toEqual(['silent'])
    await world.clock.advance(3000)
    await expect(other).resolves.toMatchObject({ granted: [{ filter: 'other' }] })
  })

  it('a server that answers no PINGREQ gets it after a while, and nothing is blamed', async () => {
    const broker = await strict({ subscribe: ['f'], ignores: ['pingreq'] })
    const { world } = broker
    const call = quiet(world.client.subscribe('f'))
    await world.clock.advance(pause + 1100)
    expect(wire(broker).slice(0, 2)).toEqual([['subscribe f'], ['pingreq', 'subscribe f']])
    await world.clock.advance(300_000)
    expect(await world.outcome(call)).toEqual({ state: 'pending' })
    broker.how.subscribe = []
    await world.clock.advance(60_000)
    expect(await world.outcome(call)).toMatchObject({ state: 'fulfilled' })
  })

  it('an answer to PINGREQ that takes 3 s is waited for in the end', async () => {
    const broker = await strict({ subscribe: ['bad'] })
    const { world } = broker
    world.answer = (packet) => {
      const { peer } = world
      if (packet.type !== 'pingreq') return broker.answer(packet)
      world.clock.setTimer(() => peer.send({ type: 'pingresp' }), 3000)
      return undefined
    }
    const bad = failure(world.client.subscribe('bad'))
    await world.clock.advance(60_000)
    expect(await world.outcome(bad)).toMatchObject({ value: refused })
  })

  // Its connections would end before the first of those messages is through.
  it('while messages on a slow line come before the answer to PINGREQ, it is waited for', async () => {
    const broker = await strict({ subscribe: ['bad'] })
    const { world } = broker
    let late = 0
    const answers: PacketInput[] = []
    world.answer = (packet) => {
      const given = broker.answer(packet)
      if (packet.type === 'connect') {
        late = world.clock.now() + 15_000
        answers.length = 0
        const { peer } = world
        for (let at = 200; at < 15_000; at += 200) world.clock.setTimer(() => peer.send(publish('big', 'part')), at)
        world.clock.setTimer(() => peer.send(...answers), 15_000)
      }
      if (packet.type === 'connect' || world.clock.now() >= late) return given
      answers.push(...(given ?? []))
      return undefined
    }
    const bad = failure(world.client.subscribe('bad'))
    const good = quiet(world.client.subscribe('good'))
    await world.clock.advance(120_000)
    expect(await world.outcome(good)).toMatchObject({ state: 'fulfilled' })
    expect(await world.outcome(bad)).toMatchObject({ value: refused })
    expect(broker.ended).toBe(4)
  })

  it('where messages never cease and PINGREQ has no answer, it goes after a while', async () => {
    const broker = await strict({ subscribe: ['f'], ignores: ['pingreq'] })
    const { world } = broker
    const call = quiet(world.client.subscribe('f'))
    await world.clock.advance(1000)
    broker.how.subscribe = []
    for (let second = 0; second < 35; second++) {
      world.peer.send(publish('t', 'text'))
      await world.clock.advance(1000)
    }
    expect(await world.outcome(call)).toMatchObject({ state: 'fulfilled' })
  })
})

describe('a suspect that is not wanted any more', () => {
  async function trying(
    options: ClientOptions = {},
    filters: string | string[] = 'bad',
  ): Promise<{ broker: StrictBroker; subscription: Subscription; end: Promise<MqttError> }> {
    const broker = await strict({ subscribe: ['bad'] }, options)
    const subscription = broker.world.client.subscription(filters)
    const end = failure(subscription.ready)
    await broker.world.clock.advance(1)
    return { broker, subscription, end }
  }

  it.each([0, pause, pause + 5, 300])('disconnect() %i ms later: everything settles at once', async (later) => {
    const { broker, end } = await trying()
    await broker.world.clock.advance(later)
    const left = broker.world.client.disconnect()
    await broker.world.clock.advance(100)
    expect(await broker.world.outcome(left)).toMatchObject({ state: 'fulfilled' })
    expect(await end).toMatchObject({ code: 'ERR_CLOSED' })
    expect(await broker.world.client.closed).toBeUndefined()
  })

  it.each([0, pause, pause + 5, 300])('unsubscribe() %i ms later: nothing is tried any more', async (later) => {
    const { broker, subscription, end } = await trying()
    await broker.world.clock.advance(later)
    const { ended } = broker
    const left = quiet(subscription.unsubscribe())
    await broker.world.clock.advance(30_000)
    await left
    expect(['ERR_ABORTED', 'ERR_SUBSCRIBE_REFUSED']).toContain((await end).code)
    expect(broker.ended).toBeLessThanOrEqual(ended + 1)
    expect(await failure(subscription.next())).toBe(await end)
  })

  it('unsubscribe() of one filter of a call: the others are granted', async () => {
    const broker = await strict({ subscribe: ['bad'] })
    const { world } = broker
    const call = quiet(world.client.subscribe(['good', 'bad']))
    await world.clock.advance(1)
    quiet(world.client.unsubscribe('bad'))
    await world.clock.advance(1000)
    expect((await call).granted).toMatchObject([
      { filter: 'good', qos: 0 },
      { filter: 'bad', error: { code: 'ERR_ABORTED' } },
    ])
    expect(broker.ended).toBe(1)
    await world.send(publish('good', 'x'))
    expect(takenTexts(await call)).toEqual(['x'])
  })

  it.each([
    ['a clean session', {}],
    ['a durable session', { clientId: 'c', cleanStart: false }],
  ])('abort, %s: the call ends, the client goes on', async (_name, options) => {
    const broker = await strict({ subscribe: ['bad'] }, options)
    const { world } = broker
    const controller = new AbortController()
    const end = failure(world.client.subscribe('bad', { signal: controller.signal }))
    await world.clock.advance(1 + pause + 5)
    controller.abort()
    expect(await end).toMatchObject({ code: 'ERR_ABORTED', outcome: 'unknown' })
    await world.clock.advance(30_000)
    expect(broker.ended).toBeLessThanOrEqual(4)
    expect((await subscribe(world, 'good')).granted).toMatchObject([{ qos: 0 }])
    expect(world.client.state).toBe('connected')
  })

  it('drain() does not wait for it', async () => {
    const { broker, end } = await trying()
    const drained = broker.world.client.drain()
    await broker.world.clock.advance(1000)
    expect(await broker.world.outcome(drained)).toMatchObject({ state: 'fulfilled' })
    expect(await end).toMatchObject({ code: 'ERR_CLOSED' })
  })
})

describe('is no refused filter', () => {
  it.each([200, 0, 5000])('what a server is asked for that dies %i ms after each CONNACK, 50 times', async (lives) => {
    const broker = await strict()
    const { world } = broker
    await subscribe(world, ['kept', 'on'])
    broker.how = { lives, keeps: false }
    await world.settle()
    world.peer.cut()
    const calls = ['a', '$share/g/b', 'c/#'].map((filter) => quiet(world.client.subscribe(filter)))
    while (world.peers.length < 52) await world.clock.advance(Math.max(10, lives))
    expect(world.seen('error')).toEqual([])
    for (const call of calls) expect(await world.outcome(call)).toEqual({ state: 'pending' })
    broker.how = { keeps: false }
    await world.clock.advance(70_000)
    await Promise.all(calls)
    expect([...broker.filters].sort()).toEqual(['$share/g/b', 'a', 'c/#', 'kept', 'on'])
  })

  it('one that waits while a message is in hand, at a server that ends each connection after 200 ms: it is granted', async () => {
    const broker = await strict()
    const { world } = broker
    await subscribe(world, 'held', { qos: 1, ack: 'manual' })
    broker.greeting = [publish('held', 'x', 1, { dup: true })]
    broker.how = { ignores: ['subscribe'] }
    const call = quiet(world.client.subscribe('f'))
    await world.settle()
    broker.how = {}
    world.answer = (packet) => {
      const { clock, peer } = world
      if (packet.type === 'connect') clock.setTimer(() => peer.cut(), 200)
      return broker.answer(packet)
    }
    world.peer.cut()
    await world.clock.advance(60_000)
    expect((await world.outcome(call)).state).toBe('fulfilled')
  })

  it('one at which we end the connection, because nothing comes any more', async () => {
    const broker = await strict({ ignores: ['subscribe', 'pingreq'] }, { keepAlive: 10 })
    const call = quiet(broker.world.client.subscribe('f'))
    await broker.world.clock.advance(200_000)
    expect(broker.world.peers.length).toBeGreaterThan(10)
    expect(await broker.world.outcome(call)).toEqual({ state: 'pending' })
    // It goes with the first packets of each connection, as it is no suspect.
    expect(wire(broker).at(-2)?.[0]).toBe('subscribe f')
  })

  it('one that was granted before, at a server that is overloaded for a minute: slow, and cutting connections', async () => {
    let state = 0
    const random = (): number => {
      state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0
      return state / 2 ** 32
    }
    const refusals: number[] = []
    for (const seed of [1, 2, 3, 4, 5, 6]) {
      state = seed * 7919 + 13
      const broker = await strict({}, { keepAlive: 60, reconnect: { backoff: constant(100) } })
      const { world } = broker
      for (const filter of ['a', 'b', 'c', 'd']) await subscribe(world, filter, { qos: 1 })
      broker.how = { keeps: false }
      const busy = new Map<unknown, number>()
      world.answer = (packet) => {
        const { clock, peer } = world
        if (packet.type === 'connect') clock.setTimer(() => peer.cut(), -1000 * Math.log(1 - random()))
        const answers = broker.answer(packet) ?? []
        // In order, each up to half a second after the one before.
        const due = Math.max(busy.get(peer) ?? 0, clock.now()) + 500 * random()
        busy.set(peer, due)
        clock.setTimer(() => peer.ended === undefined && peer.send(...answers), due - clock.now())
        return undefined
      }
      world.peer.cut()
      await world.clock.advance(60_000)
      expect(world.peers.length).toBeGreaterThan(30)
      refusals.push(world.seen('error').length)
      world.client.destroy()
    }
    expect(refusals).toEqual([0, 0, 0, 0, 0, 0])
  })

  it('one that is replaced with its connection by `reconnect({ force: true })`', async () => {
    const broker = await strict({ ignores: ['subscribe'] })
    const call = quiet(broker.world.client.subscribe('f'))
    for (let round = 0; round < 10; round++) {
      quiet(broker.world.client.reconnect({ force: true }))
      await broker.world.clock.advance(2000)
    }
    expect(wire(broker).at(-1)).toEqual(['subscribe f'])
    expect(await broker.world.outcome(call)).toEqual({ state: 'pending' })
  })

  it('one whose connection ends right after a wake-up', async () => {
    let wake: () => void = () => undefined
    const onWake = (callback: () => void): (() => void) => {
      wake = callback
      return () => undefined
    }
    const rig = new Rig({}, { platform: { onWake }, behave: () => accepting() })
    await rig.up()
    const call = quiet(rig.client.subscribe('f'))
    for (let round = 0; round < 10; round++) {
      await rig.advance(1000)
      wake()
      await rig.cut()
    }
    await rig.advance(1000)
    expect(rig.peer.received.map(({ type }) => type)).toEqual(['connect', 'subscribe'])
    rig.client.destroy()
    expect(await failure(call)).toMatchObject({ code: 'ERR_CLOSED' })
  })

  it('a poisoned publish beside it is blamed for its own endings only', async () => {
    const broker = await strict({ subscribe: [] })
    const { world } = broker
    world.answer = (packet) => {
      if (packet.type !== 'publish' || !short(packet).includes('poison')) return broker.answer(packet)
      const { peer } = world
      world.clock.setTimer(() => peer.cut(), 1)
      return undefined
    }
    const poison = failure(world.client.publish('t', 'poison', { qos: 1 }))
    const call = quiet(world.client.subscribe('f'))
    await world.clock.advance(60_000)
    expect(await poison).toMatchObject({ code: 'ERR_POISONED' })
    await expect(call).resolves.toMatchObject({ granted: [{ filter: 'f', qos: 0 }] })
  })

  it('a poisoned publish that waits as long as the filter is sent first, and has its silence', async () => {
    const broker = await strict({}, { outbound: { poisonAfter: 12 } })
    const { world } = broker
    const dead = new Set<unknown>()
    world.answer = (packet) => {
      const { peer } = world
      if (dead.has(peer)) return undefined
      // What is read together with the publish has no answer.
      if (packet.type === 'subscribe') return void world.clock.setTimer(() => dead.has(peer) || peer.send(...(broker.answer(packet) ?? [])), 1)
      if (packet.type !== 'publish') return broker.answer(packet)
      dead.add(peer)
      world.clock.setTimer(() => peer.cut(), 1000)
      return undefined
    }
    const poison = failure(world.client.publish('t', 'poison', { qos: 1 }))
    const call = quiet(world.client.subscribe('f'))
    await world.clock.advance(600_000)
    expect(await poison).toMatchObject({ code: 'ERR_POISONED' })
    await expect(call).resolves.toMatchObject({ granted: [{ filter: 'f', qos: 0 }] })
    // With the first publish, and when that had been given up.
    const subscribes = wire(broker).map((packets) => packets.filter((packet) => packet.startsWith('subscribe')).length)
    expect([subscribes.shift(), subscribes.pop(), Math.max(...subscribes)]).toEqual([1, 1, 0])
  })

  it('a poisoned publish and a bad filter: both come to their end, nothing else does', async () => {
    const broker = await strict({ subscribe: ['bad'] })
    const { world } = broker
    world.answer = (packet) => {
      if (packet.type !== 'publish' || !short(packet).includes('poison')) return broker.answer(packet)
      const { peer } = world
      world.clock.setTimer(() => peer.cut(), 1)
      return undefined
    }
    const bad = failure(world.client.subscribe('bad'))
    const poison = failure(world.client.publish('t', 'poison', { qos: 1 }))
    const fine = [1, 2, 3].map((number) => world.client.publish('t', `fine ${number}`, { qos: 1 }))
    const good = quiet(world.client.subscribe('good'))
    await world.clock.advance(600_000)
    expect(await poison).toMatchObject({ code: 'ERR_POISONED' })
    expect(await bad).toMatchObject(refused)
    await expect(Promise.all([...fine, good])).resolves.toHaveLength(4)
  })
})

describe('UNSUBSCRIBE at which the server closes', () => {
  it.each(variants)('settles after three trials, the others are left, the client lives on, %s', async (_name, how, options) => {
    const broker = await strict({ unsubscribe: ['bad'], ...how }, options)
    const { world } = broker
    const reading = read(await subscribe(world, ['bad', 'good']))
    const left = quiet(world.client.unsubscribe(['bad', 'good', 'none']))
    await world.clock.advance(30_000)
    expect((await left).map(({ filter, error }) => [filter, error?.code])).toEqual([
      ['bad', 'ERR_UNSUBSCRIBE_REFUSED'],
      ['good', undefined],
      ['none', undefined],
    ])
    expect((await left)[0]).toMatchObject({ reasonCode: 0x80, error: { outcome: 'refused' } })
    expect(broker.ended).toBe(4)
    expect(world.client.state).toBe('connected')
    // As after an UNSUBACK that says no: it is read on.
    await world.send(publish('bad', 'x'))
    expect(reading).toMatchObject({ texts: ['x'], end: { state: 'running' } })
  })

  it('a filter that is subscribed to again meanwhile stays', async () => {
    const broker = await strict({ unsubscribe: ['f'] })
    const { world } = broker
    const first = await subscribe(world, 'f')
    const left = quiet(first.unsubscribe())
    await world.clock.advance(1)
    const second = quiet(world.client.subscribe('f'))
    await world.clock.advance(30_000)
    await left
    expect(broker.ended).toBe(1)
    await world.send(publish('f', 'x'))
    expect(takenTexts(await second)).toEqual(['x'])
  })

  it('drain() that leaves a shared filter there ends, and sends what waits', async () => {
    const broker = await strict({ unsubscribe: ['$share/g/f'] })
    const { world } = broker
    await subscribe(world, '$share/g/f')
    const sent = quiet(world.client.publish('t', 'x', { qos: 1 }))
    world.answer = (packet) => (packet.type === 'publish' && world.peers.length === 1 ? undefined : broker.answer(packet))
    const drained = world.client.drain()
    await world.clock.advance(1000)
    expect(await world.outcome(drained)).toMatchObject({ state: 'fulfilled' })
    await expect(sent).resolves.toBeDefined()
    expect(broker.ended).toBeLessThanOrEqual(2)
  })

  it('disconnect() right after it does not wait', async () => {
    const broker = await strict({ unsubscribe: ['f'] })
    const { world } = broker
    const left = failure((await subscribe(world, 'f')).unsubscribe())
    await world.clock.advance(1 + pause + 5)
    const ended = world.client.disconnect()
    await world.clock.advance(100)
    expect(await world.outcome(ended)).toMatchObject({ state: 'fulfilled' })
    expect(await left).toMatchObject({ code: 'ERR_CLOSED' })
  })
})
