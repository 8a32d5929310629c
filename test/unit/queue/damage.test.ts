/** A store that is damaged, fails, has written all the same, or is slow: counts stay true, room comes back, nothing is stuck, and nothing is sent that was not promised. */

import { describe, expect, it, vi } from 'vitest'
import { deferred } from '../../../src/common/abort.js'
import type { Queue } from '../../../src/queue/index.js'
import {
  accepting,
  type FakePublisher,
  fail,
  isAddition,
  type MapStore,
  offline,
  opened,
  settled,
} from './rig.js'

const flip = (store: MapStore, key: string): void => {
  const record = store.content.get(key) as Uint8Array
  record[record.length - 1] = (record.at(-1) as number) ^ 1
}
async function filled(count: number) {
  const made = await opened({ publisher: offline(), maxEntries: count + 1, overflow: 'reject' })
  const { queue } = made
  await Promise.all(Array.from({ length: count }, (_, at) => queue.publish('a', `${at}`)))
  await settled()
  return made
}

async function empty(queue: Queue): Promise<void> {
  for (let round = 0; round < 500 && queue.size > 0; round++) await settled()
  expect([queue.size, queue.bytes]).toEqual([0, 0])
}

async function sendAll(publisher: FakePublisher, queue: Queue): Promise<void> {
  publisher.answer = (call) => call.accept()
  publisher.online = true
  await empty(queue)
}

describe('a record that is damaged', () => {
  it.each([0, 7, 1050, 1099])('(number %i of 1,100) gives its room back', async (at) => {
    const { store, queue, publisher } = await filled(1100)
    flip(store, store.entryKeys[at] as string)
    await sendAll(publisher, queue)
    await queue.close()
    const { queue: next } = await opened({ store, publisher: accepting() })
    expect([next.size, next.bytes]).toEqual([0, 0])
  })

  it.each(['flipped', 'cut', 'gone'])('(%s between processes) gives its room back', async (how) => {
    const { store, queue } = await filled(100)
    await queue.close({ timeout: 0 })
    for (const key of store.entryKeys.slice(20, 60)) {
      if (how === 'gone') store.content.delete(key)
      else if (how === 'cut')
        store.content.set(key, (store.content.get(key) as Uint8Array).slice(0, 3))
      else flip(store, key)
    }
    const { queue: next } = await opened({ store, publisher: offline() })
    expect(next.size).toBe(60)
    await next.close({ timeout: 0 })
    const { queue: last } = await opened({ store, publisher: accepting() })
    await empty(last)
  })

  it.each([1, 2])('and longer than it was, of %i: only the others count', async (count) => {
    const { store, queue } = await filled(count)
    const { bytes } = queue
    await queue.close({ timeout: 0 })
    store.content.set(store.entryKeys[0] as string, new Uint8Array(5000))
    const { queue: next } = await opened({ store, publisher: offline() })
    expect([next.size, next.bytes]).toEqual([count - 1, bytes - bytes / count])
  })

  it('and for which a full disk has no place beside, stays, is told once, and stops nobody', async () => {
    const { store, queue } = await filled(100)
    await queue.close({ timeout: 0 })
    flip(store, store.entryKeys[0] as string)
    flip(store, store.entryKeys[50] as string)
    store.before = (operations) => {
      if (operations.some(({ key }) => key.startsWith('x/'))) throw new Error('ENOSPC')
    }
    const publisher = offline()
    const { queue: next } = await opened({ store, publisher })
    const told: string[] = []
    next.on('storecorrupt', ({ key }) => told.push(key))
    await vi.waitFor(() => expect(told).toHaveLength(2))
    for (let round = 0; round < 2; round++) {
      let read = 0
      for await (const _ of next.entries()) read += 1
      expect(read).toBe(98)
    }
    await sendAll(publisher, next)
    await next.close()
    expect([publisher.calls.length, told.length, store.entryKeys.length]).toEqual([98, 2, 2])
    const { queue: last } = await opened({ store, publisher: accepting() })
    last.on('storecorrupt', ({ key }) => told.push(key))
    await new Promise<void>((resolve) => setImmediate(resolve))
    await empty(last)
    await (await last.publish('a', 'new')).delivered
    expect(told).toHaveLength(2)
  })

  it('and found while others are written counts once', async () => {
    const { store, queue, publisher } = await filled(1100)
    for (const key of store.entryKeys.slice(1030)) flip(store, key)
    publisher.answer = (call) => call.accept()
    publisher.online = true
    for (let at = 0; at < 50; at++) {
      await queue.publish('b', `${at}`)
      await settled(3)
    }
    await empty(queue)
  })

  it('and found by entries() counts once', async () => {
    const { store, queue, publisher } = await filled(1100)
    for (const key of [store.entryKeys[3], store.entryKeys[1080]]) flip(store, key as string)
    let read = 0
    for await (const _ of queue.entries()) read += 1
    expect(read).toBe(1098)
    await sendAll(publisher, queue)
  })
})

