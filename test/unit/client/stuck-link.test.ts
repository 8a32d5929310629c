/** Ending over a line that is stuck for a while, and transports that throw. */
import { describe, expect, it } from 'vitest'
import type { ClientOptions } from '../../../src/client/api/index.js'
import { agreeable, World } from './harness.js'
import { SlowLink } from './slow-link.js'
import { stubbed, watched } from './stub.js'

async function linked(options: ClientOptions = {}): Promise<{ world: World; link: SlowLink }> {
  let link: SlowLink | undefined
  const world: World = new World({ keepAlive: false, ...options }, {}, 1, () => {
    link = new SlowLink(world.clock, { rate: 1_000_000, kernel: 64 * 1024 }, agreeable)
    return link
  })
  await Promise.all([world.client.connect(), world.clock.advance(1000)])
  return { world, link: link as unknown as SlowLink }
}

/** Posts more than the kernel takes. */
function fill(world: World): number {
  let count = 0
  while (count < 1000 && world.client.post('a', new Uint8Array(1000))) count++
  return count
}

describe('disconnect() over a line that is stuck', () => {
  it.each([2000, 4500])('for %i ms of five seconds: what was posted arrives, and DISCONNECT behind it', async (time) => {
    const { world, link } = await linked()
    link.rate = 0
    const count = fill(world)
    const ending = watched(world.client.disconnect({ timeout: 5000 }))
    await world.clock.advance(time)
    expect([link.destroyed, ending.state]).toEqual([undefined, 'pending'])
    link.rate = 1_000_000
    await world.clock.advance(400)
    expect(link.types).toEqual(['connect', ...new Array(count).fill('publish'), 'disconnect'])
    expect(ending.state).toBe('fulfilled')
    expect(world.clock.pending).toBe(0)
  })

  it('in the middle of a large packet: that is finished, and DISCONNECT behind it', async () => {
    const { world, link } = await linked()
    const call = watched(world.client.publish('a', new Uint8Array(1_000_000)))
    await world.clock.advance(100)
    link.rate = 0
    const ending = watched(world.client.disconnect({ timeout: 5000 }))
    await world.clock.advance(3000)
    link.rate = 1_000_000
    await world.clock.advance(1500)
    expect(link.types).toEqual(['connect', 'publish', 'disconnect'])
    expect([call.state, ending.state]).toEqual(['fulfilled', 'fulfilled'])
    expect(world.clock.pending).toBe(0)
  })

  it('for longer: it ends with the timeout, and the line is cut', async () => {
    const { world, link } = await linked()
    link.rate = 0
    fill(world)
    const since = world.clock.now()
    const ending = watched(world.client.disconnect({ timeout: 5000 }))
    await world.clock.advance(4999)
    expect(ending.state).toBe('pending')
    await world.clock.advance(1)
    expect(ending.state).toBe('fulfilled')
    expect(link.destroyed?.at).toBe(since + 5000)
    expect(world.clock.pending).toBe(0)
  })

  it('whose peer does not end its side is cut off a second after DISCONNECT has left', async () => {
    const { world, link } = await linked()
    link.ends = false
    link.rate = 0
    fill(world)
    const ending = watched(world.client.disconnect({ timeout: 5000 }))
    await world.clock.advance(2000)
    link.rate = 10_000_000
    await world.clock.advance(900)
    expect([link.types.at(-1), ending.state]).toEqual(['disconnect', 'pending'])
    await world.clock.advance(200)
    expect(ending.state).toBe('fulfilled')
    expect(link.destroyed).toBeDefined()
  })

  it('an error of ours in the middle of a large packet cuts the link: no DISCONNECT goes into a packet', async () => {
    const { world, link } = await linked()
    watched(world.client.publish('a', new Uint8Array(1_000_000)))
    await world.clock.advance(100)
    link.feedBytes(Uint8Array.of(0x20, 3, 0, 0, 0))
    await world.clock.advance(5000)
    expect(link.types).toEqual(['connect'])
    expect(await world.client.closed).toMatchObject({ code: 'ERR_PROTOCOL_ERROR' })
  })
})

