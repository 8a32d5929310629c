/** A session in a store: what a process that died has left goes on with the next one. */
import { describe, expect, it } from 'vitest'
import type { ClientOptions } from '../../../../src/client/api/index.js'
import type { BaseClient } from '../../../../src/client/client.js'
import { decodeInbound, encodeInbound, type InboundRecord } from '../../../../src/client/durable/records.js'
import { MqttError } from '../../../../src/errors.js'
import { groupOf } from '../../../../src/group/broker-group.js'
import { poolOf } from '../../../../src/pool/publisher-pool.js'
import { crc32c } from '../../../../src/store/base/checksum.js'
import { memoryStore, type StoreOperation, sealRecord } from '../../../../src/store/index.js'
import { MapStore } from '../../queue/rig.js'
import { agreeable, connected } from '../harness.js'
import { publish } from '../incoming.js'
import { Device, kill, settled, url } from './rig.js'

const quiet = (promise: Promise<unknown>): Promise<unknown> => promise.catch((error) => error)

/** A device whose process died when it had sent its publishes and nothing was acknowledged. */
async function interrupted(qos: 1 | 2, ...texts: string[]): Promise<Device> {
  const device = new Device()
  await device.peer()
  await interrupt(device, {}, qos, ...texts)
  return device
}

async function interrupt(device: Device, options: ClientOptions, qos: 1 | 2, ...texts: string[]): Promise<void> {
  // Nothing else takes an identifier.
  const client = await device.client(options)
  const last = `out publish ${texts.length}`
  device.onPacket = (packet) => packet === last && kill(device, client)
  await Promise.all(texts.map((text) => quiet(client.publish('out/1', text, { qos }))))
  device.onPacket = undefined
  device.packets.length = 0
}

