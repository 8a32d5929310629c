/** A client on 3.1.1: what it sends and takes, byte by byte, and that it closes where 5.0 would send DISCONNECT with a reason. */
import { describe, expect, it } from 'vitest'
import type { ClientOptions } from '../../../src/client/api/index.js'
import { comeBack, lose, steady, willing } from './across.js'
import { agreeable, connected, failure, World } from './harness.js'
import { acks, agreed, publish, quiet, read, subscribe, taken, takenTexts } from './incoming.js'
import { Rig } from './rig.js'

const four: ClientOptions = { protocolVersion: 4, keepAlive: false, reconnect: false }
const durable: ClientOptions = { protocolVersion: 4, clientId: 'mine', cleanStart: false }
const wrong = /^ERR_(MALFORMED_PACKET|PROTOCOL_ERROR|UNEXPECTED_PACKET)$/

/** Connects, and answers CONNECT with these bytes. */
async function answered(
  hex: string,
  options: ClientOptions = {},
): Promise<{ world: World; outcome: unknown }> {
  const world = new World({ ...four, ...options })
  const connecting = world.client.connect().catch((error: unknown) => error)
  await world.settle()
  await world.sendBytes(hex)
  return { world, outcome: await connecting }
}

/** The link ended because of the server, without DISCONNECT. */
async function ended(world: World): Promise<void> {
  expect(await world.client.closed).toMatchObject({
    code: expect.stringMatching(wrong) as string,
    fault: 'remote',
  })
  expect([
    world.peer.all('disconnect'),
    world.seen('serverdisconnect'),
    world.client.state,
  ]).toEqual([[], [], 'closed'])
  expect(world.seen('disconnect')).toMatchObject([{ cause: { fault: 'remote' } }])
  expect(world.peer.ended).toBeDefined()
  expect(world.clock.pending).toBe(0)
}

/** The types of what the peer got, in order. */
const types = (world: World) => world.peer.received.map(({ type }) => type)

describe('CONNECT', () => {
  it.each([
    ['me', 'ü', 'p', 60, '10 15 00 04 4d 51 54 54 04 c2 00 3c 00 02 6d 65 00 02 c3 bc 00 01 70'],
    ['me', 'u', '', 0, '10 13 00 04 4d 51 54 54 04 c2 00 00 00 02 6d 65 00 01 75 00 00'],
  ])(
    'is level 4, without properties; an empty password has its flag [3.1.1: MQTT-3.1.2-1]: %s %s %j',
    async (clientId, username, password, keepAlive, hex) => {
      const { world } = await answered('20 02 00 00', { clientId, username, password, keepAlive })
      expect(world.peer.bytes.map((byte) => byte.toString(16).padStart(2, '0')).join(' ')).toBe(hex)
    },
  )

  it('has the will in the place of 3.1.1', async () => {
    const will = { topic: 'w', payload: 'gone', qos: 2, retain: true } as const
    const { world } = await answered('20 02 00 00', { clientId: 'me', will })
    const sent = world.peer.last('connect')
    expect({ ...sent.will, payload: new TextDecoder().decode(sent.will?.payload) }).toMatchObject(
      will,
    )
    expect(sent.cleanStart).toBe(true)
  })

  it('an empty client id needs Clean Session: with cleanStart false it is refused locally [3.1.1: MQTT-3.1.3-7]', () => {
    const refused = expect.objectContaining({ code: 'ERR_INVALID_OPTION', option: 'clientId' })
    expect(() => new World({ ...four, cleanStart: false })).toThrow(refused)
  })

  it('without one it is generated: at most 23 safe characters, unique per client', async () => {
    const ids = new Set<string>()
    for (let seed = 1; seed <= 20; seed++) {
      const { client, peer } = await new Rig(four, { version: 4, seed }).up()
      expect(client.clientId).toBe(peer.last('connect').clientId)
      expect(client.clientId).toMatch(/^[0-9a-zA-Z]{8,23}$/)
      ids.add(client.clientId)
    }
    expect(ids.size).toBe(20)
  })

  it('a password without user name is refused locally on 3.1.1, sent on 5 [3.1.1: MQTT-3.1.2-22]', async () => {
    expect(() => new World({ ...four, password: 'secret' })).toThrow(
      expect.objectContaining({ code: 'ERR_INVALID_OPTION' }),
    )
    const five = await connected({ password: 'secret' })
    expect(five.peer.last('connect').password).toEqual(new TextEncoder().encode('secret'))
    // From `credentials`, it fails that attempt, and nothing is sent.
    const world = new World({ ...four, credentials: () => ({ password: 'secret' }) })
    const error = failure(world.client.connect())
    await world.settle()
    expect(await error).toMatchObject({ outcome: 'not-sent' })
    expect(world.peers.flatMap((peer) => peer.bytes)).toEqual([])
  })
})

