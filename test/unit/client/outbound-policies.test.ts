/** The queue at its bounds while there is no connection, and messages that a server will never take. */
import { describe, expect, it } from 'vitest'
import type { ClientOptions, OutboundOptions } from '../../../src/client/api/index.js'
import { again, carried, comeBack, forgets, keeps, lose, send, short, steady, willing } from './across.js'
import { failure, type World } from './harness.js'
import { quiet } from './incoming.js'

/** Without a connection, and with these bounds. */
async function bounded(outbound: OutboundOptions, options: ClientOptions = {}): Promise<World> {
  const world = await steady({ ...options, outbound }, willing(false))
  await lose(world)
  return world
}

const put = (world: World, ...texts: string[]) => texts.map((text) => quiet(world.client.publish('t', text, { qos: 1 })))
const texts = (world: World) => world.peer.all('publish').map((packet) => new TextDecoder().decode(packet.payload))

describe('the bound by count', () => {
  it('"reject": the new one', async () => {
    const world = await bounded({ maxQueuedMessages: 2, overflow: 'reject' })
    const [, , third] = put(world, 'a', 'b', 'c')
    expect(await failure(third as Promise<unknown>)).toMatchObject({ code: 'ERR_QUEUE_FULL', outcome: 'not-sent' })
    await comeBack(world, willing(true))
    expect(texts(world)).toEqual(['a', 'b'])
  })

  it('"drop-newest": the new one, as dropped', async () => {
    const world = await bounded({ maxQueuedMessages: 2, overflow: 'drop-newest' })
    const [, , third] = put(world, 'a', 'b', 'c')
    expect(await failure(third as Promise<unknown>)).toMatchObject({ code: 'ERR_DROPPED', outcome: 'not-sent' })
    await world.settle()
    expect(world.seen('drop')).toMatchObject([{ direction: 'out', topic: 't', error: { code: 'ERR_DROPPED' } }])
    await comeBack(world, willing(true))
    expect(texts(world)).toEqual(['a', 'b'])
  })

  it('"drop-oldest": the oldest, which rejects; each loser settles, in order', async () => {
    const world = await bounded({ maxQueuedMessages: 2, overflow: 'drop-oldest' })
    const all = put(world, 'a', 'b', 'c', 'd', 'e')
    for (const loser of all.slice(0, 3)) expect(await failure(loser)).toMatchObject({ code: 'ERR_DROPPED', outcome: 'not-sent' })
    await comeBack(world, willing(true))
    expect(texts(world)).toEqual(['d', 'e'])
    await expect(Promise.all(all.slice(3))).resolves.toHaveLength(2)
  })

  it('"wait" (default): as many again wait, then ERR_QUEUE_FULL', async () => {
    const world = await bounded({ maxQueuedMessages: 2 })
    const all = put(world, 'a', 'b', 'c', 'd', 'e')
    expect(await failure(all[4] as Promise<unknown>)).toMatchObject({ code: 'ERR_QUEUE_FULL', outcome: 'not-sent' })
    expect(world.client.outbound.size).toBe(4)
    await comeBack(world, willing(true))
    expect(texts(world)).toEqual(['a', 'b', 'c', 'd'])
    await expect(Promise.all(all.slice(0, 4))).resolves.toHaveLength(4)
  })

  it('one publish may say otherwise', async () => {
    const world = await bounded({ maxQueuedMessages: 2, overflow: 'reject' })
    put(world, 'a', 'b')
    const third = quiet(world.client.publish('t', 'c', { qos: 1, overflow: 'drop-oldest' }))
    expect(await failure(world.client.publish('t', 'd', { qos: 1, overflow: 'drop-newest' }))).toMatchObject({ code: 'ERR_DROPPED' })
    const waits = quiet(world.client.publish('t', 'e', { qos: 1, overflow: 'wait' }))
    expect(await failure(world.client.publish('t', 'f', { qos: 1 }))).toMatchObject({ code: 'ERR_QUEUE_FULL' })
    await comeBack(world, willing(true))
    expect(texts(world)).toEqual(['b', 'c', 'e'])
    await expect(Promise.all([third, waits])).resolves.toHaveLength(2)
  })
})

