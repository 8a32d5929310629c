/** Methods in each form that they take: callbacks, promises, options or none; and what comes back. */
import { createServer } from 'node:net'
import { Aedes } from 'aedes'
import { describe, expect, it } from 'vitest'
import {
  ErrorWithReasonCode,
  type ISubscriptionGrant,
  type MqttClient,
} from '../../../src/compat/index.js'
import { eventually, within } from '../../real/waiting.js'
import { closed, freePort, listening } from '../../support/servers.js'
import { atEnd, namesIn, refusing, sentBy, soon, started, tcp, toldOf, up, wayTo } from './world.js'

function answered(call: (done: (...given: unknown[]) => void) => unknown): Promise<unknown[]> {
  return within(new Promise((resolve) => void call((...given) => resolve(given))), 'the callback')
}

describe.each([4, 5] as const)('calls, protocol version %d', (protocolVersion) => {
  const options = { ...soon, protocolVersion }
  const made = async (): Promise<MqttClient> => (await up(await tcp(), options)).client

  it('publish: with and without options and callback, at each QoS', async () => {
    const client = await made()
    expect(client.publish('a', 'x')).toBe(client)
    expect(client.publish('a', 'x', { qos: 1 })).toBe(client)
    expect(await answered((done) => client.publish('a', 'x', done))).toEqual([null, undefined])
    expect(
      await answered((done) => client.publish('a', Buffer.from('x'), undefined, done)),
    ).toEqual([null, undefined])
    expect(await answered((done) => client.publish('a', 'x', { qos: 1 }, done))).toEqual([
      null,
      {
        cmd: 'publish',
        topic: 'a',
        payload: 'x',
        qos: 1,
        retain: false,
        dup: false,
        messageId: expect.any(Number),
      },
    ])
    expect(await client.publishAsync('a', 'x', { qos: 2 })).toMatchObject({
      cmd: 'publish',
      qos: 2,
    })
    expect(await client.publishAsync('a', new Uint8Array(3))).toBeUndefined()
  })

  it('publish: cbStorePut is called before the callback, at QoS 1 and 2', async () => {
    const client = await made()
    const calls: string[] = []
    for (const qos of [0, 1, 2] as const) {
      await client.publishAsync('a', 'x', { qos, cbStorePut: () => calls.push(`stored ${qos}`) })
      calls.push(`done ${qos}`)
    }
    expect(calls).toEqual(['done 0', 'stored 1', 'done 1', 'stored 2', 'done 2'])
  })

  it('publish: what is wrong comes by callback, by promise, or as an error', async () => {
    const { client, told } = await up(await tcp(), options)
    const [error] = await answered((done) => client.publish('a/#', 'x', done))
    expect(error).toMatchObject({ code: 'ERR_INVALID_TOPIC' })
    await expect(client.publishAsync('a', 'x', { dup: true })).rejects.toMatchObject({
      code: 'ERR_UNSUPPORTED_OPTION',
      option: 'dup',
    })
    await expect(client.publishAsync('a', 'x', { qos: 3 } as never)).rejects.toMatchObject({
      code: 'ERR_INVALID_OPTION',
      option: 'qos',
    })
    expect(namesIn(told)).toEqual(['connect'])
    client.publish('', 'x')
    await toldOf(told, 'error')
  })

  it('options that MQTT.js ignores are ignored, and named in the log once', async () => {
    const lines: string[] = []
    const log = ((line: string) => lines.push(line)) as never
    const { client } = await up(await tcp(), {
      ...options,
      log,
    })
    for (let time = 0; time < 2; time++) {
      await client.publishAsync('a', 'x', { qos: 1, cmd: 'publish', messageId: 5 } as never)
      await client.subscribeAsync('a', { qos: 1, pattern: 'a' } as never)
      await client.unsubscribeAsync('a', { qos: 1 } as never)
    }
    expect(lines.filter((line) => line.includes('ignores'))).toEqual(
      [
        'publish({ cmd }), publish({ messageId })',
        'subscribe({ pattern })',
        'unsubscribe({ qos })',
      ].map((names) => expect.stringContaining(names)),
    )
  })

  it('subscribe: a filter, a list, an object; with options, callback, both or none', async () => {
    const client = await made()
    const more = protocolVersion === 5 ? { nl: false, rap: false, rh: 0 } : {}
    expect(client.subscribe('a')).toBe(client)
    const packet = { cmd: 'suback', granted: [0] }
    expect(await answered((done) => client.subscribe('b', done))).toEqual([
      null,
      [{ topic: 'b', qos: 0, ...more }],
      packet,
    ])
    expect(await client.subscribeAsync('c', { qos: 1 })).toEqual([{ topic: 'c', qos: 1, ...more }])
    expect(await client.subscribeAsync(['d', 'e'], { qos: 2 })).toEqual([
      { topic: 'd', qos: 2, ...more },
      { topic: 'e', qos: 2, ...more },
    ])
    expect(await client.subscribeAsync({ f: { qos: 0 }, g: { qos: 1 } })).toEqual([
      { topic: 'f', qos: 0, ...more },
      { topic: 'g', qos: 1, ...more },
    ])
  })

  it('subscribe: nothing for a filter that there is; more QoS, or resubscribe, asks again', async () => {
    const client = await made()
    const packets = sentBy(client)
    await client.subscribeAsync('a', { qos: 1 })
    expect(await answered((done) => client.subscribe('a', { qos: 0 }, done))).toEqual([
      null,
      [],
      undefined,
    ])
    expect(packets).toHaveLength(1)
    expect(await client.subscribeAsync(['a', 'b'], { qos: 1 })).toHaveLength(1)
    expect(await client.subscribeAsync('a', { qos: 2 })).toMatchObject([{ topic: 'a', qos: 2 }])
    expect(packets).toHaveLength(3)
    expect(
      await client.subscribeAsync({ a: { qos: 0 }, resubscribe: true } as never),
    ).toMatchObject([{ topic: 'a' }])
    const got: string[] = []
    client.on('message', (topic) => got.push(topic))
    await client.publishAsync('a', 'x', { qos: 1 })
    await client.publishAsync('b', 'x', { qos: 1 })
    await eventually(() => got.includes('b'))
    expect(got).toEqual(['a', 'b'])
  })

  it('subscribe: filters of a list in its order, whatever their names; those of a map too, but for its option', async () => {
    const client = await made()
    const packets: unknown[] = []
    client.on('packetsend', (packet) => {
      const { subscriptions } = packet as { subscriptions?: { topic: string }[] }
      if (subscriptions !== undefined) packets.push(subscriptions.map(({ topic }) => topic))
    })
    const list = ['b', '2', 'resubscribe', 'a', '1']
    expect((await client.subscribeAsync(list)).map(({ topic }) => topic)).toEqual(list)
    expect(packets).toEqual([list])
    expect(await client.subscribeAsync('resubscribe', { qos: 0 })).toEqual([])
    await client.unsubscribeAsync('resubscribe')
    expect(await client.subscribeAsync('resubscribe', { qos: 1 })).toMatchObject([
      { topic: 'resubscribe', qos: 1 },
    ])
    expect(
      await client.subscribeAsync({ c: { qos: 0 }, b: { qos: 0 }, resubscribe: false } as never),
    ).toMatchObject([{ topic: 'c' }])
  })

  it.each([[undefined], [5], [null], [[null]], [['a', 5]], [{ a: null }], [{ a: 1 }]])(
    'subscribe: %j is refused',
    async (topics) => {
      const { client, told } = await up(await tcp(), options)
      const [error, grants] = await answered((done) => client.subscribe(topics as never, done))
      expect(error).toMatchObject({ code: expect.stringMatching(/^ERR_INVALID_(?:TOPIC|OPTION)$/) })
      expect(grants).toBeUndefined()
      client.subscribe(topics as never)
      await toldOf(told, 'error')
      expect(await client.subscribeAsync('a', { qos: 0 })).toHaveLength(1)
    },
  )

  it('subscribe: a call that fails leaves filters as they were, also for the time after the end', async () => {
    const { client, told } = await up(await tcp(), options)
    await client.subscribeAsync('a', { qos: 0 })
    await expect(client.subscribeAsync(['a', 'bad#'], { qos: 1 })).rejects.toMatchObject({
      code: 'ERR_INVALID_TOPIC',
    })
    expect(await client.subscribeAsync('a', { qos: 0 })).toEqual([])
    await client.endAsync()
    client.reconnect()
    await toldOf(told, 'connect', 2)
    await eventually(async () => {
      await client.publishAsync('a', 'x', { qos: 1 })
      return namesIn(told).includes('message')
    }, 'a message')
  })

  it('unsubscribe: a filter, a list; with callback or promise', async () => {
    const client = await made()
    await client.subscribeAsync(['a', 'b', 'c'], { qos: 1 })
    const got: string[] = []
    client.on('message', (topic) => got.push(topic))
    expect(client.unsubscribe('a')).toBe(client)
    expect(await answered((done) => client.unsubscribe(['b'], done))).toMatchObject([
      null,
      { cmd: 'unsuback', granted: [0] },
    ])
    for (const topic of ['a', 'b', 'c']) await client.publishAsync(topic, 'x', { qos: 1 })
    await eventually(() => got.length > 0)
    expect(got).toEqual(['c'])
    expect(await client.unsubscribeAsync('c')).toMatchObject({ cmd: 'unsuback' })
    expect(await client.subscribeAsync('c', { qos: 1 })).toHaveLength(1)
  })

  it('packets leave in the order of the calls, within a turn and within a connect listener', async () => {
    const { client } = started(await tcp(), options)
    const packets = sentBy(client)
    const all = () =>
      client
        .subscribe('a', { qos: 1 })
        .publish('a', '0')
        .unsubscribe('a')
        .publish('a', '1', { qos: 1 })
    client.once('connect', all)
    const once = ['subscribe', 'publish', 'unsubscribe', 'publish']
    await eventually(() => packets.length === 5)
    all()
    await eventually(() => packets.length === 9)
    expect(packets.map(({ cmd }) => cmd)).toEqual(['connect', ...once, ...once])
  })

  it('subscribe and unsubscribe of one filter, one behind the other: both succeed, before the connection and with it', async () => {
    const { client } = started(await tcp(), options)
    const packets = sentBy(client)
    const round = () =>
      Promise.all([
        client.subscribeAsync(['a', 'b']),
        client.unsubscribeAsync('a'),
        client.subscribeAsync('a', { qos: 1 }),
        client.unsubscribeAsync(['a', 'b']),
      ])
    const both = ['subscribe', 'unsubscribe', 'subscribe', 'unsubscribe']
    for (const expected of [['connect', ...both], both]) {
      const [first, , second] = await within(round(), 'the calls')
      expect([first, second].map((grants) => grants.map(({ topic, qos }) => [topic, qos]))).toEqual(
        [
          [
            ['a', 0],
            ['b', 0],
          ],
          [['a', 1]],
        ],
      )
      expect(packets.splice(0).map(({ cmd }) => cmd)).toEqual(expected)
    }
  })

  it('subscribe and unsubscribe before a connection that never comes: both are told of the end', async () => {
    const { client } = started(`mqtt://127.0.0.1:${await freePort()}`, options)
    const calls = [
      client.subscribeAsync('a'),
      client.unsubscribeAsync('a'),
      client.subscribeAsync('a'),
    ]
    const settled = Promise.allSettled(calls)
    await client.endAsync()
    expect(
      (await within(settled, 'the calls')).map(
        (each) => (each as PromiseRejectedResult).reason.code,
      ),
    ).toEqual(['ERR_CLOSED', 'ERR_CLOSED', 'ERR_CLOSED'])
  })

  it('calls while there is no connection wait for the next; queueQoSZero: false refuses QoS 0', async () => {
    const way = await wayTo(await tcp())
    const { client, told } = await up(way.url, { ...options, queueQoSZero: false })
    await way.shut()
    await toldOf(told, 'close')
    await expect(client.publishAsync('a', '0')).rejects.toMatchObject({ code: 'ERR_NOT_CONNECTED' })
    const waiting = Promise.all([
      client.subscribeAsync('a', { qos: 1 }),
      client.publishAsync('a', '1', { qos: 1 }),
    ])
    await way.open()
    await within(waiting, 'the calls')
    await toldOf(told, 'message')
  })

  it('after end(): "client disconnecting", by callback, promise or error', async () => {
    const { client, told } = await up(await tcp(), options)
    client.end()
    const [error] = await answered((done) => client.publish('a', 'x', done))
    expect(error).toMatchObject({ message: 'client disconnecting', code: 'ERR_CLOSED' })
    await expect(client.subscribeAsync('a')).rejects.toThrow('client disconnecting')
    await expect(client.unsubscribeAsync('a')).rejects.toThrow('client disconnecting')
    client.publish('a', 'x')
    expect(told.at(-1)?.[0]).toBe('error')
    await toldOf(told, 'end')
  })

  it('end(true) settles what is in flight, too', async () => {
    const server = await refusing(0)
    const { client } = await up(server.url, options)
    const sent = client.publishAsync('a', 'x', { qos: 1 })
    const asked = client.subscribeAsync('a')
    await client.endAsync(true)
    await expect(sent).rejects.toMatchObject({ code: 'ERR_CLOSED' })
    await expect(asked).rejects.toMatchObject({ code: 'ERR_CLOSED' })
  })

  it('reconnect with stores is refused by name', async () => {
    const client = await made()
    expect(() => client.reconnect({ incomingStore: {} })).toThrow(
      expect.objectContaining({ code: 'ERR_UNSUPPORTED_OPTION', option: 'incomingStore' }),
    )
  })
})

