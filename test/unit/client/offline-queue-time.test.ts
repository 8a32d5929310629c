/** Time while publishes wait: message expiry counts down, time to live ends, and neither touches what was sent. */
import { describe, expect, it } from 'vitest'
import { constant } from '../../../src/client/options/backoff.js'
import type { ClientOptions, PublishOptions } from '../../../src/client/options/index.js'
import { again, comeBack, forgets, lose, send, steady, willing } from './across.js'
import { failure, type World } from './harness.js'
import { quiet } from './incoming.js'
import { ack } from './stub.js'

const wait = 1_000_000

/** A client that has lost its link, for so long. */
async function away(options: ClientOptions = {}): Promise<World> {
  const reconnect = { backoff: constant(wait) }
  const world = await steady({
    keepAlive: false,
    sessionExpiryInterval: 4_294_967_295,
    reconnect,
    ...options,
  })
  await lose(world)
  world.answer = willing(true)
  return world
}

const expiring = (messageExpiryInterval: number): PublishOptions => ({
  qos: 1,
  properties: { messageExpiryInterval },
})
const intervals = (world: World) =>
  world.peer.all('publish').map((packet) => packet.properties.messageExpiryInterval)
const expired = { code: 'ERR_EXPIRED', outcome: 'not-sent' }

describe('Message Expiry Interval', () => {
  it('goes down by the whole seconds that the message waited here, in a copy of the properties [MQTT-3.3.2-6]', async () => {
    const world = await away()
    const properties = Object.freeze({ messageExpiryInterval: 5000, contentType: 'c' })
    const promises = [
      quiet(world.client.publish('t', 'a', Object.freeze({ qos: 1, properties } as const))),
    ]
    await world.clock.advance(7900)
    promises.push(quiet(world.client.publish('t', 'b', { ...expiring(5000), qos: 2 })))
    await world.clock.advance(wait - 7900)
    expect(world.peer.all('publish').map((packet) => packet.properties)).toMatchObject([
      { messageExpiryInterval: 4000, contentType: 'c' },
      { messageExpiryInterval: 5000 - 992 },
    ])
    await expect(Promise.all(promises)).resolves.toHaveLength(2)
    expect(properties).toEqual({ messageExpiryInterval: 5000, contentType: 'c' })
  })

  it('at its end the message is dropped: ERR_EXPIRED, not-sent, and a `drop` event', async () => {
    const world = await away()
    const gone = failure(world.client.publish('t', 'a', expiring(3)))
    const kept = quiet(world.client.publish('t', 'b', { qos: 1 }))
    await world.clock.advance(2999)
    expect(world.client.outbound.size).toBe(2)
    await world.clock.advance(1)
    expect(await gone).toMatchObject(expired)
    expect(world.client.outbound.size).toBe(1)
    expect(world.seen('drop')).toMatchObject([
      { direction: 'out', topic: 't', count: 1, error: { code: 'ERR_EXPIRED' } },
    ])
    await world.clock.advance(wait)
    await expect(kept).resolves.toBeDefined()
    expect(world.peer.all('publish')).toHaveLength(1)
  })

  it('counts while the message waits for quota, too; what is sent at once keeps its interval', async () => {
    const world = await steady({}, forgets({ receiveMaximum: 1 }))
    quiet(world.client.publish('t', 'first', expiring(10)))
    const gone = failure(world.client.publish('t', 'a', expiring(2)))
    const kept = quiet(world.client.publish('t', 'b', expiring(60)))
    await world.clock.advance(10_000)
    expect(await gone).toMatchObject(expired)
    await world.send(ack('puback', 1))
    expect(intervals(world)).toEqual([10, 50])
    await world.send(ack('puback', 2))
    await expect(kept).resolves.toBeDefined()
  })

  it('one that is published again after a lost session is not dropped; its interval is what is left, at least 1', async () => {
    const world = await steady()
    const promises = [10, 2].map((seconds) =>
      quiet(world.client.publish('t', 'a', expiring(seconds))),
    )
    await world.clock.advance(4000)
    await again(world, willing(false))
    expect(intervals(world)).toEqual([6, 1])
    await expect(Promise.all(promises)).resolves.toHaveLength(2)
  })
})

describe('`ttl`', () => {
  it('ends what waits for a link, for the client and per publish', async () => {
    const world = await away({ outbound: { ttl: 10_000 } })
    const usual = failure(world.client.publish('t', 'usual', { qos: 1 }))
    const short = failure(world.client.publish('t', 'short', { qos: 2, ttl: 1000 }))
    const long = quiet(world.client.publish('t', 'long', { qos: 1, ttl: 2 * wait }))
    await world.clock.advance(1000)
    expect(await short).toMatchObject(expired)
    expect(world.client.outbound.size).toBe(2)
    await world.clock.advance(9000)
    expect(await usual).toMatchObject(expired)
    await world.clock.advance(wait)
    await expect(long).resolves.toBeDefined()
    expect(world.peer.all('publish')).toHaveLength(1)
  })

  it('and message expiry: whichever comes first', async () => {
    const world = await away()
    const errors = [500, 5000].map((ttl) =>
      failure(world.client.publish('t', 'a', { ...expiring(1), ttl })),
    )
    for (const left of [1, 0]) {
      await world.clock.advance(500)
      expect(world.client.outbound.size).toBe(left)
    }
    for (const error of errors) expect((await error).code).toBe('ERR_EXPIRED')
  })

  it('does not touch what was sent, on this connection or the next', async () => {
    const world = await steady({ outbound: { ttl: 5 } })
    const [one] = send(world, 1, 'one')
    await world.clock.advance(1000)
    expect(await world.outcome(one as Promise<unknown>)).toEqual({ state: 'pending' })
    await again(world, willing(true))
    await expect(one).resolves.toBeDefined()
  })

  it('leaves no timer behind once a message was sent, aborted or cleared', async () => {
    const world = await steady(
      { outbound: { ttl: 60_000, offline: { qos0: 'queue' } } },
      willing(false),
    )
    const idle = world.clock.pending
    await lose(world)
    const controller = new AbortController()
    const waiting = world.clock.pending
    quiet(world.client.publish('t', 'a', { qos: 1, signal: controller.signal }))
    quiet(world.client.publish('t', 'b', { qos: 2 }))
    quiet(world.client.publish('t', 'c'))
    expect(world.clock.pending).toBe(waiting + 3)
    controller.abort()
    expect(world.clock.pending).toBe(waiting + 2)
    await comeBack(world, willing(true))
    expect(world.clock.pending).toBe(idle)
  })

  it('0 is no time at all: only what can leave at once leaves', async () => {
    const world = await steady({ outbound: { ttl: 0 } }, willing(false))
    const now = quiet(world.client.publish('t', 'now', { qos: 1 }))
    await world.settle()
    await expect(now).resolves.toBeDefined()
    await lose(world)
    const later = failure(world.client.publish('t', 'later', { qos: 1 }))
    await world.settle()
    expect((await later).code).toBe('ERR_EXPIRED')
  })
})
