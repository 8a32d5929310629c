/** A server that takes messages and acknowledges none is noticed. */
import { expect, it } from 'vitest'
import { accepting, agreeable, connected } from './harness.js'

const ignored = (): undefined => undefined

it('`stalled` after ten seconds without a single acknowledgement, once', async () => {
  const world = await connected({ keepAlive: false }, accepting())
  world.client.publish('a', '1', { qos: 1 }).catch(ignored)
  world.client.publish('a', '2', { qos: 2 }).catch(ignored)
  await world.clock.advance(9_999)
  expect(world.seen('stalled')).toEqual([])
  await world.clock.advance(1)
  expect(world.seen('stalled')).toEqual([
    { direction: 'out', subscription: undefined, age: 10_000, inFlight: 2 },
  ])
  await world.clock.advance(600_000)
  expect(world.seen('stalled')).toHaveLength(1)
  expect(world.client.state).toBe('connected')
})

it('progress begins it again, also of another message', async () => {
  const world = await connected({ keepAlive: false }, accepting())
  for (const text of ['1', '2', '3']) world.client.publish('a', text, { qos: 1 }).catch(ignored)
  await world.clock.advance(9_000)
  await world.send({ type: 'puback', packetId: 2, reasonCode: 0, properties: {} })
  await world.clock.advance(9_000)
  expect(world.seen('stalled')).toEqual([])
  await world.clock.advance(11_000)
  expect(world.seen('stalled')).toMatchObject([{ inFlight: 2 }])
  await world.send({ type: 'puback', packetId: 1, reasonCode: 0, properties: {} })
  await world.clock.advance(10_000)
  expect(world.seen('stalled')).toMatchObject([{ inFlight: 2 }, { inFlight: 1 }])
})

it('nothing is reported, and no timer left, when all is acknowledged', async () => {
  const world = await connected({ keepAlive: false }, agreeable)
  const before = world.clock.pending
  for (const qos of [1, 2] as const)
    await Promise.all([world.client.publish('a', 'x', { qos }), world.settle()])
  expect(world.clock.pending).toBe(before)
  await world.clock.advance(60_000)
  expect(world.seen('stalled')).toEqual([])
})

it('a connection that is lost ends the watch; what goes on after the next CONNACK is watched again', async () => {
  const world = await connected(
    { keepAlive: false, cleanStart: false, clientId: 'c', reconnect: {} },
    accepting({}, true),
  )
  world.client.publish('a', '1', { qos: 1 }).catch(ignored)
  await world.clock.advance(5_000)
  world.peer.cut()
  world.answer = ignored
  await world.clock.advance(9_000)
  expect(world.seen('stalled')).toEqual([])
  world.answer = accepting({}, true)
  await world.clock.advance(60_000)
  expect(world.client.state).toBe('connected')
  expect(world.seen('stalled')).toMatchObject([{ direction: 'out', inFlight: 1 }])
})

it('a keep-alive of one second is taken, and worth a line in the log', async () => {
  const lines: string[] = []
  const logger = { warn: (line: string) => void lines.push(line) }
  await connected({ logger }, accepting({ serverKeepAlive: 1 }))
  expect(lines).toEqual([expect.stringContaining('the keep-alive is 1 s')])
  lines.length = 0
  await connected({ logger }, accepting({ serverKeepAlive: 20 }))
  expect(lines).toEqual([])
})