describe('what the broker says', () => {
  const denied = async (protocolVersion: 4 | 5) => {
    const aedes = await Aedes.createBroker({
      authorizeSubscribe: (_client, subscription, done) =>
        done(null, subscription.topic.startsWith('denied') ? null : subscription),
    })
    const server = createServer(aedes.handle)
    const port = await listening(server)
    atEnd(() => closed(server))
    atEnd(() => new Promise<void>((resolve) => void aedes.close(() => resolve())))
    return (await up(`mqtt://127.0.0.1:${port}`, { ...soon, protocolVersion })).client
  }

  it.each([4, 5] as const)('a filter is refused, protocol version %d', async (protocolVersion) => {
    const client = await denied(protocolVersion)
    const [error, grants, packet] = (await answered((done) =>
      client.subscribe(['denied/a', 'b'], { qos: 1 }, done),
    )) as [ErrorWithReasonCode, ISubscriptionGrant[], { granted: number[] }]
    expect(error).toBeInstanceOf(ErrorWithReasonCode)
    expect(error.message).toMatch(/^Subscribe error: /)
    expect(error.code).toBeGreaterThanOrEqual(0x80)
    expect(grants.map(({ topic, qos }) => [topic, qos])).toEqual([
      ['denied/a', error.code],
      ['b', 1],
    ])
    expect(packet.granted).toEqual([error.code, 1])
    await expect(client.subscribeAsync('denied/b')).rejects.toMatchObject({ code: error.code })
    // Neither is there: each call asks again.
    await expect(client.subscribeAsync('denied/a')).rejects.toMatchObject({ code: error.code })
    expect(await client.subscribeAsync('b', { qos: 1 })).toEqual([])
  })
})