describe('the bound by bytes', () => {
  it('counts what was sent and is not acknowledged; that is never dropped', async () => {
    const world = await steady({ outbound: { maxQueuedBytes: 5000, overflow: 'drop-oldest' } }, forgets())
    const sent = send(world, 1, 'x'.repeat(3000))
    await world.settle()
    await lose(world)
    const all = [quiet(world.client.publish('t', 'y'.repeat(1000), { qos: 1 })), quiet(world.client.publish('t', 'z'.repeat(1000), { qos: 1 }))]
    expect(await failure(all[0] as Promise<unknown>)).toMatchObject({ code: 'ERR_DROPPED' })
    // It could never fit beside what is in flight.
    expect(await failure(world.client.publish('t', 'w'.repeat(4000), { qos: 1 }))).toMatchObject({ code: 'ERR_DROPPED', outcome: 'not-sent' })
    expect(world.client.outbound.size).toBe(1)
    await comeBack(world, willing(true))
    await expect(Promise.all([...sent, all[1]])).resolves.toHaveLength(2)
  })

  it('holds after a lost session too: what is taken back counts once', async () => {
    const world = await steady({ outbound: { maxQueuedBytes: 10_000, overflow: 'reject' } }, forgets())
    const sent = send(world, 1, 'x'.repeat(4000), 'x'.repeat(4000))
    await world.settle()
    await again(world, willing(false))
    await expect(Promise.all(sent)).resolves.toHaveLength(2)
    // All of it is free again.
    await lose(world)
    const [next] = put(world, 'x'.repeat(9000))
    expect(await world.outcome(next as Promise<unknown>)).toEqual({ state: 'pending' })
    expect(await failure(world.client.publish('t', 'x'.repeat(2000), { qos: 1 }))).toMatchObject({ code: 'ERR_QUEUE_FULL' })
  })

  it('"wait" (default): one that is larger than the limit waits like any other', async () => {
    const world = await bounded({ maxQueuedBytes: 5000 })
    const [large, small] = put(world, 'x'.repeat(50_000), 'y')
    expect(await failure(small as Promise<unknown>)).toMatchObject({ code: 'ERR_QUEUE_FULL' })
    await comeBack(world, willing(true))
    await expect(large).resolves.toMatchObject({ reasonCode: 0 })
  })

  it('100,000 offline publishes of 1 KB hold no more than 1 MiB; each loser rejects with ERR_DROPPED', { timeout: 60_000 }, async () => {
    const world = await bounded({ maxQueuedBytes: 1024 * 1024, maxQueuedMessages: 1e6, overflow: 'drop-oldest', ttl: 10_000 })
    const codes = new Map<string, number>()
    const payload = new Uint8Array(1024)
    let most = 0
    for (let index = 0; index < 100_000; index++) {
      world.client.publish('t', payload, { qos: 1 }).catch(({ code }: { code: string }) => codes.set(code, (codes.get(code) ?? 0) + 1))
      most = Math.max(most, world.client.outbound.size)
    }
    expect(most * 1024).toBeLessThanOrEqual(1024 * 1024)
    const left = world.client.outbound.size
    await Promise.resolve()
    await Promise.resolve()
    expect(codes.get('ERR_DROPPED')).toBe(100_000 - left)
    world.client.destroy()
  })

  it('`writable` waits for a connection offline, after `post` took nothing, also where QoS 0 is queued', async () => {
    const world = await bounded({ offline: { qos0: 'queue' } })
    await world.client.writable
    expect(world.client.post('t', 'x')).toBe(false)
    const writable = world.client.writable
    expect(await world.outcome(writable)).toEqual({ state: 'pending' })
    // What is queued is queued at once all the same.
    const queued = world.client.publish('t', 'y')
    await comeBack(world, willing(true))
    await Promise.all([writable, queued])
    expect(world.client.post('t', 'x')).toBe(true)
  })

  it('a refusal of `post` counts until there is room again, also where nobody waited for it', async () => {
    const world = await bounded({ offline: { qos0: 'queue' } })
    expect(world.client.post('t', 'x')).toBe(false)
    await comeBack(world, willing(true))
    await lose(world)
    expect(await world.outcome(world.client.writable)).toMatchObject({ state: 'fulfilled' })
  })

  it('one that is twice as large as `maxQueuedBytes` lets small ones wait behind it', async () => {
    const world = await steady({ outbound: { maxQueuedBytes: 1000 } }, (packet) => (packet.type === 'publish' ? undefined : willing(false)(packet)))
    world.client.publish('t', new Uint8Array(3000), { qos: 1 }).catch(() => undefined)
    const small = world.client.publish('t', 'x', { qos: 1 })
    expect(await world.outcome(small)).toEqual({ state: 'pending' })
    for (const packetId of [1, 2]) await world.send({ type: 'puback', packetId, reasonCode: 0, properties: {} })
    await expect(small).resolves.toMatchObject({ reasonCode: 0 })
  })

  it('`writable` says when there is room, over a drop', async () => {
    const world = await bounded({ maxQueuedMessages: 1 })
    put(world, 'a')
    const writable = world.client.writable
    expect(await world.outcome(writable)).toEqual({ state: 'pending' })
    await comeBack(world, willing(true))
    expect(await world.outcome(writable)).toMatchObject({ state: 'fulfilled' })
  })
})

