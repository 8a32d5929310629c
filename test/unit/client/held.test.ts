/** What a connection says it holds, by which the memory budget for messages is less: input that is incomplete or waits, topics, output that has not left. */
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { Connection } from '../../../src/client/connection/connection.js'
import { encode } from '../../../src/wire/encode.js'
import { willing } from './across.js'
import { agreeable, connected, times, World } from './harness.js'
import { publish } from './incoming.js'
import { patient } from './patient.js'
import { SlowLink } from './slow-link.js'

let connection: Connection
beforeEach(() => {
  const { pump } = Connection.prototype
  vi.spyOn(Connection.prototype, 'pump').mockImplementation(function (this: Connection) {
    connection = this
    pump.call(this)
  })
})
afterEach(() => void vi.restoreAllMocks())

it('as much of a packet as came in, and nothing of it once the rest is there', async () => {
  const world = await connected()
  const before = connection.held
  const bytes = encode({ type: 'suback', packetId: 1, reasonCodes: new Array(2000).fill(0) })
  await world.sendBytes(bytes.subarray(0, 1500))
  expect(connection.held - before).toBeGreaterThanOrEqual(1500)
  expect(connection.held - before).toBeLessThan(16 * 1500)
})

it.each([
  ['topics that are remembered', {}, 't'.repeat(900)],
  ['topics under an alias', { topicAlias: 1 }, 'a'.repeat(2000)],
])('%s', async (_name, properties, topic) => {
  const world = await connected({ topicAliasMaximum: 5 })
  const before = connection.held
  await world.send(publish(topic, 'x', undefined, { properties }))
  expect(connection.held - before).toBeGreaterThanOrEqual(topic.length)
})

it('what came in behind a message that has no room', async () => {
  const options = { clientId: 'c', cleanStart: false, memoryBudget: 11_000 }
  const world = await new World(options, {}, 1, (_index, open) => patient(open())).up(willing(true))
  const granted = world.client.listen('a', () => new Promise(() => undefined), { qos: 1 })
  await world.settle()
  await granted
  await world.send(...times(20, (index) => publish('a', 'x'.repeat(3000), index + 1)))
  expect(connection.held).toBeGreaterThan(15 * 3000)
})

it('what comes in behind a packet that is still to be judged, until it is', async () => {
  const world = await connected()
  const before = connection.held
  const { reader } = connection
  reader.hold(world)
  for (const id of [1, 2, 3]) await world.send(publish('a', 'x'.repeat(1000), id))
  expect(connection.held - before).toBeGreaterThan(3000)
  reader.release(world)
  expect(connection.held - before).toBeLessThan(1000)
})

it('output that has not left, but for large payloads, and never less than nothing', async () => {
  const connections: SlowLink[] = []
  const world: World = new World({ keepAlive: false }, {}, 1, () => {
    connections.push(new SlowLink(world.clock, { rate: 1_000_000, kernel: 1 }, agreeable))
    return connections[0] as SlowLink
  })
  await Promise.all([world.client.connect(), world.clock.advance(1000)])
  const before = connection.held
  world.client.post('a', new Uint8Array(40_000))
  expect(connection.held - before).toBeLessThan(1000)
  await world.clock.advance(1000)
  expect(connection.held - before).toBeLessThan(100)
  ;(connections[0] as SlowLink).rate = 0
  for (let count = 0; count < 10; count++) world.client.post('a', new Uint8Array(1000))
  expect(connection.held - before).toBeGreaterThan(10_000)
  await world.settle()
  expect(connection.held - before).toBeGreaterThan(10_000)
  const settled = world.client.publish('a', new Uint8Array(3_000_000)).catch(() => undefined)
  await world.settle()
  expect(connection.held - before).toBeLessThan(30_000)
  world.client.destroy()
  await settled
  expect(connection.held).toBeGreaterThanOrEqual(0)
})
