import { expect, it, vi } from 'vitest'
import { runtime } from '../../../src/client/platform.js'

it('random numbers are from 0 to below 1, spread, and none is given twice', () => {
  const numbers = Array.from({ length: 1000 }, () => runtime.random())
  expect(new Set(numbers).size).toBeGreaterThan(995)
  expect(numbers.every((number) => number >= 0 && number < 1)).toBe(true)
  for (let tenth = 0; tenth < 10; tenth++)
    expect(numbers.some((number) => Math.floor(number * 10) === tenth)).toBe(true)
})

it('they come from the platform, many at a time', () => {
  const get = vi.spyOn(crypto, 'getRandomValues')
  try {
    for (let count = 0; count < 640; count++) runtime.random()
    expect(get).toHaveBeenCalledTimes(10)
    get.mockImplementation((array) => {
      if (array instanceof Uint32Array) array.fill(0xffff_ffff)
      return array
    })
    const last = Array.from({ length: 128 }, () => runtime.random()).at(-1)
    expect(last).toBeGreaterThan(0.999_999)
    expect(last).toBeLessThan(1)
  } finally {
    get.mockRestore()
  }
})
