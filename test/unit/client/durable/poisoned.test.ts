/** A publish at which the server ends each connection, and a device that restarts again and again: connections are counted over all its processes. */
import { describe, expect, it } from 'vitest'
import { deferred } from '../../../../src/client/common/abort.js'
import { constant } from '../../../../src/client/parsing/backoff.js'
import type { MqttError } from '../../../../src/errors.js'
import { openQueue } from '../../../../src/queue/index.js'
import { MapStore } from '../../queue/rig.js'
import { Device, kill, settled } from './rig.js'

it.each([1, 2, 3])('a process that dies after %i connections', async (each) => {
  const device = new Device()
  await device.peer()
  const options = { reconnect: { backoff: constant(10) }, keepAlive: 0 as never }
  let [sent, processes] = [0, 0]
  const ends = new Map<unknown, number>()
  device.onPacket = (packet, client) => {
    if (!packet.startsWith('out publish 1')) return
    sent += 1
    ends.set(client, (ends.get(client) ?? 0) + 1)
    setImmediate(() => device.world.cut('device')())
  }
  let told: unknown[] = []
  const tell = (error: MqttError | undefined): void => {
    if (error?.code !== 'ERR_CLOSED') told = [error]
  }
  while (processes < 12 && told.length === 0) {
    processes += 1
    const client = await device.client({ ...options, on: { recovered: ({ error }) => tell(error) } })
    // Something is heard before it.
    if (processes === 1) {
      await client.publish('out/1', 'first', { qos: 0 })
      client.publish('out/1', 'poison', { qos: 1 }).catch(tell)
    }
    for (let round = 0; round < 200 && (ends.get(client) ?? 0) < each && told.length === 0; round++) {
      await device.world.pass(20)
      await settled(3)
    }
    await device.world.pass(1)
    await settled()
    if (told.length === 0) kill(device, client)
    await settled()
  }
  expect(told).toMatchObject([{ code: 'ERR_POISONED' }])
  expect(sent).toBeLessThanOrEqual(9)
  await device.world.close()
})

it('a count that waits for the store is not written any more once its publish has ended', async () => {
  const device = new Device()
  await device.peer()
  const { client, queue } = await device.start({ reconnect: { backoff: constant(10) } })
  const store = device.store as MapStore
  const { batch } = MapStore.prototype
  const gate = deferred<void>()
  let isHeld = false
  // A store that is slow with one record: what the session asks for behind it waits, and what the queue asks for does not.
  store.batch = async (operations) => {
    if (isHeld && operations.some(({ type, key }) => type === 'put' && key.includes('/o/'))) await gate.promise
    await batch.call(store, operations)
  }
  device.onPacket = (packet) => {
    if (!packet.startsWith('out publish') || isHeld) return
    isHeld = true
    client.publish('out/2', 'two', { qos: 1 }).catch(() => undefined)
    setTimeout(() => device.world.cut('device')())
  }
  await queue.publish('out/1', 'one', { qos: 1 })
  await expect
    .poll(async () => {
      // CONNECT waits a second for that record.
      await device.world.pass(200)
      return queue.size
    })
    .toBe(0)
  gate.resolve()
  await settled(40)
  await device.world.pass(1000)
  expect([device.keys('o'), device.arrived.includes('one')]).toEqual([[], true])
  await device.world.close()
})

it.each([1, 2, 3])('a queue over a client without a store: a process that dies after %i connections', async (each) => {
  const device = new Device()
  await device.peer()
  let [sent, connections, processes] = [0, 0, 0]
  device.onPacket = (packet) => {
    if (!packet.startsWith('out publish 1')) return
    sent += 1
    connections += 1
    setImmediate(() => device.world.cut('device')())
  }
  const letters: unknown[] = []
  while (processes < 12 && letters.length === 0) {
    processes += 1
    connections = 0
    const client = await device.client({ store: undefined, reconnect: { backoff: constant(10) } })
    const queue = await openQueue(client, { store: device.store, deadLetterStore: device.store })
    queue.on('deadletter', ({ error }) => letters.push(error))
    if (processes === 1) await queue.publish('out/1', 'poison', { qos: 1 })
    for (let round = 0; round < 200 && connections < each && letters.length === 0; round++) {
      await device.world.pass(20)
      await settled(3)
    }
    if (letters.length === 0) await device.world.pass(1)
    await settled()
    if (letters.length > 0) break
    kill(device, client)
    await settled()
  }
  expect(letters).toMatchObject([{ code: 'ERR_POISONED' }])
  expect(sent).toBeLessThanOrEqual(9)
  await device.world.close()
})

it('a queue that was closed counts no more: its counts would replace those of the queue that is open now', async () => {
  const device = new Device()
  await device.peer()
  const client = await device.client({ store: undefined, reconnect: { backoff: constant(10) } })
  const store = device.store as MapStore
  const queue = await openQueue(client, { store })
  let before = 0
  device.onPacket = (packet) => {
    if (!packet.startsWith('out publish 1')) return
    if (before === 0) void queue.close({ timeout: 0 }).then(() => (before = store.batches))
    setImmediate(() => device.world.cut('device')())
  }
  await queue.publish('out/1', 'poison')
  for (let round = 0; round < 5; round++) {
    await device.world.pass(20)
    await settled()
  }
  expect([before > 0, store.batches]).toEqual([true, before])
  kill(device, client)
  await device.world.close()
})

describe.each(['the session', 'a queue over a client without a store'])('the count of %s is written before CONNECT', (keeper) => {
  /** A suspect whose connection has just ended; `write` is what the store does with its count, `act` is called after `at` ms. Gives milliseconds until the next CONNECT. */
  async function reconnecting(write: () => Promise<void>, at = 0, act = (): void => undefined): Promise<number> {
    const device = new Device()
    await device.peer()
    const options = { reconnect: { backoff: constant(10) } }
    const client = await device.client(keeper === 'the session' ? options : { ...options, store: undefined })
    const store = device.store as MapStore
    let [isLost, connects] = [false, 0]
    store.batch = async (operations) => {
      if (isLost) await write()
      await MapStore.prototype.batch.call(store, operations)
    }
    client.on('packet', ({ packet }) => {
      if (packet.type === 'connect') connects += 1
    })
    device.onPacket = (packet) => {
      if (!packet.startsWith('out publish') || isLost) return
      setImmediate(() => {
        isLost = true
        device.world.cut('device')()
      })
    }
    if (keeper === 'the session') client.publish('out/1', 'one', { qos: 1 }).catch(() => undefined)
    else await (await openQueue(client, { store })).publish('out/1', 'one')
    while (!isLost) await settled(1)
    let waited = 0
    for (; connects === 0 && waited < 3000; waited += 10) {
      if (waited === at) act()
      await device.world.pass(10)
      await settled(3)
    }
    kill(device, client)
    await device.world.close()
    return waited
  }

  it('of a store that is slow', async () => {
    const gate = deferred<void>()
    const waited = await reconnecting(() => gate.promise, 500, gate.resolve)
    expect([waited >= 500, waited < 600]).toEqual([true, true])
  })

  it('of a store that hangs: for a second at most', async () => {
    const waited = await reconnecting(() => new Promise(() => undefined))
    expect([waited >= 900, waited <= 1100]).toEqual([true, true])
  })

  it('of a store that fails: it is not waited for', async () => {
    const waited = await reconnecting(() => Promise.reject(new Error('disk')))
    expect(waited).toBeLessThan(100)
  })
})
