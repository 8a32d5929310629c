/** A client on 3.1.1: what it sends and takes, byte by byte, its sessions, and how much it has in flight. */
import { expect, it } from 'vitest'
import type { ClientOptions } from '../../../src/client/options/index.js'
import {
  again,
  carried,
  comeBack,
  forgets,
  keeps,
  lose,
  publishFrames,
  send,
  steady,
  willing,
} from './across.js'
import { agreeable, coded, connected, failure, times, World } from './harness.js'
import { acks, agreed, publish, quiet, read, subscribe, taken } from './incoming.js'
import { Rig } from './rig.js'
import { ack } from './stub.js'

const four: ClientOptions = { protocolVersion: 4, keepAlive: false, reconnect: false }

/** Connects, and answers CONNECT with these bytes. */
async function answered(hex: string, options: ClientOptions = {}) {
  const world = new World({ ...four, ...options })
  const connecting = world.client.connect().catch((error: unknown) => error)
  await world.settle()
  await world.sendBytes(hex)
  return { world, outcome: await connecting }
}

it.each([
  ['me', 'ü', 'p', 60, '10 15 00 04 4d 51 54 54 04 c2 00 3c 00 02 6d 65 00 02 c3 bc 00 01 70'],
  ['me', 'u', '', 0, '10 13 00 04 4d 51 54 54 04 c2 00 00 00 02 6d 65 00 01 75 00 00'],
])(
  'CONNECT: level 4, no properties [3.1.1: MQTT-3.1.2-1]: %s %s %j',
  async (clientId, username, password, keepAlive, hex) => {
    const { world } = await answered('20 02 00 00', { clientId, username, password, keepAlive })
    expect(world.peer.bytes.map((byte) => byte.toString(16).padStart(2, '0')).join(' ')).toBe(hex)
  },
)

it('CONNECT: without one it is generated: at most 23 safe characters, unique per client', async () => {
  const ids = new Set<string>()
  for (let seed = 1; seed <= 20; seed++) {
    const { client, peer } = await new Rig(four, { version: 4, seed }).up()
    expect(client.clientId).toBe(peer.last('connect').clientId)
    expect(client.clientId).toMatch(/^[0-9a-zA-Z]{8,23}$/)
    ids.add(client.clientId)
  }
  expect(ids.size).toBe(20)
})

