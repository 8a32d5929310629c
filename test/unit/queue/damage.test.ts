/** Records of entries that are damaged, at any time: what is left is counted right, and its room comes back. */
import { describe, expect, it, vi } from 'vitest'
import { openQueue, type Queue } from '../../../src/queue/index.js'
import { FakePublisher, MapStore, settled } from './rig.js'

const entries = (store: MapStore): string[] => [...store.content.keys()].filter((key) => key.includes('/e/')).sort()
const flip = (store: MapStore, key: string): void => {
  const record = store.content.get(key) as Uint8Array
  record[record.length - 1] = (record.at(-1) as number) ^ 1
}
const accepting = (): FakePublisher => {
  const publisher = new FakePublisher()
  publisher.answer = (call) => call.accept()
  return publisher
}

async function filled(count: number): Promise<{ store: MapStore; queue: Queue; publisher: FakePublisher }> {
  const store = new MapStore()
  const publisher = new FakePublisher(true, false)
  const queue = await openQueue(publisher, { store, maxEntries: count + 1, overflow: 'reject' })
  await Promise.all(Array.from({ length: count }, (_, at) => queue.publish('a', `${at}`)))
  await settled()
  return { store, queue, publisher }
}

async function empty(queue: Queue): Promise<void> {
  for (let round = 0; round < 500 && queue.size > 0; round++) await settled()
  expect([queue.size, queue.bytes]).toEqual([0, 0])
}

describe('a record that is damaged', () => {
  it.each([0, 7, 1050, 1099])('while the queue is open (number %i of 1,100) gives its room back', async (at) => {
    const { store, queue, publisher } = await filled(1100)
    flip(store, entries(store)[at] as string)
    publisher.answer = (call) => call.accept()
    publisher.online = true
    await empty(queue)
    await queue.close()
    const next = await openQueue(accepting(), { store })
    expect([next.size, next.bytes]).toEqual([0, 0])
    await next.close()
  })

  it.each(['flipped', 'cut', 'gone'] as const)('or %s, between two processes gives its room back, and so does each at once', async (how) => {
    const { store, queue } = await filled(100)
    await queue.close({ timeout: 0 })
    for (const key of entries(store).slice(20, 60)) {
      if (how === 'gone') store.content.delete(key)
      else if (how === 'cut') store.content.set(key, (store.content.get(key) as Uint8Array).slice(0, 3))
      else flip(store, key)
    }
    const next = await openQueue(new FakePublisher(true, false), { store })
    expect(next.size).toBe(60)
    await next.close({ timeout: 0 })
    const last = await openQueue(accepting(), { store })
    await empty(last)
    await last.close()
  })

  it('and for which a full disk has no place beside, stays, is told once, and stops nobody', async () => {
    const { store, queue } = await filled(100)
    await queue.close({ timeout: 0 })
    flip(store, entries(store)[0] as string)
    flip(store, entries(store)[50] as string)
    store.before = (operations) => {
      if (operations.some(({ key }) => key.startsWith('x/'))) throw new Error('ENOSPC')
    }
    const publisher = new FakePublisher(true, false)
    const next = await openQueue(publisher, { store })
    const told: string[] = []
    next.on('storecorrupt', ({ key }) => told.push(key))
    await vi.waitFor(() => expect(told).toHaveLength(2))
    for (let round = 0; round < 2; round++) {
      let read = 0
      for await (const _ of next.entries()) read += 1
      expect(read).toBe(98)
    }
    publisher.answer = (call) => call.accept()
    publisher.online = true
    await empty(next)
    await next.close()
    expect([publisher.calls.length, told.length, entries(store).length]).toEqual([98, 2, 2])
    const last = await openQueue(accepting(), { store })
    last.on('storecorrupt', ({ key }) => told.push(key))
    await new Promise<void>((resolve) => setImmediate(resolve))
    await empty(last)
    await (await last.publish('a', 'new')).delivered
    expect(told).toHaveLength(2)
    await last.close()
  })

  it('and found while others are written counts once', async () => {
    const { store, queue, publisher } = await filled(1100)
    for (const key of entries(store).slice(1030)) flip(store, key)
    publisher.answer = (call) => call.accept()
    publisher.online = true
    for (let at = 0; at < 50; at++) {
      await queue.publish('b', `${at}`)
      await settled(3)
    }
    await empty(queue)
    await queue.close()
  })

  it('and found by entries() counts once', async () => {
    const { store, queue, publisher } = await filled(1100)
    for (const key of [entries(store)[3], entries(store)[1080]]) flip(store, key as string)
    let read = 0
    for await (const _ of queue.entries()) read += 1
    expect(read).toBe(1098)
    publisher.answer = (call) => call.accept()
    publisher.online = true
    await empty(queue)
    await queue.close()
  })
})

it('counts that are older than the entries give no number twice', async () => {
  const { store, queue } = await filled(2)
  const key = [...store.content.keys()].find((each) => each.endsWith('/m')) as string
  const counts = store.content.get(key) as Uint8Array
  await queue.publish('a', '2')
  await queue.close({ timeout: 0 })
  store.content.set(key, counts)
  const next = await openQueue(new FakePublisher(true, false), { store })
  expect((await next.publish('a', '3')).id).toBe(4)
  expect(entries(store)).toHaveLength(4)
  await next.close({ timeout: 0 })
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
  expect([queue.size, entries(store).length]).toEqual([6, 6])
  const next = await openQueue(new FakePublisher(true, false), { store: store.copy() })
  expect(next.size).toBe(6)
  await next.close({ timeout: 0 })
  await queue.close({ timeout: 0 })
})
