import { describe, expect, it } from 'vitest'
import type { ClientOptions } from '../../../src/client/api/index.js'
import { BaseClient } from '../../../src/client/client.js'
import { ScriptedPeer } from '../../../src/testing/scripted-peer.js'
import type { VirtualClock } from '../../../src/testing/virtual-clock.js'
import { virtualPlatform } from '../../../src/testing/virtual-platform.js'
import { memoryPair } from '../../../src/transport/memory.js'
import type { Transport } from '../../../src/transport/transport.js'
import { agreeable } from './harness.js'
import { HeapClock } from './heap-clock.js'

const minute = 60_000

/** A broker of many clients: it is there or it is not. */
class Fleet {
  readonly clock = new HeapClock()
  readonly clients: BaseClient[] = []
  /** Times of the dials of each client. */
  readonly dials: number[][] = []
  readonly delays: number[][] = []
  mode: 'up' | 'down' | 'busy' = 'up'
  readonly #open = new Set<Transport>()

  constructor(size: number, options: ClientOptions = {}) {
    const schedule = (callback: () => void, delay: number): (() => void) => this.clock.setTimer(callback, delay)
    for (let index = 0; index < size; index++) {
      const dials: number[] = []
      const delays: number[] = []
      // Seeds far apart: those of neighbours begin alike.
      const platform = virtualPlatform(this.clock as unknown as VirtualClock, Math.imul(index + 1, 2_654_435_761))
      const transport = async (): Promise<Transport> => {
        dials.push(this.clock.now())
        if (this.mode === 'down') throw new Error('ECONNREFUSED')
        const [near, far] = memoryPair({ schedule })
        this.#accept(far)
        return near
      }
      const client = new BaseClient(platform, { url: 'x://broker', transport }, { keepAlive: false, firstConnect: 'wait', ...options })
      client.on('reconnecting', ({ delay }) => delays.push(delay))
      this.clients.push(client)
      this.dials.push(dials)
      this.delays.push(delays)
    }
  }

  async connect(): Promise<void> {
    for (const client of this.clients) client.connect().catch(() => undefined)
    await this.clock.advance(10)
  }

  /** The broker goes away, at one instant. */
  fall(mode: 'down' | 'busy'): void {
    this.mode = mode
    for (const transport of this.#open) transport.destroy(new Error('gone'))
    this.#open.clear()
  }

  // CONNACK is the answer to whatever comes first: bytes are enough here.
  #accept(transport: Transport): void {
    const answer = this.mode === 'busy' ? 0x89 : 0
    this.#open.add(transport)
    transport.open({
      buffer: () => new Uint8Array(0),
      read: () => undefined,
      chunk: () => transport.write(Uint8Array.of(0x20, 3, 0, answer, 0)),
      drain: () => undefined,
      closed: () => this.#open.delete(transport),
    })
  }

  get states(): Set<string> {
    return new Set(this.clients.map((client) => client.state))
  }

  /** The largest share of the attempts since `from` that fell into one second. */
  busiest(from: number): { share: number; total: number } {
    const buckets = new Map<number, number>()
    let total = 0
    for (const at of this.dials.flat()) {
      if (at < from) continue
      total += 1
      const second = Math.floor(at / 1000)
      buckets.set(second, (buckets.get(second) ?? 0) + 1)
    }
    return { share: Math.max(...buckets.values()) / total, total }
  }
}

describe('a thousand clients', () => {
  it.each([
    ['down', 1000],
    ['busy', 300],
  ] as const)(
    'the broker is %s for ten minutes: no second has more than 3 in 100 of the attempts (%s clients)',
    async (mode, size) => {
      const fleet = new Fleet(size)
      await fleet.connect()
      expect(fleet.states).toEqual(new Set(['connected']))
      await fleet.clock.advance(minute)
      const from = fleet.clock.now()
      fleet.fall(mode)
      await fleet.clock.advance(10 * minute)
      const { share, total } = fleet.busiest(from)
      expect(total).toBeGreaterThan(size * 20)
      expect(share).toBeLessThanOrEqual(0.03)
      for (const delays of fleet.delays) {
        expect(Math.max(...delays)).toBeLessThanOrEqual(30_000)
        expect(Math.min(...delays)).toBeGreaterThanOrEqual(1000)
        expect(new Set(delays).size).toBeGreaterThan(delays.length / 2)
      }
      // Each client has a series of its own.
      expect(new Set(fleet.delays.map((delays) => delays.join())).size).toBe(size)
      fleet.mode = 'up'
      await fleet.clock.advance(31_000)
      expect(fleet.states).toEqual(new Set(['connected']))
      for (const client of fleet.clients) client.destroy()
      await fleet.clock.advance(2000)
      expect(fleet.clock.pending).toBe(0)
    },
    60_000,
  )

  it('the same where it was never there', async () => {
    const fleet = new Fleet(200)
    fleet.mode = 'down'
    await fleet.connect()
    await fleet.clock.advance(10 * minute)
    expect(fleet.busiest(0).share).toBeLessThanOrEqual(0.03)
    for (const client of fleet.clients) client.destroy()
    expect(fleet.clock.pending).toBe(0)
  }, 60_000)
})

describe('a broker that accepts and hangs up after 50 ms', () => {
  async function flap(options: ClientOptions): Promise<number[]> {
    const clock = new HeapClock()
    const schedule = (callback: () => void, delay: number): (() => void) => clock.setTimer(callback, delay)
    let open = 0
    let most = 0
    const transport = async (): Promise<Transport> => {
      const [near, far] = memoryPair({ schedule })
      const peer = new ScriptedPeer(far, 5, agreeable)
      open += 1
      most = Math.max(most, open)
      clock.setTimer(() => {
        open -= 1
        peer.cut()
      }, 50)
      return near
    }
    const client = new BaseClient(virtualPlatform(clock as unknown as VirtualClock, 99), { url: 'x://broker', transport }, options)
    const delays: number[] = []
    let connects = 0
    client.on('reconnecting', ({ delay }) => delays.push(delay))
    client.on('connect', () => {
      connects += 1
    })
    client.connect().catch(() => undefined)
    while (connects < 100 && clock.now() < 2 * 3_600_000) await clock.advance(1000)
    client.destroy()
    expect(connects).toBeGreaterThanOrEqual(100)
    expect(most).toBe(1)
    return delays
  }

  it('100 times: delays grow to the cap and stay there', async () => {
    const delays = await flap({ reconnect: { backoff: (attempt) => Math.min(30_000, 1000 * 2 ** (attempt - 1)) } })
    expect(delays.slice(0, 6)).toEqual([1000, 2000, 4000, 8000, 16_000, 30_000])
    expect(new Set(delays.slice(5))).toEqual(new Set([30_000]))
  })

  it('with the default jitter: the window grows to the cap and stays open', async () => {
    const delays = await flap({})
    const late = delays.slice(6)
    expect(late.reduce((sum, delay) => sum + delay, 0) / late.length).toBeGreaterThan(12_000)
    expect(Math.max(...late)).toBeGreaterThan(25_000)
    expect(Math.max(...late)).toBeLessThanOrEqual(30_000)
  })
})
