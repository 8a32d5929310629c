/** Entries that are given up for others, where the store fails meanwhile. */
import { expect, it } from 'vitest'
import { openQueue } from '../../../src/queue/index.js'
import { FakePublisher, MapStore, settled } from './rig.js'

const mebi = 1024 * 1024

it('an entry that was to make room is sent after all where the next one cannot be read', async () => {
  const first = new MapStore()
  const filling = await openQueue(new FakePublisher(true, false), { store: first })
  // No more than the first is read ahead.
  await filling.publish('a', new Uint8Array(5 * mebi))
  await filling.publish('b', new Uint8Array(5 * mebi))
  await filling.close({ timeout: 0 })

  const store = first.copy()
  const publisher = new FakePublisher(true, false)
  const queue = await openQueue(publisher, { store, batchSize: 1, maxBytes: 11 * mebi, overflow: 'drop-oldest' })
  const { entries } = store
  store.entries = () => {
    throw new Error('cannot be read')
  }
  await expect(queue.publish('c', new Uint8Array(10 * mebi))).rejects.toMatchObject({ code: 'ERR_STORE' })
  store.entries = entries
  publisher.online = true
  await settled(200)
  expect(publisher.calls.map(({ topic }) => topic)).toEqual(['a', 'b'])
  await queue.close({ timeout: 0 })
})
