/** One write per flush, and what happens when the transport takes no more: who waits, who does not, and for how long. */
import { describe, expect, it } from 'vitest'
import { Client } from '../../../src/client/node.js'
import { constant } from '../../../src/client/parsing/backoff.js'
import type { PublishPacket } from '../../../src/wire/packets.js'
import { accepting, connected, failure, World } from './harness.js'
import { ack, type StubWorld, stubbed, watched } from './stub.js'

/** A client whose transport has just said that it wants no more. */
async function blocked(...args: Parameters<typeof stubbed>): Promise<StubWorld> {
  const world = await stubbed(...args)
  world.stub.takes = false
  world.stub.holds = true
  world.client.post('fill', '')
  await world.settle()
  expect(world.stub.writes).toHaveLength(1)
  world.forget()
  return world
}

const pattern = (size: number): Uint8Array => Uint8Array.from({ length: size }, (_, index) => (index * 7 + (index >> 8)) & 0xff)

describe('one write per flush', () => {
  it('a lone publish leaves in the turn of the call', async () => {
    const world = await stubbed()
    world.client.publish('t', 'x', { qos: 1 })
    await Promise.resolve()
    expect(world.stub.writes).toHaveLength(1)
  })

  it('everything of one turn leaves in one write, whatever its kind', async () => {
    const world = await stubbed()
    for (let index = 0; index < 100; index++) world.client.publish('t', `${index}`, { qos: (index % 3) as 0 | 1 | 2 })
    await world.settle()
    expect(world.stub.writes).toHaveLength(1)
    expect(world.stub.payloads).toEqual(Array.from({ length: 100 }, (_, index) => `${index}`))
  })

  it('awaited QoS 0 publishes are not held back', async () => {
    const world = await stubbed()
    for (let index = 0; index < 3; index++) await world.client.publish('t', `${index}`)
    await world.settle()
    expect(world.stub.payloads).toEqual(['0', '1', '2'])
  })

  it('more than 64 KiB of a turn leaves in pieces of about that size', async () => {
    const world = await stubbed()
    for (let index = 0; index < 300; index++) world.client.post('t', new Uint8Array(1000))
    await world.settle()
    expect(world.stub.writes.length).toBeGreaterThanOrEqual(4)
    expect(world.stub.writes.length).toBeLessThanOrEqual(6)
    expect(Math.max(...world.stub.writes.map((bytes) => bytes.length))).toBeLessThan(66_600)
    expect(world.stub.packets).toHaveLength(300)
  })

  it('the answers to one read leave in one write, and the publishes that they let go with them', async () => {
    const world = await stubbed({}, { receiveMaximum: 3 })
    for (let index = 0; index < 6; index++) world.client.publish('t', `${index}`, { qos: 2 })
    await world.settle()
    await world.deliver(ack('pubrec', 1), ack('pubrec', 2), ack('pubrec', 3))
    expect(world.stub.writes).toHaveLength(2)
    await world.deliver(ack('pubcomp', 1), ack('pubcomp', 2), ack('pubcomp', 3))
    expect(world.stub.writes).toHaveLength(3)
    expect(world.stub.payloads).toEqual(['0', '1', '2', '3', '4', '5'])
  })
})