describe('a transport whose write() throws', () => {
  const thrown = new Error('not this one')

  it.each([0, 1, 2] as const)('QoS %i: at a large payload, of which it took nothing: that publish fails, the link stays', async (qos) => {
    const world = await stubbed()
    const { stub } = world
    const write = stub.write.bind(stub)
    stub.write = (bytes, written) => {
      if (bytes.length > 60_000) throw thrown
      return write(bytes, written)
    }
    const large = watched(world.client.publish('a', new Uint8Array(200_000), { qos }))
    const small = watched(world.client.publish('a', 'x', { qos: 0, flush: true }))
    await world.settle()
    expect(large.error).toMatchObject({ code: 'ERR_CONNECTION_LOST', cause: thrown })
    expect(small.state).toBe('fulfilled')
    expect(world.client.state).toBe('connected')
    expect(stub.payloads).toEqual(['x'])
    expect(() => world.client.post('a', new Uint8Array(200_000))).toThrow(expect.objectContaining({ cause: thrown }) as Error)
  })

  it('at anything else ends the link, and is its cause', async () => {
    const world = await stubbed()
    world.stub.write = () => {
      throw thrown
    }
    const call = watched(world.client.publish('a', 'x', { qos: 1 }))
    await world.settle()
    expect(call.error).toMatchObject({ outcome: 'unknown' })
    expect(await world.client.closed).toMatchObject({ code: 'ERR_CONNECTION_LOST', cause: thrown })
  })

  it('in the middle of a large payload ends the link', async () => {
    const world = await stubbed()
    const { stub } = world
    const write = stub.write.bind(stub)
    let count = 0
    stub.write = (bytes, written) => {
      if (++count === 3) throw thrown
      return write(bytes, written)
    }
    const call = watched(world.client.publish('a', new Uint8Array(300_000)))
    await world.settle()
    expect(call.error).toMatchObject({ outcome: 'unknown' })
    expect(await world.client.closed).toMatchObject({ code: 'ERR_CONNECTION_LOST', cause: thrown })
    expect(stub.writes).toHaveLength(2)
  })
})

/** An ArrayBuffer that can be resized; the library's declarations know none. */
const Resizable = ArrayBuffer as unknown as new (size: number, options: { maxByteLength: number }) => ArrayBuffer & { resize(size: number): void }

describe('payloads on shared and resizable memory', () => {
  const kinds: [string, (size: number) => Uint8Array][] = [
    ['shared', (size) => new Uint8Array(new SharedArrayBuffer(size))],
    ['resizable', (size) => new Uint8Array(new Resizable(size, { maxByteLength: 2 * size }))],
  ]

  it.each(kinds)('%s: the transport is handed memory of its own, at every size and QoS', async (_kind, make) => {
    const world = await stubbed()
    const { stub } = world
    for (const size of [10, 40_000, 200_000]) {
      for (const qos of [0, 1, 2] as const) watched(world.client.publish('a', make(size).fill(65), { qos }))
      world.client.post('a', make(size).fill(65))
    }
    await world.settle()
    expect(stub.payloads.map((text) => text.length).sort((a, b) => a - b)).toEqual([10, 40_000, 200_000].flatMap((size) => new Array(4).fill(size)))
    for (const { buffer } of stub.arrays) {
      expect(buffer).toBeInstanceOf(ArrayBuffer)
      expect((buffer as ArrayBuffer & { resizable?: boolean }).resizable).not.toBe(true)
    }
  })

  it('one that shrinks while it is sent ends the link', async () => {
    const world = await stubbed()
    world.stub.takes = false
    const memory = new Resizable(300_000, { maxByteLength: 300_000 })
    const call = watched(world.client.publish('a', new Uint8Array(memory)))
    await world.settle()
    memory.resize(100_000)
    world.stub.release()
    await world.settle()
    expect(call.error).toMatchObject({ outcome: 'unknown' })
    expect(await world.client.closed).toMatchObject({ message: expect.stringContaining('length') as string })
  })
})
