/** A message at which the server ends the connection each time, and what must never be taken for one. */
import { describe, expect, it } from 'vitest'
import type { ClientOptions, OutboundOptions } from '../../../src/client/api/index.js'
import { constant } from '../../../src/client/parsing/backoff.js'
import type { ClientPacket } from '../../../src/wire/packets.js'
import { agreeable, connected, failure, type World } from './harness.js'
import { publish, quiet } from './incoming.js'

const pause = 10
const text = (packet: ClientPacket): string => (packet.type === 'publish' ? new TextDecoder().decode(packet.payload) : '')

/** A server that closes without a word at messages that say 'poison', at 'poison once' the first time, and answers everything else. */
async function deadly(outbound: OutboundOptions = {}, sessionPresent = true, options: ClientOptions = {}): Promise<World> {
  let first = true
  let dead = false
  let tries = 0
  const world: World = await connected({ keepAlive: false, reconnect: { backoff: constant(pause) }, outbound, ...options }, (packet) => {
    if (packet.type === 'connect') {
      dead = false
      const present = sessionPresent && !first
      first = false
      return { type: 'connack', sessionPresent: present, reasonCode: 0, properties: {} }
    }
    if (dead) return undefined
    if (!text(packet).startsWith('poison') || (text(packet) === 'poison once' && ++tries > 1)) return agreeable(packet)
    const { peer } = world
    dead = true
    // After a millisecond: what it has answered arrives.
    if (text(packet) === 'poison at once') peer.cut()
    else world.clock.setTimer(() => peer.cut(), 1)
    return undefined
  })
  // Something but CONNACK is heard before the message.
  await world.send({ type: 'pingresp' })
  return world
}

const publishes = (world: World): number => world.peers.filter((peer) => peer.received.some((packet) => text(packet).startsWith('poison'))).length

