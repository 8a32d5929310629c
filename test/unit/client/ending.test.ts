/** What an end of the client owes to what was begun before it, and to what happens meanwhile: UNSUBSCRIBE that has not left, a connection that is lost. */
import { describe, expect, it } from 'vitest'
import type { Subscription } from '../../../src/client/api/index.js'
import { BaseClient } from '../../../src/client/client.js'
import { constant } from '../../../src/client/parsing/backoff.js'
import { ScriptedPeer } from '../../../src/testing/scripted-peer.js'
import { VirtualClock } from '../../../src/testing/virtual-clock.js'
import { virtualPlatform } from '../../../src/testing/virtual-platform.js'
import { memoryPair } from '../../../src/transport/memory.js'
import { carried, comeBack, lose, pause, steady, willing } from './across.js'
import { agreeable, connected, failure, type World } from './harness.js'
import { acks, gate, publish, quick, quiet, series, subscribe } from './incoming.js'

const durable = { clientId: 'c', cleanStart: false }

/** After SUBSCRIBE. */
const sent = (world: World): string[] => carried(world.peer).filter((line) => !line.startsWith('subscribe'))

const states = (world: World): string[] => world.seen('state').map(({ state }) => state)

describe('what was unsubscribed in the same turn', () => {
  type Leave = (subscription: Subscription, client: BaseClient) => void
  const ways: Record<string, Leave> = {
    // What `break` calls.
    break: (subscription) => {
      quiet(Promise.resolve(subscription[Symbol.asyncIterator]().return?.()))
    },
    'async dispose': (subscription) => {
      quiet(Promise.resolve(subscription[Symbol.asyncDispose]()))
    },
    'unsubscribe() that nobody awaits': (subscription) => {
      quiet(subscription.unsubscribe())
    },
    'client.unsubscribe() that nobody awaits': (_subscription, client) => {
      quiet(client.unsubscribe('a'))
    },
  }
  const ends: Record<string, (client: BaseClient) => Promise<void>> = {
    'disconnect()': (client) => client.disconnect(),
    'disconnect({ timeout: 0 })': (client) => client.disconnect({ timeout: 0 }),
    'drain()': (client) => client.drain(),
  }
  const rows = Object.keys(ways).flatMap((way) => Object.keys(ends).map((end) => [way, end] as const))

  it.each(rows)('%s, then %s: UNSUBSCRIBE leaves before DISCONNECT', async (way, end) => {
    const clock = new VirtualClock()
    // As in Node, where promises have their turns before a queued flush has its own.
    const platform = { ...virtualPlatform(clock), turnEnd: (callback: () => void) => void clock.setTimer(callback, 0) }
    const [near, far] = memoryPair({ schedule: (callback, delay) => clock.setTimer(callback, delay) })
    const peer = new ScriptedPeer(far, 5, agreeable)
    const client = new BaseClient(platform, { url: 'memory://peer', transport: () => near }, durable)
    quiet(client.connect())
    await clock.advance(1)
    const subscription = client.subscription('a', { qos: 1, onExit: 'unsubscribe' })
    await clock.advance(1)
    peer.send(...series('a', 1))
    await clock.advance(1)
    ways[way]?.(subscription, client)
    const done = ends[end]?.(client)
    await clock.advance(1)
    await done
    const types = peer.received.map((packet) => packet.type).filter((type) => type !== 'puback')
    expect(types).toEqual(['connect', 'subscribe', 'unsubscribe', 'disconnect'])
  })

  it('an unsubscribe() that is pending gets its answer, not ERR_CLOSED', async () => {
    const world = await connected(durable, (packet) => (packet.type === 'unsubscribe' ? undefined : agreeable(packet)))
    const subscription = await subscribe(world, 'a')
    const calls = [quiet(subscription.unsubscribe()), quiet(world.client.unsubscribe('b'))]
    const done = world.client.disconnect()
    await world.clock.advance(1000)
    expect(sent(world)).toEqual(['unsubscribe a #2', 'unsubscribe b #3'])
    for (const packetId of [2, 3]) await world.send({ type: 'unsuback', packetId, reasonCodes: [0], properties: {} })
    await Promise.all(calls)
    await done
    expect(sent(world).at(-1)).toBe('disconnect')
    expect(world.clock.now()).toBe(1000)
  })

  it('one that begins in the last turn is waited for too', async () => {
    const world = await connected(durable, agreeable)
    const turn = gate()
    let left: Promise<unknown> | undefined
    const subscription = await subscribe(world, 'a', { qos: 1 })
    const loop = (async () => {
      for await (const _ of subscription) {
        await turn.promise
        left = quiet(subscription.unsubscribe())
      }
    })()
    await world.send(...series('a', 1))
    const done = world.client.disconnect()
    await world.settle()
    turn.open()
    await world.settle()
    await Promise.all([done, loop, left])
    expect(sent(world)).toEqual(['puback #1', 'unsubscribe a #2', 'disconnect'])
  })

  it('without a connection drain() waits for one to send it', async () => {
    const world = await steady(durable, agreeable)
    const subscription = await subscribe(world, 'a')
    await lose(world)
    const left = quiet(subscription.unsubscribe())
    const done = world.client.drain()
    await comeBack(world, willing(true))
    await Promise.all([left, done])
    expect(carried(world.peer)).toEqual(['unsubscribe a #2', 'disconnect'])
  })
})

