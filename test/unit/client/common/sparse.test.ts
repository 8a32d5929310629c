/** What takes memory only while it holds something does what Map and Set do. */
import { describe, expect, it } from 'vitest'
import { SparseMap, SparseSet } from '../../../../src/common/sparse.js'

describe('SparseMap', () => {
  it('is empty at first, and again', () => {
    const map = new SparseMap<string, number>()
    const empty = (): void => {
      expect([map.size, map.get('a')]).toEqual([0, undefined])
      expect([map.has('a'), map.delete('a')]).toEqual([false, false])
      expect([...map.keys(), ...map.values()]).toEqual([])
    }
    empty()
    map.set('a', 1)
    map.set('b', 2)
    map.set('a', 3)
    expect([map.size, map.get('a'), map.has('b')]).toEqual([2, 3, true])
    expect([...map.keys(), ...map.values()]).toEqual(['a', 'b', 3, 2])
    expect([map.delete('a'), map.delete('a'), map.size]).toEqual([true, false, 1])
    expect(map.delete('b')).toBe(true)
    empty()
    map.set('a', 1)
    map.clear()
    map.clear()
    empty()
  })

  it('a walk meets what is added meanwhile, misses what is taken out, and ends with clear()', () => {
    const map = new SparseMap<number, string>()
    for (const key of [1, 2, 3]) map.set(key, '')
    const met: number[] = []
    for (const key of map.keys()) {
      met.push(key)
      if (key === 1) map.delete(2)
      if (key === 3) map.set(4, '')
    }
    expect(met).toEqual([1, 3, 4])
    met.length = 0
    for (const key of map.keys()) {
      met.push(key)
      map.clear()
    }
    expect(met).toEqual([1])
  })
})

it('SparseSet holds each value once, in the order in which it came', () => {
  const set = new SparseSet<string>()
  expect([set.size, set.has('a'), [...set]]).toEqual([0, false, []])
  for (const value of ['b', 'a', 'b']) set.add(value)
  expect([set.size, set.has('a'), [...set]]).toEqual([2, true, ['b', 'a']])
  expect([set.delete('b'), set.delete('b'), [...set]]).toEqual([true, false, ['a']])
  set.clear()
  expect([set.size, [...set]]).toEqual([0, []])
})
