/** A queue that is closed while something ends: what was acknowledged is not sent again, and what has to be kept is not deleted. */
import { expect, it, onTestFinished, vi } from 'vitest'
import { deferred } from '../../../src/client/common/abort.js'
import type { MqttError } from '../../../src/errors.js'
import { openQueue } from '../../../src/queue/index.js'
import type { StoreEntry, StoreRange } from '../../../src/store/base/store.js'
import { FakePublisher, MapStore, refusedWith, settled } from './rig.js'

const entriesOf = (store: MapStore): string[] => [...store.content.keys()].filter((key) => key.includes('/e/'))
const endOf = (delivered: Promise<unknown>): Promise<unknown> =>
  delivered.then(
    () => 'delivered',
    ({ code, outcome }: MqttError) => [code, outcome],
  )

/** Timers that keep the process. */
const timers = (): number => process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length

it.each([1, 2, 3, 4, 5])('deletes what was acknowledged before it was closed: %i microtasks before', async (microtasks) => {
  const store = new MapStore()
  const publisher = new FakePublisher()
  const queue = await openQueue(publisher, { store })
  const { delivered } = await queue.publish('a', 'x')
  await settled()
  publisher.calls[0]?.accept()
  for (let count = 0; count < microtasks; count++) await undefined
  await queue.close({ timeout: 0 })
  expect(entriesOf(store)).toEqual([])
  // It has arrived: nobody is told that it was not sent.
  expect(await endOf(delivered)).not.toEqual(['ERR_QUEUE_CLOSED', 'not-sent'])
})

it('keeps an entry whose dead letter could not be kept', async () => {
  const store = new MapStore()
  const deadLetterStore = new MapStore()
  deadLetterStore.before = () => {
    throw new Error('disk full')
  }
  const publisher = new FakePublisher()
  const queue = await openQueue(publisher, { store, deadLetterStore })
  const drops: number[] = []
  queue.on('drop', ({ id }) => drops.push(id))
  queue.on('error', () => undefined)
  const { delivered } = await queue.publish('a', 'x')
  await settled()
  publisher.calls[0]?.refuse(refusedWith(0x87))
  await settled()
  await queue.close()
  expect(entriesOf(store)).toHaveLength(1)
  expect(deadLetterStore.content.size).toBe(0)
  expect(drops).toEqual([])
  expect(await endOf(delivered)).toContain('ERR_QUEUE_CLOSED')

  const again = await openQueue(publisher, { store })
  await settled()
  expect(publisher.texts).toEqual(['x', 'x'])
  publisher.calls[1]?.accept()
  await again.close()
  expect(entriesOf(store)).toEqual([])
})

it('leaves no timer behind that would keep the process, while its store fails', async () => {
  const before = timers()
  const store = new MapStore()
  const publisher = new FakePublisher()
  const queue = await openQueue(publisher, { store })
  const errors: unknown[] = []
  queue.on('error', ({ error }) => errors.push(error))
  await queue.publish('a', 'x')
  await settled()
  store.before = () => {
    throw new Error('disk full')
  }
  publisher.calls[0]?.accept()
  await settled()
  expect([errors.length, timers() > before]).toEqual([1, true])
  await queue.close({ timeout: 0 })
  expect(timers()).toBe(before)
})

it.each([
  ['waits to be sent again', false],
  ['is refused while it is closed', true],
])('leaves no timer behind that would keep the process, where an entry %s', async (_when, late) => {
  const before = timers()
  const publisher = new FakePublisher()
  const queue = await openQueue(publisher, { store: new MapStore(), backoff: () => 1_000_000 })
  await queue.publish('a', 'x')
  await settled()
  const refuse = async (): Promise<void> => {
    publisher.calls[0]?.refuse(refusedWith(0x97))
    await settled()
  }
  if (!late) {
    await refuse()
    expect([queue.size, timers() > before]).toEqual([1, true])
  }
  const closed = queue.close(late ? {} : { timeout: 0 })
  await settled()
  if (late) await refuse()
  await closed
  expect(timers()).toBe(before)
})

