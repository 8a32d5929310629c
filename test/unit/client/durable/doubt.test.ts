/** What counts over all processes of a device: a session lost between two of them, and connections that one publish ends. */
import { describe, expect, it } from 'vitest'
import type { BaseClient } from '../../../../src/client/client.js'
import { constant } from '../../../../src/client/options/backoff.js'
import type { ClientOptions, PublishOptions } from '../../../../src/client/options/index.js'
import { deferred } from '../../../../src/common/abort.js'
import type { MqttError } from '../../../../src/errors.js'
import { openQueue } from '../../../../src/queue/index.js'
import { MapStore } from '../../queue/rig.js'
import { Device, fail, interrupted, interruptedEntries, outcome, settled, url } from './rig.js'

/** A device that has one message at QoS 2 on its way, which has arrived or not; its process died before it knew. */
const sent = (at = 'in pubrec 1', options: PublishOptions = {}): Promise<Device> =>
  interrupted({ qos: 2, ...options }, { at })

/** A process that connects, and what is done with it at a packet. */
async function connecting(
  device: Device,
  moment = 'in connack',
  act = (client: BaseClient): unknown => device.kill(client),
  options: ClientOptions = {},
): Promise<BaseClient> {
  const client: BaseClient = device.made(options)
  client.on('packet', ({ direction, packet }) => {
    if (`${direction} ${packet.type}` === moment) act(client)
  })
  void outcome(client.connect())
  await settled()
  return client
}

/** The same with CONNECT. */
const atConnect = (device: Device, act: (client: BaseClient) => unknown, options?: ClientOptions) =>
  connecting(device, 'out connect', act, options)

/** The next process, and what it reports of the publishes that were left to it. */
async function recovered(device: Device): Promise<unknown[]> {
  await device.client()
  await settled()
  return device.events('recovered')
}

const lost = { receipt: undefined, error: { code: 'ERR_SESSION_LOST', outcome: 'unknown' } }
const arrived = { error: undefined, receipt: { reasonCode: 0 } }

describe('a process that dies before it could write that the session is lost', () => {
  it.each(['in connack', 'out connect'] as const)(
    'at %s: QoS 2 has no known outcome [MQTT-4.4.0-1]',
    async (moment) => {
      const device = await sent()
      expect(device.arrived).toEqual(['one'])
      await device.loseSession()
      await connecting(device, moment)
      if (moment === 'out connect') {
        // What had left arrives, and the server makes a session of it.
        const other = await device.world.connect(url, {
          clientId: 'device',
          cleanStart: false,
          sessionExpiryInterval: 3600,
        })
        await other.disconnect({ sessionExpiryInterval: 3600 })
      }
      expect(await recovered(device)).toMatchObject([lost])
      const goesOn = { sessionPresent: true, recovered: { outbound: 1 } }
      expect(device.events('connect').at(-1)).toMatchObject(goesOn)
      expect([device.arrived, device.keys('o')]).toEqual([['one'], []])
      // The next process has nothing to doubt.
      const last = device.clients.at(-1) as BaseClient
      await device.dying(last, 'in pubrec', () => last.publish('out/1', 'two', { qos: 2 }))
      expect(await recovered(device)).toMatchObject([lost, arrived])
      expect(device.arrived).toEqual(['one', 'two'])
    },
  )

  it('its identifier is cleared: the server may hold it for what is not sent again', async () => {
    const device = await sent()
    await connecting(device)
    expect(await recovered(device)).toMatchObject([lost])
    expect(device.packets).toEqual(['out pubrel 1', 'in pubcomp 1'])
    await device.clients.at(-1)?.publish('out/1', 'two', { qos: 2 })
    expect(device.arrived).toEqual(['one', 'two'])
  })

  it('while that is not done, the next process doubts again', async () => {
    const device = await sent()
    await device.loseSession()
    await connecting(device)
    device.onPacket = (packet, client) => packet.startsWith('in pubcomp') && device.kill(client)
    await recovered(device)
    device.onPacket = undefined
    expect((await recovered(device)).at(-1)).toMatchObject(lost)
    const clearing = ['out pubrel 1', 'in pubcomp 1 0x92']
    expect(device.packets).toEqual([...clearing, ...clearing])
    expect([device.arrived, device.keys('o')]).toEqual([['one'], []])
  })

  it('nor is an entry of a queue: it is a dead letter', async () => {
    const device = await interruptedEntries({ qos: 2 }, { at: 'in pubrec' })
    await device.loseSession()
    await connecting(device)
    const next = await device.client()
    const letters: unknown[] = []
    const again = await openQueue(next, {
      store: device.store,
      onDeadLetter: ({ entry, error }) =>
        void letters.push([entry.topic, error.code, error.outcome]),
    })
    await settled()
    expect(device.arrived).toEqual(['one'])
    expect(letters).toEqual([['out/1', 'ERR_SESSION_LOST', 'unknown']])
    expect(again.size).toBe(0)
  })

  it('QoS 2 that may arrive twice, as its caller said, is sent again', async () => {
    const device = await sent('in pubrec 1', { onSessionLost: 'republish' })
    await device.loseSession()
    await connecting(device)
    expect(await recovered(device)).toMatchObject([arrived])
  })
})