describe('a message that makes the server complain', () => {
  const complain = (reasonCode: number) => ({ type: 'disconnect', reasonCode, properties: { reasonString: 'not that one' } }) as const

  it.each([
    [0x93, 5],
    [0x95, 5],
    // These name what is wrong with a packet, and it was the only one without an answer.
    [0x81, 1],
    [0x82, 1],
    [0x90, 1],
    [0x99, 1],
  ])('0x%x: it is given up after %i connections, reported once, and the next ones go on', async (code, connections) => {
    const world = await steady()
    const poison = failure(world.client.publish('t', 'poison', { qos: 1 }))
    await world.settle()
    for (let round = 1; round <= connections; round++) {
      expect(world.peer.all('publish'), `connection ${round}`).toHaveLength(1)
      await world.send(complain(code))
      await comeBack(world)
    }
    expect(await poison).toMatchObject({ code: 'ERR_PUBLISH_REFUSED', reasonCode: code, outcome: 'unknown', reasonString: 'not that one' })
    expect(carried(world.peer)).toEqual([])
    expect(world.seen('drop')).toHaveLength(1)
    const [fine] = send(world, 1, 'fine')
    await world.settle()
    expect(carried(world.peer)).toEqual([expect.stringMatching(/^publish t=fine q1 #\d+$/)])
    await again(world, willing(true))
    await expect(fine).resolves.toBeDefined()
  })

  it.each<[string, (world: World) => unknown, (world: World) => unknown]>([
    ['a publish at QoS 0 before it', (world) => world.client.post('other', 'x'), () => undefined],
    ['a subscription that has its answer', (world) => quiet(world.client.subscribe('f')), () => undefined],
    ['a publish at QoS 1 behind it', () => undefined, (world) => send(world, 1, 'fine')],
  ])('0x81 where %s may be meant: it goes once more, alone and behind an answered PINGREQ', async (_name, before, behind) => {
    const world = await steady({}, willing(false))
    before(world)
    await world.settle()
    world.answer = (packet) => {
      const { clock, peer } = world
      if (packet.type !== 'publish' || !short(packet).includes('t=poison')) return willing(true)(packet)
      clock.setTimer(() => peer.send(complain(0x81)), 1)
      return undefined
    }
    const poison = failure(world.client.publish('t', 'poison', { qos: 1 }))
    behind(world)
    await world.clock.advance(1000)
    expect(await poison).toMatchObject({ code: 'ERR_PUBLISH_REFUSED', reasonCode: 0x81 })
    expect(world.peers).toHaveLength(3)
    expect(carried(world.peers[1] as World['peer'])).toEqual(['pingreq', expect.stringContaining('t=poison')])
    expect(await world.outcome(world.client.drain())).toMatchObject({ state: 'fulfilled' })
  })

  it('0x81 right behind a PUBLISH that is no match for it blames nothing for good: QoS 0 of another topic ends each connection', async () => {
    const world = await steady({}, willing(false))
    world.answer = (packet) => {
      if (packet.type === 'publish' && packet.qos === 0) return complain(0x81)
      // Too slow for what ends the connection.
      return packet.type === 'publish' ? undefined : willing(true)(packet)
    }
    const [fine] = send(world, 1, 'fine')
    for (let round = 0; round < 3; round++) {
      world.client.post('bad', 'x')
      await world.clock.advance(500)
    }
    expect(await world.outcome(fine as Promise<unknown>)).toEqual({ state: 'pending' })
  })

  it('QoS 2 is given up too, and its identifier is not used again in this session', async () => {
    const world = await steady()
    const poison = failure(world.client.publish('t', 'poison', { qos: 2 }))
    await world.settle()
    for (let round = 1; round <= 5; round++) {
      await world.send(complain(0x95))
      await comeBack(world)
    }
    expect(await poison).toMatchObject({ code: 'ERR_PUBLISH_REFUSED', outcome: 'unknown' })
    expect(carried(world.peer)).toEqual([])
  })

  it('is not blamed for reasons that are not its own: server busy, shutting down, cuts', async () => {
    const world = await steady()
    const [one] = send(world, 1, 'one')
    await world.settle()
    for (let round = 0; round < 12; round++) {
      if (round % 2 === 0) await world.send(complain(round % 4 === 0 ? 0x89 : 0x8b))
      else await lose(world)
      await comeBack(world)
    }
    // After two cuts it waits for a sign of life.
    await world.send({ type: 'pingresp' })
    expect(world.peer.all('publish')).toHaveLength(1)
    expect(await world.outcome(one as Promise<unknown>)).toEqual({ state: 'pending' })
  })

  it('only what the complaining connection carried is blamed: what waits behind a small window is not', async () => {
    const world = await steady()
    const poison = failure(world.client.publish('t', 'poison', { qos: 1 }))
    const [good] = send(world, 1, 'good')
    await world.settle()
    // Both were in flight; from now on only the first fits.
    await again(world, keeps({ receiveMaximum: 1 }))
    for (let round = 1; round <= 5; round++) {
      expect(world.peer.all('publish')).toHaveLength(1)
      await world.send(complain(0x95))
      await comeBack(world, keeps({ receiveMaximum: 1 }))
    }
    expect((await poison).reasonCode).toBe(0x95)
    // Now it is the other one's turn, and its first complaint.
    expect(carried(world.peer)).toEqual(['publish t=good q1 #2 dup'])
    await world.send(complain(0x95))
    await comeBack(world, willing(true))
    await expect(good).resolves.toBeDefined()
  })

  it('PUBACK with an error code settles it at once: it is not sent again', async () => {
    const world = await steady()
    const error = failure(world.client.publish('t', 'x', { qos: 1 }))
    await world.send({ type: 'puback', packetId: 1, reasonCode: 0x97, properties: {} })
    expect(await error).toMatchObject({ code: 'ERR_PUBLISH_REFUSED', reasonCode: 0x97, outcome: 'refused' })
    expect(carried(await again(world))).toEqual([])
  })
})

describe('numbers', () => {
  it('of what waits, and of what is in flight, are right after every event', async () => {
    const world = await steady({ stats: true, outbound: { poisonAfter: Number.POSITIVE_INFINITY } }, forgets({ receiveMaximum: 2 }))
    const numbers = () => [world.client.stats().publishesQueued, world.client.stats().publishesInFlight, world.client.outbound.size]
    send(world, 1, 'a', 'b', 'c')
    send(world, 2, 'd')
    expect(numbers()).toEqual([2, 2, 2])
    await lose(world)
    expect(numbers()).toEqual([2, 2, 2])
    send(world, 1, 'e')
    expect(numbers()).toEqual([3, 2, 3])
    await comeBack(world, keeps({ receiveMaximum: 2 }))
    expect(numbers()).toEqual([3, 2, 3])
    await world.send({ type: 'puback', packetId: 1, reasonCode: 0, properties: {} })
    expect(numbers()).toEqual([2, 2, 2])
    await again(world, forgets({ receiveMaximum: 1 }))
    expect(numbers()).toEqual([3, 1, 3])
    world.client.destroy()
    expect(numbers()).toEqual([0, 0, 0])
  })
})
