/** Acknowledgements that are doubled, out of order, wrong or missing, over several connections. */
import { describe, expect, it } from 'vitest'
import type { MemoryOptions } from '../../../src/transport/memory.js'
import { again, carried, forgets, keeps, lasting, send, steady, willing } from './across.js'
import { connected, failure } from './harness.js'
import { publish, quiet, read, subscribe } from './incoming.js'
import { ack } from './stub.js'

describe('twice', () => {
  it('PUBACK and PUBCOMP: the second is ignored and counted, also when the identifier was used again meanwhile', async () => {
    const world = await steady({ stats: true })
    const [one] = send(world, 1, 'one')
    await world.send(ack('puback', 1), ack('puback', 1))
    await expect(one).resolves.toMatchObject({ packetId: 1 })
    const [two] = send(world, 2, 'two')
    await world.send(ack('pubrec', 2), ack('pubcomp', 2), ack('pubcomp', 2))
    await expect(two).resolves.toMatchObject({ packetId: 2 })
    expect(world.client.stats().unsolicitedAcks).toBe(2)
    expect(world.client.state).toBe('connected')
    expect(carried(await again(world))).toEqual([])
  })

  it('PUBREC: PUBREL each time, PUBLISH never, also with the drop in between', async () => {
    const world = await steady()
    const [one] = send(world, 2, 'one')
    await world.send(ack('pubrec', 1), ack('pubrec', 1))
    expect(carried(world.peer)).toEqual(['publish t=one q2 #1', 'pubrel #1', 'pubrel #1'])
    const peer = await again(world)
    await world.send(ack('pubrec', 1), ack('pubrec', 1), ack('pubcomp', 1))
    await expect(one).resolves.toBeDefined()
    // It is nobody's any more: 5.0 says so.
    await world.send(ack('pubrec', 1))
    expect(carried(peer)).toEqual(['pubrel #1', 'pubrel #1', 'pubrel #1', 'pubrel #1 0x92'])
  })

  it('SUBACK and UNSUBACK: ignored', async () => {
    const world = await steady({ stats: true })
    const subscribing = quiet(world.client.subscribe('a'))
    await world.settle()
    const suback = { type: 'suback', packetId: 1, reasonCodes: [0], properties: {} } as const
    await world.send(suback, suback, { ...suback, type: 'unsuback' })
    await expect(subscribing).resolves.toBeDefined()
    expect([world.client.state, world.client.stats().unsolicitedAcks]).toEqual(['connected', 2])
  })
})

describe('out of order', () => {
  it('each call gets its own result, before and after the drop', async () => {
    const world = await steady()
    const calls = send(world, 1, 'a', 'b', 'c', 'd')
    const refused = failure(calls[2] as Promise<unknown>)
    await world.send(ack('puback', 4, 0x10))
    await again(world)
    await world.send(ack('puback', 3, 0x87), ack('puback', 1))
    await world.send(ack('puback', 2, 0x10))
    for (const [index, reasonCode] of [0, 0x10, undefined, 0x10].entries())
      if (reasonCode !== undefined)
        await expect(calls[index]).resolves.toMatchObject({ packetId: index + 1, reasonCode })
    expect(await refused).toMatchObject({ reasonCode: 0x87, outcome: 'refused' })
  })

  it('PUBREL follows the order of PUBREC, on this connection and the next [MQTT-4.6.0-4]', async () => {
    const world = await steady()
    send(world, 2, 'a', 'b', 'c')
    await world.send(ack('pubrec', 3), ack('pubrec', 1), ack('pubrec', 2))
    const order = ['pubrel #3', 'pubrel #1', 'pubrel #2']
    expect(carried(world.peer).slice(3)).toEqual(order)
    expect(carried(await again(world))).toEqual(order)
  })
})

