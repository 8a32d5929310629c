/** What an end of the client owes to what was begun before it, and to what happens meanwhile: UNSUBSCRIBE, turns, a connection that is lost. */
import { describe, expect, it } from 'vitest'
import { BaseClient } from '../../../src/client/client.js'
import { constant } from '../../../src/client/options/backoff.js'
import type { ClientOptions, Subscription } from '../../../src/client/options/index.js'
import { ScriptedPeer } from '../../../src/testing/scripted-peer.js'
import { VirtualClock } from '../../../src/testing/virtual-clock.js'
import { virtualPlatform } from '../../../src/testing/virtual-platform.js'
import { carried, comeBack, lose, pause, steady, willing } from './across.js'
import { agreeable, connected, failure, pairOn, type World } from './harness.js'
import { acks, agreed, gate, publish, quiet, series, subscribe, taken } from './incoming.js'
import { Rig, refusing } from './rig.js'
import { deafTo, listen, loop, settled } from './steps.js'

const durable = { clientId: 'c', cleanStart: false }

/** After SUBSCRIBE. */
const sent = (world: World) => carried(world.peer).filter((line) => !line.startsWith('subscribe'))

const states = (world: World): string[] => world.seen('state').map(({ state }) => state)
const once = ['connecting', 'connected', 'disconnecting', 'closed']

/** It has ended in order, and nothing is left. */
function expectEnded(world: World): void {
  expect([states(world), world.client.state, world.clock.pending]).toEqual([once, 'closed', 0])
}

describe('what was unsubscribed in the same turn', () => {
  type Leave = (subscription: Subscription, client: BaseClient) => unknown
  const ways: Record<string, Leave> = {
    // What `break` calls.
    break: (subscription) => subscription[Symbol.asyncIterator]().return?.(),
    'async dispose': (subscription) => subscription[Symbol.asyncDispose](),
    'unsubscribe()': (subscription) => subscription.unsubscribe(),
    'client.unsubscribe()': (_subscription, client) => client.unsubscribe('a'),
  }
  const ends: Record<string, (client: BaseClient) => Promise<void>> = {
    'disconnect()': (client) => client.disconnect(),
    'disconnect({ timeout: 0 })': (client) => client.disconnect({ timeout: 0 }),
    'drain()': (client) => client.drain(),
  }

  const pairs = Object.keys(ways).flatMap((way) => Object.keys(ends).map((end) => [way, end]))
  it.each(pairs)('%s, then %s: UNSUBSCRIBE leaves first', async (way = '', end = '') => {
    // As in Node, where promises have their turns before a queued flush has its own.
    const turnEnd = (callback: () => void) => void rig.clock.setTimer(callback, 0)
    const rig: Rig = new Rig(durable, { platform: { turnEnd } })
    const { client } = rig
    await settled(rig, client.connect(), 1)
    const subscription = client.subscription('a', { qos: 1, onExit: 'unsubscribe' })
    await rig.advance(1)
    rig.peer.send(...series('a', 1))
    await rig.advance(1)
    quiet(Promise.resolve(ways[way]?.(subscription, client)))
    await settled(rig, Promise.resolve(ends[end]?.(client)), 1)
    const types = rig.peer.received.map(({ type }) => type).filter((type) => type !== 'puback')
    expect(types).toEqual(['connect', 'subscribe', 'unsubscribe', 'disconnect'])
  })

  it('an unsubscribe() that is pending gets its answer, not ERR_CLOSED', async () => {
    const world = await connected(durable, deafTo('unsubscribe'))
    const subscription = await subscribe(world, 'a')
    const calls = [quiet(subscription.unsubscribe()), quiet(world.client.unsubscribe('b'))]
    const done = world.client.disconnect()
    await world.clock.advance(1000)
    expect(sent(world)).toEqual(['unsubscribe a #2', 'unsubscribe b #3'])
    for (const packetId of [2, 3])
      await world.send({ type: 'unsuback', packetId, reasonCodes: [0] })
    await Promise.all([...calls, done])
    expect([sent(world).at(-1), world.clock.now()]).toEqual(['disconnect', 1000])
  })

  it('one that begins in the last turn is waited for too', async () => {
    const world = await connected(durable, agreeable)
    const turn = gate()
    let left: Promise<unknown> | undefined
    const subscription = await subscribe(world, 'a', { qos: 1 })
    const reading = (async () => {
      for await (const _ of subscription) {
        await turn.promise
        left = quiet(subscription.unsubscribe())
      }
    })()
    await world.send(...series('a', 1))
    const done = world.client.disconnect()
    await world.settle()
    turn.open()
    await settled(world, Promise.all([done, reading]))
    await left
    expect(sent(world)).toEqual(['puback #1', 'unsubscribe a #2', 'disconnect'])
  })

  it('without a connection drain() waits for one to send it', async () => {
    const world = await steady(durable, agreeable)
    const subscription = await subscribe(world, 'a')
    await lose(world)
    const calls = [quiet(subscription.unsubscribe()), world.client.drain()]
    await comeBack(world, willing(true))
    await Promise.all(calls)
    expect(carried(world.peer)).toEqual(['unsubscribe a #2', 'disconnect'])
  })
})

