/** The fuzzer itself: counters change nothing, and the search finds what is hidden. */
import { describe, expect, test } from 'vitest'
import { hex } from './build.js'
import { instrument } from './bundler.js'
import { OracleError } from './oracle.js'
import { Search } from './search.js'
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

  const calls: (number | string | null)[][] = [
    [1, 2],
    [7],
    [8, ''],
    [8, 'b'],
    [12],
    [4, null],
    [0, 3],
  ]

  test('change nothing, and tell every way from the other', () => {
    const plain = new Function(`${source}\nreturn f`) as () => (...given: unknown[]) => unknown
    const runs = calls.map((given) => evaluated(source, ...given))
    expect(runs.map(({ result }) => result)).toEqual(calls.map((given) => plain()(...given)))
    const ways = runs.map(({ hits }) => hits)
    expect(new Set(ways.map(String)).size).toBe(ways.length)
    expect(ways[0]?.every((_, index) => ways.some((hits) => (hits[index] ?? 0) > 0))).toBe(true)
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
})
