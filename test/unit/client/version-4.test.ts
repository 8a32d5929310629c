/** A client on 3.1.1: what it sends and takes, byte by byte, and that it closes where 5.0 would send DISCONNECT with a reason. */
import { describe, expect, it } from 'vitest'
import type { ClientOptions } from '../../../src/client/api/index.js'
import { agreeable, connected, failure, World } from './harness.js'
import { acks, agreed, publish, quiet, read, subscribe, taken } from './incoming.js'
import { Rig } from './rig.js'

const four: ClientOptions = { protocolVersion: 4, keepAlive: false, reconnect: false }

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

// The corpus of rules sends every packet there is.
it.each([
  ['DISCONNECT', 'e0 00'],
  ['PUBACK with a reason code of 5.0', '40 03 00 01 00'],
])('%s of a server: the link is closed, without DISCONNECT', async (_name, hex) => {
  const world = await connected(four)
  await world.sendBytes(hex)
  expect(await world.client.closed).toMatchObject({
    code: expect.stringMatching(/^ERR_(MALFORMED_PACKET|PROTOCOL_ERROR|UNEXPECTED_PACKET)$/),
    fault: 'remote',
  })
  expect([world.peer.all('disconnect'), world.seen('serverdisconnect')]).toEqual([[], []])
  expect(world.peer.ended).toBeDefined()
})

it.each([
  ['PUBREC', '50 02 00 09', [0x62, 2, 0, 9]],
  ['PUBREL', '62 02 00 07', [0x70, 2, 0, 7]],
])('%s for an unknown identifier is answered plainly', async (_name, hex, answer) => {
  const world = await connected(four)
  const at = world.peer.bytes.length
  await world.sendBytes(hex)
  expect(world.peer.bytes.slice(at)).toEqual(answer)
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
    await world.sendBytes('90 04 00 01 80 00')
    const refused = { reasonCode: 0x80, error: { code: 'ERR_SUBSCRIBE_REFUSED' } }
    expect((await subscribing).granted).toMatchObject([refused, { qos: 0 }])
    // `c` was never subscribed to: such an UNSUBACK cannot say so.
    const leaving = quiet(world.client.unsubscribe(['a', 'b', 'c']))
    await world.settle()
    await world.sendBytes('b0 02 00 02')
    const results = ['a', 'b', 'c'].map((filter) => ({ filter, reasonCode: 0, error: undefined }))
    expect(await leaving).toMatchObject(results)
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
})
