/** Sleep, wake-ups, and a clock that jumps or is set back. */
import { describe, expect, it, onTestFinished } from 'vitest'
import type { ClientOptions } from '../../../src/client/options/index.js'
import type { Answer } from '../../../src/testing/scripted-peer.js'
import { agreeable, failure } from './harness.js'
import { quiet } from './incoming.js'
import { down, Rig, reconnect, welcoming } from './rig.js'

const hour = 3_600_000

/** A machine that wakes up when the test says so. */
function sleeper(options: ClientOptions = {}) {
  const callbacks = new Set<() => void>()
  const onWake = (callback: () => void) => {
    callbacks.add(callback)
    return () => void callbacks.delete(callback)
  }
  const rig = new Rig({ clientId: 'c', cleanStart: false, ...options }, { platform: { onWake } })
  rig.behave = (_host, dial) => welcoming({}, dial > 1)
  const wake = async (): Promise<void> => {
    for (const callback of callbacks) callback()
    await rig.settle()
  }
  return { rig, wake, listeners: () => callbacks.size, times: () => rig.dials.map(({ at }) => at) }
}

async function awake(options: ClientOptions = {}) {
  const made = sleeper(options)
  await made.rig.up()
  onTestFinished(() => made.rig.finish())
  return made
}

/** From now on the peer says nothing, and does not end either. */
const silence: Answer = () => undefined

it('a wake-up while connected: nothing for 1.5 s: given up, and dialled again without back-off; QoS 1 in flight is completed there', async () => {
  const { rig, wake, times } = await awake()
  rig.peer.answer = silence
  const publishing = rig.client.publish('t', 'x', { qos: 1 })
  await rig.advance(5000)
  await wake()
  await rig.advance(1499)
  expect(rig.client.state).toBe('connected')
  await rig.advance(1)
  expect(rig.seen('disconnect')).toMatchObject([{ cause: { code: 'ERR_KEEPALIVE_TIMEOUT' } }])
  expect(times()).toEqual([0, 6500])
  expect([rig.client.state, rig.seen('sessionlost')]).toEqual(['connected', []])
  expect(rig.peers[0]?.ended).toBeDefined()
  expect((await publishing).reasonCode).toBe(0)
  expect(rig.peers.map((peer) => peer.all('publish').map(({ dup }) => dup))).toEqual([
    [false],
    [true],
  ])
})

it('a wake-up while connected: the link ends right after it answered: without back-off too, and a second time with it', async () => {
  const { rig, wake, times } = await awake()
  await rig.advance(5000)
  await wake()
  await rig.advance(100)
  await rig.cut()
  expect(times()).toEqual([0, 5100])
  await rig.again()
  expect(times()).toEqual([0, 5100, 6100])
})

it('a wake-up while there is no connection: dials now', async () => {
  const { rig, wake, times } = await awake()
  rig.behave = (_host, dial) => (dial < 6 ? down : agreeable)
  await rig.cut()
  await rig.advance(1000 + 2000 + 4000 + 8000 + 5000)
  expect(rig.dials).toHaveLength(5)
  const from = rig.clock.now()
  await wake()
  expect(times().at(-1)).toBe(from)
  expect(rig.client.state).toBe('connected')
})

it('a wake-up while there is no connection: not more than once a second, however often', async () => {
  const { rig, wake } = await awake()
  rig.behave = () => down
  await rig.cut()
  for (let index = 0; index < 200; index++) {
    await wake()
    await rig.advance(50)
  }
  // Ten seconds.
  expect(rig.dials.length).toBeLessThanOrEqual(12)
})

it('a wake-up while there is no connection: nothing listens before connect(), after the end, and after a first attempt that was refused', async () => {
  const { rig, wake, listeners } = sleeper()
  expect(listeners()).toBe(0)
  await wake()
  expect(rig.dials).toEqual([])
  await rig.up()
  expect(listeners()).toBe(1)
  await rig.finish()
  expect([listeners(), rig.clock.pending]).toEqual([0, 0])
  const refused = sleeper()
  refused.rig.behave = () => down
  await Promise.all([refused.rig.client.connect().catch(() => undefined), refused.rig.settle()])
  expect(refused.listeners()).toBe(0)
})

it('sleep without an event: the clock jumps, the socket is stale: probed, given up in 1.5 s, one reconnect without back-off', async () => {
  const { rig, times } = await awake()
  rig.peer.answer = silence
  await rig.advance(10_000)
  rig.clock.jump(8 * hour)
  const woke = rig.clock.now()
  await rig.advance(1500)
  expect(rig.peers[0]?.all('pingreq')).toHaveLength(1)
  expect((times()[1] ?? Number.NaN) - woke).toBeLessThanOrEqual(1500)
  await rig.advance(60_000)
  expect(rig.dials).toHaveLength(2)
})

it('sleep without an event: in the middle of the back-off: one attempt, no storm', async () => {
  const { rig } = await awake()
  rig.behave = () => down
  await rig.cut()
  await rig.advance(3500)
  const before = rig.dials.length
  rig.clock.jump(8 * hour)
  await rig.settle()
  expect(rig.dials).toHaveLength(before + 1)
})

describe('the wall clock is set back by a day', () => {
  /** A client whose calendar goes back when asked to. */
  async function rig(options: ClientOptions = {}): Promise<{ world: Rig; back(): void }> {
    let days = 40
    const world: Rig = new Rig(options, {
      platform: { date: () => world.clock.now() + days * 86_400_000 },
    })
    await world.up()
    const back = (): void => {
      days -= 1
    }
    return { world, back }
  }

  it('keep-alive, back-off and timeouts go on as before', async () => {
    const { world, back } = await rig({ keepAlive: 10, pingTimeout: 5000, connectTimeout: 2000 })
    await world.advance(5000)
    back()
    await world.advance(4999)
    expect(world.peer.all('pingreq')).toHaveLength(0)
    await world.advance(1)
    expect(world.peer.all('pingreq')).toHaveLength(1)
    quiet(world.client.publish('t', 'x', { qos: 1, ackTimeout: 500 }))
    world.peer.answer = () => undefined
    world.behave = () => () => undefined
    await world.settle()
    await world.cut()
    back()
    await world.advance(1000 + 2000)
    expect(world.seen('connecterror')).toMatchObject([{ error: { code: 'ERR_CONNECT_TIMEOUT' } }])
    expect(world.delays).toEqual([reconnect.backoff(1), reconnect.backoff(2)])
    world.behave = () => agreeable
    await world.advance(2000)
    expect(world.client.state).toBe('connected')
    await world.finish()
  })

  it('`ttl`, message expiry and ackTimeout count the time that passed', async () => {
    const { world, back } = await rig()
    world.behave = () => down
    await world.cut()
    const short = failure(world.client.publish('t', 'short', { qos: 1, ttl: 2500 }))
    const expiring = failure(
      world.client.publish('t', 'expiring', { qos: 1, properties: { messageExpiryInterval: 3 } }),
    )
    quiet(world.client.publish('t', 'lives', { qos: 1, properties: { messageExpiryInterval: 60 } }))
    back()
    await world.advance(4000)
    expect([(await short).code, (await expiring).code]).toEqual(['ERR_EXPIRED', 'ERR_EXPIRED'])
    world.behave = () => agreeable
    await world.advance(10_000)
    const interval = world.peer.all('publish')[0]?.properties.messageExpiryInterval
    expect(interval).toBeLessThanOrEqual(56)
    expect(interval).toBeGreaterThan(40)
    await world.finish()
  })
})