describe('large payloads', () => {
  it.each([0, 1, 2] as const)('QoS %i: 1 MB leaves at once, in slices that are not the memory of the caller, intact', async (qos) => {
    const world = await stubbed()
    const payload = pattern(1_048_576)
    world.client.publish('t', payload, { qos })
    await world.settle()
    expect(world.stub.arrays.some((bytes) => bytes.buffer === payload.buffer)).toBe(false)
    expect(Math.max(...world.stub.arrays.map((bytes) => bytes.length))).toBe(131_072)
    const [packet] = world.stub.packets as PublishPacket[]
    expect(Buffer.compare(packet?.payload as Uint8Array, payload)).toBe(0)
    expect(world.client.outbound.size).toBe(0)
  })

  it('a large QoS 0 payload settles when it was written, not before', async () => {
    const world = await stubbed()
    world.stub.holds = true
    const small = watched(world.client.publish('t', new Uint8Array(32_767)))
    const large = watched(world.client.publish('t', new Uint8Array(32_768)))
    await world.settle()
    expect([small.state, large.state]).toEqual(['fulfilled', 'pending'])
    world.stub.release()
    await world.settle()
    expect(large.value).toMatchObject({ reasonCode: 0, packetId: undefined })
  })

  it('nothing comes between head and payload: acknowledgements of the same turn', async () => {
    const world = await stubbed()
    const subscription = world.client.subscription('s', { qos: 1, ack: 'manual' })
    await world.settle()
    await world.deliver({ type: 'suback', packetId: 1, reasonCodes: [1], properties: {} })
    await world.deliver({ type: 'publish', topic: 's', qos: 1, packetId: 9, payload: Uint8Array.of(1) })
    const message = await subscription.next()
    world.forget()
    expect(message?.ack()).toBe(true)
    world.client.publish('t', pattern(40_000), { qos: 1 })
    await world.settle()
    expect(world.stub.packets.map((packet) => packet.type).sort()).toEqual(['puback', 'publish'])
    expect(
      Buffer.compare(world.stub.packets.find((packet): packet is PublishPacket => packet.type === 'publish')?.payload as Uint8Array, pattern(40_000)),
    ).toBe(0)
  })

  it('nothing comes between head and payload: PUBREL of the read that gave the quota', async () => {
    const world = await stubbed({}, { receiveMaximum: 2 })
    world.client.publish('t', 'a', { qos: 2 })
    world.client.publish('t', 'b', { qos: 1 })
    world.client.publish('t', pattern(40_000), { qos: 1 })
    await world.settle()
    await world.deliver(ack('pubrec', 1), ack('puback', 2))
    expect(world.stub.packets.map((packet) => packet.type).sort()).toEqual(['publish', 'publish', 'publish', 'pubrel'])
  })

  it('every packet is whole when the stream takes one byte at a time', async () => {
    const world = await connected({}, accepting(), { split: 1 })
    world.client.publish('a', 'x', { qos: 2 })
    world.client.publish('b', pattern(33_000), { qos: 1 })
    world.client.subscription('s')
    world.client.publish('c', pattern(33_000), { qos: 1 })
    world.client.publish('d', 'y', { qos: 2 })
    await world.send(ack('pubrec', 1))
    expect(world.peer.all('publish').map((packet) => [packet.topic, packet.payload.length])).toEqual([
      ['a', 1],
      ['b', 33_000],
      ['c', 33_000],
      ['d', 1],
    ])
    expect(world.peer.all('pubrel')).toHaveLength(1)
  })
})

