/** Large payloads over a line that is slower than the program: whose memory leaves, what stands between packets, and when a peer counts as dead. */
import { describe, expect, it } from 'vitest'
import type { ClientOptions } from '../../../src/client/api/index.js'
import { constant } from '../../../src/client/parsing/backoff.js'
import type { PublishPacket } from '../../../src/wire/packets.js'
import { agreeable, connected, failure, World } from './harness.js'
import { type Line, SlowLink } from './slow-link.js'
import { watched } from './stub.js'

const megabyte = 1_000_000

interface Upload {
  readonly world: World
  readonly links: SlowLink[]
  readonly link: SlowLink
}

/** Connected over a slow line; each later connection gets one like it. */
async function uploading(options: ClientOptions, line: Line): Promise<Upload> {
  const links: SlowLink[] = []
  const world: World = new World({ keepAlive: false, ...options }, {}, 1, () => {
    const link = new SlowLink(world.clock, line, agreeable)
    links.push(link)
    return link
  })
  await Promise.all([world.client.connect(), world.clock.advance(1000)])
  return { world, links, link: links[0] as SlowLink }
}

/** What a publish arrived as: its length, and the bytes that it is made of. */
function content({ payload }: PublishPacket): { length: number; of: string } {
  return { length: payload.length, of: String.fromCharCode(...new Set(payload)) }
}

function publishes({ packets }: SlowLink): { length: number; of: string }[] {
  return packets.flatMap((packet) => (packet.type === 'publish' ? [content(packet)] : []))
}

const A = 'A'.charCodeAt(0)
const B = 'B'.charCodeAt(0)

