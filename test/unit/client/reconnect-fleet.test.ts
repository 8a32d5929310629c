import { describe, expect, it } from 'vitest'
import { BaseClient } from '../../../src/client/client.js'
import type { VirtualClock } from '../../../src/testing/virtual-clock.js'
import { virtualPlatform } from '../../../src/testing/virtual-platform.js'
import { memoryPair } from '../../../src/transport/memory.js'
import type { Transport } from '../../../src/transport/transport.js'
import { HeapClock } from './heap-clock.js'

const minute = 60_000

/** A broker of many clients: it is there or it is not. */
class Fleet {
  readonly clock = new HeapClock()
  readonly clients: BaseClient[] = []
  /** Times of all dials. */
  readonly dials: number[] = []
  /** Of each client. */
  readonly delays: number[][] = []
  mode: 'up' | 'down' | 'busy' = 'up'
  readonly #open = new Set<Transport>()

  constructor(size: number) {
    const transport = async (): Promise<Transport> => {
      this.dials.push(this.clock.now())
      if (this.mode === 'down') throw new Error('ECONNREFUSED')
      const [near, far] = memoryPair({
        schedule: (callback, delay) => this.clock.setTimer(callback, delay),
      })
      this.#accept(far)
      return near
    }
    for (let index = 0; index < size; index++) {
      const delays: number[] = []
      // Seeds far apart: those of neighbours begin alike.
      const seed = Math.imul(index + 1, 2_654_435_761)
      const platform = virtualPlatform(this.clock as unknown as VirtualClock, seed)
      const options = { keepAlive: false, firstConnect: 'wait' } as const
      const client = new BaseClient(platform, { url: 'x://broker', transport }, options)
      client.on('reconnecting', ({ delay }) => delays.push(delay))
      client.connect().catch(() => undefined)
      this.clients.push(client)
      this.delays.push(delays)
    }
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

  get states(): string[] {
    return [...new Set(this.clients.map((client) => client.state))]
  }

  /** No second has more than 3 in 100 of the attempts since then; gives how many there were. */
  checkSpread(from: number): number {
    const buckets = new Map<number, number>()
    const times = this.dials.filter((at) => at >= from).map((at) => Math.floor(at / 1000))
    for (const second of times) buckets.set(second, (buckets.get(second) ?? 0) + 1)
    expect(Math.max(...buckets.values()) / times.length).toBeLessThanOrEqual(0.03)
    return times.length
  }

  async end(): Promise<void> {
    for (const client of this.clients) client.destroy()
    await this.clock.advance(2000)
    expect(this.clock.pending).toBe(0)
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
      await fleet.clock.advance(10)
      expect(fleet.states).toEqual(['connected'])
      await fleet.clock.advance(minute)
      const from = fleet.clock.now()
      fleet.fall(mode)
      await fleet.clock.advance(10 * minute)
      expect(fleet.checkSpread(from)).toBeGreaterThan(size * 20)
      for (const delays of fleet.delays) {
        expect(Math.max(...delays)).toBeLessThanOrEqual(30_000)
        expect(Math.min(...delays)).toBeGreaterThanOrEqual(1000)
        expect(new Set(delays).size).toBeGreaterThan(delays.length / 2)
      }
      // Each client has a series of its own.
      expect(new Set(fleet.delays.map((delays) => delays.join())).size).toBe(size)
      fleet.mode = 'up'
      await fleet.clock.advance(31_000)
      expect(fleet.states).toEqual(['connected'])
      await fleet.end()
    },
  )

  it('the same where it was never there', async () => {
    const fleet = new Fleet(200)
    fleet.mode = 'down'
    await fleet.clock.advance(10 * minute)
    fleet.checkSpread(0)
    await fleet.end()
  })
})
