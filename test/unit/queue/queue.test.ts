/** The queue over a publisher under control: what is stored, sent, tried again, given up, in which order. */
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { MqttError } from '../../../src/errors.js'
import {
  type DeadLetterBox,
  openQueue,
  type Queue,
  type Queued,
  type QueueOptions,
} from '../../../src/queue/index.js'
import { FakePublisher, MapStore, refusedWith, settled } from './rig.js'

const start = Date.UTC(2030, 0, 1)

let store: MapStore
let publisher: FakePublisher
let queue: Queue

async function open(options: Partial<QueueOptions> = {}, from = publisher): Promise<Queue> {
  queue = await openQueue(from, { store, backoff: () => 1000, ...options })
  return queue
}

function openOffline(options?: Partial<QueueOptions>): Promise<Queue> {
  publisher.online = false
  return open(options)
}

async function connect(): Promise<void> {
  publisher.online = true
  await settled()
}

async function outcome(promise: Promise<unknown>): Promise<string> {
  await settled()
  const state = promise.then(
    () => 'fulfilled',
    (error: MqttError) => error.code,
  )
  return Promise.race([state, settled(5).then(() => 'pending')])
}

async function publishAll(...texts: string[]): Promise<void> {
  for (const text of texts) await queue.publish(text.slice(0, 1), text)
}

/** The same to one topic, and what leaves at once has left; gives the first. */
async function sending(...texts: string[]): Promise<Queued> {
  const all: Queued[] = []
  for (const text of texts) all.push(await queue.publish('a', text))
  await settled()
  return all[0] as Queued
}

async function accept(at: number): Promise<void> {
  publisher.calls[at]?.accept()
  await settled()
}

async function refuse(at: number, error: unknown): Promise<void> {
  publisher.calls[at]?.refuse(error)
  await settled()
}

const numbers = (count: number): string[] => Array.from({ length: count }, (_, index) => `${index}`)

async function collect<T>(entries: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = []
  for await (const entry of entries) all.push(entry)
  return all
}

beforeEach(() => {
  vi.useFakeTimers({ now: start })
  store = new MapStore()
  publisher = new FakePublisher()
})

afterEach(async () => {
  const closed = queue?.close({ timeout: 0 })
  await vi.advanceTimersByTimeAsync(1000)
  await closed
  vi.useRealTimers()
})

describe('publish', () => {
  it('fulfils once the store has the entry, and settles delivered with the receipt; then the record goes', async () => {
    await open()
    const queued = await queue.publish('a', 'one')
    expect(queued.id).toBe(1)
    expect(queue.size).toBe(1)
    expect(store.entryKeys).toHaveLength(1)
    await settled()
    expect(publisher.calls).toMatchObject([
      { topic: 'a', text: 'one', options: { qos: 1, retain: false } },
    ])
    expect(await outcome(queued.delivered)).toBe('pending')
    publisher.calls[0]?.accept()
    expect((await queued.delivered).reasonCode).toBe(0)
    expect([queue.size, queue.bytes]).toEqual([0, 0])
    expect(store.entryKeys).toEqual([])
  })

  it('sends nothing before the store has it, and nothing at all where the store fails', async () => {
    await open()
    store.before = () => {
      expect(publisher.calls).toEqual([])
      throw new Error('ENOSPC')
    }
    await expect(queue.publish('a', 'one')).rejects.toMatchObject({
      code: 'ERR_STORE',
      outcome: 'not-sent',
      cause: { message: 'ENOSPC' },
    })
    expect(queue.size).toBe(0)
    store.before = () => undefined
    publisher.answer = (call) => call.accept()
    await (await queue.publish('a', 'two')).delivered
    expect(publisher.texts).toEqual(['two'])
  })

  it('copies payload and properties: the memory is the caller’s again at once', async () => {
    await openOffline()
    const payload = new TextEncoder().encode('mine')
    const correlationData = new Uint8Array([1, 2, 3])
    const userProperties: [string, string][] = [['a', 'b']]
    const done = queue.publish('a', payload, {
      retain: true,
      properties: { correlationData, userProperties, contentType: 'x' },
    })
    payload.fill(0)
    correlationData.fill(0)
    userProperties.push(['c', 'd'])
    await done
    await connect()
    const properties = { correlationData: new Uint8Array([1, 2, 3]), userProperties: [['a', 'b']] }
    expect(publisher.calls).toMatchObject([{ text: 'mine', options: { retain: true, properties } }])
  })

  it('refuses QoS 0, QoS 2 without leave, and what is wrong by its name', async () => {
    await open()
    const responseTopic = { properties: { responseTopic: '#' } }
    for (const [topic, payload, options, error] of [
      ['a', '', { qos: 0 }, { code: 'ERR_QOS0_NOT_QUEUEABLE' }],
      ['a', '', { qos: 2 }, { code: 'ERR_INVALID_OPTION', option: 'qos' }],
      ['a/+', '', {}, { code: 'ERR_INVALID_TOPIC' }],
      ['a', 5, {}, { code: 'ERR_INVALID_OPTION', option: 'payload' }],
      ['a', '', responseTopic, { option: 'properties.responseTopic' }],
      ['a', '', { retian: true }, { message: expect.stringContaining('retian') }],
    ] as [string, never, object, object][])
      await expect(queue.publish(topic, payload, options)).rejects.toMatchObject(error)
    expect(store.batches).toBe(0)
  })

  it('takes QoS 2 where duplicates are allowed', async () => {
    await open({ qos: 2, duplicates: 'allowed' })
    await queue.publish('a', '')
    await settled()
    expect(publisher.calls).toMatchObject([{ options: { qos: 2 } }])
  })

  it('many of one turn share a batch', async () => {
    await openOffline()
    await Promise.all(numbers(200).map((text) => queue.publish('a', text)))
    expect(store.batches).toBeLessThan(4)
    expect(queue.size).toBe(200)
  })
})