describe('CONNACK', () => {
  it.each([1, 2, 3, 4, 5])('return code %d rejects as 5.0 calls it, no `connect`', async (code) => {
    const { world, outcome } = await answered(`20 02 00 0${code}`)
    const reasonCode = [0x84, 0x85, 0x88, 0x86, 0x87][code - 1]
    expect(outcome).toMatchObject({
      code: 'ERR_CONNECT_REFUSED',
      reasonCode,
      outcome: 'refused',
      fault: 'remote',
    })
    expect(world.peer.received).toHaveLength(1)
    expect([world.seen('connect'), world.client.state]).toEqual([[], 'closed'])
  })

  it.each([
    ...['20 02 00 06', '20 02 00 ff', '20 02 02 00', '20 03 00 00 00', '20 02 01 05'],
    ...['d0 00', '90 03 00 01 00', '30 03 00 01 74', '40 02 00 01', 'f0 00', 'c0 00'],
  ])('%s is none: close, nothing delivered', async (hex) => {
    const world = new World(four)
    const subscription = world.client.subscription('t')
    const error = failure(world.client.connect())
    await world.settle()
    await world.sendBytes(hex)
    expect((await error).code).toMatch(wrong)
    expect([world.seen('connect'), subscription.size, world.client.state]).toEqual([
      [],
      0,
      'closed',
    ])
    expect(types(world)).toEqual(['connect'])
    expect(world.peer.ended).toBeDefined()
  })

  it('Session Present 1 after Clean Session 1: close', async () => {
    const { world, outcome } = await answered('20 02 01 00')
    expect(outcome).toMatchObject({ code: 'ERR_PROTOCOL_ERROR' })
    expect(types(world)).toEqual(['connect'])
    const { clientId, cleanStart } = durable
    expect((await answered('20 02 01 00', { clientId, cleanStart })).outcome).toBeUndefined()
  })

  it('`negotiated` says what 3.1.1 has', async () => {
    const world = await connected({ ...four, keepAlive: 20 })
    expect(world.client.negotiated).toMatchObject({
      protocolVersion: 4,
      keepAlive: 20,
      receiveMaximum: 65_535,
      maximumQoS: 2,
      retainAvailable: true,
      topicAliasMaximum: 0,
      wildcardSubscriptionAvailable: true,
      subscriptionIdentifierAvailable: false,
    })
  })
})

