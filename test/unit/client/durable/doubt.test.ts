/**
 * The session may be lost between two processes: one connects, the server begins a new session, and the process dies before it could write that down. The
 * next one finds a session that is not the one in which its publishes were sent. QoS 2 must not arrive twice then.
 */
import { describe, expect, it } from 'vitest'
import type { ClientOptions } from '../../../../src/client/api/index.js'
import type { BaseClient } from '../../../../src/client/client.js'
import { deferred } from '../../../../src/client/common/abort.js'
import { openQueue } from '../../../../src/queue/index.js'
import type { MapStore } from '../../queue/rig.js'
import { Device, kill, settled, url } from './rig.js'

/** A packet of the client, in the words of these tests. */
type Moment = 'out connect' | 'in connack'

/** A device that has one message at QoS 2 on its way, which has arrived; its process died before it knew. */
async function sent(at: 'in pubrec 1' | 'out publish 1' = 'in pubrec 1'): Promise<Device> {
  const device = new Device()
  await device.peer()
  const client = await device.client()
  device.onPacket = (packet) => packet === at && kill(device, client)
  await client.publish('out/1', 'one', { qos: 2 }).catch(() => undefined)
  device.onPacket = undefined
  await settled()
  device.packets.length = 0
  return device
}

async function loseSession({ world }: Device): Promise<void> {
  const other = await world.connect(url, { clientId: 'device', cleanStart: true, sessionExpiryInterval: 0 })
  await other.disconnect()
}

/** A process that connects, and what is done with it at a packet. */
async function connecting(device: Device, moment: Moment, act: (client: BaseClient) => void, options: ClientOptions = {}): Promise<BaseClient> {
  const client: BaseClient = new device.world.Client(url, { clientId: 'device', store: device.store, ...options })
  client.on('packet', ({ direction, packet }) => {
    if (`${direction} ${packet.type}` === moment) act(client)
  })
  client.connect().catch(() => undefined)
  await settled()
  return client
}

const lost = { receipt: undefined, error: { code: 'ERR_SESSION_LOST', outcome: 'unknown' } }

describe('a process that dies before it could write that the session is lost', () => {
  it.each(['in connack', 'out connect'] as const)(
    'at %s: QoS 2 is not sent again in the new session, its outcome is unknown [MQTT-4.4.0-1]',
    async (moment) => {
      const device = await sent()
      expect(device.arrived).toEqual(['one'])
      await loseSession(device)
      await connecting(device, moment, (client) => kill(device, client))
      if (moment === 'out connect') {
        // What had left arrives, and the server makes a session of it.
        const other = await device.world.connect(url, { clientId: 'device', cleanStart: false, sessionExpiryInterval: 3600 })
        await other.disconnect({ sessionExpiryInterval: 3600 })
      }
      await device.client()
      await settled()
      expect(device.events('connect').at(-1)).toMatchObject({ sessionPresent: true, recovered: { outbound: 1 } })
      expect(device.arrived).toEqual(['one'])
      expect(device.events('recovered')).toMatchObject([lost])
      expect(device.keys('o')).toEqual([])
      // The next process has nothing to doubt.
      const last = device.clients.at(-1) as BaseClient
      device.onPacket = (packet) => packet.startsWith('in pubrec') && kill(device, last)
      await last.publish('out/1', 'two', { qos: 2 }).catch(() => undefined)
      device.onPacket = undefined
      await device.client()
      await settled()
      expect(device.arrived).toEqual(['one', 'two'])
      expect(device.events('recovered')).toMatchObject([lost, { error: undefined }])
      await device.world.close()
    },
  )

  it('its identifier is cleared: the server may hold it for what is not sent again', async () => {
    const device = await sent()
    await connecting(device, 'in connack', (client) => kill(device, client))
    const client = await device.client()
    await settled()
    expect(device.packets).toEqual(['out pubrel 1', 'in pubcomp 1'])
    expect(device.events('recovered')).toMatchObject([lost])
    await client.publish('out/1', 'two', { qos: 2 })
    expect(device.arrived).toEqual(['one', 'two'])
    await device.world.close()
  })

  it('while that is not done, the next process doubts again', async () => {
    const device = await sent()
    await loseSession(device)
    await connecting(device, 'in connack', (client) => kill(device, client))
    device.onPacket = (packet, client) => packet.startsWith('in pubcomp') && kill(device, client)
    await device.client()
    await settled()
    device.onPacket = undefined
    await device.client()
    await settled()
    expect(device.arrived).toEqual(['one'])
    expect(device.packets).toEqual(['out pubrel 1', 'in pubcomp 1 0x92', 'out pubrel 1', 'in pubcomp 1 0x92'])
    expect(device.events('recovered').at(-1)).toMatchObject(lost)
    expect(device.keys('o')).toEqual([])
    await device.world.close()
  })

  it('nor is an entry of a queue: it is a dead letter', async () => {
    const device = new Device()
    await device.peer()
    const { client, queue } = await device.start()
    device.onPacket = (packet) => packet.startsWith('in pubrec') && kill(device, client)
    await queue.publish('out/1', 'one', { qos: 2 })
    await settled()
    await queue.close({ timeout: 0 })
    device.onPacket = undefined
    await loseSession(device)
    await connecting(device, 'in connack', (each) => kill(device, each))
    const next = await device.client()
    const letters: unknown[] = []
    const again = await openQueue(next, {
      store: device.store,
      onDeadLetter: ({ entry, error }) => void letters.push([entry.topic, error.code, error.outcome]),
    })
    await settled()
    expect([device.arrived, letters, again.size]).toEqual([['one'], [['out/1', 'ERR_SESSION_LOST', 'unknown']], 0])
    await again.close()
    await device.world.close()
  })

  it('QoS 2 that may arrive twice, as its caller said, is sent again', async () => {
    const device = new Device()
    await device.peer()
    const client = await device.client()
    device.onPacket = (packet) => packet === 'in pubrec 1' && kill(device, client)
    await client.publish('out/1', 'one', { qos: 2, onSessionLost: 'republish' }).catch(() => undefined)
    device.onPacket = undefined
    await loseSession(device)
    await connecting(device, 'in connack', (each) => kill(device, each))
    await device.client()
    await settled()
    expect(device.events('recovered')).toMatchObject([{ error: undefined, receipt: { reasonCode: 0 } }])
    await device.world.close()
  })
})

