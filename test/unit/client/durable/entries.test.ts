/** Entries of a queue whose publishes an earlier process has left in flight: they end with the next process, whether its queue has read them or not. */
import { describe, expect, it } from 'vitest'
import type { BaseClient } from '../../../../src/client/client.js'
import { inside } from '../../../../src/client/common/inside.js'
import type { Session } from '../../../../src/client/session/session.js'
import { openQueue } from '../../../../src/queue/index.js'
import { type Store, sessionStore } from '../../../../src/store/index.js'
import type { MapStore } from '../../queue/rig.js'
import { Device, kill, settled } from './rig.js'

/** The parts of a client. */
const behind = (client: BaseClient): { readonly session: Session } => (client as unknown as { [inside](): { readonly session: Session } })[inside]()

/** A device whose process died when it had sent the publishes of its entries, and nothing was acknowledged. */
async function interrupted(qos: 1 | 2): Promise<Device> {
  const device = new Device()
  await device.peer()
  const { client, queue } = await device.start()
  let sent = 0
  device.onPacket = (packet) => {
    if (packet.startsWith('out publish')) sent += 1
    if (sent === 3) kill(device, client)
  }
  await Promise.all(['one', 'two', 'three'].map((text) => queue.publish('out/1', text, { qos })))
  await settled()
  device.onPacket = undefined
  return device
}

/** A store whose entries of queues are not read before it is told so. */
class SlowEntries implements Store {
  readonly #store: Store
  read: () => void = () => undefined
  readonly #may = new Promise<void>((resolve) => {
    this.read = resolve
  })

  constructor(store: Store) {
    this.#store = store
  }

  get: Store['get'] = (key) => this.#store.get(key)
  batch: Store['batch'] = (operations) => this.#store.batch(operations)
  close: Store['close'] = () => this.#store.close()

  async *entries(range: Parameters<Store['entries']>[0]): ReturnType<Store['entries']> {
    if ((range?.gt ?? range?.gte)?.startsWith('q/')) await this.#may
    yield* this.#store.entries(range)
  }
}

