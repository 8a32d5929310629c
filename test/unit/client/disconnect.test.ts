/** `disconnect()` and `drain()`: the packet, what they wait for, what they give up, and what follows DISCONNECT: nothing. */
// The client loads it when it needs it: loaded before, that takes no time.
import '../../../src/client/durable/keeper.js'
import { describe, expect, it } from 'vitest'
import type { ClientOptions, DisconnectOptions } from '../../../src/client/options/index.js'
import type { Answer } from '../../../src/testing/scripted-peer.js'
import type { Properties } from '../../../src/wire/packets.js'
import { MapStore } from '../queue/rig.js'
import { carried, send, steady, willing } from './across.js'
import { accepting, agreeable, coded, connected, failure, World } from './harness.js'
import { acks, gate, goodbyeCode, publish, quiet, subscribe } from './incoming.js'
import { logger, Unheard } from './reporting.js'
import { plainConnack, StalledTransport } from './stalled-transport.js'
import { over, settled } from './steps.js'
import { ack, stubbed } from './stub.js'

const types = (world: World): string[] => world.peer.received.map((packet) => packet.type)
const puback = (packetId: number) => ({ type: 'puback', packetId, reasonCode: 0 }) as const
const hows = ['disconnect', 'drain'] as const

/** Agrees with everything, and says this in CONNACK. */
const allowing =
  (properties: Properties): Answer =>
  (packet) =>
    packet.type === 'connect' ? accepting(properties)(packet) : agreeable(packet)

/** Ends the client, and lets that happen. */
async function end(world: World, options?: DisconnectOptions): Promise<void> {
  await Promise.all([world.client.disconnect(options), world.settle()])
}

/** A message at QoS 1 is in hand. */
async function inHand(options: ClientOptions = {}) {
  const world = await connected(options, agreeable)
  const subscription = await subscribe(world, 'a', { qos: 1 })
  await world.send(publish('a', '', 1), publish('a', '', 2))
  await subscription.next()
  return { world, subscription }
}

describe('the packet', () => {
  it('DISCONNECT 0x00 is last on the wire, then the end of the stream [MQTT-3.14.4-1] [MQTT-3.14.4-2]', async () => {
    const world = await connected({ sessionExpiryInterval: 0 }, agreeable)
    world.client.post('a', 'b')
    await Promise.all([world.client[Symbol.asyncDispose](), world.settle()])
    expect(types(world)).toEqual(['connect', 'publish', 'disconnect'])
    expect(world.peer.bytes.slice(-2)).toEqual([0xe0, 0])
    expect(world.peer.ended).toEqual({ cause: undefined })
    expect(await world.client.closed).toBeUndefined()
    expect([world.seen('disconnect'), world.clock.pending]).toEqual([[{ cause: undefined }], 0])
  })

  it.each(hows)('reason, expiry and user properties: %s()', async (how) => {
    const world = await connected({})
    const userProperties: [string, string][] = [
      ['a', '1'],
      ['a', ''],
    ]
    const properties = { reasonString: 'night', sessionExpiryInterval: 60, userProperties }
    const refused = await failure(world.client[how]({ timeout: -1 }))
    expect(refused.code).toBe('ERR_INVALID_OPTION')
    void world.client[how]({ reasonCode: 0x04, ...properties })
    await world.settle()
    expect(world.peer.last('disconnect')).toMatchObject({ reasonCode: 0x04, properties })
  })

  it('a session is never shortened unless asked, but one that began clean ends', async () => {
    const durable = { clientId: 'a', cleanStart: false }
    for (const [how, options, given, expected] of [
      ['disconnect', { sessionExpiryInterval: 300 }, {}, 0],
      ['disconnect', durable, {}, undefined],
      ['drain', durable, {}, undefined],
      ['disconnect', durable, { sessionExpiryInterval: 0 }, 0],
    ] as const) {
      const world = await connected(options, willing('clientId' in options))
      await subscribe(world, 'a', { qos: 1 })
      void world.client[how](given)
      await world.settle()
      expect(world.peer.last('disconnect').properties.sessionExpiryInterval).toBe(expected)
      expect(world.peer.all('unsubscribe')).toEqual([])
    }
  })

  it('a positive expiry when CONNECT had 0 is refused, and the link stays [MQTT-3.14.2-2]', async () => {
    const world = await connected({ sessionExpiryInterval: 0 })
    const error = { code: 'ERR_INVALID_OPTION', option: 'sessionExpiryInterval' }
    await expect(world.client.disconnect({ sessionExpiryInterval: 1 })).rejects.toMatchObject(error)
    expect(world.client.state).toBe('connected')
    await end(world, { sessionExpiryInterval: 0 })
    expect(types(world)).toEqual(['connect', 'disconnect'])
  })
})