describe('what a server may not send: close, without DISCONNECT', () => {
  // The corpus of rules sends every packet there is.
  it.each([
    ['a second CONNACK', '20 02 00 00'],
    ['SUBSCRIBE', '82 06 00 01 00 01 61 00'],
    ['DISCONNECT', 'e0 00'],
    ['DISCONNECT with a reason code', 'e0 01 00'],
    ['AUTH', 'f0 00'],
    ['PUBACK with a reason code of 5.0', '40 03 00 01 00'],
    ['an empty topic, which only an alias could explain', '30 02 00 00'],
    ['a topic with a wildcard', '30 03 00 01 23'],
    ['a topic that is no UTF-8', '30 03 00 01 ff'],
    ['QoS bits 11', '36 05 00 01 74 00 01'],
    ['QoS 1 with identifier 0', '32 05 00 01 74 00 00'],
  ])('%s', async (_name, hex) => {
    const world = await connected(four)
    await world.sendBytes(hex)
    await ended(world)
  })

  it.each(['03', '7f', '81', '87', 'ff', ''])('SUBACK with code %s, or none', async (code) => {
    const world = await connected(four)
    const error = failure(world.client.subscribe('a', { qos: 2 }))
    await world.settle()
    await world.sendBytes(code === '' ? '90 02 00 01' : `90 03 00 01 ${code}`)
    expect((await error).code).toMatch(wrong)
    await ended(world)
  })

  it('SUBACK with fewer codes than filters', async () => {
    const world = await connected(four)
    const error = failure(world.client.subscribe(['a', 'b']))
    await world.settle()
    await world.sendBytes('90 03 00 01 00')
    expect(await error).toMatchObject({ code: 'ERR_PROTOCOL_ERROR' })
    await ended(world)
  })

  it.each([
    ['PUBACK for QoS 2', 2, '40 02 00 01'],
    ['PUBREC for QoS 1', 1, '50 02 00 01'],
  ] as const)('%s', async (_name, qos, hex) => {
    const world = await connected(four)
    const error = failure(world.client.publish('t', 'x', { qos }))
    await world.settle()
    await world.sendBytes(hex)
    expect((await error).outcome).toBe('unknown')
    await ended(world)
  })

  it.each([
    ['PUBREL before our PUBREC', [2], '62 02 00 01'],
    ['an identifier in use at QoS 1, then at QoS 2', [1, 2], ''],
    ['an identifier in use at QoS 2, then at QoS 1', [2, 1], ''],
    ['an identifier in use at QoS 1, again without DUP', [1, 1], ''],
  ] as const)('%s', async (_name, inUse, hex) => {
    const world = await agreed(four)
    await subscribe(world, 't', { qos: 2, ack: 'manual' })
    await world.send(...inUse.map((qos) => publish('t', 'x', 1, { qos })))
    if (hex !== '') await world.sendBytes(hex)
    await ended(world)
  })
})

describe('answers for nobody', () => {
  it('are ignored and counted, the link stays', async () => {
    const world = await connected({ ...four, stats: true })
    await world.sendBytes('90 03 00 09 00', 'b0 02 00 09', '40 02 00 09', '70 02 00 09')
    expect(world.client.stats().unsolicitedAcks).toBe(4)
    expect(world.client.state).toBe('connected')
  })

  it.each([
    ['PUBREC', '50 02 00 09', [0x62, 2, 0, 9]],
    ['PUBREL', '62 02 00 07', [0x70, 2, 0, 7]],
  ])('%s for an unknown identifier is answered plainly', async (_name, hex, answer) => {
    const world = await connected(four)
    const at = world.peer.bytes.length
    await world.sendBytes(hex)
    expect(world.peer.bytes.slice(at)).toEqual(answer)
    expect(world.client.state).toBe('connected')
  })

  it('a second PUBREC gets PUBREL again, PUBLISH never', async () => {
    const world = await connected(four)
    const done = quiet(world.client.publish('t', 'x', { qos: 2 }))
    await world.settle()
    await world.sendBytes('50 02 00 01', '50 02 00 01')
    expect(types(world)).toEqual(['connect', 'publish', 'pubrel', 'pubrel'])
    await world.sendBytes('70 02 00 01')
    await expect(done).resolves.toMatchObject({ packetId: 1 })
  })
})

