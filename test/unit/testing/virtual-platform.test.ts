/** The platform for clients under test: what a seed decides. */
import { expect, it } from 'vitest'
import { VirtualClock } from '../../../src/testing/virtual-clock.js'
import { virtualPlatform } from '../../../src/testing/virtual-platform.js'

const numbers = (seed?: number): number[] => {
  const platform = virtualPlatform(new VirtualClock(), seed)
  return Array.from({ length: 3 }, () => platform.random() * 4_294_967_296)
}

it('the random numbers of a seed are the same everywhere: those of xorshift32', () => {
  expect(numbers()).toEqual([270_369, 67_634_689, 2_647_435_461])
  expect(numbers(0)).toEqual(numbers(1))
  expect(numbers(7)).not.toEqual(numbers(1))
})