it('DISCONNECT of the server: serverdisconnect, then disconnect, and no DISCONNECT back [MQTT-3.14.4-3]', async () => {
  const world = await connected()
  const properties = { reasonString: 'why', serverReference: 'b:1' }
  const [code, reasonCode] = ['ERR_SERVER_DISCONNECT', 0x8b]
  await world.send({ type: 'disconnect', reasonCode, properties })
  const cause = await world.client.closed
  expect(cause).toMatchObject({ code, reasonCode, reasonString: 'why', fault: 'remote' })
  const order = world.events.map((entry) => entry.type).filter((type) => type !== 'state')
  expect(order).toEqual(['dial', 'connect', 'serverdisconnect', 'disconnect'])
  expect(world.seen('serverdisconnect')).toMatchObject([
    { error: cause, packet: { reasonCode, properties } },
  ])
  expect(world.seen('disconnect')).toEqual([{ error: cause, cause }])
  expect(types(world)).toEqual(['connect'])
  expect([world.peer.ended === undefined, world.clock.pending]).toEqual([false, 0])
})

describe('open turns', () => {
  it.each(hows)('%s() waits for a turn, its publish and its ack', async (how) => {
    const world = await connected({}, agreeable)
    const turn = gate()
    const seen: string[] = []
    const handle = async (message: { text(): string }): Promise<void> => {
      seen.push(message.text())
      await turn.promise
      await world.client.publish('answers', 'from the turn', { qos: 1 })
    }
    quiet(world.client.listen('t', handle, { qos: 1 }))
    await world.settle()
    await world.send(publish('t', 'one', 1), publish('t', 'two', 2))
    const done = quiet(world.client[how]())
    await world.clock.advance(4000)
    expect([world.client.state, world.peer.all('disconnect')]).toEqual(['disconnecting', []])
    await settled(world, turn.open())
    await done
    expect([seen, acks(world), goodbyeCode(world)]).toEqual([['one'], ['puback 1'], 0])
    expect(types(world).slice(2)).toEqual(['publish', 'puback', 'disconnect'])
  })

  it('waits for a turn up to the timeout, then forces; everything settles', async () => {
    const world = await connected({}, agreeable)
    const turn = gate()
    const handling = world.client.listen('a', () => turn.promise, { qos: 1 })
    await world.settle()
    const { done } = await handling
    await world.send(publish('a', '', 9))
    const stopping = world.client.disconnect({ timeout: 3000 })
    await world.clock.advance(2999)
    expect(world.client.state).toBe('disconnecting')
    await world.clock.advance(1)
    await stopping
    expect(world.client.state).toBe('closed')
    expect(types(world)).toEqual(['connect', 'subscribe', 'disconnect'])
    await settled(world, turn.open())
    await done
    expect(world.clock.pending).toBe(0)
  })

  it('a turn of next() that ends in time is acknowledged before DISCONNECT', async () => {
    const { world, subscription } = await inHand()
    const stopping = world.client.disconnect()
    await world.clock.advance(100)
    const next = subscription.next()
    await world.settle()
    expect(await next).toBeUndefined()
    await stopping
    expect(types(world).slice(-2)).toEqual(['puback', 'disconnect'])
    expect([acks(world), world.clock.now()]).toEqual([['puback 1'], 100])
  })

  it('of several calls the one in most of a hurry decides; a signal cuts the wait', async () => {
    const { world } = await inHand()
    const slow = world.client.drain({ timeout: 60_000 })
    await world.clock.advance(1000)
    const controller = new AbortController()
    const fast = world.client.disconnect({ timeout: 60_000, signal: controller.signal })
    await world.clock.advance(1000)
    expect(world.client.state).toBe('disconnecting')
    controller.abort()
    await world.settle()
    await Promise.all([slow, fast])
    expect([world.client.state, world.clock.pending]).toEqual(['closed', 0])
  })
})

