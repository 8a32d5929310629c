/** A store that fails and has written all the same: a queue leaves nothing that it did not promise, and counts right in the next process. */
import { describe, expect, it } from 'vitest'
import { openQueue } from '../../../src/queue/index.js'
import type { StoreOperation } from '../../../src/store/base/store.js'
import { FakePublisher, MapStore, settled } from './rig.js'

/** Does what is asked for, and then says what `after` says. */
class LateStore extends MapStore {
  after: (operations: readonly StoreOperation[]) => unknown = () => undefined

  override async batch(operations: readonly StoreOperation[]): Promise<void> {
    await super.batch(operations)
    await this.after(operations)
  }
}

const fail = (): never => {
  throw new Error('EIO')
}
const isAddition = (operations: readonly StoreOperation[]): boolean => operations.some(({ type, key }) => type === 'put' && key.includes('/e/'))
const entriesIn = (store: MapStore): string[] => [...store.content.keys()].filter((key) => key.includes('/e/'))

describe('an addition that failed, and is there all the same', () => {
  it('is deleted before the caller hears that it was not sent', async () => {
    const store = new LateStore()
    const queue = await openQueue(new FakePublisher(), { store })
    store.after = (operations) => isAddition(operations) && fail()
    await expect(queue.publish('a', 'one')).rejects.toMatchObject({ code: 'ERR_STORE', outcome: 'not-sent' })
    expect(entriesIn(store)).toEqual([])
    await queue.close({ timeout: 0 })
  })

  it('is deleted by another try, where the first one fails', async () => {
    const store = new LateStore()
    const publisher = new FakePublisher()
    const queue = await openQueue(publisher, { store })
    let deletions = 0
    store.after = (operations) => isAddition(operations) && fail()
    store.before = (operations) => !isAddition(operations) && ++deletions === 1 && fail()
    await expect(queue.publish('a', 'one')).rejects.toMatchObject({ code: 'ERR_STORE', outcome: 'unknown' })
    await settled()
    expect(entriesIn(store)).toEqual([])
    await queue.close({ timeout: 0 })
    expect(publisher.texts).toEqual([])
  })

  it('may arrive as long as it cannot be deleted; it is never published here, and goes as soon as the store works', async () => {
    const store = new LateStore()
    const publisher = new FakePublisher()
    const queue = await openQueue(publisher, { store })
    store.after = fail
    store.before = (operations) => !isAddition(operations) && fail()
    await expect(queue.publish('a', 'one')).rejects.toMatchObject({ code: 'ERR_STORE', outcome: 'unknown' })
    expect(entriesIn(store)).toHaveLength(1)
    store.after = () => undefined
    store.before = () => undefined
    await queue.publish('a', 'two')
    await settled()
    expect(entriesIn(store)).toHaveLength(1)
    expect(publisher.texts).toEqual(['two'])
    await queue.close({ timeout: 0 })
  })
})

it('a deletion that failed, and was made all the same, is not counted twice by the next process', async () => {
  const store = new LateStore()
  const publisher = new FakePublisher()
  const queue = await openQueue(publisher, { store })
  await Promise.all([queue.publish('a', 'one'), queue.publish('b', 'two')])
  await settled()
  store.after = fail
  publisher.calls[0]?.accept()
  await settled()
  store.after = () => undefined
  publisher.calls[1]?.accept()
  await settled()
  expect(entriesIn(store)).toEqual([])
  const next = await openQueue(new FakePublisher(), { store: store.copy() })
  expect(next.size).toBe(0)
  await next.close({ timeout: 0 })
  await queue.close({ timeout: 0 })
})