describe('options', () => {
  it.each([
    [{ store: {} }, 'store'],
    [{ name: 'a/b' }, 'name'],
    [{ maxEntries: 0 }, 'maxEntries'],
    [{ overflow: 'drop' }, 'overflow'],
    [{ concurrency: 0 }, 'concurrency'],
    [{ qos: 2 }, 'qos'],
    [{ publishTimeout: 0 }, 'publishTimeout'],
    [{ onDeadLetter: 5 }, 'onDeadLetter'],
  ])('%o is ERR_INVALID_OPTION', async (options, option) => {
    await expect(openQueue(publisher, { store, ...options } as never)).rejects.toMatchObject({
      code: 'ERR_INVALID_OPTION',
      option,
    })
  })

  it('a store that cannot delete its oldest entries is refused with drop-oldest', async () => {
    store.evicts = false
    await expect(openQueue(publisher, { store, overflow: 'drop-oldest' })).rejects.toMatchObject({
      code: 'ERR_EVICTION_NOT_SUPPORTED',
    })
  })

  it('a queue that is open already is ERR_STORE_LOCKED, one of another name is not', async () => {
    await open()
    await expect(openQueue(publisher, { store })).rejects.toMatchObject({
      code: 'ERR_STORE_LOCKED',
    })
    const other = await openQueue(publisher, { store, name: 'other' })
    await other.close()
    await queue.close()
    await open()
  })
})

describe('order', () => {
  it('of each topic is that of the calls; topics take turns', async () => {
    await openOffline()
    await publishAll('a1', 'a2', 'b1', 'a3')
    await connect()
    expect(publisher.texts.filter((text) => text.startsWith('a'))).toEqual(['a1', 'a2', 'a3'])
    expect(publisher.texts).toHaveLength(4)
  })

  it('over a publisher that keeps none, one of a topic is under way at a time', async () => {
    publisher = new FakePublisher(false)
    await open()
    await publishAll('a1', 'a2', 'b1')
    await settled()
    expect(publisher.texts).toEqual(['a1', 'b1'])
    await accept(0)
    expect(publisher.texts).toEqual(['a1', 'b1', 'a2'])
  })

  it('no more are under way than concurrency says', async () => {
    await open({ concurrency: 3 })
    await sending(...numbers(10))
    expect(publisher.calls).toHaveLength(3)
    await accept(1)
    expect(publisher.calls).toHaveLength(4)
  })

  it('a refused one is tried again before those of its topic that were not sent; others go on', async () => {
    await open({ concurrency: 1 })
    await publishAll('a1', 'a2', 'b1')
    await settled()
    await refuse(0, refusedWith(0x97))
    expect(publisher.texts).toEqual(['a1', 'b1'])
    await accept(1)
    expect(publisher.texts).toEqual(['a1', 'b1'])
    await vi.advanceTimersByTimeAsync(1000)
    expect(publisher.texts).toEqual(['a1', 'b1', 'a1'])
    await accept(2)
    expect(publisher.texts).toEqual(['a1', 'b1', 'a1', 'a2'])
  })
})

