/** Transports in memory and over message ports. */

import { MessageChannel } from 'node:worker_threads'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { VirtualClock } from '../../../src/testing/virtual-clock.js'
import {
  createMemoryHub,
  type MemoryOptions,
  memoryPair,
  type Schedule,
} from '../../../src/transport/memory.js'
import { messagePortTransport, type Port } from '../../../src/transport/message-port.js'
import type { Transport } from '../../../src/transport/transport.js'
import { pause } from '../../support/pausing.js'
import { transportContract } from './contract.js'
import { failure, openedOver, pattern, Recorder } from './rig.js'

function subject(name: string, options: MemoryOptions) {
  transportContract({
    name,
    pair: async () => {
      const [a, b] = memoryPair(options)
      return { a, b, cleanup: () => {} }
    },
  })
}

subject('memory', {})
subject('memory, in place', { delivery: 'buffer' })
subject('memory, split and late', { split: 50_021, latency: 2 })

/** Both ends of a pair, open. */
function linked(options: MemoryOptions) {
  const [a, b] = memoryPair(options)
  return { from: new Recorder(a).open(), to: new Recorder(b).open() }
}

afterEach(() => vi.unstubAllGlobals())

describe('memory knobs', () => {
  it.each<[string, unknown]>([
    ['split', 0],
    ['split', 1.5],
    ['split', Number.NaN],
    ['drop', -1],
    ['drop', '5'],
    ['latency', Number.NaN],
    ['latency', -1],
    ['latency', Number.POSITIVE_INFINITY],
    ['highWaterMark', -1],
    ['highWaterMark', Number.NaN],
    ['delivery', 'buffers'],
  ])('%s: %o is refused by its name, of each direction too', (option, value) => {
    const refused = expect.objectContaining({ code: 'ERR_INVALID_OPTION', option })
    const knobs = { [option]: value } as MemoryOptions
    expect(() => memoryPair(knobs)).toThrow(refused)
    for (const way of ['forward', 'backward']) {
      expect(() => memoryPair({ [way]: knobs })).toThrow(refused)
      expect(() => createMemoryHub({ [way]: knobs })).toThrow(refused)
    }
  })

  it.each(['forward', 'backward'])('%s that is null is refused by its name', (option) => {
    const refused = expect.objectContaining({ code: 'ERR_INVALID_OPTION', option })
    expect(() => createMemoryHub({ [option]: null })).toThrow(refused)
  })

  it('without an end are taken', () => {
    const none = Number.POSITIVE_INFINITY
    expect(
      memoryPair({
        split: none,
        drop: none,
        highWaterMark: none,
        latency: 0.5,
        delivery: undefined,
      }),
    ).toHaveLength(2)
  })

  it('split: 1 delivers byte by byte, microtasks run between deliveries', async () => {
    const [a, b] = memoryPair({ split: 1 })
    const to = new Recorder(b).open()
    const seen: number[] = []
    to.onEvent = () => queueMicrotask(() => seen.push(to.length))
    a.write(pattern(50))
    a.write(pattern(3))
    await vi.waitFor(() => expect(seen).toHaveLength(53), 5000)
    expect(to.parts.map(({ length }) => length)).toEqual(new Array(53).fill(1))
    expect(seen).toEqual(Array.from({ length: 53 }, (_, index) => index + 1))
    expect(to.bytes.equals(Buffer.concat([pattern(50), pattern(3)]))).toBe(true)
  })

  it.each([0, 1, 100, 101])('drop cuts both sides after exactly %i bytes', async (drop) => {
    const { from, to } = linked({ forward: { drop } })
    const errors: unknown[] = []
    for (let index = 0; index < 4; index++) from.write(pattern(50), (error) => errors.push(error))
    await Promise.all([from.untilClosed(), to.untilClosed()])
    expect(to.length).toBe(drop)
    expect([from.cause, to.cause]).toEqual([expect.any(Error), expect.any(Error)])
    const delivered = Math.floor(drop / 50)
    expect(errors.map((error) => error === undefined)).toEqual(
      Array.from({ length: 4 }, (_, index) => index < delivered),
    )
  })

  it('latency goes through the given schedule, and the stream is pipelined', async () => {
    const clock = new VirtualClock()
    const schedule: Schedule = (callback, delay) => clock.setTimer(callback, delay)
    const { from, to } = linked({ latency: 100, schedule })
    await Promise.resolve()
    from.write(pattern(10))
    await clock.advance(60)
    from.write(pattern(20))
    await clock.advance(39)
    expect(to.length).toBe(0)
    await clock.advance(1)
    expect(to.length).toBe(10)
    await clock.advance(59)
    expect(to.length).toBe(10)
    await clock.advance(1)
    expect(to.length).toBe(30)
    from.close()
    await clock.advance(200)
    expect([from.ends, to.ends, clock.pending]).toEqual([1, 1, 0])
  })

  it('knobs of one direction leave the other alone', async () => {
    const { from, to } = linked({ forward: { split: 1 }, backward: { drop: 5 } })
    from.write(pattern(4))
    await to.until(() => to.length === 4)
    expect(to.parts).toHaveLength(4)
    to.write(pattern(9))
    await from.untilClosed()
    expect(from.length).toBe(5)
  })

  it('highWaterMark bounds what is undelivered', async () => {
    const [a, b] = memoryPair({ highWaterMark: 100 })
    const from = new Recorder(a).open()
    expect(from.write(pattern(100))).toBe(true)
    expect(from.write(pattern(1))).toBe(false)
    await pause(30)
    expect(from.drains).toBe(0)
    new Recorder(b).open()
    await from.until(() => from.drains === 1)
  })
})