describe('what the caller writes into its memory after a publish has settled never leaves', () => {
  const size = 3 * megabyte

  it.each([0, 1, 2] as const)('QoS %i: aborted in the middle of its packet, which goes on', async (qos) => {
    const { world, link } = await uploading({}, { rate: megabyte })
    const payload = new Uint8Array(size).fill(A)
    const abort = new AbortController()
    const call = watched(world.client.publish('a', payload, { qos, signal: abort.signal }))
    await world.clock.advance(100)
    expect(link.packets).toHaveLength(1)
    abort.abort()
    payload.fill(B)
    await world.settle()
    expect(call.error).toMatchObject({ code: 'ERR_ABORTED', outcome: 'unknown' })
    await world.clock.advance(5000)
    expect(publishes(link)).toEqual([{ length: size, of: 'A' }])
    expect(world.client.state).toBe('connected')
    expect(world.client.outbound.size).toBe(0)
  })

  it.each([1, 2] as const)('QoS %i: ackTimeout', async (qos) => {
    const { world, link } = await uploading({}, { rate: megabyte })
    const payload = new Uint8Array(size).fill(A)
    const call = world.client.publish('a', payload, { qos, ackTimeout: 200 }).catch(() => payload.fill(B))
    await world.clock.advance(5000)
    await call
    expect(publishes(link)).toEqual([{ length: size, of: 'A' }])
  })

  it('request timeout', async () => {
    const { world, link } = await uploading({}, { rate: megabyte })
    const payload = new Uint8Array(size).fill(A)
    const call = world.client.request('a', payload, { timeout: 500 }).catch(() => payload.fill(B))
    await world.clock.advance(6000)
    await call
    expect(payload[0]).toBe(B)
    expect(publishes(link)).toEqual([{ length: size, of: 'A' }])
  })

  it('post()', async () => {
    const { world, link } = await uploading({}, { rate: megabyte })
    const payload = new Uint8Array(size).fill(A)
    expect(world.client.post('a', payload)).toBe(true)
    payload.fill(B)
    await world.clock.advance(5000)
    expect(publishes(link)).toEqual([{ length: size, of: 'A' }])
  })

  it.each([0, 1] as const)('QoS %i: disconnect({ timeout: 0 }) lets the packet and DISCONNECT leave, if that takes no second', async (qos) => {
    const { world, link } = await uploading({}, { rate: megabyte })
    const payload = new Uint8Array(800_000).fill(A)
    const call = world.client.publish('a', payload, { qos }).catch(() => payload.fill(B))
    await world.clock.advance(50)
    await Promise.all([world.client.disconnect({ timeout: 0 }), world.settle()])
    await call
    expect(payload[0]).toBe(B)
    await world.clock.advance(5000)
    expect(publishes(link)).toEqual([{ length: 800_000, of: 'A' }])
    expect(link.types.at(-1)).toBe('disconnect')
    expect(world.clock.pending).toBe(0)
  })

  it('disconnect({ timeout: 0 }) and more than that: the link is cut, and nothing else arrives', async () => {
    const { world, link } = await uploading({}, { rate: megabyte })
    const payload = new Uint8Array(size).fill(A)
    world.client.publish('a', payload).catch(() => payload.fill(B))
    await world.clock.advance(50)
    await Promise.all([world.client.disconnect({ timeout: 0 }), world.settle()])
    await world.clock.advance(10_000)
    expect(link.types).toEqual(['connect'])
    expect(link.destroyed).toBeDefined()
    expect(world.clock.pending).toBe(0)
  })

  it.each([0, 1] as const)('QoS %i: destroy()', async (qos) => {
    const { world, link } = await uploading({}, { rate: megabyte })
    const payload = new Uint8Array(size).fill(A)
    const call = world.client.publish('a', payload, { qos }).catch(() => payload.fill(B))
    await world.clock.advance(100)
    world.client.destroy()
    await call
    await world.clock.advance(5000)
    expect(link.types).toEqual(['connect'])
  })

  it.each(['puback', 'pubrec'] as const)('%s with an error before the last byte', async (type) => {
    const { world, link } = await uploading({}, { rate: megabyte })
    const payload = new Uint8Array(size).fill(A)
    const call = world.client.publish('a', payload, { qos: type === 'puback' ? 1 : 2 }).catch(() => payload.fill(B))
    await world.clock.advance(100)
    link.answer = () => undefined
    link.feed({ type, packetId: 1, reasonCode: 0x97, properties: {} })
    await call
    await world.clock.advance(5000)
    expect(publishes(link)).toEqual([{ length: size, of: 'A' }])
  })

  it.each([1, 2] as const)('QoS %i: aborted while it is sent again on the next connection', async (qos) => {
    const { world, links } = await uploading({ reconnect: { backoff: () => 100 }, clientId: 'c', cleanStart: false }, { rate: megabyte })
    const payload = new Uint8Array(size).fill(A)
    const abort = new AbortController()
    const call = watched(world.client.publish('a', payload, { qos, signal: abort.signal }))
    const resumes = (link: SlowLink | undefined): void => {
      if (link !== undefined)
        link.answer = (packet) =>
          packet.type === 'connect' ? { type: 'connack', sessionPresent: true, reasonCode: 0, properties: {} } : agreeable(packet)
    }
    await world.clock.advance(100)
    links[0]?.destroy(new Error('cut'))
    await world.clock.advance(100)
    resumes(links[1])
    await world.clock.advance(500)
    expect(world.client.state).toBe('connected')
    abort.abort()
    payload.fill(B)
    await world.clock.advance(6000)
    expect(call.error).toMatchObject({ code: 'ERR_ABORTED' })
    expect(publishes(links[1] as SlowLink)).toEqual([{ length: size, of: 'A' }])
  })

  it.each([0, 1] as const)(
    'QoS %i: what is over `maxQueuedBytes` is not copied: the link is cut, and made again without that message',
    async (qos) => {
      const { world, links } = await uploading(
        { reconnect: { backoff: () => 100 }, clientId: 'c', sessionExpiryInterval: 60, outbound: { maxQueuedBytes: 2 * megabyte } },
        { rate: megabyte },
      )
      const payload = new Uint8Array(size).fill(A)
      const abort = new AbortController()
      const call = watched(world.client.publish('a', payload, { qos, signal: abort.signal }))
      const next = watched(world.client.publish('b', 'next', { qos: 1 }))
      await world.clock.advance(100)
      abort.abort()
      payload.fill(B)
      await world.settle()
      expect(call.error).toMatchObject({ code: 'ERR_ABORTED', outcome: 'unknown' })
      const again = links[1]
      if (again !== undefined) again.answer = agreeable
      await world.clock.advance(1000)
      expect(links).toHaveLength(2)
      expect(links[0]?.destroyed?.cause).toMatchObject({ code: 'ERR_CONNECTION_LOST' })
      expect(publishes(links[0] as SlowLink)).toEqual([])
      expect(publishes(links[1] as SlowLink).map(({ length }) => length)).toEqual([4])
      expect(next.state).toBe('fulfilled')
    },
  )

  it('a payload that is detached in the middle of its packet ends the link, and nothing throws', async () => {
    const { world, link } = await uploading({}, { rate: megabyte })
    const payload = new Uint8Array(size).fill(A)
    const call = watched(world.client.publish('a', payload))
    await world.clock.advance(100)
    structuredClone(payload, { transfer: [payload.buffer] })
    await world.clock.advance(5000)
    expect(link.destroyed).toBeDefined()
    expect(call.error).toMatchObject({ outcome: 'unknown' })
    expect(await world.client.closed).toMatchObject({ code: 'ERR_CONNECTION_LOST' })
  })
})

