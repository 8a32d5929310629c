/** SUBSCRIBE: what leaves, what comes back, what is refused here, and how a call ends. */
import { describe, expect, it } from 'vitest'
import type { Filters, SubscribeOptions } from '../../../src/client/api/index.js'
import { MqttError } from '../../../src/errors.js'
import type { Properties } from '../../../src/wire/packets.js'
import { accepting, agreeable, connected, World } from './harness.js'
import { agreed, goodbyeCode, obliging, publish, quiet, read, subscribe } from './incoming.js'

/** Without identifiers the bytes of SUBSCRIBE are known beforehand. */
const plain: Properties = { subscriptionIdentifierAvailable: 0 }

/** Bytes that came in after CONNECT. */
async function bytesOfSubscribe(filters: Filters, options?: SubscribeOptions): Promise<number[]> {
  const world = await connected({}, accepting(plain))
  const before = world.peer.bytes.length
  world.client.subscription(filters, options)
  await world.settle()
  return world.peer.bytes.slice(before)
}

describe('what leaves', () => {
  it.each([0, 1, 2] as const)('[MQTT-3.8.1-1] [MQTT-3.8.3-1] [MQTT-3.8.3-2] one filter at QoS %i', async (qos) => {
    expect(await bytesOfSubscribe('a/b', { qos })).toEqual([0x82, 9, 0, 1, 0, 0, 3, 0x61, 0x2f, 0x62, qos])
    const world = await agreed()
    const subscription = await subscribe(world, 'a/b', { qos })
    expect(subscription.granted).toEqual([{ filter: 'a/b', qos, reasonCode: qos, reasonName: `Granted QoS ${qos}`, error: undefined }])
    expect(world.peer.last('subscribe').packetId).toBeGreaterThan(0)
  })

  it('subscribe() and subscription() send the same bytes, and ready gives the subscription', async () => {
    const world = await connected({}, accepting(plain))
    const before = world.peer.bytes.length
    const waiting = world.client.subscribe('a/b', { qos: 1 })
    waiting.catch(() => undefined)
    await world.settle()
    expect(world.peer.bytes.slice(before)).toEqual(await bytesOfSubscribe('a/b', { qos: 1 }))
    const other = await agreed()
    const subscription = other.client.subscription('x')
    await other.settle()
    expect(await subscription.ready).toBe(subscription)
  })

  it('the default QoS of a subscription is 0 and every option byte is exact ([MQTT-3.8.3-5])', async () => {
    const optionByte = async (options: SubscribeOptions) => (await bytesOfSubscribe('a', options)).at(-1)
    expect(await optionByte({})).toBe(0)
    expect(await optionByte({ noLocal: true })).toBe(4)
    expect(await optionByte({ retainAsPublished: true })).toBe(8)
    expect(await optionByte({ retainHandling: 1 })).toBe(0x10)
    expect(await optionByte({ retainHandling: 2 })).toBe(0x20)
    expect(await optionByte({ qos: 2, noLocal: true, retainAsPublished: true, retainHandling: 2 })).toBe(0x2e)
  })

  it('[MQTT-3.9.3-1] a list is one packet, options per filter, codes mapped by position', async () => {
    const world = await connected()
    const promise = world.client.subscribe(['a', { filter: 'b', qos: 2, noLocal: true }, { filter: 'c/#', retainHandling: 1 }], { qos: 1 })
    await world.settle()
    const sent = world.peer.all('subscribe')
    expect(sent.map((packet) => packet.subscriptions)).toEqual([
      [
        { filter: 'a', qos: 1, noLocal: false, retainAsPublished: false, retainHandling: 0 },
        { filter: 'b', qos: 2, noLocal: true, retainAsPublished: false, retainHandling: 0 },
        { filter: 'c/#', qos: 1, noLocal: false, retainAsPublished: false, retainHandling: 1 },
      ],
    ])
    await world.send({ type: 'suback', packetId: sent[0]?.packetId ?? 0, reasonCodes: [1, 2, 0] })
    expect((await promise).granted.map((grant) => [grant.filter, grant.qos])).toEqual([
      ['a', 1],
      ['b', 2],
      ['c/#', 0],
    ])
  })

  it('user properties are on the wire', async () => {
    const world = await agreed()
    await subscribe(world, 'a', {
      properties: {
        userProperties: [
          ['k', '1'],
          ['k', '2'],
        ],
      },
    })
    expect(world.peer.last('subscribe').properties.userProperties).toEqual([
      ['k', '1'],
      ['k', '2'],
    ])
  })

  it.each([1, 268_435_455])('Subscription Identifier %i', async (subscriptionIdentifier) => {
    const world = await agreed()
    await subscribe(world, 'a', { properties: { subscriptionIdentifier } })
    expect(world.peer.last('subscribe').properties.subscriptionIdentifiers).toEqual([subscriptionIdentifier])
  })

  it('also seen: brokers that limit the filters of one SUBSCRIBE: more filters than maxFiltersPerSubscribe: several packets, one identifier, one answer for the caller', async () => {
    const world = await connected({ maxFiltersPerSubscribe: 2 })
    const promise = world.client.subscribe(['a', 'b', 'c', 'd', 'e'], { qos: 1 })
    await world.settle()
    const sent = world.peer.all('subscribe')
    expect(sent.map((packet) => packet.subscriptions.map((item) => item.filter))).toEqual([['a', 'b'], ['c', 'd'], ['e']])
    expect(new Set(sent.map((packet) => packet.packetId)).size).toBe(3)
    expect(new Set(sent.flatMap((packet) => packet.properties.subscriptionIdentifiers ?? [])).size).toBe(1)
    // Answered in another order.
    const ids = sent.map((packet) => packet.packetId)
    await world.send({ type: 'suback', packetId: ids[2] ?? 0, reasonCodes: [0] }, { type: 'suback', packetId: ids[0] ?? 0, reasonCodes: [1, 0x87] })
    expect(await world.outcome(promise)).toEqual({ state: 'pending' })
    await world.send({ type: 'suback', packetId: ids[1] ?? 0, reasonCodes: [1, 1] })
    expect((await promise).granted.map((grant) => [grant.filter, grant.reasonCode])).toEqual([
      ['a', 1],
      ['b', 0x87],
      ['c', 1],
      ['d', 1],
      ['e', 0],
    ])
  })
})

