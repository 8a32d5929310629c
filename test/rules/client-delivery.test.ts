/**
 * Sections 3.2 and 4.1 to 4.6, by the bytes of a client: what CONNACK says of the session, the limits that it sets, and delivery in both directions:
 * what is sent again, and in which order.
 */
import { describe, expect, it } from 'vitest'
import type { Subscription } from '../../src/client/options/index.js'
import { takenTexts } from '../unit/client/incoming.js'
import { toy } from '../unit/client/toy-auth.js'
import {
  connack,
  dialled,
  fresh,
  opened,
  packet,
  puback,
  pubcomp,
  publish,
  pubrec,
  pubrel,
  quiet,
  refusal,
  resumed,
  suback,
  text,
  u8,
  u16,
  u32,
  type Wire,
} from './bytes.js'

/** Maximum QoS, Retain Available, Maximum Packet Size, Topic Alias Maximum, Receive Maximum; identifiers are not offered. */
const maximumQoS = (qos: number, sessionPresent = 0): string =>
  connack(`290024${u8(qos)}`, sessionPresent)
const noRetain = (sessionPresent = 0): string => connack('29002500', sessionPresent)
const atMost = (size: number, sessionPresent = 0): string =>
  connack(`290027${u32(size)}`, sessionPresent)
const aliases = (count: number): string => connack(`290022${u16(count)}`)

describe('Session Present', () => {
  it('[MQTT-3.2.2-5] 0 for a client that holds one: nothing is sent as its state, and identifiers of the server mean new messages', async () => {
    const wire = await opened({ outbound: { onSessionLost: 'reject' } })
    const reader = await wire.subscribed('a', 2)
    const failed = [wire.publish(1, 'one'), wire.publish(2, 'two'), wire.publish(2, 'three')].map(
      (promise) => refusal(() => promise),
    )
    await wire.give(pubrec(4), publish(0x34, 'a', 7, 'first'))
    expect(reader.read()?.text()).toBe('first')
    reader.read()
    await wire.settle()
    expect(wire.take().slice(-2)).toEqual([pubrel(4), pubrec(7)])
    // The subscription is made anew, nothing else.
    expect(await wire.again(fresh)).toEqual([packet(0x82, u16(5), '00', text('a'), '02')])
    await wire.give(suback(5, 2))
    for (const error of failed) expect(await error).toMatchObject({ code: 'ERR_SESSION_LOST' })
    await wire.give(publish(0x3c, 'a', 7, 'second'))
    expect(reader.read()?.text()).toBe('second')
    expect(await wire.again()).toEqual([])
  })
})

describe('Maximum QoS', () => {
  it('[MQTT-3.2.2-11] what was queued before the connection is held to it, too', async () => {
    const wire = await dialled()
    const [one, two] = [wire.publish(1, 'one'), wire.publish(2, 'two')]
    wire.take()
    expect(await wire.answers(maximumQoS(1))).toEqual([publish(0x32, 't', 1, 'one')])
    expect(await refusal(() => two)).toMatchObject({ code: 'ERR_QOS_UNSUPPORTED' })
    await wire.give(puback(1))
    await one
  })

  it.each([0, 1])(
    '[MQTT-3.2.2-11] a later server takes less, Session Present %i',
    async (sessionPresent) => {
      const wire = await opened({ outbound: { onSessionLost: 'republish' } })
      const two = refusal(() => wire.publish(2, 'two'))
      const one = refusal(() => wire.publish(1, 'one'))
      await wire.settle()
      expect(
        (await wire.again(maximumQoS(0, sessionPresent))).filter((bytes) => bytes.startsWith('3')),
      ).toEqual([])
      expect([(await one).code, (await two).code]).toEqual([
        'ERR_QOS_UNSUPPORTED',
        'ERR_QOS_UNSUPPORTED',
      ])
    },
  )
})

describe('Retain Available 0', () => {
  it('[MQTT-3.2.2-14] what was queued before the connection is held to it, too, and so is what was in flight', async () => {
    const wire = await dialled()
    const queued = wire.publish(1, 'x', { retain: true })
    wire.take()
    expect(await wire.answers(noRetain())).toEqual([])
    expect(await refusal(() => queued)).toMatchObject({ code: 'ERR_RETAIN_UNSUPPORTED' })
    const other = await opened()
    other.publish(1, 'x', { retain: true })
    expect(await other.sent()).toEqual([publish(0x33, 't', 1, 'x')])
    expect(await other.again(noRetain(1))).toEqual([])
  })
})

