/** Sessions of MQTT 3.1.1: Clean Session over several connections, what a clean one loses, repeats, and falling back from 5.0. */
import { describe, expect, it } from 'vitest'
import type { ClientOptions } from '../../../src/client/api/index.js'
import type { Answer } from '../../../src/testing/scripted-peer.js'
import { again, carried, comeBack, forgets, keeps, lasting, lose, publishFrames, send, steady, willing } from './across.js'
import { failure, World } from './harness.js'
import { acks, publish, quiet, subscribe, taken } from './incoming.js'

const four: ClientOptions = { protocolVersion: 4 }
const durable: ClientOptions = { protocolVersion: 4, clientId: 'mine', cleanStart: false }
const flags = (world: World) => world.peers.map((peer) => peer.all('connect')[0]?.cleanStart)

describe('Clean Session over five connections', () => {
  it('true: always 1', async () => {
    const world = await steady(four)
    for (let round = 0; round < 4; round++) await again(world, forgets())
    expect(flags(world)).toEqual([true, true, true, true, true])
  })

  it('false: always 0', async () => {
    const world = await steady(durable)
    for (let round = 0; round < 4; round++) await again(world, round % 2 === 0 ? keeps() : forgets())
    expect(flags(world)).toEqual([false, false, false, false, false])
  })

  it('the generated identifier is the same on all of them', async () => {
    const world = await steady(four)
    await again(world, forgets())
    const ids = world.peers.map((peer) => peer.all('connect')[0]?.clientId)
    expect(ids[0]).toMatch(/^\w{8,23}$/)
    expect(ids[1]).toBe(ids[0])
  })
})

