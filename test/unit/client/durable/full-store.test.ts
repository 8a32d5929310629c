/** A store that is full: what it holds is delivered all the same, and its room comes back. */
import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { decodePublish, encodePublish, putting, SessionKeys } from '../../../../src/client/durable/records.js'
import { openQueue, type Queue } from '../../../../src/queue/index.js'
import type { StoreOperation } from '../../../../src/store/index.js'
import { FakePublisher, MapStore, refusedWith } from '../../queue/rig.js'
import { Device, kill, settled, url } from './rig.js'

const sizeOf = (store: MapStore): number => [...store.content].reduce((sum, [key, { length }]) => sum + key.length + length, 0)
const left = (store: MapStore): string[] => [...store.content.keys()].filter((key) => /\/[eo]\//.test(key))
const growth = (store: MapStore, operations: readonly StoreOperation[]): number => {
  const copy = store.copy()
  for (const each of operations) each.type === 'put' ? copy.content.set(each.key, each.value) : copy.content.delete(each.key)
  return sizeOf(copy) - sizeOf(store)
}

/** How a store says that it is full: by the bytes that it would hold, or, as a quota does, to whatever is put. */
const ways = {
  'has a limit': (store: MapStore, operations: readonly StoreOperation[]) => growth(store, operations) > 0,
  'takes nothing but deletions': (_store: MapStore, operations: readonly StoreOperation[]) => operations.some(({ type }) => type === 'put'),
}

/** A device that stored entries while it had no connection, until its store was full to the last byte. */
async function full(qos: 1 | 2, isFull: (typeof ways)[keyof typeof ways]): Promise<{ device: Device; store: MapStore; texts: string[] }> {
  const device = new Device()
  const store = device.store as MapStore
  await device.peer()
  const { client, queue } = await device.start()
  await settled()
  device.onPacket = (packet) => packet.startsWith('out publish') && kill(device, client)
  const texts = Array.from({ length: 20 }, (_, at) => `${at} ${'x'.repeat(500)}`)
  await Promise.all(texts.map((text) => queue.publish('out/1', text, { qos })))
  await settled()
  await queue.close({ timeout: 0 })
  device.onPacket = undefined
  const next = device.store as MapStore
  for (const key of next.content.keys()) if (key.includes('/o/')) next.content.delete(key)
  next.before = (operations) => {
    if (isFull(next, operations)) throw new Error('QuotaExceededError')
  }
  expect(next).not.toBe(store)
  return { device, store: next, texts }
}

// The clock of the queue is a real one.
async function drained(device: Device, queue: Queue): Promise<void> {
  const size = async (): Promise<number> => {
    await device.world.pass(1000)
    return queue.size
  }
  await expect.poll(size, { timeout: 8000 }).toBe(0)
}

/** Written by the code of commit da455b4: publishes at each stage, a message that came in, entries, a dead letter. */
const earlier = Object.entries<string>(JSON.parse(readFileSync(new URL('earlier-store.json', import.meta.url), 'utf8'))).map(
  ([key, value]) => [key, Uint8Array.from(Buffer.from(value, 'hex'))] as const,
)

describe('a queue and its client in one store that is full', () => {
  it.each([
    ['has a limit', 1],
    ['has a limit', 2],
    ['takes nothing but deletions', 1],
  ] as const)('and %s deliver what is in it at QoS %i', async (way, qos) => {
    const { device, store, texts } = await full(qos, ways[way])
    const { queue } = await device.start()
    await drained(device, queue)
    expect([...device.arrived].sort()).toEqual([...texts].sort())
    expect([queue.size, queue.bytes, left(store)]).toEqual([0, 0, []])
    store.before = () => undefined
    await device.world.pass(1000)
    await (await queue.publish('out/1', 'new', { qos })).delivered
    await queue.close()
    await device.world.close()
  })

  it('deliver also while a message comes in that cannot be stored', async () => {
    const { device, store, texts } = await full(1, ways['takes nothing but deletions'])
    const peer = await device.world.connect(url, { clientId: 'peer 2' })
    await peer.publish('in/1', 'comes in', { qos: 1 })
    const { queue } = await device.start({ keepAlive: 10 })
    await drained(device, queue)
    expect([device.arrived.length, queue.size, device.seen]).toEqual([texts.length, 0, []])
    store.before = () => undefined
    await device.world.pass(2000)
    await settled()
    expect([device.seen.map(({ text }) => text), device.events('connect').length]).toEqual([['comes in'], 2])
    await device.world.close()
  })
})

describe('an entry at QoS 1 whose publish the store does not take', () => {
  const refusing = async (refuses: (operations: readonly StoreOperation[]) => boolean) => {
    const device = new Device()
    const store = device.store as MapStore
    await device.peer()
    const client = await device.client()
    store.before = (operations) => {
      if (refuses(operations)) throw new Error('EIO')
    }
    const queue = await openQueue(client, { store, backoff: () => 1 })
    const stored: number[] = []
    device.onPacket = (packet) => packet.startsWith('out publish') && stored.push(device.keys('o').length)
    await queue.publish('out/1', 'one', { qos: 1 })
    return { device, queue, stored }
  }
  const putsPublish = (operations: readonly StoreOperation[]): boolean => operations.some(({ type, key }) => type === 'put' && key.includes('/o/'))

  it('once is stored before it is sent', async () => {
    let failures = 0
    const { device, queue, stored } = await refusing((operations) => putsPublish(operations) && failures++ < 1)
    await expect.poll(() => queue.size).toBe(0)
    expect([failures, stored, device.arrived]).toEqual([2, [1], ['one']])
    await device.world.close()
  })

  it.each([
    ['nor deletes anything waits', () => true, []],
    ['for a second is sent', putsPublish, ['one']],
  ] as const)('%s', async (_name, refuses, arrived) => {
    let attempts = 0
    const { device } = await refusing((operations) => {
      if (attempts > 0 || putsPublish(operations)) attempts++
      return attempts > 0 && refuses(operations)
    })
    // The queue has the time of the platform, the client one that is passed.
    const progress = async (): Promise<boolean> => {
      await device.world.pass(1000)
      return device.arrived.length > 0 || (arrived.length === 0 && attempts > 10)
    }
    await expect.poll(progress).toBe(true)
    expect(device.arrived).toEqual(arrived)
    await device.world.close()
  })
})

describe('the payload of an entry', () => {
  it.each([1, 2] as const)('at QoS %i is stored once, and is that of the entry when the next process goes on', async (qos) => {
    const device = new Device()
    await device.peer()
    const { client, queue } = await device.start()
    device.onPacket = (packet) => packet.startsWith('out publish') && kill(device, client)
    const text = 'x'.repeat(10_000)
    await queue.publish('out/1', text, { qos })
    await settled()
    device.onPacket = undefined
    const store = device.store as MapStore
    expect(left(store)).toHaveLength(2)
    expect(sizeOf(store)).toBeLessThan(13_000)
    device.packets.length = 0
    const next = await device.start()
    await settled()
    expect(device.packets.find((packet) => packet.startsWith('out publish'))).toMatch(/^out publish \d+ dup$/)
    expect([device.arrived, next.queue.size, left(device.store as MapStore)]).toEqual([[text], 0, []])
    await device.world.close()
  })

  it('that is damaged is put aside with its publish, and the others go on', async () => {
    const device = new Device()
    await device.peer()
    const { client, queue } = await device.start()
    let sent = 0
    device.onPacket = (packet) => packet.startsWith('out publish') && ++sent === 3 && kill(device, client)
    await Promise.all(['one', 'two', 'three'].map((text) => queue.publish('out/1', text, { qos: 2 })))
    await settled()
    device.onPacket = undefined
    const { content } = device.store as MapStore
    const damaged = [...content.keys()].filter((key) => key.includes('/e/')).sort()[1] as string
    const record = content.get(damaged) as Uint8Array
    record[record.length - 1] = (record.at(-1) as number) ^ 1
    const next = await device.start()
    await settled(40)
    expect(device.arrived).toEqual(['one', 'three'])
    expect([next.queue.size, left(device.store as MapStore)]).toEqual([0, []])
    await device.world.close()
  })
})

describe('records of publishes as they were before, with their payload', () => {
  it('are read, also for an entry of a queue', async () => {
    const device = new Device()
    await device.peer()
    const { client, queue } = await device.start()
    device.onPacket = (packet) => packet.startsWith('out publish') && kill(device, client)
    await queue.publish('out/1', 'one', { qos: 2 })
    await settled()
    device.onPacket = undefined
    const { content } = device.store as MapStore
    const [entry] = [...content.keys()].filter((key) => key.includes('/e/')) as [string]
    const keys = new SessionKeys('device')
    const body = encodePublish({
      stage: 'sent',
      onSessionLost: undefined,
      taken: 0,
      link: { key: entry },
      packet: { topic: 'out/1', qos: 2, retain: false, packetId: 7, properties: undefined },
      payload: new TextEncoder().encode('one'),
      strikes: 0,
    })
    expect(Buffer.from(body).toString('hex')).toBe(`00000000000000000000001c${Buffer.from(entry).toString('hex')}340d00056f75742f310007006f6e65`)
    for (const key of [...content.keys()]) if (key.includes('/o/')) content.delete(key)
    const put = putting(keys.publish(9), body) as Extract<StoreOperation, { type: 'put' }>
    content.set(put.key, put.value)
    expect(decodePublish(put.value)).toMatchObject({ stage: 'sent', payload: new TextEncoder().encode('one'), length: 15 })
    device.packets.length = 0
    const next = await device.start()
    await settled()
    expect(device.packets.filter((packet) => packet.startsWith('out publish'))).toEqual(['out publish 7 dup'])
    expect([device.arrived, next.queue.size, left(device.store as MapStore)]).toEqual([['one'], 0, []])
    await device.world.close()
  })

  it('are read with all that an earlier version has left in a store', async () => {
    const device = new Device()
    await device.peer()
    const before = await device.world.connect(url, { clientId: 'device', cleanStart: false, sessionExpiryInterval: 300 })
    await before.disconnect()
    const store = new MapStore(new Map(earlier))
    device.store = store
    const { client, queue } = await device.start()
    await settled(40)
    expect(device.events('connect')).toMatchObject([{ recovered: { outbound: 5, inbound: 1 }, sessionPresent: true }])
    expect(device.arrived).toEqual(['session 2', 'session 1', 'queue 2', 'queue 1'])
    expect(device.events('recovered')).toMatchObject(['released', 'session 2', 'session 1', 'queue 2', 'queue 1'].map(() => ({ error: undefined })))
    const letters = await openQueue(client, { store, name: 'letters', deadLetterStore: store })
    expect(await letters.deadLetters?.replay()).toBe(1)
    await settled(40)
    expect(device.arrived.at(-1)).toBe('letter')
    expect([queue.size, queue.bytes, letters.size, left(store), device.events('storecorrupt')]).toEqual([0, 0, 0, [], []])
    await device.world.close()
  })
})

/** The same, written now: the payloads of publishes of entries are in those only. */
async function writtenNow(): Promise<readonly (readonly [string, Uint8Array])[]> {
  const device = new Device()
  const peer = await device.peer()
  device.handle = () => new Promise(() => undefined)
  const { client, queue, store } = await device.start()
  const publisher = new FakePublisher()
  publisher.answer = (call) => call.refuse(refusedWith(0x87))
  const letters = await openQueue(publisher, { store, name: 'letters', deadLetterStore: store })
  await letters.publish('out/letter', 'letter')
  await peer.publish('in/1', 'comes in', { qos: 2 })
  await settled()
  await letters.close()
  let sent = 0
  device.onPacket = (packet) => {
    if (packet.startsWith('out publish')) sent += 1
    if (sent === 4) kill(device, client)
  }
  for (const qos of [1, 2] as const) client.publish('out/1', `session ${qos}`, { qos }).catch(() => undefined)
  await Promise.all(([1, 2] as const).map((qos) => queue.publish('out/1', `queue ${qos}`, { qos })))
  await settled()
  await device.world.close()
  return [...(device.store as MapStore).content]
}

describe('one bit that is flipped in a store with sessions, entries and dead letters,', async () => {
  const stores = { earlier, now: await writtenNow() }
  const texts = ['session 1', 'session 2', 'queue 1', 'queue 2', 'letter']
  const places = ['the version', 'the checksum', 'the body', 'the last byte'] as const
  const cases = (['earlier', 'now'] as const).flatMap((when) => stores[when].flatMap(([key]) => places.map((place) => [place, key, when] as const)))

  it('is tried in records of each kind', () => {
    for (const records of Object.values(stores))
      expect(new Set(records.map(([key]) => key.replace(/\/\d+$/, '')))).toEqual(
        new Set(['c/device/i', 'c/device/m', 'c/device/o', 'q/default/e', 'q/default/m', 'q/letters/d', 'q/letters/m']),
      )
  })

  it.each(cases)('in %s of %s, written %s', async (place, key, when) => {
    const records = stores[when]
    const holders = (text: string): readonly string[] => records.filter(([, value]) => Buffer.from(value).includes(text)).map(([name]) => name)
    const device = new Device()
    await device.peer()
    const before = await device.world.connect(url, { clientId: 'device', cleanStart: false, sessionExpiryInterval: 300 })
    await before.disconnect()
    const store = new MapStore(new Map(records.map(([name, value]) => [name, value.slice()])))
    const record = store.content.get(key) as Uint8Array
    const at = { 'the version': 0, 'the checksum': 2, 'the body': Math.floor((record.length + 5) / 2), 'the last byte': record.length - 1 }[place]
    record[at] = (record[at] as number) ^ (place === 'the body' ? 0x10 : 1)
    device.store = store
    const told: string[] = []
    const note = (queue: Queue): unknown => queue.on('storecorrupt', (event) => told.push(event.key))
    const { client, queue } = await device.start()
    note(queue)
    const letters = await openQueue(client, { store, name: 'letters', deadLetterStore: store })
    note(letters)
    await letters.deadLetters?.replay()
    await device.world.pass(60_000)
    await settled(40)
    told.push(...device.events('storecorrupt').map((event) => (event as { key: string }).key))
    // What another record holds as well is not lost.
    expect([...device.arrived].sort()).toEqual(texts.filter((text) => holders(text).some((name) => name !== key)).sort())
    expect(told).toContain(key)
    expect([queue.size, queue.bytes, letters.size, letters.bytes]).toEqual([0, 0, 0, 0])
    await queue.close()
    await letters.close()
    await client.disconnect()
    const count = device.arrived.length
    const next = await device.start()
    await device.world.pass(60_000)
    await settled(40)
    // Where the entry was damaged, the end of its publish is kept until then.
    expect([next.queue.size, device.arrived.length, left(store)]).toEqual([0, count, []])
    await device.world.close()
  })
})