describe('what becomes of a failure', () => {
  it.each([0x80, 0x83, 0x97])('code %i: tried again, after the backoff', async (reasonCode) => {
    const tries: number[] = []
    await open({ backoff: (attempt) => tries.push(attempt) * 100 })
    const { delivered } = await queue.publish('a', '1')
    for (let round = 1; round <= 3; round++) {
      await settled()
      expect(publisher.calls).toHaveLength(round)
      publisher.calls.at(-1)?.refuse(refusedWith(reasonCode))
      await vi.advanceTimersByTimeAsync(round * 100)
    }
    publisher.calls.at(-1)?.accept()
    await delivered
    expect(tries).toEqual([1, 2, 3])
  })

  it.each([
    ['0x87', refusedWith(0x87)],
    ['0x90', refusedWith(0x90)],
    ['0x99', refusedWith(0x99)],
    ['ERR_POISONED', new MqttError('ERR_POISONED', undefined, { outcome: 'unknown' })],
    ['ERR_PACKET_TOO_LARGE', new MqttError('ERR_PACKET_TOO_LARGE')],
  ])('%s: a dead letter at once, with the reason', async (_name, error) => {
    const letters: unknown[] = []
    await open({ onDeadLetter: ({ entry, error: why }) => letters.push([entry.topic, why]) })
    const { delivered } = await sending('1')
    publisher.calls[0]?.refuse(error)
    expect(await outcome(delivered)).toBe(error.code)
    expect(letters).toEqual([['a', error]])
    expect(queue.size).toBe(0)
  })

  it.each(['throws', 'rejects'])('onDeadLetter that %s is an error event', async (how) => {
    const error = new Error('no letter')
    const onDeadLetter = (): Promise<never> => {
      if (how === 'throws') throw error
      return Promise.reject(error)
    }
    await open({ onDeadLetter })
    const errors: unknown[] = []
    queue.on('error', ({ error }) => errors.push(error))
    const { delivered } = await sending('1')
    publisher.calls[0]?.refuse(refusedWith(0x87))
    expect(await outcome(delivered)).toBe('ERR_PUBLISH_REFUSED')
    expect(errors).toEqual([new Error('no letter')])
    expect(queue.size).toBe(0)
  })

  it('dead letters are kept where a store is given: read, replayed, cleared', async () => {
    await open({ deadLetterStore: store })
    await publishAll('a1', 'b2')
    await settled()
    for (const call of publisher.calls) call.refuse(refusedWith(0x87))
    await settled()
    const [first, second] = await collect((queue.deadLetters as DeadLetterBox).entries())
    expect(first).toMatchObject({
      entry: { topic: 'a', id: 1 },
      code: 'ERR_PUBLISH_REFUSED',
      reasonCode: 0x87,
      at: start,
    })
    expect(second).toMatchObject({ entry: { topic: 'b', id: 2 } })
    publisher.answer = (call) => call.accept()
    expect(await queue.deadLetters?.replay([1])).toBe(1)
    await settled()
    expect(publisher.texts).toEqual(['a1', 'b2', 'a1'])
    expect(await queue.deadLetters?.clear()).toBe(1)
    expect(await collect((queue.deadLetters as DeadLetterBox).entries())).toEqual([])
  })

  it('without an answer it is tried again after publishTimeout; time without a connection does not count', async () => {
    await open({ publishTimeout: 10_000 })
    const { delivered } = await sending('1')
    publisher.online = false
    await vi.advanceTimersByTimeAsync(60_000)
    expect(publisher.calls).toHaveLength(1)
    expect(publisher.calls[0]?.options.signal?.aborted).toBe(false)
    publisher.online = true
    await vi.advanceTimersByTimeAsync(12_000)
    expect(publisher.calls[0]?.options.signal?.aborted).toBe(true)
    expect(publisher.calls).toHaveLength(2)
    // The first one arrives after all.
    publisher.calls[0]?.accept()
    await delivered
    await accept(1)
    expect(queue.size).toBe(0)
  })

  it('a publisher that is closed ends it quietly: what is left stays in the store', async () => {
    await open()
    await sending('1', '2')
    for (const call of publisher.calls) call.refuse(new MqttError('ERR_CLOSED'))
    await vi.advanceTimersByTimeAsync(60_000)
    expect(publisher.calls).toHaveLength(2)
    expect(queue.size).toBe(2)
  })

  it('a publisher that throws, or gives no promise', async () => {
    let round = 0
    const publish = (): undefined => {
      if (++round === 1) throw new Error('no')
    }
    await open({}, { ordered: true, writable: Promise.resolve(), publish } as never)
    const { delivered } = await queue.publish('a', '1')
    await vi.advanceTimersByTimeAsync(1000)
    expect(await outcome(delivered)).toBe('fulfilled')
  })
})

