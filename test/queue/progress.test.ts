/** How far a queue has come: the rate and the time that is left, from the first second on, while nothing is delivered, and after a pause. */
import { describe, expect, it } from 'vitest'
import { Meter } from '../../src/queue/meter.js'

const start = Date.UTC(2030, 0, 1)

/** A meter that has counted so many a second, evenly, from one second to another. */
function counted(meter: Meter, perSecond: number, from: number, to: number): Meter {
  for (let at = from * 1000; at < to * 1000; at += 1000 / perSecond) meter.count(start + at)
  return meter
}

describe('the rate', () => {
  it('is 0 before anything was delivered', () => {
    expect(new Meter().rate(start)).toBe(0)
  })

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

  it('survives a clock that is set back', () => {
    const meter = counted(new Meter(), 10, 100, 105)
    meter.count(start)
    expect(meter.rate(start)).toBeGreaterThan(0)
    expect(Number.isFinite(meter.rate(start))).toBe(true)
  })
})