describe('a connection that is lost while the client ends', () => {
  /** A loop that is in the middle of a turn while `end` waits for it, and the connection is lost; no server comes back. */
  async function busy(end: (client: BaseClient) => Promise<void>, options: ClientOptions = {}) {
    const world = await steady(options, agreeable)
    const turn = gate()
    const subscription = await subscribe(world, 'a', { qos: 1 })
    const texts: string[] = []
    const reading = loop(subscription, async (message) => {
      await turn.promise
      texts.push(message.text())
    })
    await world.send(...series('a', 2))
    const done = quiet(end(world.client))
    await world.settle()
    world.answer = undefined
    /** The turn ends, and with it everything. */
    const finish = async (): Promise<void> => {
      turn.open()
      await settled(world, Promise.all([done, reading]))
      expect(texts).toEqual(['1'])
      expectEnded(world)
    }
    return { world, subscription, done, finish }
  }

  /** A publish that is not acknowledged, a drain that waits for it, and the connection is lost. */
  async function draining(
    options: ClientOptions = {},
    answer = deafTo('publish'),
    timeout = 60_000,
  ) {
    const world = await steady(options, answer)
    const one = quiet(world.client.publish('t', 'one', { qos: 1 }))
    const done = world.client.drain({ timeout })
    await world.settle()
    await lose(world)
    return { world, one, done }
  }

  it.each(['disconnect', 'drain'] as const)('%s(): a running turn goes on', async (end) => {
    const { world, done, finish } = await busy((client) => client[end]())
    await lose(world)
    await world.clock.advance(1000)
    expect(await world.outcome(done)).toEqual({ state: 'pending' })
    expect(world.client.state).toBe('disconnecting')
    await finish()
    expect(world.seen('disconnect')).toMatchObject([{ cause: { code: 'ERR_CONNECTION_LOST' } }])
  })

  it.each(['disconnect', 'drain'] as const)('%s(): a turn may publish after it', async (end) => {
    const world = await steady({}, agreeable)
    const turn = gate()
    const codes: string[] = []
    const handler = async (): Promise<void> => {
      await turn.promise
      await world.client.publish('b', 'x', { qos: 1 }).catch(({ code }) => void codes.push(code))
    }
    await listen(world, 'a', handler, { qos: 1 })
    await world.send(...series('a', 1))
    world.answer = undefined
    const flying =
      end === 'disconnect' ? failure(world.client.publish('c', 'x', { qos: 1 })) : undefined
    const done = world.client[end]()
    await world.settle()
    await lose(world)
    if (end === 'disconnect') await world.clock.advance(1000)
    turn.open()
    if (end === 'drain') await comeBack(world, willing(true))
    await settled(world, done)
    expect([world.peers.length, codes]).toEqual(
      end === 'drain' ? [2, []] : [1, ['ERR_CONNECTION_LOST']],
    )
    if (end === 'drain') expect(carried(world.peer)).toEqual(['publish b=x q1 #2', 'disconnect'])
    else expect([(await flying) !== undefined, world.clock.now()]).toEqual([true, 1000])
    expectEnded(world)
  })

  it('drain() comes back, delivers what is queued and in flight, and says goodbye there', async () => {
    const world = await steady({}, (packet) =>
      packet.type === 'connect' ? willing(false, { receiveMaximum: 1 })(packet) : undefined,
    )
    const both = ['one', 'two'].map((text) => quiet(world.client.publish('t', text, { qos: 1 })))
    const done = world.client.drain()
    await world.settle()
    await lose(world)
    await comeBack(world, willing(true, { receiveMaximum: 1 }))
    await Promise.all([...both, done])
    const packets = 'publish t=one q1 #1 dup,publish t=two q1 #2,disconnect'
    expect(carried(world.peer).join()).toBe(packets)
    expect(await world.client.closed).toBeUndefined()
    expect([world.seen('connect').length, world.seen('disconnect').length]).toEqual([1, 1])
    expectEnded(world)
  })

  it.each([
    ['a', false, ['publish t=one q1 #3', 'disconnect']],
    ['$share/g/a', true, ['unsubscribe $share/g/a #4', 'publish t=one q1 #2 dup', 'disconnect']],
  ])('drain() on the next connection: %s, session kept: %s', async (filter, kept, packets) => {
    const world = await steady({}, (packet) =>
      packet.type === 'unsubscribe' ? undefined : deafTo('publish')(packet),
    )
    await subscribe(world, filter)
    const one = quiet(world.client.publish('t', 'one', { qos: 1 }))
    const done = world.client.drain()
    await world.settle()
    await lose(world)
    await comeBack(world, willing(kept))
    await Promise.all([one, done])
    expect(carried(world.peer)).toEqual(packets)
  })

  it('drain() with no server to come back to: over at `timeout`, what is in flight rejects with outcome unknown', async () => {
    const { world, one, done } = await draining({}, undefined, 5000)
    world.answer = undefined
    await world.clock.advance(4999)
    expect(world.client.state).toBe('disconnecting')
    await settled(world, done, 1)
    expect((await failure(one)).outcome).toBe('unknown')
    expect(world.clock.pending).toBe(0)
  })

  it.each<[string, ClientOptions]>([
    ['that may not come back', { reconnect: false }],
    ['whose attempts run out', { reconnect: { backoff: constant(pause), maxAttempts: 1 } }],
  ])('drain() %s leaves its turns their time', async (_what, options) => {
    const drain = (client: BaseClient): Promise<void> => client.drain({ timeout: 60_000 })
    const { world, done, finish } = await busy(drain, options)
    world.answer = refusing(0x88)
    const one = failure(world.client.publish('t', 'one', { qos: 1 }))
    await lose(world)
    if (options.reconnect !== false) await world.clock.advance(1000)
    expect((await one).code).toMatch(options.reconnect === false ? /^ERR_CONNECTION_LOST$/ : /ERR_/)
    expect(await world.outcome(done)).toEqual({ state: 'pending' })
    await finish()
  })

  it('destroy() ends it at once', async () => {
    const { world, done, finish } = await busy((client) => client.drain())
    await lose(world)
    world.client.destroy()
    await done
    expect(world.clock.pending).toBe(0)
    await finish()
    expect(world.seen('disconnect')).toHaveLength(1)
  })

  it('one that was lost before, with a turn running: closed without an error, as the end was in order', async () => {
    const world = await steady({}, agreeable)
    const turn = gate()
    await listen(world, 'a', () => turn.promise, { qos: 1 })
    await world.send(publish('a', '1', 1))
    world.answer = undefined
    await lose(world)
    const done = world.client.disconnect()
    await world.settle()
    expect(world.client.state).toBe('disconnecting')
    turn.open()
    await settled(world, done)
    expect(await world.client.closed).toBeUndefined()
    expect(acks(world)).toEqual([])
    expect(world.clock.pending).toBe(0)
  })
})