it('CONNECT: a password without user name is refused locally on 3.1.1, sent on 5 [3.1.1: MQTT-3.1.2-22]', async () => {
  expect(() => new World({ ...four, password: 'secret' })).toThrow(coded('ERR_INVALID_OPTION'))
  const five = await connected({ password: 'secret' })
  expect(five.peer.last('connect').password).toEqual(new TextEncoder().encode('secret'))
  // From `credentials`, it fails that attempt, and nothing is sent.
  const world = new World({ ...four, credentials: () => ({ password: 'secret' }) })
  const error = failure(world.client.connect())
  await world.settle()
  expect(await error).toMatchObject({ outcome: 'not-sent' })
  expect(world.peers.flatMap((peer) => peer.bytes)).toEqual([])
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

it('publishing: QoS 0, 1 and 2 without properties, acknowledgements of two bytes', async () => {
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
])('publishing: the property %j is refused by name', async (properties) => {
  const world = await connected(four)
  const error = { code: 'ERR_UNSUPPORTED_OPTION', option: 'properties', outcome: 'not-sent' }
  expect(await world.outcome(world.client.publish('t', 'x', { qos: 1, properties }))).toMatchObject(
    { error },
  )
  expect(world.peer.all('publish')).toEqual([])
})

it('publishing: properties that say nothing are none', async () => {
  const world = await agreed(four)
  const call = world.client.publish('t', 'x', { qos: 1, properties: { contentType: undefined } })
  expect(await world.outcome(call)).toMatchObject({ state: 'fulfilled' })
})

it('subscribing: SUBSCRIBE has the QoS and nothing else in its option byte; an UNSUBACK has no codes', async () => {
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
] as const)('subscribing: the option %s is refused by name', async (option, options) => {
  const world = await agreed(four)
  const outcome = await world.outcome(world.client.subscribe('a', options as object))
  expect(outcome).toMatchObject({ error: { code: 'ERR_UNSUPPORTED_OPTION', option } })
  expect(world.peer.all('subscribe')).toEqual([])
})

it('subscribing: a shared subscription is a filter like any other: the server decides', async () => {
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
})

it('receiving: it cannot say no: a refused message is acknowledged plainly, with two bytes', async () => {
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

it('receiving: there is no Receive Maximum: a slow reader gets more than our 256, in order, and nothing is lost', async () => {
  const world = await agreed(four)
  const subscription = await subscribe(world, 't', { qos: 1, ack: 'manual', buffer: 5 })
  const expected = times(300, (index) => `${index}`)
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

const clean: ClientOptions = { protocolVersion: 4 }
const kept: ClientOptions = { protocolVersion: 4, clientId: 'mine', cleanStart: false }
const connects = (world: World) => world.peers.map((peer) => peer.all('connect')[0])

it('a clean session: has Clean Session 1 and its generated identifier on each of five connections, a durable one 0', async () => {
  const world = await steady(clean)
  for (let round = 0; round < 4; round++) await again(world, forgets())
  expect(connects(world).map((connect) => connect?.cleanStart)).toEqual(new Array(5).fill(true))
  const lasting4 = await steady(kept)
  for (let round = 0; round < 4; round++)
    await again(lasting4, round % 2 === 0 ? keeps() : forgets())
  expect(connects(lasting4).map((connect) => connect?.cleanStart)).toEqual(new Array(5).fill(false))
  const [id, ...more] = new Set(connects(world).map((connect) => connect?.clientId))
  expect(id).toMatch(/^\w{8,23}$/)
  expect(more).toEqual([])
})

it('a clean session: ends with its connection: what was in flight is settled as failed, and not sent again', async () => {
  const world = await steady(clean)
  const errors = ([1, 2] as const).map((qos) => failure(world.client.publish('t', 'x', { qos })))
  await world.settle()
  await lose(world)
  for (const error of errors)
    expect(await error).toMatchObject({ code: 'ERR_SESSION_LOST', outcome: 'unknown' })
  expect(carried(await comeBack(world, forgets()))).toEqual([])
  expect(world.seen('sessionlost')).toHaveLength(1)
})

it('a clean session: subscriptions are made again on each connection', async () => {
  const world = await steady(clean, willing(false))
  for (const filter of ['a', 'b']) await subscribe(world, filter, { qos: 1 })
  await again(world, willing(false))
  expect(carried(world.peer)).toEqual([expect.stringMatching(/^subscribe a,b #\d+$/)])
})

it('a durable session: goes on: PUBLISH with DUP, byte for byte, PUBREL in the order of PUBREC', async () => {
  const world = await steady(kept)
  send(world, 1, 'a')
  send(world, 2, 'b', 'c', 'd')
  await world.sendBytes('50 02 00 04', '50 02 00 02')
  const first = publishFrames(world.peer)
  const peer = await again(world)
  expect(carried(peer)).toEqual([
    'pubrel #4',
    'pubrel #2',
    'publish t=a q1 #1 dup',
    'publish t=c q2 #3 dup',
  ])
  expect(publishFrames(peer).map(({ rest }) => rest)).toEqual([first[0]?.rest, first[2]?.rest])
})

it('a durable session: never expires by itself: 3.1.1 has no Session Expiry Interval', async () => {
  const world = await steady(kept)
  send(world, 1, 'one')
  await world.settle()
  world.answer = () => undefined
  await lose(world)
  await world.clock.advance(3_600_000)
  expect(world.seen('sessionlost')).toEqual([])
})

const resumable: ClientOptions = { clientId: 'c', cleanStart: false }
const windowed: ClientOptions = { ...resumable, protocolVersion: 4 }
const texts = (count: number): string[] => times(count, (index) => String(index))
const textOf = ({ payload }: { payload: Uint8Array }) => new TextDecoder().decode(payload)
const open = (world: World): number => world.peer.all('publish').length

/** A server without a session that answers nothing else gets so many publishes. */
async function flooded(count: number, qos: 1 | 2, options: ClientOptions = {}): Promise<World> {
  const world = await steady({ ...windowed, ...options })
  send(world, qos, ...texts(count))
  await world.settle()
  return world
}

it.each<[string, 1 | 2, ClientOptions, number]>([
  ['20 are in flight', 2, {}, 20],
  ['maxInflight decides', 2, { outbound: { maxInflight: 33 } }, 33],
  ['maxInflight decides when it is less, too', 2, { outbound: { maxInflight: 5 } }, 5],
  ['QoS 1 is left alone', 1, {}, 50],
  ['of 5.0 there is no such limit', 2, { protocolVersion: 5 }, 50],
])('QoS 2: %s', async (_name, qos, options, most) => {
  expect(open(await flooded(50, qos, options))).toBe(most)
})

it('QoS 2: the next goes when an exchange is over, not before; all arrive in order', async () => {
  const world = await steady(windowed)
  const all = send(world, 2, ...texts(50))
  await world.settle()
  await world.send(ack('pubrec', 1))
  expect(open(world)).toBe(20)
  await world.send(ack('pubcomp', 1))
  expect(open(world)).toBe(21)
  world.answer = agreeable
  for (let id = 2; id <= 21; id++) await world.send(ack('pubrec', id))
  expect((await world.outcome(Promise.all(all))).state).toBe('fulfilled')
  expect(world.peer.all('publish').map(textOf)).toEqual(texts(50))
})

it('QoS 2: holds for what goes again on the next connection', async () => {
  const world = await flooded(30, 2)
  await again(world)
  expect(world.peer.all('publish').filter(({ dup }) => dup)).toHaveLength(20)
  expect(open(world)).toBe(20)
})

it('QoS 2: QoS 1 goes past those that wait for it, until one follows on their topics: each topic and each QoS keeps its order', async () => {
  const world = await flooded(20, 2)
  const publish = (topic: string, qos: 1 | 2): unknown =>
    quiet(world.client.publish(topic, topic, { qos }))
  publish('a', 2)
  for (const topic of ['b', 'a', 'c']) publish(topic, 1)
  await world.settle()
  // The last two are published while the first still waits, in a turn of their own.
  for (const topic of ['a', 'd']) publish(topic, 1)
  publish('b', 2)
  await world.settle()
  const late = () =>
    world.peer
      .all('publish')
      .slice(20)
      .map(({ topic, qos }) => topic + qos)
  expect(late()).toEqual(['b1'])
  await world.send(ack('pubrec', 1), ack('pubcomp', 1))
  expect(late()).toEqual(['b1', 'a2', 'a1', 'c1', 'a1', 'd1'])
  await world.send(ack('pubrec', 2), ack('pubcomp', 2))
  expect(late().slice(6)).toEqual(['b2'])
  expect(world.client.outbound.size).toBe(0)
})

it('QoS 2: what waits for it is dropped, aborted and sent on the next connection as all others are, in order', async () => {
  const world = await flooded(20, 2, {
    outbound: { maxQueuedMessages: 4, overflow: 'drop-oldest' },
  })
  const control = new AbortController()
  const oldest = failure(world.client.publish('a', 'oldest', { qos: 2 }))
  const aborted = failure(world.client.publish('b', 'aborted', { qos: 2, signal: control.signal }))
  const kept = ['1', '2', '3'].map((text) => quiet(world.client.publish('a', text, { qos: 2 })))
  expect(await oldest).toMatchObject({ code: 'ERR_DROPPED' })
  control.abort()
  expect(await aborted).toMatchObject({ code: 'ERR_ABORTED' })
  quiet(world.client.publish('c', 'past', { qos: 1 }))
  await world.settle()
  expect(world.client.outbound.size).toBe(3)
  await again(world, forgets())
  world.answer = agreeable
  for (const { packetId = 0, qos } of world.peer.all('publish'))
    await world.send(ack(qos === 1 ? 'puback' : 'pubrec', packetId))
  expect((await world.outcome(Promise.all(kept))).state).toBe('fulfilled')
  const sent = world.peer.all('publish').filter(({ topic }) => topic === 'a')
  expect(sent.map(textOf)).toEqual(['1', '2', '3'])
})

it('a connection on 3.1.1 that ends with more than 20 in flight halves what the next one carries at a time, down to 20', async () => {
  const world = await flooded(100, 1)
  const carried: number[] = [open(world)]
  for (let round = 0; round < 4; round++) {
    await again(world)
    carried.push(open(world))
  }
  // One that ends with no more than 20 says nothing against the limit that was set.
  expect(carried).toEqual([100, 50, 25, 20, 100])
})
