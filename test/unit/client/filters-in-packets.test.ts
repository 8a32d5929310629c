/** How many filters a SUBSCRIBE or UNSUBSCRIBE of our own making holds, on servers that take few of them. */
import { describe, expect, it } from 'vitest'
import type { ClientOptions } from '../../../src/client/options/index.js'
import { again, forgets } from './across.js'
import { times } from './harness.js'
import { answering, publish, quiet, read, subscribe } from './incoming.js'
import { Rig, welcoming } from './rig.js'
import { settled } from './steps.js'
import { type StrictBroker, type Strictness, strict } from './strict-broker.js'

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
    await rig.cut()
    await rig.advance(2000)
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
