/** Large payloads: read to where they are to stay, and written over a line that is slower than the program. */
import { describe, expect, it } from 'vitest'
import type { ClientOptions } from '../../../src/client/options/index.js'
import { WasmFrames } from '../../../src/wasm/frames.js'
import type { PacketInput } from '../../../src/wire/encode.js'
import type { FrameScanner } from '../../../src/wire/frames.js'
import { instantiate } from '../wasm/scanner.js'
import { willing } from './across.js'
import { agreeable, failure, times, World } from './harness.js'
import { acks, bytesOf, pubacks, publish, quiet, subscribe, taken } from './incoming.js'
import { type Line, SlowLink } from './slow-link.js'
import { listen, settled, sleep } from './steps.js'
import { watched } from './stub.js'
import { windowed } from './windowed.js'

const big = (letter: string, size: number, id: number): PacketInput =>
  publish('a', letter.repeat(size), id, { properties: { contentType: `t${letter}` } })

function inWebAssembly(): FrameScanner {
  const memory = instantiate()
  return { window: memory.window, frames: (options) => new WasmFrames(memory, options) }
}

describe.each<[string, () => FrameScanner | false]>([
  ['without a scanner', () => false],
  ['with the scanner in WebAssembly', inWebAssembly],
])('%s', (_how, scanner) => {
  it.each(['owned', 'borrowed'] as const)('among small ones: %s', async (lifetime) => {
    const rig = await windowed({ receiveMaximum: 65_535, scanner: scanner() })
    const seen: string[] = []
    await listen(
      rig.world,
      'a',
      (message) =>
        void seen.push(
          `${message.payloadLength} ${message.text().slice(0, 3)} ${message.properties.contentType ?? '-'}`,
        ),
      { qos: 1, lifetime },
    )
    await rig.busy()
    const small = (text: string, id: number): PacketInput => publish('a', text, id)
    await rig.send(
      small('one', 1),
      big('b', 100_000, 2),
      small('two', 3),
      big('c', 300_000, 4),
      big('d', 20_000, 5),
      small('end', 6),
    )
    const lines = '3 one -,100000 bbb tb,3 two -,300000 ccc tc,20000 ddd td,3 end -'
    expect(seen.join()).toBe(lines)
    expect(acks(rig.world)).toEqual(pubacks(1, 6))
  })

  it('one behind the other, larger than a window: of all but the first, a sixteenth and a little is read before there is a place for it', async () => {
    const rig = await windowed({ scanner: scanner() })
    const subscription = await subscribe(rig.world, 'a', { buffer: 100 })
    await rig.busy()
    const link = rig.connections[0] as (typeof rig.connections)[number]
    const before = link.windows.length
    const whole = link.latest?.length ?? 0
    const size = 2 * whole
    await rig.send(
      ...times(3, () => publish('a', 'z'.repeat(size))),
      publish('a', 'end'),
      publish('a', 'more'),
    )
    const lengths = times(5, () => taken(subscription).payloadLength)
    expect(lengths).toEqual([size, size, size, 'end'.length, 'more'.length])
    const given = link.windows.slice(before).map(({ length }) => length)
    const peek = size / 16 + 512
    // The beginning of each in a window, the rest in its place.
    expect(given.filter((length) => length === peek)).toHaveLength(3)
    expect(given.filter((length) => length < whole && length !== peek)).toEqual([])
    expect(link.latest?.length).toBe(whole)
  })

  it('cut off in its midst: nothing of it is left, and the next connection reads on', async () => {
    const rig = await windowed({ reconnect: { backoff: () => 10 }, scanner: scanner() })
    const subscription = await subscribe(rig.world, 'a', { qos: 1 })
    await rig.world.sendBytes(bytesOf([publish('a', 'z'.repeat(200_000), 1)]).subarray(0, 100_000))
    rig.world.peer.cut()
    await rig.world.clock.advance(1000)
    await rig.send(publish('a', 'after', 7))
    expect([taken(subscription).text(), subscription.size]).toEqual(['after', 0])
  })
})

const megabyte = 1_000_000
const size = 3 * megabyte

interface Upload {
  readonly world: World
  readonly connections: SlowLink[]
  readonly link: SlowLink
}