it('properties: go with a message, and come with it', async () => {
  const { client, told } = await up(await tcp(), { protocolVersion: 5 })
  await client.subscribeAsync('a', {
    qos: 1,
    nl: false,
    rap: true,
    rh: 1,
    properties: { subscriptionIdentifier: 7 },
  })
  const properties = {
    payloadFormatIndicator: true,
    messageExpiryInterval: 60,
    contentType: 'text/plain',
    responseTopic: 'b',
    correlationData: Buffer.from('id'),
    userProperties: { one: '1', many: ['2', '3'] },
  }
  await client.publishAsync('a', 'x', { qos: 1, properties })
  await toldOf(told, 'message')
  const packet = told.find(([event]) => event === 'message')?.[3] as {
    properties: typeof properties
  }
  expect(packet.properties).toMatchObject(properties)
  expect(Buffer.isBuffer(packet.properties.correlationData)).toBe(true)
})

it('properties: are ignored on 3.1.1, as MQTT.js does, and named in the log once', async () => {
  const lines: string[] = []
  const log = ((line: string) => lines.push(line)) as never
  const { client, told } = await up(await tcp(), {
    log,
  })
  const sent = sentBy(client)
  const properties = { userProperties: { a: 'b' } }
  for (let time = 0; time < 2; time++) {
    expect(
      await client.subscribeAsync('a', {
        qos: 1,
        nl: true,
        rap: true,
        rh: 2,
        properties: { subscriptionIdentifier: 7 },
      }),
    ).toEqual([{ topic: 'a', qos: 1 }])
    expect(await client.subscribeAsync({ b: { qos: 0, nl: true } }, { properties })).toEqual([
      { topic: 'b', qos: 0 },
    ])
    expect(
      await client.publishAsync('a', 'x', {
        qos: 1,
        properties: { topicAlias: 1, contentType: 'x' },
      }),
    ).not.toHaveProperty('properties')
    expect(await client.publishAsync('a', 'x', { properties })).toBeUndefined()
    await client.unsubscribeAsync(['a', 'b'], { properties })
  }
  expect(namesIn(told, 'message')).toEqual(['connect'])
  expect(sent.filter((packet) => 'properties' in packet)).toEqual([])
  expect(lines.filter((line) => line.includes('ignores'))).toEqual(
    [
      'subscribe({ properties })',
      'subscribe({ nl }), subscribe({ rap }), subscribe({ rh })',
      'publish({ properties })',
      'unsubscribe({ properties })',
    ].map((names) => `mqwire/compat ignores ${names}, as MQTT.js does`),
  )
})

