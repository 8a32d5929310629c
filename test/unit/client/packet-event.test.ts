/** The `packet` event: everything in both directions, in order, as plain objects, without secrets. */
import { describe, expect, it } from 'vitest'
import type { ClientEvents, ClientOptions } from '../../../src/client/options/index.js'
import { obliging, publish, subscribe, takenTexts } from './incoming.js'
import { idle, settled } from './steps.js'
import { StubWorld, stubbed } from './stub.js'

type Seen = ClientEvents['packet']

async function watchedWorld(options: ClientOptions = {}) {
  const world = new StubWorld(options)
  const seen: Seen[] = []
  world.client.on('packet', (event) => seen.push(event))
  await world.connect()
  return { world, seen }
}

describe('packet event', () => {
  it('reports each packet of a conversation, in order', async () => {
    const { world, connect } = idle(obliging, { keepAlive: 10 })
    const seen: string[] = []
    world.client.on('packet', ({ direction, packet }) => seen.push(`${direction} ${packet.type}`))
    await connect()
    await settled(world, world.client.publish('t', 'x', { qos: 2 }))
    const subscription = await subscribe(world, 's', { qos: 2 })
    await world.send(publish('s', 'x', 7, { qos: 2 }))
    takenTexts(subscription)
    await world.clock.advance(10_000)
    await settled(world, world.client.disconnect())
    expect(seen.join(', ')).toBe(
      [
        'out connect, in connack, out publish, in pubrec, out pubrel, in pubcomp, out subscribe, in suback',
        'in publish, out pubrec, in pubrel, out pubcomp, out pingreq, in pingresp, out disconnect',
      ].join(', '),
    )
  })

  it('has every field of the packet, QoS 0 and posts and large payloads included', async () => {
    const { world, seen } = await watchedWorld()
    seen.length = 0
    world.client.publish('a', 'x', { retain: true, properties: { contentType: 'c' } })
    world.client.publish('b', 'y', { qos: 1 })
    world.client.post('c', 'z')
    world.client.publish('d', new Uint8Array(40_000), { qos: 1 })
    await world.settle()
    expect(seen.map(({ packet }) => packet)).toEqual(
      world.stub.packets.map((packet) => ({ ...packet, properties: expect.anything() })),
    )
    const first = {
      type: 'publish',
      dup: false,
      qos: 0,
      retain: true,
      packetId: undefined,
      properties: { contentType: 'c' },
      topic: 'a',
    }
    expect(seen[0]?.packet).toEqual({ ...first, payload: Uint8Array.of(0x78) })
  })

  it('what a listener does to the packet does not reach the wire', async () => {
    const world = new StubWorld({
      clientId: 'a',
      username: 'u',
      password: 'p',
      userProperties: [['a', 'b']],
    })
    world.client.on('packet', ({ packet }) => {
      Object.assign(packet, {
        clientId: 'changed',
        topic: 'changed',
        packetId: 77,
        reasonCode: 0x80,
      })
    })
    const connecting = world.client.connect()
    await world.settle()
    expect(world.stub.packets[0]).toMatchObject({ clientId: 'a', username: 'u' })
    world.stub.deliver({ type: 'connack', sessionPresent: false, reasonCode: 0 })
    await connecting
    world.client.publish('t', 'x', { qos: 1 })
    await world.settle()
    expect(world.client.state).toBe('connected')
    expect(world.stub.packets.at(-1)).toMatchObject({ type: 'publish', topic: 't', packetId: 1 })
  })

  it('stops when the listener is removed', async () => {
    const world = await stubbed()
    const seen: Seen[] = []
    const stop = world.client.on('packet', (event) => seen.push(event))
    world.client.publish('t', 'x')
    stop()
    world.client.publish('t', 'y')
    await world.settle()
    expect([seen.length, world.stub.payloads]).toEqual([1, ['x', 'y']])
  })

  it('a broken packet is not told as a good one', async () => {
    const { world, seen } = await watchedWorld()
    seen.length = 0
    world.stub.sink?.chunk(Uint8Array.of(0x30, 4, 0, 1, 0x2b, 0))
    await world.settle()
    expect(seen.map(({ direction, packet }) => `${direction} ${packet.type}`)).toEqual([
      'out disconnect',
    ])
  })
})
