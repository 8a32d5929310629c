/** A publish at which the server ends each connection, and a device that restarts again and again: connections are counted over all its processes. */
import { describe, expect, it } from 'vitest'
import { constant } from '../../../../src/client/options/backoff.js'
import { deferred } from '../../../../src/common/abort.js'
import type { MqttError } from '../../../../src/errors.js'
import { MapStore } from '../../queue/rig.js'
import { Device, outcome, settled } from './rig.js'

const options = { reconnect: { backoff: constant(10) } }
const inSession = 'the session'
const keepers = [inSession, 'a queue over a client without a store']

describe.each(keepers)('connections counted by %s', (keeper) => {
  it.each([1, 2, 3])('where a process dies after %i of them', async (each) => {
    const device = await Device.opened()
    let [sent, connections] = [0, 0]
    device.onPacket = (packet) => {
      if (!packet.startsWith('out publish 1')) return
      sent += 1
      connections += 1
      setImmediate(() => device.world.cut('device')())
    }
    const found: unknown[] = []
    const note = (error: MqttError | undefined): void => {
      if (error?.code !== 'ERR_CLOSED') found.push(error)
    }
    for (let processes = 0; processes < 12 && found.length === 0; processes++) {
      connections = 0
      const on = { recovered: ({ error }: { error: MqttError | undefined }) => note(error) }
      const client = await device.client(
        keeper === inSession
          ? { ...options, keepAlive: false, on }
          : { ...options, store: undefined },
      )
      if (keeper !== inSession) {
        const queue = await device.queue(client, { deadLetterStore: device.store })
        queue.on('deadletter', ({ error }) => note(error))
        if (processes === 0) await queue.publish('out/1', 'poison', { qos: 1 })
      } else if (processes === 0) {
        // Something is heard before it.
        await client.publish('out/1', 'first', { qos: 0 })
        client.publish('out/1', 'poison', { qos: 1 }).catch(note)
      }
      for (let round = 0; round < 200 && connections < each && found.length === 0; round++) {
        await device.world.pass(20)
        await settled(3)
      }
      await device.world.pass(1)
      await settled()
      if (found.length === 0) device.kill(client)
      await settled()
    }
    expect(found).toMatchObject([{ code: 'ERR_POISONED' }])
    expect(sent).toBeLessThanOrEqual(9)
  })
})

it('a count that waits for the store is not written any more once its publish has ended', async () => {
  const device = await Device.opened()
  const { client, queue } = await device.start(options)
  const gate = deferred<void>()
  let isHeld = false
  // A store that is slow with one record: what the session asks for behind it waits, and what the queue asks for does not.
  const batch = device.map.batch.bind(device.map)
  device.map.batch = async (operations) => {
    if (isHeld && operations.some(({ type, key }) => type === 'put' && key.includes('/o/')))
      await gate.promise
    await batch(operations)
  }
  device.onPacket = (packet) => {
    if (!packet.startsWith('out publish') || isHeld) return
    isHeld = true
    void outcome(client.publish('out/2', 'two', { qos: 1 }))
    setTimeout(() => device.world.cut('device')())
  }
  await queue.publish('out/1', 'one', { qos: 1 })
  const size = async (): Promise<number> => {
    // CONNECT waits a second for that record.
    await device.world.pass(200)
    return queue.size
  }
  await expect.poll(size).toBe(0)
  gate.resolve()
  await settled(40)
  await device.world.pass(1000)
  expect([device.keys('o'), device.arrived.includes('one')]).toEqual([[], true])
})

it('a queue that was closed counts no more: its counts would replace those of the queue that is open now', async () => {
  const device = await Device.opened()
  const client = await device.client({ ...options, store: undefined })
  const { map } = device
  const queue = await device.queue(client)
  let before = 0
  device.onPacket = (packet) => {
    if (!packet.startsWith('out publish 1')) return
    if (before === 0) void queue.close({ timeout: 0 }).then(() => (before = map.batches))
    setImmediate(() => device.world.cut('device')())
  }
  await queue.publish('out/1', 'poison')
  for (let round = 0; round < 5; round++) {
    await device.world.pass(20)
    await settled()
  }
  expect([before > 0, map.batches]).toEqual([true, before])
  device.kill(client)
})

describe.each(keepers)('the count of %s is written before CONNECT', (keeper) => {
  it.each([
    ['is slow', (opened: Promise<void>) => opened, 500, 600],
    ['hangs: for a second at most', () => new Promise<void>(() => undefined), 900, 1100],
    ['fails: it is not waited for', () => Promise.reject(new Error('disk')), 0, 100],
  ])('of a store that %s', async (_how, write, least, most) => {
    const device = await Device.opened()
    const store = keeper === inSession ? {} : { store: undefined }
    const client = await device.client({ ...options, ...store })
    const { map } = device
    const gate = deferred<void>()
    let [isLost, connects] = [false, 0]
    map.batch = async (operations) => {
      if (isLost) await write(gate.promise)
      await MapStore.prototype.batch.call(map, operations)
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
    if (keeper === inSession) void outcome(client.publish('out/1', 'one', { qos: 1 }))
    else await (await device.queue(client)).publish('out/1', 'one')
    while (!isLost) await settled(1)
    let waited = 0
    for (; connects === 0 && waited < 3000; waited += 10) {
      if (waited === 500) gate.resolve()
      await device.world.pass(10)
      await settled(3)
    }
    expect([waited >= least, waited <= most]).toEqual([true, true])
    device.kill(client)
  })
})
