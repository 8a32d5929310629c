/** Transports that are slow, stuck or throw: what is under way is not written over, and ends in order. */

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { setTimeout as passed, setImmediate as turn } from 'node:timers/promises'
import { describe, expect, it, onTestFinished } from 'vitest'
import { type Client, connect } from '../../../src/client/node.js'
import { listenTcp } from '../../../src/transport/tcp.js'
import type { Accept, Listener, Transport } from '../../../src/transport/transport.js'
import { listenUnix } from '../../../src/transport/unix.js'
import { listenWebSocket } from '../../../src/transport/websocket-node.js'
import { Decoder } from '../../../src/wire/decode.js'
import { encode } from '../../../src/wire/encode.js'
import type { ClientPacket } from '../../../src/wire/packets.js'
import { hasOpenssl, selfSigned } from '../../support/certificates.js'
import { agreeable, World } from './harness.js'
import { SlowLink } from './slow-link.js'
import { type StubTransport, stubbed, watched } from './stub.js'

async function linked(): Promise<{ world: World; link: SlowLink }> {
  const connections: SlowLink[] = []
  const world: World = new World({ keepAlive: false }, {}, 1, () => {
    const link = new SlowLink(world.clock, { rate: 1_000_000, kernel: 64 * 1024 }, agreeable)
    connections.push(link)
    return link
  })
  await Promise.all([world.client.connect(), world.clock.advance(1000)])
  return { world, link: connections[0] as SlowLink }
}

/** The line is stuck, and more is posted than the kernel takes. */
async function stuck(): Promise<{ world: World; link: SlowLink; count: number }> {
  const { world, link } = await linked()
  link.rate = 0
  let count = 0
  while (count < 1000 && world.client.post('a', new Uint8Array(1000))) count++
  return { world, link, count }
}

it.each([2000, 4500])(
  'disconnect() over a line that is stuck, for %i ms of five seconds: posts arrive, and DISCONNECT',
  async (time) => {
    const { world, link, count } = await stuck()
    const ending = watched(world.client.disconnect({ timeout: 5000 }))
    await world.clock.advance(time)
    expect([link.destroyed, ending.state]).toEqual([undefined, 'pending'])
    link.rate = 1_000_000
    await world.clock.advance(400)
    expect(link.types).toEqual(['connect', ...new Array(count).fill('publish'), 'disconnect'])
    expect([ending.state, world.clock.pending]).toEqual(['fulfilled', 0])
  },
)

it('disconnect() over a line that is stuck, in the middle of a large packet: that is finished, and DISCONNECT behind it', async () => {
  const { world, link } = await linked()
  const call = watched(world.client.publish('a', new Uint8Array(1_000_000)))
  await world.clock.advance(100)
  link.rate = 0
  const ending = watched(world.client.disconnect({ timeout: 5000 }))
  await world.clock.advance(3000)
  link.rate = 1_000_000
  await world.clock.advance(1500)
  expect(link.types).toEqual(['connect', 'publish', 'disconnect'])
  expect([call.state, ending.state, world.clock.pending]).toEqual(['fulfilled', 'fulfilled', 0])
})

it('disconnect() over a line that is stuck, for longer: it ends with the timeout, and the line is cut', async () => {
  const { world, link } = await stuck()
  const since = world.clock.now()
  const ending = watched(world.client.disconnect({ timeout: 5000 }))
  await world.clock.advance(4999)
  expect(ending.state).toBe('pending')
  await world.clock.advance(1)
  expect([ending.state, world.clock.pending]).toEqual(['fulfilled', 0])
  expect(link.destroyed?.at).toBe(since + 5000)
})

it('disconnect() over a line that is stuck, an error of ours in the middle of a large packet cuts the link: no DISCONNECT goes into a packet', async () => {
  const { world, link } = await linked()
  watched(world.client.publish('a', new Uint8Array(1_000_000)))
  await world.clock.advance(100)
  link.feedBytes(Uint8Array.of(0x20, 3, 0, 0, 0))
  await world.clock.advance(5000)
  expect(link.types).toEqual(['connect'])
  expect(await world.client.closed).toMatchObject({ code: 'ERR_PROTOCOL_ERROR' })
})