describe('what is refused before a byte is sent', () => {
  async function refused(filters: unknown, options?: unknown, connack: Properties = {}): Promise<unknown> {
    const world = await connected({}, accepting(connack))
    const before = world.peer.bytes.length
    const outcome = await world.outcome(world.client.subscribe(filters as Filters, options as SubscribeOptions))
    expect(world.peer.bytes.length).toBe(before)
    expect(world.client.state).toBe('connected')
    return outcome.state === 'rejected' ? outcome.error : outcome
  }

  it.each([0, 268_435_456, 1.5, -1, '1'])('Subscription Identifier %s', async (subscriptionIdentifier) => {
    expect(await refused('a', { properties: { subscriptionIdentifier } })).toMatchObject({ code: 'ERR_INVALID_OPTION', outcome: 'not-sent' })
  })

  it.each([
    ['wildcards', 'a/+', {}, { wildcardSubscriptionAvailable: 0 }, 'ERR_WILDCARD_SUBS_UNSUPPORTED'],
    ['wildcards', 'a/#', {}, { wildcardSubscriptionAvailable: 0 }, 'ERR_WILDCARD_SUBS_UNSUPPORTED'],
    ['shared', '$share/g/a', {}, { sharedSubscriptionAvailable: 0 }, 'ERR_SHARED_SUBS_UNSUPPORTED'],
    ['identifiers', 'a', { properties: { subscriptionIdentifier: 7 } }, plain, 'ERR_SUBSCRIPTION_IDS_UNSUPPORTED'],
  ] as const)('the server offers no %s: %s', async (_what, filter, options, connack, code) => {
    expect(await refused(filter, options, connack)).toMatchObject({ code, outcome: 'not-sent' })
  })

  it('what the server does offer still goes', async () => {
    const world = await connected({}, (packet) =>
      packet.type === 'connect'
        ? {
            type: 'connack',
            sessionPresent: false,
            reasonCode: 0,
            properties: { wildcardSubscriptionAvailable: 0, sharedSubscriptionAvailable: 0, subscriptionIdentifierAvailable: 0 },
          }
        : agreeable(packet),
    )
    await subscribe(world, 'a/b')
    expect(world.peer.last('subscribe').properties.subscriptionIdentifiers).toBeUndefined()
    expect(world.peer.last('subscribe').subscriptions[0]?.filter).toBe('a/b')
  })

  it('[MQTT-3.8.3-4] No Local on a shared subscription', async () => {
    expect(await refused('$share/g/a', { noLocal: true })).toMatchObject({ code: 'ERR_INVALID_OPTION', outcome: 'not-sent' })
  })

  it.each([
    '#/a',
    'a#',
    'a/#/b',
    '+a',
    'a+',
    '',
    'a\0',
    'x'.repeat(65_536),
    '\ud800',
    '$share/',
    '$share/g',
    '$share/g/',
    '$share//a',
    '$share/+/a',
    '$share/#/a',
  ])('[MQTT-4.7.1-1] [MQTT-4.7.1-2] [MQTT-4.7.3-1] [MQTT-4.7.3-2] [MQTT-4.7.3-3] [MQTT-4.8.2-1] [MQTT-4.8.2-2] bad filter %j', async (filter) => {
    expect(await refused(filter)).toMatchObject({ code: 'ERR_INVALID_TOPIC', outcome: 'not-sent' })
    expect(await refused(['good', filter])).toMatchObject({ code: 'ERR_INVALID_TOPIC' })
  })

  it('an empty list', async () => {
    expect(await refused([])).toMatchObject({ code: 'ERR_INVALID_OPTION', outcome: 'not-sent' })
  })

  it.each([
    ['qos', { qos: 3 }],
    ['retainHandling', { retainHandling: 3 }],
    ['ack', { ack: 'never' }],
    ['buffer', { buffer: 0 }],
    ['bufferBytes', { bufferBytes: -1 }],
    ['overflow', { overflow: 'explode' }],
    ['onExit', { onExit: 'stay' }],
    ['lifetime', { lifetime: 'rented' }],
    ['onDrop', { onDrop: 1 }],
    ['until', { until: {} }],
  ])('an option that is none: %s', async (option, options) => {
    expect(await refused('a', options)).toMatchObject({ code: 'ERR_INVALID_OPTION', option })
  })

  it.each([5, null, {}, { filter: 5 }, [['a']]])('a filter that is none: %j', async (filter) => {
    const error = await refused(filter)
    expect(MqttError.is(error)).toBe(true)
  })

  it('subscription() throws at once, and leaves nothing behind', async () => {
    const world = await agreed()
    expect(() => world.client.subscription('a#')).toThrow(expect.objectContaining({ code: 'ERR_INVALID_TOPIC' }))
    await world.settle()
    expect(world.peer.all('subscribe')).toEqual([])
  })

  it('a SUBSCRIBE larger than the server takes, but for smaller ones', async () => {
    const world = await connected({}, (packet) =>
      packet.type === 'connect'
        ? { type: 'connack', sessionPresent: false, reasonCode: 0, properties: { maximumPacketSize: 64 } }
        : agreeable(packet),
    )
    const outcome = await world.outcome(world.client.subscribe('x'.repeat(64)))
    expect(outcome).toMatchObject({ state: 'rejected', error: { code: 'ERR_PACKET_TOO_LARGE', outcome: 'not-sent' } })
    await subscribe(world, 'y')
    expect(world.peer.all('subscribe').map((packet) => packet.subscriptions[0]?.filter)).toEqual(['y'])
  })
})

