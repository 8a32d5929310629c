/** What waits to be sent: limits, what happens at them, and the way from offline to online. */
import { describe, expect, it } from 'vitest'
import type { OutboundOptions } from '../../../src/client/api/index.js'
import type { PublishPacket } from '../../../src/wire/packets.js'
import { ack, StubWorld, stubbed, watched } from './stub.js'

/** Payloads that are told apart by their first characters. */
const named = (name: string, size: number): string => name.padEnd(size, '.')

/** Connects a client that has publishes waiting. */
async function online(world: StubWorld): Promise<void> {
  const connecting = world.client.connect()
  await world.settle()
  world.forget()
  world.stub.deliver({ type: 'connack', sessionPresent: false, reasonCode: 0, properties: {} })
  await connecting
  await world.settle()
}

const sent = (world: StubWorld): string[] => world.stub.payloads.map((text) => text.replaceAll('.', ''))

describe('before the first connection', () => {
  it('QoS 0 is refused at once, QoS 1 and 2 are sent after CONNACK in the order of the calls', async () => {
    const world = new StubWorld()
    const zero = watched(world.client.publish('t', 'zero'))
    const calls = [1, 2, 1, 2].map((qos, index) => watched(world.client.publish('t', `${index}`, { qos: qos as 1 | 2 })))
    await world.settle()
    expect(zero.error).toMatchObject({ code: 'ERR_NOT_CONNECTED', outcome: 'not-sent', fault: 'local' })
    expect(world.client.outbound.size).toBe(4)
    await online(world)
    expect(sent(world)).toEqual(['0', '1', '2', '3'])
    await world.deliver(ack('puback', 1), ack('pubrec', 2), ack('puback', 3), ack('pubrec', 4), ack('pubcomp', 2), ack('pubcomp', 4))
    expect(calls.map((one) => one.state)).toEqual(['fulfilled', 'fulfilled', 'fulfilled', 'fulfilled'])
  })

  it('the policy of each QoS decides', async () => {
    for (const keep of [true, false]) {
      const policy = keep ? 'queue' : 'reject'
      const world = new StubWorld({ outbound: { offline: { qos0: policy, qos1: policy, qos2: policy } } })
      const calls = ([0, 1, 2] as const).map((qos) => watched(world.client.publish('t', `${qos}`, { qos })))
      await world.settle()
      expect(calls.map((one) => one.state)).toEqual(keep ? ['pending', 'pending', 'pending'] : ['rejected', 'rejected', 'rejected'])
      for (const one of calls) if (!keep) expect(one.error).toMatchObject({ code: 'ERR_NOT_CONNECTED', outcome: 'not-sent' })
      await online(world)
      expect(sent(world)).toEqual(keep ? ['0', '1', '2'] : [])
      expect(calls[0]?.state).toBe(keep ? 'fulfilled' : 'rejected')
    }
  })

  it('publishes made while connecting and in the `connect` event come after those before, class by class', async () => {
    const world = new StubWorld({ outbound: { offline: { qos0: 'queue' } } })
    for (const qos of [1, 0] as const) world.client.publish('t', `${qos}-before`, { qos })
    world.client.on('state', ({ state }) => {
      if (state === 'connected') for (const qos of [1, 0] as const) world.client.publish('t', `${qos}-state`, { qos })
    })
    world.client.on('connect', () => {
      for (const qos of [1, 0] as const) world.client.publish('t', `${qos}-event`, { qos })
    })
    await online(world)
    for (const qos of ['1', '0'])
      expect(sent(world).filter((text) => text.startsWith(qos))).toEqual([`${qos}-before`, `${qos}-state`, `${qos}-event`])
  })

  it('what can never be sent is refused at once, not queued', async () => {
    const world = new StubWorld()
    await expect(world.client.publish('a/#', 'x', { qos: 1 })).rejects.toMatchObject({ code: 'ERR_INVALID_TOPIC', outcome: 'not-sent' })
    await expect(world.client.publish('a', 'x', { qos: 1, properties: { responseTopic: '+' } })).rejects.toMatchObject({ code: 'ERR_INVALID_OPTION' })
    expect(world.client.outbound.size).toBe(0)
  })

  it('a first connection that fails settles everything as not sent', async () => {
    const world = new StubWorld()
    const call = watched(world.client.publish('t', 'x', { qos: 1 }))
    const connecting = watched(world.client.connect())
    await world.settle()
    world.stub.deliver({ type: 'connack', sessionPresent: false, reasonCode: 0x87, properties: {} })
    await world.settle()
    expect(connecting.error).toMatchObject({ code: 'ERR_CONNECT_REFUSED' })
    expect(call).toMatchObject({ state: 'rejected', settled: 1, error: { code: 'ERR_CONNECT_REFUSED', outcome: 'not-sent' } })
    expect(world.client.outbound.size).toBe(0)
  })
})

