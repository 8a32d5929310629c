/** Sessions in stores that answer late or oddly, and what is left of them when clients and queues end at odd times. */
import { describe, expect, it } from 'vitest'
import type { BaseClient } from '../../../../src/client/client.js'
import { openQueue } from '../../../../src/queue/index.js'
import type { Store, StoreOperation } from '../../../../src/store/index.js'
import { MapStore } from '../../queue/rig.js'
import { Device, kill, settled, url } from './rig.js'

/** What a store answers with when the test says so. */
function gate(): { readonly open: () => void; readonly opened: Promise<void> } {
  let open = (): void => undefined
  const opened = new Promise<void>((resolve) => {
    open = resolve
  })
  return { open, opened }
}

/** A client whose session is not read before `open()` was called. */
function slowlyRead(): { readonly device: Device; readonly first: BaseClient; readonly open: () => void } {
  const device = new Device()
  const store = device.store as MapStore
  const { open, opened } = gate()
  const read = store.get.bind(store)
  store.get = async (key) => {
    await opened
    return read(key)
  }
  return { device, first: new device.world.Client(url, { clientId: 'device', store }), open }
}

describe('a client that ends while its session is being read', () => {
  it('lets the next one wait for the session, and go on', async () => {
    const { device, first, open } = slowlyRead()
    const ended = expect(first.connect()).rejects.toMatchObject({ code: 'ERR_CLOSED' })
    first.destroy()
    await ended
    const next = device.client()
    await settled()
    open()
    expect((await next).state).toBe('connected')
    await expect(device.client()).rejects.toMatchObject({ code: 'ERR_STORE_LOCKED' })
    await device.world.close()
  })

  it('lets of several only one go on', async () => {
    const { device, first, open } = slowlyRead()
    first.connect().catch(() => undefined)
    first.destroy()
    const next = [device.client(), device.client()].map((client) =>
      client.then(
        ({ state }) => state,
        ({ code }) => code,
      ),
    )
    await settled()
    open()
    expect(await Promise.all(next)).toEqual(['connected', 'ERR_STORE_LOCKED'])
    await device.world.close()
  })
})

describe('the option store', () => {
  const { get, batch, entries } = MapStore.prototype as unknown as Record<string, () => never>
  it.each([
    ['store', { batch, entries }],
    ['store', { get, batch }],
    ['store', { store: { batch, entries } }],
    ['store.inbound', { store: { get, batch, entries }, inbound: 'no' }],
    ['store.inboud', { store: { get, batch, entries }, inboud: false }],
  ])('is refused by the name %s before anything is dialled', async (option, store) => {
    const device = new Device()
    const dialled: unknown[] = []
    const client = new device.world.Client(url, { clientId: 'device', store: store as never, on: { dial: (event) => void dialled.push(event) } })
    await expect(client.connect()).rejects.toMatchObject({ code: 'ERR_INVALID_OPTION', option })
    expect(dialled).toEqual([])
    await device.world.close()
  })
})

it('a store that has a member of the name store is a store of its own', async () => {
  const device = new Device()
  await device.peer()
  const below = new MapStore()
  const whole = new MapStore()
  device.store = Object.assign(whole, { store: below })
  const { queue } = await device.start()
  await (await queue.publish('out/1', 'one', { qos: 2 })).delivered
  await settled()
  expect([device.arrived, [...below.content.keys()], [...whole.content.keys()]]).toEqual([['one'], [], ['c/device/m', 'q/default/m']])
  await device.world.close()
})

it('a store that throws where it should reject fails like any other, and the client goes on when it works again', async () => {
  const device = new Device()
  await device.peer()
  const store = device.store as MapStore
  const client = await device.client()
  await settled()
  const broken = (): never => {
    throw new Error('EIO')
  }
  const own: Partial<Store> = { get: store.get, batch: store.batch }
  Object.assign(store, { get: broken, batch: broken })
  const refused = expect(client.publish('out/1', 'one', { qos: 2 })).rejects.toMatchObject({ code: 'ERR_STORE' })
  await settled()
  await device.world.pass(1000)
  await refused
  Object.assign(store, own)
  await device.world.pass(1000)
  await client.publish('out/1', 'two', { qos: 2 })
  expect(device.arrived).toEqual(['two'])
  await device.world.close()
})

