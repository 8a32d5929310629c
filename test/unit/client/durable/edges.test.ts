/** Sessions and queue entries in stores that answer late or oddly, and what is left when clients, queues and processes end at odd times. */
import { describe, expect, it } from 'vitest'
import { access } from '../../../../src/client/access.js'
import type { BaseClient } from '../../../../src/client/client.js'
import type { Session } from '../../../../src/client/session/session.js'
import { deferred } from '../../../../src/common/abort.js'
import { openQueue } from '../../../../src/queue/index.js'
import { memoryStore, type StoreOperation, sessionStore } from '../../../../src/store/index.js'
import { MapStore } from '../../queue/rig.js'
import { Device, fail, interrupted, interruptedEntries, outcome, settled, url } from './rig.js'

/** A client whose session is not read before `open()` was called. */
async function slowlyRead() {
  const device = await Device.opened()
  const { promise, resolve } = deferred<void>()
  const read = device.map.get.bind(device.map)
  device.map.get = async (key) => {
    await promise
    return read(key)
  }
  return { device, first: device.made(), open: resolve }
}

it('a client that ends while its session is being read lets the next one wait for the session, and go on', async () => {
  const { device, first, open } = await slowlyRead()
  const ended = expect(first.connect()).rejects.toMatchObject({ code: 'ERR_CLOSED' })
  first.destroy()
  await ended
  const next = device.client()
  await settled()
  open()
  expect((await next).state).toBe('connected')
  await expect(device.client()).rejects.toMatchObject({ code: 'ERR_STORE_LOCKED' })
})

const { get, batch, entries } = MapStore.prototype as unknown as Record<string, () => never>
it.each([
  ['store', { batch, entries }],
  ['store', { get, batch }],
  ['store', { batch: fail }],
  ['store', { store: { batch, entries } }],
  ['store.inbound', { store: memoryStore(), inbound: 1 }],
  ['store.inbound', { store: { get, batch, entries }, inbound: 'no' }],
  ['store.inboud', { store: { get, batch, entries }, inboud: false }],
])(
  'the option store is refused by the name %s before anything is dialled',
  async (option, store) => {
    const { world } = await Device.opened()
    const dialled: unknown[] = []
    const client = new world.Client(url, {
      clientId: 'device',
      store: store as never,
      on: { dial: (event) => void dialled.push(event) },
    })
    await expect(client.connect()).rejects.toMatchObject({ code: 'ERR_INVALID_OPTION', option })
    expect(dialled).toEqual([])
  },
)

it('a store that has a member of the name store is a store of its own', async () => {
  const device = await Device.opened()
  const below = new MapStore()
  Object.assign(device.map, { store: below })
  const { queue } = await device.start()
  await (await queue.publish('out/1', 'one', { qos: 2 })).delivered
  await settled()
  const keys = [below, device.map].map(({ content }) => [...content.keys()])
  expect([device.arrived, ...keys]).toEqual([['one'], [], ['c/device/m', 'q/default/m']])
})

it('a store that throws where it should reject fails like any other, and the client goes on when it works again', async () => {
  const device = await Device.opened()
  const client = await device.client()
  await settled()
  Object.assign(device.map, { get: fail, batch: fail })
  const refused = outcome(client.publish('out/1', 'one', { qos: 2 }))
  await settled()
  await device.world.pass(1000)
  expect(await refused).toMatchObject({ code: 'ERR_STORE' })
  Object.assign(device.map, { get, batch })
  await device.world.pass(1000)
  await client.publish('out/1', 'two', { qos: 2 })
  expect(device.arrived).toEqual(['two'])
})

it('an entry whose end was heard while the queue was closed leaves nothing in the store, however late that is written', async () => {
  const { device, client, queue } = await Device.started()
  await settled()
  const { map } = device
  // The end of the publish, as far as no queue hears of it, waits; what the queue asks for does not.
  const { promise, resolve } = deferred<void>()
  const write = map.batch.bind(map)
  const isEnd = ({ key, type }: StoreOperation): boolean =>
    key.startsWith('c/device/o/') && type === 'put' && map.content.has(key)
  let held = 0
  map.batch = async (operations) => {
    if (operations.some(isEnd)) {
      held += 1
      await promise
    }
    return write(operations)
  }
  device.onPacket = (packet) => packet.startsWith('out publish') && queue.close({ timeout: 0 })
  await queue.publish('out/1', 'one')
  await settled()
  expect([held, device.arrived]).toEqual([1, ['one']])
  const next = await device.queue(client)
  await settled()
  resolve()
  await settled()
  expect([next.size, device.keys('o'), device.arrived]).toEqual([0, [], ['one']])
})