describe('Maximum Packet Size', () => {
  const size = 64
  const published = (payload: number): string => publish(0x30, 't', 0, 'x'.repeat(payload))
  // PUBLISH at QoS 0: 2 + 3 + 1.
  const fits = size - 6

  it('[MQTT-3.2.2-15] a PUBLISH of exactly that size leaves; one byte more fails, and nothing leaves', async () => {
    const wire = await opened({}, atMost(size))
    for (const [qos, most] of [
      [0, fits],
      [1, fits - 2],
      [2, fits - 2],
    ] as const) {
      wire.publish(qos, 'x'.repeat(most))
      await wire.settle()
      expect(wire.take().map((bytes) => bytes.length / 2)).toEqual([size])
      expect(
        await refusal(() => wire.client.publish('t', 'x'.repeat(most + 1), { qos })),
      ).toMatchObject({
        code: 'ERR_PACKET_TOO_LARGE',
        outcome: 'not-sent',
      })
      expect(await wire.sent()).toEqual([])
    }
    expect(published(fits).length / 2).toBe(size)
  })

  it('[MQTT-3.2.2-15] post() takes the same limit, with a topic alias or without', async () => {
    const wire = await opened({}, connack(`290027${u32(size)}22${u16(5)}`))
    const bytes = (count: number): Uint8Array => new Uint8Array(count).fill(0x78)
    wire.client.post('t', bytes(fits))
    wire.client.post('u', bytes(fits - 3))
    expect(await refusal(() => wire.client.post('v', bytes(fits + 1)))).toMatchObject({
      code: 'ERR_PACKET_TOO_LARGE',
    })
    await wire.settle()
    expect(wire.take().map((sent) => sent.length / 2)).toEqual([size, size])
  })

  it('[MQTT-3.2.2-15] SUBSCRIBE and UNSUBSCRIBE', async () => {
    const wire = await opened({}, atMost(size))
    // 2 + 2 + 1 + 2 + filter + 1, and the same without options.
    quiet(wire.client.subscribe('x'.repeat(size - 8)))
    quiet(wire.client.unsubscribe('y'.repeat(size - 7)))
    await wire.settle()
    expect(wire.take().map((sent) => sent.length / 2)).toEqual([size, size])
    expect(await refusal(() => wire.client.subscribe('z'.repeat(size - 6)))).toMatchObject({
      code: 'ERR_PACKET_TOO_LARGE',
    })
    expect(await refusal(() => wire.client.unsubscribe('z'.repeat(size - 6)))).toMatchObject({
      code: 'ERR_PACKET_TOO_LARGE',
    })
    expect(await wire.sent()).toEqual([])
  })

  it('[MQTT-3.2.2-15] a smaller limit of a later connection holds for what was in flight', async () => {
    const wire = await opened({}, fresh)
    const large = refusal(() => wire.publish(1, 'x'.repeat(100)))
    wire.publish(1, 'small')
    await wire.settle()
    expect(await wire.again(atMost(size, 1))).toEqual([publish(0x3a, 't', 2, 'small')])
    expect((await large).code).toBe('ERR_PACKET_TOO_LARGE')
  })

  it.each([5, 4])('[MQTT-3.2.2-15] of %i, and acknowledgements', async (limit) => {
    const wire = await opened({}, atMost(limit))
    expect(await wire.answers(publish(0x32, 'a', 1, 'x'))).toEqual([puback(1)])
    expect(await wire.answers(pubrel(2))).toEqual(limit === 5 ? [pubcomp(2, 0x92)] : [])
    expect(wire.ended).toBe(limit === 4)
  })

  it('[MQTT-3.2.2-15] of 1: no packet is left to send, not even PINGREQ: the connection is given up', async () => {
    const wire = await opened({ keepAlive: 1 }, atMost(1))
    await wire.advance(3000)
    expect([wire.take(), wire.ended]).toEqual([[], true])
  })

  it('[MQTT-3.2.2-15] AUTH that does not fit is not sent', async () => {
    const method = `15${text('toy')}`
    const wire = await opened(
      { auth: toy({ start: () => 'x'.repeat(100) }).auth },
      connack(`290027${u32(64)}${method}`),
    )
    quiet(wire.client.reauthenticate())
    await wire.settle()
    expect(wire.take().filter((bytes) => bytes.startsWith('f0'))).toEqual([])
  })
})

