/** A session in a store: what a process that died has left goes on with the next one. */
import { describe, expect, it } from 'vitest'
import type { BaseClient } from '../../../../src/client/client.js'
import {
  decodeInbound,
  encodeInbound,
  type InboundRecord,
} from '../../../../src/client/durable/records.js'
import type { ClientOptions, Message } from '../../../../src/client/options/index.js'
import { groupOf } from '../../../../src/group/broker-group.js'
import { poolOf } from '../../../../src/pool/publisher-pool.js'
import { crc32c } from '../../../../src/store/base/checksum.js'
import { memoryStore, type StoreOperation, sealRecord } from '../../../../src/store/index.js'
import { gate, quiet } from '../incoming.js'
import { Device, fail, interrupted, outcome, settled, url } from './rig.js'

const numbers = (count: number): string[] => Array.from({ length: count }, (_, at) => String(at))

/** Session Present of each connection. */
const presence = (device: Device): boolean[] =>
  (device.events('connect') as { sessionPresent: boolean }[]).map((event) => event.sessionPresent)

describe('publishes', () => {
  it('are stored before they are sent, and forgotten after their acknowledgement', async () => {
    const { device, client } = await Device.started()
    const sent: string[][] = []
    device.onPacket = (packet) => packet.startsWith('out publish') && sent.push(device.keys('o'))
    await client.publish('out/1', 'one', { qos: 1 })
    expect(sent).toEqual([['c/device/o/0000000000000001']])
    await settled()
    expect([device.keys('o'), device.arrived]).toEqual([[], ['one']])
  })

  it('of one turn are one write, and so are their acknowledgements', async () => {
    const { device, client } = await Device.started()
    await settled()
    const before = device.map.batches
    await Promise.all(numbers(50).map((text) => client.publish('out/1', text, { qos: 1 })))
    await settled()
    expect([device.map.batches - before, device.arrived]).toEqual([2, numbers(50)])
  })

  it.each(
    [1, 2].flatMap((qos) => [[qos, 5, 5] as const, [qos, 5, 4] as const, [qos, 4, 5] as const]),
  )(
    'at QoS %i of version %i go on first, as they were, under version %i [MQTT-4.4.0-1]',
    async (level, before, after) => {
      const qos = level as 1 | 2
      const device = await interrupted(
        { qos },
        { texts: ['one', 'two'], options: { protocolVersion: before, cleanStart: false } },
      )
      expect(device.keys('o')).toHaveLength(2)
      const client = await device.client({ protocolVersion: after, cleanStart: false })
      await client.publish('out/1', 'new', { qos })
      const lines = 'out publish 1 dup,out publish 2 dup,out publish 3'
      expect(device.got('out publish').join()).toBe(lines)
      expect(device.arrived).toEqual(['one', 'two', 'new'])
      const recovered = { outbound: 2, inbound: 0 }
      expect(device.events('connect').at(-1)).toMatchObject({ recovered, sessionPresent: true })
      const same = { topic: 'out/1', qos, receipt: { reasonCode: 0 }, error: undefined }
      const both = [1, 2].map((packetId) => ({ ...same, packetId }))
      expect(device.events('recovered')).toMatchObject(both)
      await settled()
      expect(device.keys('o')).toEqual([])
    },
  )

  it('that have their PUBREC go on with PUBREL, and are not published again [MQTT-4.3.3-6]', async () => {
    const device = await interrupted({ qos: 2 }, { at: 'out pubrel 1' })
    await device.client()
    await settled()
    expect([device.packets, device.arrived]).toEqual([['out pubrel 1', 'in pubcomp 1'], ['one']])
    const released = { qos: 2, receipt: { packetId: 1 }, error: undefined }
    expect(device.events('recovered')).toMatchObject([released])
  })

  it('with properties, which 3.1.1 does not have, end with an error of unknown outcome under that version', async () => {
    const device = await interrupted({ qos: 1, properties: { contentType: 'a/b' } })
    await device.client({ protocolVersion: 4 })
    await settled()
    const error = { code: 'ERR_UNSUPPORTED_OPTION', outcome: 'unknown' }
    expect(device.events('recovered')).toMatchObject([{ error }])
    expect([device.keys('o'), device.arrived]).toEqual([[], []])
  })

  it.each(
    ['whole', 'damaged', 'gone'].flatMap((record) => [[1, record] as const, [2, record] as const]),
  )(
    'of a lost session are published again, or of unknown outcome: QoS %i, record %s',
    async (qos, record) => {
      const device = await interrupted({ qos: qos as 1 | 2 })
      if (record === 'gone') device.map.content.delete('c/device/m')
      else if (record === 'damaged') device.map.content.set('c/device/m', Uint8Array.of(1, 2, 3))
      await device.loseSession()
      await device.client()
      await settled()
      const recovered = { outbound: 1, inbound: 0 }
      expect(device.events('connect').at(-1)).toMatchObject({ sessionPresent: false, recovered })
      const error = { code: 'ERR_SESSION_LOST', outcome: 'unknown' }
      const again = { receipt: { reasonCode: 0 }, error: undefined }
      const end = qos === 1 ? again : { receipt: undefined, error }
      expect(device.events('recovered')).toMatchObject([end])
      expect([device.arrived, device.keys('o')]).toEqual([qos === 1 ? ['one'] : [], []])
    },
  )

  it('keep what they say: properties, retain, and what of them is for a lost session', async () => {
    const device = await Device.opened()
    const messages: unknown[] = []
    const note = ({ topic, payload, retain, properties }: Message): void => {
      messages.push({ topic, payload, retain, properties })
    }
    await (await device.peer('other')).listen('kept/#', note, { retainAsPublished: true })
    const client = await device.client()
    const userProperties = [['a', 'ü']] as [string, string][]
    const properties = {
      contentType: 'a/b',
      correlationData: Uint8Array.of(1, 2),
      userProperties,
      messageExpiryInterval: 60,
    }
    const payload = Uint8Array.from({ length: 300 }, (_, at) => at)
    await device.dying(client, 'out publish', () =>
      client.publish('kept/ü', payload, { qos: 1, retain: true, properties }),
    )
    await device.client()
    await settled()
    expect(messages).toMatchObject([{ topic: 'kept/ü', payload, retain: true, properties }])
  })

  it.each([1, 20_000])(
    'live for what is left after %i ms offline and a lost session [MQTT-3.3.2-6]',
    async (wait) => {
      const device = await Device.opened()
      const { world } = device
      const intervals: unknown[] = []
      const on: ClientOptions['on'] = {
        packet({ direction, packet }) {
          if (direction === 'out' && packet.type === 'publish')
            intervals.push(packet.properties.messageExpiryInterval)
        },
      }
      const client = await device.client({ on })
      const mend = world.cut()
      await world.pass(10)
      const began = world.now()
      quiet(client.publish('out/1', 'x', { qos: 1, properties: { messageExpiryInterval: 60 } }))
      await world.pass(wait)
      mend()
      await device.dying(client, 'out publish', () => world.pass(15_000))
      world.broker.restart({ keepSessions: false })
      await device.client({ on })
      const left = 60 - Math.floor((world.now() - began) / 1000)
      await world.pass(100)
      expect(intervals).toHaveLength(2)
      expect(Math.abs((intervals[1] as number) - left)).toBeLessThanOrEqual(1)
    },
  )
})