it('ends over a store that does not answer, says so, and leaves its name taken until the store has answered', async () => {
  vi.useFakeTimers()
  onTestFinished(() => void vi.useRealTimers())
  const store = new MapStore()
  const publisher = new FakePublisher()
  const queue = await openQueue(publisher, { store })
  const errors: unknown[] = []
  queue.on('error', ({ error }) => errors.push(error))
  await queue.publish('a', 'x')
  await vi.advanceTimersByTimeAsync(1)
  const answer = deferred<void>()
  const { batch } = store
  store.batch = (operations) => answer.promise.then(() => batch.call(store, operations))
  publisher.calls[0]?.accept()
  await vi.advanceTimersByTimeAsync(1)
  let ended = false
  const closed = queue.close({ timeout: 100 }).then(() => {
    ended = true
  })
  await vi.advanceTimersByTimeAsync(6000)
  expect([ended, errors]).toEqual([true, [expect.objectContaining({ code: 'ERR_STORE', outcome: 'unknown' })]])
  await closed
  await expect(openQueue(publisher, { store })).rejects.toMatchObject({ code: 'ERR_STORE_LOCKED' })
  answer.resolve()
  await vi.advanceTimersByTimeAsync(1)
  expect((await openQueue(publisher, { store })).size).toBe(0)
})

it('gives up nothing for a publish that gets its room only after the queue was closed', async () => {
  const store = new MapStore()
  const queue = await openQueue(new FakePublisher(true, false), { store, maxEntries: 3, overflow: 'drop-oldest' })
  for (const text of ['1', '2', '3']) await queue.publish('a', text)
  const ends = Promise.all(['4', '5'].map((text) => endOf(queue.publish('a', text))))
  await queue.close({ timeout: 0 })
  // They were not let in yet.
  expect(await ends).toEqual(new Array(2).fill(['ERR_QUEUE_CLOSED', 'not-sent']))
  await settled()
  expect(entriesOf(store).map((key) => Number(key.slice(-16)))).toEqual([1, 2, 3])
})

it('writes nothing after it was closed, also where a deletion was to be tried again', async () => {
  const store = new MapStore()
  const publisher = new FakePublisher()
  const queue = await openQueue(publisher, { store })
  queue.on('error', () => undefined)
  await queue.publish('a', 'x')
  await settled()
  store.before = () => {
    throw new Error('disk full')
  }
  publisher.calls[0]?.accept()
  await settled()
  store.before = () => undefined
  await queue.close({ timeout: 0 })
  const { batches } = store
  const again = await openQueue(new FakePublisher(true, false), { store })
  await settled()
  expect(store.batches).toBe(batches)
  expect(again.size).toBe(entriesOf(store).length)
  await again.close({ timeout: 0 })
})

it('writes nothing after it was closed, also where an answer comes late', async () => {
  const store = new MapStore()
  const publisher = new FakePublisher()
  const queue = await openQueue(publisher, { store, publishTimeout: 1, backoff: () => 1_000_000 })
  await queue.publish('a', 'x')
  while (publisher.calls[0]?.options.signal?.aborted !== true) await new Promise((resolve) => setTimeout(resolve, 1))
  await queue.close({ timeout: 0 })
  const { batches } = store
  publisher.calls[0]?.accept()
  await settled()
  expect(store.batches).toBe(batches)
})

it('writes nothing after it was closed, also where a damaged entry is being read', async () => {
  const content = new Map<string, Uint8Array>()
  const first = await openQueue(new FakePublisher(true, false), { store: new MapStore(content), maxEntries: 2000 })
  for (let number = 1; number <= 1100; number++) await first.publish('a', String(number))
  await first.close({ timeout: 0 })
  // More than is read at once: this one is read once others have left.
  const damaged = entriesOf(new MapStore(content)).find((key) => key.endsWith('1090')) as string
  content.set(damaged, new Uint8Array(40))
  const reading = deferred<void>()
  const goOn = deferred<void>()
  class SlowStore extends MapStore {
    override async *entries(range: StoreRange = {}): AsyncIterableIterator<StoreEntry> {
      for await (const row of super.entries(range)) {
        if (row[0] === damaged) {
          reading.resolve()
          await goOn.promise
        }
        yield row
      }
    }
  }
  const store = new SlowStore(content)
  const publisher = new FakePublisher()
  publisher.answer = (call) => call.accept()
  const queue = await openQueue(publisher, { store, maxEntries: 2000 })
  await reading.promise
  const closed = queue.close({ timeout: 0 })
  setTimeout(goOn.resolve, 5)
  await closed
  const { batches } = store
  await new Promise((resolve) => setTimeout(resolve, 20))
  expect(store.batches).toBe(batches)
})
