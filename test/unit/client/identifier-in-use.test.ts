/**
 * SUBACK and UNSUBACK 0x91, Packet Identifier in use: servers that have one set of identifiers for both directions answer it while a message of theirs
 * has the same one. The packet goes once more, under an identifier far from the first.
 */
import { describe, expect, it } from 'vitest'
import type { ClientOptions } from '../../../src/client/options/index.js'
import type { Answer } from '../../../src/testing/scripted-peer.js'
import { keeps, send, steady } from './across.js'
import { agreeable, connected, failure, times } from './harness.js'
import { publish, quiet, read, subscribe, unsubscribes } from './incoming.js'
import { deafTo, settled } from './steps.js'
import { ack } from './stub.js'

/** A server with a message of its own under each identifier up to `most`. */
const busyUpTo =
  (most: number): Answer =>
  (packet) => {
    const { type } = packet
    if ((type !== 'subscribe' && type !== 'unsubscribe') || packet.packetId > most)
      return agreeable(packet)
    const asked = type === 'subscribe' ? packet.subscriptions : packet.filters
    return {
      type: type === 'subscribe' ? 'suback' : 'unsuback',
      packetId: packet.packetId,
      reasonCodes: asked.map(() => 0x91),
      properties: {},
    }
  }

const busy = (most: number, options: ClientOptions = {}) => connected(options, busyUpTo(most))
const inUse = (type: 'suback' | 'unsuback', packetId: number) =>
  ({ type, packetId, reasonCodes: [0x91] }) as const

describe('SUBACK 0x91', () => {
  it('one more try, under an identifier that is far from a run of the server’s own', async () => {
    const world = await busy(1000)
    const calls = times(20, (index) => world.client.subscribe(`t/${index}`, { qos: 1 }))
    const granted = (await settled(world, Promise.all(calls))).map(
      (subscription) => subscription.granted[0]?.reasonCode,
    )
    expect(granted).toEqual(Array(20).fill(1))
    expect(new Set(world.peer.all('subscribe').map(({ packetId }) => packetId)).size).toBe(40)
  })

  it.each(['subscribe', 'unsubscribe'] as const)('a second one refuses %s()', async (type) => {
    const world = await busy(65_535)
    const error = await settled(world, failure(world.client[type](['a', 'b'])))
    const code = `ERR_${type.toUpperCase()}_REFUSED`
    expect(error).toMatchObject({ code, reasonCode: 0x91, outcome: 'refused' })
    expect(world.peer.all(type)).toHaveLength(2)
  })

  it('a filter that was left meanwhile is not subscribed to again', async () => {
    const world = await connected({}, deafTo('subscribe'))
    const subscription = world.client.subscription('a')
    await world.settle()
    const call = subscription.unsubscribe()
    await world.send(inUse('suback', world.peer.last('subscribe').packetId))
    const refused = { code: 'ERR_SUBSCRIBE_REFUSED', reasonCode: 0x91 }
    expect(await failure(subscription.ready)).toMatchObject(refused)
    await call
    const types = world.peer.received.map(({ type }) => type)
    expect(types).toEqual(['connect', 'subscribe', 'unsubscribe'])
  })

  it('a first try that goes again does not lower the QoS that a later one asked for', async () => {
    const world = await connected({}, deafTo('subscribe'))
    const calls = [world.client.subscribe('a')]
    await world.settle()
    const { packetId } = world.peer.last('subscribe')
    calls.push(world.client.subscribe('a', { qos: 1 }))
    await world.settle()
    await world.send(inUse('suback', packetId))
    const levels = world.peer.all('subscribe').map(({ subscriptions }) => subscriptions[0]?.qos)
    expect(levels).toEqual([0, 1, 1])
    await world.send(
      ...world.peer
        .all('subscribe')
        .flatMap((packet) => (packet.packetId === packetId ? [] : [agreeable(packet) as never])),
    )
    await Promise.all(calls)
  })

  it('the connection is lost before the second answer: the next one begins again', async () => {
    const options = { clientId: 'c', cleanStart: false, reconnect: { backoff: () => 10 } }
    const world = await connected(options, (packet) =>
      packet.type === 'subscribe' && packet.packetId > 1 ? undefined : busyUpTo(1)(packet),
    )
    const error = failure(world.client.subscribe('a'))
    await world.settle()
    expect(world.peer.all('subscribe')).toHaveLength(2)
    world.answer = busyUpTo(65_535)
    world.peer.cut()
    await world.clock.advance(10)
    expect(world.peer.all('subscribe')).toHaveLength(2)
    expect(await error).toMatchObject({ reasonCode: 0x91 })
  })

  it('what brings back a lost session gets its second try too', async () => {
    const world = await connected({ reconnect: { backoff: () => 10 } }, agreeable)
    const reading = read(await subscribe(world, 'a'))
    world.answer = busyUpTo(1000)
    world.peer.cut()
    await world.clock.advance(10)
    expect(world.seen('error')).toEqual([])
    await world.send(publish('a', 'x'))
    expect(reading).toMatchObject({ texts: ['x'], end: { state: 'running' } })
  })
})

describe('UNSUBACK 0x91', () => {
  it('one more try under another identifier', async () => {
    const world = await busy(1000, { maxFiltersPerSubscribe: 2 })
    const results = await settled(world, world.client.unsubscribe(['a', 'b', 'c']))
    const codes = results.map(({ filter, reasonCode }) => `${filter} ${reasonCode}`)
    expect(codes).toEqual(['a 0', 'b 0', 'c 0'])
    expect(unsubscribes(world)).toEqual(['a b', 'c', 'a b', 'c'])
  })

  it('a filter that was subscribed to again meanwhile is not taken away', async () => {
    const world = await connected({}, deafTo('unsubscribe'))
    const call = failure((await subscribe(world, 'a')).unsubscribe())
    const second = read(await subscribe(world, 'a'))
    await world.send(inUse('unsuback', world.peer.last('unsubscribe').packetId))
    expect(await call).toMatchObject({ reasonCode: 0x91 })
    await world.send(publish('a', 'x'))
    expect([world.peer.all('unsubscribe').length, second.texts]).toEqual([1, ['x']])
  })
})

describe('PUBACK 0x91', () => {
  it('a server that finds every identifier in use does not make us publish for ever, nor uses up the identifiers', async () => {
    let answers = 0
    const world = await steady({ cleanStart: false, clientId: 'c' }, (packet) => {
      if (packet.type !== 'publish' || answers >= 3000) return keeps()(packet)
      answers += 1
      return ack('puback', packet.packetId as number, 0x91)
    })
    const [one] = send(world, 1, 'one')
    const error = { code: 'ERR_PUBLISH_REFUSED', reasonCode: 0x91 }
    expect(await world.outcome(one as Promise<unknown>)).toMatchObject({ state: 'rejected', error })
    expect(answers).toBeLessThan(1000)
  })

  it('ackTimeout is not begun again by every 0x91', async () => {
    const world = await steady({ cleanStart: false, clientId: 'c' }, keeps())
    const publishing = quiet(world.client.publish('t', 'one', { qos: 1, ackTimeout: 1000 }))
    for (let round = 0; round < 4; round++) {
      await world.clock.advance(400)
      await world.send(ack('puback', world.peer.last('publish').packetId as number, 0x91))
    }
    expect((await failure(publishing)).code).toBe('ERR_TIMEOUT')
  })
})