it('properties: a topic alias cannot be chosen', async () => {
  const { client } = await up(await tcp(), { protocolVersion: 5 })
  await expect(
    client.publishAsync('a', 'x', { properties: { topicAlias: 1 } }),
  ).rejects.toMatchObject({ option: 'properties.topicAlias' })
})

it('properties: end with a reason and properties', async () => {
  const { client } = await up(await tcp(), {
    protocolVersion: 5,
    properties: { sessionExpiryInterval: 10 },
  })
  const sent = sentBy(client)
  await client.endAsync(false, {
    reasonCode: 4,
    properties: { sessionExpiryInterval: 5, userProperties: { a: 'b' } },
  })
  expect(sent.at(-1)).toMatchObject({
    cmd: 'disconnect',
    reasonCode: 4,
    properties: { sessionExpiryInterval: 5, userProperties: { a: 'b' } },
  })
})

it.each([{ reasonCode: 0x8b }, { properties: { contentType: 'x' } as never }])(
  'properties: end with %j, which there is not: an error, and the end',
  async (packet) => {
    const { client, told } = await up(await tcp(), { protocolVersion: 5 })
    const sent = sentBy(client)
    await expect(client.endAsync(packet)).rejects.toMatchObject({
      code: expect.stringMatching(/_OPTION$/),
    })
    expect(namesIn(told)).toEqual(['connect', 'close', 'end'])
    expect(sent).toEqual([expect.objectContaining({ cmd: 'disconnect' })])
    const other = await up(await tcp(), { protocolVersion: 5 })
    other.client.end(false, packet)
    await toldOf(other.told, 'error')
    expect(namesIn(other.told)).toEqual(['connect', 'close', 'end', 'error'])
  },
)

it('properties: end on 3.1.1 without them', async () => {
  const { client, told } = await up(await tcp())
  const sent = sentBy(client)
  await client.endAsync(false, { reasonCode: 4, properties: { userProperties: { a: 'b' } } })
  expect(namesIn(told)).toEqual(['connect', 'close', 'end'])
  expect(sent).toEqual([expect.objectContaining({ cmd: 'disconnect' })])
})