describe('a publish at which the server closes without DISCONNECT', () => {
  it.each([
    ['QoS 1', 1, true],
    ['QoS 2', 2, true],
    ['QoS 1, in a session that the server loses each time', 1, false],
  ] as const)('%s: rejects with ERR_POISONED after 5 connections, and what waits behind it goes on', async (_name, qos, present) => {
    const world = await deadly({}, present)
    const poison = failure(world.client.publish('t', 'poison', { qos }))
    const behind = [1, 2, 3].map((index) => world.client.publish('t', `fine ${index}`, { qos: 1 }))
    await world.clock.advance(5000)
    expect(await poison).toMatchObject({ code: 'ERR_POISONED', outcome: 'unknown', fault: 'remote', cause: { code: 'ERR_CONNECTION_LOST' } })
    await expect(Promise.all(behind)).resolves.toHaveLength(3)
    expect(publishes(world)).toBe(5)
    expect(world.client.state).toBe('connected')
    expect(world.seen('drop')).toMatchObject([{ direction: 'out', topic: 't', error: { code: 'ERR_POISONED' } }])
  })

  it('from the third connection on it is sent alone, after a PINGREQ was answered', async () => {
    const world = await deadly()
    quiet(world.client.publish('t', 'poison', { qos: 1 }))
    for (let index = 0; index < 4; index++) world.client.publish('t', 'fine', { qos: 1 })
    await world.clock.advance(5000)
    const trials = world.peers.slice(2, 5).map((peer) => peer.received.map((packet) => text(packet) || packet.type))
    expect(world.peers[5]?.all('publish')).toHaveLength(4)
    expect(trials).toEqual(Array(3).fill(['connect', 'pingreq', 'poison']))
  })

  it('while it is held for the answer to that PINGREQ, nothing new overtakes it [MQTT-4.6.0-1]', async () => {
    const world = await deadly()
    world.client.on('packet', ({ direction, packet }) => {
      if (direction === 'out' && packet.type === 'pingreq') quiet(world.client.publish('t', 'new', { qos: 1 }))
    })
    quiet(world.client.publish('t', 'poison', { qos: 1 }))
    await world.clock.advance(5000)
    const trials = world.peers.slice(2, 5).map((peer) => peer.received.map((packet) => text(packet) || packet.type))
    expect(trials).toEqual(Array(3).fill(['connect', 'pingreq', 'poison']))
    expect(world.peers[5]?.all('publish').map(text)).toEqual(Array(3).fill('new'))
  })

  it('also where the server is so fast that nothing of what it answered arrives: after some more connections', async () => {
    const world = await deadly()
    const poison = failure(world.client.publish('t', 'poison at once', { qos: 1 }))
    const behind = world.client.publish('t', 'fine', { qos: 1 })
    await world.clock.advance(5000)
    expect(await poison).toMatchObject({ code: 'ERR_POISONED' })
    await expect(behind).resolves.toMatchObject({ reasonCode: 0 })
    expect(publishes(world)).toBe(8)
  })

  it('two of them in a row: each is given up, and nothing else', async () => {
    const world = await deadly()
    const before = world.client.publish('t', 'fine', { qos: 1 })
    const poisons = ['poison 1', 'poison 2'].map((payload) => failure(world.client.publish('t', payload, { qos: 1 })))
    const after = world.client.publish('t', 'fine', { qos: 2 })
    await world.clock.advance(20_000)
    for (const poison of poisons) expect(await poison).toMatchObject({ code: 'ERR_POISONED' })
    await expect(Promise.all([before, after])).resolves.toHaveLength(2)
  })

  it('those at QoS 2 in front of it, which begin anew with each session that is lost, come to their end one after the other', async () => {
    const world = await deadly({ onSessionLost: 'republish' }, false)
    const before = [1, 2, 3].map((index) => world.client.publish('t', `fine ${index}`, { qos: 2 }))
    const poison = failure(world.client.publish('t', 'poison at once', { qos: 2 }))
    await world.clock.advance(30_000)
    expect(await poison).toMatchObject({ code: 'ERR_POISONED' })
    await expect(Promise.all(before)).resolves.toHaveLength(3)
    // Three connections each, and eight for the last: not three more for each answer that a lost session takes back.
    expect(publishes(world)).toBeLessThan(20)
  })

  it('one in front of it that the server had no time to answer is not blamed', async () => {
    let poisoned = 0
    const world: World = await connected({ keepAlive: false, reconnect: { backoff: constant(pause) } }, (packet) => {
      if (packet.type === 'connect') return { type: 'connack', sessionPresent: poisoned > 0, reasonCode: 0, properties: {} }
      // Answers leave late: a message behind that ends the connection takes them along.
      if (text(packet) === 'innocent')
        return { ...(agreeable(packet) as { type: 'puback'; packetId: number; reasonCode: number; properties: object }) }
      if (text(packet) !== 'poison') return agreeable(packet)
      poisoned += 1
      const { peer } = world
      world.clock.setTimer(() => peer.cut(), 1)
      return undefined
    })
    const all = [world.client.publish('t', 'innocent', { qos: 1 }), world.client.publish('t', 'poison', { qos: 1 })]
    const told = failure(all[1] as Promise<unknown>)
    await world.clock.advance(5000)
    expect(await told).toMatchObject({ code: 'ERR_POISONED' })
    await expect(all[0]).resolves.toMatchObject({ reasonCode: 0 })
  })

  it.each([1, 2, 18, 48])('a link that breaks at random, often in the middle of an answer: nothing is given up, seed %i', async (seed) => {
    let state = seed
    let broken = false
    const unlucky = (): boolean => {
      state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0
      return state / 2 ** 32 < 0.3
    }
    const world: World = await connected({ keepAlive: false, reconnect: { backoff: constant(pause) } }, (packet) => {
      if (packet.type === 'connect') {
        broken = false
        return { type: 'connack', sessionPresent: state !== seed, reasonCode: 0, properties: {} }
      }
      if (broken) return undefined
      if (packet.type !== 'publish' || !unlucky()) return agreeable(packet)
      broken = true
      const { peer } = world
      world.clock.setTimer(() => peer.cut(), 1)
      return undefined
    })
    await world.send({ type: 'pingresp' })
    const all = Array.from({ length: 1000 }, (_, index) => world.client.publish('t', `${index}`, { qos: 1 }))
    const outcomes = Promise.allSettled(all)
    await world.clock.advance(3_600_000)
    expect((await outcomes).filter(({ status }) => status === 'rejected')).toEqual([])
  })

  it.each([
    [3, 3],
    [7, 7],
  ])('poisonAfter: %i', async (poisonAfter, connections) => {
    const world = await deadly({ poisonAfter })
    const poison = failure(world.client.publish('t', 'poison', { qos: 1 }))
    await world.clock.advance(60_000)
    expect(await poison).toMatchObject({ code: 'ERR_POISONED' })
    expect(publishes(world)).toBe(connections)
  })

  it.each([
    ['asks for one more', 0, 6],
    ['asks for none once a connection lasted', 120_000, 5],
  ])('one before that was answered in the end %s', async (_name, lasts, connections) => {
    const world = await deadly()
    await Promise.all([world.client.publish('t', 'poison once', { qos: 1 }), world.clock.advance(1000)])
    await world.clock.advance(lasts)
    world.peer.cut()
    await world.clock.advance(1000)
    await world.send({ type: 'pingresp' })
    const before = publishes(world)
    const poison = failure(world.client.publish('t', 'poison', { qos: 1 }))
    await world.clock.advance(60_000)
    expect(await poison).toMatchObject({ code: 'ERR_POISONED' })
    expect(publishes(world) - before).toBe(connections)
  })

  it('where the server answers no PINGREQ either, it is sent again and again, and the log says so once', async () => {
    const log: string[] = []
    const warn = (text: string): number => log.push(text)
    let met = 0
    const world: World = await connected({ keepAlive: false, reconnect: { backoff: constant(pause) }, logger: { warn } }, (packet) => {
      if (packet.type === 'connect') return { type: 'connack', sessionPresent: met++ > 0, reasonCode: 0, properties: {} }
      const { peer } = world
      if (packet.type === 'publish') world.clock.setTimer(() => peer.cut(), 1)
      return undefined
    })
    const poison = quiet(world.client.publish('t', 'poison', { qos: 1 }))
    await world.clock.advance(60_000)
    expect(await world.outcome(poison)).toEqual({ state: 'pending' })
    expect(world.peers.length).toBeGreaterThan(20)
    expect(log.filter((text) => text.includes('"t"'))).toEqual([expect.stringMatching(/PINGREQ.*outbound\.ackTimeout/)])
  })

  it('with a PINGREQ of keep-alive right behind it, as their times are the same: the end counts', async () => {
    const world = await deadly({ poisonAfter: 20 }, true, { keepAlive: 1 })
    const poison = failure(world.client.publish('t', 'poison', { qos: 1 }))
    await world.clock.advance(600_000)
    expect(await world.outcome(poison)).toMatchObject({ value: { code: 'ERR_POISONED' } })
    expect(
      world.peers
        .at(-2)
        ?.received.slice(-2)
        .map(({ type }) => type),
    ).toEqual(['publish', 'pingreq'])
  })

  it('while messages on a slow line come before the answer to PINGREQ, it is waited for', async () => {
    let late = 0
    const world = await connected({ keepAlive: false, reconnect: { backoff: constant(pause) } })
    world.answer = (packet) => {
      const { peer, clock } = world
      if (packet.type === 'connect') {
        late = clock.now() + 15_000
        for (let at = 100; at < 15_000; at += 100) clock.setTimer(() => peer.send(publish('big', 'part')), at)
        return { type: 'connack', sessionPresent: true, reasonCode: 0, properties: {} }
      }
      if (packet.type === 'publish') clock.setTimer(() => peer.cut(), 1)
      if (packet.type === 'pingreq') clock.setTimer(() => peer.send({ type: 'pingresp' }), Math.max(0, late - clock.now()))
      return undefined
    }
    const poison = failure(world.client.publish('t', 'poison', { qos: 1 }))
    await world.clock.advance(900_000)
    expect(await world.outcome(poison)).toMatchObject({ value: { code: 'ERR_POISONED' } })
  })

  it('poisonAfter: Infinity sends it for ever [MQTT-4.4.0-1]', async () => {
    const world = await deadly({ poisonAfter: Number.POSITIVE_INFINITY })
    const poison = quiet(world.client.publish('t', 'poison', { qos: 1 }))
    await world.clock.advance(5000)
    expect(await world.outcome(poison)).toEqual({ state: 'pending' })
    expect(publishes(world)).toBeGreaterThan(20)
  })

  it('nothing follows it for five seconds at most: `post` takes nothing meanwhile, QoS 0 goes on then', async () => {
    const world = await deadly()
    quiet(world.client.publish('t', 'poison', { qos: 1 }))
    await world.clock.advance(2 * pause)
    // The server goes on and answers nothing now.
    world.answer = (packet) =>
      packet.type === 'connect'
        ? { type: 'connack', sessionPresent: true, reasonCode: 0, properties: {} }
        : packet.type === 'pingreq'
          ? { type: 'pingresp' }
          : undefined
    await world.clock.advance(1000)
    expect(world.peer.all('publish')).toHaveLength(1)
    expect(world.client.post('t', 'a')).toBe(false)
    const late = world.client.publish('t', 'b')
    await world.clock.advance(5000)
    await late
    expect(world.client.post('t', 'c')).toBe(true)
  })
})

