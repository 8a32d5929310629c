/** Entries of a queue whose publishes an earlier process has left in flight: they end with the next process, whether its queue has read them or not. */
import { describe, expect, it } from 'vitest'
import { openQueue } from '../../../src/queue/index.js'
import type { Store } from '../../../src/store/index.js'
import type { MapStore } from '../../queue/rig.js'
import { Device, kill, settled } from './rig.js'

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
})