/** Posts; gives what was sent as `topic alias`, 0 where there is none. */
async function post(wire: Wire, ...topics: string[]): Promise<string[]> {
  for (const topic of topics) wire.client.post(topic, 'x')
  return (await wire.sent()).map((bytes) => {
    const length = Number.parseInt(bytes.slice(4, 8), 16)
    const properties = bytes.slice(8 + 2 * length)
    const alias = properties.startsWith('0323') ? Number.parseInt(properties.slice(4, 8), 16) : 0
    return `${Buffer.from(bytes.slice(8, 8 + 2 * length), 'hex')} ${alias}`
  })
}

describe('Topic Alias Maximum', () => {
  it('[MQTT-3.2.2-17] [MQTT-3.3.2-9] [MQTT-3.3.2-8] 2: aliases 1 and 2 are used, no other, however many topics there are', async () => {
    const wire = await opened({}, aliases(2))
    expect(await post(wire, 'a', 'b', 'a', 'b')).toEqual(['a 1', 'b 2', ' 1', ' 2'])
    // What has no topic means the latest topic of its alias.
    const known = new Map<string, string>()
    const meant: (string | undefined)[] = []
    for (const [topic = '', alias = ''] of (
      await post(wire, 'c', 'd', 'e', 'c', 'c', 'a', 'b')
    ).map((each) => each.split(' '))) {
      if (topic !== '') known.set(alias, topic)
      meant.push(known.get(alias))
      expect(['1', '2']).toContain(alias)
    }
    expect(meant).toEqual(['c', 'd', 'e', 'c', 'c', 'a', 'b'])
  })
})

const qos1 = (packetId: number, payload = 'x'): string => publish(0x32, 't', packetId, payload)
const qos2 = (packetId: number, payload = 'x'): string => publish(0x34, 't', packetId, payload)
const again1 = (packetId: number, payload = 'x'): string => publish(0x3a, 't', packetId, payload)
const again2 = (packetId: number, payload = 'x'): string => publish(0x3c, 't', packetId, payload)

/** The texts of all messages that wait, each acknowledged. */
async function texts(wire: Wire, reader: Subscription): Promise<string[]> {
  const seen = takenTexts(reader)
  await wire.settle()
  return seen
}

async function isPending(wire: Wire, promise: Promise<unknown>): Promise<boolean> {
  return (await wire.world.outcome(promise)).state === 'pending'
}

it.each([0, 1])(
  '[MQTT-4.1.0-1] session state outlives a Session Expiry Interval of %i s for as long as the connection is open',
  async (sessionExpiryInterval) => {
    const wire = await opened({ sessionExpiryInterval })
    const reader = await wire.subscribed('a', 2)
    const done = wire.publish(2, 'x')
    await wire.give(pubrec(2), publish(0x34, 'a', 7, 'y'))
    expect(await texts(wire, reader)).toEqual(['y'])
    expect(wire.take()).toEqual([qos2(2), pubrel(2), pubrec(7)])
    await wire.advance(24 * 3600_000)
    await wire.give(publish(0x3c, 'a', 7, 'y'))
    expect([await texts(wire, reader), wire.take()]).toEqual([[], [pubrec(7)]])
    await wire.give(pubcomp(2), pubrel(7), publish(0x30, 'a', 0, 'z'))
    expect(await done).toMatchObject({ packetId: 2 })
    expect([await texts(wire, reader), wire.take()]).toEqual([['z'], [pubcomp(7)]])
  },
)

it('[MQTT-4.3.2-3] [MQTT-4.4.0-1] QoS 1 is open until PUBACK: not settled, sent again on each connection, and not after it', async () => {
  const wire = await opened()
  const done = wire.publish(1, 'x')
  expect(await wire.sent()).toEqual([qos1(1)])
  for (let round = 0; round < 3; round++) {
    expect(await isPending(wire, done)).toBe(true)
    expect(await wire.again()).toEqual([again1(1)])
  }
  await wire.give(puback(1))
  expect(await done).toMatchObject({ packetId: 1, reasonCode: 0 })
  expect(await wire.again()).toEqual([])
})

