import { describe, expect, it } from 'vitest'
import { constant, exponential } from '../../../src/client/options/backoff.js'
import { MqttError } from '../../../src/errors.js'
import { Random } from '../../world/random.js'
import { coded } from './harness.js'

/** Repeatable numbers in [0, 1). */
function seeded(seed: number): () => number {
  const random = new Random(seed)
  return () => random.float()
}

const attempts = Array.from({ length: 12 }, (_, index) => index + 1)

describe('exponential', () => {
  it('without jitter: the series, exactly, from min up to max', () => {
    const series = (backoff: ReturnType<typeof exponential>): number[] =>
      attempts.map((attempt) => backoff(attempt, undefined))
    const seconds = attempts.map((attempt) => Math.min(30, 2 ** (attempt - 1)))
    expect(series(exponential({ jitter: 'none' }))).toEqual(seconds.map((each) => each * 1000))
    const own = series(exponential({ min: 50, max: 500, jitter: 'none' }))
    expect(own.slice(0, 6).join()).toBe('50,100,200,400,500,500')
    expect(exponential({ min: 700, max: 700 })(4, undefined, () => 0.9)).toBe(700)
  })

  it.each(['none', 'full'] as const)('stays at the cap for ever (jitter %s)', (jitter) => {
    for (const attempt of [100, 1024, 5000, 1e9, Number.MAX_SAFE_INTEGER]) {
      const delay = exponential({ jitter })(attempt, undefined)
      expect(delay).toBeGreaterThanOrEqual(1000)
      expect(delay).toBeLessThanOrEqual(30_000)
    }
  })

  it('with jitter: never below min, never above the window of its step', () => {
    const backoff = exponential()
    for (let seed = 1; seed <= 200; seed++) {
      const random = seeded(seed)
      for (const attempt of attempts) {
        const delay = backoff(attempt, undefined, random)
        expect(delay).toBeGreaterThanOrEqual(1000)
        expect(delay).toBeLessThanOrEqual(Math.min(30_000, 1000 * 2 ** attempt))
      }
    }
  })

  it('full jitter uses the whole window, evenly', () => {
    const backoff = exponential()
    const random = seeded(7)
    const delays = Array.from({ length: 5000 }, () => backoff(8, undefined, random))
    const buckets = Array.from(
      { length: 29 },
      (_, second) => delays.filter((delay) => Math.floor(delay / 1000) === second + 1).length,
    )
    expect(Math.min(...buckets)).toBeGreaterThan(100)
    expect(Math.max(...buckets)).toBeLessThan(250)
  })

  it.each([
    ['min', { min: -1 }],
    ['min', { min: Number.NaN }],
    ['min', { min: '1s' }],
    ['max', { max: Number.POSITIVE_INFINITY }],
    ['max', { min: 2000, max: 1000 }],
    ['max', { max: 500 }],
    ['jitter', { jitter: 'some' }],
    ['factor', { factor: 3 }],
  ])('%s: %j is refused with its name', (option, given) => {
    expect(() => exponential(given as object)).toThrow(coded('ERR_INVALID_OPTION', option))
  })
})

describe('constant', () => {
  it('gives the same delay whatever happened', () => {
    for (const attempt of attempts)
      expect(constant(250)(attempt, new MqttError('ERR_TLS'), () => 0.5)).toBe(250)
    expect(constant(0)(1, undefined)).toBe(0)
  })

  it.each([-1, Number.NaN, Number.POSITIVE_INFINITY, '5'])('refuses %s', (delay) => {
    expect(() => constant(delay as number)).toThrow(coded('ERR_INVALID_OPTION'))
  })
})
