/** Whatever happens, every publish settles once, and what it says of the message's fate is true. */
import { describe, expect, it } from 'vitest'
import type { QoS } from '../../../src/wire/packets.js'
import { accepting, agreeable, connected, World } from './harness.js'
import { ack, StubWorld, stubbed, watched } from './stub.js'
import { unhandledInFile } from './unhandled.js'

const unhandled = unhandledInFile()

const run: readonly { topic: string; qos: QoS; size: number }[] = Array.from({ length: 12 }, (_, index) => ({
  topic: `t/${index}`,
  qos: ([1, 2, 1, 0, 2, 1] as const)[index % 6] as QoS,
  size: index * 3,
}))

/** Publishes the run over a pair that is cut after so many bytes in one direction; tells what came of it. */
async function cutAfter(drop: number, direction: 'forward' | 'backward', receiveMaximum: number): Promise<{ world: World; cut: boolean }> {
  const world = new World({}, { split: 7, [direction]: { drop } })
  world.answer = (packet) => (packet.type === 'connect' ? accepting({ receiveMaximum })(packet) : agreeable(packet))
  const ended = (): boolean => world.client.state === 'closed'
  const connecting = watched(world.client.connect())
  await world.settle()
  if (connecting.state === 'rejected' || ended()) return { world, cut: true }
  const calls = run.map(({ topic, qos, size }) => watched(world.client.publish(topic, new Uint8Array(size), { qos })))
  await world.settle()
  const cut = ended()
  const seen = new Set(world.peer.all('publish').map((packet) => packet.topic))
  for (const [index, call] of calls.entries()) {
    const { topic, qos } = run[index] as (typeof run)[number]
    expect(call.settled).toBe(1)
    if (call.state === 'fulfilled') {
      if (qos > 0) expect(seen.has(topic)).toBe(true)
      continue
    }
    expect(cut).toBe(true)
    const { code, outcome } = call.error as { code: string; outcome: string }
    expect(code).toBe('ERR_CONNECTION_LOST')
    expect(['not-sent', 'unknown']).toContain(outcome)
    if (outcome === 'not-sent') {
      expect(seen.has(topic)).toBe(false)
      expect(Buffer.from(world.peer.bytes).includes(topic)).toBe(false)
    }
  }
  // Nothing was sent twice, and only what has a place was sent.
  expect(world.peer.all('publish')).toHaveLength(seen.size)
  return { world, cut }
}

describe('the connection is cut', () => {
  it.each([1, 3, 65_535])('at every byte that we send, Receive Maximum %i', async (receiveMaximum) => {
    let drop = 1
    let outcomes = 0
    for (let cut = true; cut; drop++) {
      const result = await cutAfter(drop, 'forward', receiveMaximum)
      cut = result.cut
      outcomes += 1
    }
    // CONNECT, twelve publishes and six PUBRELs have far more bytes than this.
    expect(outcomes).toBeGreaterThan(200)
  })

  it.each([1, 65_535])('at every byte that the server sends, Receive Maximum %i', async (receiveMaximum) => {
    let drop = 1
    for (let cut = true; cut; drop++) cut = (await cutAfter(drop, 'backward', receiveMaximum)).cut
    expect(drop).toBeGreaterThan(50)
  })

  it('what was never handed over says not-sent, what is in flight says unknown', async () => {
    const world = await connected({}, accepting({ receiveMaximum: 2 }))
    const calls = [1, 2, 1, 2].map((qos, index) => watched(world.client.publish(`t/${index}`, 'x', { qos: qos as QoS })))
    await world.settle()
    await world.send(ack('pubrec', 2))
    world.peer.cut()
    await world.settle()
    expect(calls.map((one) => one.error)).toMatchObject([
      { code: 'ERR_CONNECTION_LOST', outcome: 'unknown', fault: 'remote' },
      { code: 'ERR_CONNECTION_LOST', outcome: 'unknown' },
      { code: 'ERR_CONNECTION_LOST', outcome: 'not-sent' },
      { code: 'ERR_CONNECTION_LOST', outcome: 'not-sent' },
    ])
    expect(calls.every((one) => one.settled === 1)).toBe(true)
    expect(world.client.outbound.size).toBe(0)
  })

  it.each([
    ['by reference', new Uint8Array(40_000), {}],
    ['flush: true', new Uint8Array(4), { flush: true }],
  ] as const)('QoS 0 that was not written (%s) says unknown', async (_, payload, options) => {
    const world = await stubbed()
    world.stub.holds = true
    const call = watched(world.client.publish('t', payload, options))
    await world.settle()
    world.stub.destroy(new Error('gone'))
    await world.settle()
    expect(call).toMatchObject({ state: 'rejected', settled: 1, error: { code: 'ERR_CONNECTION_LOST', outcome: 'unknown' } })
    expect(world.drops).toMatchObject([{ direction: 'out', topic: 't', error: { code: 'ERR_CONNECTION_LOST' } }])
  })

  it('a DISCONNECT of the server is the reason for all of them', async () => {
    const world = await connected({}, accepting({ receiveMaximum: 1 }))
    const calls = [0, 1].map(() => watched(world.client.publish('t', 'x', { qos: 1 })))
    await world.settle()
    await world.send({ type: 'disconnect', reasonCode: 0x8b, properties: { reasonString: 'bye' } })
    expect(calls.map((one) => one.error)).toMatchObject([
      { code: 'ERR_SERVER_DISCONNECT', outcome: 'unknown', reasonCode: 0x8b, reasonString: 'bye' },
      { code: 'ERR_SERVER_DISCONNECT', outcome: 'not-sent', reasonCode: 0x8b },
    ])
  })
})

