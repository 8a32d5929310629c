/** Room that comes back where no entry has left: whoever waits for it gets it. */
import { expect, it } from 'vitest'
import { deferred } from '../../../src/common/abort.js'
import type { MqttError } from '../../../src/errors.js'
import type { StoreEntry, StoreRange } from '../../../src/store/base/store.js'
import { accepting, fail, isAddition, MapStore, offline, opened, settled } from './rig.js'

const endOf = (promise: Promise<unknown>): Promise<unknown> =>
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
    endOf(queue.publish('a', '1')),
    endOf(what === 'publish' ? queue.publish('a', '2') : queue.writable),
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
  class SlowStore extends MapStore {
    override async *entries(range: StoreRange = {}): AsyncIterableIterator<StoreEntry> {
      if (range.gt?.endsWith('1024')) await read.promise
      yield* super.entries(range)
    }
  }
  const { queue } = await opened({
    store: new SlowStore(content),
    publisher: accepting(),
    maxBytes: 60_000,
    overflow: 'wait',
  })
  const waits = queue.publish('a', new Uint8Array(59_950))
  await expect.poll(() => queue.size, { timeout: 3000 }).toBe(1)
  read.resolve()
  await expect.poll(() => endOf(waits), { timeout: 3000 }).toBe('fulfilled')
})
