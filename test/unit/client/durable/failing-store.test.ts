/**
 * A store that fails and has written all the same, or answers late: nothing half done stays, and nobody is told what is not so.
 */
import { describe, expect, it, onTestFinished } from 'vitest'
import { openQueue } from '../../../../src/queue/index.js'
import type { StoreOperation } from '../../../../src/store/index.js'
import { takeOverTime } from '../../../world/durable/platform-time.js'
import { Random } from '../../../world/random.js'
import { MapStore } from '../../queue/rig.js'
import { Device, kill, settled, url } from './rig.js'

/** Does what is asked for, and then says what `after` says. */
class LateStore extends MapStore {
  after: (operations: readonly StoreOperation[]) => unknown = () => undefined

  override async batch(operations: readonly StoreOperation[]): Promise<void> {
    await super.batch(operations)
    await this.after(operations)
  }
}

const quiet = (promise: Promise<unknown>): Promise<unknown> => promise.catch((error) => error)
const puts = (operations: readonly StoreOperation[], part: string): boolean =>
  operations.some(({ type, key }) => type === 'put' && key.includes(part))
const fail = (): never => {
  throw new Error('EIO')
}

async function failing(): Promise<{ device: Device; store: LateStore; start: Awaited<ReturnType<Device['start']>> }> {
  const device = new Device()
  const store = new LateStore()
  device.store = store
  await device.peer()
  const start = await device.start()
  await settled()
  return { device, store, start }
}

describe('a publish that could not be stored, and is there all the same', () => {
  it('is deleted before the caller hears that it was not sent', async () => {
    const { device, store, start } = await failing()
    store.after = (operations) => puts(operations, '/o/') && fail()
    expect(await quiet(start.client.publish('out/1', 'one', { qos: 2 }))).toMatchObject({ code: 'ERR_STORE', outcome: 'not-sent' })
    expect(device.keys('o')).toEqual([])
    await device.world.close()
  })

  it('may arrive as long as it cannot be deleted: the caller hears that, and it goes as soon as the store works', async () => {
    const { device, store, start } = await failing()
    store.after = fail
    store.before = (operations) => !puts(operations, '/o/') && fail()
    expect(await quiet(start.client.publish('out/1', 'one', { qos: 2 }))).toMatchObject({ code: 'ERR_STORE', outcome: 'unknown' })
    expect(device.keys('o')).toHaveLength(1)
    store.after = () => undefined
    store.before = () => undefined
    await device.world.pass(1000)
    await settled()
    expect(device.keys('o')).toEqual([])
    expect(device.arrived).toEqual([])
    await device.world.close()
  })

  it('costs the same however long the store fails: what is to be deleted does not grow', async () => {
    const { device, store, start } = await failing()
    store.before = fail
    for (let at = 0; at < 200; at++) await Promise.all(['a', 'b', 'c'].map((text) => quiet(start.client.publish('out/1', text, { qos: 1 }))))
    let most = 0
    store.before = (operations) => {
      most = Math.max(most, operations.length)
    }
    await start.client.publish('out/1', 'one', { qos: 1 })
    await device.world.pass(1000)
    await settled()
    expect(most).toBeLessThan(8)
    expect([device.arrived, device.keys('o')]).toEqual([['one'], []])
    await device.world.close()
  })
})

describe('a client that takes the place of another one', () => {
  it('waits for what that one is writing', async () => {
    const { device, store, start } = await failing()
    let write = (): void => undefined
    const slow = new Promise<void>((resolve) => {
      write = resolve
    })
    const { batch } = MapStore.prototype
    store.batch = async (operations) => {
      if (puts(operations, '/o/')) await slow
      return batch.call(store, operations)
    }
    void quiet(start.client.publish('out/1', 'one', { qos: 1 }))
    await settled()
    await start.queue.close({ timeout: 0 })
    start.client.destroy()
    const next = device.client()
    await settled()
    write()
    await next
    await settled()
    expect(device.events('connect').at(-1)).toMatchObject({ recovered: { outbound: 1, inbound: 0 } })
    expect([device.arrived, device.keys('o')]).toEqual([['one'], []])
    await device.world.close()
  })
})

describe('the identifier of a publish', () => {
  it('follows those of an earlier process: the server may still answer for them', async () => {
    const device = new Device()
    await device.peer()
    const client = await device.client()
    device.onPacket = (packet) => packet === 'out publish 3' && kill(device, client)
    await Promise.all(['one', 'two', 'three'].map((text) => quiet(client.publish('out/1', text, { qos: 1 }))))
    device.onPacket = undefined
    device.packets.length = 0
    const next = await device.client()
    await settled()
    await next.publish('out/1', 'four', { qos: 1 })
    expect(device.packets.filter((packet) => packet.startsWith('out publish'))).toEqual([
      'out publish 1 dup',
      'out publish 2 dup',
      'out publish 3 dup',
      'out publish 4',
    ])
    await device.world.close()
  })
})

