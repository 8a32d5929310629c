/** MQTT 3.1.1 on the wire: packets without properties, what it cannot say, and answers in its own way. */
import { describe, expect, it } from 'vitest'
import type { ClientOptions } from '../../../src/client/api/index.js'
import { BaseClient } from '../../../src/client/client.js'
import { ScriptedPeer } from '../../../src/testing/scripted-peer.js'
import { VirtualClock } from '../../../src/testing/virtual-clock.js'
import { virtualPlatform } from '../../../src/testing/virtual-platform.js'
import { memoryPair } from '../../../src/transport/memory.js'
import { agreeable, connected, failure, World } from './harness.js'
import { acks, agreed, publish, quiet, read, subscribe, taken } from './incoming.js'

const four: ClientOptions = { protocolVersion: 4, keepAlive: false, reconnect: false }

/** Connects, and answers CONNECT with these bytes. */
async function answered(hex: string, options: ClientOptions = {}): Promise<{ world: World; outcome: unknown }> {
  const world = new World({ ...four, ...options })
  const connecting = world.client.connect().then(
    () => undefined,
    (error: unknown) => error,
  )
  await world.settle()
  await world.sendBytes(hex)
  return { world, outcome: await connecting }
}

describe('CONNECT', () => {
  it('is level 4, without properties, byte by byte [3.1.1: MQTT-3.1.2-1]', async () => {
    const { world } = await answered('20 02 00 00', { clientId: 'me', username: 'ü', password: 'p', keepAlive: 60 })
    const text = world.peer.bytes.map((byte) => byte.toString(16).padStart(2, '0')).join(' ')
    expect(text).toBe('10 15 00 04 4d 51 54 54 04 c2 00 3c 00 02 6d 65 00 02 c3 bc 00 01 70')
  })

  it('has the will in the place of 3.1.1', async () => {
    const { world } = await answered('20 02 00 00', { clientId: 'me', will: { topic: 'w', payload: 'gone', qos: 2, retain: true } })
    const { will, cleanStart } = world.peer.last('connect')
    expect([will?.topic, new TextDecoder().decode(will?.payload), will?.qos, will?.retain, cleanStart]).toEqual(['w', 'gone', 2, true, true])
  })

  it('an empty client id needs Clean Session: with cleanStart false it is refused locally [3.1.1: MQTT-3.1.3-7]', () => {
    expect(() => new World({ ...four, cleanStart: false })).toThrow(expect.objectContaining({ code: 'ERR_INVALID_OPTION', option: 'clientId' }))
  })

  it('without one it is generated: at most 23 safe characters, unique per client, and told', async () => {
    const clock = new VirtualClock()
    const platform = virtualPlatform(clock)
    const ids: string[] = []
    for (let count = 0; count < 20; count++) {
      const [near, far] = memoryPair({ schedule: (callback, delay) => clock.setTimer(callback, delay) })
      const peer = new ScriptedPeer(far, 4)
      const client = new BaseClient(platform, { url: 'memory://x', transport: () => near }, four)
      quiet(client.connect())
      await clock.settle()
      ids.push(peer.last('connect').clientId)
      expect(client.clientId).toBe(ids.at(-1))
      client.destroy()
    }
    for (const id of ids) expect(id).toMatch(/^[0-9a-zA-Z]{8,23}$/)
    expect(new Set(ids).size).toBe(20)
  })

  it('a password without user name is refused locally on 3.1.1, sent on 5 [3.1.1: MQTT-3.1.2-22]', async () => {
    expect(() => new World({ ...four, password: 'secret' })).toThrow(expect.objectContaining({ code: 'ERR_INVALID_OPTION' }))
    const five = new World({ password: 'secret' })
    quiet(five.client.connect())
    await five.settle()
    expect(five.peer.last('connect').password).toEqual(new TextEncoder().encode('secret'))
  })

  it('the same when `credentials` gives it: that attempt fails, nothing is sent', async () => {
    const world = new World({ ...four, credentials: () => ({ password: 'secret' }) })
    const error = failure(world.client.connect())
    await world.settle()
    expect(await error).toMatchObject({ outcome: 'not-sent' })
    expect(world.peers.flatMap((peer) => peer.bytes)).toEqual([])
  })

  it.each([
    ['userProperties', { userProperties: [['a', 'b']] }],
    ['auth', { auth: { method: 'x', start: () => undefined, continue: () => undefined } }],
  ] as [string, ClientOptions][])('%s, which 3.1.1 does not have, is refused by name', (option, options) => {
    expect(() => new World({ ...four, ...options })).toThrow(expect.objectContaining({ code: 'ERR_UNSUPPORTED_OPTION', option }))
  })
})

