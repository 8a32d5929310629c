/** Sections 3.14, 3.15, 4.12 and 4.13, by the bytes of a client: DISCONNECT, AUTH, and the end of a connection. */
import { describe, expect, it } from 'vitest'
import type { AuthMechanism } from '../../src/client/options/index.js'
import type { World } from '../unit/client/harness.js'
import { plainConnack, StalledTransport } from '../unit/client/stalled-transport.js'
import { over } from '../unit/client/steps.js'
import { toy } from '../unit/client/toy-auth.js'
import {
  block,
  connack,
  dialled,
  field,
  fresh,
  goodbye,
  opened,
  packet,
  puback,
  publish,
  pubrel,
  quiet,
  refusal,
  suback,
  text,
  u8,
  u16,
  u32,
  type Wire,
} from './bytes.js'

const all = Array.from({ length: 256 }, (_, code) => code)
/** Section 3.14.2.1, by sender; 0x9B from a client is named by section 3.3.4 and not by the table, 0x8C from a server by table 2-6 alone. */
const ofClient = [
  0x00, 0x04, 0x80, 0x81, 0x82, 0x83, 0x90, 0x93, 0x94, 0x95, 0x96, 0x97, 0x98, 0x99,
]
const ofServer = [
  ...[
    0x00, 0x80, 0x81, 0x82, 0x83, 0x87, 0x89, 0x8b, 0x8d, 0x8e, 0x8f, 0x90, 0x93, 0x94, 0x95, 0x96,
    0x97, 0x98, 0x99,
  ],
  ...[0x9a, 0x9b, 0x9c, 0x9d, 0x9e, 0x9f, 0xa0, 0xa1, 0xa2],
]

describe('the reason code of DISCONNECT', () => {
  it('[MQTT-3.14.2-1] the application may give those that a client may send; they leave as given', async () => {
    for (const code of ofClient) {
      const wire = await opened({ sessionExpiryInterval: 0 })
      quiet(wire.client.disconnect({ reasonCode: code }))
      expect([await wire.sent(), wire.ended]).toEqual([[code === 0 ? 'e000' : goodbye(code)], true])
    }
  })

  it('[MQTT-3.14.2-1] every other is refused, and the connection stays', async () => {
    const wire = await opened()
    for (const code of [
      ...all.filter((each) => !ofClient.includes(each)),
      -1,
      256,
      0.5,
      '0',
      null,
    ]) {
      expect(
        await refusal(() => wire.client.disconnect({ reasonCode: code as number })),
        String(code),
      ).toMatchObject({ code: 'ERR_INVALID_OPTION' })
    }
    expect(await wire.sent()).toEqual([])
    expect(wire.client.state).toBe('connected')
  })

  it.each([
    ['malformed', packet(0x30, field('ff'), '00'), 0x81],
    ['a topic alias out of range', packet(0x30, text('a'), block('23ffff')), 0x94],
    ['over our Receive Maximum', publish(0x34, 'a', 1, 'x') + publish(0x34, 'a', 2, 'x'), 0x93],
    ['larger than we take', publish(0x30, 'a', 0, 'x'.repeat(2000)), 0x95],
    [
      '130 user properties',
      packet(0x30, text('a'), block(`26${text('')}${text('')}`.repeat(130))),
      0x97,
    ],
    ['a second CONNACK', fresh, 0x82],
  ])(
    '[MQTT-3.14.2-1] [MQTT-3.14.4-1] [MQTT-3.14.4-2] [MQTT-4.13.2-1] our answer to %s',
    async (_what, given, code) => {
      const letter = { receiveMaximumExceeded: 'disconnect', oversized: 'disconnect' } as const
      const wire = await opened({
        receiveMaximum: 1,
        ...letter,
        maximumPacketSize: 1000,
        keepAlive: 1,
        reconnect: false,
      })
      wire.publish(1, 'x')
      await wire.sent()
      await wire.give(given, publish(0x32, 'a', 9, 'x'), packet(0xd0))
      const sent = wire.take().filter((each) => !each.startsWith('50'))
      expect(sent).toEqual([goodbye(code)])
      expect(ofClient).toContain(code)
      expect(wire.ended).toBe(true)
      await wire.advance(10_000)
      expect(wire.take()).toEqual([])
    },
  )
})