it('memory where there is no setImmediate: takes one channel for all deliveries, each in a task of its own and in order; what was cut off is not delivered', async () => {
  vi.stubGlobal('setImmediate', undefined)
  let channels = 0
  const Real = MessageChannel
  vi.stubGlobal(
    'MessageChannel',
    class extends Real {
      constructor() {
        super()
        channels += 1
      }
    },
  )
  const pairs = Array.from({ length: 20 }, () => memoryPair())
  const order: string[] = []
  let microtasks = 0
  const ends = pairs.map(([near, far], index) => {
    const from = new Recorder(near).open()
    const to = new Recorder(far).open()
    to.onEvent = () => {
      order.push(`${to.parts.length}.${index}.${microtasks}`)
      queueMicrotask(() => {
        microtasks += 1
      })
    }
    return { from, to }
  })
  for (const part of [1, 2])
    for (const [index, { from }] of ends.entries()) from.write(Uint8Array.of(index, part))
  ends[7]?.from.destroy()
  await ends[19]?.to.until(() => ends[19]?.to.parts.length === 2)
  expect(ends[7]?.to.parts).toEqual([])
  expect(ends.map(({ to }) => to.parts.length)).toEqual(
    ends.map((_, index) => (index === 7 ? 0 : 2)),
  )
  expect(ends[3]?.to.parts.map((bytes) => [...bytes])).toEqual([
    [3, 1],
    [3, 2],
  ])
  // Between two deliveries microtasks have their turn.
  expect(new Set(order.map((each) => each.split('.')[2])).size).toBe(order.length)
  expect(channels).toBeLessThanOrEqual(1)
})

describe('memory hub', () => {
  it('rejects with ECONNREFUSED where nobody listens, and after close()', async () => {
    const hub = createMemoryHub()
    expect((await failure(hub.dial('nobody'))).code).toBe('ECONNREFUSED')
    const listener = hub.listen('here', () => {})
    expect(() => hub.listen('here', () => {})).toThrow('memory:here')
    const client = new Recorder(await hub.dial(listener.url)).open()
    await listener.close()
    await client.untilClosed()
    expect((await failure(hub.dial('here'))).code).toBe('ECONNREFUSED')
  })

  it('an aborted dial rejects with the reason and connects nothing', async () => {
    const hub = createMemoryHub()
    const accepted: Transport[] = []
    hub.listen('here', (transport) => accepted.push(transport))
    const reason = new Error('changed my mind')
    await expect(hub.dial('here', { signal: AbortSignal.abort(reason) })).rejects.toBe(reason)
    const controller = new AbortController()
    const dial = hub.dial('here', { signal: controller.signal })
    controller.abort(reason)
    await expect(dial).rejects.toBe(reason)
    await pause(30)
    expect(accepted).toEqual([])
  })
})

function ports(): { port1: Port & { close(): void }; port2: Port & { close(): void } } {
  return new MessageChannel() as unknown as { port1: Port; port2: Port }
}

function half() {
  const { port1, port2 } = ports()
  return { a: openedOver(messagePortTransport(port1)), port2 }
}

transportContract({
  name: 'message port',
  pair: async () => {
    const { port1, port2 } = ports()
    return { a: messagePortTransport(port1), b: messagePortTransport(port2), cleanup: () => {} }
  },
})

describe('message port', () => {
  it('leaves the written array with its owner, also a Buffer of the shared pool', async () => {
    const { a, port2 } = half()
    const b = openedOver(messagePortTransport(port2))
    const pooled = Buffer.from('pooled')
    const own = pattern(10)
    a.write(pooled)
    a.write(own)
    expect([pooled.toString(), own.byteLength]).toEqual(['pooled', 10])
    await b.until(() => b.length === 16)
  })

  it('a peer that only closes its port ends the stream with an error', async () => {
    const { a, port2 } = half()
    await pause(30)
    port2.close()
    await a.untilClosed()
    expect(a.cause).toBeInstanceOf(Error)
  })

  it.each(['close', 'destroy'] as const)(
    '%s() reaches a peer whose platform tells nothing of closed ports',
    async (how) => {
      const { port1, port2 } = ports()
      const silent: Port = {
        postMessage: (message, transfer) => port2.postMessage(message, transfer),
        addEventListener: (type, listener) =>
          type !== 'close' && port2.addEventListener(type, listener),
        removeEventListener: (type, listener) => port2.removeEventListener(type, listener),
        start: () => port2.start(),
        close: () => port2.close(),
      }
      const a = openedOver(messagePortTransport(port1))
      const b = openedOver(messagePortTransport(silent))
      a[how]()
      await b.untilClosed()
      expect(b.cause === undefined).toBe(how === 'close')
    },
  )

  it.each([
    ['an object', { length: 3 }],
    ['an unknown word', 'hello'],
    ['a count of nothing', 5],
    ['a negative count', -1],
    ['null', null],
  ])('cuts the stream on %s', async (_name, message) => {
    const { a, port2 } = half()
    port2.postMessage(message, [])
    await a.untilClosed()
    expect(a.cause).toBeInstanceOf(Error)
    expect(a.length).toBe(0)
  })

  it('backpressure counts what the peer consumed, not what the port took', async () => {
    const { a, port2 } = half()
    while (a.write(pattern(10_000)));
    await pause(30)
    expect(a.drains).toBe(0)
    openedOver(messagePortTransport(port2))
    await a.until(() => a.drains === 1, 'drain')
  })
})
