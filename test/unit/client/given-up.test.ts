/** A connection that gives itself up in the middle of a flush writes nothing more. */
import { expect, it } from 'vitest'
import type { Transport } from '../../../src/transport/transport.js'
import { connected, World } from './harness.js'
import { StalledTransport } from './stalled-transport.js'

it('nothing is written to a transport after it was destroyed, not even what the same turn had queued', async () => {
  const transport = new StalledTransport(0)
  const calls: string[] = []
  const tapped: Transport = {
    open: (sink) => transport.open(sink),
    write(bytes, written) {
      calls.push('write')
      return transport.write(bytes, written)
    },
    close: () => transport.close(),
    destroy(cause) {
      calls.push('destroy')
      transport.destroy(cause)
    },
  }
  const world = new World({ memoryBudget: 3000, receiveMaximum: 65_535 }, {}, 1, () => tapped)
  const connecting = world.client.connect()
  await world.settle()
  transport.feed('20 03 00 00 00')
  await connecting
  // Nobody reads the acknowledgements of a thousand messages.
  const message = (id: number): string => `32 06 00 01 61 ${id.toString(16).padStart(4, '0')} 00`
  transport.feed(Array.from({ length: 900 }, (_, index) => message(index + 1)).join(' '))
  await world.settle()
  expect(world.client.state).toBe('closed')
  expect(calls).toContain('destroy')
  expect(calls.slice(calls.indexOf('destroy'))).not.toContain('write')
})

it('a payload larger than the memory budget is not held against the server: it is sent and acknowledged', async () => {
  const world = await connected({ memoryBudget: 3000 })
  const payload = new Uint8Array(40_000)
  const publishing = world.client.publish('t', payload, { qos: 1 })
  await world.send({ type: 'pingresp' })
  expect(world.peer.last('publish').payload?.length).toBe(40_000)
  await world.send({ type: 'puback', packetId: 1, reasonCode: 0, properties: {} })
  await expect(publishing).resolves.toMatchObject({ packetId: 1 })
  expect(world.client.state).toBe('connected')
})

it('while it has not left, messages that come in are taken and acknowledged all the same', async () => {
  const transport = new StalledTransport(1000)
  const world = new World({ memoryBudget: 3000 }, {}, 1, () => transport)
  const connecting = world.client.connect()
  await world.settle()
  transport.feed('20 03 00 00 00')
  await connecting
  world.client.publish('t', new Uint8Array(40_000), { qos: 1 }).catch(() => undefined)
  await world.settle()
  transport.written.length = 0
  transport.feed('32 06 00 01 61 00 09 00')
  await world.settle()
  expect(transport.written).toEqual([0x40, 2, 0, 9])
  expect(world.client.state).toBe('connected')
  world.client.destroy()
})