describe('the answer', () => {
  /** A client whose SUBSCRIBE is answered with these codes. */
  const answering = (...reasonCodes: number[]) =>
    connected({}, (packet) => (packet.type === 'subscribe' ? { type: 'suback', packetId: packet.packetId, reasonCodes } : agreeable(packet)))

  it('[MQTT-3.8.4-7] granted lower than asked: resolves, and the grant shows', async () => {
    const world = await answering(0)
    const subscription = await subscribe(world, 'a', { qos: 2 })
    expect(subscription.granted).toMatchObject([{ filter: 'a', qos: 0, reasonCode: 0, error: undefined }])
  })

  it('requireQos refuses a downgrade, and leaves nothing on the broker', async () => {
    const world = await answering(1, 0)
    const promise = world.client.subscribe(['a', 'b'], { qos: 1, requireQos: true })
    expect(await world.outcome(promise)).toMatchObject({ state: 'rejected', error: { code: 'ERR_SUBSCRIBE_REFUSED', outcome: 'refused' } })
    expect(world.peer.all('unsubscribe').map((packet) => packet.filters)).toEqual([['a', 'b']])
  })

  it('requireQos accepts what was asked', async () => {
    const world = await answering(1)
    expect((await subscribe(world, 'a', { qos: 1, requireQos: true })).granted[0]?.qos).toBe(1)
  })

  it('[MQTT-3.8.4-6] of two filters one is refused; only that one fails, with a typed error', async () => {
    const world = await answering(0, 0x87)
    const subscription = await subscribe(world, ['good', 'bad'])
    expect(subscription.granted[0]).toMatchObject({ filter: 'good', qos: 0, error: undefined })
    expect(subscription.granted[1]).toMatchObject({ filter: 'bad', qos: undefined, reasonCode: 0x87, reasonName: 'Not authorized' })
    expect(subscription.granted[1]?.error).toMatchObject({ code: 'ERR_SUBSCRIBE_REFUSED', outcome: 'refused', fault: 'remote', reasonCode: 0x87 })
    const reading = read(subscription)
    await world.send(publish('good', 'yes'), publish('bad', 'no'))
    expect(reading.texts).toEqual(['yes'])
    expect(world.seen('unclaimed')).toHaveLength(1)
  })

  it.each([0x80, 0x83, 0x87, 0x8f, 0x91, 0x97, 0x9e, 0xa1, 0xa2])(
    '[MQTT-3.9.3-2] every filter refused with %i: rejects, ends, sends no UNSUBSCRIBE',
    async (reasonCode) => {
      const world = await answering(reasonCode)
      const subscription = world.client.subscription('a')
      const reading = read(subscription)
      await world.settle()
      const expected = { code: 'ERR_SUBSCRIBE_REFUSED', outcome: 'refused', fault: 'remote', reasonCode }
      await expect(subscription.ready).rejects.toMatchObject(expected)
      expect(reading.end).toMatchObject({ state: 'failed', error: expected })
      expect(world.peer.all('unsubscribe')).toEqual([])
      expect(world.client.state).toBe('connected')
      // Nothing is left: the next call is a first one.
      const again = world.client.subscribe('a')
      again.catch(() => undefined)
      await world.settle()
      // A Packet Identifier that is in use gets a second try.
      expect(world.peer.all('subscribe')).toHaveLength(reasonCode === 0x91 ? 4 : 2)
    },
  )

  it.each([
    ['none', []],
    ['fewer', [0]],
    ['more', [0, 0, 0]],
  ])('[MQTT-3.8.4-6] SUBACK with %s codes', async (_what, codes) => {
    const world = await connected()
    const call = quiet(world.client.subscribe(['a', 'b']))
    await world.settle()
    const { packetId } = world.peer.last('subscribe')
    await world.sendBytes([0x90, 3 + codes.length, packetId >> 8, packetId & 0xff, 0, ...codes])
    expect(await world.outcome(call)).toMatchObject({ state: 'rejected', error: { outcome: 'unknown' } })
    expect(goodbyeCode(world)).toSatisfy((code) => code === 0x82 || (codes.length === 0 && code === 0x81))
    expect(world.client.state).toBe('closed')
  })

  it('SUBACK for an unknown identifier is ignored', async () => {
    const world = await agreed()
    await world.send({ type: 'suback', packetId: 99, reasonCodes: [0, 1] })
    expect(world.client.state).toBe('connected')
    expect((await subscribe(world, 'a')).granted).toHaveLength(1)
  })

  it('[MQTT-3.8.4-2] answers are matched by identifier, not by order', async () => {
    const world = await connected()
    const first = world.client.subscribe('a', { qos: 1 })
    const second = world.client.subscribe('b', { qos: 1 })
    await world.settle()
    const [a, b] = world.peer.all('subscribe').map((packet) => packet.packetId)
    await world.send({ type: 'suback', packetId: b ?? 0, reasonCodes: [0] })
    expect(await world.outcome(first)).toEqual({ state: 'pending' })
    expect((await second).granted[0]?.qos).toBe(0)
    await world.send({ type: 'suback', packetId: a ?? 0, reasonCodes: [1] })
    expect((await first).granted[0]?.qos).toBe(1)
  })

  it.each([0x03, 0x7f, 0x81, 0xff])('[MQTT-3.9.3-2] SUBACK with code %i: close(0x81/0x82)', async (code) => {
    const world = await connected()
    const call = quiet(world.client.subscribe('a'))
    await world.settle()
    await world.sendBytes([0x90, 4, 0, world.peer.last('subscribe').packetId, 0, code])
    expect(goodbyeCode(world)).toSatisfy((sent) => sent === 0x81 || sent === 0x82)
    expect(await world.outcome(call)).toMatchObject({ state: 'rejected' })
  })

  it('the connection drops before SUBACK: rejected once, outcome unknown', async () => {
    const world = await connected()
    const subscription = world.client.subscription('a')
    const reading = read(subscription)
    await world.settle()
    world.peer.cut()
    await world.settle()
    await expect(subscription.ready).rejects.toMatchObject({ code: 'ERR_CONNECTION_LOST', outcome: 'unknown' })
    expect(reading.end).toMatchObject({ state: 'failed', error: { code: 'ERR_CONNECTION_LOST' } })
  })
})