describe('disconnect()', () => {
  it('timeout 0 lets DISCONNECT leave, also where time passes between two statements', async () => {
    const clock = new VirtualClock()
    let ticks = 0
    const moving = { ...virtualPlatform(clock), now: () => clock.now() + ticks++ * 0.001 }
    const [near, far] = pairOn(clock, { latency: 5 })
    const peer = new ScriptedPeer(far, 5, agreeable)
    const client = new BaseClient(moving, { url: 'memory://peer', transport: () => near }, {})
    await Promise.all([client.connect(), clock.advance(20)])
    for (let count = 0; count < 30; count++) quiet(client.publish('t', new Uint8Array(2000)))
    await Promise.all([client.disconnect({ timeout: 0 }), clock.advance(20)])
    expect(peer.received.at(-1)).toMatchObject({ type: 'disconnect', reasonCode: 0 })
    expect(peer.all('publish')).toHaveLength(30)
  })

  it.each([0, 200])('waits for a loop body of a subscription gone, %i since', async (others) => {
    const world = await agreed()
    const subscription = await subscribe(world, 'a', { qos: 1 })
    const body = gate()
    const loop = (async () => {
      for await (const _ of subscription) await body.promise
    })()
    await world.send(publish('a', 'x', 1))
    await Promise.all([subscription.unsubscribe(), world.settle()])
    for (let count = 0; count < others; count++) {
      quiet((await subscribe(world, 'a', { qos: 1 })).unsubscribe())
      await world.settle()
    }
    const done = world.client.disconnect()
    await world.settle()
    expect(world.peer.all('disconnect')).toEqual([])
    body.open()
    await Promise.all([done, loop, world.settle()])
    expect(acks(world)).toEqual(['puback 1'])
    expect(world.peer.received.at(-1)?.type).toBe('disconnect')
  })

  it('does not wait when every manual consumer of a message has settled it', async () => {
    const world = await agreed()
    const subscriptions = [1, 2].map(() =>
      world.client.subscription('a', { qos: 1, ack: 'manual' }),
    )
    await world.settle()
    await world.send(publish('a', 'x', 1))
    const [first, second] = subscriptions.map(taken)
    const done = world.client.disconnect()
    await world.settle()
    first?.ack()
    await world.settle()
    expect(world.client.state).toBe('disconnecting')
    second?.ack()
    await Promise.all([done, world.settle()])
    expect(world.clock.now()).toBeLessThan(100)
  })

  it.each([true, false])('waits for a message, not the loop: acked %s', async (acked) => {
    const world = await agreed()
    const subscription = await subscribe(world, 'a', { qos: 1, ack: 'manual' })
    const loop = (async () => {
      for await (const message of subscription) {
        if (acked) message.ack()
        await gate().promise
      }
    })()
    await world.send(publish('a', 'x', 1))
    const done = world.client.disconnect()
    await world.settle()
    expect(world.client.state).toBe(acked ? 'closed' : 'disconnecting')
    await world.clock.advance(60_000)
    await done
    quiet(loop)
  })
})
