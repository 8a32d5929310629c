/** A store that fails, is full or damaged: nothing half done stays, what it holds is delivered, and what is reported is so. */

import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import type { BaseClient } from '../../../../src/client/client.js'
import {
  decodePublish,
  encodePublish,
  putting,
  SessionKeys,
} from '../../../../src/client/durable/records.js'
import { deferred } from '../../../../src/common/abort.js'
import type { Queue } from '../../../../src/queue/index.js'
import { memoryStore, type StoreOperation } from '../../../../src/store/index.js'
import { MapStore } from '../../queue/rig.js'
import { times } from '../harness.js'
import {
  Device,
  fail,
  interrupted,
  interruptedEntries,
  outcome,
  puts,
  settled,
  url,
} from './rig.js'

/** Does what is asked for, and then says what `after` says. */
class LateStore extends MapStore {
  after: (operations: readonly StoreOperation[]) => unknown = () => undefined

  override async batch(operations: readonly StoreOperation[]): Promise<void> {
    await super.batch(operations)
    await this.after(operations)
  }

  /** Works again. */
  mend(): void {
    this.before = () => undefined
    this.after = () => undefined
  }
}

async function failing() {
  const device = await Device.opened()
  const store = new LateStore()
  device.store = store
  const started = await device.start()
  await settled()
  return { device, store, ...started }
}

describe('a publish that could not be stored, and is there all the same', () => {
  it('is deleted before the caller hears that it was not sent', async () => {
    const { device, store, client } = await failing()
    store.after = (operations) => puts(operations, '/o/') && fail()
    const error = await outcome(client.publish('out/1', 'one', { qos: 2 }))
    expect(error).toMatchObject({ code: 'ERR_STORE', outcome: 'not-sent' })
    expect(device.keys('o')).toEqual([])
  })

  it('may arrive as long as it cannot be deleted: the caller hears that, and it goes as soon as the store works', async () => {
    const { device, store, client } = await failing()
    store.after = fail
    store.before = (operations) => !puts(operations, '/o/') && fail()
    const error = await outcome(client.publish('out/1', 'one', { qos: 2 }))
    expect(error).toMatchObject({ code: 'ERR_STORE', outcome: 'unknown' })
    expect(device.keys('o')).toHaveLength(1)
    store.mend()
    await device.pass(1000)
    expect([device.keys('o'), device.arrived]).toEqual([[], []])
  })

  it('costs the same however long the store fails: what is to be deleted does not grow', async () => {
    const { device, store, client } = await failing()
    store.before = fail
    for (let at = 0; at < 200; at++)
      await Promise.all(
        ['a', 'b', 'c'].map((text) => outcome(client.publish('out/1', text, { qos: 1 }))),
      )
    let most = 0
    store.before = ({ length }) => {
      most = Math.max(most, length)
    }
    await client.publish('out/1', 'one', { qos: 1 })
    await device.pass(1000)
    expect(most).toBeLessThan(8)
    expect([device.arrived, device.keys('o')]).toEqual([['one'], []])
  })
})

it('a client that takes the place of another one waits for what that one is writing', async () => {
  const { device, store, client, queue } = await failing()
  const slow = deferred<void>()
  const batch = MapStore.prototype.batch.bind(store)
  store.batch = async (operations) => {
    if (puts(operations, '/o/')) await slow.promise
    return batch(operations)
  }
  void outcome(client.publish('out/1', 'one', { qos: 1 }))
  await settled()
  await queue.close({ timeout: 0 })
  client.destroy()
  const next = device.client()
  await settled()
  slow.resolve()
  await next
  await settled()
  expect(device.events('connect').at(-1)).toMatchObject({ recovered: { outbound: 1, inbound: 0 } })
  expect([device.arrived, device.keys('o')]).toEqual([['one'], []])
})