it.each(['reject', 'republish'] as const)(
  '[MQTT-4.3.3-3] [MQTT-4.3.3-5] [MQTT-4.3.3-6] [MQTT-4.4.0-1] PUBREL is open until PUBCOMP: sent again on each connection, PUBLISH never; settled at PUBCOMP (%s)',
  async (onSessionLost) => {
    const wire = await opened()
    const done = wire.publish(2, 'x', { onSessionLost })
    expect(await wire.answers(pubrec(1))).toEqual([qos2(1), pubrel(1)])
    for (let round = 0; round < 3; round++) {
      expect(await isPending(wire, done)).toBe(true)
      expect(await wire.again()).toEqual([pubrel(1)])
    }
    expect(await wire.answers(pubrec(1))).toEqual([pubrel(1)])
    await wire.give(puback(9), pubcomp(9))
    expect(await isPending(wire, done)).toBe(true)
    await wire.give(pubcomp(1))
    expect(await done).toMatchObject({ packetId: 1 })
    expect(await wire.again()).toEqual([])
  },
)

it('[MQTT-4.3.3-7] what was sent does not expire: PUBLISH is sent again after its Message Expiry Interval, and PUBREL as well', async () => {
  const wire = await opened({ reconnect: { backoff: () => 10_000 }, outbound: { ttl: 1000 } })
  const properties = { messageExpiryInterval: 1 }
  wire.publish(2, 'x', { properties })
  wire.publish(2, 'y', { properties })
  await wire.answers(pubrec(2))
  await wire.cut()
  await wire.advance(10_000 - 10)
  await wire.redialled()
  await wire.give(resumed)
  expect(wire.take().slice(1)).toEqual([pubrel(2), publish(0x3c, 't', 1, 'x', `02${u32(1)}`)])
})

it('[MQTT-4.3.3-13] QoS 2: the exchange is finished though the message has expired meanwhile, taken or not', async () => {
  const wire = await opened()
  const reader = await wire.subscribed('a', 2, { ack: 'manual' })
  const expiring = (packetId: number): string => publish(0x34, 'a', packetId, 'x', `02${u32(1)}`)
  await wire.give(expiring(1), expiring(2), expiring(3))
  reader.read()?.ack()
  const held = reader.read()
  expect(await wire.sent()).toEqual([pubrec(1)])
  await wire.advance(5000)
  expect(await wire.answers(pubrel(1))).toEqual([pubcomp(1)])
  held?.ack()
  reader.read()?.ack()
  expect(await wire.sent()).toEqual([pubrec(2), pubrec(3)])
  await wire.advance(5000)
  expect(await wire.again()).toEqual([])
  expect(await wire.answers(pubrel(2), pubrel(3))).toEqual([pubcomp(2), pubcomp(3)])
})

it.each([
  ['[MQTT-4.4.0-2] PUBACK', 1, puback],
  ['[MQTT-4.3.3-4] [MQTT-4.4.0-2] PUBREC', 2, pubrec],
] as const)(
  '%s 0x80 and up: the publish fails with it, and is not sent again, nor PUBREL',
  async (_packet, qos, answer) => {
    const wire = await opened()
    const failed = refusal(() => wire.publish(qos, 'x'))
    wire.publish(1, 'y')
    await wire.sent()
    expect(await wire.answers(answer(1, 0x97))).toEqual([])
    expect(await failed).toMatchObject({ reasonCode: 0x97, outcome: 'refused' })
    expect(await wire.again()).toEqual([again1(2, 'y')])
    expect(await wire.again(fresh)).toEqual([qos1(3, 'y')])
  },
)

it('[MQTT-4.6.0-1] the order of what is sent again is that of the first time, QoS 1 and 2 mixed, also where identifiers came round', async () => {
  const wire = await opened({ outbound: { poisonAfter: Number.POSITIVE_INFINITY } })
  // All identifiers but the last three have been used.
  for (let next = 1; next <= 65_532; next += 4095) {
    const count = Math.min(4095, 65_533 - next)
    for (let index = 0; index < count; index++) wire.publish(1, 'x')
    await wire.settle()
    await wire.give(...Array.from({ length: count }, (_, index) => puback(next + index)))
  }
  const ids = [65_533, 65_534, 65_535, 1, 2, 3]
  /** QoS 1 and 2 in turn; the identifier is the payload. */
  const packets = ([one, two]: readonly [typeof qos1, typeof qos2]) =>
    ids.map((id, index) => (index % 2 === 0 ? one : two)(id, String(id)))
  for (const [index, id] of ids.entries()) wire.publish(index % 2 === 0 ? 1 : 2, String(id))
  await wire.settle()
  expect(wire.take().slice(-6)).toEqual(packets([qos1, qos2]))
  const expected = packets([again1, again2])
  expect(await wire.again()).toEqual(expected)
  await wire.give(puback(65_535))
  expect(await wire.again()).toEqual(expected.toSpliced(2, 1))
})