describe('the properties of DISCONNECT', () => {
  const reasonString = 'why it is time to go'
  const pair = `26${text('key')}${text('value')}`
  const reason = `1f${text(reasonString)}`
  const expiry = `11${u32(60)}`
  const full = packet(0xe0, '04', block(expiry, reason, pair)).length / 2

  it.each([
    [1000, [expiry, reason, pair]],
    [full, [expiry, reason, pair]],
    [full - 1, [expiry, reason]],
    [full - pair.length / 2, [expiry, reason]],
    [full - pair.length / 2 - 1, [expiry]],
    [9, [expiry]],
    [8, []],
    [3, []],
  ] as const)(
    '[MQTT-3.14.2-3] [MQTT-3.14.2-4] Maximum Packet Size %i',
    async (size, properties) => {
      const wire = await opened({}, connack(`27${u32(size)}`))
      quiet(
        wire.client.disconnect({
          reasonCode: 4,
          reasonString,
          userProperties: [['key', 'value']],
          sessionExpiryInterval: 60,
        }),
      )
      const [sent = '', ...more] = await wire.sent()
      expect(more).toEqual([])
      const whole = packet(0xe0, '04', properties.length === 0 ? '' : block(...properties))
      expect(sent.length).toBe(whole.length)
      for (const property of [expiry, reason, pair])
        expect(sent.includes(property)).toBe((properties as readonly string[]).includes(property))
    },
  )
})