describe('CONNACK', () => {
  it.each([
    [1, 0x84],
    [2, 0x85],
    [3, 0x88],
    [4, 0x86],
    [5, 0x87],
  ])('return code %d rejects as 5.0 would call it, the socket is closed, there is no `connect`', async (code, reasonCode) => {
    const { world, outcome } = await answered(`20 02 00 0${code}`)
    expect(outcome).toMatchObject({ code: 'ERR_CONNECT_REFUSED', reasonCode, outcome: 'refused', fault: 'remote' })
    expect(world.peer.received).toHaveLength(1)
    expect(world.seen('connect')).toEqual([])
    expect(world.client.state).toBe('closed')
  })

  it.each(['20 02 00 06', '20 02 00 ff', '20 02 02 00', '20 03 00 00 00', '20 02 01 05'])('%s is no CONNACK: close', async (hex) => {
    const { world, outcome } = await answered(hex)
    expect(['ERR_MALFORMED_PACKET', 'ERR_PROTOCOL_ERROR']).toContain((outcome as { code: string }).code)
    expect(world.peer.all('disconnect')).toEqual([])
    expect(world.client.state).toBe('closed')
  })

  it('Session Present 1 after Clean Session 1: close', async () => {
    expect((await answered('20 02 01 00')).outcome).toMatchObject({ code: 'ERR_PROTOCOL_ERROR' })
    expect((await answered('20 02 01 00', { clientId: 'me', cleanStart: false })).outcome).toBeUndefined()
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

describe('publishing', () => {
  it('QoS 0, 1 and 2 without properties, acknowledgements of two bytes', async () => {
    const world = await connected(four)
    const promises = ([0, 1, 2] as const).map((qos) => quiet(world.client.publish('t', 'x', { qos, retain: qos === 0 })))
    await world.settle()
    const at = world.peer.bytes.length
    await world.sendBytes('40 02 00 01', '50 02 00 02')
    expect(world.peer.bytes.slice(at)).toEqual([0x62, 2, 0, 2])
    await world.sendBytes('70 02 00 02')
    await expect(Promise.all(promises)).resolves.toMatchObject([{ packetId: undefined }, { packetId: 1, reasonCode: 0 }, { packetId: 2 }])
    expect(world.peer.all('publish').map(({ qos, retain }) => [qos, retain])).toEqual([
      [0, true],
      [1, false],
      [2, false],
    ])
  })

  it.each(['messageExpiryInterval', 'contentType', 'responseTopic', 'userProperties'] as const)(
    'the property %s is refused by name',
    async (name) => {
      const world = await connected(four)
      const value = name === 'messageExpiryInterval' ? 5 : name === 'userProperties' ? [['a', 'b']] : 'x'
      const error = await failure(world.client.publish('t', 'x', { qos: 1, properties: { [name]: value } }))
      expect(error).toMatchObject({ code: 'ERR_UNSUPPORTED_OPTION', option: 'properties', outcome: 'not-sent' })
      await world.settle()
      expect(world.peer.all('publish')).toEqual([])
    },
  )

  it('properties that say nothing are none', async () => {
    const world = await agreed(four)
    const promise = quiet(world.client.publish('t', 'x', { qos: 1, properties: { contentType: undefined } }))
    await world.settle()
    await expect(promise).resolves.toBeDefined()
  })

  it('PUBREC for an unknown identifier: a plain PUBREL', async () => {
    const world = await connected(four)
    const at = world.peer.bytes.length
    await world.sendBytes('50 02 00 09')
    expect(world.peer.bytes.slice(at)).toEqual([0x62, 2, 0, 9])
    expect(world.client.state).toBe('connected')
  })

  it('PUBACK and PUBCOMP for nobody are ignored; the link is usable', async () => {
    const world = await connected({ ...four, stats: true })
    await world.sendBytes('40 02 00 09', '70 02 00 09')
    expect(world.client.stats().unsolicitedAcks).toBe(2)
    expect(world.client.state).toBe('connected')
  })
})

describe('receiving', () => {
  it('SUBSCRIBE has the QoS and nothing else in its option byte; an UNSUBACK has no codes', async () => {
    const world = await connected(four)
    const subscribing = quiet(world.client.subscribe(['a', 'b'], { qos: 1 }))
    await world.settle()
    expect(world.peer.bytes.slice(-12)).toEqual([0x82, 10, 0, 1, 0, 1, 0x61, 1, 0, 1, 0x62, 1])
    await world.sendBytes('90 04 00 01 00 01')
    expect((await subscribing).granted.map(({ qos }) => qos)).toEqual([0, 1])
    const leaving = quiet(world.client.unsubscribe(['a', 'b']))
    await world.settle()
    await world.sendBytes('b0 02 00 02')
    expect(await leaving).toMatchObject([
      { filter: 'a', reasonCode: 0 },
      { filter: 'b', reasonCode: 0 },
    ])
  })

  it('a refused filter (0x80)', async () => {
    const world = await connected(four)
    const subscribing = quiet(world.client.subscribe(['a', 'b']))
    await world.settle()
    await world.sendBytes('90 04 00 01 80 00')
    expect((await subscribing).granted).toMatchObject([{ reasonCode: 0x80, error: { code: 'ERR_SUBSCRIBE_REFUSED' } }, { reasonCode: 0 }])
  })

  it('a SUBACK with fewer codes than filters: close', async () => {
    const world = await connected(four)
    const error = failure(world.client.subscribe(['a', 'b']))
    await world.settle()
    await world.sendBytes('90 03 00 01 00')
    expect(await error).toMatchObject({ code: 'ERR_PROTOCOL_ERROR' })
    expect(world.peer.all('disconnect')).toEqual([])
  })

  it.each([
    ['noLocal', { noLocal: true }],
    ['retainAsPublished', { retainAsPublished: true }],
    ['retainHandling', { retainHandling: 2 }],
    ['properties.userProperties', { properties: { userProperties: [['a', 'b']] } }],
  ] as const)('the option %s is refused by name', async (option, options) => {
    const world = await agreed(four)
    const error = failure(world.client.subscribe('a', options as object))
    await world.settle()
    expect(await error).toMatchObject({ code: 'ERR_UNSUPPORTED_OPTION', option })
    expect(world.peer.all('subscribe')).toEqual([])
  })

  it('a shared subscription is a filter like any other: the server decides', async () => {
    const world = await agreed(four, (packet) => (packet.type === 'unsubscribe' ? undefined : agreeable(packet)))
    const shared = await subscribe(world, '$share/g/a', { qos: 1 })
    expect(shared.granted).toMatchObject([{ filter: '$share/g/a', qos: 1, reasonCode: 1 }])
    const reading = read(shared)
    await world.send(publish('a', 'x', 1))
    expect(reading.texts).toEqual(['x'])
    const call = shared.unsubscribe()
    await world.settle()
    await world.send({ type: 'unsuback', packetId: world.peer.last('unsubscribe').packetId, reasonCodes: [] })
    await call
    expect(world.peer.last('unsubscribe').filters).toEqual(['$share/g/a'])
  })

  it('a shared subscription that the server refuses rejects with its answer', async () => {
    const world = await connected(four, (packet) =>
      packet.type === 'subscribe' ? { type: 'suback', packetId: packet.packetId, reasonCodes: [0x80], properties: {} } : agreeable(packet),
    )
    const error = failure(world.client.subscribe('$share/g/a'))
    await world.settle()
    expect(await error).toMatchObject({ code: 'ERR_SUBSCRIBE_REFUSED', reasonCode: 0x80, outcome: 'refused' })
  })

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

  it('QoS 1 in hand and sent again on the same connection: accepted only with DUP, acknowledged once', async () => {
    const world = await agreed(four)
    const subscription = await subscribe(world, 't', { qos: 1, ack: 'manual' })
    await world.send(publish('t', 'one', 1), publish('t', 'one', 1, { dup: true }))
    expect(subscription.size).toBe(1)
    taken(subscription).ack()
    await world.settle()
    expect(acks(world)).toEqual(['puback 1'])
    await world.send(publish('t', 'two', 2), publish('t', 'two', 2))
    expect(world.client.state).toBe('closed')
    expect(world.peer.all('disconnect')).toEqual([])
  })

  it('QoS 0 with DUP 1 is tolerated', async () => {
    const world = await agreed(four)
    const subscription = await subscribe(world, 't')
    await world.sendBytes('38 04 00 01 74 78')
    expect(subscription.read()?.text()).toBe('x')
    expect(world.client.state).toBe('connected')
  })

  it('PUBREL for an unknown identifier: a plain PUBCOMP', async () => {
    const world = await connected(four)
    const at = world.peer.bytes.length
    await world.sendBytes('62 02 00 07')
    expect(world.peer.bytes.slice(at)).toEqual([0x70, 2, 0, 7])
  })
})

describe('the end', () => {
  it('DISCONNECT is two bytes; what 5.0 could say with it is left out', async () => {
    const world = await connected(four)
    const done = world.client.disconnect({ timeout: 100 })
    await world.settle()
    expect(world.peer.bytes.slice(-2)).toEqual([0xe0, 0])
    await world.clock.advance(1000)
    await done
  })

  it.each(['e0 00', 'e0 01 00'])('DISCONNECT from the server (%s) is a protocol error: close, and no `serverdisconnect`', async (hex) => {
    const world = await connected(four)
    await world.sendBytes(hex)
    expect(world.seen('disconnect')).toMatchObject([{ cause: { fault: 'remote' } }])
    expect(['ERR_PROTOCOL_ERROR', 'ERR_MALFORMED_PACKET', 'ERR_UNEXPECTED_PACKET']).toContain(world.seen('disconnect')[0]?.cause?.code)
    expect(world.seen('serverdisconnect')).toEqual([])
    expect(world.client.state).toBe('closed')
  })

  it('AUTH from the server: close', async () => {
    const world = await connected(four)
    await world.sendBytes('f0 00')
    expect(world.client.state).toBe('closed')
  })

  it('a protocol error of the server (a second CONNACK) ends the stream without DISCONNECT, so that the will is published', async () => {
    const world = await connected({ ...four, will: { topic: 'w' } }, agreeable)
    await world.sendBytes('20 02 00 00')
    expect(world.peer.all('disconnect')).toEqual([])
    expect(world.peer.ended).toBeDefined()
  })
})
