/** A store that fails and has written all the same, answers late, or was closed: nothing half done stays, and what is reported is so. */
import { describe, expect, it } from 'vitest'
import { deferred } from '../../../../src/common/abort.js'
import { memoryStore, type StoreOperation } from '../../../../src/store/index.js'
import { MapStore } from '../../queue/rig.js'
import { Device, fail, interrupted, interruptedEntries, outcome, puts, settled } from './rig.js'

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
    await device.world.pass(1000)
    await settled()
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
    await device.world.pass(1000)
    await settled()
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
  await device.world.pass(2000)
  await settled()
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
    await device.world.pass(2500)
    await settled()
    expect([device.got('in pubrel 1').length, device.got('out pubcomp')]).toEqual([2, []])
    store.mend()
    await device.world.pass(3000)
    await settled()
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