describe('after DISCONNECT', () => {
  it('[MQTT-3.14.4-1] nothing follows: not what waits for a place, not what is asked for later, no answers and no PINGREQ', async () => {
    const wire = await opened(
      { keepAlive: 1, sessionExpiryInterval: 0 },
      connack(`290021${u16(1)}`),
    )
    const reader = await wire.subscribed('a', 2, { ack: 'manual' })
    for (let index = 0; index < 5; index++) wire.publish(1, 'x')
    await wire.give(publish(0x32, 'a', 1, 'x'), publish(0x34, 'a', 2, 'x'))
    const held = reader.read()
    wire.take()
    quiet(wire.client.disconnect({ timeout: 0 }))
    held?.ack()
    wire.publish(0, 'late')
    refusal(() => wire.client.post('t', 'late')).catch(() => undefined)
    quiet(wire.client.subscribe('late'))
    await wire.give(puback(2), publish(0x32, 'a', 3, 'x'), pubrel(2))
    await wire.advance(10_000)
    const sent = wire.take()
    expect(sent.at(-1)).toBe('e000')
    expect(sent.filter((each) => each.startsWith('e0'))).toHaveLength(1)
  })

  it.each([
    ['disconnect() at once', (world: World) => world.client.disconnect({ timeout: 0 })],
    ['disconnect()', (world: World) => world.client.disconnect({ timeout: 1000 })],
    ['reconnect()', (world: World) => world.client.reconnect({ force: true })],
  ])('[MQTT-3.14.4-1] nothing follows, though the stream is open: %s', async (_what, leave) => {
    const transport = new StalledTransport()
    const options = { keepAlive: 1, sessionExpiryInterval: 0, cleanStart: false, clientId: 'c' }
    const accept = () => transport.feed(plainConnack)
    const world = await over(transport, accept, { ...options, reconnect: true })
    const reader = world.client.subscription('a', { qos: 2, ack: 'manual' })
    await world.settle()
    transport.feed(suback(1, 2) + publish(0x32, 'a', 1, 'x') + publish(0x34, 'a', 2, 'x'))
    await world.settle()
    const held = [reader.read(), reader.read()]
    Promise.resolve(leave(world)).catch(() => undefined)
    await world.settle()
    if (transport.written.at(-2) !== 0xe0) await world.clock.advance(1000)
    const end = transport.written.length
    expect(transport.written.slice(-2)).toEqual([0xe0, 0])
    for (const message of held) message?.ack()
    quiet(world.client.publish('t', 'late', { qos: 1 }))
    transport.feed(publish(0x32, 'a', 3, 'x') + pubrel(7))
    await world.settle()
    transport.feed(pubrel(8))
    await world.settle()
    expect(held.map((message) => message?.qos)).toEqual([1, 2])
    expect(transport.written.slice(end)).toEqual([])
  })

  it('[MQTT-4.13.2-1] with a code of 0x80 or more that cannot be written any more: the connection is closed all the same', async () => {
    const transport = new StalledTransport(0)
    const world = await over(transport, () => transport.feed(plainConnack))
    transport.feed('ff00')
    await world.clock.advance(5000)
    expect(transport.destroyed).toBeDefined()
    expect(world.client.state).toBe('closed')
  })

  it('[MQTT-4.13.2-1] a Maximum Packet Size that leaves no room for it: closed without', async () => {
    const wire = await opened({ reconnect: false }, connack(`27${u32(2)}`))
    await wire.give('ff00')
    expect(wire.take().filter((each) => each.length > 4)).toEqual([])
    expect(wire.ended).toBe(true)
  })

  it('[MQTT-4.13.2-1] from the server with any code: the client closes and sends nothing', async () => {
    for (const code of ofServer) {
      const wire = await opened({ reconnect: false, keepAlive: 1 })
      wire.publish(1, 'x')
      await wire.sent()
      await wire.give(goodbye(code))
      expect(wire.ended).toBe(true)
      await wire.advance(10_000)
      expect(wire.take()).toEqual([])
      expect(await wire.client.closed).toMatchObject({
        code: code === 0x8e ? 'ERR_SESSION_TAKEN_OVER' : 'ERR_SERVER_DISCONNECT',
        reasonCode: code,
      })
    }
  })
})

const method = `15${text('toy')}`
const auth = (code: number, data?: string, properties = ''): string =>
  packet(0xf0, u8(code), block(method, data === undefined ? '' : `16${text(data)}`, properties))

/** A client that is connected with a method. */
function authenticated(overrides: Partial<AuthMechanism> = {}, properties = ''): Promise<Wire> {
  return opened(
    { auth: toy(overrides).auth, reconnect: false },
    connack(`2900${properties}${method}`),
  )
}

describe('AUTH', () => {
  it.each([undefined, 1000, 25])(
    '[MQTT-3.15.2-2] [MQTT-3.15.2-3] size %s: method and data alone',
    async (size) => {
      const wire = await authenticated({}, size === undefined ? '' : `27${u32(size)}`)
      quiet(wire.client.reauthenticate())
      expect(await wire.sent()).toEqual([auth(0x19, 'hello')])
      expect(
        await wire.answers(auth(0x18, 'one', `1f${text('because')}26${text('k')}${text('v')}`)),
      ).toEqual([auth(0x18, '<one>')])
    },
  )

  it('[MQTT-4.12.0-7] without a method in CONNECT none is sent: not for reauthenticate(), not as an answer', async () => {
    const wire = await opened({ reconnect: false })
    expect(await refusal(() => wire.client.reauthenticate())).toBeInstanceOf(Error)
    expect(await wire.sent()).toEqual([])
    await wire.give(auth(0x18, 'one'))
    expect([wire.take(), wire.ended]).toEqual([[goodbye(0x82)], true])
    const early = await dialled({ reconnect: false })
    early.take()
    await early.give(auth(0x18, 'one'))
    expect([early.take(), early.ended]).toEqual([[], true])
  })
})
