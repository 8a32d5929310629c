/** Dead letters that are kept: their limit, their numbers, and what a replay does. */
import { describe, expect, it } from 'vitest'
import {
  type DeadLetterBox,
  type KeptLetter,
  openQueue,
  type Queue,
} from '../../../src/queue/index.js'
import type { StoreOperation } from '../../../src/store/base/store.js'
import { FakePublisher, fail, MapStore, opened, refusedWith, settled } from './rig.js'

const collect = async (queue: Queue): Promise<KeptLetter[]> => {
  const all: KeptLetter[] = []
  for await (const letter of (queue.deadLetters as DeadLetterBox).entries()) all.push(letter)
  return all
}
const topics = async (queue: Queue): Promise<string[]> =>
  (await collect(queue)).map(({ entry }) => entry.topic)
const keys = (store: MapStore, kind: 'd' | 'e'): string[] =>
  [...store.content.keys()].filter((key) => key.includes(`/${kind}/`))

function refusing(): FakePublisher {
  const publisher = new FakePublisher()
  publisher.answer = (call) => call.refuse(refusedWith(0x87))
  return publisher
}

/** A queue whose server refuses everything, and that keeps dead letters in the store of its entries. */
const letterBox = (store = new MapStore()) =>
  opened({ store, publisher: refusing(), deadLetterStore: store })

/** The store does what it is asked for, and says that it failed, the first time that `at` says so. */
function failOnce(
  store: MapStore,
  at: (operations: readonly StoreOperation[]) => boolean = () => true,
): void {
  let failures = 1
  store.afterBatch = (operations) => at(operations) && failures-- > 0 && fail()
}

async function until(condition: () => boolean): Promise<void> {
  for (let round = 0; round < 2000 && !condition(); round++) await settled(20)
  expect(condition()).toBe(true)
}

/** Reads what is there by now with each step, as LevelDB may. */
class LiveStore extends MapStore {
  override async *entries(
    range: Parameters<MapStore['entries']>[0] = {},
  ): ReturnType<MapStore['entries']> {
    for (
      let { limit = Number.POSITIVE_INFINITY, gt } = range, found = true;
      found && limit > 0;
      limit--
    ) {
      found = false
      for await (const entry of super.entries({ ...range, gt, limit: 1 })) {
        found = true
        gt = entry[0]
        yield entry
        await settled()
      }
    }
  }
}

describe('a replay', () => {
  it('ends while the server refuses them again: each is published once', async () => {
    const { store, publisher, queue } = await letterBox(new LiveStore())
    for (let at = 0; at < 10; at++) await queue.publish('a', `${at}`)
    await until(() => keys(store, 'd').length === 10)
    expect(await queue.deadLetters?.replay()).toBe(10)
    await until(() => queue.size === 0)
    expect([publisher.calls.length, keys(store, 'd').length]).toEqual([20, 10])
  })

  it('moves each letter in one batch: no crash leaves it in both places, or in none', async () => {
    const { store, publisher, queue } = await letterBox()
    for (const topic of ['a', 'b', 'c']) await queue.publish(topic, '')
    await until(() => queue.size === 0)
    publisher.answer = undefined
    const found: number[] = []
    store.afterBatch = () => void found.push(keys(store, 'd').length + keys(store, 'e').length)
    await queue.deadLetters?.replay()
    expect(found).toEqual([3, 3, 3])
  })

  it('that cannot be stored, or may be, leaves the letter', async () => {
    const { store, queue } = await letterBox()
    await queue.publish('a', '')
    await until(() => queue.size === 0)
    failOnce(store)
    await expect(queue.deadLetters?.replay()).rejects.toMatchObject({ code: 'ERR_STORE' })
    await settled()
    expect([keys(store, 'd').length, keys(store, 'e').length]).toEqual([1, 0])
  })

  const noIds: [unknown][] = [
    [5],
    ['all'],
    [new Set([1])],
    [[Number.NaN]],
    [[1, 0]],
    [[1.5]],
    [['1']],
  ]
  it.each(noIds)('of %o is refused', async (ids) => {
    const { queue } = await letterBox()
    await expect(queue.deadLetters?.replay(ids as never)).rejects.toMatchObject({
      code: 'ERR_INVALID_OPTION',
      option: 'ids',
    })
  })

  it('called twice at once replays each letter once', async () => {
    const { publisher, queue } = await letterBox()
    for (const topic of ['a', 'b', 'c']) await queue.publish(topic, '')
    await until(() => queue.size === 0)
    publisher.answer = (call) => call.accept()
    const { deadLetters } = queue
    expect(await Promise.all([deadLetters?.replay(), deadLetters?.replay()])).toEqual([3, 0])
    await until(() => queue.size === 0)
    expect(publisher.calls).toHaveLength(6)
  })
})

