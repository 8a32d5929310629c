/** Time while publishes wait: message expiry counts down, time to live ends, and neither touches what was sent. */
import { describe, expect, it } from 'vitest'
import { constant } from '../../../src/client/parsing/backoff.js'
import { again, comeBack, forgets, lose, send, steady, willing } from './across.js'
import { failure, type World } from './harness.js'
import { quiet } from './incoming.js'

/** Without a link for so long. */
async function away(world: World, milliseconds: number): Promise<void> {
  world.answer = () => undefined
  await lose(world)
  await world.clock.advance(milliseconds)
}

const slow = { keepAlive: false, sessionExpiryInterval: 4_294_967_295, reconnect: { backoff: constant(1_000_000) } } as const
const intervals = (world: World) => world.peer.all('publish').map((packet) => packet.properties.messageExpiryInterval)

describe('Message Expiry Interval', () => {
  it('goes down by the whole seconds that the message waited here [MQTT-3.3.2-6]', async () => {
    const world = await steady(slow)
    await away(world, 0)
    const promises = [quiet(world.client.publish('t', 'a', { qos: 1, properties: { messageExpiryInterval: 5000 } }))]
    await world.clock.advance(7900)
    promises.push(quiet(world.client.publish('t', 'b', { qos: 2, properties: { messageExpiryInterval: 5000 } })))
    await world.clock.advance(999_990 - 7900)
    world.answer = willing(true)
    await world.clock.advance(10)
    expect(intervals(world)).toEqual([4000, 5000 - 992])
    await expect(Promise.all(promises)).resolves.toHaveLength(2)
  })

  it('at its end the message is dropped: ERR_EXPIRED, not-sent, and a `drop` event', async () => {
    const world = await steady(slow)
    await away(world, 0)
    const expired = failure(world.client.publish('t', 'a', { qos: 1, properties: { messageExpiryInterval: 3 } }))
    const kept = quiet(world.client.publish('t', 'b', { qos: 1 }))
    await world.clock.advance(2999)
    expect(world.client.outbound.size).toBe(2)
    await world.clock.advance(1)
    expect(await expired).toMatchObject({ code: 'ERR_EXPIRED', outcome: 'not-sent' })
    expect(world.client.outbound.size).toBe(1)
    expect(world.seen('drop')).toMatchObject([{ direction: 'out', topic: 't', count: 1, error: { code: 'ERR_EXPIRED' } }])
    world.answer = willing(true)
    await world.clock.advance(1_000_000)
    await expect(kept).resolves.toBeDefined()
    expect(world.peer.all('publish')).toHaveLength(1)
  })

  it('counts while the message waits for quota, too', async () => {
    const world = await steady({}, forgets({ receiveMaximum: 1 }))
    send(world, 1, 'first')
    const expired = failure(world.client.publish('t', 'a', { qos: 1, properties: { messageExpiryInterval: 2 } }))
    const kept = quiet(world.client.publish('t', 'b', { qos: 1, properties: { messageExpiryInterval: 60 } }))
    await world.clock.advance(10_000)
    expect(await expired).toMatchObject({ code: 'ERR_EXPIRED' })
    await world.send({ type: 'puback', packetId: 1, reasonCode: 0, properties: {} })
    expect(intervals(world)).toEqual([undefined, 50])
    await world.send({ type: 'puback', packetId: 2, reasonCode: 0, properties: {} })
    await expect(kept).resolves.toBeDefined()
  })

  it('a replay carries what the first transmission carried (byte for byte), however long it took', async () => {
    const world = await steady(slow)
    const promise = quiet(world.client.publish('t', 'a', { qos: 1, properties: { messageExpiryInterval: 10 } }))
    await world.settle()
    await away(world, 999_999)
    world.answer = willing(true)
    await world.clock.advance(1)
    expect(intervals(world)).toEqual([10])
    await expect(promise).resolves.toBeDefined()
  })

  it('one that is published anew after a lost session is not dropped; its interval is what is left, at least 1', async () => {
    const world = await steady({})
    const promise = quiet(world.client.publish('t', 'a', { qos: 1, properties: { messageExpiryInterval: 10 } }))
    const old = quiet(world.client.publish('t', 'b', { qos: 1, properties: { messageExpiryInterval: 2 } }))
    await world.clock.advance(4000)
    await again(world, willing(false))
    expect(intervals(world)).toEqual([6, 1])
    await expect(Promise.all([promise, old])).resolves.toHaveLength(2)
  })

  it('the properties of the caller are left as they are', async () => {
    const world = await steady(slow)
    await away(world, 0)
    const properties = Object.freeze({ messageExpiryInterval: 5000 })
    const options = Object.freeze({ qos: 1, properties } as const)
    quiet(world.client.publish('t', 'a', options))
    world.answer = willing(true)
    await world.clock.advance(1_000_000)
    expect(intervals(world)).toEqual([4000])
    expect(properties).toEqual({ messageExpiryInterval: 5000 })
  })
})

describe('`ttl`', () => {
  it('ends what waits for a link, for the client and per publish', async () => {
    const world = await steady({ ...slow, outbound: { ttl: 10_000 } })
    await away(world, 0)
    const usual = failure(world.client.publish('t', 'usual', { qos: 1 }))
    const short = failure(world.client.publish('t', 'short', { qos: 2, ttl: 1000 }))
    const long = quiet(world.client.publish('t', 'long', { qos: 1, ttl: 2_000_000 }))
    await world.clock.advance(1000)
    expect(await short).toMatchObject({ code: 'ERR_EXPIRED', outcome: 'not-sent' })
    expect(world.client.outbound.size).toBe(2)
    await world.clock.advance(9000)
    expect(await usual).toMatchObject({ code: 'ERR_EXPIRED', outcome: 'not-sent' })
    world.answer = willing(true)
    await world.clock.advance(1_000_000)
    await expect(long).resolves.toBeDefined()
    expect(world.peer.all('publish')).toHaveLength(1)
  })

  it('and message expiry: whichever comes first', async () => {
    const world = await steady(slow)
    await away(world, 0)
    const errors = [
      failure(world.client.publish('t', 'a', { qos: 1, ttl: 500, properties: { messageExpiryInterval: 1 } })),
      failure(world.client.publish('t', 'b', { qos: 1, ttl: 5000, properties: { messageExpiryInterval: 1 } })),
    ]
    await world.clock.advance(500)
    expect(world.client.outbound.size).toBe(1)
    await world.clock.advance(500)
    expect(world.client.outbound.size).toBe(0)
    for (const error of errors) expect((await error).code).toBe('ERR_EXPIRED')
  })

  it('does not touch what was sent, on this connection or the next', async () => {
    const world = await steady({ outbound: { ttl: 5 } })
    const [one] = send(world, 1, 'one')
    await world.clock.advance(1000)
    expect(await world.outcome(one as Promise<unknown>)).toEqual({ state: 'pending' })
    await lose(world)
    await comeBack(world, willing(true))
    await expect(one).resolves.toBeDefined()
  })

  it('leaves no timer behind once a message was sent, aborted or cleared', async () => {
    const world = await steady({ outbound: { ttl: 60_000, offline: { qos0: 'queue' } } }, willing(false))
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