describe('publishes under way', () => {
  it.each(hows)('%s() waits for what is in flight or queued, QoS 2 until PUBCOMP', async (how) => {
    const world = await connected({}, accepting({ receiveMaximum: 1 }))
    const promises = [...send(world, 1, 'one'), ...send(world, 2, 'two')]
    const done = quiet(world.client[how]())
    await world.clock.advance(1000)
    expect(world.client.state).toBe('disconnecting')
    for (const type of ['puback', 'pubrec', 'pubcomp'] as const) {
      expect(world.peer.all('disconnect')).toEqual([])
      await world.send({ ...puback(type === 'puback' ? 1 : 2), type })
      if (type !== 'pubcomp') await world.clock.advance(1000)
    }
    const sent = 'publish t=one q1 #1,publish t=two q2 #2,pubrel #2,disconnect'
    expect(carried(world.peer).join()).toBe(sent)
    await expect(Promise.all(promises)).resolves.toHaveLength(2)
    await done
    expect([world.client.state, goodbyeCode(world)]).toEqual(['closed', 0])
  })

  it('with nothing outstanding DISCONNECT leaves in the same turn', async () => {
    const { client, stub } = await stubbed()
    void client.disconnect()
    expect(stub.packets.map(({ type }) => type)).toEqual(['disconnect'])
  })

  it('timeout 0 waits for nothing, neither publishes nor turns: DISCONNECT goes in front of publishes that wait for quota', async () => {
    const world = await connected({}, (packet) =>
      packet.type === 'publish' ? undefined : allowing({ receiveMaximum: 1 })(packet),
    )
    const subscription = await subscribe(world, 'a', { qos: 1 })
    await world.send(publish('a', '', 1))
    await subscription.next()
    const publishing = [1, 2, 3].map((index) =>
      failure(world.client.publish('a', String(index), { qos: 1 })),
    )
    await world.settle()
    const drained = world.client.drain()
    await end(world, { timeout: 0 })
    await drained
    expect(types(world)).toEqual(['connect', 'subscribe', 'publish', 'disconnect'])
    const outcomes = (await Promise.all(publishing)).map(({ outcome }) => outcome)
    expect(outcomes.join()).toBe('unknown,not-sent,not-sent')
    expect([world.peer.ended, world.seen('disconnect').length]).toEqual([{ cause: undefined }, 1])
  })

  it.each(hows)('%s() waits no longer than its timeout', async (how) => {
    const world = await connected({}, accepting({ receiveMaximum: 1 }))
    const publishing = ['one', 'two'].map((text) =>
      failure(world.client.publish('t', text, { qos: 1 })),
    )
    const done = quiet(world.client[how]({ timeout: 300 }))
    await world.clock.advance(299)
    expect([world.peer.all('disconnect'), world.client.state]).toEqual([[], 'disconnecting'])
    await world.clock.advance(51)
    await done
    expect([goodbyeCode(world), world.client.state]).toEqual([0, 'closed'])
    expect(
      (await Promise.all(publishing)).map(({ code, outcome }) => `${code} ${outcome}`),
    ).toEqual(['ERR_CLOSED unknown', 'ERR_CLOSED not-sent'])
  })

  it.each([
    ['while the old link ends', 0],
    ['while there is no link', 5],
  ])('a connection that we replace ourselves is waited for, %s', async (_name, later) => {
    const world = await steady({}, accepting())
    world.answer = (packet) => (packet.type === 'connect' ? undefined : agreeable(packet))
    quiet(world.client.reconnect({ force: true }))
    if (later > 0) await world.clock.advance(later)
    const sent = quiet(world.client.publish('a', 'x', { qos: 1 }))
    const done = world.client.disconnect()
    await world.clock.advance(1500)
    await world.send({ type: 'connack', sessionPresent: false, reasonCode: 0 })
    await world.clock.advance(100)
    await done
    await expect(sent).resolves.toMatchObject({ packetId: 1 })
    expect(world.peers).toHaveLength(2)
    expect(carried(world.peer)).toEqual(['publish a=x q1 #1', 'disconnect'])
  })

  it('waits for what running turns publish, and takes nothing more once they are over', async () => {
    const world = await connected({}, agreeable)
    const turn = gate()
    const handle = async (): Promise<void> => {
      await turn.promise
      void world.client.publish('answers', 'from the turn', { qos: 1 })
    }
    void world.client.listen('jobs', handle)
    await world.settle()
    await world.send(publish('jobs', 'x'))
    world.answer = () => undefined
    void world.client.disconnect()
    await settled(world, turn.open())
    expect(world.peer.all('publish')).toHaveLength(1)
    const late = await failure(world.client.publish('late', 'x', { qos: 1 }))
    const message = expect.stringContaining('disconnect() was called')
    expect(late).toMatchObject({ code: 'ERR_CLOSED', message })
    await world.send(puback(world.peer.last('publish').packetId as number))
    expect(world.peer.received.at(-1)?.type).toBe('disconnect')
  })
})