describe('the caller', () => {
  it('hears ERR_STORE when its publish cannot be stored: nothing of it is sent, and the client goes on', async () => {
    const { device, client } = await Device.started()
    const isLarge = (each: StoreOperation): boolean =>
      each.type === 'put' && new TextDecoder().decode(each.value).includes('large')
    device.map.before = (operations) => operations.some(isLarge) && fail()
    const calls = ['one', 'large', 'two'].map((text) =>
      outcome(client.publish('out/1', text, { qos: 1 })),
    )
    const refused = { code: 'ERR_STORE', outcome: 'not-sent' }
    expect(await Promise.all(calls)).toMatchObject([{ reasonCode: 0 }, refused, { reasonCode: 0 }])
    expect([device.arrived, client.state]).toEqual([['one', 'two'], 'connected'])
    expect(device.events('error')).toMatchObject([{ error: { code: 'ERR_STORE' } }])
    await settled()
    expect(device.keys('o')).toEqual([])
  })

  it('may write over its payload once it has an answer, while the store is slow', async () => {
    const { device, client } = await Device.started()
    const payload = new TextEncoder().encode('one')
    const abort = new AbortController()
    const published = outcome(client.publish('out/1', payload, { qos: 1, signal: abort.signal }))
    abort.abort()
    expect(await published).toMatchObject({ code: 'ERR_ABORTED', outcome: 'unknown' })
    payload.fill(0)
    await settled()
    expect(device.arrived).toEqual(['one'])
  })

  it('may not open one session twice in a process, and may open another in the same store', async () => {
    const { device, client } = await Device.started()
    const locked = { code: 'ERR_STORE_LOCKED', option: 'store' }
    await expect(device.client()).rejects.toMatchObject(locked)
    await device.client({ clientId: 'other' })
    await client.disconnect()
    await device.client()
  })

  it('gives a store, and awaits the promise of one, wherever it is given', () => {
    const { world } = new Device()
    const promise = Promise.resolve(memoryStore()) as never
    const make = (...given: ConstructorParameters<typeof world.Client>): BaseClient =>
      new world.Client(...given)
    const ways = [
      () => make(url, { store: promise }),
      () => make(url, { store: { store: promise } }),
      () => poolOf(make, url, { options: { store: promise } }),
      () => groupOf(make, { members: { one: url }, shared: { store: promise } }),
      () => groupOf(make, { members: { one: { url, options: { store: promise } } } }),
    ]
    const message = expect.stringContaining('await the promise of levelStore()')
    for (const way of ways)
      expect(way).toThrow(
        expect.objectContaining({ code: 'ERR_INVALID_OPTION', option: 'store', message }),
      )
  })

  it('needs no client identifier: the one that the broker assigned is kept', async () => {
    const device = await Device.opened()
    const client = await device.client({ clientId: '' })
    const { clientId } = client
    expect(clientId).not.toBe('')
    await settled()
    device.kill(client)
    expect((await device.client({ clientId: '' })).clientId).toBe(clientId)
    expect(presence(device)).toEqual([false, true])
  })

  it('has a session of a week, and one that is resumed, unless it says otherwise', async () => {
    const device = await Device.opened()
    const client = await device.client()
    expect(client.negotiated?.sessionExpiryInterval).toBe(604_800)
    await client.disconnect()
    expect(
      (await device.client({ sessionExpiryInterval: 60 })).negotiated?.sessionExpiryInterval,
    ).toBe(60)
    expect(presence(device)).toEqual([false, true])
  })
})