describe('publishes', () => {
  it('are stored before they are sent, and forgotten after their acknowledgement', async () => {
    const device = new Device()
    await device.peer()
    const { client } = await device.start()
    const sent: string[][] = []
    device.onPacket = (packet) => packet.startsWith('out publish') && sent.push(device.keys('o'))
    await client.publish('out/1', 'one', { qos: 1 })
    expect(sent).toEqual([['c/device/o/0000000000000001']])
    await settled()
    expect(device.keys('o')).toEqual([])
    expect(device.arrived).toEqual(['one'])
    await device.world.close()
  })

  it('of one turn are one write, and so are their acknowledgements', async () => {
    const device = new Device()
    await device.peer()
    const { client } = await device.start()
    await settled()
    const store = device.store as MapStore
    const before = store.batches
    await Promise.all(Array.from({ length: 50 }, (_, at) => client.publish('out/1', String(at), { qos: 1 })))
    await settled()
    expect(store.batches - before).toBe(2)
    expect(device.arrived).toEqual(Array.from({ length: 50 }, (_, at) => String(at)))
    await device.world.close()
  })

  it.each([1, 2] as const)('at QoS %i go on with the next process, as the same packets and before anything new [MQTT-4.4.0-1]', async (qos) => {
    const device = await interrupted(qos, 'one', 'two')
    expect(device.keys('o')).toHaveLength(2)
    const client = await device.client()
    await client.publish('out/1', 'new', { qos })
    const sent = device.packets.filter((packet) => packet.startsWith('out publish'))
    expect(sent).toEqual(['out publish 1 dup', 'out publish 2 dup', 'out publish 3'])
    expect(device.arrived).toEqual(['one', 'two', 'new'])
    expect(device.events('connect').at(-1)).toMatchObject({ recovered: { outbound: 2, inbound: 0 }, sessionPresent: true })
    const receipt = { reasonCode: 0 }
    expect(device.events('recovered')).toMatchObject([
      { topic: 'out/1', qos, packetId: 1, receipt, error: undefined },
      { topic: 'out/1', qos, packetId: 2, receipt, error: undefined },
    ])
    await settled()
    expect(device.keys('o')).toEqual([])
    await device.world.close()
  })

  it('that have their PUBREC go on with PUBREL, and are not published again [MQTT-4.3.3-6]', async () => {
    const device = new Device()
    await device.peer()
    const client = await device.client()
    device.onPacket = (packet) => packet === 'out pubrel 1' && kill(device, client)
    await quiet(client.publish('out/1', 'one', { qos: 2 }))
    device.onPacket = undefined
    device.packets.length = 0
    await device.client()
    await settled()
    expect(device.packets).toEqual(['out pubrel 1', 'in pubcomp 1'])
    expect(device.arrived).toEqual(['one'])
    expect(device.events('recovered')).toMatchObject([{ qos: 2, receipt: { packetId: 1 }, error: undefined }])
    await device.world.close()
  })

  it.each([
    [5, 4],
    [4, 5],
  ] as const)('of a process with version %i go on under version %i, in the form of that one', async (before, after) => {
    for (const qos of [1, 2] as const) {
      const device = new Device()
      await device.peer()
      await interrupt(device, { protocolVersion: before, cleanStart: false }, qos, 'one', 'two')
      const client = await device.client({ protocolVersion: after, cleanStart: false })
      await client.publish('out/1', 'new', { qos })
      const sent = device.packets.filter((packet) => packet.startsWith('out publish'))
      expect(sent).toEqual(['out publish 1 dup', 'out publish 2 dup', 'out publish 3'])
      expect(device.arrived).toEqual(['one', 'two', 'new'])
      expect(device.events('recovered')).toMatchObject([{ error: undefined }, { error: undefined }])
      await settled()
      expect(device.keys('o')).toEqual([])
      await device.world.close()
    }
  })

  it('with properties, which 3.1.1 does not have, end with an error of unknown outcome under that version', async () => {
    const device = new Device()
    await device.peer()
    const client = await device.client()
    device.onPacket = (packet) => packet === 'out publish 1' && kill(device, client)
    await quiet(client.publish('out/1', 'one', { qos: 1, properties: { contentType: 'a/b' } }))
    device.onPacket = undefined
    await device.client({ protocolVersion: 4 })
    await settled()
    expect(device.events('recovered')).toMatchObject([{ error: { code: 'ERR_UNSUPPORTED_OPTION', outcome: 'unknown' } }])
    expect([device.keys('o'), device.arrived]).toEqual([[], []])
    await device.world.close()
  })

  it('of a session that the server has lost: QoS 1 is published anew, QoS 2 is told as of unknown outcome', async () => {
    for (const qos of [1, 2] as const) {
      const device = await interrupted(qos, 'one')
      const other = await device.world.connect(url, { clientId: 'device', cleanStart: true, sessionExpiryInterval: 0 })
      await other.disconnect()
      await device.client()
      await settled()
      expect(device.events('connect').at(-1)).toMatchObject({ sessionPresent: false, recovered: { outbound: 1, inbound: 0 } })
      const told = device.events('recovered')
      if (qos === 1) expect(told).toMatchObject([{ receipt: { reasonCode: 0 }, error: undefined }])
      else expect(told).toMatchObject([{ receipt: undefined, error: { code: 'ERR_SESSION_LOST', outcome: 'unknown' } }])
      expect(device.keys('o')).toEqual([])
      await device.world.close()
    }
  })

  it('keep what they say: properties, retain, and what of them is for a lost session', async () => {
    const device = new Device()
    const peer = await device.peer()
    const messages: unknown[] = []
    await peer.listen('kept/#', ({ topic, payload, retain, properties }) => void messages.push({ topic, payload, retain, properties }), {
      retainAsPublished: true,
    })
    const client = await device.client()
    device.onPacket = (packet) => packet.startsWith('out publish') && kill(device, client)
    const userProperties = [['a', 'ü']] as [string, string][]
    const properties = { contentType: 'a/b', correlationData: Uint8Array.of(1, 2), userProperties, messageExpiryInterval: 60 }
    const payload = Uint8Array.from({ length: 300 }, (_, at) => at)
    await quiet(client.publish('kept/ü', payload, { qos: 1, retain: true, properties }))
    device.onPacket = undefined
    await device.client()
    await settled()
    expect(messages).toMatchObject([{ topic: 'kept/ü', payload, retain: true, properties }])
    await device.world.close()
  })

  it.each([1, 20_000])(
    'after %i ms without a connection before they were sent: in a new session they live for what is left [MQTT-3.3.2-6]',
    async (wait) => {
      const device = new Device()
      const { world } = device
      const intervals: unknown[] = []
      const on: ClientOptions['on'] = {
        packet({ direction, packet }) {
          if (direction === 'out' && packet.type === 'publish') intervals.push(packet.properties.messageExpiryInterval)
        },
      }
      const client = await device.client({ on })
      const mend = world.cut()
      await world.pass(10)
      const began = world.now()
      void quiet(client.publish('out/1', 'x', { qos: 1, properties: { messageExpiryInterval: 60 } }))
      await world.pass(wait)
      device.onPacket = (packet) => packet.startsWith('out publish') && kill(device, client)
      mend()
      await world.pass(15_000)
      device.onPacket = undefined
      world.broker.restart({ keepSessions: false })
      await device.client({ on })
      const left = 60 - Math.floor((world.now() - began) / 1000)
      await world.pass(100)
      expect(intervals).toHaveLength(2)
      expect(Math.abs((intervals[1] as number) - left)).toBeLessThanOrEqual(1)
      await world.close()
    },
  )
})

