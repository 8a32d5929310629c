/**
 * Bad bytes: DISCONNECT with the reason on 5.0 once a connection is up, the end of the stream alone before that and on 3.1.1. What is bad is up to the
 * tests of the codec. And text that would do harm to objects and terminals, wherever a packet carries it.
 */
import { describe, expect, it } from 'vitest'
import type { ClientOptions } from '../../../src/client/options/index.js'
import type { MqttError } from '../../../src/errors.js'
import {
  connack,
  join,
  type Part,
  packet,
  pairs,
  properties,
  publish,
  text,
  uint16,
  varint,
} from '../../lab/budgets/bytes.js'
import { accepting, agreeable, connected, failure, times, World } from './harness.js'
import { quiet } from './incoming.js'

const hex = (text: string): Buffer => Buffer.from(text.replaceAll(' ', ''), 'hex')
/** A PUBLISH at QoS 0 on topic `a` with these properties, in hexadecimal. */
const having = (text: string): Buffer => publish({ properties: properties(hex(text)) })
const many = (count: number): Buffer => properties(pairs(count))
const identifiers = (count: number): Buffer => Buffer.alloc(2 * count, Buffer.of(0x0b, 1))

/** Name, bytes, the reason codes that will do. */
type Row = readonly [name: string, bytes: Buffer, ...codes: number[]]

/** One of each kind that the codec refuses, and all that the client refuses by itself. */
const rows: Row[] = [
  ['a type that there is not', hex('0f 02 00 00'), 0x81],
  ['content type twice', having('03000161 03000161'), 0x82],
  ['topic with #', hex('30 04 00 01 23 00'), 0x82, 0x81, 0x90],
  ['SUBACK with a code that it may not carry', hex('90 04 00 01 00 03'), 0x81, 0x82],
  ['topic alias 0', having('230000'), 0x94, 0x82],
  ['topic alias above what we allow', having('23000b'), 0x94],
  ['topic alias that was never defined', hex('30 06 0000 03 230001'), 0x82],
  ['CONNECT', hex('10 0d 00 04 4d 51 54 54 05 02 00 00 00 00 00'), 0x82, 0x81],
  ['the largest Remaining Length: at the header', hex('40 ff ff ff 7f'), 0x95],
  ['PUBLISH with 129 user properties', publish({ properties: many(129) }), 0x97],
  ['PUBLISH with 200,000 user properties', publish({ properties: many(200_000) }), 0x97],
  [
    'PUBLISH with 65 Subscription Identifiers',
    publish({ properties: properties(identifiers(65)) }),
    0x97,
  ],
  ['PUBACK with 129 user properties', packet(0x40, uint16(9), 0, many(129)), 0x97],
  ['SUBACK with 129 user properties', packet(0x90, uint16(1), many(129), 0), 0x97],
  [
    'DISCONNECT with a Session Expiry Interval',
    packet(0xe0, 0x8b, properties(0x11, 0, 0, 0, 1)),
    0x82,
  ],
  ['DISCONNECT with a code that only clients send', packet(0xe0, 4, 0), 0x81, 0x82],
  ['DISCONNECT with 129 user properties', packet(0xe0, 0, many(129)), 0x97],
]

/** Rows that break a rule of a connection that is up, or are another offence before CONNACK. */
const afterConnack =
  /^(?:topic alias|the largest|CONNECT)|with [\d,]+ (?:user properties|Subscription Identifiers)$/

describe('on a connection that is up: DISCONNECT with the reason is last, nothing is delivered', () => {
  const options = { receiveMaximum: 256, receiveMaximumExceeded: 'disconnect' } as const
  it.each(rows)('%s', async (...row) => {
    const [name, bytes, ...codes] = row as unknown as Row
    // Whatever stands behind the bad packet is ignored.
    const follow = bytes.length <= 1000 && !name.includes('at the header')
    await expectEnd(5, bytes, codes, follow, options)
  })
})

it.each(rows.filter(([name]) => !afterConnack.test(name)))(
  'before CONNACK: no DISCONNECT, the stream is closed: %s',
  async (...row) => {
    const [, bytes] = row as unknown as Row
    const world = new World()
    const subscription = world.client.subscription('#')
    const connecting = failure(world.client.connect())
    await world.settle()
    await world.sendBytes(bytes)
    const error = await connecting
    expect(error).toMatchObject({ fault: 'remote' })
    expect(error.code).toMatch(
      /^ERR_(MALFORMED_PACKET|PROTOCOL_ERROR|PACKET_TOO_LARGE|UNEXPECTED_PACKET|CONNECT_REFUSED)$/,
    )
    expect(world.peer.received.map(({ type }) => type)).toEqual(['connect'])
    expect(world.peer.ended).toBeDefined()
    expect([world.client.state, subscription.size, world.clock.pending]).toEqual(['closed', 0, 0])
  },
)

it('more than Receive Maximum: DISCONNECT 0x93, where that is asked for', async () => {
  const world = await connected({ receiveMaximum: 256, receiveMaximumExceeded: 'disconnect' })
  await world.sendBytes(...times(257, (index) => publish({ qos: 2, id: index + 1 })))
  expect(world.peer.received.at(-1)).toMatchObject({ type: 'disconnect', reasonCode: 0x93 })
  expect((await world.client.closed)?.fault).toBe('remote')
})