describe('incoming messages', () => {
  /** A message comes in, and the process dies at the packet, or in its handler. */
  async function taken(qos: 1 | 2, at = 'the handler'): Promise<Device> {
    const device = await Device.opened()
    const peer = await device.peer('other')
    const { client } = await device.start()
    if (at === 'the handler') device.handle = () => device.kill(client)
    await device.dying(client, at, () => peer.publish('in/1', 'one', { qos }))
    device.handle = undefined
    return device
  }

  /** As if the record of the message were of another one; says whether it had been received. */
  function alter(device: Device): boolean {
    const [key] = device.keys('i') as [string]
    const { content } = device.map
    const record = decodeInbound(content.get(key) as Uint8Array) as InboundRecord
    content.set(key, sealRecord(encodeInbound({ ...record, print: record.print ^ 1 })))
    return record.received
  }

  it.each([1, 2] as const)('at QoS %i keep their id when they come again', async (qos) => {
    const device = await taken(qos)
    await device.start()
    await settled()
    const twice = [false, true].map((redelivered) => ({ text: 'one', redelivered }))
    expect(device.seen).toMatchObject(twice)
    expect(device.seen[0]?.id).toBe(device.seen[1]?.id)
    const recovered = { outbound: 0, inbound: 1 }
    expect(device.events('connect').at(-1)).toMatchObject({ recovered })
  })

  it.each([
    [1, 'the handler', false],
    [2, 'out pubrec 1', true],
  ] as const)(
    'at QoS %i with another content are other messages (died at %s)',
    async (qos, at, received) => {
      const device = await taken(qos, at)
      expect(alter(device)).toBe(received)
      await device.start()
      await settled()
      expect(device.seen.map(({ text, redelivered }) => `${text} ${redelivered}`)).toEqual([
        'one false',
        'one true',
      ])
      expect(device.seen[0]?.id).not.toBe(device.seen[1]?.id)
      if (qos === 2) expect(device.packets.slice(-2)).toEqual(['in pubrel 1', 'out pubcomp 1'])
    },
  )

  it.each([
    ['out pubrec 1', ['in publish 1 dup', 'out pubrec 1']],
    ['in pubrel 1', []],
  ])('at QoS 2 are not handed out again (died at %s) [MQTT-4.3.3-11]', async (at, repeated) => {
    const device = await taken(2, at)
    await device.start()
    await settled()
    expect(device.texts).toEqual(['one'])
    expect(device.packets).toEqual([...repeated, 'in pubrel 1', 'out pubcomp 1'])
  })

  it('have an id each, and none without a store, at QoS 0, or without `inbound`', async () => {
    const device = await Device.opened()
    const peer = await device.peer('other')
    const { store } = device
    const { client } = await device.start()
    for (const qos of [0, 1, 2, 1, 2] as const) await peer.publish('in/1', 'same', { qos })
    await settled()
    const ids = device.seen.map(({ id }) => id)
    expect(ids.length).toBe(5)
    expect(new Set(ids).size).toBe(5)
    expect(ids.filter((id) => id === undefined).length).toBe(1)
    await client.disconnect()
    const without: unknown[] = []
    for (const options of [
      { store: undefined, cleanStart: false },
      { store: { store, inbound: false } },
    ]) {
      const other = await device.client(options)
      await other.listen('in/#', ({ id }) => void without.push(id), { qos: 2 })
      await peer.publish('in/1', 'same', { qos: 2 })
      await settled()
      await other.disconnect()
    }
    expect(without).toEqual([undefined, undefined])
  })

  it('have their record before they are handed out, one write for what a read brought', async () => {
    const device = await Device.opened()
    const peer = await device.peer('other')
    await device.start()
    await settled()
    const before = device.map.batches
    const known: number[] = []
    device.handle = () => void known.push(device.keys('i').length)
    await Promise.all(numbers(20).map((text) => peer.publish('in/1', text, { qos: 1 })))
    await settled()
    expect(device.texts).toEqual(numbers(20))
    expect(known).toEqual(Array(20).fill(20))
    expect(device.map.batches - before).toBe(1)
  })

  it('keep no record once the server is known to have read the acknowledgement: at the second PINGRESP', async () => {
    const device = await Device.opened()
    const peer = await device.peer('other')
    await device.start({ keepAlive: 30 })
    await peer.publish('in/1', 'one', { qos: 1 })
    await settled()
    expect(device.keys('i')).toHaveLength(1)
    await device.pass(100_000)
    expect(device.keys('i')).toEqual([])
  })

  it('at QoS 0 wait for no write of the store, except behind those that do', async () => {
    const device = await Device.opened()
    const peer = await device.peer('other')
    const { client } = await device.start()
    const slow = gate()
    device.map.afterBatch = () => slow.promise
    void client.publish('out/1', 'one', { qos: 1 })
    await settled()
    await peer.publish('in/1', 'first')
    await settled()
    expect(device.texts).toEqual(['first'])
    await peer.publish('in/1', 'second', { qos: 1 })
    await peer.publish('in/1', 'third')
    await settled()
    expect(device.texts).toEqual(['first'])
    slow.open()
    await settled()
    expect(device.texts).toEqual(['first', 'second', 'third'])
  })

  it('of a lost session are forgotten before the new one can bring any', async () => {
    const device = await taken(1)
    expect(device.keys('i')).toHaveLength(1)
    await device.loseSession()
    device.map.before = fail
    const connects = device.events('connect').length
    const starting = device.client()
    await settled()
    expect(device.events('connect')).toHaveLength(connects)
    device.map.before = () => undefined
    await device.world.pass(1000)
    await starting
    expect([device.keys('i'), device.events('connect').length]).toEqual([[], connects + 1])
  })

  it('wait while the store fails: nothing is acknowledged, nothing is lost, and the client goes on when it works again', async () => {
    const device = await Device.opened()
    const peer = await device.peer('other')
    const { client } = await device.start()
    device.map.before = fail
    await peer.publish('in/1', 'one', { qos: 1 })
    await settled()
    expect([device.seen, device.got('out puback')]).toEqual([[], []])
    device.map.before = () => undefined
    await device.pass(1000)
    expect([device.texts, client.state]).toEqual([['one'], 'connected'])
    expect(device.events('error')).toMatchObject([{ error: { code: 'ERR_STORE' } }])
  })
})

