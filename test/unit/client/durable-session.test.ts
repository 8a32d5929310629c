/** Sessions over several connections: Clean Start, the state of an earlier process, and a link that drops in the middle of a packet, at each of its bytes. */
import { describe, expect, it } from 'vitest'
import type { ClientOptions } from '../../../src/client/options/index.js'
import { type Answer, ScriptedPeer } from '../../../src/testing/scripted-peer.js'
import { memoryPair } from '../../../src/transport/memory.js'
import {
  again,
  carried,
  comeBack,
  forgets,
  frames,
  keeps,
  lasting,
  lose,
  steady,
  willing,
} from './across.js'
import { connected, failure, World } from './harness.js'
import { acked, acks, publish, quiet, subscribe, takenTexts } from './incoming.js'
import { refusing } from './rig.js'

const durable: ClientOptions = { ...lasting, clientId: 'mine', cleanStart: false }
const connects = (world: World) => world.peers.map((peer) => peer.all('connect')[0])
const cleanStarts = (world: World) => connects(world).map((packet) => packet?.cleanStart)
const ack = (type: 'puback' | 'pubrec' | 'pubcomp', packetId = 0, reasonCode = 0) =>
  ({ type, packetId, reasonCode, properties: {} }) as const

it('Clean Start is as configured until the first CONNACK that takes us in, then 0', async () => {
  const world = new World({ ...lasting, firstConnect: 'wait' })
  const connecting = world.client.connect()
  world.answer = refusing(0x88)
  await world.clock.advance(25)
  expect(connects(world).length).toBeGreaterThanOrEqual(2)
  world.answer = forgets()
  await world.clock.advance(10)
  await connecting
  expect(new Set(cleanStarts(world))).toEqual(new Set([true]))
  await again(world)
  await again(world, forgets())
  await again(world)
  expect(cleanStarts(world).slice(-3)).toEqual([false, false, false])
})

it('the end of one with cleanStart ends the session: expiry 0; also after it came back with Clean Start 0', async () => {
  const world = await steady()
  await again(world)
  await Promise.all([world.client.disconnect(), world.settle()])
  expect(world.peer.last('disconnect').properties).toEqual({ sessionExpiryInterval: 0 })
})

describe('a session whose past this process does not know', () => {
  it.each([0, 0x92])(
    'a QoS 2 identifier is cleared before its first use: PUBCOMP %i',
    async (code) => {
      const world = await connected(durable, keeps())
      const promise = quiet(world.client.publish('t', 'two', { qos: 2 }))
      await world.settle()
      const cleared = world.peer.all('pubrel').map((packet) => packet.packetId)
      expect(cleared.length).toBeGreaterThan(0)
      expect(world.peer.all('publish')).toEqual([])
      await world.send(...cleared.map((id) => ack('pubcomp', id, code)))
      const [packet] = world.peer.all('publish')
      expect(cleared).toContain(packet?.packetId)
      expect(packet?.dup).toBe(false)
      await world.send(ack('pubrec', packet?.packetId))
      await world.send(ack('pubcomp', packet?.packetId))
      await expect(promise).resolves.toMatchObject({ packetId: packet?.packetId })
    },
  )

  it('on 5.0 a QoS 1 message whose identifier the server has in use (PUBACK 0x91) goes out under another one', async () => {
    const world = await connected(durable, keeps())
    const promise = quiet(world.client.publish('t', 'one', { qos: 1 }))
    await world.settle()
    const [first] = world.peer.all('publish')
    await world.send(ack('puback', first?.packetId, 0x91))
    const [, second] = world.peer.all('publish')
    expect([second?.dup, second?.packetId === first?.packetId]).toEqual([false, false])
    expect(await world.outcome(promise)).toEqual({ state: 'pending' })
    await world.send(ack('puback', second?.packetId))
    await expect(promise).resolves.toMatchObject({ packetId: second?.packetId })
  })

  it.each([
    ['for a message sent once', false, 'refused'],
    ['for one sent again: that may be our own first copy', true, 'unknown'],
  ])('PUBREC 0x91 %s', async (_, cut, outcome) => {
    const world = await connected(durable, forgets())
    const silent: Answer = (packet) =>
      packet.type === 'publish' ? undefined : willing(true)(packet)
    world.answer = silent
    const error = failure(world.client.publish('t', 'one', { qos: 2 }))
    await world.settle()
    if (cut) await again(world, silent)
    await world.send(ack('pubrec', 1, 0x91))
    expect(world.peer.last('publish').dup).toBe(cut)
    expect(await error).toMatchObject({ code: 'ERR_PUBLISH_REFUSED', reasonCode: 0x91, outcome })
  })
})