it('the identifier of a publish follows those of an earlier process: the server may still answer for them', async () => {
  const device = await interrupted({ qos: 1 }, { texts: ['one', 'two', 'three'] })
  const next = await device.client()
  await settled()
  await next.publish('out/1', 'four', { qos: 1 })
  const repeats = [1, 2, 3].map((id) => `out publish ${id} dup`)
  expect(device.got('out publish')).toEqual([...repeats, 'out publish 4'])
})

it('an entry whose publish failed before its queue was open leaves no record, however late that one is written', async () => {
  const device = await interruptedEntries({ qos: 2 })
  device.world.broker.restart({ keepSessions: false })
  device.map.before = (operations) => puts(operations, '/o/') && fail()
  const client = await device.client()
  await settled()
  const queue = await device.queue(client)
  await settled()
  device.map.before = () => undefined
  await device.pass(2000)
  expect([device.keys('o'), queue.size]).toEqual([[], 0])
})

describe('acknowledgements', () => {
  it('PUBREC of what an earlier process had received leaves behind those that came before it [MQTT-4.6.0-3]', async () => {
    const device = await Device.opened()
    const peer = await device.peer('other')
    const first = deferred<void>()
    const client = await device.client()
    await client.listen(
      'in/#',
      (message) => (message.text() === 'one' ? first.promise : undefined),
      { qos: 2, concurrency: 2 },
    )
    await Promise.all(['one', 'two'].map((text) => peer.publish(`in/${text}`, text, { qos: 2 })))
    await settled()
    device.kill(client)
    device.packets.length = 0
    const next = await device.client()
    await next.listen('in/#', () => first.promise, { qos: 2 })
    await settled()
    expect(device.got('out pubrec')).toEqual([])
    first.resolve()
    await settled()
    expect(device.got('out pubrec')).toEqual(['out pubrec 1', 'out pubrec 2'])
  })

  it('PUBCOMP waits for its record on the next connection too', async () => {
    const { device, store } = await failing()
    const peer = await device.peer('other')
    store.before = (operations) =>
      device.packets.includes('in pubrel 1') && puts(operations, '/i/') && fail()
    await peer.publish('in/1', 'one', { qos: 2 })
    await settled()
    device.world.cut('device')()
    await device.pass(2500)
    expect([device.got('in pubrel 1').length, device.got('out pubcomp')]).toEqual([2, []])
    store.mend()
    await device.pass(3000)
    expect(device.got('out pubcomp')).toHaveLength(1)
  })
})

