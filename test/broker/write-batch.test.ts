/** The broker in memory: packets that leave together. */
import { expect, it } from 'vitest'
import { WriteBatch } from '../../src/testing/broker/common/write-batch.js'

it('the end of the outermost batch writes everything, once and in order', () => {
  const batch = new WriteBatch()
  const written: string[] = []
  batch.begin()
  batch.add({ flush: () => written.push('a') })
  batch.begin()
  batch.add({ flush: () => written.push('b') })
  batch.end()
  expect([written, batch.isOpen]).toEqual([[], true])
  batch.end()
  expect([written, batch.isOpen]).toEqual([['a', 'b'], false])
  batch.begin()
  batch.end()
  expect(written).toEqual(['a', 'b'])
})