describe.each([1, 2] as const)('entries at QoS %i whose publishes an earlier process has left', (qos) => {
  const left = (device: Device): string[] => [...(device.store as MapStore).content.keys()].filter((key) => /\/[eo]\//.test(key))

  it('and which have been evicted are over: nobody is told of damage', async () => {
    const device = await interrupted(qos)
    const { content } = device.store as MapStore
    const [evicted] = [...content.keys()].filter((key) => key.includes('/e/'))
    content.delete(evicted as string)
    const { queue } = await device.start()
    await settled()
    expect(device.events('storecorrupt')).toEqual([])
    expect([...content.keys()].filter((key) => key.startsWith('x/'))).toEqual([])
    expect([left(device), queue.size]).toEqual([[], 0])
    expect(device.arrived).toEqual(expect.arrayContaining(['two', 'three']))
    const told = device.events('recovered').filter((event) => (event as { error?: unknown }).error !== undefined)
    expect(told).toMatchObject(qos === 1 ? [] : [{ packetId: 2, error: { code: 'ERR_DROPPED', outcome: 'unknown' } }])
    // What the server may have of it ends, so that its identifier is free.
    expect(device.packets.filter((packet) => packet === 'out pubrel 2')).toHaveLength(qos - 1)
    await queue.close()
    await device.world.close()
  })

  it('count no more once they have ended while the queue was opening', async () => {
    const device = await interrupted(qos)
    expect(left(device)).toHaveLength(6)
    const content = device.store
    const slow = new SlowEntries(content)
    device.store = slow
    const client = await device.client()
    const opening = openQueue(client, { store: slow })
    await settled(40)
    slow.read()
    const queue = await opening
    await settled(40)
    expect(queue.size).toBe(0)
    expect(queue.bytes).toBe(0)
    device.store = content
    expect(left(device)).toEqual([])
    expect(device.arrived).toEqual(['one', 'two', 'three'])
    await queue.close()
    await device.world.close()
  })

  it('are there until a queue has heard of their end, also in a process behind, and are not published again', async () => {
    const device = await interrupted(qos)
    const alone = await device.client()
    await settled(40)
    expect(device.arrived).toEqual(['one', 'two', 'three'])
    expect(left(device).filter((key) => key.startsWith('q/'))).toHaveLength(3)
    kill(device, alone)
    const { queue } = await device.start()
    await settled(40)
    expect(queue.size).toBe(0)
    expect(left(device)).toEqual([])
    expect(device.arrived).toEqual(['one', 'two', 'three'])
    await queue.close()
    await device.world.close()
  })

  it('whose end nobody heard of leave nothing once they are deleted', async () => {
    const device = await interrupted(qos)
    const alone = await device.client()
    await settled(40)
    kill(device, alone)
    const content = (device.store as MapStore).content
    for (const key of [...content.keys()]) if (key.startsWith('q/')) content.delete(key)
    expect(left(device)).toHaveLength(3)
    const { queue } = await device.start()
    await settled(40)
    expect(left(device)).toEqual([])
    await queue.close()
    await device.world.close()
  })

  it('keep their promise where the process died before a deletion was written, and their identifier had another publish by then', async () => {
    const device = await interrupted(qos)
    const store = device.store as MapStore
    // At QoS 1 as it was sent, at QoS 2 as it was released.
    let before = qos === 1 ? store.copy().content : new Map<string, Uint8Array>()
    store.before = (operations) => {
      const isDeletion = operations.some(({ type, key }) => type === 'delete' && key.includes('/o/'))
      if (isDeletion && before.size === 0) before = store.copy().content
    }
    const { client, queue } = await device.start()
    await settled(40)
    expect(left(device)).toEqual([])
    // Identifiers have gone round.
    behind(client).session.sendWindow.avoid((1 + 32_767) % 65_535)
    device.onPacket = (packet) => packet === 'out publish 2' && kill(device, client)
    await queue.publish('out/1', 'four', { qos })
    await settled()
    device.onPacket = undefined
    // As if what was done with the first entry were not written, but the publish behind it were.
    const { content } = device.store as MapStore
    for (const [key, value] of before) if (/\/[eo]\/0+1$/.test(key)) content.set(key, value)
    content.delete('q/default/m')
    expect(left(device)).toHaveLength(4)
    const next = await device.start()
    await settled(40)
    expect(device.events('storecorrupt')).toEqual([])
    // What is tried again waits a second.
    await expect.poll(() => next.queue.size, { timeout: 5000 }).toBe(0)
    expect(left(device)).toEqual([])
    const times = (text: string): number => device.arrived.filter((each) => each === text).length
    expect([times('one'), times('four')]).toEqual(qos === 2 ? [1, 1] : [2, 1])
    await next.queue.close()
    await device.world.close()
  })
})

describe('a store, and sessionStore() of it,', () => {
  it.each(['the client', 'the queue', 'both'])('are one: %s has the other', async (who) => {
    const device = new Device()
    await device.peer()
    const store = device.store
    const client = await device.client({ store: who === 'the queue' ? store : sessionStore(store) })
    const queue = await openQueue(client, { store: who === 'the client' ? store : sessionStore(store), qos: 2, deadLetterStore: sessionStore(store) })
    const locked = { code: 'ERR_STORE_LOCKED' }
    for (const other of [store, sessionStore(store), sessionStore(sessionStore(store))]) {
      await expect(openQueue(client, { store: other })).rejects.toMatchObject(locked)
      await expect(device.client({ store: other })).rejects.toMatchObject(locked)
      await expect(device.client({ store: { store: other } })).rejects.toMatchObject(locked)
    }
    await (await queue.publish('out/1', 'one')).delivered
    expect(device.arrived).toEqual(['one'])
    await queue.close()
    await device.world.close()
  })
})
