/** What the server's Maximum Packet Size leaves room for: a PUBLISH to the byte, and acknowledgements. */
import { describe, expect, it } from 'vitest'
import type { PacketInput } from '../../../src/wire/packet-input.js'
import { accepting, connected } from './harness.js'
import { fates } from './publishes.js'

const publish: PacketInput = { type: 'publish', topic: 't', qos: 1, packetId: 7 }
// Nobody knows the identifier: the answer needs a fifth byte for its reason code.
const pubrel: PacketInput = { type: 'pubrel', packetId: 7 }

describe('the Maximum Packet Size of the server [MQTT-3.2.2-15]', () => {
  it.each([0, 1] as const)('is what a PUBLISH at QoS %i may have, no byte more', async (qos) => {
    const world = await connected({}, accepting({ maximumPacketSize: 64 }))
    const before = world.peer.bytes.length
    // Two bytes of header, three of topic, one without properties, and an identifier.
    const room = 64 - 6 - (qos > 0 ? 2 : 0)
    const excess = fates(world.client.publish('t', new Uint8Array(room + 1), { qos }))
    await world.settle()
    expect(excess).toEqual(['ERR_PACKET_TOO_LARGE not-sent'])
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
  ] as const)('ends the connection where it leaves none for a %s', async (_name, size, packet) => {
    const world = await connected({}, accepting({ maximumPacketSize: size }))
    const before = world.peer.bytes.length
    await world.send(packet)
    expect(world.peer.bytes).toHaveLength(before)
    expect(world.seen('disconnect')).toMatchObject([{ cause: { code: 'ERR_PACKET_TOO_LARGE' } }])
  })
})