describe('an entry whose publish failed before its queue was open', () => {
  it('leaves no record, however late that one is written', async () => {
    const { device, store, start } = await failing()
    device.onPacket = (packet) => packet.startsWith('out publish') && kill(device, start.client)
    await start.queue.publish('out/1', 'one', { qos: 2 })
    await settled()
    device.onPacket = undefined
    const left = new LateStore((device.store as MapStore).content)
    device.store = left
    device.world.broker.restart({ keepSessions: false })
    left.before = (operations) => puts(operations, '/o/') && fail()
    const client = await device.client()
    await settled()
    const queue = await openQueue(client, { store: left })
    await settled()
    left.before = () => undefined
    await device.world.pass(2000)
    await settled()
    expect([device.keys('o'), queue.size]).toEqual([[], 0])
    expect(store).not.toBe(left)
    await queue.close({ timeout: 0 })
    await device.world.close()
  })
})

describe('acknowledgements', () => {
  it('PUBREC of what an earlier process had received leaves behind those that came before it [MQTT-4.6.0-3]', async () => {
    const device = new Device()
    const peer = await device.peer()
    let first: (() => void) | undefined
    const client = await device.client()
    await client.listen('in/#', (message) => (message.text() === 'one' ? new Promise(() => undefined) : undefined), { qos: 2, concurrency: 2 })
    await Promise.all(['one', 'two'].map((text) => peer.publish(`in/${text}`, text, { qos: 2 })))
    await settled()
    kill(device, client)
    device.packets.length = 0
    const next = await device.client()
    await next.listen('in/#', () => new Promise<void>((resolve) => (first = resolve)), { qos: 2 })
    await settled()
    expect(device.packets.filter((packet) => packet.startsWith('out pubrec'))).toEqual([])
    first?.()
    await settled()
    expect(device.packets.filter((packet) => packet.startsWith('out pubrec'))).toEqual(['out pubrec 1', 'out pubrec 2'])
    await device.world.close()
  })

  it('PUBCOMP waits for its record on the next connection too', async () => {
    const { device, store } = await failing()
    const peer = await device.world.connect(url, { clientId: 'peer 2' })
    store.before = (operations) => device.packets.includes('in pubrel 1') && puts(operations, '/i/') && fail()
    await peer.publish('in/1', 'one', { qos: 2 })
    await settled()
    device.world.cut('device')()
    await device.world.pass(2500)
    await settled()
    const comps = (): number => device.packets.filter((packet) => packet.startsWith('out pubcomp')).length
    expect([device.packets.filter((packet) => packet === 'in pubrel 1').length, comps()]).toEqual([2, 0])
    store.before = () => undefined
    await device.world.pass(3000)
    await settled()
    expect(comps()).toBe(1)
    await device.world.close()
  })
})

describe('a store of which three writes in ten fail', () => {
  // Half of them have written all the same.
  it.each([1, 2, 3, 4, 5, 6, 7, 8])('what a queue has taken arrives, exactly once at QoS 2, and nothing is left (seed %i)', async (seed) => {
    const { device, store, start } = await failing()
    const { world } = device
    onTestFinished(takeOverTime({ now: world.now, setTimer: (callback, delay) => world.clock.setTimer(callback, delay) }))
    const random = new Random(seed)
    let failures = 0
    const perhaps = (): void => {
      if (!random.chance(0.16)) return
      failures += 1
      fail()
    }
    store.before = perhaps
    store.after = perhaps
    const taken: string[] = []
    const notSent: string[] = []
    for (let n = 0; n < 100; n++) {
      const qos = n % 2 === 0 ? 2 : 1
      const queued = start.queue.publish('out/1', `${qos} ${n}`, { qos })
      void queued.then(
        ({ delivered }) => {
          taken.push(`${qos} ${n}`)
          delivered.catch(() => undefined)
        },
        ({ code, outcome }) => notSent.push(...(code === 'ERR_STORE' && outcome === 'unknown' ? [] : [`${qos} ${n}`])),
      )
      if (n % 25 === 24) world.broker.disconnect('device', 0x8b)
      if (n % 2 === 1) await world.pass(20)
    }
    await world.until(() => start.queue.size === 0, 600_000)
    await world.until(() => device.keys('o').length === 0, 600_000)
    expect(failures / store.batches).toBeGreaterThan(0.2)
    expect(taken.length).toBeGreaterThan(50)
    expect(taken.filter((text) => !device.arrived.includes(text))).toEqual([])
    expect(notSent.filter((text) => device.arrived.includes(text))).toEqual([])
    const exactlyOnce = device.arrived.filter((text) => text.startsWith('2'))
    expect(exactlyOnce.length).toBe(new Set(exactlyOnce).size)
    expect([start.queue.size, start.queue.bytes, [...store.content.keys()].filter((key) => key.includes('/e/'))]).toEqual([0, 0, []])
    // So does the next process.
    store.before = () => undefined
    store.after = () => undefined
    await world.until(start.queue.close())
    await world.until(start.client.disconnect())
    const arrived = device.arrived.length
    const next = await world.until(device.start())
    await world.pass(10_000)
    expect([next.queue.size, next.queue.bytes, device.arrived.length]).toEqual([0, 0, arrived])
    await world.close()
  })
})
