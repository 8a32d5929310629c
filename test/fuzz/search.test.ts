/** The fuzzer itself: counters change nothing, changes are repeatable, and the search finds what is hidden. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { mutation } from './arbitraries.js'
import { fromHex, hex, join, pingresp, publish } from './build.js'
import { instrument } from './instrument.js'
import { mutate, packetsIn } from './mutate.js'
import { difference, OracleError } from './oracle.js'
import { kindOf, Search, shrink } from './search.js'
import { pieces } from './tape.js'
import type { Target } from './targets.js'

/** Runs instrumented code; gives its result and its counters. */
function evaluated(
  source: string,
  ...given: readonly unknown[]
): { readonly result: unknown; readonly hits: readonly number[] } {
  const { code, count } = instrument(source, 'a.ts', 'hits', 0)
  const hits = Array<number>(count).fill(0)
  const make = new Function('hits', `${code}\nreturn f`) as (
    hits: number[],
  ) => (...args: readonly unknown[]) => unknown
  return { result: make(hits)(...given), hits }
}

describe('counters', () => {
  const source = `function f(a, b) {
    for (const x of [1, 2, 3]) if (x === a) return 'in'; else if (x === b) b = null
    const g = (y) => y ?? 'none'
    switch (a) { case 7: b = 'seven'; default: if (a > 9) b = 'big' }
    try { if (a === 8) throw new Error('x') } catch { return a && b || 'caught' }
    return a ? g(b) : { a }.a
  }`
  const plain = (...given: readonly unknown[]): unknown =>
    (new Function(`${source}\nreturn f`) as () => (...args: readonly unknown[]) => unknown)()(
      ...given,
    )

  const calls: (number | string | null)[][] = [
    [1, 2],
    [7],
    [8, ''],
    [8, 'b'],
    [12],
    [4, null],
    [0, 3],
  ]

  test.each(calls.map((given) => ({ given })))('change nothing: f($given)', ({ given }) => {
    expect(evaluated(source, ...given).result).toEqual(plain(...given))
  })

  test('tell every way from the other', () => {
    const ways = calls.map((given) => evaluated(source, ...given).hits)
    expect(new Set(ways.map(String)).size).toBe(ways.length)
    expect(ways[0]?.every((_, index) => ways.some((hits) => (hits[index] ?? 0) > 0))).toBe(true)
  })

  test('leave every line where it was', () => {
    expect(instrument(source, 'a.ts', 'hits', 5).code.split('\n')).toHaveLength(
      source.split('\n').length,
    )
  })
})

describe('changes to inputs', () => {
  const stream = join(
    1,
    2,
    publish({ version: 5 }, 't', 'x', { qos: 1 }),
    pingresp,
    publish({ version: 5 }, 'ü', ''),
  )

  test('are repeatable, bounded, and leave what they are given alone', () => {
    const before = hex(stream)
    fc.assert(
      fc.property(fc.array(mutation, { maxLength: 20 }), (list) => {
        const [first, second] = [1, 2].map(() =>
          list.reduce((bytes, each) => mutate(bytes, 2, each), stream),
        ) as [Uint8Array, Uint8Array]
        expect(hex(first)).toBe(hex(second))
        expect(first.length).toBeLessThanOrEqual(2048)
        expect(hex(stream)).toBe(before)
      }),
    )
  })

  test.each(['grow', 'shrink', 'swap', 'drop', 'duplicate'] as const)(
    '%s keeps a stream a stream of packets',
    (kind) => {
      fc.assert(
        fc.property(mutation, (each) => {
          const changed = mutate(stream, 2, { ...each, kind })
          expect(packetsIn(changed, 2).at(-1)?.[2] ?? 2).toBe(changed.length)
        }),
      )
    },
  )

  test('pieces are the whole again', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 5000 }), fc.nat(255), (bytes, seed) => {
        expect(hex(join(...pieces(bytes, seed)))).toBe(hex(bytes))
      }),
    )
  })
})

describe('the search', () => {
  // Each step on the way to the fault has a counter of its own.
  const hits = new Uint32Array(4)
  const hidden: Target = {
    name: 'wire',
    header: 0,
    counters: () => hits,
    run(bytes) {
      const step = (index: number): void => {
        hits[index] = (hits[index] as number) + 1
      }
      step(0)
      if (bytes[0] !== 0x32) return
      step(1)
      if ((bytes[3] ?? 0) < 200) return
      step(2)
      if (bytes[5] === 0x21) throw new OracleError('hidden', `found behind ${bytes.length} bytes`)
    },
  }

  test('finds a fault behind three conditions, made as small as it can be, the same one for a seed', () => {
    const [found, again] = [7, 7].map((seed) => {
      const search = new Search(hidden, seed)
      search.start([])
      while (search.findings.length === 0 && search.inputs < 200_000) search.step()
      return search.findings.map(({ bytes, rule }) => ({ bytes: hex(bytes), rule }))
    })
    expect(found).toEqual(again)
    expect(found).toMatchObject([
      { rule: 'hidden', bytes: expect.stringMatching(/^320000(..)0021$/) },
    ])
  })

  test('shrinks to what fails, and not beyond', () => {
    const small = shrink(
      fromHex('0102030405060708090a'),
      (bytes) => bytes.includes(7) && bytes.length > 2,
    )
    expect([small.length, [...small].includes(7)]).toEqual([3, true])
  })

  test('differences are named, and findings that differ in numbers are one kind', () => {
    expect(difference({ a: [1, { b: 2 }] }, { a: [1, { b: 3 }] })).toBe('it.a[1].b: 2 and 3')
    expect(difference([Uint8Array.of(1)], [Uint8Array.of(1)])).toBeUndefined()
    expect(kindOf(new OracleError('r', '12 of 3'))).toBe(kindOf(new OracleError('r', '7 of 99')))
  })
})