describe('a store that the program has closed while it is in use', () => {
  const closed = {
    code: 'ERR_STORE',
    outcome: 'not-sent',
    message: expect.stringMatching(/^store closed: .*close it after/),
  }

  const { outcome: _, ...said } = closed

  async function opened(): Promise<Device> {
    const device = await Device.opened()
    device.store = memoryStore()
    return device
  }

  it.each([1, 2] as const)('rejects a publish at QoS %i, and says once what to do', async (qos) => {
    const device = await opened()
    const client = await device.client()
    await settled()
    await device.store.close()
    expect(await outcome(client.publish('out/1', 'one', { qos }))).toMatchObject(closed)
    await device.world.pass(10_000)
    expect(device.arrived).toEqual([])
    expect(device.events('error')).toMatchObject([{ error: said }])
  })

  it.each([0, 1, 2] as const)(
    'lets the client disconnect at once, QoS %i on its way',
    async (qos) => {
      const device = await opened()
      const client = await device.client()
      const published = qos === 0 ? [] : [outcome(client.publish('out/1', 'one', { qos }))]
      if (qos === 0) await device.store.close()
      device.onPacket = (packet) => packet === 'out publish 1' && void device.store.close()
      await settled()
      if (qos > 0) published.push(outcome(client.publish('out/1', 'two', { qos })))
      const before = device.world.now()
      await client.disconnect()
      expect(device.world.now() - before).toBeLessThan(1000)
      const [one, two] = await Promise.all(published)
      if (qos === 1) expect(one).toMatchObject({ reasonCode: 0 })
      if (qos === 2) expect(one).toMatchObject({ code: 'ERR_STORE', outcome: 'unknown' })
      if (qos > 0) expect(two).toMatchObject(closed)
    },
  )

  it('lets the client go on where the server has lost the session, though what came in cannot be forgotten', async () => {
    const device = await opened()
    const peer = await device.peer('other')
    const client = await device.client({ reconnect: { backoff: () => 5000 } })
    // Taken and not acknowledged: its record stays.
    await client.listen('in/#', () => new Promise<void>(() => undefined), { qos: 2 })
    await peer.publish('in/1', 'one', { qos: 2 })
    await settled()
    await device.store.close()
    device.world.cut('device')()
    await device.loseSession()
    await device.world.pass(60_000)
    expect([client.state, device.events('sessionlost').length]).toEqual(['connected', 1])
    expect(device.events('error')).toMatchObject([{ error: said }])
  })

  it('lets a queue reject what is new, and close at once', async () => {
    const device = await opened()
    const queue = await device.queue(await device.client())
    await settled()
    await device.store.close()
    expect(await outcome(queue.publish('out/1', 'one'))).toMatchObject(closed)
    await queue.close({ timeout: 2 ** 31 - 1 })
  })

  it.each([1, 2] as const)('lets a queue close at once, QoS %i on its way', async (qos) => {
    const device = await opened()
    const queue = await device.queue(await device.client())
    device.onPacket = (packet) => packet.startsWith('out publish') && void device.store.close()
    const end = outcome((await queue.publish('out/1', 'one', { qos })).delivered)
    await settled()
    await queue.close({ timeout: 2 ** 31 - 1 })
    expect(await end).not.toMatchObject({ outcome: 'not-sent' })
  })
})

const sizeOf = (store: MapStore): number =>
  [...store.content].reduce((sum, [key, { length }]) => sum + key.length + length, 0)

/** How a store says that it is full: by the bytes that it would hold, or, as a quota does, to whatever is put. */
const ways = {
  'has a limit': (store: MapStore, operations: readonly StoreOperation[]) => {
    const copy = store.copy()
    for (const each of operations)
      each.type === 'put' ? copy.content.set(each.key, each.value) : copy.content.delete(each.key)
    return sizeOf(copy) > sizeOf(store)
  },
  'takes nothing but deletions': (_store: MapStore, operations: readonly StoreOperation[]) =>
    puts(operations, ''),
}

/** A device that stored entries while it had no connection, until its store was full to the last byte. */
async function full(qos: 1 | 2, way: keyof typeof ways) {
  const texts = times(20, (at) => `${at} ${'x'.repeat(500)}`)
  const device = await interruptedEntries({ qos }, { texts, times: 1 })
  const { map } = device
  for (const key of map.content.keys()) if (key.includes('/o/')) map.content.delete(key)
  map.before = (operations) => ways[way](map, operations) && fail()
  return { device, texts }
}

// The clock of the queue is a real one.
async function drained(device: Device, queue: Queue): Promise<void> {
  const size = async (): Promise<number> => {
    await device.world.pass(1000)
    return queue.size
  }
  await expect.poll(size, { timeout: 8000 }).toBe(0)
}

describe('a queue and its client in one store that is full', () => {
  it.each([
    ['has a limit', 1],
    ['has a limit', 2],
    ['takes nothing but deletions', 1],
  ] as const)('and %s deliver what is in it at QoS %i', async (way, qos) => {
    const { device, texts } = await full(qos, way)
    const { queue } = await device.start()
    await drained(device, queue)
    expect([...device.arrived].sort()).toEqual([...texts].sort())
    expect([queue.size, queue.bytes, device.left]).toEqual([0, 0, []])
    device.map.before = () => undefined
    await device.world.pass(1000)
    await (await queue.publish('out/1', 'new', { qos })).delivered
    await queue.close()
  })

  it('deliver also while a message comes in that cannot be stored', async () => {
    const { device, texts } = await full(1, 'takes nothing but deletions')
    await (await device.peer('other')).publish('in/1', 'comes in', { qos: 1 })
    const { queue } = await device.start({ keepAlive: 10 })
    await drained(device, queue)
    expect([device.arrived.length, queue.size, device.seen]).toEqual([texts.length, 0, []])
    device.map.before = () => undefined
    await device.pass(2000)
    expect([device.texts, device.events('connect').length]).toEqual([['comes in'], 2])
  })
})

