/** The 3.1.1 half of rows that are told for 5.0 elsewhere: no reason codes, no properties, no DISCONNECT to say what was wrong. */
import { describe, expect, it } from 'vitest'
import type { ClientOptions } from '../../../src/client/api/index.js'
import { comeBack, lasting, lose, steady, willing } from './across.js'
import { connected, failure, World } from './harness.js'
import { acks, agreed, publish, quiet, subscribe, taken, takenTexts } from './incoming.js'
import { Rig } from './rig.js'

const four: ClientOptions = { protocolVersion: 4, keepAlive: false, reconnect: false }
const durable: ClientOptions = { protocolVersion: 4, clientId: 'mine', cleanStart: false }
const wrong = /^ERR_(MALFORMED_PACKET|PROTOCOL_ERROR|UNEXPECTED_PACKET)$/

/** The link ended because of the server, and the server was told nothing. */
async function ended(world: World): Promise<void> {
  expect(await world.client.closed).toMatchObject({ code: expect.stringMatching(wrong) as string, fault: 'remote' })
  expect(world.peer.all('disconnect')).toEqual([])
  expect(world.peer.ended).toBeDefined()
  expect(world.clock.pending).toBe(0)
}

describe('before CONNACK', () => {
  it.each(['d0 00', '90 03 00 01 00', '30 03 00 01 74', '40 02 00 01', 'f0 00', 'c0 00'])('%s: close, nothing delivered', async (hex) => {
    const world = new World(four)
    const subscription = world.client.subscription('t')
    const error = failure(world.client.connect())
    await world.settle()
    await world.sendBytes(hex)
    expect((await error).code).toMatch(wrong)
    expect([world.seen('connect'), subscription.size]).toEqual([[], 0])
    expect(world.peer.received.map(({ type }) => type)).toEqual(['connect'])
    expect(world.peer.ended).toBeDefined()
  })

  it('an empty password has its flag', async () => {
    const world = new World({ ...four, clientId: 'me', username: 'u', password: '' })
    quiet(world.client.connect())
    await world.settle()
    expect(world.peer.bytes).toEqual([0x10, 19, 0, 4, 0x4d, 0x51, 0x54, 0x54, 4, 0xc2, 0, 0, 0, 2, 0x6d, 0x65, 0, 1, 0x75, 0, 0])
    world.client.destroy()
  })
})

