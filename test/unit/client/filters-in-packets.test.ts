/**
 * How many filters a SUBSCRIBE or UNSUBSCRIBE of our own making holds, on servers that take few of them; and the answer 0x91, Packet Identifier in use, of
 * servers with one set of identifiers for both directions: the packet goes once more, under an identifier far from the first.
 */
import { describe, expect, it } from 'vitest'
import type { ClientOptions } from '../../../src/client/options/index.js'
import type { Answer } from '../../../src/testing/scripted-peer.js'
import { again, forgets, keeps, send, steady } from './across.js'
import { agreeable, connected, failure, times } from './harness.js'
import { answering, publish, quiet, read, subscribe, unsubscribes } from './incoming.js'
import { Rig, welcoming } from './rig.js'
import { deafTo, settled } from './steps.js'
import { type StrictBroker, type Strictness, strict } from './strict-broker.js'
import { ack } from './stub.js'

const filtersOf = (count: number, from = 1) => times(count, (index) => `f/${from + index}`)
const withoutIdentifiers: Strictness = { properties: { subscriptionIdentifierAvailable: 0 } }

/** How many filters each SUBSCRIBE of the latest connection held. */
const sizes = (broker: StrictBroker): number[] => broker.subscribed().map(({ length }) => length)
const known = ({ filters }: StrictBroker): string[] => [...filters].sort()

/** A server that was subscribed to in so many calls of one filter each. */
async function subscribed(count: number, how: Strictness, options: ClientOptions = {}) {
  const broker = await strict(how, options)
  const readings = []
  for (const filter of filtersOf(count)) readings.push(read(await subscribe(broker.world, filter)))
  return { broker, world: broker.world, readings }
}

/** The session is lost with the connection. */
async function lose(broker: StrictBroker): Promise<void> {
  broker.how = { ...broker.how, keeps: false }
  await again(broker.world, broker.answer)
  await broker.world.clock.advance(20_000)
}

describe.each<[string, Strictness, ClientOptions]>([
  ['5.0 without identifiers', withoutIdentifiers, {}],
  ['5.0 with identifiers', {}, {}],
  ['3.1.1', { keeps: false }, { protocolVersion: 4 }],
])('25 calls, on a server that closes above so many filters, %s', (_name, how, options) => {
  it.each([8, 4, 1])('%i: all come back when the session is lost', async (most) => {
    const { broker, world, readings } = await subscribed(25, { ...how, most }, options)
    await lose(broker)
    expect(known(broker)).toEqual(filtersOf(25).sort())
    expect(broker.ended).toBeLessThanOrEqual(most === 8 ? 0 : 1)
    await world.send(...filtersOf(25).map((filter) => publish(filter, filter)))
    expect(readings.map(({ texts }) => texts.join())).toEqual(filtersOf(25))
    // Once more: what was learned is remembered.
    const { ended } = broker
    await lose(broker)
    expect(known(broker)).toEqual(filtersOf(25).sort())
    expect(broker.ended - ended).toBeLessThanOrEqual(most === 1 ? 1 : 0)
  })

  it.each([8, 4])('%i: they are left in one call', async (most) => {
    const { broker, world } = await subscribed(25, { ...how, most }, options)
    const results = await settled(world, world.client.unsubscribe(filtersOf(25)), 20_000)
    expect(results.map(({ error }) => error)).toEqual(Array(25).fill(undefined))
    expect(known(broker)).toEqual([])
    expect(broker.ended).toBeLessThanOrEqual(most === 8 ? 0 : 1)
  })

  it('a call of 25 filters is granted, after one connection', async () => {
    const broker = await strict({ ...how, most: 8 }, options)
    const { world } = broker
    const { granted } = await settled(world, world.client.subscribe(filtersOf(25)), 20_000)
    expect(granted.map(({ qos }) => qos)).toEqual(Array(25).fill(0))
    expect(broker.ended).toBe(1)
  })
})

