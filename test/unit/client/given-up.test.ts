/** A connection that gives itself up in the middle of a flush writes nothing more. */
import { expect, it } from 'vitest'
import { connected } from './harness.js'
import { quiet } from './incoming.js'
import { StalledTransport } from './stalled-transport.js'
import { over } from './steps.js'

const connack = '20 03 00 00 00'

it('nothing is written to a transport after it was destroyed, not even what the same turn had queued', async () => {
  const transport = new StalledTransport(0)
  const world = await over(transport, () => transport.feed(connack), {
    memoryBudget: 3000,
    receiveMaximum: 65_535,
  })
  let late = 0
  const write = transport.write.bind(transport)
  transport.write = (bytes, written) => {
    if (transport.destroyed !== undefined) late += 1
    return write(bytes, written)
  }
  // Nobody reads the acknowledgements of a thousand messages.
  const message = (id: number): string => `32 06 00 01 61 ${id.toString(16).padStart(4, '0')} 00`
  transport.feed(Array.from({ length: 900 }, (_, index) => message(index + 1)).join(' '))
  await world.settle()
  expect(world.client.state).toBe('closed')
  expect(transport.destroyed).toBeDefined()
  expect(late).toBe(0)
})

it('a payload larger than the memory budget is not held against the server: it is sent and acknowledged', async () => {
  const world = await connected({ memoryBudget: 3000 })
  const publishing = world.client.publish('t', new Uint8Array(40_000), { qos: 1 })
  await world.send({ type: 'pingresp' })
  expect(world.peer.last('publish').payload?.length).toBe(40_000)
  await world.send({ type: 'puback', packetId: 1, reasonCode: 0, properties: {} })
  await expect(publishing).resolves.toMatchObject({ packetId: 1 })
  expect(world.client.state).toBe('connected')
})

it('while it has not left, messages that come in are taken and acknowledged all the same', async () => {
  const transport = new StalledTransport(1000)
  const world = await over(transport, () => transport.feed(connack), { memoryBudget: 3000 })
  quiet(world.client.publish('t', new Uint8Array(40_000), { qos: 1 }))
  await world.settle()
  transport.written.length = 0
  transport.feed('32 06 00 01 61 00 09 00')
  await world.settle()
  expect(transport.written).toEqual([0x40, 2, 0, 9])
  expect(world.client.state).toBe('connected')
  world.client.destroy()
})