describe('publishing', () => {
  it('QoS 0, 1 and 2 without properties, acknowledgements of two bytes', async () => {
    const world = await connected(four)
    const promises = ([0, 1, 2] as const).map((qos) =>
      quiet(world.client.publish('t', 'x', { qos, retain: qos === 0 })),
    )
    await world.settle()
    const at = world.peer.bytes.length
    await world.sendBytes('40 02 00 01', '50 02 00 02')
    expect(world.peer.bytes.slice(at)).toEqual([0x62, 2, 0, 2])
    await world.sendBytes('70 02 00 02')
    const results = [{ packetId: undefined }, { packetId: 1, reasonCode: 0 }, { packetId: 2 }]
    await expect(Promise.all(promises)).resolves.toMatchObject(results)
    expect(world.peer.all('publish').map(({ qos, retain }) => `${qos} ${retain}`)).toEqual([
      '0 true',
      '1 false',
      '2 false',
    ])
  })

  it.each([
    { messageExpiryInterval: 5 },
    { contentType: 'x' },
    { responseTopic: 'x' },
    { userProperties: [['a', 'b']] as [string, string][] },
  ])('the property %j is refused by name', async (properties) => {
    const world = await connected(four)
    const error = { code: 'ERR_UNSUPPORTED_OPTION', option: 'properties', outcome: 'not-sent' }
    expect(
      await world.outcome(world.client.publish('t', 'x', { qos: 1, properties })),
    ).toMatchObject({ error })
    expect(world.peer.all('publish')).toEqual([])
  })

  it('properties that say nothing are none', async () => {
    const world = await agreed(four)
    const call = world.client.publish('t', 'x', { qos: 1, properties: { contentType: undefined } })
    expect(await world.outcome(call)).toMatchObject({ state: 'fulfilled' })
  })
})

describe('subscribing', () => {
  it('SUBSCRIBE has the QoS and nothing else in its option byte; an UNSUBACK has no codes', async () => {
    const world = await connected(four)
    const subscribing = quiet(world.client.subscribe(['a', 'b'], { qos: 1 }))
    await world.settle()
    expect(world.peer.bytes.slice(-12)).toEqual([0x82, 10, 0, 1, 0, 1, 0x61, 1, 0, 1, 0x62, 1])
    await world.sendBytes('90 04 00 01 00 01')
    expect((await subscribing).granted.map(({ qos }) => qos)).toEqual([0, 1])
    // `c` was never subscribed to: such an UNSUBACK cannot say so.
    const leaving = quiet(world.client.unsubscribe(['a', 'b', 'c']))
    await world.settle()
    await world.sendBytes('b0 02 00 02')
    const results = ['a', 'b', 'c'].map((filter) => ({ filter, reasonCode: 0, error: undefined }))
    expect(await leaving).toMatchObject(results)
  })

  it('a refused filter (0x80)', async () => {
    const world = await connected(four)
    const subscribing = quiet(world.client.subscribe(['a', 'b']))
    await world.settle()
    await world.sendBytes('90 04 00 01 80 00')
    const refused = { reasonCode: 0x80, error: { code: 'ERR_SUBSCRIBE_REFUSED' } }
    expect((await subscribing).granted).toMatchObject([refused, { reasonCode: 0 }])
  })

  it.each([
    ['noLocal', { noLocal: true }],
    ['retainAsPublished', { retainAsPublished: true }],
    ['retainHandling', { retainHandling: 2 }],
    ['properties.userProperties', { properties: { userProperties: [['a', 'b']] } }],
  ] as const)('the option %s is refused by name', async (option, options) => {
    const world = await agreed(four)
    const outcome = await world.outcome(world.client.subscribe('a', options as object))
    expect(outcome).toMatchObject({ error: { code: 'ERR_UNSUPPORTED_OPTION', option } })
    expect(world.peer.all('subscribe')).toEqual([])
  })

  it('a shared subscription is a filter like any other: the server decides', async () => {
    const world = await agreed(four, (packet) =>
      packet.type === 'unsubscribe' ? undefined : agreeable(packet),
    )
    const shared = await subscribe(world, '$share/g/a', { qos: 1 })
    expect(shared.granted).toMatchObject([{ filter: '$share/g/a', qos: 1, reasonCode: 1 }])
    const reading = read(shared)
    await world.send(publish('a', 'x', 1))
    expect(reading.texts).toEqual(['x'])
    const call = shared.unsubscribe()
    await world.settle()
    const { packetId, filters } = world.peer.last('unsubscribe')
    await world.send({ type: 'unsuback', packetId, reasonCodes: [] })
    await call
    expect(filters).toEqual(['$share/g/a'])
    const other = failure(world.client.subscribe('$share/g/b'))
    world.answer = (packet) =>
      packet.type === 'subscribe'
        ? { type: 'suback', packetId: packet.packetId, reasonCodes: [0x80] }
        : undefined
    await world.settle()
    expect(await other).toMatchObject({
      code: 'ERR_SUBSCRIBE_REFUSED',
      reasonCode: 0x80,
      outcome: 'refused',
    })
  })
})

