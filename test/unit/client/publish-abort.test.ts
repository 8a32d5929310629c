/** Abort signals and time limits of publishes: before the first byte the message is gone, later only the caller is. */
import { expect, it, vi } from 'vitest'
import { accepting, agreeable, connected } from './harness.js'
import { ack, fates, stubbed } from './stub.js'

it.each([0, 1, 2] as const)(
  'abort: before the first byte it is removed alone: QoS %i',
  async (qos) => {
    const world = await stubbed()
    world.stub.takes = false
    world.client.post('fill', 'fill')
    await world.settle()
    const abort = new AbortController()
    const signals = { b: abort.signal } as Record<string, AbortSignal>
    const calls = fates(
      ...[...'abc'].map((text) => world.client.publish('t', text, { qos, signal: signals[text] })),
    )
    await world.settle()
    abort.abort()
    await world.settle()
    expect([...calls, world.client.outbound.size]).toEqual([
      'pending',
      'ERR_ABORTED not-sent',
      'pending',
      2,
    ])
    world.stub.release()
    await world.settle()
    expect(world.stub.payloads).toEqual(['fill', 'a', 'c'])
  },
)

it('abort: later it detaches the caller, which is no drop; the exchange is finished, the link is unaffected', async () => {
  const world = await stubbed({}, { receiveMaximum: 1 })
  const abort = new AbortController()
  const first = world.client.publish('t', 'a', { qos: 2, signal: abort.signal })
  const calls = fates(first, world.client.publish('t', 'b', { qos: 1 }))
  await world.settle()
  abort.abort()
  await world.settle()
  expect([calls, world.stub.payloads]).toEqual([['ERR_ABORTED unknown', 'pending'], ['a']])
  await world.deliver(ack('pubrec', 1))
  expect(world.stub.packets.at(-1)).toMatchObject({ type: 'pubrel', packetId: 1, reasonCode: 0 })
  await world.deliver(ack('pubcomp', 1))
  expect(world.stub.payloads).toEqual(['a', 'b'])
  await world.deliver(ack('puback', 2))
  expect([calls[1], world.drops]).toEqual(['done', []])
})

it('abort: after the end it is nothing, and no listener stays on the signal of a publish that is over', async () => {
  const world = await stubbed({}, { receiveMaximum: 2 })
  const { client } = world
  const abort = new AbortController()
  const { signal } = abort
  const added = vi.spyOn(signal, 'addEventListener')
  const removed = vi.spyOn(signal, 'removeEventListener')
  const listeners = () => added.mock.calls.length - removed.mock.calls.length
  const acknowledged = [1, 2, 3, 4, 5].map(() => client.publish('t', 'x', { qos: 1, signal }))
  const calls = fates(
    ...acknowledged,
    client.publish('t', 'x', { signal }),
    client.publish('t', new Uint8Array(40_000), { signal }),
  )
  await world.settle()
  await world.deliver(ack('puback', 1), ack('puback', 2))
  await world.deliver(ack('puback', 3), ack('puback', 4, 0x80))
  expect(listeners()).toBe(1)
  await world.deliver(ack('puback', 5))
  expect(listeners()).toBe(0)
  abort.abort()
  await world.settle()
  const done = Array(3).fill('done')
  expect(calls).toEqual([...done, 'ERR_PUBLISH_REFUSED refused', ...done])
})

it.each([
  ['flush: true', 'x', { flush: true }],
  ['by reference', new Uint8Array(40_000), {}],
] as const)(
  'abort: QoS 0 that is not written (%s) lets its caller go',
  async (_, payload, options) => {
    const world = await stubbed()
    world.stub.holds = true
    const abort = new AbortController()
    const call = fates(world.client.publish('t', payload, { ...options, signal: abort.signal }))
    await world.settle()
    expect(call).toEqual(['pending'])
    abort.abort()
    await world.settle()
    expect(call).toEqual(['ERR_ABORTED unknown'])
    world.stub.release()
    await world.settle()
    expect(world.stub.packets).toHaveLength(1)
  },
)

it('ackTimeout: rejects with outcome unknown; the link stays and the exchange is finished', async () => {
  const world = await stubbed({ keepAlive: false })
  const call = fates(world.client.publish('t', 'a', { qos: 2, ackTimeout: 500 }))
  await world.clock.advance(499)
  expect(call).toEqual(['pending'])
  await world.clock.advance(1)
  expect(call).toEqual(['ERR_TIMEOUT unknown'])
  const error = { code: 'ERR_TIMEOUT', fault: 'local' }
  expect(world.drops).toMatchObject([{ direction: 'out', topic: 't', count: 1, error }])
  await world.deliver(ack('pubrec', 1), ack('pubcomp', 1))
  expect(world.stub.packets.map((packet) => packet.type)).toEqual(['publish', 'pubrel'])
  expect(world.client.state).toBe('connected')
})

it('ackTimeout: the client default, calls of their own, and 0 for the default, end in the right order', async () => {
  const world = await stubbed({ keepAlive: false, outbound: { ackTimeout: 300 } })
  const limits = [undefined, 400, 100, 0]
  const calls = fates(
    ...limits.map((ackTimeout) => world.client.publish('t', 'x', { qos: 1, ackTimeout })),
  )
  for (const [time, pending] of [
    [99, 4],
    [1, 3],
    [199, 3],
    [1, 1],
    [99, 1],
    [1, 0],
  ] as const) {
    await world.clock.advance(time)
    expect(calls.filter((call) => call === 'pending')).toHaveLength(pending)
    if (pending === 3) expect(calls[2]).toBe('ERR_TIMEOUT unknown')
    if (pending === 1) expect(calls[1]).toBe('pending')
  }
})

it('ackTimeout: does not run while a publish waits for its place', async () => {
  const world = await stubbed(
    { keepAlive: false, outbound: { ackTimeout: 300 } },
    { receiveMaximum: 1 },
  )
  const first = world.client.publish('t', 'a', { qos: 1, ackTimeout: 10_000 })
  const calls = fates(first, world.client.publish('t', 'b', { qos: 1 }))
  await world.clock.advance(5000)
  await world.deliver(ack('puback', 1))
  await world.clock.advance(299)
  expect(calls).toEqual(['done', 'pending'])
  await world.clock.advance(1)
  expect(calls[1]).toBe('ERR_TIMEOUT unknown')
})

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
  await world.send({ type: 'puback', packetId: 2, reasonCode: 0 })
  await world.clock.advance(9_000)
  expect(world.seen('stalled')).toEqual([])
  await world.clock.advance(11_000)
  expect(world.seen('stalled')).toMatchObject([{ inFlight: 2 }])
  await world.send({ type: 'puback', packetId: 1, reasonCode: 0 })
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
