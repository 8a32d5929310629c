/** The rate and the time that is left; clocks that are set, backoffs that fail, and publishes that all come at once. */

import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { exponential } from '../../../src/client/options/backoff.js'
import { openQueue, type Queue, type QueueOptions } from '../../../src/queue/index.js'
import { Meter } from '../../../src/queue/meter.js'
import { Progress } from '../../../src/queue/progress.js'
import { FakePublisher, fail, MapStore, refusedWith, settled } from './rig.js'

const start = Date.UTC(2030, 0, 1)
const hour = 3_600_000
let store: MapStore
let publisher: FakePublisher
let queue: Queue

async function open(options: Partial<QueueOptions> = {}): Promise<void> {
  queue = await openQueue(publisher, { store, ...options })
}

beforeEach(() => {
  vi.useFakeTimers({ now: start })
  store = new MapStore()
  publisher = new FakePublisher()
})

afterEach(async () => {
  const closed = queue?.close({ timeout: 0 })
  await vi.advanceTimersByTimeAsync(1000)
  await closed
  vi.useRealTimers()
})

/** A meter that has counted so many a second, evenly, from one second to another. */
function counted(meter: Meter, perSecond: number, from: number, to: number): Meter {
  for (let at = from * 1000; at < to * 1000; at += 1000 / perSecond) meter.count(start + at)
  return meter
}

it.each([1, 2, 5, 10, 60])('is what it is after %i seconds', (seconds) => {
  const meter = counted(new Meter(), 100, 0, seconds)
  expect(meter.rate(start + seconds * 1000)).toBeCloseTo(100, -1)
})

it('is what it is soon after a pause, of which it knows nothing', () => {
  const meter = counted(new Meter(), 100, 0, 20)
  counted(meter, 100, 3600, 3602)
  expect(meter.rate(start + 3_602_000)).toBe(100)
})

it('goes down while nothing is delivered, and is 0 after ten seconds', () => {
  const meter = counted(new Meter(), 100, 0, 5)
  const rates = [5, 6, 10, 14].map((seconds) => meter.rate(start + seconds * 1000))
  expect(rates).toEqual([...rates].sort((one, other) => other - one))
  expect(rates[0]).toBe(100)
  expect(rates[2]).toBeLessThan(60)
  expect(meter.rate(start + 15_000)).toBe(0)
})

it('counts the first second as a whole one, so that one entry is no thousand a second', () => {
  const meter = new Meter()
  meter.count(start + 999)
  expect(meter.rate(start + 999)).toBe(1)
})

it.each([-3_600_000, 3_600_000])(
  'of a queue is what it is while the clock is set by %i ms',
  (by) => {
    const progress = new Progress(
      () => ({ pending: 60, inFlight: 0, bytes: 0 }),
      () => undefined,
      () => false,
    )
    const deliver = (): void => {
      for (let n = 0; n < 30; n++) {
        vi.advanceTimersByTime(100)
        progress.handleDelivered()
      }
    }
    deliver()
    vi.setSystemTime(start + by)
    deliver()
    expect(progress.status.rate).toBeCloseTo(10, 0)
    expect(progress.status.timeLeft).toBeCloseTo(6000, -3)
    vi.advanceTimersByTime(15_000)
    expect(progress.status.rate).toBe(0)
  },
)

describe('a clock that is set', () => {
  it.each([
    ['back', -hour, [10]],
    ['forward', hour, []],
  ])('%s: what leaves has no more time than it had', async (_how, by, expected) => {
    publisher.online = false
    await open()
    await queue.publish('a', '1', { ttl: 10_000 })
    vi.setSystemTime(start + by)
    publisher.online = true
    await settled()
    expect(publisher.calls.map(({ options }) => options.properties?.messageExpiryInterval)).toEqual(
      expected,
    )
  })
})

describe('a backoff', () => {
  async function refusedOnce(): Promise<void> {
    await queue.publish('a', '1')
    await settled()
    publisher.calls[0]?.refuse(refusedWith(0x97))
  }

  it('that throws is told, and the entry is tried again', async () => {
    const backoff = (): never => {
      throw new Error('mine')
    }
    await open({ backoff })
    const errors: unknown[] = []
    queue.on('error', ({ error }) => errors.push((error as Error).message))
    await refusedOnce()
    await vi.advanceTimersByTimeAsync(30_000)
    expect([errors, publisher.calls.length]).toEqual([['mine'], 2])
  })

  it.each([Number.NaN, -1, undefined, 1e12])('that gives %o makes no hurry', async (delay) => {
    await open({ backoff: () => delay as number })
    await refusedOnce()
    await vi.advanceTimersByTimeAsync(20_000)
    expect(publisher.calls).toHaveLength(1)
  })
})

it('drop-oldest: gives up the oldest of those that come at once, and never the newest', async () => {
  publisher.online = false
  await open({ maxEntries: 10, overflow: 'drop-oldest', backoff: exponential() })
  const drops: number[] = []
  queue.on('drop', ({ id }) => drops.push(id))
  const all = await Promise.allSettled(
    Array.from({ length: 25 }, (_, at) => queue.publish('a', `${at}`)),
  )
  expect(all.filter(({ status }) => status === 'rejected')).toEqual([])
  expect([queue.size, drops]).toEqual([10, Array.from({ length: 15 }, (_, at) => at + 1)])
  publisher.online = true
  await settled()
  expect(publisher.texts).toEqual(Array.from({ length: 10 }, (_, at) => `${at + 15}`))
})

describe('what is told', () => {
  it('of a store that fails is one error a second, however many entries wait for it', async () => {
    await open()
    const errors: unknown[] = []
    queue.on('error', ({ error }) => errors.push(error))
    await Promise.all(Array.from({ length: 50 }, (_, at) => queue.publish(`${at}`, '')))
    await settled()
    store.before = fail
    for (const call of publisher.calls) call.accept()
    await vi.advanceTimersByTimeAsync(4500)
    expect(errors.length).toBeLessThanOrEqual(5)
    expect(errors.length).toBeGreaterThan(1)
    store.before = () => undefined
    await vi.advanceTimersByTimeAsync(1500)
    expect(queue.size).toBe(0)
  })

  it('of a promise in the place of a store: await it', async () => {
    await open()
    await expect(openQueue(publisher, { store: Promise.resolve(store) as never })).rejects.toThrow(
      /await the promise of levelStore/,
    )
    const deadLetterStore = Promise.resolve(store) as never
    await expect(openQueue(publisher, { store, deadLetterStore })).rejects.toThrow(
      /deadLetterStore.* await the promise/,
    )
    await expect(openQueue(Promise.resolve(publisher) as never, { store })).rejects.toThrow(
      /publisher.* await the promise/,
    )
  })
})