it('128 user properties and 64 Subscription Identifiers are accepted', async () => {
  const world = await connected()
  const subscription = world.client.subscription('a')
  await world.settle()
  await world.sendBytes(publish({ properties: properties(pairs(128), identifiers(64)) }))
  expect([world.client.state, subscription.size]).toEqual(['connected', 1])
  expect(subscription.read()?.properties.userProperties).toHaveLength(128)
})

type Version = 4 | 5

/** A connected client that is sent these bytes after SUBACK, with a good message behind them. */
async function afterwards(
  version: Version,
  bytes: Uint8Array,
  follow = true,
  options: ClientOptions = {},
) {
  const world = await connected({ protocolVersion: version, clientId: 'c', ...options }, agreeable)
  const subscription = world.client.subscription('#', { ack: 'on-receive' })
  await world.settle()
  await world.sendBytes(bytes, follow ? publish({ topic: 'behind', version }) : '')
  return { world, delivered: subscription.size + world.seen('unclaimed').length }
}

/** It ends: with a reason on 5.0, without a word on 3.1.1; a typed error, nothing delivered, nothing left behind. */
async function expectEnd(
  version: Version,
  bytes: Uint8Array,
  codes: readonly number[],
  follow = true,
  options: ClientOptions = {},
): Promise<void> {
  const { world, delivered } = await afterwards(version, bytes, follow, options)
  const goodbyes = world.peer.all('disconnect').map(({ reasonCode }) => reasonCode)
  expect([world.client.state, goodbyes.length]).toEqual(['closed', version === 5 ? 1 : 0])
  for (const code of goodbyes) expect(codes).toContain(code)
  if (version === 5) {
    expect(world.peer.received.at(-1)?.type).toBe('disconnect')
    expect(world.peer.ended).toEqual({ cause: undefined })
  }
  const [lost, ...more] = world.seen('disconnect')
  expect(lost?.cause).toMatchObject({ fault: 'remote' })
  expect(lost?.cause?.code).toMatch(
    /^ERR_(MALFORMED_PACKET|PROTOCOL_ERROR|PACKET_TOO_LARGE|UNEXPECTED_PACKET|QUEUE_FULL)$/,
  )
  expect(world.seen('serverdisconnect')).toEqual([])
  expect([more, delivered, world.clock.pending]).toEqual([[], 0, 0])
}

describe.each([5, 4] as const)('bad bytes, version %i', (version) => {
  it('what stands before the bad packet is delivered, what stands behind it is not, in one chunk or several', async () => {
    const parts = [
      publish({ topic: 'before', version }),
      Buffer.of(0),
      Buffer.of(0),
      publish({ topic: 'behind', version }),
    ]
    for (const chunks of [parts, [join(...parts)]]) {
      const world = await connected({ protocolVersion: version, clientId: 'c' }, agreeable)
      const subscription = world.client.subscription('#')
      await world.settle()
      for (const chunk of chunks) world.peer.sendBytes(chunk)
      await world.settle()
      expect(subscription.read()?.topic).toBe('before')
      expect(subscription.read()).toBeUndefined()
      expect(world.client.state).toBe('closed')
    }
  })

  it("with oversized: 'disconnect' a packet over our Maximum Packet Size ends the link at its header, the least too", async () => {
    const exact: ClientOptions = { maximumPacketSize: 1024 * 1024, oversized: 'disconnect' }
    for (const length of [1024 * 1024 - 3, 268_435_455])
      await expectEnd(version, join(0x30, varint(length)), [0x95], false, exact)
    const fits = publish({ payload: Buffer.alloc(1024 * 1024 - (version === 5 ? 8 : 7)), version })
    expect(fits.length).toBe(1024 * 1024)
    const { world, delivered } = await afterwards(version, fits, true, exact)
    expect([world.client.state, delivered]).toEqual(['connected', 2])
  })

  it('errors and logs about bad bytes hold none of them, and no control character', async () => {
    const { options, log } = noted()
    const secret = 'tweety-5up3r'
    const topic = text(Buffer.from(`zebra\u0000\u001b[31m${secret}`))
    const world = await connected(
      { protocolVersion: version, clientId: 'c', ...options },
      agreeable,
    )
    await world.sendBytes(packet(0x30, topic, version === 5 ? 0 : '', secret))
    const error = (await world.client.closed) as MqttError
    for (const line of [...log, error.message, String(error.cause), JSON.stringify(error)])
      expect(line).not.toMatch(/zebra|tweety|\p{Cc}/u)
  })
})

const nasty = [
  '__proto__',
  'constructor',
  'prototype',
  'toString',
  'hasOwnProperty',
  '',
  '',
  '__proto__',
].map((name) => [name, `x${name}`])
const block = (...parts: Part[]): Buffer =>
  properties(
    ...nasty.map(([name = '', value = '']) => join(0x26, text(name), text(value))),
    ...parts,
  )