it('of two records of one packet identifier the later one goes on: the exchange of the other was over, and could not be forgotten', async () => {
  const device = await interrupted({ qos: 1 })
  const [first] = device.keys('o') as [string]
  device.map.content.set(`${first.slice(0, -1)}0`, device.map.content.get(first) as Uint8Array)
  await device.client()
  await settled()
  expect(device.events('connect')).toMatchObject([{}, { recovered: { outbound: 1 } }])
  expect(device.events('storecorrupt')).toEqual([])
  expect(device.events('recovered').length).toBe(1)
  expect(device.arrived).toEqual(['one'])
  expect(device.keys('o')).toEqual([])
})

describe('an entry whose publish an earlier process has left in flight', () => {
  it('does not expire: it ends with that publish', async () => {
    const device = await interruptedEntries({ qos: 2, ttl: 1000 })
    const { now } = Date
    Date.now = () => now() + 5000
    try {
      const { queue } = await device.start()
      const drops: unknown[] = []
      queue.on('drop', (event) => void drops.push(event))
      await settled()
      expect([drops, queue.size, device.arrived, device.keys('o')]).toEqual([[], 0, ['one'], []])
    } finally {
      Date.now = now
    }
  })

  it.each(['clear', 'drop-oldest'] as const)(
    'is not given up by %s: it is being sent',
    async (how) => {
      const device = await interruptedEntries({ qos: 2, ttl: 1000 })
      // Read, and not connected: nothing is published.
      device.world.cut()
      const client = device.made({ firstConnect: 'wait' })
      void outcome(client.connect())
      await settled()
      const queue = await device.queue(client, { maxEntries: 2, overflow: 'drop-oldest' })
      const drops: number[] = []
      queue.on('drop', ({ id }) => drops.push(id))
      await queue.publish('out/1', 'two')
      if (how === 'clear') expect(await queue.clear()).toBe(1)
      else await queue.publish('out/1', 'three')
      expect([drops, queue.size]).toEqual([[2], how === 'clear' ? 1 : 2])
      await queue.close({ timeout: 0 })
    },
  )
})

it.each([1, 2] as const)(
  'an acknowledged entry that could not be deleted is not sent again: QoS %i',
  async (qos) => {
    const { device, client, queue } = await Device.started()
    await settled()
    await queue.publish('out/1', 'one', { qos })
    device.map.before = (operations) =>
      operations.some(({ key, type }) => type === 'delete' && key.includes('/e/')) && fail()
    await settled()
    expect(device.arrived).toEqual(['one'])
    expect(device.left.filter((key) => key.includes('/e/')).length).toBe(1)
    await queue.close({ timeout: 0 })
    device.map.before = () => undefined
    const next = await device.queue(client)
    await settled()
    expect([device.arrived, next.size, device.left]).toEqual([['one'], 0, []])
  },
)

it('a queue ends at once whose client has ended while an entry was in flight, and the entry stays', async () => {
  const { device, client, queue } = await Device.started()
  device.onPacket = (packet) => packet.startsWith('out publish') && client.destroy()
  const end = outcome((await queue.publish('out/1', 'one', { qos: 2 })).delivered)
  await settled()
  expect(client.state).toBe('closed')
  const closing = queue.close().then(() => 'closed')
  expect(await Promise.race([closing, settled(100).then(() => 'late')])).toBe('closed')
  expect(await end).toMatchObject({ code: 'ERR_QUEUE_CLOSED' })
  expect(device.keys('o')).toHaveLength(1)
})

/** The parts of a client. */
const behind = (client: BaseClient): { readonly session: Session } =>
  (client as unknown as { [access](): { readonly session: Session } })[access]()

