/** Each checker reports a client with a defect, and nothing of a sound one in the same wrapping. */
import { describe, expect, test } from 'vitest'
import { checkers } from './checkers.js'
import type { Checker } from './defective.js'
import { defects, defectsFor, nothing } from './defects.js'

describe.each(Object.keys(checkers) as Checker[])('%s', (name) => {
  const check = checkers[name]

  test('reports nothing of a wrapper that changes nothing', async () => {
    expect(await check(nothing, 1)).toEqual([])
  })

  test.each(defectsFor(name))('reports: $name', async (defect) => {
    const [seed, ...rules] = defect.by[name] as [number, ...string[]]
    const found = await check(defect, seed)
    expect(
      rules.some((rule) => found.includes(rule)),
      `seed ${seed}: ${found.join() || 'nothing was found'}`,
    ).toBe(true)
  })
})

test('there are 25 defects, each with a name of its own', () => {
  expect(new Set(defects.map(({ name }) => name)).size).toBe(25)
})
