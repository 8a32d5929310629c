/** A store that shows what it writes before it is safe, as long as it takes: nothing is published before that, and everything once. */
import { expect, it } from 'vitest'
import { deferred } from '../../../src/client/common/abort.js'
import { openQueue } from '../../../src/queue/index.js'
import type { StoreOperation } from '../../../src/store/base/store.js'
import { FakePublisher, MapStore, settled } from './rig.js'

class SlowStore extends MapStore {
  safe: Promise<void> = Promise.resolve()

  override async batch(operations: readonly StoreOperation[]): Promise<void> {
    await super.batch(operations)
    await this.safe
  }
}

/** An entry is being stored, and can be read already. The queue reads on. */
async function storing() {
  const store = new SlowStore()
  const publisher = new FakePublisher()
  publisher.answer = (call) => call.accept()
  const queue = await openQueue(publisher, { store })
  const safe = deferred<void>()
  store.safe = safe.promise
  const added = queue.publish('a', 'x')
  await settled()
  expect([...store.content.keys()].filter((key) => key.includes('/e/'))).toHaveLength(1)
  expect(await queue.remove(99)).toBe(false)
  await settled()
  return { store, publisher, queue, safe, added }
}

it('an entry that was read while it was stored is published once it is safe, and counted once', async () => {
  const { store, publisher, queue, safe, added } = await storing()
  expect(publisher.texts).toEqual([])
  store.safe = Promise.resolve()
  safe.resolve()
  await (await added).delivered
  await settled()
  expect(publisher.texts).toEqual(['x'])
  expect([queue.size, queue.bytes]).toEqual([0, 0])
  await queue.close({ timeout: 0 })
})

it('an entry that was read, and then refused, is not published', async () => {
  const { store, publisher, queue, safe, added } = await storing()
  store.safe = Promise.resolve()
  safe.reject(new Error('EIO'))
  await expect(added).rejects.toMatchObject({ code: 'ERR_STORE', outcome: 'not-sent' })
  await settled()
  expect(publisher.texts).toEqual([])
  await (await queue.publish('a', 'y')).delivered
  expect(publisher.texts).toEqual(['y'])
  expect([queue.size, queue.bytes]).toEqual([0, 0])
  await queue.close({ timeout: 0 })
})
