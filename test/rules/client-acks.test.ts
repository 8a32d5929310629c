/** Sections 3.4 to 3.7, by the bytes of a client: PUBACK, PUBREC, PUBREL, PUBCOMP, their reason codes and their size. */
import { describe, expect, it } from 'vitest'
import type { Message } from '../../src/client/api/index.js'
import {
  block,
  connack,
  goodbye,
  opened,
  packet,
  puback,
  pubcomp,
  publish,
  pubrec,
  pubrel,
  refusal,
  text,
  u8,
  u16,
  u32,
  type Wire,
} from './bytes.js'

const codes = Array.from({ length: 256 }, (_, code) => code)
/** What the tables of sections 3.4.2.1 and 3.5.2.1 allow; 0x10 is for servers. */
const published = [0x00, 0x10, 0x80, 0x83, 0x87, 0x90, 0x91, 0x97, 0x99]
/** What those of sections 3.6.2.1 and 3.7.2.1 allow. */
const released = [0x00, 0x92]

/** A client with two messages of the server in hand: identifier 1 at QoS 1, identifier 2 at QoS 2. */
async function inHand(answer?: string): Promise<{ wire: Wire; one: Message; two: Message }> {
  const wire = await opened({}, answer)
  const subscribing = wire.client.subscription('a', { qos: 2, ack: 'manual' })
  await wire.sent()
  await wire.give(publish(0x32, 'a', 1, 'x'), publish(0x34, 'a', 2, 'y'))
  return { wire, one: subscribing.read() as Message, two: subscribing.read() as Message }
}

describe('reason codes that the application gives', () => {
  it('[MQTT-3.4.2-1] [MQTT-3.5.2-1] PUBACK and PUBREC leave with those of their table that a client may send, exactly as given', async () => {
    for (const code of published.filter((each) => each !== 0x10)) {
      const { wire, one, two } = await inHand()
      expect([one.ack(code), two.ack(code)]).toEqual([true, true])
      expect(await wire.sent()).toEqual([puback(1, code), pubrec(2, code)])
    }
  })

  it('[MQTT-3.4.2-1] [MQTT-3.5.2-1] every other is refused, and has no effect', async () => {
    const { wire, one, two } = await inHand()
    for (const code of [
      ...codes.filter((each) => each === 0x10 || !published.includes(each)),
      -1,
      256,
      0.5,
      '0',
      null,
    ]) {
      for (const message of [one, two])
        expect(await refusal(() => message.ack(code as number))).toMatchObject({
          code: 'ERR_INVALID_OPTION',
        })
    }
    expect(await wire.sent()).toEqual([])
    one.ack()
    two.ack()
    expect(await wire.sent()).toEqual([puback(1), pubrec(2)])
  })

  it('[MQTT-3.4.2-1] [MQTT-3.5.2-1] a handler that fails for good refuses with a code of the table', async () => {
    const wire = await opened()
    wire.client
      .listen(
        'a',
        () => {
          throw new Error('no')
        },
        { qos: 2, onError: 'reject' },
      )
      .catch(() => undefined)
    await wire.sent()
    expect(await wire.answers(publish(0x32, 'a', 1, 'x'), publish(0x34, 'a', 2, 'y'))).toEqual([
      puback(1, 0x80),
      pubrec(2, 0x80),
    ])
  })
})

/** A client with exchanges of its own open: identifier 1 at QoS 1, 2 and 3 at QoS 2, of which 3 was released; and one of the server’s, 9. */
async function open(): Promise<Wire> {
  const wire = await opened({ reconnect: false })
  wire.publish(1, 'x')
  wire.publish(2, 'x')
  wire.publish(2, 'x')
  await wire.answers(pubrec(3), publish(0x34, 'a', 9, 'x'))
  return wire
}

/** Codes that a client takes in this packet of the server; all others end the connection with 0x81 or 0x82. */
async function accepted(make: (code: string) => string): Promise<number[]> {
  const taken: number[] = []
  for (const code of codes) {
    const wire = await open()
    const sent = await wire.answers(make(u8(code)))
    if (!wire.ended) taken.push(code)
    else expect([[goodbye(0x81)], [goodbye(0x82)]], String(code)).toContainEqual(sent)
  }
  return taken
}

