/** The sequence check of the demo, on which its exit code rests. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { exampleModule } from './program.js'

const { Sequence, Checker, failures, window } = await exampleModule('demo/checker.js')

const counts = ({ received, repeated, gaps }: Record<string, unknown>) => ({
  received,
  repeated,
  gaps,
})

function fed(numbers: Iterable<number>) {
  const sequence = new Sequence()
  for (const number of numbers) sequence.record(number)
  return sequence
}

function* range(first: number, last: number): Generator<number> {
  for (let number = first; number <= last; number += 1) yield number
}

describe('a sequence', () => {
  it('counts a complete one, many windows long', () => {
    expect(counts(fed(range(1, 10 * window)))).toEqual({
      received: 10 * window,
      repeated: 0,
      gaps: 0,
    })
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
      const doubled = [...range(1, 3 * window)].flatMap((number) =>
        number === place ? [number, number] : [number],
      )
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
    for (const leap of [window - 1, window, window + 1, 5 * window + 7])
      expect(counts(fed([1, 1 + leap, 2 + leap]))).toEqual({
        received: 3,
        repeated: 0,
        gaps: leap - 1,
      })
  })
})

describe('the checker', () => {
  it('keeps devices and QoS apart', () => {
    const checker = new Checker(2)
    for (const arrival of ['0 1 1', '1 1 1', '0 2 1', '0 1 3', '0 2 1'])
      checker.record(...arrival.split(' ').map(Number))
    expect([0, 1, 2].map((qos) => checker.received(qos))).toEqual([0, 3, 1])
    expect([0, 1, 2].map((qos) => checker.repeated(qos))).toEqual([0, 0, 1])
    expect([0, 1, 2].map((qos) => checker.gaps(qos))).toEqual([0, 1, 0])
    expect(checker.total).toBe(4)
  })

  it('counts what was sent and never came, also at the end of a sequence', () => {
    const checker = new Checker(2)
    checker.record(0, 1, 1)
    checker.record(1, 1, 2)
    const [first, second, once] = [[0, 3, 0], [0, 2, 5], [0, 1, 0]] // biome-ignore format: devices by QoS
    expect([0, 1, 2].map((qos) => checker.missing(qos, [first, second]))).toEqual([0, 3, 5])
    expect(checker.isMissingAny([first, second])).toBe(true)
    expect(checker.isMissingAny([once, once])).toBe(false)
  })

  it('refuses what no device of this run can have sent', () => {
    const checker = new Checker(1)
    for (const arrival of [
      '0 3 1',
      '1 0 1',
      '-1 0 1',
      '0.5 0 1',
      'NaN 0 1',
      '0 0 0',
      '0 0 1.5',
      '0 0 NaN',
    ])
      expect(checker.record(...arrival.split(' ').map(Number)), arrival).toBe(false)
    expect(checker.total).toBe(0)
  })
})

describe('the verdict', () => {
  const clean = { missing: [0, 0, 0], repeated: [0, 0, 0], foreign: false, dropped: 0 }

  it.each<[what: string, outcome: Partial<typeof clean>, verdict: string[]]>([
    ['passes a clean run', {}, []],
    ['passes repeats at QoS 1', { repeated: [0, 7, 0] }, []],
    ['fails loss at QoS 1', { missing: [0, 2, 0] }, ['2 missing at QoS 1']],
    [
      'fails loss at QoS 1 with any broker',
      { missing: [0, 2, 0], foreign: true },
      ['2 missing at QoS 1'],
    ],
    ['fails loss at QoS 2', { missing: [0, 0, 3], dropped: 3 }, ['3 missing at QoS 2']],
    [
      'fails loss at QoS 2 with any broker',
      { missing: [0, 0, 3], dropped: 3, foreign: true },
      ['3 missing at QoS 2'],
    ],
    ['fails loss at QoS 0', { missing: [4, 0, 0] }, ['4 missing at QoS 0']],
    ['passes loss at QoS 0 with a foreign broker', { missing: [4, 0, 0], foreign: true }, []],
    [
      'takes off what the subscriber counted',
      { missing: [4, 0, 0], dropped: 3 },
      ['1 missing at QoS 0'],
    ],
    ['passes loss that the subscriber counted', { missing: [4, 0, 0], dropped: 9 }, []],
    [
      'fails repeats at QoS 0 and 2',
      { repeated: [1, 2, 3], foreign: true },
      ['1 twice at QoS 0', '3 twice at QoS 2'],
    ],
  ])('%s', (_what, outcome, verdict) => expect(failures({ ...clean, ...outcome })).toEqual(verdict))
})