describe('receiving', () => {
  it('it cannot say no: a refused message is acknowledged plainly, with two bytes', async () => {
    const world = await agreed(four)
    const subscription = await subscribe(world, 't', { qos: 2, ack: 'manual' })
    await world.send(publish('t', 'one', 1), publish('t', 'two', 2, { qos: 2 }))
    const at = world.peer.bytes.length
    expect([taken(subscription).ack(0x80), taken(subscription).ack(0x97)]).toEqual([true, true])
    await world.settle()
    expect(world.peer.bytes.slice(at)).toEqual([0x40, 2, 0, 1, 0x50, 2, 0, 2])
    await world.sendBytes('62 02 00 02')
    expect(world.peer.bytes.slice(at + 8)).toEqual([0x70, 2, 0, 2])
  })

  it.each([1, 2] as const)('a handler that fails at QoS %i: a plain answer', async (qos) => {
    const world = await agreed(four)
    const cause = new Error('no')
    quiet(world.client.listen('t', () => Promise.reject(cause), { qos, onError: 'reject' }))
    await world.settle()
    const at = world.peer.bytes.length
    await world.send(publish('t', 'x', 7, { qos }))
    expect(world.peer.bytes.slice(at)).toEqual([qos === 1 ? 0x40 : 0x50, 2, 0, 7])
    expect(world.seen('error')).toMatchObject([{ error: { code: 'ERR_HANDLER_FAILED', cause } }])
  })

  it('QoS 1 in hand and sent again with DUP on the same connection is acknowledged once', async () => {
    const world = await agreed(four)
    const subscription = await subscribe(world, 't', { qos: 1, ack: 'manual' })
    await world.send(publish('t', 'one', 1), publish('t', 'one', 1, { dup: true }))
    expect(subscription.size).toBe(1)
    taken(subscription).ack()
    await world.settle()
    expect(acks(world)).toEqual(['puback 1'])
  })

  it('QoS 0 with DUP 1 is tolerated', async () => {
    const world = await agreed(four)
    const subscription = await subscribe(world, 't')
    await world.sendBytes('38 04 00 01 74 78')
    expect(subscription.read()?.text()).toBe('x')
    expect(world.client.state).toBe('connected')
  })

  it('there is no Receive Maximum: a slow reader gets more than our 256, in order, and nothing is lost', async () => {
    const world = await agreed(four)
    const subscription = await subscribe(world, 't', { qos: 1, ack: 'manual', buffer: 5 })
    const expected = Array.from({ length: 300 }, (_, index) => `${index}`)
    await world.send(...expected.map((text, index) => publish('t', text, index + 1)))
    expect(world.client.state).toBe('connected')
    const texts: string[] = []
    for (let message = subscription.read(); message !== undefined; message = subscription.read()) {
      texts.push(message.text())
      message.ack()
      await world.settle()
    }
    expect(texts).toEqual(expected)
    expect(acks(world)).toHaveLength(300)
  })

  it.each([true, false])('QoS 2 over a reconnect: delivered once; DUP %s', async (dup) => {
    const world = await steady(durable, willing(false))
    const subscription = await subscribe(world, 't', { qos: 2 })
    await world.send(publish('t', 'one', 3, { qos: 2 }))
    expect(takenTexts(subscription)).toEqual(['one'])
    await world.settle()
    expect(acks(world)).toEqual(['pubrec 3'])
    await lose(world)
    await comeBack(world, willing(true))
    await world.send(publish('t', 'one', 3, { qos: 2, dup }))
    await world.sendBytes('62 02 00 03')
    expect(acks(world)).toEqual(['pubrec 3', 'pubcomp 3'])
    expect(subscription.read()).toBeUndefined()
  })

  it('after Session Present 1 messages wait for a subscription; without it they are acknowledged, with the event', async () => {
    const resumed = await steady(durable, willing(true))
    await resumed.send(publish('t', 'kept', 1))
    expect(acks(resumed)).toEqual([])
    expect(takenTexts(await subscribe(resumed, 't', { qos: 1 }))).toEqual(['kept'])
    const fresh = await steady(durable, willing(false))
    await fresh.send(publish('t', 'nobody', 1))
    expect(acks(fresh)).toEqual(['puback 1'])
    expect(fresh.seen('unclaimed')).toHaveLength(1)
  })
})

