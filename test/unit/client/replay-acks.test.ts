/** Acknowledgements that are doubled, out of order, wrong or missing, over several connections. */
import { describe, expect, it } from 'vitest'
import { again, carried, forgets, keeps, send, steady } from './across.js'
import { failure } from './harness.js'
import { quiet } from './incoming.js'

const ack = (type: 'puback' | 'pubrec' | 'pubcomp', packetId: number, reasonCode = 0) => ({ type, packetId, reasonCode, properties: {} }) as const

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
    await world.send(ack('pubrec', 1), ack('pubrec', 1))
    expect(carried(peer)).toEqual(['pubrel #1', 'pubrel #1', 'pubrel #1'])
    await world.send(ack('pubcomp', 1))
    await expect(one).resolves.toBeDefined()
    // It is nobody's any more: 5.0 says so.
    await world.send(ack('pubrec', 1))
    expect(carried(peer).slice(3)).toEqual(['pubrel #1 0x92'])
  })

  it('SUBACK and UNSUBACK: ignored', async () => {
    const world = await steady({ stats: true })
    const subscribing = quiet(world.client.subscribe('a'))
    await world.settle()
    const suback = { type: 'suback', packetId: 1, reasonCodes: [0], properties: {} } as const
    await world.send(suback, suback, { type: 'unsuback', packetId: 1, reasonCodes: [0], properties: {} })
    await expect(subscribing).resolves.toBeDefined()
    expect([world.client.state, world.client.stats().unsolicitedAcks]).toEqual(['connected', 2])
  })

  it('CONNACK on a resumed connection: close(0x82), and what was replayed is replayed again', async () => {
    const world = await steady()
    send(world, 1, 'one')
    await world.settle()
    const peer = await again(world)
    peer.send({ type: 'connack', sessionPresent: true, reasonCode: 0, properties: {} })
    await world.settle()
    expect(peer.last('disconnect').reasonCode).toBe(0x82)
    await world.clock.advance(10)
    expect(carried(world.peer)).toEqual(['publish t=one q1 #1 dup'])
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
    await expect(calls[0]).resolves.toMatchObject({ packetId: 1, reasonCode: 0 })
    await expect(calls[1]).resolves.toMatchObject({ packetId: 2, reasonCode: 0x10 })
    expect(await refused).toMatchObject({ reasonCode: 0x87, outcome: 'refused' })
    await expect(calls[3]).resolves.toMatchObject({ packetId: 4, reasonCode: 0x10 })
  })

  it('PUBREL follows the order of PUBREC, on this connection and the next [MQTT-4.6.0-4]', async () => {
    const world = await steady()
    send(world, 2, 'a', 'b', 'c')
    await world.send(ack('pubrec', 3), ack('pubrec', 1), ack('pubrec', 2))
    expect(carried(world.peer).slice(3)).toEqual(['pubrel #3', 'pubrel #1', 'pubrel #2'])
    expect(carried(await again(world))).toEqual(['pubrel #3', 'pubrel #1', 'pubrel #2'])
  })
})

describe('wrong', () => {
  it.each([
    ['PUBACK for QoS 2', 2, ack('puback', 1)],
    ['PUBREC for QoS 1', 1, ack('pubrec', 1)],
    ['PUBCOMP for QoS 1', 1, ack('pubcomp', 1)],
    ['PUBCOMP before PUBREC', 2, ack('pubcomp', 1)],
  ] as const)('%s after the replay: close(0x82); the message is still ours, and goes out again', async (_name, qos, packet) => {
    const world = await steady()
    const [one] = send(world, qos, 'one')
    await world.settle()
    const peer = await again(world)
    await world.send(packet)
    expect(peer.last('disconnect').reasonCode).toBe(0x82)
    await world.clock.advance(10)
    expect(carried(world.peer)).toEqual([`publish t=one q${qos} #1 dup`])
    expect(await world.outcome(one as Promise<unknown>)).toEqual({ state: 'pending' })
  })

  it('an acknowledgement of any kind for what has not left on this connection is ignored', async () => {
    const world = await steady({}, forgets({ receiveMaximum: 3 }))
    send(world, 1, 'a')
    send(world, 2, 'b', 'c')
    await world.send(ack('pubrec', 3))
    const peer = await again(world, keeps({ receiveMaximum: 1 }))
    expect(carried(peer)).toEqual(['pubrel #3'])
    for (const type of ['puback', 'pubrec', 'pubcomp'] as const) await world.send(ack(type, 1), ack(type, 2))
    expect(world.client.state).toBe('connected')
    await world.send(ack('pubcomp', 3))
    expect(carried(peer).slice(1)).toEqual(['publish t=a q1 #1 dup'])
  })
})

describe('missing', () => {
  it('no repeat while connected; `ackTimeout` gives unknown; DUP after the next connection', async () => {
    const world = await steady({ outbound: { ackTimeout: 5000 } })
    const one = failure(world.client.publish('t', 'one', { qos: 1 }))
    const two = failure(world.client.publish('t', 'two', { qos: 2 }))
    await world.clock.advance(5000)
    expect([(await one).code, (await two).code]).toEqual(['ERR_TIMEOUT', 'ERR_TIMEOUT'])
    await world.clock.advance(600_000)
    expect(world.peer.all('publish')).toHaveLength(2)
    expect(carried(await again(world))).toEqual(['publish t=one q1 #1 dup', 'publish t=two q2 #2 dup'])
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
