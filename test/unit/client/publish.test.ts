/** Publishing: PUBLISH as it leaves and the exchanges at each QoS (sections 3.3, 4.3), against bytes written down by hand; `post`; and that every publish settles, with the truth about the message. */
import { runInNewContext } from 'node:vm'
import { expect, it } from 'vitest'
import type {
  Payload,
  PublishOptions,
  PublishProperties,
} from '../../../src/client/options/index.js'
import type { PublishPacket } from '../../../src/wire/packets.js'
import { turn } from '../../support/pausing.js'
import { accepting, connected } from './harness.js'
import { ack, fates, StubWorld, stubbed, watched } from './stub.js'
import { unhandledInFile } from './unhandled.js'

const hex = (bytes: Iterable<number> = []): string =>
  [...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join(' ')
const bytes = (...values: number[]): Uint8Array<ArrayBuffer> => Uint8Array.from(values)

async function wire(topic: string, payload: Payload, options?: PublishOptions): Promise<string> {
  const world = await stubbed()
  world.client.publish(topic, payload, options)
  await world.settle()
  expect(world.stub.writes).toHaveLength(1)
  return hex(world.stub.writes[0])
}

it.each<[topic: string, payload: Payload, options: PublishOptions, expected: string]>([
  ['a/b', 'hi', {}, '30 08 00 03 61 2f 62 00 68 69'],
  ['a/b', '', {}, '30 06 00 03 61 2f 62 00'],
  ['a/b', 'hi', { retain: true }, '31 08 00 03 61 2f 62 00 68 69'],
  ['a/b', '', { retain: true }, '31 06 00 03 61 2f 62 00'],
  ['a', 'hi', { qos: 1 }, '32 08 00 01 61 00 01 00 68 69'],
  ['a', 'hi', { qos: 2, retain: true }, '35 08 00 01 61 00 01 00 68 69'],
  ['é/😀', 'ü😀', {}, '30 10 00 07 c3 a9 2f f0 9f 98 80 00 c3 bc f0 9f 98 80'],
  ['a', bytes(9, 1, 2, 3, 9).subarray(1, 4), {}, '30 07 00 01 61 00 01 02 03'],
  ['a', new DataView(bytes(9, 1, 2, 3, 9).buffer, 1, 3), {}, '30 07 00 01 61 00 01 02 03'],
  ['a', Buffer.from([1, 2, 3]), {}, '30 07 00 01 61 00 01 02 03'],
  ['a', bytes(1, 2, 3).buffer, {}, '30 07 00 01 61 00 01 02 03'],
  ['a', Uint16Array.of(0x0201, 0x0403), {}, '30 08 00 01 61 00 01 02 03 04'],
  ['a', new ArrayBuffer(0), {}, '30 04 00 01 61 00'],
  ['a', new Uint8Array(0), {}, '30 04 00 01 61 00'],
  // Of another realm.
  ['a', runInNewContext('Uint8Array.of(1, 2, 3)'), {}, '30 07 00 01 61 00 01 02 03'],
  ['a', runInNewContext('Uint8Array.of(1, 2, 3).buffer'), {}, '30 07 00 01 61 00 01 02 03'],
  // What is undefined counts as left out.
  ['a', 'x', { qos: undefined, properties: { contentType: undefined } }, '30 05 00 01 61 00 78'],
])(
  'topic, flags, identifier 1 from QoS 1 on, DUP 0, and payload: %s %s %o [MQTT-2.2.1-2] [MQTT-2.2.1-3] [MQTT-3.3.1-2] [MQTT-4.3.1-1] [MQTT-4.3.2-2] [MQTT-4.3.3-2]',
  async (topic, payload, options, expected) => {
    expect(await wire(topic, payload, options)).toBe(expected)
  },
)

it.each<[PublishProperties, string]>([
  [{ payloadFormatIndicator: 1 }, '01 01'],
  [{ messageExpiryInterval: 4_294_967_295 }, '02 ff ff ff ff'],
  [{ contentType: 'a/é' }, '03 00 04 61 2f c3 a9'],
  [{ contentType: '' }, '03 00 00'],
  [{ responseTopic: 'r/1' }, '08 00 03 72 2f 31'],
  [{ correlationData: 'é' }, '09 00 02 c3 a9'],
  [{ correlationData: bytes(9, 1, 2, 9).subarray(1, 3) }, '09 00 02 01 02'],
  [{ correlationData: new ArrayBuffer(0) }, '09 00 00'],
  [
    {
      userProperties: [...'bab'].map((name, index): [string, string] => [
        name,
        index === 1 ? '' : '1',
      ]),
    },
    '26 00 01 62 00 01 31 26 00 01 61 00 00 26 00 01 62 00 01 31',
  ],
])(
  '[MQTT-3.3.2-13] [MQTT-3.3.2-17] [MQTT-3.3.2-18] [MQTT-3.3.2-19] properties in bytes: %j',
  async (properties, expected) => {
    const size = expected.split(' ').length
    expect(await wire('a', 'x', { properties })).toBe(
      `30 ${hex([size + 5])} 00 01 61 ${hex([size])} ${expected} 78`,
    )
  },
)

it('order within a class is the order of the calls, and large payloads arrive whole', async () => {
  const world = await connected({}, accepting(), { split: 16_384 })
  const large = Uint8Array.from(
    { length: 1_048_576 },
    (_, index) => (index * 31 + (index >> 8)) & 0xff,
  )
  const sizes = [1, 32_767, 32_768, 10, 65_536, 3, 1_048_576, 2]
  for (const [index, size] of sizes.entries())
    for (const qos of [1, 0] as const)
      world.client.publish(`${index}`, large.subarray(0, size), { qos })
  await world.settle()
  for (const level of [0, 1]) {
    const publishes = world.peer.all('publish').filter(({ qos }) => qos === level)
    expect(publishes.map((packet) => packet.topic)).toEqual(sizes.map((_, index) => `${index}`))
    for (const [index, packet] of publishes.entries())
      expect(Buffer.compare(packet.payload, large.subarray(0, sizes[index]))).toBe(0)
  }
})

it('QoS 0 resolves with one shared frozen receipt when handed to the transport', async () => {
  const world = await connected()
  const [first, second] = await Promise.all([
    world.client.publish('a', 'x'),
    world.client.publish('b', 'y'),
  ])
  const success = { reasonCode: 0, reasonName: 'Success', reasonString: undefined }
  expect(first).toEqual({ ...success, userProperties: [], packetId: undefined })
  expect([second === first, Object.isFrozen(first)]).toEqual([true, true])
  await world.settle()
  expect(world.peer.all('publish').map((packet) => packet.topic)).toEqual(['a', 'b'])
})

it('QoS 1: PUBACK 0x10 is success with its code, reason string, user properties and identifier', async () => {
  const world = await connected()
  const result = watched(world.client.publish('a', 'x', { qos: 1 }))
  await world.settle()
  const userProperties = ['1', '2'].map((value): [string, string] => ['a', value])
  await world.send({
    type: 'puback',
    packetId: 1,
    reasonCode: 0x10,
    properties: { reasonString: 'nobody', userProperties },
  })
  expect(result.value).toEqual({
    reasonCode: 0x10,
    reasonName: 'No matching subscribers',
    reasonString: 'nobody',
    userProperties,
    packetId: 1,
  })
  expect(Object.isFrozen(result.value)).toBe(true)
})

const refused = (code: string, more = {}) => expect.objectContaining({ code, ...more })

it('post: says true, and sends QoS 0 in the same turn', async () => {
  const world = await stubbed()
  expect(world.client.post('t', 'hi')).toBe(true)
  await Promise.resolve()
  expect([...(world.stub.writes[0] ?? [])]).toEqual([0x30, 6, 0, 1, 0x74, 0, 0x68, 0x69])
})

it.each([3, 32_767, 32_768, 100_000])(
  'post: copies: %i bytes may change afterwards',
  async (size) => {
    for (const payload of [new Uint8Array(size), Buffer.alloc(size)]) {
      const world = await stubbed()
      payload.fill(1)
      expect(world.client.post('t', payload)).toBe(true)
      payload.fill(2)
      await world.settle()
      const [packet] = world.stub.packets as PublishPacket[]
      expect(
        Buffer.compare(packet?.payload ?? new Uint8Array(0), new Uint8Array(size).fill(1)),
      ).toBe(0)
    }
  },
)

it('post: says false before, between and without connections, and never queues', async () => {
  const world = new StubWorld({ outbound: { offline: { qos0: 'queue' } } })
  expect(world.client.post('t', 'x')).toBe(false)
  const connecting = world.client.connect()
  expect(world.client.post('t', 'x')).toBe(false)
  await world.settle()
  expect(world.client.post('t', 'x')).toBe(false)
  world.stub.deliver({ type: 'connack' })
  await Promise.all([connecting, world.settle()])
  expect([world.stub.payloads, world.client.outbound.size]).toEqual([[], 0])
})

it('post: says false while the transport asks for patience, which is no loss to report, and true again afterwards', async () => {
  const world = await stubbed()
  world.stub.takes = false
  expect(world.client.post('t', 'a')).toBe(true)
  await world.settle()
  expect(world.client.post('t', 'b')).toBe(false)
  await world.settle()
  world.stub.release()
  expect(world.client.post('t', 'c')).toBe(true)
  await world.settle()
  expect([world.stub.payloads, world.drops]).toEqual([['a', 'c'], []])
})

it('post: does not overtake QoS 0 publishes that wait', async () => {
  const world = await stubbed()
  world.stub.takes = false
  world.client.post('t', 'a')
  await world.settle()
  const waiting = watched(world.client.publish('t', 'b'))
  await world.settle()
  expect(waiting.state).toBe('pending')
  world.stub.release()
  world.client.post('t', 'c')
  await world.settle()
  expect(world.stub.payloads).toEqual(['a', 'b', 'c'])
})

it('post: throws what can never be sent, connected or not, and after the end, where it is false otherwise', async () => {
  const online = await stubbed()
  const ended = await stubbed()
  ended.client.destroy()
  expect(ended.client.post('t', 'x')).toBe(false)
  for (const { client } of [online, new StubWorld(), ended]) {
    for (const topic of ['', 'a/#', 'a\u0000', 'a'.repeat(65_536), 5])
      expect(() => client.post(topic as string, 'x')).toThrow(refused('ERR_INVALID_TOPIC'))
    expect(() => client.post('t', 5 as never)).toThrow(
      refused('ERR_INVALID_OPTION', { option: 'payload' }),
    )
  }
  await online.settle()
  expect(online.stub.writes).toEqual([])
})

const unhandled = unhandledInFile()

it('the connection is cut: what was never handed over says not-sent, what is in flight says unknown', async () => {
  const world = await connected({}, accepting({ receiveMaximum: 2 }))
  const calls = fates(
    ...([1, 2, 1, 2] as const).map((qos) => world.client.publish('t', 'x', { qos })),
  )
  await world.settle()
  await world.send(ack('pubrec', 2))
  world.peer.cut()
  await world.settle()
  const [unknown, notSent] = ['ERR_CONNECTION_LOST unknown', 'ERR_CONNECTION_LOST not-sent']
  expect([...calls, world.client.outbound.size]).toEqual([unknown, unknown, notSent, notSent, 0])
})

it.each([
  ['by reference', new Uint8Array(40_000), {}],
  ['flush: true', new Uint8Array(4), { flush: true }],
] as const)(
  'the connection is cut: QoS 0 that was not written (%s) says unknown',
  async (_, payload, options) => {
    const world = await stubbed()
    world.stub.holds = true
    const call = fates(world.client.publish('t', payload, options))
    await world.settle()
    world.stub.destroy(new Error('gone'))
    await world.settle()
    expect(call).toEqual(['ERR_CONNECTION_LOST unknown'])
    const error = { code: 'ERR_CONNECTION_LOST', fault: 'remote' }
    expect(world.drops).toMatchObject([{ direction: 'out', topic: 't', error }])
  },
)

it.each(['disconnect', 'destroy'] as const)(
  'the client is closed: %s: publishes reject, also later',
  async (how) => {
    const world = await connected({}, accepting({ receiveMaximum: 1 }))
    const calls = fates(...([1, 2] as const).map((qos) => world.client.publish('t', 'x', { qos })))
    await world.settle()
    if (how === 'destroy') world.client.destroy()
    else world.client.disconnect({ timeout: 0 })
    await world.settle()
    expect(calls).toEqual(['ERR_CLOSED unknown', 'ERR_CLOSED not-sent'])
    const drops = world.seen('drop').length
    const late = fates(
      ...([0, 1, 2] as const).map((qos) => world.client.publish('t', 'x', { qos })),
    )
    await world.settle()
    expect(late).toEqual(Array(3).fill('ERR_CLOSED not-sent'))
    expect(world.seen('drop')).toHaveLength(drops)
  },
)

it('the client is closed: disconnect({ timeout: 0 }) settles publishes that wait to be written within 50 ms', async () => {
  const world = await stubbed()
  Object.assign(world.stub, { holds: true, takes: false })
  const { client } = world
  const calls = fates(
    client.publish('t', 'x', { flush: true }),
    client.publish('t', new Uint8Array(40_000)),
    client.publish('t', 'x', { qos: 1 }),
    client.flush(),
  )
  await world.settle()
  const stopping = fates(client.disconnect({ timeout: 0 }))
  await world.clock.advance(50)
  expect([...stopping, ...calls.map((call) => call.slice(0, 4))]).toEqual([
    'done',
    ...Array(4).fill('ERR_'),
  ])
})

it('failures that nothing awaits raise `drop`, once each, with topic and error, and never an unhandled rejection', async () => {
  const limits = {
    receiveMaximum: 1,
    maximumPacketSize: 64,
    maximumQoS: 1,
    retainAvailable: 0,
  } as const
  const world = await stubbed({ outbound: { maxQueuedMessages: 1, overflow: 'reject' } }, limits)
  const { client } = world
  client.publish('refused', 'x', { qos: 1 })
  client.publish('large', new Uint8Array(100), { qos: 1 })
  client.publish('large0', new Uint8Array(100))
  client.publish('qos', 'x', { qos: 2 })
  client.publish('retain', 'x', { retain: true })
  client.publish('cut', 'x', { qos: 1 })
  client.publish('full', 'x', { qos: 1 })
  await world.settle()
  world.stub.takes = false
  client.post('t', 'fill')
  await world.settle()
  void client.writable
  await world.deliver(ack('puback', 1, 0x87))
  world.stub.destroy(new Error('gone'))
  await world.settle()
  await turn()
  const told = world.drops.map(
    ({ direction, topic, count, error }) => `${direction} ${topic} ${count} ${error?.code}`,
  )
  expect(told.sort()).toEqual([
    'out cut 1 ERR_CONNECTION_LOST',
    'out full 1 ERR_QUEUE_FULL',
    'out large 1 ERR_PACKET_TOO_LARGE',
    'out large0 1 ERR_PACKET_TOO_LARGE',
    'out qos 1 ERR_QOS_UNSUPPORTED',
    'out refused 1 ERR_PUBLISH_REFUSED',
    'out retain 1 ERR_RETAIN_UNSUPPORTED',
  ])
  expect(unhandled).toEqual([])
})