describe('a packet of our own making holds', () => {
  it('as many filters as the endpoint has acknowledged in one, of one identifier together', async () => {
    const broker = await strict()
    await subscribe(broker.world, filtersOf(20))
    await subscribe(broker.world, filtersOf(30, 21))
    await lose(broker)
    expect(sizes(broker)).toEqual([20, 30])
    const [before, after] = broker.world.peers.map((peer) =>
      peer.all('subscribe').map(({ properties }) => properties.subscriptionIdentifiers),
    )
    expect(after).toEqual(before)
  })

  it('eight at another endpoint, and the identifier of a group when it is split', async () => {
    const rig = await new Rig({}, { hosts: ['a', 'b'] }).up()
    await settled(rig, rig.client.subscribe(filtersOf(20)))
    rig.behave = () => welcoming({}, false)
    rig.client.setBrokers([rig.endpoint('b')])
    await rig.cut(2000)
    const packets = rig.peer.all('subscribe')
    expect(packets.map(({ subscriptions }) => subscriptions.length)).toEqual([8, 8, 4])
    const identifiers = packets.map(({ properties }) => `${properties.subscriptionIdentifiers}`)
    expect(new Set(identifiers).size).toBe(1)
  })

  it('half as many after a connection that ended before the answer', async () => {
    const { broker, world } = await subscribed(20, withoutIdentifiers)
    const held: (number | undefined)[] = []
    world.answer = forgets(withoutIdentifiers.properties)
    for (let round = 0; round < 5; round++) {
      // We end it ourselves: no filter is suspect.
      quiet(world.client.reconnect({ force: true }))
      await world.clock.advance(2000)
      held.push(sizes(broker)[0])
    }
    expect(held).toEqual([8, 4, 2, 1, 1])
  })

  it('half as many after an answer that does not fit, as of a server that gives four reason codes at most', async () => {
    const { broker, world } = await subscribed(20, withoutIdentifiers)
    broker.how = { ...broker.how, keeps: false }
    await again(world, (packet) => {
      const answers = broker.answer(packet)
      if (packet.type !== 'subscribe' || packet.subscriptions.length <= 4) return answers
      return answering('subscribe', [0, 0, 0, 0])(packet)
    })
    await world.clock.advance(20_000)
    expect(known(broker)).toEqual(filtersOf(20).sort())
    expect(world.peers.length).toBeLessThanOrEqual(3)
  })

  it.each([3, 12])(
    'so many as `maxFiltersPerSubscribe` says: %i',
    async (maxFiltersPerSubscribe) => {
      const { broker, world } = await subscribed(24, withoutIdentifiers, { maxFiltersPerSubscribe })
      await lose(broker)
      expect(sizes(broker)).toEqual(Array(24 / maxFiltersPerSubscribe).fill(maxFiltersPerSubscribe))
      quiet(world.client.unsubscribe(filtersOf(24)))
      await world.settle()
      expect(world.peer.all('unsubscribe').map(({ filters }) => filters.length)).toEqual(
        sizes(broker),
      )
    },
  )
})

/** A server with a message of its own under each identifier up to `most`. */
const busyUpTo =
  (most: number): Answer =>
  (packet) => {
    const { type } = packet
    if ((type !== 'subscribe' && type !== 'unsubscribe') || packet.packetId > most)
      return agreeable(packet)
    const asked = type === 'subscribe' ? packet.subscriptions : packet.filters
    return {
      type: type === 'subscribe' ? 'suback' : 'unsuback',
      packetId: packet.packetId,
      reasonCodes: asked.map(() => 0x91),
      properties: {},
    }
  }

const busy = (most: number, options: ClientOptions = {}) => connected(options, busyUpTo(most))
const inUse = (type: 'suback' | 'unsuback', packetId: number) =>
  ({ type, packetId, reasonCodes: [0x91] }) as const