it('an entry whose end was heard while the queue was closed leaves nothing in the store, however late that is written', async () => {
  const device = new Device()
  await device.peer()
  const { client, queue, store } = await device.start()
  await settled()
  const { content } = store as MapStore
  // The end of the publish, as far as nobody hears of it, waits; what the queue asks for does not.
  const { open, opened } = gate()
  const batch = store.batch.bind(store)
  const isEnd = ({ key, type }: StoreOperation): boolean => key.startsWith('c/device/o/') && type === 'put' && content.has(key)
  let held = 0
  store.batch = async (operations) => {
    if (operations.some(isEnd)) {
      held += 1
      await opened
    }
    return batch(operations)
  }
  device.onPacket = (packet) => packet.startsWith('out publish') && queue.close({ timeout: 0 })
  await queue.publish('out/1', 'one')
  await settled()
  expect([held, device.arrived]).toEqual([1, ['one']])
  const next = await openQueue(client, { store })
  await settled()
  open()
  await settled()
  expect([next.size, device.keys('o'), device.arrived]).toEqual([0, [], ['one']])
  await device.world.close()
})

describe('two records of one packet identifier', () => {
  it('the later one goes on: the exchange of the other was over, and could not be forgotten', async () => {
    const device = new Device()
    await device.peer()
    const client = await device.client()
    device.onPacket = (packet) => packet === 'out publish 1' && kill(device, client)
    await client.publish('out/1', 'one', { qos: 1 }).catch(() => undefined)
    const { content } = device.store as MapStore
    const [first] = device.keys('o') as [string]
    content.set(`${first.slice(0, -1)}0`, content.get(first) as Uint8Array)
    device.onPacket = undefined
    await device.client()
    await settled()
    expect(device.events('connect')).toMatchObject([{}, { recovered: { outbound: 1 } }])
    expect([device.events('storecorrupt'), device.events('recovered').length, device.arrived, device.keys('o')]).toEqual([[], 1, ['one'], []])
    await device.world.close()
  })
})

describe('an entry whose publish an earlier process has left in flight', () => {
  async function interrupted(): Promise<Device> {
    const device = new Device()
    await device.peer()
    const { client, queue } = await device.start()
    device.onPacket = (packet) => packet.startsWith('out publish') && kill(device, client)
    await queue.publish('out/1', 'one', { qos: 2, ttl: 1000 }).catch(() => undefined)
    await settled()
    device.onPacket = undefined
    await queue.close({ timeout: 0 })
    return device
  }

  it('does not expire: it ends with that publish', async () => {
    const device = await interrupted()
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
    await device.world.close()
  })

  it.each(['clear', 'drop-oldest'] as const)('is not given up by %s: it is being sent', async (how) => {
    const device = await interrupted()
    // Read, and not connected: nothing is published.
    device.world.cut()
    const client = new device.world.Client(url, { clientId: 'device', store: device.store, firstConnect: 'wait' })
    client.connect().catch(() => undefined)
    await settled()
    const queue = await openQueue(client, { store: device.store, maxEntries: 2, overflow: 'drop-oldest' })
    const drops: number[] = []
    queue.on('drop', ({ id }) => drops.push(id))
    await queue.publish('out/1', 'two')
    if (how === 'clear') expect(await queue.clear()).toBe(1)
    else await queue.publish('out/1', 'three')
    expect([drops, queue.size]).toEqual([[2], how === 'clear' ? 1 : 2])
    await queue.close({ timeout: 0 })
    await device.world.close()
  })
})

it.each([1, 2] as const)(
  'at QoS %i an entry that was acknowledged and could not be deleted is not published again by the next queue of the client',
  async (qos) => {
    const device = new Device()
    await device.peer()
    const { client, queue, store } = await device.start()
    await settled()
    const { content } = store as MapStore
    const entries = (): string[] => [...content.keys()].filter((key) => key.includes('/e/'))
    await queue.publish('out/1', 'one', { qos })
    ;(store as MapStore).before = (operations) => {
      if (operations.some(({ key, type }) => type === 'delete' && key.includes('/e/'))) throw new Error('EIO')
    }
    await settled()
    expect([device.arrived, entries().length]).toEqual([['one'], 1])
    await queue.close({ timeout: 0 })
    ;(store as MapStore).before = () => undefined
    const next = await openQueue(client, { store })
    await settled()
    expect([device.arrived, next.size, entries(), device.keys('o')]).toEqual([['one'], 0, [], []])
    await device.world.close()
  },
)

it('a queue ends at once whose client has ended while an entry was in flight, and the entry stays', async () => {
  const device = new Device()
  await device.peer()
  const { client, queue } = await device.start()
  device.onPacket = (packet) => packet.startsWith('out publish') && client.destroy()
  const { delivered } = await queue.publish('out/1', 'one', { qos: 2 })
  const told = delivered.catch(({ code }) => code)
  await settled()
  expect(client.state).toBe('closed')
  const closing = queue.close().then(() => 'closed')
  expect(await Promise.race([closing, settled(100).then(() => 'late')])).toBe('closed')
  expect([await told, device.keys('o').length]).toEqual(['ERR_QUEUE_CLOSED', 1])
  await device.world.close()
})
