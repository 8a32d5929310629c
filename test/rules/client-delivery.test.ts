/** Sections 4.1 to 4.6, by the bytes of a client: delivery at each QoS in both directions, what is sent again, and in which order. */
import { expect, it } from 'vitest'
import type { Subscription } from '../../src/client/options/index.js'
import { takenTexts } from '../unit/client/incoming.js'
import {
  fresh,
  opened,
  puback,
  pubcomp,
  publish,
  pubrec,
  pubrel,
  refusal,
  resumed,
  u32,
  type Wire,
} from './bytes.js'

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