describe.each([1, 2] as const)(
  'entries at QoS %i whose publishes an earlier process has left',
  (qos) => {
    const texts = ['one', 'two', 'three']

    it('and which have been evicted are over: no damage is reported', async () => {
      const device = await interruptedEntries({ qos }, { texts })
      const { content } = device.map
      content.delete(device.left.find((key) => key.includes('/e/')) as string)
      const { queue } = await device.start()
      await settled()
      expect(device.events('storecorrupt')).toEqual([])
      expect([...content.keys()].filter((key) => key.startsWith('x/'))).toEqual([])
      expect([device.left, queue.size]).toEqual([[], 0])
      expect(device.arrived).toEqual(expect.arrayContaining(['two', 'three']))
      const failed = device
        .events('recovered')
        .filter((event) => (event as { error?: unknown }).error !== undefined)
      expect(failed).toMatchObject(
        qos === 1 ? [] : [{ packetId: 2, error: { code: 'ERR_DROPPED', outcome: 'unknown' } }],
      )
      // What the server may have of it ends, so that its identifier is free.
      expect(device.got('out pubrel 2')).toHaveLength(qos - 1)
    })

    it('count no more once they have ended while the queue was opening', async () => {
      const device = await interruptedEntries({ qos }, { texts })
      expect(device.left).toHaveLength(6)
      let read = (): void => undefined
      const may = new Promise<void>((resolve) => {
        read = resolve
      })
      const { entries } = Object.getPrototypeOf(device.map)
      device.map.entries = async function* (range = {}) {
        if ((range.gt ?? range.gte)?.startsWith('q/')) await may
        yield* entries.call(this, range)
      }
      const client = await device.client()
      const opening = device.queue(client)
      await settled(40)
      read()
      const queue = await opening
      await settled(40)
      expect([queue.size, queue.bytes, device.left, device.arrived]).toEqual([0, 0, [], texts])
    })

    it('are there until a queue has heard of their end, also in a process behind, and are not published again', async () => {
      const device = await interruptedEntries({ qos }, { texts })
      const alone = await device.client()
      await settled(40)
      expect(device.arrived).toEqual(texts)
      expect(device.left.filter((key) => key.startsWith('q/'))).toHaveLength(3)
      device.kill(alone)
      const { queue } = await device.start()
      await settled(40)
      expect([queue.size, device.left, device.arrived]).toEqual([0, [], texts])
    })

    it('whose end no queue heard of leave nothing once they are deleted', async () => {
      const device = await interruptedEntries({ qos }, { texts })
      const alone = await device.client()
      await settled(40)
      device.kill(alone)
      for (const key of device.left) if (key.startsWith('q/')) device.map.content.delete(key)
      expect(device.left).toHaveLength(3)
      await device.start()
      await settled(40)
      expect(device.left).toEqual([])
    })

    it('keep their promise where the process died before a deletion was written, and their identifier had another publish by then', async () => {
      const device = await interruptedEntries({ qos }, { texts })
      const { map } = device
      // At QoS 1 as it was sent, at QoS 2 as it was released.
      let before = qos === 1 ? map.copy().content : new Map<string, Uint8Array>()
      map.before = (operations) => {
        const isDeletion = operations.some(
          ({ type, key }) => type === 'delete' && key.includes('/o/'),
        )
        if (isDeletion && before.size === 0) before = map.copy().content
      }
      const { client, queue } = await device.start()
      await settled(40)
      expect(device.left).toEqual([])
      // Identifiers have gone round.
      behind(client).session.sendWindow.avoid((1 + 32_767) % 65_535)
      await device.dying(client, 'out publish 2', () => queue.publish('out/1', 'four', { qos }))
      // As if what was done with the first entry were not written, but the publish behind it were.
      for (const [key, value] of before)
        if (/\/[eo]\/0+1$/.test(key)) device.map.content.set(key, value)
      device.map.content.delete('q/default/m')
      expect(device.left).toHaveLength(4)
      const next = await device.start()
      await settled(40)
      expect(device.events('storecorrupt')).toEqual([])
      // What is tried again waits a second.
      await expect.poll(() => next.queue.size, { timeout: 5000 }).toBe(0)
      const times = (text: string): number => device.arrived.filter((each) => each === text).length
      expect([device.left, times('one'), times('four')]).toEqual([[], qos === 2 ? 1 : 2, 1])
    })
  },
)

it.each(['the client', 'the queue', 'both'])(
  'a store and its sessionStore() are one: %s has it',
  async (who) => {
    const device = await Device.opened()
    const { store } = device
    const client = await device.client({ store: who === 'the queue' ? store : sessionStore(store) })
    const queue = await openQueue(client, {
      store: who === 'the client' ? store : sessionStore(store),
      qos: 2,
      deadLetterStore: sessionStore(store),
    })
    const locked = { code: 'ERR_STORE_LOCKED' }
    for (const other of [store, sessionStore(store), sessionStore(sessionStore(store))]) {
      await expect(openQueue(client, { store: other })).rejects.toMatchObject(locked)
      for (const each of [other, { store: other }])
        await expect(device.client({ store: each })).rejects.toMatchObject(locked)
    }
    await (await queue.publish('out/1', 'one')).delivered
    expect(device.arrived).toEqual(['one'])
    await queue.close()
  },
)
