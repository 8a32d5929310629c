/** Entries of a queue whose publishes an earlier process has left in flight: they end with the next process, whether its queue has read them or not. */
import { describe, expect, it } from 'vitest'
import { access } from '../../../../src/client/access.js'
import type { BaseClient } from '../../../../src/client/client.js'
import type { Session } from '../../../../src/client/session/session.js'
import { openQueue } from '../../../../src/queue/index.js'
import { sessionStore } from '../../../../src/store/index.js'
import { Device, interruptedEntries, settled } from './rig.js'

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