it.each([
  ['once is stored before it is sent', () => false, [1]],
  ['nor deletes anything waits', () => true, []],
  ['for a second is sent', (operations: readonly StoreOperation[]) => puts(operations, '/o/'), [0]],
] as const)(
  'an entry at QoS 1 whose publish the store does not take %s',
  async (_name, refuses, expected) => {
    const device = await Device.opened()
    const client = await device.client()
    let attempts = 0
    device.map.before = (operations) => {
      if (attempts === 0 && !puts(operations, '/o/')) return
      if (++attempts === 1 || refuses(operations)) fail()
    }
    const queue = await device.queue(client, { backoff: () => 1 })
    const stored: number[] = []
    device.onPacket = (packet) =>
      packet.startsWith('out publish') && stored.push(device.keys('o').length)
    await queue.publish('out/1', 'one', { qos: 1 })
    // The queue has the time of the platform, the client one that is passed.
    const progress = async (): Promise<boolean> => {
      await device.world.pass(1000)
      return expected.length === 0 ? attempts > 10 : device.arrived.length > 0
    }
    await expect.poll(progress).toBe(true)
    expect([stored, device.arrived]).toEqual([expected, expected.map(() => 'one')])
  },
)

describe('the payload of an entry', () => {
  it.each([1, 2] as const)('at QoS %i is stored once, also for the next process', async (qos) => {
    const text = 'x'.repeat(10_000)
    const device = await interruptedEntries({ qos }, { texts: [text] })
    expect(device.left).toHaveLength(2)
    expect(sizeOf(device.map)).toBeLessThan(13_000)
    const { queue } = await device.start()
    await settled()
    expect(device.got('out publish')[0]).toMatch(/^out publish \d+ dup$/)
    expect([device.arrived, queue.size, device.left]).toEqual([[text], 0, []])
  })

  it('that is damaged is put aside with its publish, and the others go on', async () => {
    const device = await interruptedEntries({ qos: 2 }, { texts: ['one', 'two', 'three'] })
    const { content } = device.map
    const record = content.get(
      device.left.filter((key) => key.includes('/e/')).sort()[1] as string,
    ) as Uint8Array
    record[record.length - 1] = (record.at(-1) as number) ^ 1
    const { queue } = await device.start()
    await settled(40)
    expect([device.arrived, queue.size, device.left]).toEqual([['one', 'three'], 0, []])
  })
})

/** Written by the code of commit da455b4: publishes at each stage, a message that came in, entries, a dead letter. */
const earlier = Object.entries<string>(
  JSON.parse(readFileSync(new URL('earlier-store.json', import.meta.url), 'utf8')),
).map(([key, value]) => [key, Uint8Array.from(Buffer.from(value, 'hex'))] as const)

/** A device with that store, and a session at the broker. */
async function holding(): Promise<Device> {
  const device = await Device.opened()
  const session = { clientId: 'device', cleanStart: false, sessionExpiryInterval: 300 }
  await (await device.world.connect(url, session)).disconnect()
  device.store = new MapStore(new Map(earlier.map(([key, value]) => [key, value.slice()])))
  return device
}

const lettersOf = (device: Device, client: BaseClient): Promise<Queue> =>
  device.queue(client, { name: 'letters', deadLetterStore: device.store })

