/** Clearing, closing and room that comes back, while other things go on: each entry is deleted, reported and counted once, and what has to be kept is not deleted. */

import { expect, it, onTestFinished, vi } from 'vitest'
import { deferred } from '../../../src/common/abort.js'
import type { MqttError } from '../../../src/errors.js'
import { openQueue } from '../../../src/queue/index.js'
import {
  accepting,
  fail,
  isAddition,
  MapStore,
  offline,
  opened,
  refusedWith,
  settled,
} from './rig.js'

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
  let reads = 0
  // `clear` reads at once, and what goes on behind it later.
  store.reading = () => reads++ > 0 && read.promise
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
  let writes = 0
  // The second chunk is deleted, and the store says that it is not.
  store.afterBatch = () => [2, 3].includes(++writes) && fail()
  await expect(queue.clear()).rejects.toMatchObject({ code: 'ERR_STORE' })
  publisher.online = true
  for (let round = 0; round < 100 && queue.size > 0; round++) await settled()
  expect([queue.size, queue.bytes, publisher.texts.length]).toEqual([0, 0, 176])
})

const soonOf = (promise: Promise<unknown>): Promise<unknown> =>
  Promise.race([
    promise.then(
      () => 'fulfilled',
      ({ code }: MqttError) => code,
    ),
    settled(400).then(() => 'waits'),
  ])

it.each(['publish', 'writable'])('%s that waits goes on where another failed', async (what) => {
  const overflow = what === 'publish' ? 'wait' : 'drop-newest'
  const { store, queue } = await opened({ publisher: offline(), maxEntries: 1, overflow })
  let failures = 1
  store.before = (operations) => isAddition(operations) && failures-- > 0 && fail()
  const ends = [
    soonOf(queue.publish('a', '1')),
    soonOf(what === 'publish' ? queue.publish('a', '2') : queue.writable),
  ]
  expect(await Promise.all(ends)).toEqual(['ERR_STORE', 'fulfilled'])
})

it.each(['damaged', 'gone'])('a publish that waits is let in where entries are %s', async (how) => {
  const first = await opened({ publisher: offline(), maxEntries: 1025 })
  await Promise.all(Array.from({ length: 1025 }, (_, at) => first.queue.publish('a', String(at))))
  await first.queue.close({ timeout: 0 })
  const { content, entryKeys } = first.store
  // The last one is not read before others have left.
  const last = entryKeys.at(-1) as string
  if (how === 'gone') content.delete(last)
  else content.set(last, new Uint8Array(40))
  const read = deferred<void>()
  const store = new MapStore(content)
  store.reading = ({ gt }) => gt?.endsWith('1024') && read.promise
  const { queue } = await opened({
    store,
    publisher: accepting(),
    maxBytes: 60_000,
    overflow: 'wait',
  })
  const waits = queue.publish('a', new Uint8Array(59_950))
  await expect.poll(() => queue.size, { timeout: 3000 }).toBe(1)
  read.resolve()
  await expect.poll(() => soonOf(waits), { timeout: 3000 }).toBe('fulfilled')
})

const endOf = (delivered: Promise<unknown>): Promise<unknown> =>
  delivered.then(
    () => 'delivered',
    ({ code, outcome }: MqttError) => [code, outcome],
  )

/** Timers that keep the process. */
const timers = (): number =>
  process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length

async function sending(options: Parameters<typeof opened>[0] = {}) {
  const made = await opened(options)
  const errors: unknown[] = []
  made.queue.on('error', ({ error }) => errors.push(error))
  const { delivered } = await made.queue.publish('a', 'x')
  await settled()
  return { ...made, delivered, errors }
}

it.each([1, 2, 3, 4, 5])('deletes what was acknowledged %i turns before', async (microtasks) => {
  const { store, publisher, queue, delivered } = await sending()
  publisher.calls[0]?.accept()
  for (let count = 0; count < microtasks; count++) await undefined
  await queue.close({ timeout: 0 })
  expect(store.entryKeys).toEqual([])
  // It has arrived: no promise says that it was not sent.
  expect(await endOf(delivered)).not.toEqual(['ERR_QUEUE_CLOSED', 'not-sent'])
})

it('keeps an entry whose dead letter could not be kept', async () => {
  const deadLetterStore = new MapStore()
  deadLetterStore.before = fail
  const { store, publisher, queue, delivered } = await sending({ deadLetterStore })
  const drops: number[] = []
  queue.on('drop', ({ id }) => drops.push(id))
  publisher.calls[0]?.refuse(refusedWith(0x87))
  await settled()
  await queue.close()
  expect(store.entryKeys).toHaveLength(1)
  expect([deadLetterStore.content.size, drops]).toEqual([0, []])
  expect(await endOf(delivered)).toContain('ERR_QUEUE_CLOSED')

  const again = await openQueue(publisher, { store })
  await settled()
  expect(publisher.texts).toEqual(['x', 'x'])
  publisher.calls[1]?.accept()
  await again.close()
  expect(store.entryKeys).toEqual([])
})

