/** Bad bytes on 5.0, case by case: DISCONNECT with the reason once the connection is up, the end of the stream before. */
import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { MqttError } from '../../../src/errors.js'
import { join, packet, pairs, properties, publish, text, uint16 } from '../../lab/budgets/bytes.js'
import type { Vector } from '../wire/vector-files.js'
import { connected, failure, World } from './harness.js'

const hex = (text: string): Buffer => Buffer.from(text.replaceAll(' ', ''), 'hex')
/** A PUBLISH at QoS 0 on topic `a` with these properties, in hexadecimal. */
const having = (text: string): Buffer => publish({ properties: properties(hex(text)) })
const many = (count: number): Buffer => properties(pairs(count))
const identifiers = (count: number): Buffer => Buffer.alloc(2 * count, Buffer.of(0x0b, 1))

/** Name, bytes, the reason codes that will do. */
type Row = readonly [name: string, bytes: Buffer, ...codes: number[]]

/** What `hostile-bytes.test.ts` does not try on every type. */
const rows: Row[] = [
  ['Property Length 0 in two bytes', packet(0x30, text('a'), [0x80, 0]), 0x81],
  ['Subscription Identifier 1 in two bytes', having('0b8100'), 0x81],
  ['type 0 with flags and body', hex('0f 02 00 00'), 0x81],
  ['QoS 0 with DUP', hex('38 04 00 01 61 00'), 0x81],
  ['message expiry cut', having('0200'), 0x81],
  ['content type cut', having('0300056162'), 0x81],
  ['property length beyond the packet', hex('30 04 00 01 61 05'), 0x81],
  ['property 0x00', having('0000'), 0x81, 0x82],
  ['property 0x04', having('0400'), 0x81, 0x82],
  ['property 0x7f', having('7f00'), 0x81, 0x82],
  ['property of two bytes', having('818001'), 0x81, 0x82],
  ['receive maximum in PUBLISH', having('210001'), 0x82, 0x81],
  ['topic alias in PUBACK', hex('40 07 0001 00 03 230001'), 0x82, 0x81],
  ['content type twice', having('03000161 03000161'), 0x82],
  ['user property without a value', having('26000161'), 0x81],
  ['payload format 2', having('0102'), 0x82, 0x81],
  ['Subscription Identifier 0', having('0b00'), 0x82],
  ['Subscription Identifier of five bytes', having('0bffffffff01'), 0x81],
  ['Response Topic empty', having('080000'), 0x82, 0x81],
  ['Response Topic with a wildcard', having('08000123'), 0x82, 0x81],
  ['content type', having('030001ff'), 0x81],
  ['reason string of PUBACK', hex('40 08 0001 10 04 1f0001ff'), 0x81],
  ['user property of SUBACK', hex('90 0a 0001 06 260001 0000 00 00'), 0x81],
  ['reason string beyond the packet', hex('40 08 0001 00 04 1f000961'), 0x81],
  ['topic empty without an alias', hex('30 03 00 00 00'), 0x82, 0x81],
  ['topic with #', hex('30 04 00 01 23 00'), 0x82, 0x81, 0x90],
  ['topic with +', hex('30 06 00 03 61 2f 2b 00'), 0x82, 0x81, 0x90],
  ['packet id 0', hex('32 06 00 01 61 00 00 00'), 0x82, 0x81],
  ['PUBACK with a code that it may not carry', hex('40 03 00 01 7f'), 0x81, 0x82],
  ['SUBACK with a code that it may not carry', hex('90 04 00 01 00 03'), 0x81, 0x82],
  ['UNSUBACK with a code that it may not carry', hex('b0 04 00 01 00 ff'), 0x81, 0x82],
  ['topic alias 0', having('230000'), 0x94, 0x82],
  ['topic alias above what we allow', having('23000b'), 0x94],
  ['topic alias that was never defined', hex('30 06 0000 03 230001'), 0x82],
  ['CONNECT', hex('10 0d 00 04 4d 51 54 54 05 02 00 00 00 00 00'), 0x82, 0x81],
  ['SUBSCRIBE', hex('82 07 00 01 00 00 01 61 00'), 0x82, 0x81],
  ['UNSUBSCRIBE', hex('a2 06 00 01 00 00 01 61'), 0x82, 0x81],
  ['PINGREQ', hex('c0 00'), 0x82, 0x81],
  ['the largest Remaining Length: at the header', hex('40 ff ff ff 7f'), 0x95],
  [
    'PUBACK far larger than it needs',
    packet(0x40, [0, 1, 0x10], properties(0x1f, text('a'.repeat(10_000)))),
    0x95,
  ],
  ['PINGRESP', packet(0xd0, Buffer.alloc(10_001)), 0x95],
  ['SUBACK', packet(0x90, [0, 1, 0], Buffer.alloc(100_001)), 0x95],
  ['DISCONNECT', packet(0xe0, 0, many(20_000)), 0x95],
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
  [
    'more than Receive Maximum',
    join(...Array.from({ length: 257 }, (_, index) => publish({ qos: 2, id: index + 1 }))),
    0x93,
  ],
]