describe('reason codes of the server', () => {
  it('[MQTT-3.4.2-1] PUBACK: those of its table, any other ends the connection', async () => {
    expect(await accepted((code) => packet(0x40, u16(1), code))).toEqual(published)
  })

  it('[MQTT-3.5.2-1] PUBREC: those of its table, any other ends the connection', async () => {
    expect(await accepted((code) => packet(0x50, u16(2), code))).toEqual(published)
  })

  it('[MQTT-3.6.2-1] PUBREL: 0x00 and 0x92, any other ends the connection', async () => {
    expect(await accepted((code) => packet(0x62, u16(9), code))).toEqual(released)
  })

  it('[MQTT-3.7.2-1] PUBCOMP: 0x00 and 0x92, any other ends the connection', async () => {
    expect(await accepted((code) => packet(0x70, u16(3), code))).toEqual(released)
  })
})

describe('reason codes that the client chooses', () => {
  it('[MQTT-3.6.2-1] [MQTT-4.3.3-4] PUBREL is 0x00 for an exchange that is open, and 0x92 for one that is not', async () => {
    const wire = await open()
    expect(await wire.answers(pubrec(2, 0x10))).toEqual([pubrel(2)])
    expect(await wire.answers(pubrec(2))).toEqual([pubrel(2)])
    expect(await wire.answers(pubrec(77))).toEqual([pubrel(77, 0x92)])
  })
})

/** Server limits: none, much, and the least that holds an acknowledgement with its code. */
const limits = [undefined, 1000, 8, 5]

describe('Reason String and User Properties, under every Maximum Packet Size', () => {
  const limited = (size: number | undefined, sessionPresent = 0): string =>
    connack(`2900${size === undefined ? '' : `27${u32(size)}`}`, sessionPresent)
  const extras = [
    0x83,
    { reasonString: 'a reason that is long', userProperties: [['k', 'v']] },
    'a reason',
  ]

  it.each(limits)(
    '[MQTT-3.4.2-2] [MQTT-3.4.2-3] [MQTT-3.5.2-2] [MQTT-3.5.2-3] %s: PUBACK and PUBREC have neither, whatever else the application hands to ack()',
    async (size) => {
      const wire = await opened({}, limited(size))
      // Not subscribed to by this connection, but for the local reader.
      const reader = wire.client.subscription('a', { qos: 2, ack: 'manual' })
      await wire.sent()
      await wire.give(publish(0x32, 'a', 1, 'x'), publish(0x34, 'a', 2, 'y'))
      for (let message = reader.read(); message !== undefined; message = reader.read())
        Reflect.apply(message.ack, message, extras)
      const sent = await wire.sent()
      // Where SUBSCRIBE did not fit nobody reads, and the messages are acknowledged as they are.
      expect([
        [puback(1, 0x83), pubrec(2, 0x83)],
        [puback(1), pubrec(2)],
      ]).toContainEqual(sent)
      for (const bytes of sent) expect(bytes.length / 2).toBeLessThanOrEqual(size ?? 5)
    },
  )

  it.each(limits)(
    '[MQTT-3.6.2-2] [MQTT-3.6.2-3] [MQTT-3.7.2-2] [MQTT-3.7.2-3] %s: PUBREL and PUBCOMP have neither',
    async (size) => {
      const wire = await opened()
      wire.publish(2, 'x')
      await wire.give(pubrec(1))
      expect(await wire.again(limited(size, 1))).toEqual([pubrel(1)])
      // What the server explains is not repeated.
      const explained = block(`1f${text('a reason that is long')}`, `26${text('k')}${text('v')}`)
      expect(
        await wire.answers(
          packet(0x50, u16(1), '10', explained),
          packet(0x50, u16(77), '10', explained),
        ),
      ).toEqual([pubrel(1), pubrel(77, 0x92)])
      await wire.give(publish(0x34, 'a', 2, 'x'))
      expect(
        await wire.answers(
          packet(0x62, u16(2), '00', explained),
          packet(0x62, u16(3), '00', explained),
        ),
      ).toEqual([pubrec(2), pubcomp(2), pubcomp(3, 0x92)])
    },
  )
})
