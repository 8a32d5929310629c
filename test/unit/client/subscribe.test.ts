/** SUBSCRIBE: what leaves, what comes back, what is refused here, and how a call ends. */
import { describe, expect, it } from 'vitest'
import type { Filters, SubscribeOptions, Subscription } from '../../../src/client/api/index.js'
import type { Properties } from '../../../src/wire/packets.js'
import { accepting, agreeable, connected, failure, World } from './harness.js'
import { agreed, goodbyeCode, obliging, publish, quiet, read, subscribe } from './incoming.js'
import { refusing, welcoming } from './rig.js'

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

/** Filters of each SUBSCRIBE. */
const sent = (world: World) =>
  world.peer
    .all('subscribe')
    .map(({ subscriptions }) => subscriptions.map(({ filter }) => filter).join(' '))

/** Identifiers of each SUBSCRIBE. */
const ids = (world: World) => world.peer.all('subscribe').map(({ packetId }) => packetId)

/** What was granted, in short. */
const grants = ({ granted }: Subscription) =>
  granted.map(({ filter, reasonCode }) => `${filter} ${reasonCode}`)

describe('what leaves', () => {
  it.each([0, 1, 2] as const)(
    '[MQTT-3.8.1-1] [MQTT-3.8.3-1] [MQTT-3.8.3-2] one filter at QoS %i',
    async (qos) => {
      expect(await bytesOfSubscribe('a/b', { qos })).toEqual([
        0x82,
        9,
        0,
        1,
        0,
        0,
        3,
        0x61,
        0x2f,
        0x62,
        qos,
      ])
      const world = await agreed()
      const grant = {
        filter: 'a/b',
        qos,
        reasonCode: qos,
        reasonName: `Granted QoS ${qos}`,
        error: undefined,
      }
      expect((await subscribe(world, 'a/b', { qos })).granted).toEqual([grant])
      expect(world.peer.last('subscribe').packetId).toBeGreaterThan(0)
    },
  )

  it('subscribe() and subscription() send the same bytes, and ready gives the subscription', async () => {
    const world = await connected({}, accepting(plain))
    const before = world.peer.bytes.length
    quiet(world.client.subscribe('a/b', { qos: 1 }))
    await world.settle()
    expect(world.peer.bytes.slice(before)).toEqual(await bytesOfSubscribe('a/b', { qos: 1 }))
    const other = await agreed()
    const subscription = other.client.subscription('x')
    await other.settle()
    expect(await subscription.ready).toBe(subscription)
  })

  it('the default QoS of a subscription is 0 and every option byte is exact ([MQTT-3.8.3-5])', async () => {
    const optionByte = async (options: SubscribeOptions) =>
      (await bytesOfSubscribe('a', options)).at(-1)
    expect(await optionByte({})).toBe(0)
    expect(await optionByte({ noLocal: true })).toBe(4)
    expect(await optionByte({ retainAsPublished: true })).toBe(8)
    expect(await optionByte({ retainHandling: 1 })).toBe(0x10)
    expect(await optionByte({ retainHandling: 2 })).toBe(0x20)
    const all = { qos: 2, noLocal: true, retainAsPublished: true, retainHandling: 2 } as const
    expect(await optionByte(all)).toBe(0x2e)
  })

  it('[MQTT-3.9.3-1] a list is one packet, options per filter, codes mapped by position', async () => {
    const world = await connected()
    const filters: Filters = [
      'a',
      { filter: 'b', qos: 2, noLocal: true },
      { filter: 'c/#', retainHandling: 1 },
    ]
    const promise = world.client.subscribe(filters, { qos: 1 })
    await world.settle()
    const defaults = { qos: 1, noLocal: false, retainAsPublished: false, retainHandling: 0 }
    expect(world.peer.all('subscribe').map(({ subscriptions }) => subscriptions)).toEqual([
      [
        { ...defaults, filter: 'a' },
        { ...defaults, filter: 'b', qos: 2, noLocal: true },
        { ...defaults, filter: 'c/#', retainHandling: 1 },
      ],
    ])
    await world.send({ type: 'suback', packetId: ids(world)[0] ?? 0, reasonCodes: [1, 2, 0] })
    expect(grants(await promise)).toEqual(['a 1', 'b 2', 'c/# 0'])
  })

  it('user properties and the lowest and highest Subscription Identifier are on the wire', async () => {
    for (const subscriptionIdentifier of [1, 268_435_455]) {
      const world = await agreed()
      const userProperties: [string, string][] = ['1', '2'].map((value) => ['k', value])
      await subscribe(world, 'a', { properties: { userProperties, subscriptionIdentifier } })
      const expected = { userProperties, subscriptionIdentifiers: [subscriptionIdentifier] }
      expect(world.peer.last('subscribe').properties).toEqual(expected)
    }
  })

  it('also seen: brokers that limit the filters of one SUBSCRIBE: more filters than maxFiltersPerSubscribe: several packets, one identifier, one answer for the caller', async () => {
    const world = await connected({ maxFiltersPerSubscribe: 2 })
    const promise = world.client.subscribe(['a', 'b', 'c', 'd', 'e'], { qos: 1 })
    await world.settle()
    expect(sent(world)).toEqual(['a b', 'c d', 'e'])
    const [first = 0, second = 0, third = 0] = ids(world)
    expect(new Set(ids(world)).size).toBe(3)
    const identifiers = world.peer
      .all('subscribe')
      .flatMap(({ properties }) => properties.subscriptionIdentifiers ?? [])
    expect(new Set(identifiers).size).toBe(1)
    // Answered in another order.
    await world.send({ type: 'suback', packetId: third, reasonCodes: [0] })
    await world.send({ type: 'suback', packetId: first, reasonCodes: [1, 0x87] })
    expect(await world.outcome(promise)).toEqual({ state: 'pending' })
    await world.send({ type: 'suback', packetId: second, reasonCodes: [1, 1] })
    expect(grants(await promise)).toEqual(['a 1', 'b 135', 'c 1', 'd 1', 'e 0'])
  })
})

