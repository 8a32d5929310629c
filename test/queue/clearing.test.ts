/** `clear` while other things go on: each entry is deleted, told and counted once. */
import { expect, it } from 'vitest'
import { openQueue } from '../../src/queue/index.js'
import { FakePublisher, MapStore, settled } from './rig.js'

it.each([0, 1, 2, 3, 5, 8, 13])('two at once count what they delete once: after %i microtasks', async (microtasks) => {
  const store = new MapStore()
  const queue = await openQueue(new FakePublisher(true, false), { store })
  const drops: number[] = []
  queue.on('drop', ({ id }) => drops.push(id))
  const publishes = Promise.all(['1', '2', '3', '4'].map((text) => queue.publish('a', text)))
  for (let count = 0; count < microtasks; count++) await undefined
  const counts = await Promise.all([queue.clear(), queue.clear(), queue.clear()])
  await publishes
  await settled()
  const left = [...store.content.keys()].filter((key) => key.includes('/e/')).length
  expect(queue.size).toBe(left)
  expect(counts.reduce((sum, count) => sum + count)).toBe(4 - left)
  expect(new Set(drops).size).toBe(drops.length)
  await queue.close({ timeout: 0 })
})