it('expiry: ttl goes along as Message Expiry Interval, counted down, and is over when it is over', async () => {
  await openOffline({ concurrency: 1, publishTimeout: 120_000 })
  const first = await queue.publish('a', '1', { ttl: 60_000 })
  const second = await queue.publish('a', '2', {
    ttl: 90_000,
    properties: { messageExpiryInterval: 70 },
  })
  await vi.advanceTimersByTimeAsync(30_500)
  await connect()
  expect(publisher.calls).toMatchObject([
    { text: '1', options: { properties: { messageExpiryInterval: 30 } } },
  ])
  await vi.advanceTimersByTimeAsync(60_000)
  publisher.calls[0]?.accept()
  expect(await outcome(first.delivered)).toBe('fulfilled')
  expect(await outcome(second.delivered)).toBe('ERR_EXPIRED')
  expect(queue.size).toBe(0)
})

describe('a full queue', () => {
  it('drop-newest refuses the newest', async () => {
    await openOffline({ maxEntries: 2 })
    for (const text of ['1', '2']) await queue.publish('a', text)
    await expect(queue.publish('a', '3')).rejects.toMatchObject({
      code: 'ERR_DROPPED',
      outcome: 'not-sent',
    })
    expect((await collect(queue.entries())).map(({ id }) => id)).toEqual([1, 2])
  })

  it('reject refuses with ERR_QUEUE_FULL, by count and by bytes', async () => {
    await openOffline({ maxBytes: 200, overflow: 'reject' })
    await queue.publish('a', 'x'.repeat(100))
    await expect(queue.publish('a', 'x'.repeat(100))).rejects.toMatchObject({
      code: 'ERR_QUEUE_FULL',
    })
    await expect(queue.publish('a', 'x'.repeat(1000))).rejects.toThrow(/maxBytes/)
  })

  it('drop-oldest gives up the oldest that is not under way, also those that were not read yet', async () => {
    await open({ maxEntries: 3, overflow: 'drop-oldest', concurrency: 1 })
    const drops: number[] = []
    queue.on('drop', ({ id }) => drops.push(id))
    const all = await Promise.all(['1', '2', '3'].map((text) => queue.publish('a', text)))
    await settled()
    expect(publisher.texts).toEqual(['1'])
    await Promise.all(['4', '5'].map((text) => queue.publish('a', text)))
    expect(drops).toEqual([2, 3])
    expect(await outcome(all[1]?.delivered as Promise<unknown>)).toBe('ERR_DROPPED')
    publisher.answer = (call) => call.accept()
    publisher.calls[0]?.accept()
    await vi.advanceTimersByTimeAsync(10)
    expect(publisher.texts).toEqual(['1', '4', '5'])
    expect(queue.size).toBe(0)
  })

  it('wait waits for room in the order of the calls, as many as the queue holds, and an abort leaves it', async () => {
    await open({ maxEntries: 2, overflow: 'wait' })
    await sending('1', '2')
    const abort = new AbortController()
    const third = queue.publish('a', '3', { signal: abort.signal })
    const fourth = queue.publish('a', '4')
    await expect(queue.publish('a', '5')).rejects.toMatchObject({ code: 'ERR_QUEUE_FULL' })
    expect(await outcome(queue.writable)).toBe('pending')
    abort.abort()
    await expect(third).rejects.toMatchObject({ code: 'ERR_ABORTED' })
    publisher.calls[0]?.accept()
    expect((await fourth).id).toBe(3)
    publisher.calls[1]?.accept()
    expect(await outcome(queue.writable)).toBe('fulfilled')
  })
})