describe('what is refused before a byte is sent', () => {
  async function refused(
    filters: unknown,
    options?: unknown,
    connack: Properties = {},
  ): Promise<unknown> {
    const world = await connected({}, accepting(connack))
    const before = world.peer.bytes.length
    const outcome = await world.outcome(
      world.client.subscribe(filters as Filters, options as SubscribeOptions),
    )
    expect(world.peer.bytes.length).toBe(before)
    expect(world.client.state).toBe('connected')
    return outcome.state === 'rejected' ? outcome.error : outcome
  }

  it.each([
    ['wildcards', 'a/+', {}, { wildcardSubscriptionAvailable: 0 }, 'ERR_WILDCARD_SUBS_UNSUPPORTED'],
    ['wildcards', 'a/#', {}, { wildcardSubscriptionAvailable: 0 }, 'ERR_WILDCARD_SUBS_UNSUPPORTED'],
    ['shared', '$share/g/a', {}, { sharedSubscriptionAvailable: 0 }, 'ERR_SHARED_SUBS_UNSUPPORTED'],
    [
      'identifiers',
      'a',
      { properties: { subscriptionIdentifier: 7 } },
      plain,
      'ERR_SUBSCRIPTION_IDS_UNSUPPORTED',
    ],
  ] as const)('the server offers no %s: %s', async (_what, filter, options, connack, code) => {
    expect(await refused(filter, options, connack)).toMatchObject({ code, outcome: 'not-sent' })
  })

  it('what the server does offer still goes', async () => {
    const few = { wildcardSubscriptionAvailable: 0, sharedSubscriptionAvailable: 0, ...plain }
    const world = await connected({}, welcoming(few))
    await subscribe(world, 'a/b')
    expect(world.peer.last('subscribe').properties.subscriptionIdentifiers).toBeUndefined()
    expect(sent(world)).toEqual(['a/b'])
  })

  it('[MQTT-3.8.3-4] No Local on a shared subscription', async () => {
    expect(await refused('$share/g/a', { noLocal: true })).toMatchObject({
      code: 'ERR_INVALID_OPTION',
      outcome: 'not-sent',
    })
  })

  it.each(['a#', '', '$share/+/a'])('bad filter %j, alone and in a list', async (filter) => {
    expect(await refused(filter)).toMatchObject({ code: 'ERR_INVALID_TOPIC', outcome: 'not-sent' })
    expect(await refused(['good', filter])).toMatchObject({ code: 'ERR_INVALID_TOPIC' })
  })

  it('subscription() throws at once, and leaves nothing behind', async () => {
    const world = await agreed()
    expect(() => world.client.subscription('a#')).toThrow(
      expect.objectContaining({ code: 'ERR_INVALID_TOPIC' }),
    )
    await world.settle()
    expect(sent(world)).toEqual([])
  })

  it('a SUBSCRIBE larger than the server takes, but for smaller ones', async () => {
    const world = await connected({}, welcoming({ maximumPacketSize: 64 }))
    const error = { code: 'ERR_PACKET_TOO_LARGE', outcome: 'not-sent' }
    expect(await world.outcome(world.client.subscribe('x'.repeat(64)))).toMatchObject({
      state: 'rejected',
      error,
    })
    await subscribe(world, 'y')
    expect(sent(world)).toEqual(['y'])
  })
})