it('QoS 2 is not sent again either where the connection ended before its Session Present 0 counted [MQTT-4.4.0-1]', async () => {
  const device = new Device()
  const peer = await device.peer()
  const { client } = await device.start()
  await peer.publish('in/1', 'kept', { qos: 1 })
  await settled()
  // CONNACK waits until what came in before is forgotten.
  const store = device.store as MapStore
  const slow = deferred<void>()
  const batch = store.batch.bind(store)
  store.batch = async (operations) => {
    if (operations.some(({ type, key }) => type === 'delete' && key.includes('/i/'))) await slow.promise
    return batch(operations)
  }
  device.onPacket = (packet) => packet === 'in pubrec 2' && device.world.broker.restart({ keepSessions: false })
  const published = client.publish('out/1', 'one', { qos: 2 }).catch((error) => error)
  await settled()
  device.onPacket = undefined
  await device.world.pass(1500)
  expect(device.events('connect')).toHaveLength(1)
  const mend = device.world.cut('device')
  await settled()
  slow.resolve()
  await settled()
  mend()
  await device.world.pass(60_000)
  expect(device.events('connect').at(-1)).toMatchObject({ sessionPresent: true })
  expect(await published).toMatchObject({ code: 'ERR_SESSION_LOST', outcome: 'unknown' })
  expect(device.arrived).toEqual(['one'])
  await client.publish('out/1', 'two', { qos: 2 })
  expect(device.arrived).toEqual(['one', 'two'])
  await device.world.close()
})

it('a process that wrote that the session is lost leaves no doubt about the next one', async () => {
  const device = await sent()
  await loseSession(device)
  const client = await device.client()
  await settled()
  expect(device.events('recovered')).toMatchObject([lost])
  expect(device.events('sessionlost')).toMatchObject([{ cause: 'absent', rejected: [{ topic: 'out/1', qos: 2 }] }])
  device.onPacket = (packet) => packet.startsWith('out publish') && kill(device, client)
  await client.publish('out/1', 'two', { qos: 2 }).catch(() => undefined)
  device.onPacket = undefined
  await device.client()
  await settled()
  expect(device.events('recovered')).toMatchObject([lost, { error: undefined }])
  expect(device.arrived).toEqual(['one', 'two'])
  await device.world.close()
})

describe('a session that was kept goes on', () => {
  it('where the process died in a listener of the connection', async () => {
    const device = await sent('out publish 1')
    const client = new device.world.Client(url, { clientId: 'device', store: device.store })
    client.on('connect', () => kill(device, client))
    await client.connect().catch(() => undefined)
    await settled()
    await device.client()
    await settled()
    expect(device.arrived).toEqual(['one'])
    expect(device.events('recovered')).toMatchObject([{ error: undefined, receipt: { reasonCode: 0 } }])
    await device.world.close()
  })

  it.each(['destroy', 'disconnect'] as const)('where the client was ended by %s() before CONNACK', async (how) => {
    const device = await sent('out publish 1')
    await connecting(device, 'out connect', (client) => void client[how]())
    await settled()
    await device.client()
    await settled()
    expect(device.arrived).toEqual(['one'])
    expect(device.events('recovered')).toMatchObject([{ error: undefined }])
    await device.world.close()
  })

  it('where an attempt came to nothing before the process died', async () => {
    const device = await sent('out publish 1')
    let mend = (): void => undefined
    const cut = (): void => {
      mend = device.world.cut('device')
    }
    const client = await connecting(device, 'out connect', cut, { firstConnect: 'wait' })
    kill(device, client)
    mend()
    await device.client()
    await settled()
    expect(device.arrived).toEqual(['one'])
    expect(device.events('recovered')).toMatchObject([{ error: undefined }])
    await device.world.close()
  })

  it('also where the store takes nothing while it connects', async () => {
    const device = await sent('out publish 1')
    const store = device.store as MapStore
    store.before = () => {
      throw new Error('EIO')
    }
    await device.client()
    await device.world.pass(500)
    expect(device.arrived).toEqual(['one'])
    store.before = () => undefined
    await device.world.pass(3000)
    expect(device.events('recovered')).toMatchObject([{ error: undefined }])
    expect(device.keys('o')).toEqual([])
    await device.world.close()
  })
})

it.each([2, 1] as const)(
  'a connection writes to the store what it asks and what the answer was only while something at QoS 2 is on its way: QoS %i',
  async (qos) => {
    const device = new Device()
    await device.peer()
    const client = await device.client()
    await settled()
    const store = device.store as MapStore
    device.onPacket = (packet) => packet === 'out publish 1' && device.world.cut('device')()
    const published = client.publish('out/1', 'one', { qos })
    await settled()
    const before = store.batches
    device.onPacket = (packet) => packet === 'out publish 1 dup' && written.push(store.batches - before)
    const written: number[] = []
    await device.world.pass(2000)
    await published
    expect(written).toEqual([qos === 2 ? 2 : 0])
    const idle = store.batches
    await client.reconnect({ force: true })
    expect(store.batches - idle).toBe(0)
    await device.world.close()
  },
)