describe('a transport whose write() throws', () => {
  const thrown = new Error('not this one')
  const lost = { code: 'ERR_CONNECTION_LOST', cause: thrown }

  /** `write()` throws at these bytes, of which it takes nothing. */
  function throwing(stub: StubTransport, at: (bytes: Uint8Array) => boolean): void {
    const write = stub.write.bind(stub)
    stub.write = (bytes, written) => {
      if (at(bytes)) throw thrown
      return write(bytes, written)
    }
  }

  it.each([0, 1, 2] as const)('QoS %i: at a large payload: the link stays', async (qos) => {
    const world = await stubbed()
    const { client, stub } = world
    throwing(stub, (bytes) => bytes.length > 60_000)
    const large = watched(client.publish('a', new Uint8Array(200_000), { qos }))
    const small = watched(client.publish('a', 'x', { qos: 0, flush: true }))
    await world.settle()
    expect(large.error).toMatchObject(lost)
    expect([small.state, client.state, stub.payloads]).toEqual(['fulfilled', 'connected', ['x']])
    const refused = expect.objectContaining({ cause: thrown }) as Error
    expect(() => client.post('a', new Uint8Array(200_000))).toThrow(refused)
  })

  it.each<[string, number, string | Uint8Array, 0 | 1]>([
    ['at anything else', 1, 'x', 1],
    ['in the middle of a large payload', 3, new Uint8Array(300_000), 0],
  ])('%s ends the link, and is its cause', async (_name, at, payload, qos) => {
    const world = await stubbed()
    let count = 0
    throwing(world.stub, () => ++count >= at)
    const call = watched(world.client.publish('a', payload, { qos }))
    await world.settle()
    expect(call.error).toMatchObject({ outcome: 'unknown' })
    expect(await world.client.closed).toMatchObject(lost)
    expect(world.stub.writes).toHaveLength(at - 1)
  })
})

/** An ArrayBuffer that can be resized; the library's declarations know none. */
const Resizable = ArrayBuffer as unknown as new (
  size: number,
  options: { maxByteLength: number },
) => ArrayBuffer & { resize(size: number): void }

it.each<[string, (size: number) => Uint8Array]>([
  ['shared', (size) => new Uint8Array(new SharedArrayBuffer(size))],
  ['resizable', (size) => new Uint8Array(new Resizable(size, { maxByteLength: 2 * size }))],
])(
  'payloads on shared and resizable memory: %s: the transport gets memory of its own, at every size and QoS',
  async (_kind, make) => {
    const world = await stubbed()
    const sizes = [10, 40_000, 200_000]
    for (const size of sizes) {
      for (const qos of [0, 1, 2] as const)
        watched(world.client.publish('a', make(size).fill(65), { qos }))
      world.client.post('a', make(size).fill(65))
    }
    await world.settle()
    const lengths = world.stub.payloads.map((text) => text.length).sort((a, b) => a - b)
    expect(lengths).toEqual(sizes.flatMap((size) => new Array(4).fill(size)))
    for (const { buffer } of world.stub.arrays) {
      expect(buffer).toBeInstanceOf(ArrayBuffer)
      expect((buffer as ArrayBuffer & { resizable?: boolean }).resizable).not.toBe(true)
    }
  },
)

it('payloads on shared and resizable memory: one that shrinks while it is sent ends the link', async () => {
  const world = await stubbed()
  world.stub.takes = false
  const memory = new Resizable(300_000, { maxByteLength: 300_000 })
  const call = watched(world.client.publish('a', new Uint8Array(memory)))
  await world.settle()
  memory.resize(100_000)
  world.stub.release()
  await world.settle()
  expect(call.error).toMatchObject({ outcome: 'unknown' })
  expect(await world.client.closed).toMatchObject({
    message: expect.stringContaining('length') as string,
  })
})

/** A peer that pauses after every third read, or reads nothing behind CONNECT before `resume()`. */
class Peer {
  readonly payloads: Uint8Array[] = []
  #transport: Transport | undefined
  readonly #patient: boolean

