/** What an end of the client owes to what was begun before it, and to what happens meanwhile: UNSUBSCRIBE that has not left, a connection that is lost. */
import { describe, expect, it } from 'vitest'
import type { ClientOptions, Subscription } from '../../../src/client/api/index.js'
import { BaseClient } from '../../../src/client/client.js'
import { constant } from '../../../src/client/parsing/backoff.js'
import { ScriptedPeer } from '../../../src/testing/scripted-peer.js'
import { VirtualClock } from '../../../src/testing/virtual-clock.js'
import { virtualPlatform } from '../../../src/testing/virtual-platform.js'
import { memoryPair } from '../../../src/transport/memory.js'
import { carried, comeBack, lose, pause, steady, willing } from './across.js'
import { agreeable, connected, failure, type World } from './harness.js'
import { acks, gate, publish, quick, quiet, series, subscribe } from './incoming.js'
import { refusing } from './rig.js'
import { deafTo, listen, loop, settled, sleep } from './steps.js'

const durable = { clientId: 'c', cleanStart: false }

/** After SUBSCRIBE. */
const sent = (world: World): string[] =>
  carried(world.peer).filter((line) => !line.startsWith('subscribe'))

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

  it.each(Object.keys(ways).flatMap((way) => Object.keys(ends).map((end) => [way, end] as const)))(
    '%s, then %s: UNSUBSCRIBE leaves first',
    async (way, end) => {
      const clock = new VirtualClock()
      // As in Node, where promises have their turns before a queued flush has its own.
      const platform = {
        ...virtualPlatform(clock),
        turnEnd: (callback: () => void) => void clock.setTimer(callback, 0),
      }
      const [near, far] = memoryPair({
        schedule: (callback, delay) => clock.setTimer(callback, delay),
      })
      const peer = new ScriptedPeer(far, 5, agreeable)
      const client = new BaseClient(
        platform,
        { url: 'memory://peer', transport: () => near },
        durable,
      )
      await settled({ clock }, client.connect(), 1)
      const subscription = client.subscription('a', { qos: 1, onExit: 'unsubscribe' })
      await clock.advance(1)
      peer.send(...series('a', 1))
      await clock.advance(1)
      quiet(Promise.resolve(ways[way]?.(subscription, client)))
      await settled({ clock }, Promise.resolve(ends[end]?.(client)), 1)
      const types = peer.received.map(({ type }) => type).filter((type) => type !== 'puback')
      expect(types).toEqual(['connect', 'subscribe', 'unsubscribe', 'disconnect'])
    },
  )

  it('an unsubscribe() that is pending gets its answer, not ERR_CLOSED', async () => {
    const world = await connected(durable, deafTo('unsubscribe'))
    const subscription = await subscribe(world, 'a')
    const calls = [quiet(subscription.unsubscribe()), quiet(world.client.unsubscribe('b'))]
    const done = world.client.disconnect()
    await world.clock.advance(1000)
    expect(sent(world)).toEqual(['unsubscribe a #2', 'unsubscribe b #3'])
    for (const packetId of [2, 3])
      await world.send({ type: 'unsuback', packetId, reasonCodes: [0], properties: {} })
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

  it('readers and handlings end in order all the same', async () => {
    let handling: Promise<unknown> | undefined
    const { world, finish, subscription } = await busy((client) => {
      handling = client.listen('b', () => undefined).then(({ done }) => done)
      return client.disconnect()
    })
    quiet(handling as Promise<unknown>)
    await lose(world)
    await finish()
    expect(await subscription.next()).toBeUndefined()
  })

  it.each(['disconnect', 'drain'] as const)(
    '%s(): a turn is given up at `timeout`',
    async (end) => {
      const { world, done } = await busy((client) => client[end]({ timeout: 3000 }))
      await lose(world)
      await world.clock.advance(2999)
      expect(world.client.state).toBe('disconnecting')
      await settled(world, done, 1)
      expectEnded(world)
    },
  )

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
    expect(carried(world.peer)).toEqual([
      'publish t=one q1 #1 dup',
      'publish t=two q1 #2',
      'disconnect',
    ])
    expect(await world.client.closed).toBeUndefined()
    expect([world.seen('connect').length, world.seen('disconnect').length]).toEqual([1, 1])
    expectEnded(world)
  })

  it('drain() comes back as often as it must', async () => {
    const { world, one, done } = await draining({
      outbound: { poisonAfter: Number.POSITIVE_INFINITY },
    })
    for (let round = 0; round < 5; round++) {
      await comeBack(world)
      if (round < 4) await lose(world)
    }
    await world.send({ type: 'puback', packetId: 1, reasonCode: 0, properties: {} })
    await Promise.all([one, done])
    expect(world.peers).toHaveLength(6)
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
    const { world, done, finish } = await busy(
      (client) => client.drain({ timeout: 60_000 }),
      options,
    )
    world.answer = refusing(0x88)
    const one = failure(world.client.publish('t', 'one', { qos: 1 }))
    await lose(world)
    if (options.reconnect !== false) await world.clock.advance(1000)
    expect((await one).code).toMatch(options.reconnect === false ? /^ERR_CONNECTION_LOST$/ : /ERR_/)
    expect(await world.outcome(done)).toEqual({ state: 'pending' })
    await finish()
  })

  it('a member that leaves its group hands out what it has', async () => {
    const world = await steady({}, deafTo('unsubscribe'))
    const seen: string[] = []
    await listen(world, '$share/g/a', async (message) => {
      await sleep(world, 10)
      seen.push(message.text())
    })
    await world.send(...quick('a', 5))
    const done = world.client.disconnect()
    await world.settle()
    await lose(world)
    await settled(world, done, 50)
    expect([seen, world.clock.now()]).toEqual([['1', '2', '3', '4', '5'], 50])
  })

  it('disconnect() that joins a drain() and is in a hurry ends it', async () => {
    const { world, done } = await draining()
    world.answer = undefined
    await world.client.disconnect({ timeout: 0 })
    await done
    expectEnded(world)
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

  it.each(['disconnect', 'drain', 'destroy'] as const)('%s() in that event', async (end) => {
    const world = await steady({}, agreeable)
    const turn = gate()
    await listen(world, 'a', () => turn.promise, { qos: 1 })
    await world.send(publish('a', '1', 1))
    const done: unknown[] = []
    world.client.on('disconnect', () => done.push(world.client[end]()))
    world.answer = undefined
    await lose(world)
    await world.clock.advance(100)
    turn.open()
    await settled(world, Promise.all(done))
    expect([done.length, world.client.state, world.clock.pending]).toEqual([1, 'closed', 0])
  })
})