describe('the answer', () => {
  /** A client whose SUBSCRIBE is answered with these codes. */
  const answering = (...reasonCodes: number[]) =>
    connected({}, (packet) =>
      packet.type === 'subscribe'
        ? { type: 'suback', packetId: packet.packetId, reasonCodes }
        : agreeable(packet),
    )

  it('[MQTT-3.8.4-7] granted lower than asked: resolves, and the grant shows', async () => {
    const { granted } = await subscribe(await answering(0), 'a', { qos: 2 })
    expect(granted).toMatchObject([{ filter: 'a', qos: 0, reasonCode: 0, error: undefined }])
  })

  it('requireQos refuses a downgrade and leaves nothing on the broker, and accepts what was asked', async () => {
    const world = await answering(1, 0)
    const promise = world.client.subscribe(['a', 'b'], { qos: 1, requireQos: true })
    const error = { code: 'ERR_SUBSCRIBE_REFUSED', outcome: 'refused' }
    expect(await world.outcome(promise)).toMatchObject({ state: 'rejected', error })
    expect(world.peer.all('unsubscribe').map((packet) => packet.filters)).toEqual([['a', 'b']])
    expect(grants(await subscribe(await answering(1), 'a', { qos: 1, requireQos: true }))).toEqual([
      'a 1',
    ])
  })

  it('[MQTT-3.8.4-6] of two filters one is refused; only that one fails, with a typed error', async () => {
    const world = await answering(0, 0x87)
    const subscription = await subscribe(world, ['good', 'bad'])
    const error = {
      code: 'ERR_SUBSCRIBE_REFUSED',
      outcome: 'refused',
      fault: 'remote',
      reasonCode: 0x87,
    }
    expect(subscription.granted).toMatchObject([
      { filter: 'good', qos: 0, error: undefined },
      { filter: 'bad', qos: undefined, reasonCode: 0x87, reasonName: 'Not authorized', error },
    ])
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
      const error = {
        code: 'ERR_SUBSCRIBE_REFUSED',
        outcome: 'refused',
        fault: 'remote',
        reasonCode,
      }
      await expect(subscription.ready).rejects.toMatchObject(error)
      expect(reading.end).toMatchObject({ state: 'failed', error })
      expect(world.peer.all('unsubscribe')).toEqual([])
      expect(world.client.state).toBe('connected')
      // Nothing is left: the next call is a first one. A Packet Identifier that is in use gets a second try.
      quiet(world.client.subscribe('a'))
      await world.settle()
      expect(sent(world)).toHaveLength(reasonCode === 0x91 ? 4 : 2)
    },
  )

  it.each([[], [0], [0, 0, 0], [0, 0x03], [0, 0x7f], [0, 0x81], [0, 0xff]])(
    '[MQTT-3.8.4-6] [MQTT-3.9.3-2] SUBACK with codes %j for two filters: close(0x81/0x82)',
    async (...codes) => {
      const world = await connected()
      const call = quiet(world.client.subscribe(['a', 'b']))
      await world.settle()
      await world.sendBytes([
        0x90,
        3 + codes.length,
        0,
        world.peer.last('subscribe').packetId,
        0,
        ...codes,
      ])
      expect(await world.outcome(call)).toMatchObject({
        state: 'rejected',
        error: { outcome: 'unknown' },
      })
      const miscounted = codes.length === 1 || codes.length === 3
      expect(goodbyeCode(world)).toSatisfy(
        (code) => code === 0x82 || (!miscounted && code === 0x81),
      )
      expect(world.client.state).toBe('closed')
    },
  )

  it('SUBACK for an unknown identifier is ignored', async () => {
    const world = await agreed()
    await world.send({ type: 'suback', packetId: 99, reasonCodes: [0, 1] })
    expect(world.client.state).toBe('connected')
    expect((await subscribe(world, 'a')).granted).toHaveLength(1)
  })

  it('[MQTT-3.8.4-2] answers are matched by identifier, not by order', async () => {
    const world = await connected()
    const [first, second] = ['a', 'b'].map((filter) =>
      world.client.subscribe(filter, { qos: 1 }),
    ) as [Promise<Subscription>, Promise<Subscription>]
    await world.settle()
    const [a = 0, b = 0] = ids(world)
    await world.send({ type: 'suback', packetId: b, reasonCodes: [0] })
    expect(await world.outcome(first)).toEqual({ state: 'pending' })
    expect(grants(await second)).toEqual(['b 0'])
    await world.send({ type: 'suback', packetId: a, reasonCodes: [1] })
    expect(grants(await first)).toEqual(['a 1'])
  })

  it('the connection drops before SUBACK: rejected once, outcome unknown', async () => {
    const world = await connected()
    const subscription = world.client.subscription('a')
    const reading = read(subscription)
    await world.settle()
    world.peer.cut()
    await world.settle()
    await expect(subscription.ready).rejects.toMatchObject({
      code: 'ERR_CONNECTION_LOST',
      outcome: 'unknown',
    })
    expect(reading.end).toMatchObject({ state: 'failed', error: { code: 'ERR_CONNECTION_LOST' } })
  })
})

