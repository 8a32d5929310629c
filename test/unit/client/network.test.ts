/** The network and the clock around the client: large packets both ways, slow and uneven lines, a wall clock that is set back. */
import { describe, expect, it } from 'vitest'
import type { ClientOptions } from '../../../src/client/api/index.js'
import { ScriptedPeer } from '../../../src/testing/scripted-peer.js'
import { type MemoryOptions, memoryPair } from '../../../src/transport/memory.js'
import type { PublishPacket } from '../../../src/wire/packets.js'
import { lasting } from './across.js'
import { accepting, agreeable, connected, failure, World } from './harness.js'
import { quiet, subscribe, taken } from './incoming.js'
import { down, Rig, reconnect } from './rig.js'
import { SmallBroker } from './small-broker.js'
import { ack, stubbed } from './stub.js'

const pattern = (size: number): Uint8Array =>
  Uint8Array.from({ length: size }, (_, index) => (index * 13 + (index >> 8)) & 0xff)

describe('large packets', () => {
  it.each([
    [1_000_000, 1_048_576, 16_384],
    [3_000_000, 4_000_000, 1000],
  ])('%i bytes come in pieces, intact at each QoS', async (size, maximumPacketSize, split) => {
    const world = await connected({ maximumPacketSize }, agreeable, { split })
    const subscription = await subscribe(world, 'in', { qos: 2, ack: 'manual' })
    const payload = pattern(size)
    for (const qos of [0, 1, 2] as const) {
      await world.send({
        type: 'publish',
        topic: 'in',
        payload,
        qos,
        packetId: qos === 0 ? undefined : qos,
      })
      expect(Buffer.compare(taken(subscription).payload, payload)).toBe(0)
    }
    expect(world.client.state).toBe('connected')
    world.client.destroy()
  })

  it('DISCONNECT comes after a packet that is partly written, and before what waits', async () => {
    const world = await stubbed()
    const payload = pattern(1_048_576)
    world.stub.takes = false
    const publishing = [payload, 'second', 'third'].map((each) =>
      failure(world.client.publish('t', each, { qos: 1 })),
    )
    await world.settle()
    await Promise.all([world.client.disconnect({ timeout: 0 }), world.settle()])
    world.stub.release()
    await world.settle()
    const { packets } = world.stub
    expect(packets.map(({ type }) => type)).toEqual(['publish', 'disconnect'])
    expect(Buffer.compare((packets[0] as PublishPacket).payload, payload)).toBe(0)
    expect((await Promise.all(publishing)).map(({ outcome }) => outcome)).toEqual([
      'unknown',
      'not-sent',
      'not-sent',
    ])
  })
})

it.each<MemoryOptions>([
  { forward: { latency: 900 }, backward: { latency: 5 } },
  { forward: { latency: 5 }, backward: { latency: 900 } },
  { split: 7, forward: { latency: 300 }, backward: { latency: 40 } },
  { split: 1, latency: 1 },
])('a slow and uneven line is slower, and nothing else: %j', async (memory) => {
  const deliver = Array.from({ length: 40 }, (_, index) => ({
    text: `in ${index}`,
    qos: index % 2 === 0 ? (1 as const) : (2 as const),
  }))
  const broker = new SmallBroker({ receiveMaximum: 8, deliver })
  const world: World = new World({ ...lasting, keepAlive: 10, pingTimeout: 5000 }, {}, 1, () => {
    const [near, far] = memoryPair({
      ...memory,
      schedule: (callback, delay) => world.clock.setTimer(callback, delay),
    })
    world.peers.push(
      new ScriptedPeer(far, 5, (packet) =>
        packet.type === 'pingreq' ? { type: 'pingresp' } : broker.answer(packet),
      ),
    )
    return near
  })
  const texts: string[] = []
  const subscription = world.client.subscription('in', { qos: 2 })
  const reading = (async () => {
    for await (const message of subscription) texts.push(message.text())
  })()
  quiet(world.client.connect())
  const sent = Array.from({ length: 60 }, (_, index) =>
    world.client.publish('t', `out ${index}`, { qos: index % 2 === 0 ? 2 : 1 }),
  )
  await world.clock.advance(120_000)
  await Promise.all(sent)
  expect(broker.accepted.map(({ text }) => text)).toEqual(sent.map((_, index) => `out ${index}`))
  expect(texts).toEqual(deliver.map(({ text }) => text))
  expect([broker.broken, broker.undelivered, world.peers.length, world.seen('disconnect')]).toEqual(
    [[], 0, 1, []],
  )
  world.client.destroy()
  await reading.catch(() => undefined)
})