describe('a clean session', () => {
  it('ends with its connection: what was in flight is settled as failed, and not sent again', async () => {
    const world = await steady(four)
    const errors = ([1, 2] as const).map((qos) => failure(world.client.publish('t', 'x', { qos })))
    await world.settle()
    await lose(world)
    for (const error of errors) expect(await error).toMatchObject({ code: 'ERR_SESSION_LOST', outcome: 'unknown' })
    expect(carried(await comeBack(world, forgets()))).toEqual([])
    expect(world.seen('sessionlost')).toHaveLength(1)
  })

  it('but what was never sent is, and QoS 1 where republishing was asked for', async () => {
    const world = await steady({ ...four, outbound: { onSessionLost: 'republish', maxInflight: 1 } })
    send(world, 1, 'sent', 'waiting')
    await world.settle()
    const peer = await again(world, willing(false))
    expect(peer.all('publish').map(({ payload, dup }) => [new TextDecoder().decode(payload), dup])).toEqual([
      ['sent', false],
      ['waiting', false],
    ])
  })

  it('subscriptions are made again on each connection', async () => {
    const world = await steady(four, willing(false))
    for (const filter of ['a', 'b']) await subscribe(world, filter, { qos: 1 })
    await again(world, willing(false))
    expect(carried(world.peer)).toEqual([expect.stringMatching(/^subscribe a,b #\d+$/)])
  })

  it('Session Present 1 is a protocol error on every connection', async () => {
    const world = await steady(four)
    await lose(world)
    world.answer = keeps()
    await world.clock.advance(10)
    expect(world.seen('connecterror')).toMatchObject([{ error: { code: 'ERR_PROTOCOL_ERROR' } }])
  })
})

describe('a durable session', () => {
  it('goes on: PUBLISH with DUP, byte for byte, PUBREL in the order of PUBREC', async () => {
    const world = await steady(durable)
    send(world, 1, 'a')
    send(world, 2, 'b', 'c', 'd')
    await world.sendBytes('50 02 00 04', '50 02 00 02')
    const first = publishFrames(world.peer)
    const peer = await again(world)
    expect(carried(peer)).toEqual(['pubrel #4', 'pubrel #2', 'publish t=a q1 #1 dup', 'publish t=c q2 #3 dup'])
    expect(publishFrames(peer).map(({ rest }) => rest)).toEqual([first[0]?.rest, first[2]?.rest])
  })

  it('lost: QoS 1 is published anew, QoS 2 rejects, the event accounts for both', async () => {
    const world = await steady(durable)
    send(world, 1, 'one')
    const two = failure(world.client.publish('t', 'two', { qos: 2 }))
    await world.settle()
    const peer = await again(world, willing(false))
    expect(await two).toMatchObject({ code: 'ERR_SESSION_LOST', outcome: 'unknown' })
    expect(peer.all('publish').map(({ dup, qos }) => [dup, qos])).toEqual([[false, 1]])
    expect(world.seen('sessionlost')).toMatchObject([{ cause: 'absent', republished: [{ qos: 1 }], rejected: [{ qos: 2 }] }])
  })

  it('never expires by itself: 3.1.1 has no Session Expiry Interval', async () => {
    const world = await steady(durable)
    send(world, 1, 'one')
    await world.settle()
    world.answer = () => undefined
    await lose(world)
    await world.clock.advance(3_600_000)
    expect(world.seen('sessionlost')).toEqual([])
  })

  it('a message in hand stays in hand; its acknowledgement waits for the repeat', async () => {
    const world = await steady(durable, willing(false))
    const subscription = await subscribe(world, 't', { qos: 1, ack: 'manual' })
    await world.send(publish('t', 'one', 1))
    const message = taken(subscription)
    await lose(world)
    expect(message.ack()).toBe(true)
    await comeBack(world, willing(true))
    expect(acks(world)).toEqual([])
    await world.send(publish('t', 'one', 1, { dup: true }))
    expect(acks(world)).toEqual(['puback 1'])
  })

  it('`disconnect()` leaves it alone', async () => {
    const world = await steady(durable)
    const done = world.client.disconnect({ timeout: 10 })
    await world.settle()
    expect(world.peer.bytes.slice(-2)).toEqual([0xe0, 0])
    await world.clock.advance(5000)
    await done
  })

  it('`resubscribe: "always"` sends plain SUBSCRIBE packets', async () => {
    const world = await steady({ ...durable, resubscribe: 'always' }, willing(false))
    await subscribe(world, 'a', { qos: 1 })
    await again(world, willing(true))
    expect(world.peer.all('subscribe').map(({ subscriptions }) => subscriptions.map(({ filter, qos }) => [filter, qos]))).toEqual([[['a', 1]]])
    expect(world.peer.bytes.slice(-4)).toEqual([0, 1, 0x61, 1])
  })

  it('of an earlier process: identifiers are cleared before QoS 2 uses them, with plain PUBREL', async () => {
    const world = await steady(durable, willing(true))
    const two = quiet(world.client.publish('t', 'two', { qos: 2 }))
    await world.settle()
    await expect(two).resolves.toBeDefined()
    expect(carried(world.peer)[0]).toMatch(/^pubrel #\d+$/)
  })
})

describe('identifiers of an earlier process', () => {
  it('are cleared before QoS 1 uses them, too: 3.1.1 cannot say that one is in use', async () => {
    const world = await steady(durable, willing(true))
    const one = quiet(world.client.publish('t', 'one', { qos: 1 }))
    await world.settle()
    await expect(one).resolves.toBeDefined()
    const [packet] = world.peer.all('publish')
    const cleared = world.peer.all('pubrel').map(({ packetId }) => packetId)
    expect(cleared).toContain(packet?.packetId)
    expect(carried(world.peer).at(-1)).toMatch(/^publish t=one/)
  })
})

describe('protocolVersion "auto"', () => {
  /** A server that speaks 3.1.1 only; it says so like a 5.0 server, or in its own way. */
  const old =
    (refusal: 'five' | 'four'): ((world: World) => Answer) =>
    (world) =>
    (packet) => {
      if (packet.type !== 'connect') return undefined
      if (packet.protocolVersion === 4) return { type: 'connack', sessionPresent: false, reasonCode: 0, properties: {} }
      if (refusal === 'five') return { type: 'connack', sessionPresent: false, reasonCode: 0x84, properties: {} }
      world.peer.sendBytes('20 02 00 01')
      return undefined
    }

  it.each(['five', 'four'] as const)('refused in the manner of %s: the next attempt is 3.1.1, at once, and stays so', async (manner) => {
    const world = new World({ ...lasting, protocolVersion: 'auto' }, {}, 1, (_index, open) => {
      world.version = world.peers.length === 0 ? 5 : 4
      return open()
    })
    world.answer = old(manner)(world)
    const connecting = world.client.connect()
    await world.settle()
    await connecting
    expect(world.peers.map((peer) => peer.all('connect')[0]?.protocolVersion)).toEqual([5, 4])
    expect(world.client.negotiated?.protocolVersion).toBe(4)
    await lose(world)
    await world.clock.advance(10)
    expect(world.peer.last('connect').protocolVersion).toBe(4)
  })

  it('a server that takes 5.0 gets 5.0', async () => {
    const world = await steady({ protocolVersion: 'auto' })
    expect(world.client.negotiated?.protocolVersion).toBe(5)
  })

  it('off by default: the refusal is the end', async () => {
    const world = new World({ ...lasting })
    world.answer = old('four')(world)
    const error = failure(world.client.connect())
    await world.settle()
    expect(await error).toMatchObject({ code: 'ERR_CONNECT_REFUSED', reasonCode: 0x84 })
    expect(world.peers).toHaveLength(1)
  })

  it('what was queued with properties of 5.0 is refused by itself when it turns out to be 3.1.1; the rest goes', async () => {
    const world = new World({ ...lasting, protocolVersion: 'auto' }, {}, 1, (_index, open) => {
      world.version = world.peers.length === 0 ? 5 : 4
      return open()
    })
    const bad = failure(world.client.publish('t', 'bad', { qos: 1, properties: { contentType: 'x' } }))
    const good = quiet(world.client.publish('t', 'good', { qos: 1 }))
    const wanting = failure(world.client.subscription('a', { noLocal: true }).ready)
    world.answer = (packet) => old('five')(world)(packet) ?? willing(false)(packet)
    const connecting = world.client.connect()
    await world.settle()
    await connecting
    expect(await bad).toMatchObject({ code: 'ERR_UNSUPPORTED_OPTION', outcome: 'not-sent' })
    expect(await wanting).toMatchObject({ code: 'ERR_UNSUPPORTED_OPTION' })
    await expect(good).resolves.toBeDefined()
  })
})