describe('a transport that takes no more', () => {
  it('publishes of every QoS wait, and leave in order when it drains', async () => {
    const world = await blocked()
    const all = [0, 1, 2, 0, 1].map((qos, index) => watched(world.client.publish('t', `${index}`, { qos: qos as 0 | 1 | 2 })))
    await world.settle()
    expect(world.stub.writes).toEqual([])
    expect(world.client.outbound.size).toBe(5)
    expect(all.every((one) => one.state === 'pending')).toBe(true)
    world.stub.release()
    await world.settle()
    expect(world.stub.payloads.filter((text) => text === '0' || text === '3')).toEqual(['0', '3'])
    expect(world.stub.payloads.filter((text) => text !== '0' && text !== '3')).toEqual(['1', '2', '4'])
    expect(world.stub.writes).toHaveLength(1)
    expect(world.client.outbound.size).toBe(0)
    expect([all[0]?.state, all[3]?.state]).toEqual(['fulfilled', 'fulfilled'])
  })

  it('acknowledgements, PUBREL and DISCONNECT go past the user data that waits', async () => {
    const world = await stubbed()
    const exchange = watched(world.client.publish('t', 'a', { qos: 2 }))
    const subscription = world.client.subscription('s', { qos: 1, ack: 'manual' })
    await world.settle()
    const id = world.stub.packets.find((packet) => packet.type === 'subscribe')?.packetId as number
    await world.deliver({ type: 'suback', packetId: id, reasonCodes: [1], properties: {} })
    world.stub.takes = false
    world.client.post('fill', '')
    await world.settle()
    world.forget()
    const waiting = watched(world.client.publish('t', 'waits', { qos: 1 }))
    await world.deliver(ack('pubrec', 1), { type: 'publish', topic: 's', qos: 1, packetId: 9, payload: Uint8Array.of(1) })
    ;(await subscription.next())?.ack()
    await world.settle()
    expect(world.stub.packets.map((packet) => packet.type)).toEqual(['pubrel', 'puback'])
    await world.deliver(ack('pubcomp', 1))
    expect(exchange.state).toBe('fulfilled')
    const stopping = world.client.disconnect({ timeout: 0 })
    await world.settle()
    await stopping
    expect(world.stub.packets.at(-1)?.type).toBe('disconnect')
    expect(waiting.error).toMatchObject({ code: 'ERR_CLOSED', outcome: 'not-sent' })
  })

  it('PINGREQ goes past the user data that waits', async () => {
    const world = await blocked({ keepAlive: 10, pingTimeout: 5000 })
    world.client.publish('t', 'waits', { qos: 1 })
    await world.clock.advance(10_000)
    expect(world.stub.packets).toEqual([{ type: 'pingreq' }])
  })

  it('a peer that stops reading loses the connection one keep-alive and one ping timeout later, even if it still sends', async () => {
    const world = await blocked({ keepAlive: 10, pingTimeout: 5000 })
    const waits = watched(world.client.publish('t', 'waits', { qos: 1 }))
    const zero = watched(world.client.publish('t', 'waits'))
    for (let second = 1; second < 15; second++) {
      await world.clock.advance(1000)
      await world.deliver({ type: 'pingresp' })
    }
    expect(world.client.state).toBe('connected')
    await world.clock.advance(1000)
    expect(world.client.state).toBe('closed')
    expect(await world.client.closed).toMatchObject({ code: 'ERR_KEEPALIVE_TIMEOUT', fault: 'remote' })
    expect([waits.error, zero.error]).toMatchObject([
      { code: 'ERR_KEEPALIVE_TIMEOUT', outcome: 'not-sent' },
      { code: 'ERR_KEEPALIVE_TIMEOUT', outcome: 'not-sent' },
    ])
    expect(world.stub.over).toBe(true)
    expect(world.clock.pending).toBe(0)
  })

  it('a transport that drains now and then stays', async () => {
    const world = await blocked({ keepAlive: 10, pingTimeout: 5000 })
    for (let round = 0; round < 5; round++) {
      await world.clock.advance(9000)
      world.stub.release()
      await world.deliver({ type: 'pingresp' })
      world.stub.takes = false
      world.client.post('fill', '')
      await world.settle()
    }
    expect(world.client.state).toBe('connected')
  })

  it('what the server makes us answer is bounded while it reads nothing', async () => {
    const world = await blocked({ keepAlive: false, memoryBudget: 10_000 })
    for (let round = 0; round < 40 && world.client.state === 'connected'; round++)
      await world.deliver(...Array.from({ length: 100 }, (_, index) => ack('pubrec', index + 1)))
    expect(world.client.state).toBe('closed')
    expect(world.stub.writes.reduce((sum, bytes) => sum + bytes.length, 0)).toBeLessThan(12_000)
  })
})