describe('the wall clock is set back by a day', () => {
  /** A client whose calendar goes back when asked to. */
  async function rig(options: ClientOptions = {}): Promise<{ world: Rig; back(): void }> {
    let days = 40
    const world: Rig = new Rig(options, {
      platform: { date: () => world.clock.now() + days * 86_400_000 },
    })
    await world.up()
    const back = (): void => {
      days -= 1
    }
    return { world, back }
  }

  it('keep-alive, back-off and timeouts go on as before', async () => {
    const { world, back } = await rig({ keepAlive: 10, pingTimeout: 5000, connectTimeout: 2000 })
    await world.advance(5000)
    back()
    await world.advance(4999)
    expect(world.peer.all('pingreq')).toHaveLength(0)
    await world.advance(1)
    expect(world.peer.all('pingreq')).toHaveLength(1)
    quiet(world.client.publish('t', 'x', { qos: 1, ackTimeout: 500 }))
    world.peer.answer = () => undefined
    world.behave = () => () => undefined
    await world.settle()
    await world.cut()
    back()
    await world.advance(1000 + 2000)
    expect(world.seen('connecterror')).toMatchObject([{ error: { code: 'ERR_CONNECT_TIMEOUT' } }])
    expect(world.delays).toEqual([reconnect.backoff(1), reconnect.backoff(2)])
    world.behave = () => agreeable
    await world.advance(2000)
    expect(world.client.state).toBe('connected')
    await world.finish()
  })

  it('`ttl`, message expiry and ackTimeout count the time that passed', async () => {
    const { world, back } = await rig()
    world.behave = () => down
    await world.cut()
    const short = failure(world.client.publish('t', 'short', { qos: 1, ttl: 2500 }))
    const expiring = failure(
      world.client.publish('t', 'expiring', { qos: 1, properties: { messageExpiryInterval: 3 } }),
    )
    quiet(world.client.publish('t', 'lives', { qos: 1, properties: { messageExpiryInterval: 60 } }))
    back()
    await world.advance(4000)
    expect([(await short).code, (await expiring).code]).toEqual(['ERR_EXPIRED', 'ERR_EXPIRED'])
    world.behave = () => agreeable
    await world.advance(10_000)
    const interval = world.peer.all('publish')[0]?.properties.messageExpiryInterval
    expect(interval).toBeLessThanOrEqual(56)
    expect(interval).toBeGreaterThan(40)
    await world.finish()
  })

  it('a session that is over by the time that passed is over', async () => {
    const { world, back } = await rig({ sessionExpiryInterval: 20 })
    const waiting = failure(world.client.publish('t', 'x', { qos: 2, onSessionLost: 'reject' }))
    world.peer.answer = () => undefined
    world.behave = () => down
    await world.cut()
    back()
    await world.advance(19_000)
    expect(world.seen('sessionlost')).toEqual([])
    await world.advance(30_000)
    expect(world.seen('sessionlost')).toMatchObject([{ cause: 'expired' }])
    expect((await waiting).code).toBe('ERR_SESSION_LOST')
    await world.finish()
  })
})

it('Request Problem Information 0 is asked for; what the server may still say is told, the rest is not expected', async () => {
  const world = await connected(
    { requestProblemInformation: false },
    accepting({ reasonString: 'welcome' }),
  )
  expect(world.peer.last('connect').properties.requestProblemInformation).toBe(0)
  expect(world.client.negotiated?.reasonString).toBe('welcome')
  const refused = failure(world.client.publish('t', 'x', { qos: 1 }))
  await world.send(ack('puback', 1, 0x97))
  const error = await refused
  expect([error.code, error.reasonCode, error.reasonString]).toEqual([
    'ERR_PUBLISH_REFUSED',
    0x97,
    undefined,
  ])
  expect(error.message.length).toBeGreaterThan(10)
  await world.send({
    type: 'disconnect',
    reasonCode: 0x8b,
    properties: { reasonString: 'going down' },
  })
  expect(world.seen('serverdisconnect')[0]?.error.reasonString).toBe('going down')
})