describe('a queue that is opened again', () => {
  it('publishes what is left, in order; numbers go on', async () => {
    await openOffline()
    for (let index = 0; index < 100; index++) await queue.publish('a', `${index}`)
    store = store.copy()
    publisher = new FakePublisher()
    publisher.answer = (call) => call.accept()
    await queue.close({ timeout: 0 })
    await open()
    expect(queue.oldest).toBe(start)
    await vi.advanceTimersByTimeAsync(10)
    expect(publisher.texts).toEqual(numbers(100))
    expect(queue.size).toBe(0)
    expect((await queue.publish('a', 'x')).id).toBe(101)
  })

  it('puts a damaged record aside, tells it, and goes on; also that of the counts', async () => {
    await openOffline()
    for (let index = 0; index < 3; index++) await queue.publish('a', `${index}`)
    await queue.close({ timeout: 0 })
    for (const [key, value] of store.content)
      if (key.endsWith('2') || key.endsWith('/m'))
        value[value.length - 1] = 255 - (value.at(-1) as number)
    publisher = new FakePublisher()
    publisher.answer = (call) => call.accept()
    await open()
    const told: string[] = []
    queue.on('storecorrupt', ({ key }) => told.push(key))
    await vi.advanceTimersByTimeAsync(10)
    expect(told).toHaveLength(2)
    expect(publisher.texts).toEqual(['0', '2'])
    expect(queue.size).toBe(0)
    expect([...store.content.keys()].filter((key) => key.startsWith('x/'))).toHaveLength(2)
  })

  it('after a crash at any write: everything that was promised arrives, and what recovery finds is the same twice', async () => {
    const snapshots: { content: MapStore; promised: number; acknowledged: number }[] = []
    let promised = 0
    store.before = () =>
      snapshots.push({ content: store.copy(), promised, acknowledged: publisher.calls.length })
    publisher.answer = (call) => call.accept()
    await open({ concurrency: 4 })
    for (let index = 0; index < 30; index++) {
      const queued = await queue.publish(`t${index % 3}`, `${index}`)
      promised = queued.id
    }
    await vi.advanceTimersByTimeAsync(10)
    expect(snapshots.length).toBeGreaterThan(20)
    for (const snapshot of snapshots) {
      const other = new FakePublisher()
      other.answer = (call) => call.accept()
      const again = await openQueue(other, { store: snapshot.content.copy() })
      const twice = await openQueue(new FakePublisher(true, false), {
        store: snapshot.content.copy(),
      })
      const found = (await collect(twice.entries())).map(({ payload }) =>
        new TextDecoder().decode(payload),
      )
      await vi.advanceTimersByTimeAsync(10)
      expect(other.texts.length).toBe(found.length)
      expect(new Set(other.texts)).toEqual(new Set(found))
      // What was promised was acknowledged before the crash, or is published after it.
      expect(snapshot.acknowledged + found.length).toBeGreaterThanOrEqual(snapshot.promised)
      await Promise.all([again.close({ timeout: 0 }), twice.close({ timeout: 0 })])
    }
  })
})

