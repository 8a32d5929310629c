/** How fast publishes leave, measured at the broker on the virtual clock. */
import { afterEach, beforeEach, expect, it } from 'vitest'
import type { BaseClient } from '../../../src/client/client.js'
import type { ClientOptions, OutboundOptions } from '../../../src/client/options/index.js'
import { VirtualWorld } from '../../../src/testing/virtual-world.js'
import { times } from './harness.js'

let world: VirtualWorld
let arrivals: { readonly at: number; readonly text: string; readonly bytes: number }[]
beforeEach(() => {
  arrivals = []
  world = new VirtualWorld({
    broker: {
      intercept: (direction, packet) => {
        if (direction !== 'in' || packet.type !== 'publish') return
        const text = new TextDecoder().decode(packet.payload)
        arrivals.push({ at: world.now(), text, bytes: packet.payload.length })
      },
    },
  })
})
afterEach(() => world.close())

const connected = (rate: OutboundOptions['rate'], more: ClientOptions = {}): Promise<BaseClient> =>
  world.connect('mqtt://b', { ...more, outbound: { ...more.outbound, rate } })

/** The most that arrived in any time as long as this. */
function densest(length: number): number {
  const counts = arrivals.map(({ at: end }, last) => {
    const first = arrivals.findIndex(({ at }) => end - at < length)
    return last - first + 1
  })
  return Math.max(...counts)
}

const beginning = (letter: string) =>
  arrivals.map(({ text }) => text).filter((text) => text.startsWith(letter))
const many = (count: number, act: (index: number) => unknown): void => {
  for (let index = 0; index < count; index++) void act(index)
}

it.each([
  [{ messages: 100 }, 0],
  [{ messages: 40 }, 2],
  [{ messages: 30, per: 60_000 }, 1],
  [{ messages: 500, per: 10_000 }, 1],
] as const)('%j at QoS %i: over a minute it is that, evenly, within 2 %%', async (rate, qos) => {
  const client = await connected(rate, { outbound: { maxQueuedMessages: 200_000 } })
  const { messages, per = 1000 } = rate as { messages: number; per?: number }
  const expected = (60_000 / per) * messages
  many(expected * 1.1, () => client.publish('t', 'x', { qos }))
  await world.pass(60_000)
  expect(arrivals.length / expected).toBeGreaterThan(0.98)
  expect(arrivals.length / expected).toBeLessThan(1.02 + 1 / expected)
  // No interval holds more than belong to it and 50 ms.
  expect(densest(per)).toBeLessThanOrEqual(Math.ceil(messages * (1 + 50 / per)) + 1)
})

it('counts bytes, also of a message that is larger than what belongs to an interval', async () => {
  const client = await connected({ bytes: 10_000 })
  many(100, () => client.publish('t', new Uint8Array(25_000), { qos: 1 }))
  await world.pass(60_000)
  const bytes = arrivals.reduce((sum, arrival) => sum + arrival.bytes, 0)
  expect(bytes / 600_000).toBeGreaterThan(0.98)
  expect(bytes / 600_000).toBeLessThan(1.05)
})

it('after a pause no burst leaves', async () => {
  const client = await connected({ messages: 100 })
  await world.pass(60_000)
  many(300, () => client.publish('t', 'x', { qos: 1 }))
  await world.pass(1000)
  expect(arrivals.length).toBeLessThanOrEqual(107)
  expect(arrivals.length).toBeGreaterThanOrEqual(98)
})

it('post with writable takes its turn, never starves the others, and is not starved by those that wait for an acknowledgement', async () => {
  const client = await connected({ messages: 100 }, { outbound: { maxInflight: 1 } })
  let posted = 0
  const end = new AbortController()
  const posting = (async () => {
    while (!end.signal.aborted) {
      if (client.post('t', 'z')) posted += 1
      else await client.writable
    }
  })()
  const published = times(200, (index) => client.publish('t', `o${index}`, { qos: 1 }))
  await world.pass(2000)
  expect(beginning('o').length).toBeGreaterThan(60)
  expect(posted).toBeGreaterThan(60)
  expect(arrivals.length).toBeLessThanOrEqual(210)
  end.abort()
  await world.until(Promise.all([...published, posting]))
})

it('control packets do not wait: subscriptions, acknowledgements and the handshake of QoS 2', async () => {
  const client = await connected({ messages: 1, per: 10_000 })
  await client.publish('t', 'x', { qos: 2 })
  const later = client.publish('t', 'y', { qos: 1 })
  const subscription = await client.subscribe('u', { qos: 1 })
  world.broker.publish({ topic: 'u', payload: 'in', qos: 1 })
  expect((await subscription.next())?.text()).toBe('in')
  expect(arrivals).toMatchObject([{ text: 'x' }])
  const [first] = arrivals
  await world.until(later)
  expect(arrivals[1]?.at).toBe((first?.at ?? 0) + 10_000)
})

it('what is sent again after a loss counts', async () => {
  const client = await connected({ messages: 100 }, { clientId: 'c' })
  const all = times(200, (index) => client.publish('t', String(index), { qos: 1 }))
  await world.pass(1000)
  const mend = world.cut('c')
  await world.pass(10)
  mend()
  await world.until(Promise.all(all))
  expect(densest(1000)).toBeLessThanOrEqual(107)
  expect(new Set(beginning('')).size).toBe(200)
})

it('writable waits where post would be refused; an abort, a time to live and the end settle what waits', async () => {
  const client = await connected({ messages: 10 })
  while (client.post('t', 'x'));
  const at = world.now()
  await world.until(client.writable)
  expect(world.now() - at).toBeLessThanOrEqual(101)
  expect(client.post('t', 'x')).toBe(true)
  const ends = [{ qos: 1, ttl: 1 }, { signal: AbortSignal.abort() }, { qos: 1 }, {}].map(
    (options) =>
      client.publish('t', 'x', options as object).then(
        () => 'fulfilled',
        ({ code }) => code,
      ),
  )
  await world.pass(2)
  await world.until(client.drain())
  expect(await Promise.all(ends)).toEqual(['ERR_EXPIRED', 'ERR_ABORTED', 'fulfilled', 'fulfilled'])
  expect(world.clock.pending).toBe(0)
})

it('a wait longer than timers take is several', async () => {
  const day = 86_400_000
  const client = await connected({ bytes: 1000, per: day }, { keepAlive: false })
  const delays: number[] = []
  const { setTimer } = world.clock
  world.clock.setTimer = (callback, delay) => {
    delays.push(delay)
    return setTimer.call(world.clock, callback, delay)
  }
  void client.publish('t', new Uint8Array(100_000), { qos: 1 })
  const second = client.publish('t', 'x', { qos: 1 })
  await world.pass(90 * day)
  expect([arrivals.length, Math.max(...delays), delays.length < 100]).toEqual([
    1,
    2_147_483_647,
    true,
  ])
  await world.until(second, 20 * day)
})
