/** Room that comes back where no entry has left: whoever waits for it gets it. */
import { expect, it } from 'vitest'
import { deferred } from '../../../src/client/common/abort.js'
import type { MqttError } from '../../../src/errors.js'
import { openQueue } from '../../../src/queue/index.js'
import type { StoreEntry, StoreOperation, StoreRange } from '../../../src/store/base/store.js'
import { FakePublisher, MapStore, settled } from './rig.js'

const isAddition = (operations: readonly StoreOperation[]): boolean => operations.some(({ type, key }) => type === 'put' && key.includes('/e/'))
const endOf = (promise: Promise<unknown>): Promise<unknown> =>
  Promise.race([
    promise.then(
      () => 'fulfilled',
      ({ code }: MqttError) => code,
    ),
    settled(400).then(() => 'waits'),
  ])

it('a publish that waits is let in where the one before it could not be stored', async () => {
  const store = new MapStore()
  const queue = await openQueue(new FakePublisher(true, false), { store, maxEntries: 1, overflow: 'wait' })
  let failures = 1
  store.before = (operations) => {
    if (isAddition(operations) && failures-- > 0) throw new Error('EIO')
  }
  const ends = [endOf(queue.publish('a', '1')), endOf(queue.publish('a', '2'))]
  expect(await Promise.all(ends)).toEqual(['ERR_STORE', 'fulfilled'])
  await queue.close({ timeout: 0 })
})

it('writable fulfils where what took the last room could not be stored', async () => {
  const store = new MapStore()
  const queue = await openQueue(new FakePublisher(true, false), { store, maxEntries: 1 })
  store.before = (operations) => {
    if (isAddition(operations)) throw new Error('EIO')
  }
  const ends = [endOf(queue.publish('a', '1')), endOf(queue.writable)]
  expect(await Promise.all(ends)).toEqual(['ERR_STORE', 'fulfilled'])
  await queue.close({ timeout: 0 })
})

it.each(['damaged', 'gone'])('a publish that waits is let in where the entries in its way are %s', async (how) => {
  const content = new Map<string, Uint8Array>()
  const first = await openQueue(new FakePublisher(true, false), { store: new MapStore(content), maxEntries: 1025 })
  await Promise.all(Array.from({ length: 1025 }, (_, at) => first.publish('a', String(at))))
  await first.close({ timeout: 0 })
  // The last one is not read before others have left.
  const last = [...content.keys()]
    .filter((key) => key.includes('/e/'))
    .sort()
    .at(-1) as string
  if (how === 'gone') content.delete(last)
  else content.set(last, new Uint8Array(40))
  const read = deferred<void>()
  class SlowStore extends MapStore {
    override async *entries(range: StoreRange = {}): AsyncIterableIterator<StoreEntry> {
      if (range.gt?.endsWith('1024')) await read.promise
      yield* super.entries(range)
    }
  }
  const store = new SlowStore(content)
  const publisher = new FakePublisher()
  publisher.answer = (call) => call.accept()
  const queue = await openQueue(publisher, { store, maxBytes: 60_000, overflow: 'wait' })
  const waits = queue.publish('a', new Uint8Array(59_950))
  await expect.poll(() => queue.size, { timeout: 3000 }).toBe(1)
  read.resolve()
  await expect.poll(() => endOf(waits), { timeout: 3000 }).toBe('fulfilled')
  await queue.close({ timeout: 0 })
})
