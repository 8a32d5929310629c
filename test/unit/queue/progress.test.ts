/** How far a queue has come: the rate and the time that is left, from the first second on, while nothing is delivered, and after a pause. */
import { expect, it, onTestFinished, vi } from 'vitest'
import { Meter } from '../../../src/queue/meter.js'
import { Progress } from '../../../src/queue/progress.js'

const start = Date.UTC(2030, 0, 1)

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
    vi.useFakeTimers({ now: start })
    onTestFinished(() => void vi.useRealTimers())
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