describe('a full queue', () => {
  /** Ten publishes of about 1,000 bytes before the first connection. */
  async function ten(outbound: OutboundOptions): Promise<{ world: StubWorld; states: string[]; codes: unknown[] }> {
    const world = new StubWorld({ outbound })
    const calls = Array.from({ length: 10 }, (_, index) => watched(world.client.publish('t', named(`${index}`, 1000), { qos: 1 })))
    await world.settle()
    const states = calls.map((one) => one.state)
    const codes = calls.map((one) => (one.error as { code?: string } | undefined)?.code)
    for (const one of calls) if (one.state === 'rejected') expect(one.error).toMatchObject({ outcome: 'not-sent', fault: 'local' })
    expect(world.drops.map(({ direction, topic, count }) => ({ direction, topic, count }))).toEqual(
      codes.filter((code) => code !== undefined).map(() => ({ direction: 'out', topic: 't', count: 1 })),
    )
    await online(world)
    return { world, states, codes }
  }

  it.each<[string, OutboundOptions]>([
    ['messages', { maxQueuedMessages: 4 }],
    // Four fit with any bookkeeping below 200 bytes a message.
    ['bytes', { maxQueuedBytes: 4900 }],
  ])("counted in %s, 'reject': the new ones", async (_, limit) => {
    const { world, codes } = await ten({ ...limit, overflow: 'reject' })
    expect(codes.slice(0, 4)).toEqual([undefined, undefined, undefined, undefined])
    expect(new Set(codes.slice(4))).toEqual(new Set(['ERR_QUEUE_FULL']))
    expect(sent(world)).toEqual(['0', '1', '2', '3'])
  })

  it.each<[string, OutboundOptions]>([
    ['messages', { maxQueuedMessages: 4 }],
    ['bytes', { maxQueuedBytes: 4900 }],
  ])("counted in %s, 'drop-newest': the new ones", async (_, limit) => {
    const { world, codes } = await ten({ ...limit, overflow: 'drop-newest' })
    expect(new Set(codes.slice(4))).toEqual(new Set(['ERR_DROPPED']))
    expect(sent(world)).toEqual(['0', '1', '2', '3'])
  })

  it.each<[string, OutboundOptions]>([
    ['messages', { maxQueuedMessages: 4 }],
    ['bytes', { maxQueuedBytes: 4900 }],
  ])("counted in %s, 'drop-oldest': the old ones", async (_, limit) => {
    const { world, codes } = await ten({ ...limit, overflow: 'drop-oldest' })
    expect(new Set(codes.slice(0, 6))).toEqual(new Set(['ERR_DROPPED']))
    expect(sent(world)).toEqual(['6', '7', '8', '9'])
  })

  it.each<[string, OutboundOptions]>([
    ['messages', { maxQueuedMessages: 4 }],
    ['bytes', { maxQueuedBytes: 4900 }],
  ])("counted in %s, 'wait' (the default): as many again, then the new ones", async (name, limit) => {
    const { world, codes } = await ten(limit)
    const kept = codes.filter((code) => code === undefined).length
    expect(name === 'messages' ? [8] : [8, 9]).toContain(kept)
    expect(new Set(codes.slice(kept))).toEqual(new Set(['ERR_QUEUE_FULL']))
    // What is in flight counts as well: the rest follows the acknowledgements.
    for (let id = 1; id <= kept; id++) await world.deliver(ack('puback', id))
    expect(sent(world)).toEqual(Array.from({ length: kept }, (_, index) => `${index}`))
  })

  it('the same limits hold while the transport or the quota makes them wait', async () => {
    const world = await stubbed({ outbound: { maxQueuedMessages: 2, overflow: 'reject' } }, { receiveMaximum: 1 })
    const calls = Array.from({ length: 5 }, (_, index) => watched(world.client.publish('t', `${index}`, { qos: 1 })))
    await world.settle()
    expect(calls.map((one) => one.state)).toEqual(['pending', 'pending', 'pending', 'rejected', 'rejected'])
    world.stub.takes = false
    world.client.post('fill', '')
    await world.settle()
    const zero = watched(world.client.publish('t', 'zero'))
    await world.settle()
    expect(zero.error).toMatchObject({ code: 'ERR_QUEUE_FULL', outcome: 'not-sent' })
  })

  it('a message that could never fit makes no other one leave', async () => {
    const world = new StubWorld({ outbound: { maxQueuedBytes: 5000, overflow: 'drop-oldest' } })
    const kept = [0, 1, 2].map((index) => watched(world.client.publish('t', named(`${index}`, 1000), { qos: 1 })))
    const huge = watched(world.client.publish('t', named('huge', 6000), { qos: 1 }))
    await world.settle()
    expect(huge.error).toMatchObject({ outcome: 'not-sent' })
    expect(kept.map((one) => one.state)).toEqual(['pending', 'pending', 'pending'])
  })

  it('maxQueuedBytes counts what was sent and not acknowledged', async () => {
    const world = await stubbed({ outbound: { maxQueuedBytes: 5000, overflow: 'reject' } })
    const calls = Array.from({ length: 50 }, (_, index) => watched(world.client.publish('t', named(`${index}`, 1000), { qos: 1 })))
    await world.settle()
    const open = calls.filter((one) => one.state === 'pending').length
    expect(open).toBeLessThanOrEqual(6)
    expect(calls.at(-1)?.error).toMatchObject({ code: 'ERR_QUEUE_FULL', outcome: 'not-sent' })
    await world.deliver(ack('puback', 1), ack('puback', 2))
    const next = watched(world.client.publish('t', named('next', 1000), { qos: 1 }))
    await world.settle()
    expect(next.state).toBe('pending')
  })

  describe('maxQueuedBytes', () => {
    const topics = ['a', 'b', 'c', 'd']
    /** The smallest limit at which these publishes are taken before the first connection. */
    function leastFor(count: number): number {
      for (let maxQueuedBytes = count * 1000; ; maxQueuedBytes++) {
        const world = new StubWorld({ outbound: { maxQueuedBytes, overflow: 'reject' } })
        for (const topic of topics.slice(0, count)) world.client.publish(topic, named(topic, 1000), { qos: 1 }).catch(() => undefined)
        if (world.client.outbound.size === count) return maxQueuedBytes
      }
    }
    const one = leastFor(1)

    it('holds what is exactly as large', () => {
      expect([leastFor(2), leastFor(3)]).toEqual([2 * one, 3 * one])
    })

    it.each([
      { userProperties: [['k', 'v'.repeat(2000)]] as [string, string][] },
      { correlationData: new Uint8Array(2000) },
      { responseTopic: 'r'.repeat(2000) },
      { contentType: 'c'.repeat(2000) },
    ])('counts properties: %o', async (properties) => {
      const world = new StubWorld({ outbound: { maxQueuedBytes: 2000, overflow: 'reject' } })
      const plain = watched(world.client.publish('t', 'x', { qos: 1 }))
      const large = watched(world.client.publish('t', 'x', { qos: 1, properties }))
      await world.settle()
      expect([plain.state, large.error]).toMatchObject(['pending', { code: 'ERR_QUEUE_FULL' }])
    })

    it.each([
      [3 * one, ['a', 'b', 'c']],
      [3 * one - 1, ['a', 'b']],
    ])('of %i bytes lets as many be under way as it holds', async (maxQueuedBytes, expected) => {
      const world = await stubbed({ outbound: { maxQueuedBytes, overflow: 'reject' } })
      const calls = topics.map((topic) => watched(world.client.publish(topic, named(topic, 1000), { qos: 1 })))
      await world.settle()
      expect(sent(world)).toEqual(expected)
      expect(calls.map(({ state }) => state)).toEqual(topics.map((topic) => (expected.includes(topic) ? 'pending' : 'rejected')))
    })

    it("under 'drop-oldest' counts what is under way: the oldest that waits goes where that makes exactly room", async () => {
      const world = await stubbed({ outbound: { maxQueuedBytes: 2 * one, overflow: 'drop-oldest' } }, { receiveMaximum: 1 })
      const calls = topics.map((topic) => watched(world.client.publish(topic, named(topic, 1000), { qos: 1 })))
      await world.settle()
      expect(calls.map(({ state }) => state)).toEqual(['pending', 'rejected', 'rejected', 'pending'])
    })
  })

  it('maxQueuedBytes is given back when a publish ends, however it ends', async () => {
    const world = await stubbed({ outbound: { maxQueuedBytes: 3000, overflow: 'reject' } }, { receiveMaximum: 1, maximumPacketSize: 2000 })
    for (let round = 0; round < 20; round++) {
      const abort = new AbortController()
      const one = watched(world.client.publish('t', named('a', 1000), { qos: 2 }))
      const two = watched(world.client.publish('t', named('b', 1000), { qos: 1, signal: abort.signal }))
      const three = watched(world.client.publish('t', named('c', 2500), { qos: 1 }))
      await world.settle()
      abort.abort()
      await world.deliver(ack('pubrec', round + 1, round % 2 === 0 ? 0x80 : 0))
      if (round % 2 === 1) await world.deliver(ack('pubcomp', round + 1))
      expect([one.state, two.state, three.error]).toMatchObject([
        round % 2 === 0 ? 'rejected' : 'fulfilled',
        'rejected',
        { code: 'ERR_PACKET_TOO_LARGE' },
      ])
      expect((two.error as { code: string }).code).toBe('ERR_ABORTED')
    }
  })
})