describe('the caller', () => {
  it('hears ERR_STORE when his publish cannot be stored: nothing of it is sent, and the client goes on', async () => {
    const device = new Device()
    await device.peer()
    const { client } = await device.start()
    const store = device.store as MapStore
    const isLarge = (each: StoreOperation): boolean => each.type === 'put' && new TextDecoder().decode(each.value).includes('large')
    store.before = (operations) => {
      if (operations.some(isLarge)) throw new Error('ENOSPC')
    }
    const results = await Promise.all(['one', 'large', 'two'].map((text) => quiet(client.publish('out/1', text, { qos: 1 }))))
    expect(results).toMatchObject([{ reasonCode: 0 }, { code: 'ERR_STORE', outcome: 'not-sent' }, { reasonCode: 0 }])
    expect(device.arrived).toEqual(['one', 'two'])
    expect(client.state).toBe('connected')
    expect(device.events('error')).toMatchObject([{ error: { code: 'ERR_STORE' } }])
    await settled()
    expect(device.keys('o')).toEqual([])
    await device.world.close()
  })

  it('may write over his payload once he was told, while the store is slow', async () => {
    const device = new Device()
    await device.peer()
    const { client } = await device.start()
    const payload = new TextEncoder().encode('one')
    const abort = new AbortController()
    const published = quiet(client.publish('out/1', payload, { qos: 1, signal: abort.signal }))
    abort.abort()
    expect(await published).toMatchObject({ code: 'ERR_ABORTED', outcome: 'unknown' })
    payload.fill(0)
    await settled()
    expect(device.arrived).toEqual(['one'])
    await device.world.close()
  })

  it('may not open one session twice in a process, and may open another in the same store', async () => {
    const device = new Device()
    const { client } = await device.start()
    const error = { code: 'ERR_STORE_LOCKED', option: 'store' }
    await expect(device.world.connect(url, { clientId: 'device', store: device.store })).rejects.toMatchObject(error)
    await device.world.connect(url, { clientId: 'other', store: device.store })
    await client.disconnect()
    await device.client()
    await device.world.close()
  })

  it.each([[{}], [{ store: {} }], [1]])('gives a store, or hears ERR_INVALID_OPTION: %o', (store) => {
    const { world } = new Device()
    expect(() => new world.Client(url, { store: store as never })).toThrow(MqttError)
  })

  it('hears that a promise of a store is to be awaited, wherever it is given', () => {
    const { world } = new Device()
    const promise = Promise.resolve(memoryStore()) as never
    const make = (...given: ConstructorParameters<typeof world.Client>): BaseClient => new world.Client(...given)
    const ways = [
      () => new world.Client(url, { store: promise }),
      () => new world.Client(url, { store: { store: promise } }),
      () => poolOf(make, url, { options: { store: promise } }),
      () => groupOf(make, { members: { one: url }, shared: { store: promise } }),
      () => groupOf(make, { members: { one: { url, options: { store: promise } } } }),
    ]
    for (const way of ways)
      expect(way).toThrow(
        expect.objectContaining({
          code: 'ERR_INVALID_OPTION',
          option: 'store',
          message: expect.stringContaining('await the promise of levelStore()'),
        }),
      )
  })

  it.each([
    [{ store: memoryStore(), inbound: 1 }, 'store.inbound'],
    [{ batch: () => undefined }, 'store'],
  ])('hears ERR_INVALID_OPTION before anything is dialled: %o', async (store, option) => {
    const device = new Device()
    await expect(device.client({ store: store as never })).rejects.toMatchObject({ code: 'ERR_INVALID_OPTION', option })
    await device.world.close()
  })

  it('needs no client identifier: the one that the broker assigned is kept', async () => {
    const device = new Device()
    const client = await device.client({ clientId: '' })
    const { clientId } = client
    expect(clientId).not.toBe('')
    await settled()
    kill(device, client)
    expect((await device.client({ clientId: '' })).clientId).toBe(clientId)
    expect(device.events('connect')).toMatchObject([{ sessionPresent: false }, { sessionPresent: true }])
    await device.world.close()
  })

  it('has a session of a week, and one that is resumed, unless he says otherwise', async () => {
    const device = new Device()
    const client = await device.client()
    expect(client.negotiated?.sessionExpiryInterval).toBe(604_800)
    await client.disconnect()
    const short = await device.client({ sessionExpiryInterval: 60 })
    expect(short.negotiated?.sessionExpiryInterval).toBe(60)
    expect(device.events('connect')).toMatchObject([{ sessionPresent: false }, { sessionPresent: true }])
    await device.world.close()
  })
})