/** Connected over a slow line; each later connection gets one like it. */
async function uploading(options: ClientOptions = {}, line: Line = { rate: megabyte }) {
  const connections: SlowLink[] = []
  const world: World = new World({ keepAlive: false, ...options }, {}, 1, () => {
    const link = new SlowLink(world.clock, line, agreeable)
    connections.push(link)
    return link
  })
  await settled(world, world.client.connect(), 1000)
  return { world, connections, link: connections[0] as SlowLink }
}

/** Publishes so many bytes, and gives how that stands. */
const sending = ({ world }: Upload, length: number, qos: 0 | 1 | 2 = 0) =>
  watched(world.client.publish('a', new Uint8Array(length), { qos }))

/** What each publish arrived as: its length, and the bytes that it is made of. */
const publishes = ({ packets }: SlowLink): [number, string][] =>
  packets.flatMap((packet) =>
    packet.type === 'publish'
      ? [[packet.payload.length, String.fromCharCode(...new Set(packet.payload))]]
      : [],
  )

const [A, B] = ['A'.charCodeAt(0), 'B'.charCodeAt(0)]
const letters = (length = size): Uint8Array => new Uint8Array(length).fill(A)

describe('what the caller writes into its memory after a publish has settled never leaves', () => {
  /** Begins a publish of these bytes, and writes over them as soon as they are the caller's again: the packet goes on as it was. */
  async function goesOn(act: (upload: Upload, payload: Uint8Array, free: () => void) => unknown) {
    const upload = await uploading()
    const payload = letters()
    const acting = act(upload, payload, () => void payload.fill(B))
    await upload.world.clock.advance(6000)
    await acting
    expect(payload[0]).toBe(B)
    expect(publishes(upload.link)).toEqual([[size, 'A']])
    expect([upload.world.client.state, upload.world.client.outbound.size]).toEqual(['connected', 0])
  }

  it.each([0, 1, 2] as const)('QoS %i: aborted in the middle of its packet', (qos) =>
    goesOn(async ({ world, link }, payload, free) => {
      const abort = new AbortController()
      const call = failure(world.client.publish('a', payload, { qos, signal: abort.signal }))
      await sleep(world, 100)
      expect(link.packets).toHaveLength(1)
      abort.abort()
      free()
      expect(await call).toMatchObject({ code: 'ERR_ABORTED', outcome: 'unknown' })
    }),
  )

  it.each([1, 2] as const)('QoS %i: ackTimeout', (qos) =>
    goesOn(({ world }, payload, free) =>
      world.client.publish('a', payload, { qos, ackTimeout: 200 }).catch(free),
    ),
  )

  it.each(['puback', 'pubrec'] as const)('%s with an error before the last byte', (type) =>
    goesOn(async ({ world, link }, payload, free) => {
      world.client.publish('a', payload, { qos: type === 'puback' ? 1 : 2 }).catch(free)
      await sleep(world, 100)
      link.answer = () => undefined
      link.feed({ type, packetId: 1, reasonCode: 0x97, properties: {} })
    }),
  )

  it('request timeout', () =>
    goesOn(({ world }, payload, free) =>
      world.client.request('a', payload, { timeout: 500 }).catch(free),
    ))

  it('post()', () =>
    goesOn(({ world }, payload, free) => {
      expect(world.client.post('a', payload)).toBe(true)
      free()
    }))

  it.each([0, 1] as const)(
    'QoS %i: disconnect({ timeout: 0 }) gives a packet a second',
    async (qos) => {
      const { world, link } = await uploading()
      const payload = letters(800_000)
      const call = world.client.publish('a', payload, { qos }).catch(() => payload.fill(B))
      await world.clock.advance(50)
      await settled(world, world.client.disconnect({ timeout: 0 }))
      await call
      expect(payload[0]).toBe(B)
      await world.clock.advance(5000)
      expect(publishes(link)).toEqual([[800_000, 'A']])
      expect([link.types.at(-1), world.clock.pending]).toEqual(['disconnect', 0])
    },
  )

  it.each([
    ['disconnect({ timeout: 0 }) and more than that', 0],
    ['destroy()', 0],
    ['destroy()', 1],
  ] as const)('%s, QoS %i: the link is cut, and nothing else arrives', async (how, qos) => {
    const { world, link } = await uploading()
    const payload = letters()
    const call = world.client.publish('a', payload, { qos }).catch(() => payload.fill(B))
    await world.clock.advance(100)
    if (how === 'destroy()') world.client.destroy()
    else await settled(world, world.client.disconnect({ timeout: 0 }))
    await call
    await world.clock.advance(10_000)
    expect(link.types).toEqual(['connect'])
    expect(link.destroyed !== undefined).toBe(true)
    expect(world.clock.pending).toBe(0)
  })

  it.each([1, 2] as const)('QoS %i: aborted while it is sent again', async (qos) => {
    const { world, connections } = await uploading({
      reconnect: { backoff: () => 100 },
      clientId: 'c',
      cleanStart: false,
    })
    const payload = letters()
    const abort = new AbortController()
    const call = failure(world.client.publish('a', payload, { qos, signal: abort.signal }))
    await world.clock.advance(100)
    connections[0]?.destroy(new Error('cut'))
    await world.clock.advance(100)
    const again = connections[1] as SlowLink
    again.answer = willing(true)
    await world.clock.advance(500)
    expect(world.client.state).toBe('connected')
    abort.abort()
    payload.fill(B)
    await world.clock.advance(6000)
    expect(await call).toMatchObject({ code: 'ERR_ABORTED' })
    expect(publishes(again)).toEqual([[size, 'A']])
  })

  it.each([0, 1] as const)('QoS %i: too large to be copied, the link is cut', async (qos) => {
    const outbound = { maxQueuedBytes: 2 * megabyte }
    const { world, connections } = await uploading({
      reconnect: { backoff: () => 100 },
      clientId: 'c',
      sessionExpiryInterval: 60,
      outbound,
    })
    const payload = letters()
    const abort = new AbortController()
    const call = failure(world.client.publish('a', payload, { qos, signal: abort.signal }))
    const next = watched(world.client.publish('b', 'next', { qos: 1 }))
    await world.clock.advance(100)
    abort.abort()
    payload.fill(B)
    expect(await call).toMatchObject({ code: 'ERR_ABORTED', outcome: 'unknown' })
    await world.clock.advance(1000)
    expect(connections[0]?.destroyed?.cause).toMatchObject({ code: 'ERR_CONNECTION_LOST' })
    expect(connections.map((link) => publishes(link).map(([length]) => length))).toEqual([[], [4]])
    expect(next.state).toBe('fulfilled')
  })

  it('a payload that is detached in the middle of its packet ends the link, and nothing throws', async () => {
    const { world, link } = await uploading()
    const payload = letters()
    const call = failure(world.client.publish('a', payload))
    await world.clock.advance(100)
    structuredClone(payload, { transfer: [payload.buffer] })
    await world.clock.advance(5000)
    expect(link.destroyed).toBeDefined()
    expect(await call).toMatchObject({ outcome: 'unknown' })
    expect(await world.client.closed).toMatchObject({ code: 'ERR_CONNECTION_LOST' })
  })
})