describe('the view', () => {
  it('outbound.size is live, and clear() gives up what was not sent', async () => {
    const world = await stubbed({}, { receiveMaximum: 1 })
    const { outbound } = world.client
    const calls = [0, 1, 2].map((index) => watched(world.client.publish('t', `${index}`, { qos: 1 })))
    await world.settle()
    expect(world.client.outbound.size).toBe(2)
    expect(outbound.size).toBe(2)
    outbound.clear()
    await world.settle()
    expect(outbound.size).toBe(0)
    expect(calls.map((one) => one.state)).toEqual(['pending', 'rejected', 'rejected'])
    expect(calls[1]?.error).toMatchObject({ code: 'ERR_DROPPED', outcome: 'not-sent' })
    await world.deliver(ack('puback', 1))
    expect(calls[0]?.state).toBe('fulfilled')
    expect(sent(world)).toEqual(['0'])
  })

  it('writable waits until a publish would find room', async () => {
    const world = new StubWorld({ outbound: { maxQueuedMessages: 2, overflow: 'reject', offline: { qos0: 'queue' } } })
    for (let index = 0; index < 2; index++) world.client.publish('t', 'x', { qos: 1 })
    const writable = watched(world.client.writable)
    await world.settle()
    expect(writable.state).toBe('pending')
    world.client.outbound.clear()
    await world.settle()
    expect(writable.state).toBe('fulfilled')
  })

  it("a loop of writable and publish never runs into the limit, under 'reject' too", async () => {
    const world = await stubbed({ outbound: { maxQueuedMessages: 3, overflow: 'reject' } }, { receiveMaximum: 2 })
    const results: { state: string }[] = []
    const loop = async (): Promise<void> => {
      for (let index = 0; index < 20; index++) {
        await world.client.writable
        results.push(watched(world.client.publish('t', `${index}`, { qos: 1 })))
      }
    }
    const done = watched(loop())
    await world.settle()
    for (let id = 1; id <= 20; id++) await world.deliver(ack('puback', id))
    expect(done.state).toBe('fulfilled')
    expect(results.map((one) => one.state)).toEqual(results.map(() => 'fulfilled'))
    expect(sent(world)).toEqual(Array.from({ length: 20 }, (_, index) => `${index}`))
  })
})