const escapes =
  '\u001b[31m\u001b]0;owned\u0007\r\nERROR forged\u202e\u2066\u009b\u0085\u2028'.repeat(30)
const controls = /[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}\p{Cs}]/u

/** What a program can print of an error without meaning harm. */
function printed(error: unknown): string[] {
  if (!(error instanceof Error)) return []
  const inner =
    error.cause instanceof AggregateError
      ? error.cause.errors.flatMap(printed)
      : printed(error.cause)
  return [error.message, String(error), ...inner]
}

/** Options under which each log line is kept. */
function noted(): { readonly options: ClientOptions; readonly log: string[] } {
  const log: string[] = []
  const note = (line: string): void => void log.push(line)
  return { log, options: { logger: { debug: note, info: note, warn: note, error: note } } }
}

describe('hostile names and text, in every packet that carries them', () => {
  it('user properties are pairs in their order: of CONNACK, messages, receipts and DISCONNECT', async () => {
    const world = new World({ stats: true })
    const connecting = world.client.connect()
    await world.settle()
    await world.sendBytes(connack(0, block()))
    await connecting
    const subscription = world.client.subscription('a')
    await world.sendBytes(publish({ topic: 'a', properties: block() }))
    const receipt = world.client.publish('b', '', { qos: 1 })
    await world.settle()
    await world.sendBytes(
      packet(0x40, uint16(world.peer.last('publish').packetId as number), 0, block()),
    )
    await world.sendBytes(packet(0xe0, 0x8b, block()))
    const goodbye = world.seen('serverdisconnect')[0]?.packet.properties
    const found = [world.client.negotiated, subscription.read()?.properties, await receipt, goodbye]
    expect(found.map((each) => each?.userProperties)).toEqual(Array(4).fill(nasty))
    expect(Object.keys(Object.prototype)).toEqual([])
    const { failures } = world.client.stats()
    expect(Object.getPrototypeOf(failures)).toEqual(null)
    expect(Object.keys(failures)).toEqual(['ERR_SERVER_DISCONNECT'])
  })

  const reason = properties(0x1f, text(escapes))
  /** Calls, answers them so, and gives what they are rejected with. */
  const answered = async (
    world: World,
    call: Promise<unknown>,
    first: number,
    ...rest: Part[]
  ): Promise<unknown> => {
    quiet(call)
    await world.settle()
    const sent = world.peer.received.at(-1) as { packetId: number }
    await world.sendBytes(packet(first, uint16(sent.packetId), ...rest))
    return failure(call)
  }
  it.each<[string, (world: World) => Promise<unknown>]>([
    [
      'CONNACK',
      (world) =>
        world.sendBytes(connack(0x87, properties(0x1f, text(escapes), 0x1c, text(escapes)))),
    ],
    ['SUBACK', (world) => answered(world, world.client.subscribe('a'), 0x90, reason, 0x87)],
    ['UNSUBACK', (world) => answered(world, world.client.unsubscribe('b'), 0xb0, reason, 0x87)],
    [
      'PUBACK',
      (world) => answered(world, world.client.publish('a', '', { qos: 1 }), 0x40, 0x87, reason),
    ],
    [
      'PUBREC',
      (world) => answered(world, world.client.publish('a', '', { qos: 2 }), 0x50, 0x87, reason),
    ],
    [
      'DISCONNECT',
      (world) =>
        world.sendBytes(packet(0xe0, 0x8b, properties(0x1f, text(escapes), 0x1c, text(escapes)))),
    ],
    [
      'PUBLISH',
      (world) =>
        world.sendBytes(publish({ topic: escapes, properties: properties(0x03, text(escapes)) })),
    ],
    [
      'AUTH',
      (world) =>
        world.sendBytes(packet(0xf0, 0x18, properties(0x15, text(escapes), 0x1f, text(escapes)))),
    ],
  ])('control characters in %s: escaped and cut in every error and log line', async (kind, act) => {
    const { options, log } = noted()
    const world = kind === 'CONNACK' ? new World(options) : await connected(options, accepting())
    const connecting = kind === 'CONNACK' ? failure(world.client.connect()) : undefined
    await world.settle()
    const error = await act(world)
    const lines = [...log, ...printed(error), ...printed(await connecting)]
    if (world.client.state === 'closed') lines.push(...printed(await world.client.closed))
    for (const { event } of world.events as { event: { error?: unknown; cause?: unknown } }[])
      lines.push(...printed(event.error ?? event.cause))
    expect(lines.length).toBeGreaterThan(0)
    for (const line of lines) {
      expect(line).not.toMatch(controls)
      expect(line.length).toBeLessThan(400)
    }
  })

  it('an assigned client identifier of control characters is escaped in every log line', async () => {
    const { options, log } = noted()
    const world = new World(options)
    const connecting = world.client.connect()
    await world.settle()
    await world.sendBytes(connack(0, properties(0x12, text(escapes))))
    await connecting
    world.client.destroy()
    expect(world.client.clientId).toBe(escapes)
    expect(log.length).toBeGreaterThan(1)
    for (const line of log) expect(line).not.toMatch(controls)
  })
})
