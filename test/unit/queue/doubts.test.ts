/** A store that fails, and has written all the same, or that is slow: counts stay true, nothing is stuck, and nothing is sent that was not promised. */
import { describe, expect, it } from 'vitest'
import { deferred } from '../../../src/common/abort.js'
import type { StoreOperation } from '../../../src/store/base/store.js'
import { accepting, fail, isAddition, MapStore, offline, opened, settled } from './rig.js'

/** Does what is asked for, and then says what `after` says. */
class LateStore extends MapStore {
  after: (operations: readonly StoreOperation[]) => unknown = () => undefined

  override async batch(operations: readonly StoreOperation[]): Promise<void> {
    await super.batch(operations)
    await this.after(operations)
  }
}

const nothing = (): undefined => undefined
const notSent = { code: 'ERR_STORE', outcome: 'not-sent' }

describe('an addition that failed, and is there all the same', () => {
  it('is deleted before the caller hears that it was not sent', async () => {
    const { store, queue } = await opened({ store: new LateStore() })
    store.after = (operations) => isAddition(operations) && fail()
    await expect(queue.publish('a', 'one')).rejects.toMatchObject(notSent)
    expect(store.entryKeys).toEqual([])
  })

  it('is deleted by another try, where the first one fails', async () => {
    const { store, publisher, queue } = await opened({ store: new LateStore() })
    let deletions = 0
    store.after = (operations) => isAddition(operations) && fail()
    store.before = (operations) => !isAddition(operations) && ++deletions === 1 && fail()
    await expect(queue.publish('a', 'one')).rejects.toMatchObject({
      code: 'ERR_STORE',
      outcome: 'unknown',
    })
    await settled()
    expect(store.entryKeys).toEqual([])
    await queue.close({ timeout: 0 })
    expect(publisher.texts).toEqual([])
  })

  it('may arrive as long as it cannot be deleted; it is never published here, and goes as soon as the store works', async () => {
    const { store, publisher, queue } = await opened({ store: new LateStore() })
    store.after = fail
    store.before = (operations) => !isAddition(operations) && fail()
    await expect(queue.publish('a', 'one')).rejects.toMatchObject({
      code: 'ERR_STORE',
      outcome: 'unknown',
    })
    expect(store.entryKeys).toHaveLength(1)
    store.after = nothing
    store.before = nothing
    await queue.publish('a', 'two')
    await settled()
    expect(store.entryKeys).toHaveLength(1)
    expect(publisher.texts).toEqual(['two'])
  })
})

describe('a deletion that failed, and was made all the same', () => {
  it('is not counted twice by the next process', async () => {
    const { store, publisher, queue } = await opened({ store: new LateStore() })
    await Promise.all([queue.publish('a', 'one'), queue.publish('b', 'two')])
    await settled()
    for (const [at, after] of [fail, nothing].entries()) {
      store.after = after
      publisher.calls[at]?.accept()
      await settled()
    }
    expect(store.entryKeys).toEqual([])
    const next = await opened({ store: store.copy() })
    expect(next.queue.size).toBe(0)
  })

  it('leaves the next queue what is there, where those that follow do fail', async () => {
    const { store, publisher, queue } = await opened({ publisher: accepting() })
    const batch = store.batch.bind(store)
    let deletions = 0
    store.batch = async (operations) => {
      const deletes = operations.some(({ key, type }) => type === 'delete' && key.includes('/e/'))
      if (!deletes || deletions === 0) await batch(operations)
      if (!deletes) return
      deletions += 1
      fail()
    }
    await queue.publish('a', '1')
    await settled()
    publisher.answer = undefined
    await queue.publish('b', '2')
    await queue.close({ timeout: 0 })
    expect(deletions).toBeGreaterThan(1)
    expect(store.entryKeys).toHaveLength(1)
    store.batch = batch
    const next = await opened({ store, publisher: offline() })
    expect(next.queue.size).toBe(1)
  })
})

it('a queue that is closed writes nothing more, also where it had to clean up', async () => {
  const { store, queue } = await opened({ publisher: offline() })
  // Each write takes its time, and fails.
  let [begun, ended] = [0, 0]
  store.batch = async () => {
    begun += 1
    await settled()
    ended += 1
    fail()
  }
  await expect(queue.publish('a', '1')).rejects.toMatchObject({ code: 'ERR_STORE' })
  await settled()
  await queue.close({ timeout: 0 })
  const before = begun
  expect(ended).toBe(before)
  await settled(120)
  expect(begun).toBe(before)
})

it('an entry that was to make room is sent after all where the next one cannot be read', async () => {
  const mebi = 1024 * 1024
  const first = await opened({ publisher: offline() })
  // No more than the first is read ahead.
  for (const topic of ['a', 'b']) await first.queue.publish(topic, new Uint8Array(5 * mebi))
  await first.queue.close({ timeout: 0 })
  const limits = { batchSize: 1, maxBytes: 11 * mebi, overflow: 'drop-oldest' } as const
  const { store, publisher, queue } = await opened({
    store: first.store.copy(),
    publisher: offline(),
    ...limits,
  })
  const { entries } = store
  store.entries = fail
  await expect(queue.publish('c', new Uint8Array(10 * mebi))).rejects.toMatchObject({
    code: 'ERR_STORE',
  })
  store.entries = entries
  publisher.online = true
  await settled(200)
  expect(publisher.calls.map(({ topic }) => topic)).toEqual(['a', 'b'])
})

describe('an entry that can be read before the store has it for certain', () => {
  async function storing() {
    const made = await opened({ store: new LateStore(), publisher: accepting() })
    const { store, queue } = made
    const safe = deferred<void>()
    store.after = () => safe.promise
    const added = queue.publish('a', 'x')
    await settled()
    expect(store.entryKeys).toHaveLength(1)
    expect(await queue.remove(99)).toBe(false)
    await settled()
    store.after = nothing
    return { ...made, safe, added }
  }

  it('is published once it is safe, and counted once', async () => {
    const { publisher, queue, safe, added } = await storing()
    expect(publisher.texts).toEqual([])
    safe.resolve()
    await (await added).delivered
    await settled()
    expect([publisher.texts, queue.size, queue.bytes]).toEqual([['x'], 0, 0])
  })

  it('is not published where it is refused then', async () => {
    const { publisher, queue, safe, added } = await storing()
    safe.reject(new Error('EIO'))
    await expect(added).rejects.toMatchObject(notSent)
    await settled()
    expect(publisher.texts).toEqual([])
    await (await queue.publish('a', 'y')).delivered
    expect([publisher.texts, queue.size, queue.bytes]).toEqual([['y'], 0, 0])
  })
})
