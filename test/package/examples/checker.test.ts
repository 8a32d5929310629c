/**
 * The sequence check of the demo, on which its exit code rests.
 */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { demoModule } from './program.js'

interface Sequence {
  readonly received: number
  readonly repeated: number
  readonly gaps: number
  record(number: number): boolean
}
interface Checker {
  readonly total: number
  record(device: number, qos: number, number: number): boolean
  received(qos: number): number
  repeated(qos: number): number
  gaps(qos: number): number
  missing(qos: number, sent: readonly (readonly number[])[]): number
  isMissingAny(sent: readonly (readonly number[])[]): boolean
}
interface Arrival {
  readonly device: number
  readonly qos: number
  readonly number: number
}
interface Outcome {
  readonly missing: readonly number[]
  readonly repeated: readonly number[]
  readonly foreign: boolean
  readonly dropped: number
}

const { Sequence, Checker, failures, window } = await demoModule<{
  readonly Sequence: new () => Sequence
  readonly Checker: new (devices: number) => Checker
  readonly failures: (outcome: Outcome) => string[]
  readonly window: number
}>('checker.js')

const counts = ({ received, repeated, gaps }: Sequence) => ({ received, repeated, gaps })

function fed(numbers: Iterable<number>): Sequence {
  const sequence = new Sequence()
  for (const number of numbers) sequence.record(number)
  return sequence
}

function* range(first: number, last: number): Generator<number> {
  for (let number = first; number <= last; number += 1) yield number
}

describe('a sequence', () => {
  it('counts a complete one, many windows long', () => {
    expect(counts(fed(range(1, 10 * window)))).toEqual({ received: 10 * window, repeated: 0, gaps: 0 })
  })

  it('agrees with a set of all numbers, in any order, with gaps and repeats, as long as they stay within the window', () => {
    const numbers = fc.array(fc.integer({ min: 1, max: window }), { maxLength: 300 })
    fc.assert(
      fc.property(numbers, fc.nat({ max: 3 * window }), (offsets, start) => {
        const sequence = fed(range(1, start))
        const seen = new Set(range(1, start))
        for (const offset of offsets) {
          expect(sequence.record(start + offset)).toBe(!seen.has(start + offset))
          seen.add(start + offset)
        }
        expect(counts(sequence)).toEqual({
          received: seen.size,
          repeated: start + offsets.length - seen.size,
          gaps: Math.max(0, ...seen) - seen.size,
        })
      }),
    )
  })

  it('finds a gap and a repeat at every place of the window', () => {
    for (const place of [1, 2, 31, 32, 33, window - 1, window, window + 1, 2 * window]) {
      const others = [...range(1, 3 * window)].filter((number) => number !== place)
      expect(counts(fed(others))).toEqual({ received: 3 * window - 1, repeated: 0, gaps: 1 })
      const doubled = [...range(1, 3 * window)].flatMap((number) => (number === place ? [number, number] : [number]))
      expect(counts(fed(doubled))).toEqual({ received: 3 * window, repeated: 1, gaps: 0 })
    }
  })

  it('takes a number older than the window for a repeat', () => {
    const sequence = fed(range(1, 2 * window))
    expect(sequence.record(window)).toBe(false)
    expect(sequence.record(1)).toBe(false)
    expect(counts(sequence)).toEqual({ received: 2 * window, repeated: 2, gaps: 0 })
  })

  it('forgets what it saw when it leaps by a window or more', () => {
    for (const leap of [window - 1, window, window + 1, 5 * window + 7]) {
      expect(counts(fed([1, 1 + leap, 2 + leap]))).toEqual({ received: 3, repeated: 0, gaps: leap - 1 })
    }
  })
})

describe('the checker', () => {
  it('keeps devices and QoS apart', () => {
    const checker = new Checker(2)
    const arrivals: Arrival[] = [
      { device: 0, qos: 1, number: 1 },
      { device: 1, qos: 1, number: 1 },
      { device: 0, qos: 2, number: 1 },
      { device: 0, qos: 1, number: 3 },
      { device: 0, qos: 2, number: 1 },
    ]
    for (const { device, qos, number } of arrivals) checker.record(device, qos, number)
    expect([0, 1, 2].map((qos) => checker.received(qos))).toEqual([0, 3, 1])
    expect([0, 1, 2].map((qos) => checker.repeated(qos))).toEqual([0, 0, 1])
    expect([0, 1, 2].map((qos) => checker.gaps(qos))).toEqual([0, 1, 0])
    expect(checker.total).toBe(4)
  })

  it('counts what was sent and never came, also at the end of a sequence', () => {
    const checker = new Checker(2)
    checker.record(0, 1, 1)
    checker.record(1, 1, 2)
    const sent = [
      [0, 3, 0],
      [0, 2, 5],
    ] as const
    expect([0, 1, 2].map((qos) => checker.missing(qos, sent))).toEqual([0, 3, 5])
    expect(checker.isMissingAny(sent)).toBe(true)
    expect(
      checker.isMissingAny([
        [0, 1, 0],
        [0, 1, 0],
      ]),
    ).toBe(false)
  })

  it('refuses what no device of this run can have sent', () => {
    const checker = new Checker(1)
    const good = { device: 0, qos: 0, number: 1 }
    const strange: Partial<Arrival>[] = [
      { qos: 3 },
      ...[1, -1, 0.5, Number.NaN].map((device) => ({ device })),
      ...[0, 1.5, Number.NaN].map((number) => ({ number })),
    ]
    for (const { device, qos, number } of strange.map((part) => ({ ...good, ...part }))) expect(checker.record(device, qos, number)).toBe(false)
    expect(checker.total).toBe(0)
  })
})

describe('the verdict', () => {
  const clean: Outcome = { missing: [0, 0, 0], repeated: [0, 0, 0], foreign: false, dropped: 0 }

  it('passes a clean run, and repeats at QoS 1', () => {
    expect(failures(clean)).toEqual([])
    expect(failures({ ...clean, repeated: [0, 7, 0] })).toEqual([])
  })

  it('fails loss at QoS 1 and 2 with any broker', () => {
    for (const foreign of [false, true]) {
      expect(failures({ ...clean, foreign, missing: [0, 2, 0] })).toEqual(['2 missing at QoS 1'])
      expect(failures({ ...clean, foreign, missing: [0, 0, 3], dropped: 3 })).toEqual(['3 missing at QoS 2'])
    }
  })

  it('fails loss at QoS 0 unless the broker is foreign or the subscriber counted it', () => {
    expect(failures({ ...clean, missing: [4, 0, 0] })).toEqual(['4 missing at QoS 0'])
    expect(failures({ ...clean, missing: [4, 0, 0], foreign: true })).toEqual([])
    expect(failures({ ...clean, missing: [4, 0, 0], dropped: 3 })).toEqual(['1 missing at QoS 0'])
    expect(failures({ ...clean, missing: [4, 0, 0], dropped: 9 })).toEqual([])
  })

  it('fails repeats at QoS 0 and 2', () => {
    expect(failures({ ...clean, repeated: [1, 2, 3], foreign: true })).toEqual(['1 twice at QoS 0', '3 twice at QoS 2'])
  })
})