describe('a connection that is lost while the client ends', () => {
  /** A loop that is in the middle of a turn, and `disconnect()` or `drain()` waiting for it. */
  async function busy(world: World, end: (client: BaseClient) => Promise<void>) {
    const turn = gate()
    const subscription = await subscribe(world, 'a', { qos: 1 })
    const texts: string[] = []
    const loop = (async () => {
      for await (const message of subscription) {
        await turn.promise
        texts.push(message.text())
      }
    })()
    await world.send(...series('a', 2))
    const done = quiet(end(world.client))
    await world.settle()
    return { turn, loop, done, texts, subscription }
  }

  it.each(['disconnect', 'drain'] as const)('%s(): a running turn goes on to its end', async (end) => {
    const world = await steady({}, agreeable)
    const { turn, loop, done, texts } = await busy(world, (client) => client[end]())
    world.answer = undefined
    await lose(world)
    await world.clock.advance(1000)
    expect(await world.outcome(done)).toEqual({ state: 'pending' })
    expect(world.client.state).toBe('disconnecting')
    turn.open()
    await world.settle()
    await Promise.all([done, loop])
    expect(texts).toEqual(['1'])
    expect(states(world)).toEqual(['connecting', 'connected', 'disconnecting', 'closed'])
    expect(world.seen('disconnect')).toMatchObject([{ cause: { code: 'ERR_CONNECTION_LOST' } }])
    expect(world.clock.pending).toBe(0)
  })

  it('readers and handlings end in order all the same', async () => {
    const world = await steady({}, agreeable)
    const starting = world.client.listen('b', () => undefined)
    const { turn, loop, done, subscription } = await busy(world, (client) => client.disconnect())
    const handling = await starting
    await lose(world)
    turn.open()
    await world.settle()
    await Promise.all([done, loop, handling.done])
    expect(await subscription.next()).toBeUndefined()
  })

  it.each(['disconnect', 'drain'] as const)('%s(): a turn that does not end is given up at `timeout`', async (end) => {
    const world = await steady({}, agreeable)
    const { done } = await busy(world, (client) => client[end]({ timeout: 3000 }))
    world.answer = undefined
    await lose(world)
    await world.clock.advance(2999)
    expect(world.client.state).toBe('disconnecting')
    await world.clock.advance(1)
    await done
    expect(world.client.state).toBe('closed')
    expect(world.clock.pending).toBe(0)
  })

  it('disconnect() makes no new connection; what a turn publishes fails at once, and the turn may end', async () => {
    const world = await steady({}, agreeable)
    const turn = gate()
    const codes: string[] = []
    quiet(
      world.client.listen(
        'a',
        async () => {
          await turn.promise
          codes.push((await failure(world.client.publish('b', 'x', { qos: 1 }))).code)
        },
        { qos: 1 },
      ),
    )
    await world.settle()
    await world.send(...series('a', 1))
    const flying = failure(world.client.publish('c', 'x', { qos: 1 }))
    world.answer = undefined
    const done = world.client.disconnect()
    await world.settle()
    await lose(world)
    await world.clock.advance(1000)
    turn.open()
    await world.settle()
    await done
    expect(world.peers).toHaveLength(1)
    expect(codes).toEqual(['ERR_CONNECTION_LOST'])
    expect(await flying).toBeDefined()
    expect(world.clock.now()).toBe(1000)
    expect(world.clock.pending).toBe(0)
  })

  it('drain() comes back, delivers what is queued and in flight, and says goodbye there', async () => {
    const world = await steady({}, (packet) => (packet.type === 'connect' ? willing(false, { receiveMaximum: 1 })(packet) : undefined))
    const both = ['one', 'two'].map((text) => quiet(world.client.publish('t', text, { qos: 1 })))
    const done = world.client.drain()
    await world.settle()
    await lose(world)
    await comeBack(world, willing(true, { receiveMaximum: 1 }))
    await Promise.all([...both, done])
    expect(carried(world.peer)).toEqual(['publish t=one q1 #1 dup', 'publish t=two q1 #2', 'disconnect'])
    expect(await world.client.closed).toBeUndefined()
    expect(states(world)).toEqual(['connecting', 'connected', 'disconnecting', 'closed'])
    expect([world.seen('connect').length, world.seen('disconnect').length]).toEqual([1, 1])
    expect(world.clock.pending).toBe(0)
  })

  it('drain() comes back as often as it must', async () => {
    const world = await steady({ outbound: { poisonAfter: Number.POSITIVE_INFINITY } })
    const one = quiet(world.client.publish('t', 'one', { qos: 1 }))
    const done = world.client.drain()
    for (let round = 0; round < 5; round++) {
      await world.settle()
      await lose(world)
      await comeBack(world)
    }
    await world.send({ type: 'puback', packetId: 1, reasonCode: 0, properties: {} })
    await Promise.all([one, done])
    expect(world.peers).toHaveLength(6)
    expect(states(world)).toEqual(['connecting', 'connected', 'disconnecting', 'closed'])
  })

  it('drain() sends what a turn publishes after the loss', async () => {
    const world = await steady({}, agreeable)
    const turn = gate()
    quiet(
      world.client.listen(
        'a',
        async () => {
          await turn.promise
          await world.client.publish('b', 'x', { qos: 1 })
        },
        { qos: 1 },
      ),
    )
    await world.settle()
    await world.send(...series('a', 1))
    const done = world.client.drain()
    await world.settle()
    await lose(world)
    turn.open()
    await comeBack(world, willing(true))
    await world.settle()
    await done
    expect(carried(world.peer)).toEqual(['publish b=x q1 #2', 'disconnect'])
  })

  it('drain() subscribes to nothing again when the session is gone meanwhile', async () => {
    const world = await steady({}, (packet) => (packet.type === 'publish' ? undefined : agreeable(packet)))
    await subscribe(world, 'a')
    const one = quiet(world.client.publish('t', 'one', { qos: 1 }))
    const done = world.client.drain()
    await world.settle()
    await lose(world)
    await comeBack(world, willing(false))
    await Promise.all([one, done])
    expect(carried(world.peer)).toEqual(['publish t=one q1 #3', 'disconnect'])
  })

  it('drain() with no server to come back to: over at `timeout`, what is in flight rejects with outcome unknown', async () => {
    const world = await steady({}, (packet) => (packet.type === 'publish' ? undefined : agreeable(packet)))
    const one = failure(world.client.publish('t', 'one', { qos: 1 }))
    const done = world.client.drain({ timeout: 5000 })
    await world.settle()
    world.answer = undefined
    await lose(world)
    await world.clock.advance(4999)
    expect(world.client.state).toBe('disconnecting')
    await world.clock.advance(1)
    await done
    expect((await one).outcome).toBe('unknown')
    expect(world.clock.pending).toBe(0)
  })

  it('drain() that may not come back does not wait, but for its turns', async () => {
    const world = await steady({ reconnect: false }, agreeable)
    const { turn, loop, done } = await busy(world, (client) => client.drain())
    world.answer = undefined
    const one = failure(world.client.publish('t', 'one', { qos: 1 }))
    await lose(world)
    expect((await one).code).toBe('ERR_CONNECTION_LOST')
    expect(await world.outcome(done)).toEqual({ state: 'pending' })
    turn.open()
    await world.settle()
    await Promise.all([done, loop])
    expect(world.clock.now()).toBe(0)
  })

  it('drain() whose attempts run out leaves its turns their time', async () => {
    const world = await steady({ reconnect: { backoff: constant(pause), maxAttempts: 1 } }, agreeable)
    const { turn, loop, done, texts } = await busy(world, (client) => client.drain({ timeout: 60_000 }))
    world.answer = (packet) => (packet.type === 'connect' ? { type: 'connack', sessionPresent: false, reasonCode: 0x88, properties: {} } : undefined)
    const one = failure(world.client.publish('t', 'one', { qos: 1 }))
    await lose(world)
    await world.clock.advance(1000)
    expect((await one).code).toMatch(/ERR_/)
    expect(await world.outcome(done)).toEqual({ state: 'pending' })
    turn.open()
    await world.settle()
    await Promise.all([done, loop])
    expect(texts).toEqual(['1'])
    expect(world.clock.pending).toBe(0)
  })

  it('a member that leaves its group hands out what it has', async () => {
    const world = await steady({}, (packet) => (packet.type === 'unsubscribe' ? undefined : agreeable(packet)))
    const seen: string[] = []
    quiet(
      world.client.listen('$share/g/a', async (message) => {
        await new Promise<void>((resolve) => world.clock.setTimer(resolve, 10))
        seen.push(message.text())
      }),
    )
    await world.settle()
    await world.send(...quick('a', 5))
    const done = world.client.disconnect()
    await world.settle()
    await lose(world)
    await world.clock.advance(50)
    await done
    expect(seen).toEqual(['1', '2', '3', '4', '5'])
    expect(world.clock.now()).toBe(50)
  })

  it('during drain() leaves the group on the next connection', async () => {
    const world = await steady({}, (packet) => (packet.type === 'unsubscribe' || packet.type === 'publish' ? undefined : agreeable(packet)))
    await subscribe(world, '$share/g/a')
    const one = quiet(world.client.publish('t', 'one', { qos: 1 }))
    const done = world.client.drain()
    await world.settle()
    await lose(world)
    await comeBack(world, willing(true))
    await Promise.all([one, done])
    expect(carried(world.peer).map((line) => line.split(' ')[0])).toEqual(['unsubscribe', 'publish', 'disconnect'])
  })

  it('disconnect() that joins a drain() and is in a hurry ends it', async () => {
    const world = await steady({}, (packet) => (packet.type === 'publish' ? undefined : agreeable(packet)))
    quiet(world.client.publish('t', 'one', { qos: 1 }))
    const draining = world.client.drain()
    await world.settle()
    world.answer = undefined
    await lose(world)
    await world.client.disconnect({ timeout: 0 })
    await draining
    expect(states(world)).toEqual(['connecting', 'connected', 'disconnecting', 'closed'])
    expect(world.clock.pending).toBe(0)
  })

  it('destroy() ends it at once', async () => {
    const world = await steady({}, agreeable)
    const { turn, loop, done, texts } = await busy(world, (client) => client.drain())
    world.answer = undefined
    await lose(world)
    world.client.destroy()
    await done
    expect(world.clock.pending).toBe(0)
    turn.open()
    await loop
    expect(texts).toEqual(['1'])
    expect(world.seen('disconnect')).toHaveLength(1)
  })

  it('one that was lost before, with a turn running: closed without an error, as the end was in order', async () => {
    const world = await steady({}, agreeable)
    const turn = gate()
    quiet(world.client.listen('a', () => turn.promise, { qos: 1 }))
    await world.settle()
    await world.send(publish('a', '1', 1))
    world.answer = undefined
    await lose(world)
    const done = world.client.disconnect()
    await world.settle()
    expect(world.client.state).toBe('disconnecting')
    turn.open()
    await world.settle()
    await done
    expect(await world.client.closed).toBeUndefined()
    expect(acks(world)).toEqual([])
    expect(world.clock.pending).toBe(0)
  })
})

it('a listener that begins the end of the client when the connection is lost', async () => {
  for (const end of ['disconnect', 'drain', 'destroy'] as const) {
    const world = await steady({}, agreeable)
    const turn = gate()
    quiet(world.client.listen('a', () => turn.promise, { qos: 1 }))
    await world.settle()
    await world.send(publish('a', '1', 1))
    const done: unknown[] = []
    world.client.on('disconnect', () => done.push(world.client[end]()))
    world.answer = undefined
    await lose(world)
    await world.clock.advance(100)
    turn.open()
    await world.settle()
    await Promise.all(done)
    expect({ end, ends: done.length, state: world.client.state }).toEqual({ end, ends: 1, state: 'closed' })
    expect(world.clock.pending).toBe(0)
  }
})