it('counts that are older than the entries give no number twice', async () => {
  const { store, queue } = await filled(2)
  const key = [...store.content.keys()].find((each) => each.endsWith('/m')) as string
  const counts = store.content.get(key) as Uint8Array
  await queue.publish('a', '2')
  await queue.close({ timeout: 0 })
  store.content.set(key, counts)
  const { queue: next } = await opened({ store, publisher: offline() })
  expect((await next.publish('a', '3')).id).toBe(4)
  expect(store.entryKeys).toHaveLength(4)
})

it('counts that a process could not write while its store was full are mended by the next one', async () => {
  const { store, queue, publisher } = await filled(10)
  store.before = (operations) => {
    if (operations.some(({ type }) => type === 'put')) throw new Error('QuotaExceededError')
  }
  publisher.online = true
  await settled()
  for (const call of publisher.calls.slice(0, 4)) call.accept()
  await settled()
  expect([queue.size, store.entryKeys.length]).toEqual([6, 6])
  const { queue: next } = await opened({ store: store.copy(), publisher: offline() })
  expect(next.size).toBe(6)
})

const nothing = (): undefined => undefined
const notSent = { code: 'ERR_STORE', outcome: 'not-sent' }

describe('an addition that failed, and is there all the same', () => {
  it('is deleted before the caller hears that it was not sent', async () => {
    const { store, queue } = await opened()
    store.afterBatch = (operations) => isAddition(operations) && fail()
    await expect(queue.publish('a', 'one')).rejects.toMatchObject(notSent)
    expect(store.entryKeys).toEqual([])
  })

  it('is deleted by another try, where the first one fails', async () => {
    const { store, publisher, queue } = await opened()
    let deletions = 0
    store.afterBatch = (operations) => isAddition(operations) && fail()
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
    const { store, publisher, queue } = await opened()
    store.afterBatch = fail
    store.before = (operations) => !isAddition(operations) && fail()
    await expect(queue.publish('a', 'one')).rejects.toMatchObject({
      code: 'ERR_STORE',
      outcome: 'unknown',
    })
    expect(store.entryKeys).toHaveLength(1)
    store.afterBatch = nothing
    store.before = nothing
    await queue.publish('a', 'two')
    await settled()
    expect(store.entryKeys).toHaveLength(1)
    expect(publisher.texts).toEqual(['two'])
  })
})

describe('a deletion that failed, and was made all the same', () => {
  it('is not counted twice by the next process', async () => {
    const { store, publisher, queue } = await opened()
    await Promise.all([queue.publish('a', 'one'), queue.publish('b', 'two')])
    await settled()
    for (const [at, after] of [fail, nothing].entries()) {
      store.afterBatch = after
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
    const made = await opened({ publisher: accepting() })
    const { store, queue } = made
    const safe = deferred<void>()
    store.afterBatch = () => safe.promise
    const added = queue.publish('a', 'x')
    await settled()
    expect(store.entryKeys).toHaveLength(1)
    expect(await queue.remove(99)).toBe(false)
    await settled()
    store.afterBatch = nothing
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