it('nothing stands between the slices of one, and what controls the connection goes before the next', async () => {
  const upload = await uploading()
  const { world, link } = upload
  const subscription = await settled(world, world.client.subscribe('in', { qos: 1 }), 1000)
  const large = ([1, 2] as const).map((qos) => sending(upload, megabyte, qos))
  await world.clock.advance(300)
  link.feed({ type: 'publish', topic: 'in', payload: Uint8Array.of(1), qos: 1, packetId: 7 })
  expect(subscription.read()).toBeDefined()
  subscription.read()
  await settled(world, world.client.subscribe('other'), 4000)
  const types = 'connect,subscribe,publish,puback,subscribe,publish,pubrel'
  expect(link.types.join()).toBe(types)
  expect(large.map(({ state }) => state)).toEqual(['fulfilled', 'fulfilled'])
})

describe('which peer counts as dead', () => {
  it('one that reads nothing and sends without end: what it is owed is bounded by the memory budget', async () => {
    const line = { rate: megabyte, kernel: 64 * 1024 }
    const upload = await uploading({ memoryBudget: size }, line)
    const { world, link } = upload
    sending(upload, 4 * size)
    await world.settle()
    link.rate = 0
    const pubrecs = Uint8Array.from(
      Array.from({ length: 16_000 }, (_, at) => [0x50, 2, (at + 1) >> 8, (at + 1) & 255]).flat(),
    )
    for (let read = 0; read < 60 && link.destroyed === undefined; read++) {
      link.feedBytes(pubrecs)
      await world.settle()
    }
    expect(await world.client.closed).toMatchObject({
      code: 'ERR_CONNECTION_LOST',
      message: expect.stringContaining('reads nothing'),
    })
  })

  /** Milliseconds until the link was given up, at the most in a minute; meanwhile this is done every so often. */
  async function givenUp(
    { world, link }: Upload,
    every = 60_000,
    act: () => unknown = () => undefined,
  ): Promise<number> {
    const since = world.clock.now()
    while (link.destroyed === undefined && world.clock.now() - since < 60_000) {
      act()
      await world.clock.advance(every)
    }
    return (link.destroyed?.at ?? Number.POSITIVE_INFINITY) - since
  }

  it.each([0, 1, 2] as const)('QoS %i: none that reads on and answers PINGREQ', async (qos) => {
    const upload = await uploading({ keepAlive: 3 })
    const call = sending(upload, 12 * megabyte, qos)
    await upload.world.clock.advance(20_000)
    expect([call.state, upload.world.client.state]).toEqual(['fulfilled', 'connected'])
    expect(upload.link.types.filter((type) => type === 'pingreq').length).toBeGreaterThan(1)
  })

  it('one that stops reading in the middle of a packet: found within keepAlive + pingTimeout', async () => {
    const upload = await uploading({ keepAlive: 30 })
    sending(upload, 90 * megabyte)
    await upload.world.clock.advance(5000)
    upload.link.rate = 0
    expect(await givenUp(upload)).toBeLessThanOrEqual(40_000)
    expect(await upload.world.client.closed).toMatchObject({
      code: 'ERR_KEEPALIVE_TIMEOUT',
      message: 'the server stopped reading',
    })
  })

  it.each([
    ['post()', 100, 100],
    ['post()', 20_000, 100],
    ['post()', 200_000, 100],
    ['post()', 2_000_000, 100],
    ['publishes, which a free buffer swallows,', 400_000, 4000],
  ])('found in time under %s of %i bytes every %i ms', async (how, length, every) => {
    const upload = await uploading({ keepAlive: 10 }, { rate: megabyte, kernel: 2_500_000 })
    if (how === 'post()') await upload.world.clock.advance(3000)
    upload.link.rate = 0
    const act = (): unknown =>
      how === 'post()'
        ? upload.world.client.post('a', new Uint8Array(length))
        : sending(upload, length)
    expect(await givenUp(upload, every, act)).toBeLessThanOrEqual(15_000)
  })
})