/** Rows that break a rule of a connection that is up, or are another offence before CONNACK. */
const afterConnack =
  /^(?:topic alias (?!in)|more than|the largest|CONNECT|SUBSCRIBE|UNSUBSCRIBE|PINGREQ)|with [\d,]+ (?:user properties|Subscription Identifiers)$/

const names: Record<string, number> = {
  MalformedPacket: 0x81,
  ProtocolError: 0x82,
  UnsupportedProtocolVersion: 0x84,
  TopicNameInvalid: 0x90,
  PayloadFormatInvalid: 0x99,
  TopicAliasInvalid: 0x94,
  PacketTooLarge: 0x95,
}
const vectors = (
  JSON.parse(readFileSync(new URL('../../rules/vectors.json', import.meta.url), 'utf8')) as Vector[]
).filter(
  ({ direction, valid, fill, error, context, name }) =>
    direction === 's2c' &&
    !valid &&
    fill === undefined &&
    error !== 'Incomplete' &&
    context === undefined &&
    // The client ignores an acknowledgement of identifier 0: see faulty-messages.test.ts.
    (name.startsWith('publish') || !name.includes('packet-id-0')),
)

/** It has ended, with one of these codes in a DISCONNECT that is the last packet; nothing was delivered. */
async function expectClosed(world: World, codes: readonly number[]): Promise<void> {
  expect(world.client.state).toBe('closed')
  const cause = await world.client.closed
  const goodbyes = world.peer.all('disconnect')
  expect([goodbyes.length, world.peer.received.at(-1)?.type]).toEqual([1, 'disconnect'])
  expect(codes).toContain(goodbyes[0]?.reasonCode)
  expect(world.peer.ended).toEqual({ cause: undefined })
  expect(MqttError.is(cause)).toBe(true)
  expect(cause).toMatchObject({ fault: 'remote', reasonCode: goodbyes[0]?.reasonCode })
  expect(cause?.code).toMatch(
    /^ERR_(MALFORMED_PACKET|PROTOCOL_ERROR|PACKET_TOO_LARGE|UNEXPECTED_PACKET|QUEUE_FULL)$/,
  )
  expect(world.seen('disconnect')).toEqual([{ error: cause, cause }])
  expect(world.seen('unclaimed')).toEqual([])
  expect(world.seen('serverdisconnect')).toEqual([])
  expect(world.clock.pending).toBe(0)
}

describe('on a connection that is up: DISCONNECT with the reason is last, nothing is delivered', () => {
  it.each(rows)('%s', async (...row) => {
    const [name, bytes, ...codes] = row as unknown as Row
    const world = await connected({ receiveMaximum: 256, receiveMaximumExceeded: 'disconnect' })
    const subscription = world.client.subscription(['#', '$SYS/#'])
    await world.settle()
    // Whatever stands behind the bad packet is ignored.
    const behind =
      bytes.length > 1000 || name.includes('at the header') ? '' : join(publish({}), publish({}))
    await world.sendBytes(bytes, behind)
    await expectClosed(world, codes)
    // Messages before the one that breaks the rule are good ones.
    if (!name.startsWith('more than')) expect(subscription.size).toBe(0)
    expect(world.peer.received.filter(({ type }) => type.startsWith('pub'))).toEqual([])
  })

  it.each(vectors.map((vector) => [vector.name, vector] as const))(
    'vector %s',
    async (name, vector) => {
      const world = await connected()
      const subscription = world.client.subscription('#')
      await world.settle()
      for (const byte of hex(vector.hex)) world.peer.sendBytes([byte])
      await world.settle()
      await expectClosed(
        world,
        (vector.acceptErrors ?? []).map((error) => names[error] as number),
      )
      // A stream holds good packets before the bad one.
      if (!name.startsWith('stream')) expect(subscription.size).toBe(0)
    },
  )
})

describe('before CONNACK: no DISCONNECT, the stream is closed', () => {
  it.each(rows.filter(([name]) => !afterConnack.test(name)))('%s', async (...row) => {
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
  })
})

it('user properties are plain pairs whatever their names: 128 of them, and 64 Subscription Identifiers, are accepted', async () => {
  const world = await connected()
  const subscription = world.client.subscription('a')
  await world.settle()
  const odd = ['__proto__', 'constructor', 'toString', '', ''].map((name) => [name, 'x'])
  const block = odd.map(([name = '', value = '']) => join(0x26, text(name), text(value)))
  await world.sendBytes(publish({ properties: properties(...block, pairs(123), identifiers(64)) }))
  expect([world.client.state, subscription.size]).toEqual(['connected', 1])
  expect(subscription.read()?.properties.userProperties?.slice(0, 6)).toEqual([...odd, ['', '']])
  expect(Object.keys(Object.prototype)).toEqual([])
})