it('the limit of 10,000: holds however many come at once, also for what was above it, and the oldest go', async () => {
  const store = new MapStore()
  const letters = new MapStore()
  const publisher = refusing()
  const queue = await openQueue(publisher, { store, deadLetterStore: letters, concurrency: 512 })
  await queue.publish('a', '0')
  await until(() => queue.size === 0)
  const [[first, value]] = [...letters.content] as [[string, Uint8Array]]
  for (let at = 2; at <= 10_200; at++)
    letters.content.set(`${first.slice(0, -16)}${String(at).padStart(16, '0')}`, value)
  await queue.close({ timeout: 0 })
  const next = await openQueue(publisher, {
    store: store.copy(),
    name: 'default',
    deadLetterStore: letters,
    concurrency: 512,
  })
  await Promise.all(Array.from({ length: 300 }, (_, at) => next.publish(`new/${at}`, `${at}`)))
  await until(() => next.size === 0)
  expect(keys(letters, 'd')).toHaveLength(10_000)
  const kept = keys(letters, 'd').sort()
  expect(Number(kept[0]?.slice(-16))).toBe(501)
  expect(await topics(next)).toEqual(
    expect.arrayContaining(Array.from({ length: 300 }, (_, at) => `new/${at}`)),
  )
  await next.close({ timeout: 0 })
})

describe('the number of a letter', () => {
  it('is its own, where several queues keep theirs in one store, of one name and at once', async () => {
    const letters = new MapStore()
    const queues = await Promise.all(
      [1, 2].map(() => openQueue(refusing(), { store: new MapStore(), deadLetterStore: letters })),
    )
    await Promise.all(
      queues.flatMap((queue, of) => [1, 2, 3].map((at) => queue.publish(`${of}/${at}`, ''))),
    )
    await until(() => queues.every(({ size }) => size === 0))
    const [queue] = queues as [Queue]
    expect((await topics(queue)).sort()).toEqual(['0/1', '0/2', '0/3', '1/1', '1/2', '1/3'])
    expect(new Set((await collect(queue)).map(({ entry }) => entry.id)).size).toBe(6)
    for (const each of queues) await each.close({ timeout: 0 })
  })

  it('does not replace an older letter where numbers begin anew, as the counts were damaged', async () => {
    const store = new MapStore()
    const publisher = refusing()
    for (const topic of ['old', 'new']) {
      const queue = await openQueue(publisher, { store, deadLetterStore: store })
      await queue.publish(topic, '')
      await until(() => queue.size === 0)
      expect(await topics(queue)).toEqual(topic === 'old' ? ['old'] : ['old', 'new'])
      await queue.close({ timeout: 0 })
      store.content.delete('q/default/m')
    }
  })

  it('is the same when it is tried again: a letter that was kept although the store said no is kept once', async () => {
    const letters = new MapStore()
    failOnce(letters)
    const { queue } = await opened({ publisher: refusing(), deadLetterStore: letters })
    await queue.publish('a', '')
    await expect.poll(() => queue.size, { timeout: 5000 }).toBe(0)
    expect(keys(letters, 'd')).toHaveLength(1)
  })
})

it.each(['one store', 'a store of their own'])(
  'letters in %s: one that may still be written again is not replayed before that is over',
  async (where) => {
    const store = new MapStore()
    const letters = where === 'one store' ? store : new MapStore()
    const { publisher, queue } = await opened({
      store,
      publisher: refusing(),
      deadLetterStore: letters,
    })
    failOnce(letters, (operations) =>
      operations.some(({ type, key }) => type === 'put' && key.includes('/d/')),
    )
    await queue.publish('a', '')
    await until(() => keys(letters, 'd').length === 1)
    publisher.answer = (call) => call.accept()
    expect(await queue.deadLetters?.replay()).toBe(0)
    await expect.poll(() => queue.size).toBe(0)
    expect([await queue.deadLetters?.replay(), await queue.deadLetters?.replay()]).toEqual([1, 0])
    await until(() => queue.size === 0)
    expect([publisher.calls.length, keys(letters, 'd')]).toEqual([2, []])
  },
)

it('an entry that was refused as often as maxRefusals says is a dead letter, whatever the server said', async () => {
  const publisher = new FakePublisher()
  publisher.answer = (call) =>
    call.refuse(call.topic === 'a' ? refusedWith(0x97) : new Error('no answer'))
  const { queue } = await opened({ publisher, maxRefusals: 3, backoff: () => 0 })
  const { delivered } = await queue.publish('a', '')
  await queue.publish('b', '')
  await expect(delivered).rejects.toMatchObject({ code: 'ERR_PUBLISH_REFUSED', reasonCode: 0x97 })
  const tried = (topic: string): number =>
    publisher.calls.filter((call) => call.topic === topic).length
  await expect.poll(() => tried('b')).toBeGreaterThan(5)
  expect([tried('a'), queue.size]).toEqual([3, 1])
})