describe('what a server may not send: close, without DISCONNECT', () => {
  it.each([
    ['CONNACK', '20 02 00 00'],
    ['CONNECT', '10 0d 00 04 4d 51 54 54 04 02 00 00 00 01 61'],
    ['SUBSCRIBE', '82 06 00 01 00 01 61 00'],
    ['UNSUBSCRIBE', 'a2 05 00 01 00 01 61'],
    ['PINGREQ', 'c0 00'],
    ['PUBACK with a reason code of 5.0', '40 03 00 01 00'],
    ['QoS bits 11', '36 05 00 01 74 00 01'],
    ['QoS 1 with identifier 0', '32 05 00 01 74 00 00'],
    ['QoS 2 with identifier 0', '34 05 00 01 74 00 00'],
    ['an empty topic, which only an alias could explain', '30 02 00 00'],
    ['a topic with a wildcard', '30 03 00 01 23'],
    ['a topic with NUL', '30 03 00 01 00'],
    ['a topic that is no UTF-8', '30 03 00 01 ff'],
  ])('%s', async (_name, hex) => {
    const world = await connected(four)
    await world.sendBytes(hex)
    await ended(world)
  })

  it.each([0x03, 0x7f, 0x81, 0x87, 0xff])('SUBACK with code %i, which 5.0 may have and 3.1.1 has not', async (code) => {
    const world = await connected(four)
    const error = failure(world.client.subscribe('a', { qos: 2 }))
    await world.settle()
    await world.sendBytes([0x90, 3, 0, 1, code])
    expect((await error).code).toMatch(wrong)
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

  it('PUBREL before our PUBREC', async () => {
    const world = await agreed(four)
    await subscribe(world, 't', { qos: 2, ack: 'manual' })
    await world.send(publish('t', 'x', 1, { qos: 2 }))
    await world.sendBytes('62 02 00 01')
    await ended(world)
  })

  it.each([
    [1, 2],
    [2, 1],
  ] as const)('an identifier in use at QoS %i, then at QoS %i', async (first, second) => {
    const world = await agreed(four)
    await subscribe(world, 't', { qos: 2, ack: 'manual' })
    await world.send(publish('t', 'x', 1, { qos: first }), publish('t', 'y', 1, { qos: second }))
    await ended(world)
  })
})

describe('answers for nobody', () => {
  it('SUBACK and UNSUBACK are ignored and counted, the link stays', async () => {
    const world = await connected({ ...four, stats: true })
    await world.sendBytes('90 03 00 09 00', 'b0 02 00 09')
    expect(world.client.stats().unsolicitedAcks).toBe(2)
    expect(world.client.state).toBe('connected')
  })

  it('a second PUBREC gets PUBREL again, PUBLISH never', async () => {
    const world = await connected(four)
    const done = quiet(world.client.publish('t', 'x', { qos: 2 }))
    await world.settle()
    await world.sendBytes('50 02 00 01', '50 02 00 01')
    expect(world.peer.received.map(({ type }) => type)).toEqual(['connect', 'publish', 'pubrel', 'pubrel'])
    await world.sendBytes('70 02 00 01')
    await expect(done).resolves.toMatchObject({ packetId: 1 })
  })
})

describe('receiving', () => {
  it('there is no Receive Maximum: a slow reader gets more than our 256, in order, and nothing is lost', async () => {
    const world = await agreed(four)
    const subscription = await subscribe(world, 't', { qos: 1, ack: 'manual', buffer: 5 })
    await world.send(...Array.from({ length: 300 }, (_, index) => publish('t', `${index}`, index + 1)))
    expect(world.client.state).toBe('connected')
    const texts: string[] = []
    for (let message = subscription.read(); message !== undefined; message = subscription.read()) {
      texts.push(message.text())
      message.ack()
      await world.settle()
    }
    expect(texts).toEqual(Array.from({ length: 300 }, (_, index) => `${index}`))
    expect(acks(world)).toHaveLength(300)
    world.client.destroy()
  })

  it.each([1, 2] as const)('a handler that fails at QoS %i: plainly acknowledged, with an error event', async (qos) => {
    const world = await agreed(four)
    const cause = new Error('no')
    const listening = world.client.listen(
      't',
      () => {
        throw cause
      },
      { qos, onError: 'reject' },
    )
    await world.settle()
    await listening
    const at = world.peer.bytes.length
    await world.send(publish('t', 'x', 7, { qos }))
    expect(world.peer.bytes.slice(at)).toEqual([qos === 1 ? 0x40 : 0x50, 2, 0, 7])
    expect(world.seen('error')).toMatchObject([{ error: { code: 'ERR_HANDLER_FAILED', cause } }])
    world.client.destroy()
  })

  it('a QoS 2 exchange over a reconnect: answered again, delivered once, also without DUP', async () => {
    for (const dup of [true, false]) {
      const world = await steady(durable, willing(false))
      const subscription = await subscribe(world, 't', { qos: 2 })
      await world.send(publish('t', 'one', 3, { qos: 2 }))
      expect(taken(subscription).text()).toBe('one')
      expect(subscription.read()).toBeUndefined()
      await world.settle()
      expect(acks(world)).toEqual(['pubrec 3'])
      await lose(world)
      await comeBack(world, willing(true))
      await world.send(publish('t', 'one', 3, { qos: 2, dup }))
      await world.sendBytes('62 02 00 03')
      expect(acks(world)).toEqual(['pubrec 3', 'pubcomp 3'])
      expect(subscription.read()).toBeUndefined()
      world.client.destroy()
    }
  })

  it('after Session Present 1 messages wait for a subscription; without it they are acknowledged, with the event', async () => {
    const resumed = await steady(durable, willing(true))
    await resumed.send(publish('t', 'kept', 1))
    expect(acks(resumed)).toEqual([])
    const subscription = await subscribe(resumed, 't', { qos: 1 })
    expect(takenTexts(subscription)).toEqual(['kept'])
    const fresh = await steady(durable, willing(false))
    await fresh.send(publish('t', 'nobody', 1))
    expect(acks(fresh)).toEqual(['puback 1'])
    expect(fresh.seen('unclaimed')).toHaveLength(1)
    resumed.client.destroy()
    fresh.client.destroy()
  })

  it('giving up what was never subscribed resolves: an UNSUBACK of 3.1.1 says nothing more', async () => {
    const world = await connected(four)
    const leaving = quiet(world.client.unsubscribe('a'))
    await world.settle()
    await world.sendBytes('b0 02 00 01')
    expect(await leaving).toMatchObject([{ filter: 'a', reasonCode: 0, error: undefined }])
  })
})

describe('over several connections', () => {
  it('`reconnect({ force: true })`: a plain DISCONNECT, a new link, the session goes on', async () => {
    const world = await steady(durable, willing(false))
    quiet(world.client.publish('t', 'x', { qos: 1 }))
    await world.settle()
    world.answer = willing(true)
    const done = world.client.reconnect({ force: true })
    await world.clock.advance(6000)
    await done
    expect(world.peers).toHaveLength(2)
    expect(world.peers[0]?.bytes.slice(-2)).toEqual([0xe0, 0])
    expect(world.peer.last('connect').cleanStart).toBe(false)
    expect(world.seen('sessionlost')).toEqual([])
    expect(world.client.state).toBe('connected')
    world.client.destroy()
  })

  it('expiresAt: there is no re-authentication, so the link is renewed ahead of time with new credentials', async () => {
    let calls = 0
    const credentials = () => {
      calls += 1
      return { username: 'u', password: `token-${calls}`, expiresAt: rig.clock.now() + 100_000 }
    }
    const rig: Rig = new Rig({ ...durable, credentials, refreshBefore: 10_000 }, { version: 4, behave: () => willing(true) })
    await rig.up()
    await rig.advance(89_000)
    expect(rig.peers).toHaveLength(1)
    await rig.advance(3000)
    expect(rig.peers.map((peer) => new TextDecoder().decode(peer.last('connect').password))).toEqual(['token-1', 'token-2'])
    expect(rig.seen('sessionlost')).toEqual([])
    await rig.finish()
  })

  it('keep-alive timeout: told once, made again, QoS 1 repeated', async () => {
    const world = await steady({ ...durable, keepAlive: 10, pingTimeout: 5000 })
    quiet(world.client.publish('t', 'x', { qos: 1 }))
    await world.clock.advance(14_999)
    expect(world.peer.all('pingreq')).toHaveLength(1)
    world.answer = willing(true)
    await world.clock.advance(100)
    expect(world.seen('disconnect')).toMatchObject([{ cause: { code: 'ERR_KEEPALIVE_TIMEOUT' } }])
    expect(world.peers[0]?.all('disconnect')).toEqual([])
    expect(world.peer.all('publish').map(({ dup, packetId }) => [dup, packetId])).toEqual([[true, 1]])
    world.client.destroy()
  })

  it('Session Present is welcome to a durable client and to nobody else', async () => {
    const world = new World({ ...lasting, protocolVersion: 4, reconnect: false })
    world.answer = willing(true)
    const error = failure(world.client.connect())
    await world.settle()
    expect((await error).code).toBe('ERR_PROTOCOL_ERROR')
    expect(world.peer.all('disconnect')).toEqual([])
    expect((await steady(durable, willing(true))).client.state).toBe('connected')
  })
})
