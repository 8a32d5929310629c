/** A store that works and says that it failed: counts stay true, and nothing is stuck. */
import { expect, it } from 'vitest'
import { openQueue } from '../../../src/queue/index.js'
import { FakePublisher, MapStore, settled } from './rig.js'

const entriesIn = ({ content }: MapStore): number => [...content.keys()].filter((key) => key.includes('/e/')).length

it('the next queue counts what is there', async () => {
  const store = new MapStore()
  const publisher = new FakePublisher(true, true)
  publisher.answer = (call) => call.accept()
  const queue = await openQueue(publisher, { store })
  // The first deletion takes place, and is said to have failed; those that follow do fail.
  const batch = store.batch.bind(store)
  let deletions = 0
  store.batch = async (operations) => {
    const deletes = operations.some(({ key, type }) => type === 'delete' && key.includes('/e/'))
    if (!deletes || deletions === 0) await batch(operations)
    if (!deletes) return
    deletions += 1
    throw new Error('EIO')
  }
  await queue.publish('a', '1')
  await settled()
  publisher.answer = undefined
  await queue.publish('b', '2')
  await queue.close({ timeout: 0 })
  expect(deletions).toBeGreaterThan(1)
  expect(entriesIn(store)).toBe(1)
  store.batch = batch
  const next = await openQueue(new FakePublisher(true, false), { store })
  expect(next.size).toBe(entriesIn(store))
  await next.close({ timeout: 0 })
})

it('what clear() could not delete is sent', async () => {
  const store = new MapStore()
  const publisher = new FakePublisher(true, false)
  const queue = await openQueue(publisher, { store })
  for (const text of ['1', '2', '3']) await queue.publish('a', text)
  await settled()
  store.before = () => {
    throw new Error('EIO')
  }
  await expect(queue.clear()).rejects.toMatchObject({ code: 'ERR_STORE' })
  store.before = () => undefined
  publisher.online = true
  await settled()
  expect([queue.size, publisher.texts]).toEqual([3, ['1', '2', '3']])
  await queue.close({ timeout: 0 })
})

it('a queue that is closed writes nothing more, also where it had to clean up', async () => {
  const store = new MapStore()
  const queue = await openQueue(new FakePublisher(true, false), { store })
  // Each write takes its time, and fails.
  const batch = store.batch.bind(store)
  let [begun, ended] = [0, 0]
  store.batch = async () => {
    begun += 1
    await settled()
    ended += 1
    throw new Error('EIO')
  }
  await expect(queue.publish('a', '1')).rejects.toMatchObject({ code: 'ERR_STORE' })
  await settled()
  await queue.close({ timeout: 0 })
  const before = begun
  expect(ended).toBe(before)
  await settled()
  await settled()
  expect(begun).toBe(before)
  store.batch = batch
})