describe('when', () => {
  it('subscription() before connect() is sent after CONNACK and gets what comes', async () => {
    const world = new World()
    world.answer = agreeable
    const subscription = world.client.subscription('a', { qos: 1 })
    expect(subscription.granted).toEqual([])
    const reading = read(subscription)
    const connecting = world.client.connect()
    await world.settle()
    await connecting
    expect(world.peer.received.map((packet) => packet.type)).toEqual(['connect', 'subscribe'])
    expect((await subscription.ready).granted[0]?.qos).toBe(1)
    await world.send(publish('a', 'x', 1))
    expect(reading.texts).toEqual(['x'])
  })

  it('subscription() before a connect() that fails: ready rejects, the reader ends', async () => {
    const world = new World()
    world.answer = (packet) => (packet.type === 'connect' ? { type: 'connack', sessionPresent: false, reasonCode: 0x87, properties: {} } : undefined)
    const subscription = world.client.subscription('a')
    const reading = read(subscription)
    await world.outcome(world.client.connect())
    await expect(subscription.ready).rejects.toMatchObject({ code: 'ERR_CONNECT_REFUSED' })
    expect(reading.end.state).toBe('failed')
  })

  it('subscription() before connect() to a server that does not offer it', async () => {
    const world = new World()
    world.answer = accepting({ sharedSubscriptionAvailable: 0 })
    const subscription = world.client.subscription('$share/g/a')
    const connecting = world.client.connect()
    await world.settle()
    await connecting
    await expect(subscription.ready).rejects.toMatchObject({ code: 'ERR_SHARED_SUBS_UNSUPPORTED' })
    expect(world.peer.all('subscribe')).toEqual([])
  })

  it('inside a connect listener and inside a message handler', async () => {
    const world = new World()
    world.answer = obliging
    let fromListener: Promise<unknown> | undefined
    world.client.on('connect', () => {
      fromListener = world.client.subscribe('in/connect')
    })
    const connecting = world.client.connect()
    await world.settle()
    await connecting
    await fromListener
    let fromHandler: Promise<unknown> | undefined
    const handling = world.client.listen(
      'a',
      async () => {
        fromHandler = world.client.subscribe('in/handler')
        await fromHandler
      },
      { qos: 1 },
    )
    await world.settle()
    await handling
    await world.send(publish('a', 'x', 1))
    await fromHandler
    expect(world.peer.all('subscribe').map((packet) => packet.subscriptions[0]?.filter)).toEqual(['in/connect', 'a', 'in/handler'])
    expect(world.peer.all('puback').map((packet) => packet.packetId)).toEqual([1])
  })

  it('after the end: ERR_CLOSED', async () => {
    const world = await agreed()
    const done = world.client.disconnect()
    await world.settle()
    await done
    expect(await world.outcome(world.client.subscribe('a'))).toMatchObject({ state: 'rejected', error: { code: 'ERR_CLOSED' } })
    expect(() => world.client.subscription('a')).toThrow(expect.objectContaining({ code: 'ERR_CLOSED' }))
  })
})
