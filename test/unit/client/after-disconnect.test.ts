/** What follows a DISCONNECT of ours: nothing, and the end of the stream, whether or not the server ends its side. */
import { describe, expect, it, vi } from 'vitest'
import type { SubscribeOptions, Subscription } from '../../../src/client/api/index.js'
import { deferred } from '../../../src/client/common/abort.js'
// The client loads it when it needs it: loaded before, that takes no time.
import '../../../src/client/durable/keeper.js'
import { MapStore } from '../queue/rig.js'
import { quiet } from './incoming.js'
import { ack, type StubWorld, stubbed } from './stub.js'

it('a DISCONNECT of ours is followed at once by the end of the stream, a second later where the server does not end its side [MQTT-3.14.4-2] [MQTT-4.13.2-1]', async () => {
  const world = await stubbed()
  await world.deliver({ type: 'connack' })
  expect(world.stub.packets).toMatchObject([{ type: 'disconnect', reasonCode: 0x82 }])
  expect(world.stub).toMatchObject({ closing: true, over: false })
  await world.clock.advance(999)
  expect(world.stub.over).toBe(false)
  await world.clock.advance(1)
  expect(world.stub.over).toBe(true)
})

describe('a DISCONNECT of ours is not followed [MQTT-3.14.4-1]', () => {
  async function _subscribed(world: StubWorld, options: SubscribeOptions): Promise<Subscription> {
    const subscribing = world.client.subscribe('t', options)
    await world.settle()
    await world.deliver({ type: 'suback', packetId: 1, reasonCodes: [options.qos as number] })
    return subscribing
  }

  /** Has DISCONNECT sent; gives what is written from then on, while the stream has not ended. */
  async function disconnecting(world: StubWorld) {
    quiet(world.client.reconnect({ force: true }))
    await world.settle()
    expect(world.stub).toMatchObject({ closing: true, over: false })
    expect(world.stub.packets.at(-1)?.type).toBe('disconnect')
    return vi.spyOn(world.stub, 'write')
  }

  it('by the PUBREL of a QoS 2 exchange whose record was being stored', async () => {
    const store = new MapStore()
    const world = await stubbed({ clientId: 'device', store })
    quiet(world.client.publish('t', 'x', { qos: 2 }))
    await world.settle()
    expect(world.stub.packets).toMatchObject([{ type: 'publish', packetId: 1 }])
    const gate = deferred<void>()
    const batch = store.batch.bind(store)
    store.batch = async (operations) => {
      await gate.promise
      await batch(operations)
    }
    await world.deliver(ack('pubrec', 1))
    const write = await disconnecting(world)
    gate.resolve()
    await world.settle()
    await world.clock.advance(10)
    expect(write).not.toHaveBeenCalled()
  })
})