describe('the store fails', () => {
  it('a deletion is tried again, and the message is not published twice', async () => {
    const errors: unknown[] = []
    publisher.answer = (call) => call.accept()
    await open()
    queue.on('error', ({ error }) => errors.push(error))
    store.before = (operations) => {
      if (operations.some(({ type }) => type === 'delete')) throw new Error('EIO')
    }
    const { delivered } = await sending('1')
    expect(errors).toMatchObject([{ code: 'ERR_STORE' }])
    expect(await outcome(delivered)).toBe('pending')
    store.before = () => undefined
    await vi.advanceTimersByTimeAsync(1000)
    expect(await outcome(delivered)).toBe('fulfilled')
    expect(publisher.calls).toHaveLength(1)
    expect(queue.size).toBe(0)
  })

  it('a full disk refuses what takes room and lets go what frees it', async () => {
    await open()
    const first = await sending('1')
    store.before = (operations) => {
      if (operations.some(({ type, key }) => type === 'put' && key.includes('/e/')))
        throw new Error('ENOSPC')
    }
    const second = queue.publish('a', '2')
    publisher.calls[0]?.accept()
    await expect(second).rejects.toMatchObject({ code: 'ERR_STORE' })
    expect(await outcome(first.delivered)).toBe('fulfilled')
    expect(queue.size).toBe(0)
  })
})

describe('clear, close, status', () => {
  it('clear deletes everything that is not under way', async () => {
    await open({ concurrency: 1 })
    const all = await Promise.all(numbers(50).map((text) => queue.publish('a', text)))
    await settled()
    expect(await queue.clear()).toBe(49)
    expect(queue.size).toBe(1)
    expect(await outcome(all[1]?.delivered as Promise<unknown>)).toBe('ERR_DROPPED')
    await queue.publish('a', 'after')
    publisher.answer = (call) => call.accept()
    publisher.calls[0]?.accept()
    await vi.advanceTimersByTimeAsync(10)
    expect(publisher.texts).toEqual(['0', 'after'])
  })

  it('close waits for what is under way, keeps the rest, and settles every promise', async () => {
    await open({ concurrency: 1 })
    const [first, second] = await Promise.all(['1', '2'].map((text) => queue.publish('a', text)))
    await settled()
    const closing = queue.close()
    expect(await outcome(closing)).toBe('pending')
    publisher.calls[0]?.accept()
    await closing
    expect(await outcome(first?.delivered as Promise<unknown>)).toBe('fulfilled')
    expect(await outcome(second?.delivered as Promise<unknown>)).toBe('ERR_QUEUE_CLOSED')
    expect(publisher.calls).toHaveLength(1)
    await expect(queue.publish('a', '3')).rejects.toMatchObject({ code: 'ERR_QUEUE_CLOSED' })
    await expect(queue.writable).rejects.toMatchObject({ code: 'ERR_QUEUE_CLOSED' })
    expect(store.entryKeys).toHaveLength(1)
  })

  it('close gives up after its timeout, or with its signal', async () => {
    await open()
    const { delivered } = await sending('1')
    const closing = queue.close({ timeout: 3000 })
    await vi.advanceTimersByTimeAsync(3000)
    await closing
    await expect(delivered).rejects.toMatchObject({ code: 'ERR_QUEUE_CLOSED', outcome: 'unknown' })
    expect(publisher.calls[0]?.options.signal?.aborted).toBe(true)
  })

  it('status tells how far it has come, and ends with the queue', async () => {
    await open({ concurrency: 2 })
    const seen: unknown[] = []
    const reading = (async () => {
      for await (const { pending, inFlight, delivered } of queue.status())
        seen.push(`${pending} ${inFlight} ${delivered}`)
    })()
    await Promise.all(['1', '2', '3'].map((text) => queue.publish('a', text)))
    await vi.advanceTimersByTimeAsync(250)
    for (const call of publisher.calls) call.accept()
    await vi.advanceTimersByTimeAsync(250)
    await queue.close({ timeout: 0 })
    await reading
    expect(seen).toEqual(['0 0 0', '3 2 0', '1 1 2', '1 0 2'])
  })

  it('an unknown event is refused by its name', async () => {
    await open()
    expect(() => queue.on('deadLetter' as never, () => undefined)).toThrow(/deadletter/)
  })
})

it('bounds: a topic whose head waits leaves room for others, up to the look-ahead', async () => {
  await openOffline()
  await Promise.all(
    Array.from({ length: 3000 }, (_, index) =>
      queue.publish(index === 0 ? 'bad' : 'good', `${index}`),
    ),
  )
  publisher.answer = (call) =>
    call.topic === 'bad' ? call.refuse(refusedWith(0x97)) : call.accept()
  publisher.online = true
  await vi.advanceTimersByTimeAsync(10)
  expect(queue.size).toBe(1)
})