describe('writable and flush', () => {
  it('writable is there at once while there is room', async () => {
    const world = await stubbed()
    const writable = watched(world.client.writable)
    await world.settle()
    expect(writable.state).toBe('fulfilled')
  })

  it('writable waits for the transport to drain', async () => {
    const world = await blocked()
    const writable = watched(world.client.writable)
    await world.settle()
    expect(writable.state).toBe('pending')
    world.stub.release()
    await world.settle()
    expect(writable.state).toBe('fulfilled')
    expect(world.client.post('t', 'x')).toBe(true)
  })

  it.each([
    ['destroy()', (world: StubWorld) => world.client.destroy()],
    ['disconnect()', (world: StubWorld) => void world.client.disconnect()],
  ])('writable rejects with ERR_CLOSED once the client is stopping: %s', async (_name, stop) => {
    const world = await blocked()
    const writable = watched(world.client.writable)
    stop(world)
    await Promise.resolve()
    expect(writable).toMatchObject({ state: 'rejected', error: { code: 'ERR_CLOSED' } })
    expect(await failure(world.client.writable)).toMatchObject({ code: 'ERR_CLOSED' })
  })

  it('writable waits for the connection where the policy refuses QoS 0 without one, in every state', async () => {
    const world = new World({ reconnect: { backoff: constant(1000) } })
    const writable = watched(world.client.writable)
    await world.settle()
    expect(writable.state).toBe('pending')
    world.answer = accepting()
    const connecting = world.client.connect()
    await world.settle()
    await connecting
    expect(writable.state).toBe('fulfilled')
    world.peer.cut()
    await world.settle()
    const back = watched(world.client.writable)
    await world.settle()
    expect(back.state).toBe('pending')
    await world.clock.advance(1000)
    expect(back.state).toBe('fulfilled')
  })

  it.each(['reject', 'queue'] as const)('a loop of post and writable without a connection stops nothing else (offline QoS 0: %s)', async (qos0) => {
    const client = new Client('mqtt://127.0.0.1:1', { outbound: { offline: { qos0 } } })
    let turns = 0
    const loop = (async () => {
      while (!client.post('t', 'x')) {
        turns += 1
        await client.writable
      }
    })()
    const told = failure(loop)
    await new Promise((resolve) => setTimeout(resolve, 20))
    client.destroy()
    expect(qos0 === 'queue' || turns === 1).toBe(true)
    expect(await told).toMatchObject({ code: 'ERR_CLOSED' })
  })

  it('a loop over writable sends everything through a narrow transport, in order', async () => {
    const world = await connected({}, accepting(), { highWaterMark: 500, split: 100 })
    const send = async (): Promise<void> => {
      for (let index = 0; index < 200; index++) {
        while (!world.client.post('t', `${index}`)) await world.client.writable
      }
    }
    const done = watched(send())
    await world.settle()
    expect(done).toMatchObject({ state: 'fulfilled', error: undefined })
    expect(world.peer.all('publish').map((packet) => Buffer.from(packet.payload).toString())).toEqual(
      Array.from({ length: 200 }, (_, index) => `${index}`),
    )
  })

  it('flush: true settles when written', async () => {
    const world = await stubbed()
    world.stub.holds = true
    const plain = watched(world.client.publish('t', 'a'))
    const flushed = watched(world.client.publish('t', 'b', { flush: true }))
    await world.settle()
    expect([plain.state, flushed.state]).toEqual(['fulfilled', 'pending'])
    world.stub.release()
    await world.settle()
    expect(flushed.value).toMatchObject({ reasonCode: 0, packetId: undefined })
  })

  it('client.flush() fulfils when everything at QoS 0 was written, what waited in the queue included', async () => {
    const world = await blocked()
    const waiting = watched(world.client.publish('t', 'a'))
    const flushed = watched(world.client.flush())
    await world.settle()
    expect(flushed.state).toBe('pending')
    world.stub.takes = true
    world.stub.sink?.drain()
    await world.settle()
    expect([waiting.state, flushed.state]).toEqual(['fulfilled', 'pending'])
    world.stub.release()
    await world.settle()
    expect(flushed.state).toBe('fulfilled')
  })

  it('client.flush() with nothing to do fulfils, and puts nothing on the wire', async () => {
    const world = await stubbed()
    await world.client.flush()
    expect(world.stub.writes.reduce((sum, bytes) => sum + bytes.length, 0)).toBe(0)
  })

  it('client.flush() rejects without a connection, and when it is lost', async () => {
    const world = await stubbed()
    world.stub.holds = true
    world.client.publish('t', 'a')
    const flushed = watched(world.client.flush())
    await world.settle()
    world.stub.destroy(new Error('gone'))
    await world.settle()
    expect(flushed.error).toMatchObject({ code: 'ERR_CONNECTION_LOST' })
    const late = watched(world.client.flush())
    await world.settle()
    expect(late.state).toBe('rejected')
  })

  it('flush() on an idle link is no sign of life of ours: PINGREQ is still sent on time', async () => {
    const world = await stubbed({ keepAlive: 10 })
    for (let second = 0; second < 11; second++) {
      await world.clock.advance(1000)
      await world.client.flush()
      await world.deliver({ type: 'publish', topic: 'in', payload: new Uint8Array(0) })
    }
    expect(world.stub.packets.map((packet) => packet.type)).toContain('pingreq')
  })
})