describe('records of publishes as they were before, with their payload', () => {
  it('are read, also for an entry of a queue', async () => {
    const device = await interruptedEntries({ qos: 2 })
    const { content } = device.map
    const [entry] = device.left.filter((key) => key.includes('/e/')) as [string]
    const body = encodePublish({
      stage: 'sent',
      onSessionLost: undefined,
      taken: 0,
      link: { key: entry },
      packet: { topic: 'out/1', qos: 2, retain: false, packetId: 7, properties: undefined },
      payload: new TextEncoder().encode('one'),
      strikes: 0,
    })
    expect(Buffer.from(body).toString('hex')).toBe(
      `00000000000000000000001c${Buffer.from(entry).toString('hex')}340d00056f75742f310007006f6e65`,
    )
    for (const key of device.keys('o')) content.delete(key)
    type Put = Extract<StoreOperation, { type: 'put' }>
    const put = putting(new SessionKeys('device').publish(9), body) as Put
    content.set(put.key, put.value)
    expect(decodePublish(put.value)).toMatchObject({
      stage: 'sent',
      payload: new TextEncoder().encode('one'),
      length: 15,
    })
    const { queue } = await device.start()
    await settled()
    expect(device.got('out publish')).toEqual(['out publish 7 dup'])
    expect([device.arrived, queue.size, device.left]).toEqual([['one'], 0, []])
  })

  it('are read with all that an earlier version has left in a store', async () => {
    const device = await holding()
    const { client, queue } = await device.start()
    await settled(40)
    const recovered = { outbound: 5, inbound: 1 }
    expect(device.events('connect')).toMatchObject([{ recovered, sessionPresent: true }])
    expect(device.arrived).toEqual(['session 2', 'session 1', 'queue 2', 'queue 1'])
    expect(device.events('recovered')).toMatchObject(Array(5).fill({ error: undefined }))
    const letters = await lettersOf(device, client)
    expect(await letters.deadLetters?.replay()).toBe(1)
    await settled(40)
    expect(device.arrived.at(-1)).toBe('letter')
    expect([queue.size, queue.bytes, letters.size]).toEqual([0, 0, 0])
    expect([device.left, device.events('storecorrupt')]).toEqual([[], []])
  })
})

describe('one bit that is flipped in a store with sessions, entries and dead letters,', () => {
  const texts = ['session 1', 'session 2', 'queue 1', 'queue 2', 'letter']
  const places = ['the version', 'the checksum', 'the body', 'the last byte'] as const
  const cases = earlier.flatMap(([key]) => places.map((place) => [place, key] as const))

  it.each(cases)('in %s of %s', async (place, key) => {
    const holders = (text: string): readonly string[] =>
      earlier.filter(([, value]) => Buffer.from(value).includes(text)).map(([name]) => name)
    const device = await holding()
    const record = device.map.content.get(key) as Uint8Array
    const at = {
      'the version': 0,
      'the checksum': 2,
      'the body': Math.floor((record.length + 5) / 2),
      'the last byte': record.length - 1,
    }[place]
    record[at] = (record[at] as number) ^ (place === 'the body' ? 0x10 : 1)
    const { client, queue } = await device.start()
    const letters = await lettersOf(device, client)
    const corrupt: string[] = []
    for (const each of [queue, letters]) each.on('storecorrupt', (event) => corrupt.push(event.key))
    await letters.deadLetters?.replay()
    await device.world.pass(60_000)
    await settled(40)
    corrupt.push(...(device.events('storecorrupt') as { key: string }[]).map((event) => event.key))
    // What another record holds as well is not lost.
    expect([...device.arrived].sort()).toEqual(
      texts.filter((text) => holders(text).some((name) => name !== key)).sort(),
    )
    expect(corrupt).toContain(key)
    expect([queue.size, queue.bytes, letters.size, letters.bytes]).toEqual([0, 0, 0, 0])
    await queue.close()
    await letters.close()
    await client.disconnect()
    const count = device.arrived.length
    const next = await device.start()
    await device.world.pass(60_000)
    await settled(40)
    // Where the entry was damaged, the end of its publish is kept until then.
    expect([next.queue.size, device.arrived.length, device.left]).toEqual([0, count, []])
  })
})