/** Unclaimed messages are held so long. */
const held: ClientOptions = { clientId: 'mine', cleanStart: false, unclaimedHold: 5000 }

describe('messages without a subscription', () => {
  it('are held over a drop, bound to their repeats, and handed to the first subscription, once and in order', async () => {
    const world = await steady(held, willing(true))
    await world.send(publish('t', 'one', 1), publish('t', 'two', 2, { qos: 2 }))
    expect(acks(world)).toEqual([])
    await again(world, willing(true))
    const two = publish('t', 'two', 2, { qos: 2, dup: true })
    await world.send(publish('t', 'one', 1, { dup: true }), two)
    expect(acks(world)).toEqual([])
    const subscription = await subscribe(world, 't', { qos: 2 })
    expect(takenTexts(subscription)).toEqual(['one', 'two'])
    subscription.read()
    expect(await acked(world)).toEqual(['puback 1', 'pubrec 2'])
  })

  it('the time of `unclaimedHold` runs from the first CONNACK, and on over a drop; then they are acknowledged with the event', async () => {
    const log: string[] = []
    const logger = { warn: (text: string) => log.push(text) }
    const world = await steady({ ...held, logger }, willing(true))
    await world.send(publish('t', 'one', 1))
    await world.clock.advance(4000)
    await again(world, willing(true))
    await world.send(publish('t', 'one', 1, { dup: true }))
    await world.clock.advance(989)
    expect(world.seen('unclaimed')).toEqual([])
    await world.clock.advance(1)
    expect(world.seen('unclaimed')).toHaveLength(1)
    expect(acks(world)).toEqual(['puback 1'])
    expect(log).toEqual([expect.stringMatching(/1 message .*unclaimedHold.*5000 ms/)])
    // After it nothing is held, on no later connection.
    await again(world, willing(true))
    await world.send(publish('t', 'two', 2))
    expect(acks(world)).toEqual(['puback 2'])
    expect(world.seen('unclaimed')).toHaveLength(2)
  })

  it('the time may end while there is no connection: the acknowledgement waits for the repeat', async () => {
    const world = await steady(held, willing(true))
    await world.send(publish('t', 'one', 1))
    world.answer = () => undefined
    await lose(world)
    await world.clock.advance(6000)
    expect(world.seen('unclaimed')).toHaveLength(1)
    await lose(world)
    await comeBack(world, willing(true))
    expect(acks(world)).toEqual([])
    await world.send(publish('t', 'one', 1, { dup: true }))
    expect(acks(world)).toEqual(['puback 1'])
    expect(world.seen('unclaimed')).toHaveLength(1)
  })
})

it('a subscription that was left to the broker (detach): `client.unsubscribe(filter)` while there is no connection releases it: nothing brings it back', async () => {
  const world = await steady(held, willing(false))
  const subscription = await subscribe(world, 't', { qos: 1 })
  subscription.detach()
  await lose(world)
  const left = world.client.unsubscribe('t')
  await comeBack(world, willing(true))
  await left
  await again(world, willing(false))
  expect(world.peer.all('subscribe')).toEqual([])
})

interface Operation {
  readonly name: string
  /** What is there before. */
  prepare?(world: World): Promise<unknown>
  start(world: World): Promise<unknown>
  /** What the next connection carries: the session was kept, or lost. */
  readonly kept: readonly RegExp[]
  readonly lost: readonly RegExp[]
}

const publishing = (qos: 0 | 1 | 2) => (world: World) => world.client.publish('t', 'text', { qos })
const request = (pattern: RegExp) => ({ kept: [pattern], lost: [pattern] })

