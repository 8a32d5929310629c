/** What follows a DISCONNECT of ours: nothing, and the end of the stream, whether or not the server ends its side. */
import { describe, expect, it, vi } from 'vitest'
import { deferred } from '../../../src/client/common/abort.js'
// The client loads it when it needs it: loaded before, that takes no time.
import '../../../src/client/durable/keeper.js'
import { MapStore } from '../queue/rig.js'
import { stubbed } from './stub.js'

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

  it('is not followed by answers to what still comes in', async () => {
    const world = await stubbed({ receiveMaximum: 10 })
    const subscribing = world.client.subscribe('t', { qos: 2, ack: 'on-receive' })
    await world.settle()
    await world.deliver({ type: 'suback', packetId: 1, reasonCodes: [2] })
    await subscribing
    world.client.reconnect({ force: true }).catch(() => undefined)
    await world.settle()
    expect(world.stub.packets.at(-1)?.type).toBe('disconnect')
    const write = vi.spyOn(world.stub, 'write')
    await world.deliver({ type: 'publish', topic: 't', qos: 1, packetId: 5 })
    await world.deliver({ type: 'publish', topic: 't', qos: 2, packetId: 6 })
    await world.deliver({ type: 'pubrel', packetId: 7 })
    await world.settle()
    expect(write).not.toHaveBeenCalled()
  })

  it('is not followed by the PUBREL of a QoS 2 exchange whose record was being stored', async () => {
    const store = new MapStore()
    const world = await stubbed({ clientId: 'device', store })
    world.client.publish('t', 'x', { qos: 2 }).catch(() => undefined)
    await world.settle()
    expect(world.stub.packets).toMatchObject([{ type: 'publish', packetId: 1 }])
    const gate = deferred<void>()
    const { batch } = MapStore.prototype
    store.batch = async (operations) => {
      await gate.promise
      await batch.call(store, operations)
    }
    await world.deliver({ type: 'pubrec', packetId: 1 })
    world.client.reconnect({ force: true }).catch(() => undefined)
    await world.settle()
    expect(world.stub).toMatchObject({ closing: true, over: false })
    const write = vi.spyOn(world.stub, 'write')
    gate.resolve()
    await world.settle()
    await world.clock.advance(10)
    expect(write).not.toHaveBeenCalled()
  })
})
