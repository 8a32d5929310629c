/** Sections 4.1 to 4.6, by the bytes of a client: delivery at each QoS in both directions, what is sent again, and in which order. */
import { describe, expect, it } from 'vitest'
import type { Subscription } from '../../src/client/api/index.js'
import {
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
  text,
  u16,
  u32,
  unsuback,
  type Wire,
} from './bytes.js'

const qos1 = (packetId: number, payload = 'x'): string => publish(0x32, 't', packetId, payload)
const qos2 = (packetId: number, payload = 'x'): string => publish(0x34, 't', packetId, payload)
const again1 = (packetId: number, payload = 'x'): string => publish(0x3a, 't', packetId, payload)
const again2 = (packetId: number, payload = 'x'): string => publish(0x3c, 't', packetId, payload)

/** The texts of all messages that wait, each acknowledged. */
async function texts(wire: Wire, reader: Subscription): Promise<string[]> {
  const seen: string[] = []
  for (let message = reader.read(); message !== undefined; message = reader.read())
    seen.push(message.text())
  await wire.settle()
  return seen
}

async function isPending(wire: Wire, promise: Promise<unknown>): Promise<boolean> {
  return (await wire.world.outcome(promise)).state === 'pending'
}

describe('session state', () => {
  it.each([0, 1])(
    '[MQTT-4.1.0-1] outlives a Session Expiry Interval of %i s for as long as the connection is open',
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
})

describe('QoS 1, sent', () => {
  it('[MQTT-4.3.2-3] [MQTT-4.4.0-1] is open until PUBACK: not settled, sent again on each connection, and not after it', async () => {
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

  it('[MQTT-4.3.2-3] answers with other identifiers, and those to another QoS, settle nothing', async () => {
    for (const answer of [puback(2), pubrec(2), pubcomp(2), pubcomp(1), pubrec(1)]) {
      const wire = await opened()
      const done = wire.publish(1, 'x')
      await wire.sent()
      await wire.give(answer)
      expect(await isPending(wire, done), answer).toBe(true)
      expect(await wire.again(), answer).toEqual([again1(1)])
    }
  })

  it('[MQTT-4.4.0-1] is never sent again on a connection that lives', async () => {
    const wire = await opened({ keepAlive: 10 })
    wire.publish(1, 'x')
    wire.publish(2, 'x')
    wire.publish(2, 'x')
    expect(await wire.answers(pubrec(3))).toEqual([qos1(1), qos2(2), qos2(3), pubrel(3)])
    for (let second = 0; second < 120; second += 10) {
      await wire.advance(10_000)
      expect(wire.take()).toEqual(['c000'])
      await wire.give('d000')
    }
  })

  it('[MQTT-4.4.0-1] without the session nothing is sent again as it was: not the identifier’s PUBREL, and PUBLISH only as a new one', async () => {
    const wire = await opened({ outbound: { onSessionLost: 'reject' } })
    const promises = [wire.publish(1, 'x'), wire.publish(2, 'x'), wire.publish(2, 'x')].map(
      (promise) => refusal(() => promise),
    )
    await wire.give(pubrec(3))
    expect(await wire.again(fresh)).toEqual([])
    for (const promise of promises) expect((await promise).code).toBe('ERR_SESSION_LOST')
    expect(await wire.again(resumed)).toEqual([])
  })
})

describe('QoS 1, received', () => {
  it('[MQTT-4.3.2-4] is answered by PUBACK with its identifier, once it was taken', async () => {
    const wire = await opened()
    const reader = await wire.subscribed('a', 1, { ack: 'manual' })
    expect(await wire.answers(publish(0x32, 'a', 0x1234, 'x'))).toEqual([])
    const message = reader.read()
    expect(message?.text()).toBe('x')
    expect(wire.take()).toEqual([])
    message?.ack()
    expect(await wire.sent()).toEqual(['40021234'])
  })

  it.each([0x32, 0x3a])(
    '[MQTT-4.3.2-5] is a new message behind its PUBACK, first byte %i',
    async (first) => {
      const wire = await opened()
      const reader = await wire.subscribed('a', 1)
      await wire.give(publish(0x32, 'a', 5, 'one'))
      expect([await texts(wire, reader), wire.take()]).toEqual([['one'], [puback(5)]])
      await wire.give(publish(first, 'a', 5, 'two'))
      expect([await texts(wire, reader), wire.take()]).toEqual([['two'], [puback(5)]])
      expect(await wire.again()).toEqual([])
      await wire.give(publish(first, 'a', 5, 'three'))
      expect([await texts(wire, reader), wire.take()]).toEqual([['three'], [puback(5)]])
    },
  )
})

describe('QoS 2, sent', () => {
  it('[MQTT-4.3.3-3] is open until PUBREC: PUBLISH is sent again on each connection', async () => {
    const wire = await opened()
    const done = wire.publish(2, 'x')
    await wire.settle()
    for (let round = 0; round < 3; round++) expect(await wire.again()).toEqual([again2(1)])
    expect(await isPending(wire, done)).toBe(true)
  })

  it('[MQTT-4.3.3-3] [MQTT-4.3.3-5] answers with other identifiers, and PUBACK or PUBCOMP before PUBREC, settle nothing', async () => {
    for (const answer of [puback(1), pubcomp(1), puback(2), pubcomp(2), pubrec(2, 0x80)]) {
      const wire = await opened()
      const done = wire.publish(2, 'x')
      await wire.sent()
      await wire.give(answer)
      expect(await isPending(wire, done), answer).toBe(true)
      expect(await wire.again(), answer).toEqual([again2(1)])
      await wire.give(pubrec(1), puback(1))
      expect(await isPending(wire, done), answer).toBe(true)
      expect(await wire.again(), answer).toEqual([pubrel(1)])
    }
  })

  it.each([0x80, 0x83, 0x87, 0x90, 0x91, 0x97, 0x99])(
    '[MQTT-4.3.3-4] [MQTT-4.4.0-2] PUBREC %i has no PUBREL: the publish fails with it, and is not sent again',
    async (code) => {
      const wire = await opened()
      const failed = refusal(() => wire.publish(2, 'x'))
      await wire.sent()
      expect(await wire.answers(pubrec(1, code))).toEqual([])
      expect(await failed).toMatchObject({ reasonCode: code, outcome: 'refused' })
      expect(await wire.again()).toEqual([])
    },
  )

  it.each(['reject', 'republish'] as const)(
    '[MQTT-4.3.3-5] [MQTT-4.3.3-6] [MQTT-4.4.0-1] PUBREL is open until PUBCOMP: sent again on each connection, PUBLISH never; settled at PUBCOMP (%s)',
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

  it('[MQTT-4.3.3-6] also when PUBREL was still on its way as the connection broke', async () => {
    const wire = await opened()
    wire.publish(2, 'x')
    await wire.settle()
    wire.world.peer.sendBytes(pubrec(1))
    wire.world.peer.end()
    await wire.settle()
    await wire.redialled()
    await wire.give(resumed)
    expect(wire.take().slice(1)).toEqual([pubrel(1)])
  })

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
})

describe('QoS 2, received', () => {
  it('[MQTT-4.3.3-8] [MQTT-4.3.3-11] PUBREC once it was taken, PUBCOMP for PUBREL, with its identifier; 0x92 for one that nobody knows', async () => {
    const wire = await opened()
    const reader = await wire.subscribed('a', 2, { ack: 'manual' })
    expect(await wire.answers(publish(0x34, 'a', 0x0102, 'x'))).toEqual([])
    reader.read()?.ack()
    expect(await wire.sent()).toEqual(['50020102'])
    expect(await wire.answers('62020102')).toEqual(['70020102'])
    expect(await wire.answers('62020102', '62020777')).toEqual(['7003010292', '7003077792'])
  })

  it('[MQTT-4.3.3-9] behind a PUBREC that refused it, the identifier means a new message', async () => {
    const wire = await opened()
    const reader = await wire.subscribed('a', 2, { ack: 'manual' })
    for (const [code, first] of [
      [0x87, 0x34],
      [0x97, 0x3c],
      [0x80, 0x34],
    ] as const) {
      await wire.give(publish(first, 'a', 6, `refused ${code}`))
      const message = reader.read()
      expect(message?.text()).toBe(`refused ${code}`)
      message?.ack(code)
      expect(await wire.sent()).toEqual([pubrec(6, code)])
    }
    await wire.give(publish(0x3c, 'a', 6, 'taken'))
    const message = reader.read()
    expect(message?.text()).toBe('taken')
    message?.ack()
    expect(await wire.sent()).toEqual([pubrec(6)])
  })

  it('[MQTT-4.3.3-10] until PUBREL a repeat is answered by PUBREC and not delivered, with DUP or without, on this connection and the next', async () => {
    const wire = await opened()
    const reader = await wire.subscribed('a', 2)
    await wire.give(publish(0x34, 'a', 7, 'x'))
    expect([await texts(wire, reader), wire.take()]).toEqual([['x'], [pubrec(7)]])
    for (const first of [0x34, 0x3c]) {
      await wire.give(publish(first, 'a', 7, 'x'))
      expect([await texts(wire, reader), wire.take()]).toEqual([[], [pubrec(7)]])
    }
    for (const first of [0x34, 0x3c]) {
      expect(await wire.again()).toEqual([])
      await wire.give(publish(first, 'a', 7, 'x'))
      expect([await texts(wire, reader), wire.take()]).toEqual([[], [pubrec(7)]])
    }
    expect(await wire.answers(pubrel(7))).toEqual([pubcomp(7)])
  })

  it.each([0x34, 0x3c])(
    '[MQTT-4.3.3-12] behind PUBCOMP the identifier means a new message, first byte %i',
    async (first) => {
      const wire = await opened()
      const reader = await wire.subscribed('a', 2)
      for (const payload of ['one', 'two', 'three']) {
        await wire.give(publish(first, 'a', 8, payload))
        expect([await texts(wire, reader), wire.take()]).toEqual([[payload], [pubrec(8)]])
        expect(await wire.answers(pubrel(8))).toEqual([pubcomp(8)])
        if (payload === 'two') expect(await wire.again()).toEqual([])
      }
    },
  )

  it('[MQTT-4.3.3-13] the exchange is finished though the message has expired meanwhile, taken or not', async () => {
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
})

describe('what a refusal settles', () => {
  it.each([0x80, 0x83, 0x87, 0x90, 0x91, 0x97, 0x99])(
    '[MQTT-4.4.0-2] PUBACK %i: the publish fails with it, and is not sent again',
    async (code) => {
      const wire = await opened()
      const failed = refusal(() => wire.publish(1, 'x'))
      wire.publish(1, 'y')
      await wire.settle()
      await wire.give(puback(1, code))
      expect(await failed).toMatchObject({ reasonCode: code, outcome: 'refused' })
      expect(await wire.again()).toEqual([again1(2, 'y')])
      expect(await wire.again(fresh)).toEqual([qos1(3, 'y')])
    },
  )

  it('[MQTT-4.5.0-2] nobody subscribed, or nobody reads any more: PUBACK, PUBREC and PUBCOMP all the same', async () => {
    const wire = await opened()
    expect(
      await wire.answers(
        publish(0x30, 'never', 0, 'x'),
        publish(0x32, 'never', 1, 'x'),
        publish(0x34, 'never', 2, 'x'),
        pubrel(2),
      ),
    ).toEqual([puback(1), pubrec(2), pubcomp(2)])
    const reader = await wire.subscribed('a', 2)
    quiet(reader.unsubscribe())
    await wire.sent()
    // What comes while UNSUBSCRIBE is on its way may wait for its answer.
    await wire.give(publish(0x32, 'a', 3, 'x'), publish(0x34, 'a', 4, 'x'))
    expect(await wire.answers(unsuback(2, 0))).toEqual([puback(3), pubrec(4)])
    expect(await wire.answers(publish(0x32, 'a', 5, 'x'))).toEqual([puback(5)])
  })

  it.each(['drop-newest', 'drop-oldest'] as const)(
    '[MQTT-4.5.0-2] a buffer that drops (%s) acknowledges what it dropped',
    async (overflow) => {
      const wire = await opened()
      await wire.subscribed('a', 1, { buffer: 1, overflow, ack: 'on-receive' })
      await wire.give(...[1, 2, 3].map((id) => publish(0x32, 'a', id, 'x')))
      await wire.advance(1000)
      expect(wire.take().sort()).toEqual([puback(1), puback(2), puback(3)])
    },
  )
})

describe('the order', () => {
  it('[MQTT-4.6.0-1] of what is sent again is that of the first time, QoS 1 and 2 mixed, also where identifiers came round', async () => {
    const wire = await opened({ outbound: { poisonAfter: Number.POSITIVE_INFINITY } })
    // All identifiers but the last three have been used.
    for (let next = 1; next <= 65_532; next += 4095) {
      const count = Math.min(4095, 65_533 - next)
      for (let index = 0; index < count; index++) wire.publish(1, 'x')
      await wire.settle()
      await wire.give(...Array.from({ length: count }, (_, index) => puback(next + index)))
    }
    const order = ['a', 'b', 'c', 'd', 'e', 'f']
    for (const [index, payload] of order.entries()) wire.publish(index % 2 === 0 ? 1 : 2, payload)
    await wire.settle()
    const first = wire.take().slice(-6)
    expect(first).toEqual([
      qos1(65_533, 'a'),
      qos2(65_534, 'b'),
      qos1(65_535, 'c'),
      qos2(1, 'd'),
      qos1(2, 'e'),
      qos2(3, 'f'),
    ])
    const expected = [
      again1(65_533, 'a'),
      again2(65_534, 'b'),
      again1(65_535, 'c'),
      again2(1, 'd'),
      again1(2, 'e'),
      again2(3, 'f'),
    ]
    expect(await wire.again()).toEqual(expected)
    await wire.give(puback(65_535))
    expect(await wire.again()).toEqual(expected.filter((bytes) => bytes !== again1(65_535, 'c')))
  })

  it.each([
    ['[MQTT-4.6.0-2] of PUBACK is that in which the messages came in', 0x32, puback],
    ['[MQTT-4.6.0-3] of PUBREC is that in which the messages came in', 0x34, pubrec],
  ])('%s, whatever order they are dealt with in', async (_title, first, answer) => {
    const ids = [5, 3, 9, 1]
    for (const order of [
      [0, 1, 2, 3],
      [3, 2, 1, 0],
      [2, 0, 3, 1],
      [1, 3, 0, 2],
    ]) {
      const wire = await opened()
      const reader = await wire.subscribed('a', 2, { ack: 'manual' })
      await wire.give(...ids.map((id) => publish(first, 'a', id, 'x')))
      const messages = ids.map(() => reader.read())
      const sent: string[] = []
      for (const [step, index] of order.entries()) {
        messages[index]?.ack()
        await wire.settle()
        sent.push(...wire.take())
        const done = new Set(order.slice(0, step + 1))
        const ready = ids.findIndex((_, at) => !done.has(at))
        expect(sent).toEqual(ids.slice(0, ready < 0 ? ids.length : ready).map((id) => answer(id)))
      }
    }
  })

  it('[MQTT-4.6.0-2] [MQTT-4.6.0-3] holds for concurrent handlers, and for both kinds at once', async () => {
    const wire = await opened()
    const gates: (() => void)[] = []
    quiet(
      wire.client.listen('a', () => new Promise<void>((resolve) => gates.push(resolve)), {
        qos: 2,
        concurrency: 4,
      }),
    )
    await wire.sent()
    await wire.give(
      publish(0x32, 'a', 5, 'x'),
      publish(0x34, 'a', 3, 'x'),
      publish(0x32, 'a', 9, 'x'),
      publish(0x34, 'a', 1, 'x'),
    )
    for (const gate of [...gates].reverse()) {
      expect(wire.take()).toEqual([])
      gate()
      await wire.settle()
    }
    expect(wire.take()).toEqual([puback(5), pubrec(3), puback(9), pubrec(1)])
  })

  it('[MQTT-4.6.0-4] of PUBREL is that in which PUBREC came in, in one read or several, and again on the next connection', async () => {
    const wire = await opened()
    for (const payload of ['a', 'b', 'c', 'd']) wire.publish(2, payload)
    await wire.sent()
    await wire.give(pubrec(3), pubrec(1))
    await wire.give(pubrec(4))
    expect(await wire.answers(pubrec(2))).toEqual([pubrel(3), pubrel(1), pubrel(4), pubrel(2)])
    expect(await wire.again()).toEqual([pubrel(3), pubrel(1), pubrel(4), pubrel(2)])
  })
})

it('packets by hand are what they say they are', () => {
  expect([qos1(1), again2(2)]).toEqual([
    packet(0x32, text('t'), u16(1), '00', '78'),
    '3c07000174000200' + '78',
  ])
})