describe('message expiry while queued', () => {
  it('[MQTT-3.3.2-6] the interval goes down by the whole seconds that it waited, and what ran out is dropped', async () => {
    const world = new StubWorld()
    const properties = { messageExpiryInterval: 10, contentType: 'c' }
    const short = watched(world.client.publish('t', 'short', { qos: 1, properties: { messageExpiryInterval: 3 } }))
    const long = watched(world.client.publish('t', 'long', { qos: 1, properties }))
    const none = watched(world.client.publish('t', 'none', { qos: 1 }))
    await world.clock.advance(4000)
    await online(world)
    expect(short.error).toMatchObject({ code: 'ERR_EXPIRED', outcome: 'not-sent' })
    expect([long.state, none.state]).toEqual(['pending', 'pending'])
    expect(world.stub.packets.map((packet) => (packet as PublishPacket).properties)).toMatchObject([
      { messageExpiryInterval: 6, contentType: 'c' },
      {},
    ])
    expect(properties).toEqual({ messageExpiryInterval: 10, contentType: 'c' })
  })

  it('while it waits for quota as well; what is sent at once keeps its interval', async () => {
    const world = await stubbed({}, { receiveMaximum: 1 })
    world.client.publish('t', 'first', { qos: 1, properties: { messageExpiryInterval: 10 } })
    world.client.publish('t', 'second', { qos: 1, properties: { messageExpiryInterval: 10 } })
    await world.clock.advance(7000)
    await world.deliver(ack('puback', 1))
    const publishes = world.stub.packets.filter((packet): packet is PublishPacket => packet.type === 'publish')
    expect(publishes.map((packet) => packet.properties.messageExpiryInterval)).toEqual([10, 3])
  })
})