it('QoS 2 is not sent again either where the connection ended before its Session Present 0 counted [MQTT-4.4.0-1]', async () => {
  const device = await Device.opened()
  const { map, world } = device
  const { client } = await device.start()
  await (await device.peer('other')).publish('in/1', 'kept', { qos: 1 })
  await settled()
  // CONNACK waits until what came in before is forgotten.
  const slow = deferred<void>()
  const batch = map.batch.bind(map)
  map.batch = async (operations) => {
    if (operations.some(({ type, key }) => type === 'delete' && key.includes('/i/')))
      await slow.promise
    return batch(operations)
  }
  device.onPacket = (packet) =>
    packet === 'in pubrec 2' && world.broker.restart({ keepSessions: false })
  const published = outcome(client.publish('out/1', 'one', { qos: 2 }))
  await settled()
  device.onPacket = undefined
  await world.pass(1500)
  expect(device.events('connect')).toHaveLength(1)
  const mend = world.cut('device')
  await settled()
  slow.resolve()
  await settled()
  mend()
  await world.pass(60_000)
  expect(device.events('connect').at(-1)).toMatchObject({ sessionPresent: true })
  expect(await published).toMatchObject(lost.error)
  expect(device.arrived).toEqual(['one'])
  await client.publish('out/1', 'two', { qos: 2 })
  expect(device.arrived).toEqual(['one', 'two'])
})

it('a process that wrote that the session is lost leaves no doubt about the next one', async () => {
  const device = await sent()
  await device.loseSession()
  expect(await recovered(device)).toMatchObject([lost])
  const rejected = [{ topic: 'out/1', qos: 2 }]
  expect(device.events('sessionlost')).toMatchObject([{ cause: 'absent', rejected }])
  const last = device.clients.at(-1) as BaseClient
  await device.dying(last, 'out publish', () => last.publish('out/1', 'two', { qos: 2 }))
  expect(await recovered(device)).toMatchObject([lost, arrived])
  expect(device.arrived).toEqual(['one', 'two'])
})

it.each([
  [
    'the process died in a listener of the connection',
    async (device: Device) => {
      const client: BaseClient = device.made()
      client.on('connect', () => device.kill(client))
      await outcome(client.connect())
    },
  ],
  [
    'destroy() came before CONNACK',
    (device: Device) => atConnect(device, (client) => client.destroy()),
  ],
  [
    'disconnect() came before CONNACK',
    (device: Device) => atConnect(device, (client) => client.disconnect()),
  ],
  [
    'an attempt came to nothing before the process died',
    async (device: Device) => {
      let mend = (): void => undefined
      const cut = (): void => {
        mend = device.world.cut('device')
      }
      device.kill(await atConnect(device, cut, { firstConnect: 'wait' }))
      mend()
    },
  ],
] as const)('a session that was kept goes on where %s', async (_where, act) => {
  const device = await sent('out publish 1')
  await act(device)
  await settled()
  expect(await recovered(device)).toMatchObject([arrived])
  expect(device.arrived).toEqual(['one'])
})

it('a session that was kept goes on also where the store takes nothing while it connects', async () => {
  const device = await sent('out publish 1')
  device.map.before = fail
  await device.client()
  await device.world.pass(500)
  expect(device.arrived).toEqual(['one'])
  device.map.before = () => undefined
  await device.world.pass(3000)
  expect(device.events('recovered')).toMatchObject([arrived])
  expect(device.keys('o')).toEqual([])
})

it.each([2, 1] as const)(
  'a connection is written to the store only while QoS 2 is on its way: QoS %i',
  async (qos) => {
    const device = await Device.opened()
    const client = await device.client()
    await settled()
    const { map, world } = device
    device.onPacket = (packet) => packet === 'out publish 1' && world.cut('device')()
    const published = client.publish('out/1', 'one', { qos })
    await settled()
    const before = map.batches
    const written: number[] = []
    device.onPacket = (packet) =>
      packet === 'out publish 1 dup' && written.push(map.batches - before)
    await world.pass(2000)
    await published
    expect(written).toEqual([qos === 2 ? 2 : 0])
    const idle = map.batches
    await client.reconnect({ force: true })
    expect(map.batches - idle).toBe(0)
  },
)

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
      await device.pass(1)
      if (found.length === 0) device.kill(client)
      await settled()
    }
    expect(found).toMatchObject([{ code: 'ERR_POISONED' }])
    expect(sent).toBeLessThanOrEqual(9)
  })
})

it('a count that waits for the store is not written any more once its publish has ended', async () => {
  const { device, client, queue } = await Device.started(options)
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
    await device.pass(20)
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