const operations: Operation[] = [
  { name: 'QoS 0', start: publishing(0), kept: [], lost: [] },
  {
    name: 'QoS 1',
    start: publishing(1),
    kept: [/^publish t=text q1 #1 dup$/],
    lost: [/^publish t=text q1 #\d+$/],
  },
  {
    name: 'QoS 2',
    start: publishing(2),
    kept: [/^publish t=text q2 #1 dup$/, /^pubrel #1$/],
    lost: [],
  },
  {
    name: 'subscribe',
    start: ({ client }) => client.subscribe('a/b', { qos: 1 }),
    ...request(/^subscribe a\/b #\d+$/),
  },
  {
    name: 'unsubscribe',
    prepare: (world) => subscribe(world, 'a/b'),
    start: ({ client }) => client.unsubscribe('a/b'),
    ...request(/^unsubscribe a\/b #\d+$/),
  },
]

/** Says yes to everything, in the words of the version. */
function server(version: 4 | 5, sessionPresent: boolean): Answer {
  const answer = willing(sessionPresent)
  return (packet) =>
    packet.type === 'unsubscribe' && version === 4
      ? { type: 'unsuback', packetId: packet.packetId, reasonCodes: [] }
      : answer(packet)
}

/** The operation on a client whose first connection ends after so many bytes towards the server; the session is durable on both versions. */
async function started(
  operation: Operation,
  bytes: number | undefined,
  policy: 'queue' | 'reject',
  version: 4 | 5,
) {
  const offline = { qos0: policy, qos1: policy, qos2: policy }
  const session = { clientId: 'c', cleanStart: false, protocolVersion: version }
  const world: World = new World({ ...lasting, ...session, outbound: { offline } }, {}, 1, () => {
    const [near, far] = memoryPair({
      schedule: (callback, delay) => world.clock.setTimer(callback, delay),
      ...(bytes === undefined || world.peers.length > 0 ? {} : { forward: { drop: bytes } }),
    })
    world.peers.push(new ScriptedPeer(far, version, (packet) => world.answer?.(packet)))
    return near
  })
  await world.up(server(version, false))
  await operation.prepare?.(world)
  const from = world.peer.bytes.length
  const before = world.peer.received.length
  const ends: unknown[] = []
  operation.start(world).then(
    () => ends.push('fulfilled'),
    (error: unknown) => ends.push(error),
  )
  await world.settle()
  const [packet = []] = bytes === undefined ? frames(world.peer).slice(before) : []
  return { world, from, to: from + packet.length, ends }
}

const cases = operations.flatMap((operation) =>
  ([5, 4] as const).flatMap((version) =>
    (['queue', 'reject'] as const).flatMap((policy) =>
      (['kept', 'lost'] as const).map((session) => ({ ...operation, version, policy, session })),
    ),
  ),
)

it.each(cases)(
  'half written when the link drops: $name on version $version, offline "$policy", the session is $session',
  async ({ version, policy, session, ...operation }) => {
    const whole = await started(operation, undefined, policy, version)
    expect(whole.to - whole.from).toBeGreaterThan(6)
    whole.world.client.destroy()
    for (let at = whole.from + 1; at <= whole.to; at++) {
      const { world, ends } = await started(operation, at, policy, version)
      expect(world.peers[0]?.bytes, `byte ${at}`).toHaveLength(at)
      // Handed to the transport, QoS 0 has had its only chance.
      expect(ends, `byte ${at}`).toEqual(operation.name === 'QoS 0' ? ['fulfilled'] : [])
      const peer = await comeBack(world, server(version, session === 'kept'))
      await world.settle()
      // A request whose answer did not come goes behind an answered PINGREQ.
      const lines = carried(peer).filter((line) => line !== 'pingreq')
      expect(lines, `byte ${at}`).toEqual(
        operation[session].map((pattern) => expect.stringMatching(pattern)),
      )
      const isLost = session === 'lost' && operation.name === 'QoS 2'
      expect(ends, `byte ${at}`).toMatchObject([
        isLost ? { code: 'ERR_SESSION_LOST', outcome: 'unknown' } : 'fulfilled',
      ])
      await lose(world)
      expect(carried(await comeBack(world, server(version, true))), `byte ${at}: once`).toEqual([])
      world.client.destroy()
    }
  },
)