it('`stalled` comes once a large message has left and nothing is acknowledged, and not while it is on its way', async () => {
  const reads = await uploading()
  const call = sending(reads, 20 * megabyte, 1)
  await reads.world.clock.advance(30_000)
  expect([call.state, reads.world.seen('stalled')]).toEqual(['fulfilled', []])
  const upload = await uploading()
  upload.link.answer = () => undefined
  sending(upload, 12 * megabyte, 1)
  await upload.world.clock.advance(12_000)
  expect(upload.world.seen('stalled')).toEqual([])
  await upload.world.clock.advance(20_000)
  expect(upload.world.seen('stalled')).toMatchObject([{ direction: 'out', inFlight: 1 }])
})

describe('when byte quota comes free, what waits for it leaves', () => {
  it('publish, flush() and drain() settle at QoS 0, without a packet of the peer', async () => {
    const upload = await uploading({}, { rate: 10 * megabyte })
    const { client, clock } = upload.world
    const calls = [900_000, 16_500_000, 10].map((length) => sending(upload, length))
    const flushed = watched(client.flush())
    await clock.advance(3000)
    calls.push(...[900_000, 16_500_000].map((length) => sending(upload, length)))
    const drained = watched(client.drain())
    await clock.advance(3000)
    expect([...calls, flushed, drained].map(({ state }) => state)).toEqual(
      Array(7).fill('fulfilled'),
    )
  })

  it.each(['abort', 'ttl'] as const)('also after what stood in front: %s', async (how) => {
    const upload = await uploading({ outbound: { maxQueuedBytes: megabyte } })
    const { world, link } = upload
    link.answer = () => undefined
    sending(upload, 600_000, 1)
    await world.clock.advance(1000)
    const abort = new AbortController()
    const ttl = how === 'ttl' ? { ttl: 100 } : {}
    const options = { qos: 1, signal: abort.signal, ...ttl } as const
    const front = failure(world.client.publish('a', new Uint8Array(700_000), options))
    quiet(world.client.publish('a', 'next', { qos: 1 }))
    if (how === 'abort') abort.abort()
    await world.clock.advance(200)
    await front
    expect(publishes(link).map(([length]) => length)).toEqual([600_000, 4])
  })
})