describe('is no poisoned publish', () => {
  it.each([
    [true, 200],
    [true, 0],
    [false, 200],
  ])('what a server carries that dies after each CONNACK, 50 times (answers PINGREQ: %s, lives %i ms)', async (pings, life) => {
    let healthy = true
    const world = await deadlyLink(() => healthy, pings, life)
    healthy = false
    world.peer.cut()
    const calls = [1, 2, 1].map((qos, index) => world.client.publish('t', `${index}`, { qos: qos as 1 | 2 }))
    while (world.peers.length < 52) await world.clock.advance(10)
    expect(world.seen('drop')).toEqual([])
    healthy = true
    await world.clock.advance(70_000)
    await expect(Promise.all(calls)).resolves.toHaveLength(3)
  })

  it('a loop over writable does not run empty while nothing may follow the message', async () => {
    const world = await deadly()
    quiet(world.client.publish('t', 'poison', { qos: 1 }))
    let turns = 0
    let left = 200
    const loop = async (): Promise<void> => {
      while (left > 0) {
        turns += 1
        if (world.client.post('t', 'data')) left -= 1
        else await world.client.writable
        // As a program does that posts what it measures.
        await new Promise<void>((resolve) => world.clock.setTimer(resolve, left % 10 === 0 ? 1 : 0))
      }
    }
    quiet(loop())
    await world.clock.advance(5000)
    expect(left).toBe(0)
    expect(turns).toBeLessThan(400)
  })

  async function deadlyLink(healthy: () => boolean, pings: boolean, life: number): Promise<World> {
    let first = true
    const world: World = await connected({ keepAlive: false, reconnect: { backoff: constant(pause) } }, (packet) => {
      if (packet.type === 'connect') {
        const present = !first
        first = false
        if (!healthy()) {
          const { peer } = world
          world.clock.setTimer(() => peer.cut(), life)
        }
        return { type: 'connack', sessionPresent: present, reasonCode: 0, properties: {} }
      }
      return healthy() || (pings && packet.type === 'pingreq') ? agreeable(packet) : undefined
    })
    return world
  }
})