describe('packets on a slow line', () => {
  it('nothing stands between the slices of one, and what controls the connection goes before the next', async () => {
    const { world, link } = await uploading({}, { rate: megabyte })
    const subscribing = world.client.subscribe('in', { qos: 1 })
    await world.clock.advance(1000)
    const subscription = await subscribing
    const large = [1, 2].map((qos) => watched(world.client.publish('a', new Uint8Array(megabyte).fill(A), { qos: qos as 1 | 2 })))
    await world.clock.advance(300)
    link.feed({ type: 'publish', topic: 'in', payload: Uint8Array.of(1), qos: 1, packetId: 7 })
    expect(subscription.read()).toBeDefined()
    subscription.read()
    const other = world.client.subscribe('other')
    await world.clock.advance(4000)
    await other
    expect(link.types).toEqual(['connect', 'subscribe', 'publish', 'puback', 'subscribe', 'publish', 'pubrel'])
    expect(large.map(({ state }) => state)).toEqual(['fulfilled', 'fulfilled'])
  })

  it('acknowledgements that a flooding peer is owed behind a large packet are bounded by the memory budget', async () => {
    const { world, link } = await uploading({ memoryBudget: 3 * megabyte }, { rate: megabyte, kernel: 64 * 1024 })
    watched(world.client.publish('a', new Uint8Array(12 * megabyte)))
    await world.settle()
    link.rate = 0
    const pubrecs = Uint8Array.from(Array.from({ length: 16_000 }, (_, at) => [0x50, 2, (at + 1) >> 8, (at + 1) & 255]).flat())
    for (let read = 0; read < 60 && link.destroyed === undefined; read++) {
      link.feedBytes(pubrecs)
      await world.settle()
    }
    expect(await world.client.closed).toMatchObject({ code: 'ERR_CONNECTION_LOST', message: expect.stringContaining('reads nothing') as string })
  })

  it('a transport that takes everything and tells late what has left is given slices up to a mebibyte, and the rest as they leave', async () => {
    const { world, link } = await uploading({}, { rate: megabyte })
    const write = link.write.bind(link)
    let [handed, most] = [0, 0]
    link.write = (bytes, written) => {
      handed += bytes.length
      most = Math.max(most, handed)
      write(bytes, (error) => {
        handed -= bytes.length
        written?.(error)
      })
      return true
    }
    const call = watched(world.client.publish('a', new Uint8Array(3 * megabyte).fill(A), { qos: 1 }))
    await world.clock.advance(4000)
    expect(call.state).toBe('fulfilled')
    expect(most).toBeGreaterThan(900_000)
    expect(most).toBeLessThan(1_200_000)
    expect(publishes(link)).toEqual([{ length: 3 * megabyte, of: 'A' }])
  })
})

describe('who is dead', () => {
  it.each([0, 1, 2] as const)('QoS %i: nobody who reads all the time, however long a packet takes, and answers PINGREQ', async (qos) => {
    const { world, link } = await uploading({ keepAlive: 3 }, { rate: megabyte })
    const call = watched(world.client.publish('a', new Uint8Array(12 * megabyte), { qos }))
    await world.clock.advance(20_000)
    expect(call.state).toBe('fulfilled')
    expect(world.client.state).toBe('connected')
    expect(link.types.filter((type) => type === 'pingreq').length).toBeGreaterThan(1)
  })

  it('nobody over whose line a full buffer takes longer than pingTimeout: PINGREQ is behind it', async () => {
    const { world, link } = await uploading({ keepAlive: 30 }, { rate: 100_000, kernel: 2_500_000 })
    const call = watched(world.client.publish('a', new Uint8Array(6 * megabyte), { qos: 1 }))
    await world.clock.advance(70_000)
    expect(call.state).toBe('fulfilled')
    expect(link.destroyed).toBeUndefined()
    expect(link.types).toContain('pingreq')
  })

  it('whoever stops reading in the middle of a packet: found within keepAlive + pingTimeout', async () => {
    const { world, link } = await uploading({ keepAlive: 30 }, { rate: megabyte })
    watched(world.client.publish('a', new Uint8Array(90 * megabyte)))
    await world.clock.advance(5000)
    link.rate = 0
    const since = world.clock.now()
    await world.clock.advance(60_000)
    expect((link.destroyed?.at ?? Number.POSITIVE_INFINITY) - since).toBeLessThanOrEqual(40_000)
    expect(await world.client.closed).toMatchObject({ code: 'ERR_KEEPALIVE_TIMEOUT', message: 'the server stopped reading' })
  })

  it('the same over a transport that says it takes everything', async () => {
    const { world, link } = await uploading({ keepAlive: 30 }, { rate: megabyte })
    link.write = () => true
    watched(world.client.publish('a', new Uint8Array(9 * megabyte)))
    const since = world.clock.now()
    await world.clock.advance(60_000)
    expect((link.destroyed?.at ?? Number.POSITIVE_INFINITY) - since).toBeLessThanOrEqual(40_000)
  })

  it.each([100, 20_000, 200_000, 2_000_000])(
    'a dead line under post() of %i bytes every 100 ms: found within keepAlive + pingTimeout',
    async (size) => {
      const { world, link } = await uploading({ keepAlive: 10 }, { rate: megabyte, kernel: 2_500_000 })
      await world.clock.advance(3000)
      link.rate = 0
      const since = world.clock.now()
      for (let round = 0; round < 300 && link.destroyed === undefined; round++) {
        world.client.post('a', new Uint8Array(size))
        await world.clock.advance(100)
      }
      expect((link.destroyed?.at ?? Number.POSITIVE_INFINITY) - since).toBeLessThanOrEqual(15_000)
    },
  )

  it('a dead line under large publishes now and then, which a free buffer swallows', async () => {
    const { world, link } = await uploading({ keepAlive: 10 }, { rate: megabyte, kernel: 2_500_000 })
    link.rate = 0
    const since = world.clock.now()
    for (let round = 0; round < 20 && link.destroyed === undefined; round++) {
      watched(world.client.publish('a', new Uint8Array(400_000)))
      await world.clock.advance(4000)
    }
    expect((link.destroyed?.at ?? Number.POSITIVE_INFINITY) - since).toBeLessThanOrEqual(15_000)
  })
})

