/** Keep-alive of a client: what `session/keep-alive.test.ts` shows of the session alone, over its connection and with its options. */
import { expect, it } from 'vitest'
import { willing } from './across.js'
import { accepting, connected, failure, type World } from './harness.js'
import { agreed, publish } from './incoming.js'
import { StalledTransport } from './stalled-transport.js'
import { over, settled } from './steps.js'

const pings = (world: World): number => world.peer.all('pingreq').length

/** What happens in each of so many seconds. */
async function everySecond(world: World, seconds: number, act: () => unknown): Promise<void> {
  for (let second = 0; second < seconds; second++) {
    await world.clock.advance(1000)
    await act()
  }
}

it.each([
  [60, 5, 10],
  [60, 1, 50],
  [10, 0, 0],
  [0, undefined, 0],
  [false, undefined, 0],
] as const)(
  '%s s, the server %s s: %i in 50 s [MQTT-3.1.2-21]',
  async (keepAlive, serverKeepAlive, count) => {
    const world = await connected({ keepAlive }, willing(false, { serverKeepAlive }))
    expect(world.peer.last('connect').keepAlive).toBe(Number(keepAlive))
    await world.clock.advance(50_000)
    expect(pings(world)).toBe(count)
    if (count > 0) return
    await world.clock.advance(10 * 3_600_000)
    expect([pings(world), world.client.state, world.clock.pending]).toEqual([0, 'connected', 0])
  },
)

it.each(['nothing else', 'calls that send nothing'])(
  'what comes in, and %s [MQTT-3.1.2-20]',
  async (what) => {
    const world = await agreed({ keepAlive: 10 })
    await everySecond(world, 35, async () => {
      await world.send(publish('a', 'x'))
      if (what !== 'nothing else') await settled(world, world.client.flush())
    })
    expect(pings(world)).toBe(3)
  },
)

it('no PINGRESP: closed as keep-alive timeout after pingTimeout, everything pending settles', async () => {
  const world = await connected({ keepAlive: 10, pingTimeout: 4000 })
  const publishing = failure(world.client.publish('a', 'b', { qos: 1 }))
  await world.clock.advance(13_999)
  expect([pings(world), world.client.state]).toEqual([1, 'connected'])
  await world.clock.advance(1)
  expect(world.client.state).toBe('closed')
  const cause = await world.client.closed
  expect(cause).toMatchObject({ code: 'ERR_KEEPALIVE_TIMEOUT', fault: 'remote' })
  expect(world.seen('disconnect')).toEqual([{ error: cause, cause }])
  expect(await publishing).toMatchObject({ code: 'ERR_KEEPALIVE_TIMEOUT', outcome: 'unknown' })
  expect(world.peer.ended).toBeDefined()
  expect(world.clock.pending).toBe(0)
})

it('a packet that takes longer than the keep-alive: PINGREQs go out meanwhile, its bytes are life', async () => {
  const world = await connected({ keepAlive: 10, pingTimeout: 5000 })
  const subscription = world.client.subscription('a')
  await world.sendBytes([0x30, 44, 0, 1, 0x61, 0])
  await everySecond(world, 40, () => world.sendBytes([0x78]))
  expect(pings(world)).toBeGreaterThanOrEqual(3)
  expect([world.client.state, subscription.read()?.text()]).toEqual(['connected', 'x'.repeat(40)])
})

it('a peer that stops reading: given up after keep-alive and pingTimeout, even if it still sends', async () => {
  const transport = new StalledTransport(200)
  const options = { keepAlive: 10, pingTimeout: 5000 }
  const world = await over(transport, () => transport.feed('20 03 00 00 00'), options)
  const publishing = failure(world.client.publish('a', new Uint8Array(1000), { qos: 1 }))
  await world.settle()
  const waiting = failure(world.client.publish('a', 'b'))
  await everySecond(world, 16, () => transport.destroyed ?? transport.feed('30 04 00 01 61 00'))
  await world.settle()
  expect(transport.destroyed).toBeDefined()
  expect(await world.client.closed).toMatchObject({ code: 'ERR_KEEPALIVE_TIMEOUT' })
  expect((await publishing).outcome).toBe('unknown')
  expect((await waiting).outcome).toBe('not-sent')
  expect(world.clock.pending).toBe(0)
})

it('a pingTimeout over half the keep-alive that is in force: half of it counts, logged once where it was asked for', async () => {
  const lines: string[] = []
  const logger = { warn: (line: string) => void lines.push(line) }
  const asked = await connected({ keepAlive: 10, pingTimeout: 60_000, logger })
  expect(asked.client.negotiated?.pingTimeout).toBe(5000)
  expect(lines.splice(0)).toEqual([expect.stringContaining('5000 ms') as string])
  await asked.clock.advance(15_000)
  expect(await asked.client.closed).toMatchObject({ code: 'ERR_KEEPALIVE_TIMEOUT' })
  for (const pingTimeout of [undefined, 5000]) {
    const world = await connected({ keepAlive: 10, pingTimeout, logger }, accepting())
    expect([world.client.negotiated?.pingTimeout, lines]).toEqual([5000, []])
  }
})

it('a PINGRESP without a PINGREQ is no round trip', async () => {
  const world = await connected({ stats: true, keepAlive: false })
  await world.clock.advance(5000)
  await world.send({ type: 'pingresp' })
  expect(world.client.stats().pingRoundTrip).toBeUndefined()
})
