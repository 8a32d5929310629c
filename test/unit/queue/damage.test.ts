/** Records of entries that are damaged, at any time: what is left is counted right, and its room comes back. */
import { describe, expect, it, vi } from 'vitest'
import type { Queue } from '../../../src/queue/index.js'
import { accepting, type FakePublisher, type MapStore, offline, opened, settled } from './rig.js'

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
