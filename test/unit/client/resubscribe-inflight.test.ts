/** SUBSCRIBE and UNSUBSCRIBE that a lost connection leaves without an answer: sent again once, settled once; and what joins them meanwhile. */
import { describe, expect, it } from 'vitest'
import type { Answer } from '../../../src/testing/scripted-peer.js'
import { again, carried, comeBack, forgets, lose, steady, willing } from './across.js'
import { agreeable, connected, failure, type World } from './harness.js'
import {
  answering,
  publish,
  quiet,
  read,
  subscribe,
  subscribes,
  taken,
  takenTexts,
} from './incoming.js'
import { watched } from './stub.js'

const without =
  (type: 'subscribe' | 'unsubscribe', base: Answer): Answer =>
  (packet) =>
    packet.type === type ? undefined : base(packet)

const coded = (present: boolean, ...reasonCodes: number[]): Answer =>
  answering('subscribe', reasonCodes, willing(present))

/** What the latest connection carried, without packet identifiers. */
const lines = (world: World) => carried(world.peer).map((line) => line.replace(/ #\d+$/, ''))
const filtersOf = (world: World) =>
  world.peer
    .all('subscribe')
    .map(({ subscriptions }) => subscriptions.map(({ filter, qos }) => [filter, qos]))
const joining = { qos: 1, retainHandling: 2 } as const
const refused = { code: 'ERR_SUBSCRIBE_REFUSED', reasonCode: 0x87 }

describe.each([
  ['kept', true],
  ['lost', false],
])('the session is %s', (_name, present) => {
  it('SUBSCRIBE without SUBACK: each filter once more with a new identifier and the same options, settled once', async () => {
    const world = await steady({}, without('subscribe', willing(false)))
    const call = watched(
      world.client.subscribe([{ filter: 'a', qos: 2, retainHandling: 1 }, 'b'], { qos: 1 }),
    )
    await world.settle()
    const first = world.peer.last('subscribe')
    const packets = (await again(world, willing(present))).all('subscribe')
    // One at a time: the connection may have ended because of one of them.
    expect(packets.map(({ subscriptions }) => subscriptions)).toEqual(
      first.subscriptions.map((item) => [item]),
    )
    expect(packets[0]?.packetId).not.toBe(first.packetId)
    const { packetId } = first
    await world.send({ type: 'suback', packetId, reasonCodes: [0x80, 0x80] })
    expect(call.value?.granted.map(({ qos }) => qos)).toEqual([2, 1])
    await again(world, willing(true))
    expect([call.settled, lines(world)]).toEqual([1, []])
  })

  it('UNSUBSCRIBE without UNSUBACK: once more, settled once; the filter is not subscribed to again', async () => {
    const world = await steady({}, without('unsubscribe', willing(false)))
    for (const filter of ['a', 'b']) await subscribe(world, filter)
    const call = watched(world.client.unsubscribe(['a', 'x']))
    await world.settle()
    const first = world.peer.last('unsubscribe')
    const peer = await again(world, willing(present))
    const packets = peer.all('unsubscribe')
    expect(packets.map(({ filters }) => filters)).toEqual([['a'], ['x']])
    expect(packets[0]?.packetId).not.toBe(first.packetId)
    expect(call.value).toMatchObject([{ filter: 'a' }, { filter: 'x' }])
    expect(subscribes(world)).toEqual(present ? [] : ['b'])
    await again(world, willing(false))
    expect([call.settled, lines(world)]).toEqual([1, ['subscribe b']])
  })

  it('several calls keep their order', async () => {
    const world = await steady({}, forgets())
    quiet(world.client.subscribe('a'))
    await world.settle()
    quiet(world.client.unsubscribe('z'))
    await world.settle()
    quiet(world.client.subscribe('b'))
    await again(world, willing(present))
    expect(lines(world)).toEqual(['pingreq', 'subscribe a', 'unsubscribe z', 'subscribe b'])
  })

  it('an abort in the gap ends the call: nothing is sent for it, its outcome is unknown', async () => {
    const world = await steady({}, without('subscribe', willing(false)))
    const controller = new AbortController()
    const options = { signal: controller.signal, onExit: 'detach' } as const
    const error = failure(world.client.subscribe('a', options))
    await world.settle()
    await lose(world)
    controller.abort()
    expect(await error).toMatchObject({ code: 'ERR_ABORTED', outcome: 'unknown' })
    const peer = await comeBack(world, willing(present))
    expect(peer.all('subscribe').length).toBeLessThanOrEqual(1)
    expect(world.client.state).toBe('connected')
  })
})

describe('offline', () => {
  /** A client that has lost its connection. */
  async function away(...filters: string[]) {
    const world = await steady({}, willing(false))
    const subscriptions = []
    for (const filter of filters) subscriptions.push(await subscribe(world, filter, { qos: 1 }))
    await lose(world)
    return { world, subscriptions }
  }

  it('calls wait for the link and leave in their order, one SUBSCRIBE each; one that aborts does not', async () => {
    const { world } = await away()
    const { client } = world
    const controller = new AbortController()
    const one = client.subscribe('a', { qos: 1 })
    const aborted = failure(client.subscribe('no', { signal: controller.signal }))
    const rest = [client.unsubscribe('other'), client.subscribe(['b', 'c'])]
    expect(await world.outcome(one)).toEqual({ state: 'pending' })
    controller.abort()
    expect(await aborted).toMatchObject({ code: 'ERR_ABORTED', outcome: 'not-sent' })
    await comeBack(world, willing(true))
    expect(lines(world)).toEqual(['subscribe a', 'unsubscribe other', 'subscribe b,c'])
    await expect(Promise.all([one, ...rest])).resolves.toHaveLength(3)
  })

  it('a filter that is known is left without a link, and asked for again: the server hears of both, in order', async () => {
    const { world, subscriptions } = await away('a')
    const left = quiet(subscriptions[0]?.unsubscribe() as Promise<unknown>)
    const after = world.client.subscribe('a', { qos: 1 })
    await comeBack(world, willing(true))
    expect(lines(world)).toEqual(['unsubscribe a', 'subscribe a'])
    await left
    await world.send(publish('a', 'x', 1))
    expect(takenTexts(await after)).toEqual(['x'])
  })

  it('a joiner while the link is away shares the filter: one SUBSCRIBE for its higher QoS, or none', async () => {
    const { world, subscriptions } = await away('a')
    const joined = ([1, 2] as const).map((qos) => world.client.subscribe('a', { ...joining, qos }))
    await comeBack(world, willing(true))
    expect(filtersOf(world)).toEqual([[['a', 2]]])
    await world.send(publish('a', 'x'))
    const all = [...subscriptions, ...(await Promise.all(joined))]
    expect(all.map(takenTexts)).toEqual([['x'], ['x'], ['x']])
  })
})

it.each([
  ['fewer', [0]],
  ['more', [0, 0, 0]],
])(
  'an answer that cannot be right: %s codes than filters: close(0x82), and that call is rejected, not tried again for ever',
  async (_name, codes) => {
    const world = await steady({}, coded(false, ...codes))
    const error = failure(world.client.subscribe(['a', 'b']))
    await world.settle()
    expect(world.peer.last('disconnect').reasonCode).toBe(0x82)
    world.answer = coded(true, ...codes)
    await world.clock.advance(10)
    expect(await error).toMatchObject({ code: 'ERR_PROTOCOL_ERROR' })
    expect(world.peer.all('subscribe')).toEqual([])
  },
)

it('an answer that cannot be right: when it answers what brings a session back: the connection ends, and a server that does better gets it again', async () => {
  const world = await steady({}, willing(false))
  await subscribe(world, ['a', 'b'])
  await again(world, coded(false, 0))
  expect(world.peer.last('disconnect').reasonCode).toBe(0x82)
  world.answer = willing(true)
  await world.clock.advance(10)
  expect(lines(world)).toEqual(['subscribe a,b'])
})

describe('a SUBSCRIBE for a filter that others read already, in flight at the drop', () => {
  /** One reader at QoS 0; a second one asks for QoS 1, and has no answer. */
  async function joined() {
    const world = await steady({}, willing(false))
    const one = await subscribe(world, 'a', { qos: 0 })
    world.answer = without('subscribe', willing(false))
    const two = quiet(world.client.subscribe('a', joining))
    await world.settle()
    return { world, one, two }
  }

  it('brings the filter back when the session is lost, in one packet, at the higher QoS', async () => {
    const { world, one, two } = await joined()
    await again(world, willing(false))
    expect(filtersOf(world)).toEqual([[['a', 1]]])
    await world.send(publish('a', 'x', 1))
    expect([takenTexts(one), takenTexts(await two)]).toEqual([['x'], ['x']])
  })

  const failed = { texts: [], end: { state: 'failed', error: refused } }
  it.each([
    ['lost: the filter is gone for all its readers', false, failed],
    ['kept: its reader goes on', true, { texts: ['x'], end: { state: 'running' } }],
  ])('is refused when the session is %s', async (_what, present, expected) => {
    const { world, one, two } = await joined()
    const reading = read(one)
    await again(world, coded(present, 0x87))
    expect(await failure(two)).toMatchObject(refused)
    await world.send(publish('a', 'x'))
    expect(reading).toMatchObject(expected)
  })
})

it('the end of the client rejects what waits for a link, or for an answer from an earlier one, each once', async () => {
  const world = await steady({}, without('unsubscribe', without('subscribe', willing(false))))
  const { client } = world
  const sent = [client.subscribe('a'), client.unsubscribe('b')].map(failure)
  await world.settle()
  await lose(world)
  const waiting = [client.subscribe('c'), client.unsubscribe('d')].map(failure)
  client.destroy()
  expect(await Promise.all(sent)).toMatchObject([{ code: 'ERR_CLOSED' }, { code: 'ERR_CLOSED' }])
  const unsent = { code: 'ERR_CLOSED', outcome: 'not-sent' }
  expect(await Promise.all(waiting)).toMatchObject([unsent, unsent])
})

describe('a subscription that joins one that is being brought back', () => {
  const filter = 'in/#'

  it('is granted, though that SUBSCRIBE is lost', async () => {
    const world = await steady({}, willing(false))
    await subscribe(world, filter, { qos: 1 })
    await again(world, forgets())
    expect(subscribes(world)).toEqual([filter])
    const call = quiet(world.client.subscribe(filter, joining))
    await world.settle()
    await again(world, willing(true))
    expect(await world.outcome(call)).toMatchObject({ state: 'fulfilled' })
  })

  it.each([
    ['is granted', {}, 'fulfilled'],
    ['is rejected with the older reader', { wildcardSubscriptionAvailable: 0 }, 'rejected'],
  ])('before it has left %s, as the server can bring it back', async (_what, offer, state) => {
    const world = await steady({}, willing(false))
    const reader = quiet((await subscribe(world, filter)).next())
    let early: Promise<unknown> | undefined
    world.client.on('state', (event) => {
      if (event.state === 'connected') early ??= quiet(world.client.subscribe(filter, { qos: 1 }))
    })
    await again(world, forgets(offer))
    if (state === 'fulfilled') await again(world, willing(true))
    await world.clock.advance(1000)
    expect(await world.outcome(early as Promise<unknown>)).toMatchObject({ state })
    if (state === 'rejected')
      expect(await failure(reader)).toMatchObject({ code: 'ERR_WILDCARD_SUBS_UNSUPPORTED' })
  })
})

it('stalled is told also on a later connection, where the server repeats what is in hand', async () => {
  const durable = { cleanStart: false, clientId: 'c' }
  const world = await steady({ ...durable, receiveMaximum: 1 }, willing(false))
  const subscription = await subscribe(world, '#', { qos: 1 })
  await world.send(publish('t', 'x', 1))
  taken(subscription)
  await again(world)
  // The watch of the first connection has stopped meanwhile.
  await lose(world)
  await world.clock.advance(5)
  await comeBack(world)
  await world.clock.advance(2000)
  await world.send(publish('t', 'x', 1, { dup: true }))
  await world.clock.advance(60_000)
  expect(world.seen('stalled')).toHaveLength(1)
})

it.each(['subscribe', 'unsubscribe'] as const)(
  'a `packet` listener reconnects at %s',
  async (type) => {
    const options = { maxFiltersPerSubscribe: 2, reconnect: { backoff: () => 100 } }
    const world = await connected(options, agreeable)
    let calls = 0
    world.client.on('packet', ({ direction, packet }) => {
      if (direction === 'out' && packet.type === type && calls++ === 0)
        quiet(world.client.reconnect({ force: true }))
    })
    const filters = ['a', 'b', 'c', 'd', 'e']
    const { client } = world
    const call =
      type === 'subscribe' ? client.subscription(filters).ready : client.unsubscribe(filters)
    await world.clock.advance(1000)
    const answer = await call
    const answered = 'granted' in answer ? answer.granted : answer
    expect(answered).toMatchObject(filters.map((filter) => ({ filter, reasonCode: 0 })))
    expect(client.state).toBe('connected')
  },
)
