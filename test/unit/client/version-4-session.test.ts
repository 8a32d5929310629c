/** Sessions of MQTT 3.1.1: Clean Session over several connections, what a clean one loses, repeats, and falling back from 5.0. */
import { describe, expect, it } from 'vitest'
import type { ClientOptions } from '../../../src/client/api/index.js'
import type { Answer } from '../../../src/testing/scripted-peer.js'
import {
  again,
  carried,
  comeBack,
  forgets,
  keeps,
  lasting,
  lose,
  publishFrames,
  send,
  steady,
  willing,
} from './across.js'
import { failure, World } from './harness.js'
import { quiet, subscribe } from './incoming.js'

const four: ClientOptions = { protocolVersion: 4 }
const durable: ClientOptions = { protocolVersion: 4, clientId: 'mine', cleanStart: false }
const connects = (world: World) => world.peers.map((peer) => peer.all('connect')[0])

describe('a clean session', () => {
  it('has Clean Session 1 and its generated identifier on each of five connections, a durable one 0', async () => {
    const world = await steady(four)
    for (let round = 0; round < 4; round++) await again(world, forgets())
    expect(connects(world).map((connect) => connect?.cleanStart)).toEqual(new Array(5).fill(true))
    const kept = await steady(durable)
    for (let round = 0; round < 4; round++) await again(kept, round % 2 === 0 ? keeps() : forgets())
    expect(connects(kept).map((connect) => connect?.cleanStart)).toEqual(new Array(5).fill(false))
    const [id, ...more] = new Set(connects(world).map((connect) => connect?.clientId))
    expect(id).toMatch(/^\w{8,23}$/)
    expect(more).toEqual([])
  })

  it('ends with its connection: what was in flight is settled as failed, and not sent again', async () => {
    const world = await steady(four)
    const errors = ([1, 2] as const).map((qos) => failure(world.client.publish('t', 'x', { qos })))
    await world.settle()
    await lose(world)
    for (const error of errors)
      expect(await error).toMatchObject({ code: 'ERR_SESSION_LOST', outcome: 'unknown' })
    expect(carried(await comeBack(world, forgets()))).toEqual([])
    expect(world.seen('sessionlost')).toHaveLength(1)
  })

  it('but what was never sent is, and QoS 1 where republishing was asked for', async () => {
    const world = await steady({
      ...four,
      outbound: { onSessionLost: 'republish', maxInflight: 1 },
    })
    send(world, 1, 'sent', 'waiting')
    await world.settle()
    const sent = carried(await again(world, willing(false)))
    expect(sent.map((text) => text.replace(/ #\d+/, ''))).toEqual([
      'publish t=sent q1',
      'publish t=waiting q1',
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
    await again(world, keeps())
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
    expect(carried(peer)).toEqual([
      'pubrel #4',
      'pubrel #2',
      'publish t=a q1 #1 dup',
      'publish t=c q2 #3 dup',
    ])
    expect(publishFrames(peer).map(({ rest }) => rest)).toEqual([first[0]?.rest, first[2]?.rest])
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
})

describe('protocolVersion "auto"', () => {
  /** A server that speaks 3.1.1 only; it says so like a 5.0 server, or in its own way. */
  const old =
    (world: World, refusal: 'five' | 'four'): Answer =>
    (packet) => {
      if (packet.type !== 'connect') return willing(false)(packet)
      const accepted = packet.protocolVersion === 4
      if (accepted || refusal === 'five')
        return {
          type: 'connack',
          sessionPresent: false,
          reasonCode: accepted ? 0 : 0x84,
          properties: {},
        }
      world.peer.sendBytes('20 02 00 01')
      return undefined
    }

  function auto(
    refusal: 'five' | 'four',
    options: ClientOptions = { protocolVersion: 'auto' },
  ): World {
    const world: World = new World({ ...lasting, ...options }, {}, 1, (_index, open) => {
      world.version = world.peers.length === 0 ? 5 : 4
      return open()
    })
    world.answer = old(world, refusal)
    return world
  }

  it('what was queued with properties of 5.0 is refused by itself when it turns out to be 3.1.1; the rest goes', async () => {
    const world = auto('five')
    const { client } = world
    const bad = failure(client.publish('t', 'bad', { qos: 1, properties: { contentType: 'x' } }))
    const good = quiet(client.publish('t', 'good', { qos: 1 }))
    const wanting = failure(client.subscription('a', { noLocal: true }).ready)
    await Promise.all([client.connect(), world.settle()])
    expect(await bad).toMatchObject({ code: 'ERR_UNSUPPORTED_OPTION', outcome: 'not-sent' })
    expect(await wanting).toMatchObject({ code: 'ERR_UNSUPPORTED_OPTION' })
    await expect(good).resolves.toBeDefined()
  })
})