describe('wrong', () => {
  const connack = { type: 'connack', sessionPresent: true, reasonCode: 0, properties: {} } as const
  it.each([
    ['PUBACK for QoS 2', 2, ack('puback', 1)],
    ['PUBREC for QoS 1', 1, ack('pubrec', 1)],
    ['PUBCOMP for QoS 1', 1, ack('pubcomp', 1)],
    ['PUBCOMP before PUBREC', 2, ack('pubcomp', 1)],
    ['a second CONNACK', 1, connack],
  ] as const)(
    '%s after the replay: close(0x82); the message is still ours, and goes out again',
    async (_name, qos, packet) => {
      const world = await steady()
      const [one] = send(world, qos, 'one')
      await world.settle()
      const peer = await again(world)
      await world.send(packet)
      expect(peer.last('disconnect').reasonCode).toBe(0x82)
      await world.clock.advance(10)
      expect(carried(world.peer)).toEqual([`publish t=one q${qos} #1 dup`])
      expect(await world.outcome(one as Promise<unknown>)).toEqual({ state: 'pending' })
    },
  )

  it('an acknowledgement of any kind for what has not left on this connection is ignored', async () => {
    const world = await steady({}, forgets({ receiveMaximum: 3 }))
    send(world, 1, 'a')
    send(world, 2, 'b', 'c')
    await world.send(ack('pubrec', 3))
    const peer = await again(world, keeps({ receiveMaximum: 1 }))
    expect(carried(peer)).toEqual(['pubrel #3'])
    for (const type of ['puback', 'pubrec', 'pubcomp'] as const)
      await world.send(ack(type, 1), ack(type, 2))
    expect(world.client.state).toBe('connected')
    await world.send(ack('pubcomp', 3))
    expect(carried(peer).slice(1)).toEqual(['publish t=a q1 #1 dup'])
  })
})

describe('missing', () => {
  it('no repeat while connected; `ackTimeout` gives unknown; DUP after the next connection', async () => {
    const world = await steady({ outbound: { ackTimeout: 5000 } })
    const calls = ([1, 2] as const).map((qos) => failure(world.client.publish('t', 'x', { qos })))
    await world.clock.advance(5000)
    const error = { code: 'ERR_TIMEOUT', outcome: 'unknown' }
    expect(await Promise.all(calls)).toMatchObject([error, error])
    await world.clock.advance(600_000)
    expect(world.peer.all('publish')).toHaveLength(2)
    expect(carried(await again(world))).toEqual(['publish t=x q1 #1 dup', 'publish t=x q2 #2 dup'])
  })

  it('the time of `ackTimeout` runs on over a drop: it is about the acknowledgement, not about the link', async () => {
    const world = await steady({ outbound: { ackTimeout: 5000 } })
    const one = failure(world.client.publish('t', 'one', { qos: 1 }))
    await world.clock.advance(3000)
    await again(world)
    await world.clock.advance(1990)
    expect(await one).toMatchObject({ code: 'ERR_TIMEOUT', outcome: 'unknown' })
  })
})

/** A session over four connections; gives everything that either side saw. */
async function story(memory: MemoryOptions): Promise<unknown> {
  const options = { ...lasting, outbound: { onSessionLost: 'republish' } } as const
  const world = await connected(options, willing(false), memory)
  const reading = read(await subscribe(world, ['in', 'more'], { qos: 2 }))
  world.answer = () => undefined
  const calls = [...send(world, 1, 'a', 'b'), ...send(world, 2, 'c', 'd')]
  await world.send(
    publish('in', 'one', 1),
    publish('in', 'two', 2, { qos: 2 }),
    publish('more', 'three'),
  )
  await world.send(ack('pubrec', calls.length + 1))
  await again(world, keeps())
  await world.send(
    publish('in', 'two', 2, { qos: 2, dup: true }),
    publish('in', 'four', 3, { qos: 2 }),
  )
  await again(world, willing(false))
  await world.send(publish('in', 'five', 4))
  await again(world, willing(true))
  const results = await Promise.all(calls.map((call) => world.outcome(call)))
  return {
    bytes: world.peers.map((peer) => peer.bytes),
    packets: world.peers.map(carried),
    events: world.events.map(({ type }) => type),
    texts: reading.texts,
    results: results.map(({ state }) => state),
  }
}

it('the size of the pieces makes no difference: byte by byte, in threes, in sevens, all at once, into a buffer or as chunks', async () => {
  const whole = await story({})
  for (const split of [1, 2, 3, 7, 64]) {
    for (const delivery of ['chunk', 'buffer'] as const)
      expect(await story({ split, delivery }), `${split} ${delivery}`).toEqual(whole)
  }
  expect(whole).toMatchObject({ results: ['fulfilled', 'fulfilled', 'fulfilled', 'fulfilled'] })
})
