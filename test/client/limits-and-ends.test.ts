/** What the server's Maximum Packet Size leaves room for, what follows our DISCONNECT, and when a message of several consumers is acknowledged. */
import { describe, expect, it, vi } from 'vitest'
import type { PacketInput } from '../../src/wire/packet-input.js'
import { accepting, connected } from './harness.js'
import { stubbed } from './stub.js'

const publish: PacketInput = { type: 'publish', topic: 't', qos: 1, packetId: 7 }
// Nobody knows the identifier: the answer needs a fifth byte for its reason code.
const pubrel: PacketInput = { type: 'pubrel', packetId: 7 }

describe('the Maximum Packet Size of the server [MQTT-3.2.2-15]', () => {
  it.each([0, 1] as const)('is what a PUBLISH at QoS %i may have, and no byte more', async (qos) => {
    const world = await connected({}, accepting({ maximumPacketSize: 64 }))
    const before = world.peer.bytes.length
    // Two bytes of header, three of topic, one without properties, and an identifier.
    const room = 64 - 6 - (qos > 0 ? 2 : 0)
    const excess = await world.outcome(world.client.publish('t', new Uint8Array(room + 1), { qos }))
    expect(excess).toMatchObject({ state: 'rejected', error: { code: 'ERR_PACKET_TOO_LARGE', outcome: 'not-sent' } })
    expect(world.peer.bytes).toHaveLength(before)
    world.client.publish('t', new Uint8Array(room), { qos })
    await world.settle()
    expect(world.peer.bytes).toHaveLength(before + 64)
  })

  it.each([
    ['PUBACK', 4, publish, { type: 'puback', packetId: 7, reasonCode: 0 }],
    ['PUBCOMP with a reason', 5, pubrel, { type: 'pubcomp', packetId: 7, reasonCode: 0x92 }],
  ] as const)('leaves room for a %s of %i bytes', async (_name, size, packet, answer) => {
    const world = await connected({}, accepting({ maximumPacketSize: size }))
    await world.send(packet)
    expect(world.peer.received.slice(1)).toMatchObject([answer])
    expect(world.client.state).toBe('connected')
  })

  it.each([
    ['PUBACK', 3, publish],
    ['PUBCOMP with a reason', 4, pubrel],
  ] as const)('ends the connection where it leaves none for a %s: nothing larger is sent', async (_name, size, packet) => {
    const world = await connected({}, accepting({ maximumPacketSize: size }))
    const before = world.peer.bytes.length
    await world.send(packet)
    expect(world.peer.bytes).toHaveLength(before)
    expect(world.seen('disconnect')).toMatchObject([{ cause: { code: 'ERR_PACKET_TOO_LARGE' } }])
  })
})

describe('the end of the stream after a DISCONNECT of ours [MQTT-3.14.4-2] [MQTT-4.13.2-1]', () => {
  it('comes at once, and for a server that does not end its side a second later', async () => {
    const world = await stubbed()
    await world.deliver({ type: 'connack' })
    expect(world.stub.packets).toMatchObject([{ type: 'disconnect', reasonCode: 0x82 }])
    expect(world.stub).toMatchObject({ closing: true, over: false })
    await world.clock.advance(999)
    expect(world.stub.over).toBe(false)
    await world.clock.advance(1)
    expect(world.stub.over).toBe(true)
  })
})

describe('a DISCONNECT of ours [MQTT-3.14.4-1]', () => {
  it('is not followed by the acknowledgement of a message that was in hand, while the stream has not ended', async () => {
    const world = await stubbed()
    const subscribing = world.client.subscribe('t', { qos: 1, ack: 'manual' })
    await world.settle()
    await world.deliver({ type: 'suback', packetId: 1, reasonCodes: [1] })
    const subscription = await subscribing
    await world.deliver({ type: 'publish', topic: 't', qos: 1, packetId: 5 })
    const message = await subscription.next()
    world.client.reconnect({ force: true }).catch(() => undefined)
    await world.settle()
    expect(world.stub).toMatchObject({ closing: true, over: false })
    expect(world.stub.packets.at(-1)?.type).toBe('disconnect')
    const write = vi.spyOn(world.stub, 'write')
    expect(message?.ack()).toBe(true)
    await world.settle()
    expect(write).not.toHaveBeenCalled()
  })
})

describe('one message for several consumers', () => {
  it('is acknowledged when each has, not when one has twice (L08, L09)', async () => {
    const world = await stubbed()
    const subscribing = [1, 2].map(() => world.client.subscribe('t', { qos: 1, ack: 'manual' }))
    await world.settle()
    await world.deliver({ type: 'suback', packetId: 1, reasonCodes: [1] })
    await world.deliver({ type: 'publish', topic: 't', qos: 1, packetId: 5 })
    const [first, second] = await Promise.all(subscribing.map(async (subscription) => (await subscription).next()))
    world.forget()
    expect([first?.ack(), first?.ack()]).toEqual([true, false])
    await world.settle()
    expect(world.stub.packets).toEqual([])
    expect(second?.ack()).toBe(true)
    await world.settle()
    expect(world.stub.packets).toMatchObject([{ type: 'puback', packetId: 5, reasonCode: 0 }])
  })
})
