/** `clear` while other things go on: each entry is deleted, reported and counted once. */
import { expect, it } from 'vitest'
import { deferred } from '../../../src/common/abort.js'
import { accepting, offline, opened, settled } from './rig.js'

it.each([0, 1, 2, 3, 5, 8, 13])('two at once count once: after %i turns', async (microtasks) => {
  const { store, queue } = await opened({ publisher: offline() })
  const drops: number[] = []
  queue.on('drop', ({ id }) => drops.push(id))
  const publishes = Promise.all(['1', '2', '3', '4'].map((text) => queue.publish('a', text)))
  for (let count = 0; count < microtasks; count++) await undefined
  const counts = await Promise.all([queue.clear(), queue.clear(), queue.clear()])
  await publishes
  await settled()
  const left = store.entryKeys.length
  expect(queue.size).toBe(left)
  expect(counts.reduce((sum, count) => sum + count)).toBe(4 - left)
  expect(new Set(drops).size).toBe(drops.length)
})

it('remove() deletes one entry, whether it was read or not, and not one that is being sent', async () => {
  const { publisher, queue } = await opened({ concurrency: 1 })
  const all = await Promise.all(
    Array.from({ length: 1200 }, (_, at) => queue.publish('a', `${at + 1}`)),
  )
  await settled()
  const ended = [2, 1150].map((id) => all[id - 1]?.delivered.catch(({ code }) => code))
  expect(await Promise.all([1, 2, 1150, 1150, 5000].map((id) => queue.remove(id)))).toEqual([
    false,
    true,
    true,
    false,
    false,
  ])
  expect(await Promise.all(ended)).toEqual(['ERR_DROPPED', 'ERR_DROPPED'])
  expect(queue.size).toBe(1198)
  await expect(queue.remove(1.5)).rejects.toMatchObject({
    code: 'ERR_INVALID_OPTION',
    option: 'id',
  })
  publisher.answer = (call) => call.accept()
  publisher.calls[0]?.accept()
  for (let round = 0; round < 400 && queue.size > 0; round++) await settled()
  expect([queue.size, queue.bytes, publisher.texts.length]).toEqual([0, 0, 1198])
})

it('what is still being stored when it is called is published afterwards, however long that and reading take', async () => {
  const [written, read] = [deferred<void>(), deferred<void>()]
  const { store, publisher, queue } = await opened({ publisher: accepting() })
  const batch = store.batch.bind(store)
  store.batch = (operations) => written.promise.then(() => batch(operations))
  const publishes = Promise.all(['1', '2'].map((text) => queue.publish('a', text)))
  await settled()
  const entries = store.entries.bind(store)
  let reads = 0
  // `clear` reads at once, and what goes on behind it later.
  store.entries = async function* (range) {
    if (reads++ > 0) await read.promise
    yield* entries(range)
  }
  expect(await queue.clear()).toBe(0)
  await settled()
  written.resolve()
  await publishes
  read.resolve()
  await settled()
  expect([queue.size, publisher.texts]).toEqual([0, ['1', '2']])
})

it('what it could not delete for certain is published, and the size comes to 0', async () => {
  const { store, publisher, queue } = await opened({ publisher: offline() })
  publisher.answer = (call) => call.accept()
  await Promise.all(Array.from({ length: 1200 }, (_, at) => queue.publish('a', `${at + 1}`)))
  await settled()
  const batch = store.batch.bind(store)
  let writes = 0
  // The second chunk is deleted, and the store says that it is not.
  store.batch = async (operations) => {
    await batch(operations)
    writes += 1
    if (writes === 2 || writes === 3) throw new Error('the sync failed')
  }
  await expect(queue.clear()).rejects.toMatchObject({ code: 'ERR_STORE' })
  publisher.online = true
  for (let round = 0; round < 100 && queue.size > 0; round++) await settled()
  expect([queue.size, queue.bytes, publisher.texts.length]).toEqual([0, 0, 176])
})