describe('incoming messages', () => {
  /** The process dies in its handler; the next one gets the message again. */
  async function handedOutTwice(qos: 1 | 2): Promise<Device> {
    const device = new Device()
    const peer = await device.peer()
    const { client } = await device.start()
    device.handle = () => kill(device, client)
    await peer.publish('in/1', 'one', { qos })
    await settled()
    device.handle = undefined
    await device.start()
    await settled()
    return device
  }

  it.each([1, 2] as const)('at QoS %i keep their id when they come again', async (qos) => {
    const device = await handedOutTwice(qos)
    expect(device.seen).toMatchObject([
      { text: 'one', redelivered: false },
      { text: 'one', redelivered: true },
    ])
    expect(device.seen[0]?.id).toBe(device.seen[1]?.id)
    expect(device.events('connect').at(-1)).toMatchObject({ recovered: { outbound: 0, inbound: 1 } })
    await device.world.close()
  })

  it('have an id each, and none without a store, at QoS 0, or without `inbound`', async () => {
    const device = new Device()
    const peer = await device.peer()
    const { store } = device
    const { client } = await device.start()
    for (const qos of [0, 1, 2, 1, 2] as const) await peer.publish('in/1', 'same', { qos })
    await settled()
    const ids = device.seen.map(({ id }) => id)
    expect([ids.length, new Set(ids).size, ids.filter((id) => id === undefined).length]).toEqual([5, 5, 1])
    await client.disconnect()
    device.seen.length = 0
    for (const options of [{ store: undefined, cleanStart: false }, { store: { store, inbound: false } }]) {
      const other = await device.client(options)
      await other.listen('in/#', (message) => void device.seen.push({ id: message.id, text: '', redelivered: false }), { qos: 2 })
      await peer.publish('in/1', 'same', { qos: 2 })
      await settled()
      await other.disconnect()
    }
    expect(device.seen.map(({ id }) => id)).toEqual([undefined, undefined])
    await device.world.close()
  })

  it('have their record before they are handed out, one write for what a read brought', async () => {
    const device = new Device()
    const peer = await device.peer()
    await device.start()
    await settled()
    const store = device.store as MapStore
    const before = store.batches
    const known: number[] = []
    device.handle = () => void known.push(device.keys('i').length)
    await Promise.all(Array.from({ length: 20 }, (_, at) => peer.publish('in/1', String(at), { qos: 1 })))
    await settled()
    expect(device.seen.map(({ text }) => text)).toEqual(Array.from({ length: 20 }, (_, at) => String(at)))
    expect(known).toEqual(Array.from({ length: 20 }, () => 20))
    expect(store.batches - before).toBe(1)
    await device.world.close()
  })

  it('at QoS 2 that were taken are not handed out again, whatever the server repeats', async () => {
    const device = new Device()
    const peer = await device.peer()
    const { client } = await device.start()
    device.onPacket = (packet) => packet === 'out pubrec 1' && kill(device, client)
    await peer.publish('in/1', 'one', { qos: 2 })
    await settled()
    device.onPacket = undefined
    await device.start()
    await settled()
    expect(device.seen.map(({ text }) => text)).toEqual(['one'])
    expect(device.packets.slice(-3)).toEqual(['out pubrec 1', 'in pubrel 1', 'out pubcomp 1'])
    await device.world.close()
  })

  it('at QoS 2 that were taken end with the PUBREL that comes to the next process [MQTT-4.3.3-11]', async () => {
    const device = new Device()
    const peer = await device.peer()
    const { client } = await device.start()
    device.onPacket = (packet) => packet === 'in pubrel 1' && kill(device, client)
    await peer.publish('in/1', 'one', { qos: 2 })
    await settled()
    device.onPacket = undefined
    device.packets.length = 0
    await device.start()
    await settled()
    expect(device.packets).toEqual(['in pubrel 1', 'out pubcomp 1'])
    expect(device.seen.map(({ text }) => text)).toEqual(['one'])
    await device.world.close()
  })

  it('at QoS 2 with another content than what was received are other messages, also with DUP', async () => {
    const device = new Device()
    const peer = await device.peer()
    const { client } = await device.start()
    device.onPacket = (packet) => packet === 'out pubrec 1' && kill(device, client)
    await peer.publish('in/1', 'one', { qos: 2 })
    await settled()
    device.onPacket = undefined
    // As if the record were of a session that is gone: the store was never told.
    const [key] = device.keys('i') as [string]
    const { content } = device.store as MapStore
    const record = decodeInbound(content.get(key) as Uint8Array) as InboundRecord
    expect(record.received).toBe(true)
    content.set(key, sealRecord(encodeInbound({ ...record, print: record.print ^ 1 })))
    await device.start()
    await settled()
    expect(device.seen.map(({ text }) => text)).toEqual(['one', 'one'])
    expect(device.seen[0]?.id).not.toBe(device.seen[1]?.id)
    expect(device.packets.slice(-2)).toEqual(['in pubrel 1', 'out pubcomp 1'])
    await device.world.close()
  })

  it('with another content under the same identifier are other messages, also with DUP', async () => {
    const device = new Device()
    const peer = await device.peer()
    const { client } = await device.start()
    device.handle = () => kill(device, client)
    await peer.publish('in/1', 'one', { qos: 1 })
    await settled()
    device.handle = undefined
    const [key] = device.keys('i') as [string]
    const { content } = device.store as MapStore
    const record = decodeInbound(content.get(key) as Uint8Array) as InboundRecord
    content.set(key, sealRecord(encodeInbound({ ...record, print: record.print ^ 1 })))
    await device.start()
    await settled()
    expect(device.seen.map(({ text, redelivered }) => [text, redelivered])).toEqual([
      ['one', false],
      ['one', true],
    ])
    expect(device.seen[0]?.id).not.toBe(device.seen[1]?.id)
    await device.world.close()
  })

  it('keep no record once the server is known to have read the acknowledgement: at the second PINGRESP', async () => {
    const device = new Device()
    const peer = await device.peer()
    await device.start({ keepAlive: 30 })
    await peer.publish('in/1', 'one', { qos: 1 })
    await settled()
    expect(device.keys('i')).toHaveLength(1)
    await device.world.pass(100_000)
    await settled()
    expect(device.keys('i')).toEqual([])
    await device.world.close()
  })

  it('keep their record where both PINGREQs that are answered were sent before the acknowledgement', async () => {
    const store = new MapStore()
    const kept = () => [...store.content.keys()].filter((key) => key.startsWith('c/device/i/')).length
    const world = await connected({ clientId: 'device', store, keepAlive: 30 }, (packet) =>
      packet.type === 'pingreq' ? undefined : agreeable(packet),
    )
    void quiet(world.client.listen('in/#', () => undefined, { qos: 1 }))
    const pass = async (seconds: number): Promise<void> => {
      await world.clock.advance(seconds * 1000)
      await world.send(publish('in/0', 'the server lives'))
    }
    for (let time = 0; time < 14; time++) await pass(5)
    expect(world.peer.all('pingreq')).toHaveLength(2)
    await world.send(publish('in/1', 'one', 7))
    expect(world.peer.all('puback')).toHaveLength(1)
    await world.send({ type: 'pingresp' }, { type: 'pingresp' })
    expect(kept()).toBe(1)
    for (let time = 0; time < 7; time++) await pass(5)
    await world.send({ type: 'pingresp' })
    expect(kept()).toBe(0)
    world.client.destroy()
  })

  it('of a lost session are forgotten before the new one can bring any', async () => {
    const device = await handedOutTwice(1)
    expect(device.keys('i')).toHaveLength(1)
    kill(device, device.clients.at(-1) as BaseClient)
    const other = await device.world.connect(url, { clientId: 'device', cleanStart: true, sessionExpiryInterval: 0 })
    await other.disconnect()
    const store = device.store as MapStore
    store.before = () => {
      throw new Error('EIO')
    }
    const connects = device.events('connect').length
    const starting = device.client()
    await settled()
    expect(device.events('connect')).toHaveLength(connects)
    store.before = () => undefined
    await device.world.pass(1000)
    await starting
    expect([device.keys('i'), device.events('connect').length]).toEqual([[], connects + 1])
    await device.world.close()
  })

  it('wait while the store fails: nothing is acknowledged, nothing is lost, and the client goes on when it works again', async () => {
    const device = new Device()
    const peer = await device.peer()
    const { client } = await device.start()
    const store = device.store as MapStore
    store.before = () => {
      throw new Error('EIO')
    }
    await peer.publish('in/1', 'one', { qos: 1 })
    await settled()
    expect([device.seen, device.packets.filter((packet) => packet.startsWith('out puback'))]).toEqual([[], []])
    store.before = () => undefined
    await device.world.pass(1000)
    await settled()
    expect(device.seen.map(({ text }) => text)).toEqual(['one'])
    expect(client.state).toBe('connected')
    expect(device.events('error')).toMatchObject([{ error: { code: 'ERR_STORE' } }])
    await device.world.close()
  })
})