it.each([
  'while its store fails',
  'where an entry waits to be sent again',
  'where an entry is refused while it is closed',
])('leaves no timer behind that would keep the process, %s', async (when) => {
  const before = timers()
  const { store, publisher, queue } = await sending({ backoff: () => 1_000_000 })
  const late = when.endsWith('closed')
  const end = async (): Promise<void> => {
    if (when.endsWith('fails')) {
      store.before = fail
      publisher.calls[0]?.accept()
    } else publisher.calls[0]?.refuse(refusedWith(0x97))
    await settled()
  }
  if (!late) {
    await end()
    expect([queue.size, timers() > before]).toEqual([1, true])
  }
  const closed = queue.close(late ? {} : { timeout: 0 })
  await settled()
  if (late) await end()
  await closed
  expect(timers()).toBe(before)
})

it('ends over a store that does not answer, says so, and leaves its name taken until the store has answered', async () => {
  vi.useFakeTimers()
  onTestFinished(() => void vi.useRealTimers())
  const { store, publisher, queue, errors } = await sending()
  const answer = deferred<void>()
  const { batch } = store
  store.batch = (operations) => answer.promise.then(() => batch.call(store, operations))
  publisher.calls[0]?.accept()
  await vi.advanceTimersByTimeAsync(1)
  const ended = vi.fn()
  const closed = queue.close({ timeout: 100 }).then(ended)
  await vi.advanceTimersByTimeAsync(6000)
  expect(ended).toHaveBeenCalledOnce()
  expect(errors).toEqual([expect.objectContaining({ code: 'ERR_STORE', outcome: 'unknown' })])
  await closed
  await expect(openQueue(publisher, { store })).rejects.toMatchObject({ code: 'ERR_STORE_LOCKED' })
  answer.resolve()
  await vi.advanceTimersByTimeAsync(1)
  expect((await openQueue(publisher, { store })).size).toBe(0)
})

it('gives up nothing for a publish that gets its room only after the queue was closed', async () => {
  const { store, queue } = await opened({
    publisher: offline(),
    maxEntries: 3,
    overflow: 'drop-oldest',
  })
  for (const text of ['1', '2', '3']) await queue.publish('a', text)
  const ends = Promise.all(['4', '5'].map((text) => endOf(queue.publish('a', text))))
  await queue.close({ timeout: 0 })
  // They were not let in yet.
  expect(await ends).toEqual(new Array(2).fill(['ERR_QUEUE_CLOSED', 'not-sent']))
  await settled()
  expect(store.entryKeys.map((key) => Number(key.slice(-16)))).toEqual([1, 2, 3])
})

it('writes nothing after it was closed, also where a deletion was to be tried again', async () => {
  const { store, publisher, queue } = await sending()
  store.before = fail
  publisher.calls[0]?.accept()
  await settled()
  store.before = () => undefined
  await queue.close({ timeout: 0 })
  const { batches } = store
  const again = await opened({ store, publisher: offline() })
  await settled()
  expect(store.batches).toBe(batches)
  expect(again.queue.size).toBe(store.entryKeys.length)
})

it('writes nothing after it was closed, also where an answer comes late', async () => {
  const { store, publisher, queue } = await sending({ publishTimeout: 1, backoff: () => 1_000_000 })
  while (publisher.calls[0]?.options.signal?.aborted !== true)
    await new Promise((resolve) => setTimeout(resolve, 1))
  await queue.close({ timeout: 0 })
  const { batches } = store
  publisher.calls[0]?.accept()
  await settled()
  expect(store.batches).toBe(batches)
})

it('writes nothing after it was closed, also where a damaged entry is being read', async () => {
  const first = await opened({ publisher: offline(), maxEntries: 2000 })
  for (let number = 1; number <= 1100; number++) await first.queue.publish('a', String(number))
  await first.queue.close({ timeout: 0 })
  const { content, entryKeys } = first.store
  // More than is read at once: this one is read once others have left.
  const damaged = entryKeys[1089] as string
  content.set(damaged, new Uint8Array(40))
  const [reading, goOn] = [deferred<void>(), deferred<void>()]
  const store = new MapStore(content)
  store.reading = ({ gt }) => {
    if (!gt?.endsWith('1024')) return undefined
    reading.resolve()
    return goOn.promise
  }
  const { queue } = await opened({
    store,
    publisher: accepting(),
    maxEntries: 2000,
  })
  await reading.promise
  const closed = queue.close({ timeout: 0 })
  setTimeout(goOn.resolve, 5)
  await closed
  const { batches } = store
  await new Promise((resolve) => setTimeout(resolve, 20))
  expect(store.batches).toBe(batches)
})