describe('SUBACK 0x91', () => {
  it('one more try, under an identifier that is far from a run of the server’s own', async () => {
    const world = await busy(1000)
    const calls = times(20, (index) => world.client.subscribe(`t/${index}`, { qos: 1 }))
    const granted = (await settled(world, Promise.all(calls))).map(
      (subscription) => subscription.granted[0]?.reasonCode,
    )
    expect(granted).toEqual(Array(20).fill(1))
    expect(new Set(world.peer.all('subscribe').map(({ packetId }) => packetId)).size).toBe(40)
  })

  it.each(['subscribe', 'unsubscribe'] as const)('a second one refuses %s()', async (type) => {
    const world = await busy(65_535)
    const error = await settled(world, failure(world.client[type](['a', 'b'])))
    const code = `ERR_${type.toUpperCase()}_REFUSED`
    expect(error).toMatchObject({ code, reasonCode: 0x91, outcome: 'refused' })
    expect(world.peer.all(type)).toHaveLength(2)
  })

  it('a filter that was left meanwhile is not subscribed to again', async () => {
    const world = await connected({}, deafTo('subscribe'))
    const subscription = world.client.subscription('a')
    await world.settle()
    const call = subscription.unsubscribe()
    await world.send(inUse('suback', world.peer.last('subscribe').packetId))
    const refused = { code: 'ERR_SUBSCRIBE_REFUSED', reasonCode: 0x91 }
    expect(await failure(subscription.ready)).toMatchObject(refused)
    await call
    const types = world.peer.received.map(({ type }) => type)
    expect(types).toEqual(['connect', 'subscribe', 'unsubscribe'])
  })

  it('a first try that goes again does not lower the QoS that a later one asked for', async () => {
    const world = await connected({}, deafTo('subscribe'))
    const calls = [world.client.subscribe('a')]
    await world.settle()
    const { packetId } = world.peer.last('subscribe')
    calls.push(world.client.subscribe('a', { qos: 1 }))
    await world.settle()
    await world.send(inUse('suback', packetId))
    const levels = world.peer.all('subscribe').map(({ subscriptions }) => subscriptions[0]?.qos)
    expect(levels).toEqual([0, 1, 1])
    await world.send(
      ...world.peer
        .all('subscribe')
        .flatMap((packet) => (packet.packetId === packetId ? [] : [agreeable(packet) as never])),
    )
    await Promise.all(calls)
  })

  it('the connection is lost before the second answer: the next one begins again', async () => {
    const options = { clientId: 'c', cleanStart: false, reconnect: { backoff: () => 10 } }
    const world = await connected(options, (packet) =>
      packet.type === 'subscribe' && packet.packetId > 1 ? undefined : busyUpTo(1)(packet),
    )
    const error = failure(world.client.subscribe('a'))
    await world.settle()
    expect(world.peer.all('subscribe')).toHaveLength(2)
    world.answer = busyUpTo(65_535)
    world.peer.cut()
    await world.clock.advance(10)
    expect(world.peer.all('subscribe')).toHaveLength(2)
    expect(await error).toMatchObject({ reasonCode: 0x91 })
  })

  it('what brings back a lost session gets its second try too', async () => {
    const world = await connected({ reconnect: { backoff: () => 10 } }, agreeable)
    const reading = read(await subscribe(world, 'a'))
    world.answer = busyUpTo(1000)
    world.peer.cut()
    await world.clock.advance(10)
    expect(world.seen('error')).toEqual([])
    await world.send(publish('a', 'x'))
    expect(reading).toMatchObject({ texts: ['x'], end: { state: 'running' } })
  })
})

describe('UNSUBACK 0x91', () => {
  it('one more try under another identifier', async () => {
    const world = await busy(1000, { maxFiltersPerSubscribe: 2 })
    const results = await settled(world, world.client.unsubscribe(['a', 'b', 'c']))
    const codes = results.map(({ filter, reasonCode }) => `${filter} ${reasonCode}`)
    expect(codes).toEqual(['a 0', 'b 0', 'c 0'])
    expect(unsubscribes(world)).toEqual(['a b', 'c', 'a b', 'c'])
  })

  it('a filter that was subscribed to again meanwhile is not taken away', async () => {
    const world = await connected({}, deafTo('unsubscribe'))
    const call = failure((await subscribe(world, 'a')).unsubscribe())
    const second = read(await subscribe(world, 'a'))
    await world.send(inUse('unsuback', world.peer.last('unsubscribe').packetId))
    expect(await call).toMatchObject({ reasonCode: 0x91 })
    await world.send(publish('a', 'x'))
    expect([world.peer.all('unsubscribe').length, second.texts]).toEqual([1, ['x']])
  })
})

describe('PUBACK 0x91', () => {
  it('a server that finds every identifier in use does not make us publish for ever, nor uses up the identifiers', async () => {
    let answers = 0
    const world = await steady({ cleanStart: false, clientId: 'c' }, (packet) => {
      if (packet.type !== 'publish' || answers >= 3000) return keeps()(packet)
      answers += 1
      return ack('puback', packet.packetId as number, 0x91)
    })
    const [one] = send(world, 1, 'one')
    const error = { code: 'ERR_PUBLISH_REFUSED', reasonCode: 0x91 }
    expect(await world.outcome(one as Promise<unknown>)).toMatchObject({ state: 'rejected', error })
    expect(answers).toBeLessThan(1000)
  })

  it('ackTimeout is not begun again by every 0x91', async () => {
    const world = await steady({ cleanStart: false, clientId: 'c' }, keeps())
    const publishing = quiet(world.client.publish('t', 'one', { qos: 1, ackTimeout: 1000 }))
    for (let round = 0; round < 4; round++) {
      await world.clock.advance(400)
      await world.send(ack('puback', world.peer.last('publish').packetId as number, 0x91))
    }
    expect((await failure(publishing)).code).toBe('ERR_TIMEOUT')
  })
})