  constructor(patient: boolean) {
    this.#patient = patient
  }

  readonly accept: Accept = (transport) => {
    this.#transport = transport
    const decoder = new Decoder({ from: 'client' })
    let reads = 0
    const take = (bytes: Uint8Array): void => {
      for (const packet of decoder.push(bytes) as Iterable<ClientPacket>) {
        if (packet.type === 'connect') {
          transport.write(encode({ type: 'connack' }))
          if (!this.#patient) transport.pause?.()
        }
        if (packet.type === 'publish') this.payloads.push(packet.payload.slice())
      }
      if (!this.#patient || ++reads % 3 !== 0) return
      transport.pause?.()
      void turn().then(() => transport.resume?.())
    }
    const window = new Uint8Array(65_536)
    transport.open({
      buffer: () => window,
      read: (length) => take(window.slice(0, length)),
      chunk: (bytes) => take(new Uint8Array(bytes)),
      drain: () => undefined,
      closed: () => undefined,
    })
  }

  resume(): void {
    this.#transport?.resume?.()
  }
}

const size = 12_000_000
const identity = hasOpenssl() ? selfSigned('localhost') : undefined
const tls = identity && { ca: identity.cert }

async function unix(accept: Accept): Promise<Listener> {
  const folder = mkdtempSync(path.join(tmpdir(), 'mqwire-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  return listenUnix({ path: path.join(folder, 's') }, accept)
}

const ways: [string, (accept: Accept) => Promise<Listener>][] = [
  ['tcp', (accept) => listenTcp({}, accept)],
  ['unix', unix],
  ['WebSocket', (accept) => listenWebSocket({ maximumPacketSize: 2 * size }, accept)],
]
if (identity !== undefined) ways.push(['TLS', (accept) => listenTcp({ tls: identity }, accept)])

describe.each(ways)('%s', (_name, listen) => {
  async function connected(peer: Peer): Promise<Client> {
    const listener = await listen(peer.accept)
    const { url } = listener
    const endpoint = url.startsWith('mqtts') && tls !== undefined ? { url, tls } : url
    const client = await connect(endpoint, { reconnect: false })
    onTestFinished(async () => {
      client.destroy()
      await listener.close()
    })
    return client
  }

  it('thousands of messages of all sizes arrive as they were posted, each buffer used many times', async () => {
    const peer = new Peer(true)
    const client = await connected(peer)
    const payload = new Uint8Array(40_000)
    const sizeOf = (number: number) => (number % 500 === 499 ? 40_000 : 4 + (number % 997))
    for (let number = 0; number < 6000; ) {
      const bytes = payload.subarray(0, sizeOf(number)).fill(number % 251)
      new DataView(bytes.buffer).setUint32(0, number)
      if (client.post('numbers', bytes)) number += 1
      else await client.writable
    }
    await client.flush()
    await client.disconnect()
    while (peer.payloads.length < 6000) await turn()
    const wrong = peer.payloads.filter((bytes, number) => {
      const isNumber = new DataView(bytes.buffer).getUint32(0) === number
      const isWhole = bytes.length === sizeOf(number)
      return !isNumber || !isWhole || bytes.subarray(4).some((byte) => byte !== number % 251)
    })
    expect([peer.payloads.length, wrong]).toEqual([6000, []])
  })

  it('QoS 1, aborted and written over: 12 MB go on as they were', async () => {
    const peer = new Peer(false)
    const client = await connected(peer)
    const payload = new Uint8Array(size).fill(1)
    const abort = new AbortController()
    const call = client.publish('a', payload, { qos: 1, signal: abort.signal })
    await passed(20)
    abort.abort()
    payload.fill(2)
    await expect(call).rejects.toMatchObject({ code: 'ERR_ABORTED' })
    peer.resume()
    while (peer.payloads.length === 0) await turn()
    const [got] = peer.payloads
    expect([got?.length, got?.every((byte) => byte === 1)]).toEqual([size, true])
  })
})