describe('what disconnect() gives up', () => {
  /** A client without listeners, of a server that acknowledges nothing. */
  async function unheard(options: ClientOptions = {}): Promise<Unheard> {
    const world = new Unheard(options)
    world.answer = accepting({ receiveMaximum: 2 })
    return world.connect()
  }

  it('raises drop, is one line of the log and one report with the count', async () => {
    const lines: string[] = []
    const world = await unheard({ logger: logger(lines) })
    let dropped = 0
    world.client.on('drop', ({ count }) => {
      dropped += count
    })
    for (let count = 0; count < 5; count++) void world.client.publish('a', 'x', { qos: 1 })
    const done = world.client.disconnect({ timeout: 100 })
    await world.clock.advance(1000)
    await done
    expect(dropped).toBe(5)
    const text =
      'mqwire unheard: disconnect() gave up 5 publishes (3 queued, 2 sent and not acknowledged): its timeout was 100 ms; a longer { timeout } waits longer'
    expect([lines, world.said]).toEqual([[`warn ${text}`], [`MQWIRE_UNSENT ${text}`]])
  })

  it('is reported without listeners, awaited or not, and once; not with logger null', async () => {
    for (const options of [{}, { logger: null }]) {
      const world = await unheard(options)
      const all = [1, 2, 3].map(() => failure(world.client.publish('a', 'x', { qos: 1 })))
      void world.client.disconnect({ timeout: 0 })
      await world.settle()
      await Promise.all(all)
      const report = expect.stringMatching(
        /^MQWIRE_UNSENT .*gave up 3 publishes \(1 queued, 2 sent/,
      )
      expect(world.said).toEqual('logger' in options ? [] : [report])
    }
  })

  it('without a connection says that', async () => {
    const world = await unheard({ reconnect: { backoff: () => 60_000 } })
    world.peer.cut()
    await world.settle()
    void world.client.publish('a', 'x', { qos: 1 })
    await world.client.disconnect()
    const report = expect.stringMatching(
      /MQWIRE_UNSENT .*gave up 1 publish .*: there was no connection; drain\(\) waits for one$/,
    )
    expect(world.said).toEqual([report])
  })

  it('nothing is said where all was acknowledged', async () => {
    const world = await new Unheard().connect()
    void world.client.publish('a', 'x', { qos: 1 })
    void world.client.disconnect()
    await world.settle()
    expect(world.said).toEqual([])
  })
})

describe('stopping', () => {
  it('what comes in after our DISCONNECT is dropped, and the stream of a peer that never ends its side is cut within the timeout', async () => {
    const transport = new StalledTransport()
    const world = await over(transport, () => transport.feed(plainConnack))
    const subscription = world.client.subscription('#')
    await world.settle()
    const events = world.events.length
    const stopping = world.client.disconnect({ timeout: 200 })
    await world.settle()
    expect(transport.written.slice(-9, -7)).toEqual([0xe0, 7])
    const sent = transport.written.length
    transport.feed('30 04 00 01 61 00 32 06 00 01 61 00 01 00 00 00')
    await world.clock.advance(250)
    await stopping
    expect(transport.written.length).toEqual(sent)
    expect(transport.destroyed === undefined).toBe(false)
    expect(world.clock.pending).toBe(0)
    await world.clock.advance(2000)
    expect(subscription.size).toBe(0)
    const seen = world.events.slice(events).map(({ type }) => type)
    expect(seen).toEqual(['state', 'state', 'disconnect'])
  })

  it('destroy cuts without DISCONNECT, so that the will is published', async () => {
    const world = await connected({ will: { topic: 'w' } })
    const publishing = failure(world.client.publish('a', 'b', { qos: 1 }))
    await world.settle()
    world.client.destroy()
    expect(world.client.state).toBe('closed')
    await world.settle()
    expect(types(world)).toEqual(['connect', 'publish'])
    expect(world.peer.ended?.cause).toBeDefined()
    expect(await publishing).toMatchObject({ code: 'ERR_CLOSED', outcome: 'unknown' })
    expect(await world.client.closed).toBeUndefined()
    expect([world.seen('disconnect').length, world.clock.pending]).toEqual([1, 0])
  })

  it('twice, joined; before connect; after the end; no event after closed', async () => {
    const world = await connected({}, agreeable)
    await Promise.all([world.client.disconnect(), world.client.disconnect(), world.settle()])
    const before = world.events.length
    await world.client.disconnect()
    world.client.destroy()
    failure(world.client.publish('a', 'b'))
    failure(world.client.connect())
    await world.clock.advance(100_000)
    expect(world.peer.all('disconnect').length).toBe(1)
    expect(world.seen('disconnect').length).toBe(1)
    expect(world.events.length).toEqual(before)
    const idle = new World()
    const queued = failure(idle.client.publish('t', 'one', { qos: 1 }))
    await idle.client.drain()
    await idle.client.disconnect()
    expect(idle.seen('state')).toEqual([{ state: 'closed', previous: 'idle' }])
    expect(idle.seen('disconnect')).toEqual([])
    expect([await idle.client.closed, (await queued).outcome]).toEqual([undefined, 'not-sent'])
    const destroyed = new World()
    destroyed.client.destroy()
    expect(destroyed.client.state).toBe('closed')
    await destroyed.client.disconnect()
  })

  it('pending calls reject once, typed', async () => {
    const world = await connected({})
    const { client } = world
    const calls = [
      ...([1, 2] as const).map((qos) => client.publish('a', 'b', { qos })),
      ...[client.subscribe('b'), client.listen('c', () => undefined), client.unsubscribe('d')],
      client.subscription('s').ready,
    ]
    const pending = calls.map((call) => failure(call as Promise<unknown>))
    await world.settle()
    void client.disconnect()
    // The answer to UNSUBSCRIBE is waited for, as long as there is time.
    await world.clock.advance(5000)
    for (const error of await Promise.all(pending))
      expect(error).toMatchObject({ code: 'ERR_CLOSED', outcome: 'unknown' })
  })

  it('calls after close are refused', async () => {
    const world = await connected({}, agreeable)
    const { client } = world
    await end(world)
    const bytes = world.peer.bytes.length
    const listening = client.listen('a', () => undefined)
    const requests = [client.subscribe('a'), client.unsubscribe('a')]
    const calls = [client.publish('a', 'b'), ...requests, client.connect()]
    const closed = { code: 'ERR_CLOSED', outcome: 'not-sent' }
    for (const call of [listening, ...calls])
      expect(await failure(call as Promise<unknown>)).toMatchObject(closed)
    expect(() => client.subscription('a')).toThrow(coded('ERR_CLOSED'))
    expect(client.post('a', 'b')).toBe(false)
    await expect(client.flush()).rejects.toMatchObject({
      code: expect.stringMatching(/ERR_(CLOSED|NOT_CONNECTED)/),
    })
    expect(await failure(client.writable)).toMatchObject({ code: 'ERR_CLOSED' })
    await world.settle()
    expect(world.peer.bytes).toHaveLength(bytes)
  })

  it('losses that wait to be reported leave no timer', async () => {
    const world = await connected()
    const subscription = world.client.subscription('a', { buffer: 1, overflow: 'drop-newest' })
    for (let round = 0; round < 5; round++) await world.send(publish('a', 'x'), publish('a', 'y'))
    expect(subscription.dropped).toBeGreaterThan(1)
    world.client.destroy()
    await world.settle()
    expect(world.clock.pending).toBe(0)
  })
})

it('a DISCONNECT of ours is followed at once by the end of the stream, a second later where the server does not end its side [MQTT-3.14.4-2] [MQTT-4.13.2-1]', async () => {
  const world = await stubbed()
  await world.deliver({ type: 'connack' })
  expect(world.stub.packets).toMatchObject([{ type: 'disconnect', reasonCode: 0x82 }])
  expect(world.stub).toMatchObject({ closing: true, over: false })
  await world.clock.advance(999)
  expect(world.stub.over).toBe(false)
  await world.clock.advance(1)
  expect(world.stub.over).toBe(true)
})

it('a DISCONNECT of ours is not followed by the PUBREL of a QoS 2 exchange whose record was being stored [MQTT-3.14.4-1]', async () => {
  const store = new MapStore()
  const world = await stubbed({ clientId: 'device', store })
  quiet(world.client.publish('t', 'x', { qos: 2 }))
  await world.settle()
  expect(world.stub.packets).toMatchObject([{ type: 'publish', packetId: 1 }])
  const stored = gate()
  const batch = store.batch.bind(store)
  store.batch = (operations) => stored.promise.then(() => batch(operations))
  await world.deliver(ack('pubrec', 1))
  quiet(world.client.reconnect({ force: true }))
  await world.settle()
  expect(world.stub).toMatchObject({ closing: true, over: false })
  expect(world.stub.packets.at(-1)?.type).toBe('disconnect')
  const { length } = world.stub.writes
  stored.open()
  await world.clock.advance(10)
  expect(world.stub.writes).toHaveLength(length)
})
