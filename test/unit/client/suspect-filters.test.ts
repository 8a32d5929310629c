/** Filters at which the server ends the connection: tried alone, refused in the end, and what must never be taken for one. */
import { describe, expect, it } from 'vitest'
import { constant } from '../../../src/client/options/backoff.js'
import type { ClientOptions, Subscription } from '../../../src/client/options/index.js'
import type { MqttError } from '../../../src/errors.js'
import type { PacketInput } from '../../../src/wire/encode.js'
import { Random } from '../../world/random.js'
import { again, pause, short } from './across.js'
import { accepting, failure } from './harness.js'
import { acks, publish, quiet, read, subscribe, takenTexts } from './incoming.js'
import { Rig, reconnect } from './rig.js'
import { sleep } from './steps.js'
import { type StrictBroker, type Strictness, strict } from './strict-broker.js'

const refused = { code: 'ERR_SUBSCRIBE_REFUSED', outcome: 'refused', fault: 'remote' }
const durable: ClientOptions = { clientId: 'c', cleanStart: false }

/** Packets of each connection in short, without identifiers. */
const wire = (broker: StrictBroker): string[][] =>
  broker.world.peers.map((peer) =>
    peer.received.slice(1).map((packet) => short(packet).replace(/ #\d+/, '')),
  )

/** A client of a strict server. */
async function scene(how: Strictness = {}, options: ClientOptions = {}) {
  const broker = await strict(how, options)
  return { broker, world: broker.world }
}

/** The same, where the server ends the connection at `bad`. */
const refusing = (how: Strictness = {}, options: ClientOptions = {}) =>
  scene({ subscribe: ['bad'], ...how }, options)

/** The connection ends at a publish of `poison`. */
function poisonous({ world, answer }: StrictBroker): void {
  world.answer = (packet) => {
    const { peer } = world
    if (packet.type !== 'publish' || !short(packet).includes('poison')) return answer(packet)
    world.clock.setTimer(() => peer.cut(), 1)
    return undefined
  }
}

const variants: readonly (readonly [string, Strictness, ClientOptions])[] = [
  ['5.0', {}, {}],
  ['5.0 without identifiers', { properties: { subscriptionIdentifierAvailable: 0 } }, {}],
  ['5.0, a session that is lost each time', { keeps: false }, {}],
  ['a durable session', {}, durable],
  ['resubscribe always', {}, { resubscribe: 'always' }],
  ['3.1.1', { keeps: false }, { protocolVersion: 4 }],
  ['a durable session on 3.1.1', {}, { protocolVersion: 4, ...durable }],
]

describe.each(variants)('a filter at which the server closes, %s', (_name, how, options) => {
  const retainHandling = options.protocolVersion === 4 ? undefined : 2

  it('is refused after three trials; the call and what it asked for besides lives on, and so does everything else', async () => {
    const { broker, world } = await refusing(how, options)
    const before = await subscribe(world, 'before', { qos: 1 })
    const both = quiet(world.client.subscribe(['bad', 'good'], { qos: 1 }))
    const alone = failure(world.client.subscribe('bad', { qos: 1, retainHandling }))
    const after = quiet(world.client.subscribe('after', { qos: 1 }))
    await world.clock.advance(20_000)
    expect((await both).granted).toMatchObject([
      { filter: 'bad', qos: undefined, reasonCode: 0x80, error: refused },
      { filter: 'good', qos: 1 },
    ])
    const message = expect.stringContaining('bad') as string
    expect(await alone).toMatchObject({ ...refused, message })
    expect([...broker.filters].sort()).toEqual(['after', 'before', 'good'])
    // The first one, and three trials.
    expect(broker.ended).toBe(4)
    await world.send(...['before', 'good', 'after'].map((topic) => publish(topic, topic)))
    const texts = [before, await both, await after].flatMap(takenTexts)
    expect(texts).toEqual(['before', 'good', 'after'])
    // It is left out of resubscribing; a new call tries again.
    await again(world, broker.answer)
    await world.clock.advance(10_000)
    expect(broker.ended).toBe(4)
    broker.how.subscribe = []
    expect((await subscribe(world, 'bad')).granted).toMatchObject([{ filter: 'bad', qos: 0 }])
  })

  it('that was granted before: its readers end with the error, an `error` event reports it, the others go on', async () => {
    const { broker, world } = await scene({ ...how }, options)
    const one = read(await subscribe(world, ['bad', 'good']))
    const two = read(await subscribe(world, 'bad', { retainHandling }))
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
    const { broker, world } = await refusing({ keeps: false })
    await subscribe(world, 'a')
    for (const filter of ['bad', 'b']) quiet(world.client.subscribe(filter))
    await world.clock.advance(20_000)
    const [first, second, third] = wire(broker)
    expect(first).toEqual(['subscribe a', 'subscribe bad', 'subscribe b'])
    expect(second).toEqual(['subscribe a', 'pingreq', 'subscribe bad'])
    // What was blamed least comes first.
    expect(third).toEqual(['subscribe a', 'pingreq', 'subscribe b', 'subscribe bad'])
  })

  it.each([0x80, 0x87, 0x8e, 0x8f, 0x98, 0x9d, 0x9e, 0xa2])(
    'a DISCONNECT of code %i is not fatal while a SUBSCRIBE has no answer',
    async (reasonCode) => {
      const { broker, world } = await refusing({ reasonCode })
      const bad = failure(world.client.subscribe('bad'))
      quiet(world.client.subscribe('good'))
      await world.clock.advance(20_000)
      expect(await bad).toMatchObject({ ...refused, reasonCode })
      expect(world.client.state).toBe('connected')
      // Those that say no to a filter say it once.
      expect(broker.ended).toBe([0x87, 0x8f, 0x9e, 0xa2].includes(reasonCode) ? 2 : 4)
      expect([...broker.filters]).toEqual(['good'])
    },
  )

  it.each([1, 5, Number.POSITIVE_INFINITY])('poisonAfter: %d', async (poisonAfter) => {
    const { broker, world } = await refusing({}, { subscriptions: { poisonAfter } })
    const call = quiet(world.client.subscribe('bad'))
    await world.clock.advance(600_000)
    const { state } = await world.outcome(call)
    expect(state).toBe(poisonAfter > 5 ? 'pending' : 'rejected')
    if (poisonAfter > 5) expect(broker.ended).toBeGreaterThan(20)
    else expect(broker.ended).toBe(poisonAfter + 1)
  })

  it('two requests for one filter without an answer: each is tried', async () => {
    const { broker, world } = await refusing()
    const bad: Promise<MqttError>[] = []
    const good: Promise<Subscription>[] = []
    for (const qos of [0, 1] as const) {
      bad.push(failure(world.client.subscribe('bad', { qos })))
      good.push(world.client.subscribe('f', { qos }))
      await world.settle()
    }
    await world.clock.advance(20_000)
    expect((await Promise.all(good)).map(({ granted }) => granted[0]?.qos)).toEqual([1, 1])
    expect(await Promise.all(bad)).toMatchObject([refused, refused])
    expect([...broker.filters]).toEqual(['f'])
  })

  it('a blamed ending does not raise the backoff, and is no attempt that counts', async () => {
    const twice = { reconnect: { ...reconnect, maxAttempts: 2 } }
    const { world } = await refusing({}, { ...twice, subscriptions: { poisonAfter: 6 } })
    const bad = failure(world.client.subscribe('bad'))
    await world.clock.advance(100_000)
    expect(await bad).toMatchObject(refused)
    expect(world.seen('reconnecting').map(({ delay }) => delay)).toEqual(Array(7).fill(1000))
    expect(world.client.state).toBe('connected')
  })
})

describe('while a filter is tried', () => {
  it.each(variants)('publishes flow, nothing comes again, %s', async (_name, how, options) => {
    const { world } = await refusing(how, options)
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
    const acknowledged = outcomes.filter((outcome) => outcome === 'acknowledged')
    expect(acknowledged.length).toBeGreaterThanOrEqual(how.keeps === false ? 299 : 300)
    expect(outcomes).toHaveLength(300)
    expect(good.end.state).toBe('running')
  })

  it('it waits until what came in is acknowledged: nothing comes again', async () => {
    const { broker, world } = await refusing()
    const slow: string[] = []
    const handler = (message: { text(): string }): Promise<void> => {
      slow.push(message.text())
      return sleep(world, 100)
    }
    quiet(world.client.listen('good', handler, { qos: 1 }))
    await world.settle()
    quiet(world.client.subscribe('bad'))
    await world.settle()
    broker.greeting = [1, 2].map((id) => publish('good', String(id), id, { dup: true }))
    await world.clock.advance(1 + pause)
    await world.clock.advance(150)
    expect(acks(world)).toEqual(['puback 1'])
    expect(broker.subscribed()).toEqual([])
    await world.clock.advance(51)
    expect(wire(broker).at(-1)).toEqual(['pingreq', 'puback', 'puback', 'subscribe bad'])
    expect(slow).toEqual(['1', '2'])
  })

  it('a server that acknowledges nothing holds it up for a second', async () => {
    const { broker, world } = await refusing({ ignores: ['publish'] })
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
    const { broker, world } = await scene({ subscribe: ['silent'] })
    quiet(world.client.subscribe('silent'))
    await world.clock.advance(1)
    world.answer = (packet) =>
      short(packet).startsWith('subscribe silent') ? undefined : broker.answer(packet)
    await world.clock.advance(1000)
    const other = quiet(world.client.subscribe('other'))
    await world.clock.advance(3000)
    expect(broker.subscribed().flat()).toEqual(['silent'])
    await world.clock.advance(3000)
    await expect(other).resolves.toMatchObject({ granted: [{ filter: 'other' }] })
  })

  it('a server that answers no PINGREQ gets it after a while, and nothing is blamed', async () => {
    const { broker, world } = await scene({ subscribe: ['f'], ignores: ['pingreq'] })
    const call = quiet(world.client.subscribe('f'))
    await world.clock.advance(pause + 1100)
    expect(wire(broker).slice(0, 2)).toEqual([['subscribe f'], ['pingreq', 'subscribe f']])
    await world.clock.advance(300_000)
    expect(await world.outcome(call)).toEqual({ state: 'pending' })
    broker.how.subscribe = []
    await world.clock.advance(60_000)
    expect(await world.outcome(call)).toMatchObject({ state: 'fulfilled' })
  })

  // Its connections would end before the first of those messages is through.
  it('while messages on a slow line come before the answer to PINGREQ, it is waited for', async () => {
    const { broker, world } = await refusing()
    const { clock } = world
    let late = 0
    const answers: PacketInput[] = []
    world.answer = (packet) => {
      const given = broker.answer(packet)
      if (packet.type === 'connect') {
        late = clock.now() + 15_000
        answers.length = 0
        const { peer } = world
        for (let at = 200; at < 15_000; at += 200)
          clock.setTimer(() => peer.send(publish('big', 'part')), at)
        clock.setTimer(() => peer.send(...answers), 15_000)
      }
      if (packet.type === 'connect' || clock.now() >= late) return given
      answers.push(...(given ?? []))
      return undefined
    }
    const bad = failure(world.client.subscribe('bad'))
    const good = quiet(world.client.subscribe('good'))
    await clock.advance(120_000)
    expect(await world.outcome(good)).toMatchObject({ state: 'fulfilled' })
    expect(await world.outcome(bad)).toMatchObject({ value: refused })
    expect(broker.ended).toBe(4)
  })

  it('where messages never cease and PINGREQ has no answer, it goes after a while', async () => {
    const { broker, world } = await scene({ subscribe: ['f'], ignores: ['pingreq'] })
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
  async function trying() {
    const { broker, world } = await refusing()
    const subscription = world.client.subscription('bad')
    const end = failure(subscription.ready)
    await world.clock.advance(1)
    return { broker, world, subscription, end }
  }

  it.each([
    ['disconnect', 0],
    ['disconnect', pause],
    ['disconnect', pause + 5],
    ['disconnect', 300],
    ['drain', 0],
  ] as const)('%s() %i ms later: everything settles at once', async (how, later) => {
    const { world, end } = await trying()
    await world.clock.advance(later)
    const left = world.client[how]()
    await world.clock.advance(how === 'drain' ? 1000 : 100)
    expect(await world.outcome(left)).toMatchObject({ state: 'fulfilled' })
    expect(await end).toMatchObject({ code: 'ERR_CLOSED' })
    expect(await world.client.closed).toBeUndefined()
  })

  it.each([0, pause, pause + 5, 300])('unsubscribe() %i ms later: no trials', async (later) => {
    const { broker, world, subscription, end } = await trying()
    await world.clock.advance(later)
    const { ended } = broker
    await Promise.all([subscription.unsubscribe(), world.clock.advance(30_000)])
    expect(['ERR_ABORTED', 'ERR_SUBSCRIBE_REFUSED']).toContain((await end).code)
    expect(broker.ended).toBeLessThanOrEqual(ended + 1)
    expect(await failure(subscription.next())).toBe(await end)
  })

  it('unsubscribe() of one filter of a call: the others are granted', async () => {
    const { broker, world } = await refusing()
    const call = quiet(world.client.subscribe(['good', 'bad']))
    await world.clock.advance(1)
    quiet(world.client.unsubscribe('bad'))
    await world.clock.advance(1000)
    const { granted } = await call
    expect(granted[0]).toMatchObject({ filter: 'good', qos: 0 })
    expect(granted[1]).toMatchObject({ filter: 'bad', error: { code: 'ERR_ABORTED' } })
    expect(broker.ended).toBe(1)
    await world.send(publish('good', 'x'))
    expect(takenTexts(await call)).toEqual(['x'])
  })

  it.each([{}, durable])('abort, %j: the call ends, the client goes on', async (options) => {
    const { broker, world } = await refusing({}, options)
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
})

describe('is no refused filter', () => {
  it.each([200, 0, 5000])('one of a server that dies %i ms after each CONNACK', async (lives) => {
    const { broker, world } = await scene()
    await subscribe(world, ['kept', 'on'])
    broker.how = { lives, keeps: false }
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
    const { broker, world } = await scene()
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
    const { broker, world } = await scene({ ignores: ['subscribe', 'pingreq'] }, { keepAlive: 10 })
    const call = quiet(world.client.subscribe('f'))
    await world.clock.advance(200_000)
    expect(world.peers.length).toBeGreaterThan(10)
    expect(await world.outcome(call)).toEqual({ state: 'pending' })
    // It goes with the first packets of each connection, as it is no suspect.
    expect(wire(broker).at(-2)?.[0]).toBe('subscribe f')
  })

  it.each([1, 2, 3])('one granted before, at a slow server (seed %d)', async (seed) => {
    const random = new Random(seed)
    const { broker, world } = await scene(
      {},
      { keepAlive: 60, reconnect: { backoff: constant(100) } },
    )
    for (const filter of ['a', 'b', 'c', 'd']) await subscribe(world, filter, { qos: 1 })
    broker.how = { keeps: false }
    const busy = new Map<unknown, number>()
    world.answer = (packet) => {
      const { clock, peer } = world
      if (packet.type === 'connect')
        clock.setTimer(() => peer.cut(), -1000 * Math.log(1 - random.float()))
      const answers = broker.answer(packet) ?? []
      // In order, each up to half a second after the one before.
      const due = Math.max(busy.get(peer) ?? 0, clock.now()) + 500 * random.float()
      busy.set(peer, due)
      clock.setTimer(() => peer.ended === undefined && peer.send(...answers), due - clock.now())
      return undefined
    }
    world.peer.cut()
    await world.clock.advance(60_000)
    expect(world.peers.length).toBeGreaterThan(30)
    expect(world.seen('error')).toEqual([])
  })

  it('one that is replaced with its connection by `reconnect({ force: true })`', async () => {
    const { broker, world } = await scene({ ignores: ['subscribe'] })
    const call = quiet(world.client.subscribe('f'))
    for (let round = 0; round < 10; round++) {
      quiet(world.client.reconnect({ force: true }))
      await world.clock.advance(2000)
    }
    expect(wire(broker).at(-1)).toEqual(['subscribe f'])
    expect(await world.outcome(call)).toEqual({ state: 'pending' })
  })

  it('one whose connection ends right after a wake-up', async () => {
    let wake = (): void => undefined
    const onWake = (callback: () => void) => {
      wake = callback
      return () => undefined
    }
    const rig = await new Rig({}, { platform: { onWake }, behave: () => accepting() }).up()
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

  it.each([false, true])('one beside a poisoned publish; with a bad filter: %s', async (bad) => {
    const { broker, world } = await scene({ subscribe: bad ? ['bad'] : [] })
    poisonous(broker)
    const worse = bad ? failure(world.client.subscribe('bad')) : undefined
    const poison = failure(world.client.publish('t', 'poison', { qos: 1 }))
    const fine = bad
      ? [1, 2, 3].map((number) => world.client.publish('t', `fine ${number}`, { qos: 1 }))
      : []
    const good = quiet(world.client.subscribe('good'))
    await world.clock.advance(bad ? 600_000 : 60_000)
    expect(await poison).toMatchObject({ code: 'ERR_POISONED' })
    if (bad) expect(await worse).toMatchObject(refused)
    await Promise.all(fine)
    expect((await good).granted).toMatchObject([{ filter: 'good', qos: 0 }])
  })

  it('a poisoned publish that waits as long as the filter is sent first, and has its silence', async () => {
    const { broker, world } = await scene({}, { outbound: { poisonAfter: 12 } })
    const dead = new Set<unknown>()
    world.answer = (packet) => {
      const { peer } = world
      if (dead.has(peer)) return undefined
      if (packet.type === 'subscribe') {
        // What is read together with the publish has no answer.
        world.clock.setTimer(() => dead.has(peer) || peer.send(...(broker.answer(packet) ?? [])), 1)
        return undefined
      }
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
    const subscribes = world.peers.map((peer) => peer.all('subscribe').length)
    expect([subscribes.shift(), subscribes.pop(), Math.max(...subscribes)]).toEqual([1, 1, 0])
  })
})

describe('UNSUBSCRIBE at which the server closes', () => {
  it.each(variants)('settles after three trials, %s', async (_name, how, options) => {
    const { broker, world } = await scene({ unsubscribe: ['bad'], ...how }, options)
    const reading = read(await subscribe(world, ['bad', 'good']))
    const left = quiet(world.client.unsubscribe(['bad', 'good', 'none']))
    await world.clock.advance(30_000)
    const [bad, ...others] = await left
    const error = { code: 'ERR_UNSUBSCRIBE_REFUSED', outcome: 'refused' }
    expect(bad).toMatchObject({ filter: 'bad', reasonCode: 0x80, error })
    expect(others).toMatchObject(['good', 'none'].map((filter) => ({ filter, error: undefined })))
    expect(broker.ended).toBe(4)
    expect(world.client.state).toBe('connected')
    // As after an UNSUBACK that says no: it is read on.
    await world.send(publish('bad', 'x'))
    expect(reading).toMatchObject({ texts: ['x'], end: { state: 'running' } })
  })

  it('a filter that is subscribed to again meanwhile stays', async () => {
    const { broker, world } = await scene({ unsubscribe: ['f'] })
    const left = quiet((await subscribe(world, 'f')).unsubscribe())
    await world.clock.advance(1)
    const second = quiet(world.client.subscribe('f'))
    await world.clock.advance(30_000)
    await left
    expect(broker.ended).toBe(1)
    await world.send(publish('f', 'x'))
    expect(takenTexts(await second)).toEqual(['x'])
  })

  it('drain() that leaves a shared filter there ends, and sends what waits', async () => {
    const { broker, world } = await scene({ unsubscribe: ['$share/g/f'] })
    await subscribe(world, '$share/g/f')
    const sent = quiet(world.client.publish('t', 'x', { qos: 1 }))
    world.answer = (packet) =>
      packet.type === 'publish' && world.peers.length === 1 ? undefined : broker.answer(packet)
    const drained = world.client.drain()
    await world.clock.advance(1000)
    expect(await world.outcome(drained)).toMatchObject({ state: 'fulfilled' })
    await expect(sent).resolves.toBeDefined()
    expect(broker.ended).toBeLessThanOrEqual(2)
  })

  it('disconnect() sends at once what waits behind a filter on trial', async () => {
    const { broker, world } = await scene({ subscribe: ['silent'] })
    const kept = await subscribe(world, 'kept')
    quiet(world.client.subscribe('silent'))
    await world.clock.advance(1)
    world.answer = (packet) =>
      short(packet).startsWith('subscribe silent') ? undefined : broker.answer(packet)
    await world.clock.advance(1000)
    quiet(kept.unsubscribe())
    await world.clock.advance(100)
    const ended = world.client.disconnect()
    await world.clock.advance(100)
    expect(await world.outcome(ended)).toMatchObject({ state: 'fulfilled' })
    expect(broker.filters).not.toContain('kept')
  })

  it('disconnect() right after it does not wait', async () => {
    const { world } = await scene({ unsubscribe: ['f'] })
    const left = failure((await subscribe(world, 'f')).unsubscribe())
    await world.clock.advance(1 + pause + 5)
    const ended = world.client.disconnect()
    await world.clock.advance(100)
    expect(await world.outcome(ended)).toMatchObject({ state: 'fulfilled' })
    expect(await left).toMatchObject({ code: 'ERR_CLOSED' })
  })
})