describe('the client is closed', () => {
  it.each(['disconnect', 'destroy'] as const)('%s: each pending publish rejects once with ERR_CLOSED', async (how) => {
    const world = await connected({}, accepting({ receiveMaximum: 1 }))
    const calls = [1, 2].map((qos) => watched(world.client.publish('t', 'x', { qos: qos as QoS })))
    await world.settle()
    if (how === 'destroy') world.client.destroy()
    else world.client.disconnect({ timeout: 0 })
    await world.settle()
    expect(calls).toMatchObject([
      { settled: 1, error: { code: 'ERR_CLOSED', outcome: 'unknown', fault: 'local' } },
      { settled: 1, error: { code: 'ERR_CLOSED', outcome: 'not-sent', fault: 'local' } },
    ])
  })

  it('afterwards every publish is refused, and nobody is told of a drop', async () => {
    const world = await stubbed()
    world.client.destroy()
    await world.settle()
    const drops = world.drops.length
    for (const qos of [0, 1, 2] as const)
      await expect(world.client.publish('t', 'x', { qos })).rejects.toMatchObject({ code: 'ERR_CLOSED', outcome: 'not-sent' })
    expect(world.drops).toHaveLength(drops)
  })

  it('publish is accepted while a turn still runs in disconnect()', async () => {
    const world = await connected({}, agreeable)
    let inHand: (() => void) | undefined
    const results: unknown[] = []
    const listening = world.client.listen(
      's',
      async () => {
        await new Promise<void>((resolve) => {
          inHand = resolve
        })
        results.push(world.client.state, (await world.client.publish('r', 'done', { qos: 1 })).reasonCode)
      },
      { qos: 1 },
    )
    await world.settle()
    await listening
    await world.send({ type: 'publish', topic: 's', qos: 1, packetId: 5, payload: Uint8Array.of(1) })
    const stopping = watched(world.client.disconnect())
    await world.settle()
    expect(world.client.state).toBe('disconnecting')
    inHand?.()
    await world.settle()
    expect(results).toEqual(['disconnecting', 0])
    expect(stopping.state).toBe('fulfilled')
    expect(world.peer.received.map((packet) => packet.type).slice(-3)).toEqual(['publish', 'puback', 'disconnect'])
  })

  it('disconnect({ timeout: 0 }) settles publishes that wait to be written within 50 ms', async () => {
    const world = await stubbed()
    world.stub.holds = true
    world.stub.takes = false
    const calls = [
      world.client.publish('t', 'x', { flush: true }),
      world.client.publish('t', new Uint8Array(40_000)),
      world.client.publish('t', 'x', { qos: 1 }),
      world.client.flush(),
    ].map((promise) => watched<unknown>(promise))
    await world.settle()
    const stopping = watched(world.client.disconnect({ timeout: 0 }))
    await world.clock.advance(50)
    expect(stopping.state).toBe('fulfilled')
    expect(calls.map((one) => one.state)).toEqual(['rejected', 'rejected', 'rejected', 'rejected'])
  })
})

describe('failures that nobody awaits', () => {
  it('raise `drop`, once each, with topic and error, and never an unhandled rejection', async () => {
    const world = await stubbed(
      { outbound: { maxQueuedMessages: 1, overflow: 'reject' } },
      { receiveMaximum: 1, maximumPacketSize: 64, maximumQoS: 1, retainAvailable: 0 },
    )
    world.client.publish('refused', 'x', { qos: 1 })
    world.client.publish('large', new Uint8Array(100), { qos: 1 })
    world.client.publish('large0', new Uint8Array(100))
    world.client.publish('qos', 'x', { qos: 2 })
    world.client.publish('retain', 'x', { retain: true })
    world.client.publish('cut', 'x', { qos: 1 })
    world.client.publish('full', 'x', { qos: 1 })
    await world.settle()
    await world.deliver(ack('puback', 1, 0x87))
    world.stub.destroy(new Error('gone'))
    await world.settle()
    await new Promise((resolve) => setImmediate(resolve))
    const told = Object.fromEntries(world.drops.map(({ topic, error }) => [topic, error?.code]))
    expect(told).toEqual({
      refused: 'ERR_PUBLISH_REFUSED',
      large: 'ERR_PACKET_TOO_LARGE',
      large0: 'ERR_PACKET_TOO_LARGE',
      qos: 'ERR_QOS_UNSUPPORTED',
      retain: 'ERR_RETAIN_UNSUPPORTED',
      cut: 'ERR_CONNECTION_LOST',
      full: 'ERR_QUEUE_FULL',
    })
    expect(world.drops).toHaveLength(7)
    expect(world.drops.every(({ direction, count }) => direction === 'out' && count === 1)).toBe(true)
    expect(unhandled).toEqual([])
  })

  it('are silent for every other promise of sending, too', async () => {
    const world = new StubWorld()
    world.client.publish('t', 'x')
    world.client.publish('', 'x')
    world.client.publish('t', 'x', { signal: AbortSignal.abort() })
    await world.connect()
    world.stub.takes = false
    world.client.post('t', 'fill')
    await world.settle()
    void world.client.writable
    world.stub.destroy(new Error('gone'))
    await world.settle()
    await new Promise((resolve) => setImmediate(resolve))
    expect(unhandled).toEqual([])
  })

  it('errors name neither payload nor properties', async () => {
    const world = await stubbed({}, { maximumPacketSize: 30 })
    const call = watched(world.client.publish('t', 'secret'.repeat(10), { properties: { contentType: 'private' } }))
    await world.settle()
    expect(String((call.error as Error).message)).not.toMatch(/secret|private/)
  })
})
