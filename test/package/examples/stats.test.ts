/** The figures that the demo shows: percentiles from a histogram of fixed size, and a line that fits the terminal. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { exampleModule } from './program.js'

const { Histogram, Stats } = await exampleModule('demo/stats.js')
const { liveText, LiveLine } = await exampleModule('demo/report.js')

describe('the histogram', () => {
  it('gives every percentile to 3%, from a microsecond to an hour', () => {
    const durations = fc.array(fc.double({ min: 0.001, max: 3_600_000, noNaN: true }), {
      minLength: 1,
      maxLength: 200,
    })
    fc.assert(
      fc.property(durations, fc.double({ min: 0, max: 1, noNaN: true }), (values, share) => {
        const histogram = new Histogram()
        for (const value of values) histogram.record(value)
        const sorted = values.toSorted((a, b) => a - b)
        const exact = sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? Number.NaN
        expect(Math.abs(histogram.percentile(share) / exact - 1)).toBeLessThan(0.03)
        expect(histogram.max).toBe(sorted.at(-1))
      }),
    )
  })

  it('takes what is no duration as 0 and what is too long as the longest it knows', () => {
    const histogram = new Histogram()
    for (const value of [-5, Number.NaN, 0]) histogram.record(value)
    expect(histogram.percentile(1)).toBe(0)
    histogram.record(1e12)
    expect([histogram.count, histogram.max]).toEqual([4, 1e12])
    expect(histogram.percentile(1)).toBeGreaterThan(3_600_000)
  })

  it('is empty at first and after a reset', () => {
    const histogram = new Histogram()
    expect(histogram.percentile(0.5)).toBe(0)
    histogram.record(7)
    histogram.reset()
    expect([histogram.count, histogram.max, histogram.percentile(0.5)]).toEqual([0, 0, 0])
  })
})

describe('the statistics', () => {
  it('show what came since the last look, and keep the whole run', () => {
    const stats = new Stats()
    stats.record(10)
    expect(stats.recent()).toMatchObject({ p50: 10, p99: 10 })
    expect(stats.recent()).toEqual({ rate: 0, p50: undefined, p99: undefined })
    expect(stats.latency.count).toBe(1)
  })
})

describe('the live line', () => {
  const figures = {
    seconds: 12,
    rate: 1003.4,
    p50: 0.84,
    p99: 123.4,
    received: [4012, 4010, 4_011_000],
    missing: 3,
    twice: 2,
  }

  it('tells rate, latency, messages for each QoS, missing and twice', () => {
    expect(liveText(figures)).toBe(
      '12 s   1,003 messages/s   latency p50 0.8  p99 123 ms   received QoS 0: 4,012  QoS 1: 4,010  QoS 2: 4,011,000   missing 3  twice 2',
    )
    expect(liveText({ ...figures, p50: undefined, p99: undefined })).toContain('p50 -  p99 - ms')
  })

  it('is always shorter than the terminal is wide, and keeps missing and twice in 40 columns', () => {
    for (let columns = 1; columns < 200; columns += 1)
      expect(liveText(figures, columns).length).toBeLessThan(columns)
    expect(liveText(figures, 80)).toContain('QoS 0/1/2 4K 4K 4M  missing 3  twice 2')
    expect(liveText(figures, 40)).toContain('missing 3  twice 2')
  })

  it('is rewritten in place on a terminal, and a line of its own on a pipe', () => {
    const shown = (stream: object) => {
      let written = ''
      const line = new LiveLine({ ...stream, write: (text: string) => (written += text) })
      line.show(figures)
      line.show(figures)
      line.end()
      return written
    }
    const text = liveText(figures)
    expect(shown({})).toBe(`${text}\n${text}\n`)
    expect(shown({ isTTY: true, columns: 500 })).toBe(`\r${text}\x1b[K\r${text}\x1b[K\n`)
  })
})
