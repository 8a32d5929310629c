/** Receive Maximum and packet identifiers of outgoing exchanges (sections 2.2.1, 4.9), and the limits that CONNACK sets. */
import { describe, expect, it } from 'vitest'
import { accepting, connected, failure, times, type World } from './harness.js'
import { quiet } from './incoming.js'
import { ack, stubbed, watched } from './stub.js'

/** Topics of the publishes that reached the peer. */
const topics = (world: World): string[] => world.peer.all('publish').map((packet) => packet.topic)
const upTo = (count: number): string[] => times(count, (index) => `t/${index}`)

describe('quota', () => {
  it('[MQTT-4.9.0-3] without quota QoS 0, SUBSCRIBE, UNSUBSCRIBE, PINGREQ and PUBREL still go out', async () => {
    const world = await connected({ keepAlive: 10 }, accepting({ receiveMaximum: 1 }))
    world.client.publish('q2', 'x', { qos: 2 })
    world.client.publish('waits', 'x', { qos: 1 })
    const zero = watched(world.client.publish('q0', 'x'))
    world.client.subscription('s')
    quiet(world.client.unsubscribe('u'))
    expect(world.client.post('posted', 'x')).toBe(true)
    await world.settle()
    expect(zero.state).toBe('fulfilled')
    await world.send(ack('pubrec', 1))
    await world.clock.advance(10_000)
    expect(topics(world)).toEqual(['q2', 'q0', 'posted'])
    const types = world.peer.received.map((packet) => packet.type)
    expect(types).toEqual(expect.arrayContaining(['subscribe', 'unsubscribe', 'pingreq', 'pubrel']))
  })

  it('QoS 1 and 2 share one line: none overtakes another', async () => {
    const world = await connected({}, accepting({ receiveMaximum: 1 }))
    const order = [1, 2, 2, 1, 1, 2] as const
    for (const [index, qos] of order.entries()) world.client.publish(`t/${index}`, 'x', { qos })
    world.client.publish('q0', 'x')
    await world.settle()
    expect(topics(world)).toEqual(['t/0', 'q0'])
    for (const [index, qos] of order.entries())
      await world.send(
        ...(qos === 1
          ? [ack('puback', index + 1)]
          : [ack('pubrec', index + 1), ack('pubcomp', index + 1)]),
      )
    expect(topics(world)).toEqual(['t/0', 'q0', ...upTo(6).slice(1)])
  })

  it.each([
    [2, 5],
    [5, 2],
  ])(
    'maxInflight %i, Receive Maximum %i: the smaller holds',
    async (maxInflight, receiveMaximum) => {
      const world = await connected({ outbound: { maxInflight } }, accepting({ receiveMaximum }))
      for (const topic of upTo(6)) world.client.publish(topic, 'x', { qos: 1 })
      await world.settle()
      expect(topics(world)).toHaveLength(2)
    },
  )
})

describe('packet identifiers', () => {
  // All calls are made in one turn, in which no transport can take them.
  const roomy = { outbound: { maxQueuedMessages: 100_000 }, keepAlive: false } as const
  const all = new Set(times(65_535, (index) => index + 1))
  const used = (world: World) => world.peer.all('publish').map(({ packetId }) => packetId)

  it('70,000 QoS 1 publishes with acks withheld: each identifier once, and one that is free is used again, by SUBSCRIBE too', async () => {
    const world = await connected(roomy, accepting(), { split: 65_536 })
    const calls = times(70_000, () => watched(world.client.publish('t', '', { qos: 1 })))
    await world.settle()
    expect(used(world)).toHaveLength(65_535)
    expect(new Set(used(world))).toEqual(all)
    expect(world.client.outbound.size).toBe(4465)
    expect(calls.filter(({ state }) => state !== 'pending')).toEqual([])
    await world.send(ack('puback', 30_000))
    expect([world.peer.last('publish').packetId, used(world).length]).toEqual([30_000, 65_536])
    await world.send(...times(4464, (index) => ack('puback', index + 1)))
    const subscription = world.client.subscription('s')
    await world.settle()
    expect(world.peer.all('subscribe')).toHaveLength(0)
    await world.send(ack('puback', 9))
    expect(world.peer.last('subscribe').packetId).toBe(9)
    await world.send({ type: 'suback', packetId: 9, reasonCodes: [0] })
    expect(await subscription.ready).toBe(subscription)
  })
})

describe('what CONNACK limits', () => {
  it('large payloads count with their head, and one that is refused leaves no hole in what follows', async () => {
    const world = await stubbed({}, { maximumPacketSize: 40_000 })
    const large = ([1, 0] as const).map((qos) =>
      failure(world.client.publish('t', new Uint8Array(40_000), { qos })),
    )
    expect(await Promise.all(large)).toMatchObject([
      { code: 'ERR_PACKET_TOO_LARGE' },
      { code: 'ERR_PACKET_TOO_LARGE' },
    ])
    expect(world.stub.writes).toHaveLength(0)
    world.client.publish('t', new Uint8Array(39_990), { qos: 1 })
    await world.settle()
    expect(world.stub.packets).toMatchObject([{ type: 'publish', qos: 1 }])
  })

  it('a refused publish takes no quota and no identifier', async () => {
    const world = await connected({}, accepting({ receiveMaximum: 1, maximumPacketSize: 64 }))
    for (let index = 0; index < 10; index++)
      quiet(world.client.publish('t', new Uint8Array(60), { qos: 2 }))
    world.client.publish('ok', 'x', { qos: 1 })
    await world.settle()
    expect(topics(world)).toEqual(['ok'])
  })
})