describe('when', () => {
  /** A client that is not connected yet, and how it connects. */
  function idle(answer = agreeable): {
    readonly world: World
    readonly connect: () => Promise<unknown>
  } {
    const world = new World()
    world.answer = answer
    return { world, connect: () => world.outcome(world.client.connect()) }
  }

  it('subscription() before connect() is sent after CONNACK and gets what comes', async () => {
    const { world, connect } = idle()
    const subscription = world.client.subscription('a', { qos: 1 })
    expect(subscription.granted).toEqual([])
    const reading = read(subscription)
    await connect()
    expect(world.peer.received.map((packet) => packet.type)).toEqual(['connect', 'subscribe'])
    expect(grants(await subscription.ready)).toEqual(['a 1'])
    await world.send(publish('a', 'x', 1))
    expect(reading.texts).toEqual(['x'])
  })

  it('subscription() before a connect() that fails, or to a server that does not offer it: ready rejects, the reader ends', async () => {
    for (const [answer, code] of [
      [refusing(0x87), 'ERR_CONNECT_REFUSED'],
      [accepting({ sharedSubscriptionAvailable: 0 }), 'ERR_SHARED_SUBS_UNSUPPORTED'],
    ] as const) {
      const { world, connect } = idle(answer)
      const subscription = world.client.subscription('$share/g/a')
      const reading = read(subscription)
      await connect()
      expect(await failure(subscription.ready)).toMatchObject({ code })
      expect([reading.end.state, sent(world)]).toEqual(['failed', []])
    }
  })

  it('inside a connect listener and inside a message handler', async () => {
    const { world, connect } = idle(obliging)
    const inside: Promise<unknown>[] = []
    world.client.on('connect', () => void inside.push(world.client.subscribe('in/connect')))
    await connect()
    const handler = async (): Promise<void> => {
      inside.push(world.client.subscribe('in/handler'))
      await inside.at(-1)
    }
    quiet(world.client.listen('a', handler, { qos: 1 }))
    await world.settle()
    await world.send(publish('a', 'x', 1))
    expect(await Promise.all(inside)).toHaveLength(2)
    expect(sent(world)).toEqual(['in/connect', 'a', 'in/handler'])
    expect(world.peer.all('puback').map((packet) => packet.packetId)).toEqual([1])
  })

  it('after the end: ERR_CLOSED', async () => {
    const world = await agreed()
    await Promise.all([world.client.disconnect(), world.settle()])
    expect(await failure(world.client.subscribe('a'))).toMatchObject({ code: 'ERR_CLOSED' })
    expect(() => world.client.subscription('a')).toThrow(
      expect.objectContaining({ code: 'ERR_CLOSED' }),
    )
  })
})