describe('damaged records', () => {
  it('are put aside and reported, and the session goes on without them', async () => {
    const device = await interrupted({ qos: 1 }, { texts: ['one', 'two'] })
    const { content } = device.map
    const [first] = device.keys('o') as [string]
    for (const key of [first, 'c/device/z']) content.set(key, Uint8Array.of(1, 2, 3))
    await device.client()
    await settled()
    expect(device.events('storecorrupt')).toEqual([{ key: first }, { key: 'c/device/z' }])
    expect(device.arrived).toEqual(['two'])
    expect([...content.keys()].filter((key) => key.startsWith('x/')).length).toBe(2)
  })

  it('that cannot be put aside, as the disk is full, stay where they are, are reported once, and stop nothing', async () => {
    const device = await interrupted({ qos: 1 }, { texts: ['one', 'two'] })
    const { map } = device
    const [, second] = device.keys('o') as [string, string]
    map.content.set(second, Uint8Array.of(1, 2, 3))
    map.before = (operations) => operations.some(({ key }) => key.startsWith('x/')) && fail()
    const client = await device.client()
    await client.publish('out/1', 'three', { qos: 1 })
    await settled()
    expect(device.events('storecorrupt')).toEqual([{ key: second }])
    expect(device.arrived).toEqual(['one', 'three'])
    expect(device.keys('o')).toEqual([second])
    expect(map.content.get(second)).toEqual(Uint8Array.of(1, 2, 3))
    await client.disconnect()
    await (await device.client()).disconnect()
    expect(device.events('storecorrupt')).toHaveLength(1)
    map.before = () => undefined
    await device.client()
    expect([device.events('storecorrupt').length, device.keys('o')]).toEqual([1, []])
  })

  it('of a later version end the client, and stay what they are', async () => {
    const device = await interrupted({ qos: 1 })
    const [key] = device.keys('o') as [string]
    const later = Uint8Array.of(2, 0, 0, 0, 0, 1)
    new DataView(later.buffer).setUint32(1, crc32c(later.subarray(5), crc32c(later.subarray(0, 1))))
    device.map.content.set(key, later)
    await expect(device.client()).rejects.toMatchObject({ code: 'ERR_STORE' })
    expect([device.events('storecorrupt'), device.map.content.get(key)]).toEqual([[], later])
  })
})

it('a store that cannot be read ends the client with ERR_STORE before anything is dialled', async () => {
  const device = await Device.opened()
  device.map.get = () => Promise.reject(new Error('EIO'))
  await expect(device.client()).rejects.toMatchObject({ code: 'ERR_STORE' })
  expect(device.packets).toEqual([])
})