it('no `stalled` while a large message is on its way to a server that reads', async () => {
  const { world } = await uploading({}, { rate: megabyte })
  const call = watched(world.client.publish('a', new Uint8Array(20 * megabyte), { qos: 1 }))
  await world.clock.advance(30_000)
  expect(call.state).toBe('fulfilled')
  expect(world.seen('stalled')).toEqual([])
})

it('`stalled` once a large message has left and nothing is acknowledged', async () => {
  const { world, link } = await uploading({}, { rate: megabyte })
  link.answer = () => undefined
  watched(world.client.publish('a', new Uint8Array(12 * megabyte), { qos: 1 }))
  await world.clock.advance(12_000)
  expect(world.seen('stalled')).toEqual([])
  await world.clock.advance(20_000)
  expect(world.seen('stalled')).toMatchObject([{ direction: 'out', inFlight: 1 }])
})

describe('when byte quota comes free, what waits for it leaves', () => {
  it('publish, flush() and drain() settle at QoS 0, without a packet of the peer', async () => {
    const { world } = await uploading({}, { rate: 10 * megabyte })
    const calls = [900_000, 16_500_000, 10].map((size) => watched(world.client.publish('a', new Uint8Array(size))))
    const flushed = watched(world.client.flush())
    await world.clock.advance(3000)
    expect(calls.map(({ state }) => state)).toEqual(['fulfilled', 'fulfilled', 'fulfilled'])
    expect(flushed.state).toBe('fulfilled')
    watched(world.client.publish('a', new Uint8Array(900_000)))
    watched(world.client.publish('a', new Uint8Array(16_500_000)))
    const drained = watched(world.client.drain())
    await world.clock.advance(3000)
    expect(drained.state).toBe('fulfilled')
  })

  it.each(['abort', 'ttl'] as const)('also when what stood in front ends without being sent: %s', async (how) => {
    const { world, link } = await uploading({ outbound: { maxQueuedBytes: megabyte } }, { rate: megabyte })
    link.answer = () => undefined
    watched(world.client.publish('a', new Uint8Array(600_000), { qos: 1 }))
    await world.clock.advance(1000)
    const abort = new AbortController()
    const front = watched(
      world.client.publish('a', new Uint8Array(700_000), { qos: 1, signal: abort.signal, ...(how === 'ttl' ? { ttl: 100 } : {}) }),
    )
    const next = world.client.publish('a', 'next', { qos: 1 })
    watched(next)
    if (how === 'abort') abort.abort()
    await world.clock.advance(200)
    expect(front.state).toBe('rejected')
    expect(publishes(link).map(({ length }) => length)).toEqual([600_000, 4])
  })
})

describe('a publish whose promise has settled before it is sent anew', () => {
  it('the acknowledgement is late, the session is gone: what leaves are the bytes that were given', async () => {
    const outbound = { ackTimeout: 500, onSessionLost: 'republish' } as const
    const world = await connected({ keepAlive: false, sessionExpiryInterval: 0, reconnect: { backoff: constant(1000) }, outbound })
    const bytes = new TextEncoder().encode('mine')
    const late = failure(world.client.publish('t', bytes, { qos: 2 }))
    await world.settle()
    world.answer = agreeable
    world.peer.cut()
    // Nobody keeps that session: it goes to the queue again, and its time is over there.
    await world.clock.advance(999)
    expect(await late).toMatchObject({ code: 'ERR_TIMEOUT', outcome: 'unknown' })
    bytes.fill(0x21)
    await world.clock.advance(1000)
    expect(world.peer.all('publish').map(({ payload }) => new TextDecoder().decode(payload))).toEqual(['mine'])
  })
})