describe('the end of a connection', () => {
  it('DISCONNECT is two bytes; what 5.0 could say with it is left out', async () => {
    const world = await connected(four)
    const done = world.client.disconnect({ timeout: 100 })
    await world.settle()
    expect(world.peer.bytes.slice(-2)).toEqual([0xe0, 0])
    await world.clock.advance(1000)
    await done
  })

  it('`reconnect({ force: true })`: a plain DISCONNECT, a new link, the session goes on', async () => {
    const world = await steady(durable, willing(false))
    quiet(world.client.publish('t', 'x', { qos: 1 }))
    await world.settle()
    world.answer = willing(true)
    await Promise.all([world.client.reconnect({ force: true }), world.clock.advance(6000)])
    expect(world.peers).toHaveLength(2)
    expect(world.peers[0]?.bytes.slice(-2)).toEqual([0xe0, 0])
    expect(world.peer.last('connect').cleanStart).toBe(false)
    expect([world.seen('sessionlost'), world.client.state]).toEqual([[], 'connected'])
  })

  it('expiresAt: there is no re-authentication, so the link is renewed ahead of time with new credentials', async () => {
    let calls = 0
    const credentials = () => ({
      username: 'u',
      password: `token-${++calls}`,
      expiresAt: rig.clock.now() + 100_000,
    })
    const options = { ...durable, credentials, refreshBefore: 10_000 }
    const rig: Rig = new Rig(options, { version: 4, behave: () => willing(true) })
    await rig.up()
    await rig.advance(89_000)
    expect(rig.peers).toHaveLength(1)
    await rig.advance(3000)
    const passwords = rig.peers.map((peer) =>
      new TextDecoder().decode(peer.last('connect').password),
    )
    expect(passwords).toEqual(['token-1', 'token-2'])
    expect(rig.seen('sessionlost')).toEqual([])
    await rig.finish()
  })

  it('keep-alive timeout: one event, made again, QoS 1 repeated', async () => {
    const world = await steady({ ...durable, keepAlive: 10, pingTimeout: 5000 })
    quiet(world.client.publish('t', 'x', { qos: 1 }))
    await world.clock.advance(14_999)
    expect(world.peer.all('pingreq')).toHaveLength(1)
    world.answer = willing(true)
    await world.clock.advance(100)
    expect(world.seen('disconnect')).toMatchObject([{ cause: { code: 'ERR_KEEPALIVE_TIMEOUT' } }])
    expect(world.peers[0]?.all('disconnect')).toEqual([])
    expect(world.peer.all('publish').map(({ dup, packetId }) => [dup, packetId])).toEqual([
      [true, 1],
    ])
  })
})