describe('damaged records', () => {
  it('are put aside and told, and the session goes on without them', async () => {
    const device = await interrupted(1, 'one', 'two')
    const { content } = device.store as MapStore
    const [first] = device.keys('o') as [string]
    content.set(first, Uint8Array.of(1, 2, 3))
    content.set('c/device/z', Uint8Array.of(1))
    await device.client()
    await settled()
    expect(device.events('storecorrupt')).toEqual([{ key: first }, { key: 'c/device/z' }])
    expect(device.arrived).toEqual(['two'])
    expect([...content.keys()].filter((key) => key.startsWith('x/'))).toHaveLength(2)
    await device.world.close()
  })

  it('that cannot be put aside, as the disk is full, stay where they are, are told once, and stop nobody', async () => {
    const device = await interrupted(1, 'one', 'two')
    const store = device.store as MapStore
    const [, second] = device.keys('o') as [string, string]
    store.content.set(second, Uint8Array.of(1, 2, 3))
    store.before = (operations) => {
      if (operations.some(({ key }) => key.startsWith('x/'))) throw new Error('ENOSPC')
    }
    const client = await device.client()
    await client.publish('out/1', 'three', { qos: 1 })
    await settled()
    expect(device.events('storecorrupt')).toEqual([{ key: second }])
    expect([device.arrived, device.keys('o'), store.content.get(second)]).toEqual([['one', 'three'], [second], Uint8Array.of(1, 2, 3)])
    await client.disconnect()
    const next = await device.client()
    expect(device.events('storecorrupt')).toHaveLength(1)
    await next.disconnect()
    store.before = () => undefined
    await device.client()
    expect([device.events('storecorrupt').length, device.keys('o')]).toEqual([1, []])
    await device.world.close()
  })

  it.each([1, 2] as const)('of the session itself, or gone, cost no publish at QoS %i its end where the broker has no session', async (qos) => {
    for (const damage of ['flipped', 'gone']) {
      const device = await interrupted(qos, 'one')
      const { content } = device.store as MapStore
      if (damage === 'gone') content.delete('c/device/m')
      else content.set('c/device/m', Uint8Array.of(1, 2, 3))
      const other = await device.world.connect(url, { clientId: 'device', cleanStart: true, sessionExpiryInterval: 0 })
      await other.disconnect()
      await device.client()
      await settled()
      const told = device.events('recovered')
      if (qos === 1) expect(told).toMatchObject([{ receipt: { reasonCode: 0 }, error: undefined }])
      else expect(told).toMatchObject([{ error: { code: 'ERR_SESSION_LOST', outcome: 'unknown' } }])
      expect([device.arrived, device.keys('o')]).toEqual([qos === 1 ? ['one'] : [], []])
      await device.world.close()
    }
  })

  it('of a later version end the client, and stay what they are', async () => {
    const device = await interrupted(1, 'one')
    const { content } = device.store as MapStore
    const [key] = device.keys('o') as [string]
    const later = Uint8Array.of(2, 0, 0, 0, 0, 1)
    new DataView(later.buffer).setUint32(1, crc32c(later.subarray(5), crc32c(later.subarray(0, 1))))
    content.set(key, later)
    await expect(device.client()).rejects.toMatchObject({ code: 'ERR_STORE' })
    expect([device.events('storecorrupt'), content.get(key)]).toEqual([[], later])
    await device.world.close()
  })
})

it('a store that cannot be read ends the client with ERR_STORE before anything is dialled', async () => {
  const device = new Device()
  const failing = new MapStore()
  failing.get = () => Promise.reject(new Error('EIO'))
  device.store = failing
  await expect(device.client()).rejects.toMatchObject({ code: 'ERR_STORE' })
  expect(device.packets).toEqual([])
  await device.world.close()
})
