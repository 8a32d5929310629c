import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { MqttError } from '../../../src/errors.js'
import type { Vector } from '../wire/vector-files.js'
import { accepting, agreeable, connected, failure, World } from './harness.js'
import { publish } from './incoming.js'

const hex = (...bytes: number[]): string => Buffer.from(bytes).toString('hex')
const repeated = (text: string, count: number): string => text.repeat(count)

/** Remaining Length. */
function length(value: number): string {
  let out = ''
  for (let rest = value; ; rest >>= 7) {
    if (rest < 128) return out + hex(rest)
    out += hex((rest & 0x7f) | 0x80)
  }
}

/** A packet with this first byte around a body. */
const packet = (first: string, body: string): string => first + length(body.length / 2) + body
/** A PUBLISH at QoS 0 on topic `a` with this property block. */
const withProperties = (properties: string, payload = ''): string => packet('30', `000161${length(properties.length / 2)}${properties}${payload}`)
const userProperty = '26 0000 0000'.replaceAll(' ', '')

/** Name, bytes, the reason codes that will do. */
type Row = readonly [name: string, hex: string, ...codes: number[]]

const server = ['20', '40', '50', '62', '70', '90', 'b0', 'd0', 'e0', 'f0']

const rows: Row[] = [
  ...['30', ...server].map((first): Row => [`type ${first}: Remaining Length of five bytes`, `${first}ffffffff01`, 0x81]),
  ['Remaining Length 2 in two bytes', '40 82 00 00 01', 0x81],
  ['Property Length 0 in two bytes', packet('30', '000161 8000'.replaceAll(' ', '')), 0x81],
  ['Subscription Identifier 1 in two bytes', withProperties('0b8100'), 0x81],
  ['type 0', '00 00', 0x81],
  ['type 0 with flags and body', '0f 02 00 00', 0x81],
  ...server.flatMap((first) =>
    [1, 2, 4, 8].map((bit): Row => {
      const flipped = Number.parseInt(first, 16) ^ bit
      return [`type ${first}: flag bit ${bit}`, hex(flipped, 4, 0, 1, 0, 0), 0x81]
    }),
  ),
  ['QoS 3', '36 06 00 01 61 00 01 00', 0x81],
  ['QoS 0 with DUP', '38 04 00 01 61 00', 0x81],
  ...[
    '20 00',
    '20 01 00',
    '20 02 00 00',
    '30 00',
    '30 02 00 01',
    '30 03 00 01 61',
    '32 05 00 01 61 00 01',
    '40 00',
    '40 01 00',
    '50 01 00',
    '62 01 00',
  ].map((bytes): Row => [`${bytes}: too short`, bytes, 0x81, 0x82]),
  ...['70 00', '90 02 00 01', '90 03 00 01 00', 'b0 02 00 01', 'b0 03 00 01 00'].map((bytes): Row => [`${bytes}: too short`, bytes, 0x81, 0x82]),
  ['PUBACK with a byte too many', '40 05 00 01 00 00 ff', 0x81],
  ['DISCONNECT with a byte too many', 'e0 03 00 00 ff', 0x81],
  ['PINGRESP with a body', 'd0 01 00', 0x81],
  ['message expiry cut', withProperties('0200'), 0x81],
  ['content type cut', withProperties('0300056162'), 0x81],
  ['property length beyond the packet', packet('30', '00016105'), 0x81],
  ['property 0x00', withProperties('0000'), 0x81, 0x82],
  ['property 0x04', withProperties('0400'), 0x81, 0x82],
  ['property 0x7f', withProperties('7f00'), 0x81, 0x82],
  ['property of two bytes', withProperties('818001'), 0x81, 0x82],
  ['receive maximum in PUBLISH', withProperties('210001'), 0x82, 0x81],
  ['topic alias in PUBACK', packet('40', '00010003230001'), 0x82, 0x81],
  ['content type twice', withProperties('03000161 03000161'.replaceAll(' ', '')), 0x82],
  ['user property without a value', withProperties('26000161'), 0x81],
  ['payload format 2', withProperties('0102'), 0x82, 0x81],
  ['Subscription Identifier 0', withProperties('0b00'), 0x82],
  ['Subscription Identifier of five bytes', withProperties('0bffffffff01'), 0x81],
  ['Response Topic empty', withProperties('080000'), 0x82, 0x81],
  ['Response Topic with a wildcard', withProperties('08000123'), 0x82, 0x81],
  ['topic: overlong', '30 05 00 02 c0 80 00', 0x81],
  ['topic: surrogate', '30 06 00 03 ed a0 80 00', 0x81],
  ['topic: NUL', '30 04 00 01 00 00', 0x81],
  ['topic: cut sequence', '30 04 00 01 c3 00', 0x81],
  ['content type', withProperties('030001ff'), 0x81],
  ['reason string of PUBACK', packet('40', '000110041f0001ff'), 0x81],
  ['user property of SUBACK', packet('90', '0001062600010000 00'.replaceAll(' ', '')), 0x81],
  ['topic beyond the packet', '30 04 00 09 61 00', 0x81],
  ['reason string beyond the packet', packet('40', '000100041f000961'), 0x81],
  ['topic empty without an alias', '30 03 00 00 00', 0x82, 0x81],
  ['topic with #', '30 04 00 01 23 00', 0x82, 0x81, 0x90],
  ['topic with +', '30 06 00 03 61 2f 2b 00', 0x82, 0x81, 0x90],
  ['packet id 0', '32 06 00 01 61 00 00 00', 0x82, 0x81],
  ['PUBACK with a code that it may not carry', '40 03 00 01 7f', 0x81, 0x82],
  ['SUBACK with a code that it may not carry', '90 04 00 01 00 03', 0x81, 0x82],
  ['UNSUBACK with a code that it may not carry', 'b0 04 00 01 00 ff', 0x81, 0x82],
  ['topic alias 0', withProperties('230000'), 0x94, 0x82],
  ['topic alias above what we allow', withProperties('23000b'), 0x94],
  ['topic alias that was never defined', packet('30', '0000 03 230001'.replaceAll(' ', '')), 0x82],
  ['CONNECT', '10 0d 00 04 4d 51 54 54 05 02 00 00 00 00 00', 0x82, 0x81],
  ['SUBSCRIBE', '82 07 00 01 00 00 01 61 00', 0x82, 0x81],
  ['UNSUBSCRIBE', 'a2 06 00 01 00 00 01 61', 0x82, 0x81],
  ['PINGREQ', 'c0 00', 0x82, 0x81],
  ['the largest Remaining Length: at the header', '40 ff ff ff 7f', 0x95],
  ['PUBACK far larger than it needs', packet('40', `000110${length(10_003)}1f2710${repeated('61', 10_000)}`), 0x95],
  ['PINGRESP', packet('d0', repeated('00', 10_001)), 0x95],
  ['SUBACK', packet('90', `000100${repeated('00', 100_001)}`), 0x95],
  ['DISCONNECT', packet('e0', `00${length(100_002)}${repeated(userProperty, 20_000)}0000`), 0x95],
  ['PUBLISH with 129 user properties', withProperties(repeated(userProperty, 129)), 0x97],
  ['PUBLISH with 200,000 user properties', withProperties(repeated(userProperty, 200_000)), 0x97],
  ['PUBLISH with 65 Subscription Identifiers', withProperties(repeated('0b01', 65)), 0x97],
  ['PUBACK with 129 user properties', packet('40', `000900${length(645)}${repeated(userProperty, 129)}`), 0x97],
  ['SUBACK with 129 user properties', packet('90', `0001${length(645)}${repeated(userProperty, 129)}0000`), 0x97],
  ['DISCONNECT with 129 user properties', packet('e0', `00${length(645)}${repeated(userProperty, 129)}`), 0x97],
  [
    'more than Receive Maximum',
    Array.from({ length: 257 }, (_, index) => packet('34', `000161${hex((index + 1) >> 8, (index + 1) & 0xff)}00`)).join(''),
    0x93,
  ],
]

/** Rows that break a rule of a connection that is up, or are another offence before CONNACK. */
const afterConnack =
  /^(?:topic alias (?!in)|more than|a packet above|the largest|CONNECT|SUBSCRIBE|UNSUBSCRIBE|PINGREQ)|with [\d,]+ (?:user properties|Subscription Identifiers)$/

const names: Record<string, number> = {
  MalformedPacket: 0x81,
  ProtocolError: 0x82,
  UnsupportedProtocolVersion: 0x84,
  TopicNameInvalid: 0x90,
  PayloadFormatInvalid: 0x99,
  TopicAliasInvalid: 0x94,
  PacketTooLarge: 0x95,
}
const vectors = (JSON.parse(readFileSync(new URL('../../rules/vectors.json', import.meta.url), 'utf8')) as Vector[]).filter(
  (vector) =>
    vector.direction === 's2c' &&
    !vector.valid &&
    vector.fill === undefined &&
    vector.error !== 'Incomplete' &&
    vector.context === undefined &&
    // The client ignores an acknowledgement of identifier 0: see faulty-messages.test.ts.
    (vector.name.startsWith('publish') || !vector.name.includes('packet-id-0')),
)

function expectClosed(world: World, codes: readonly number[], cause: MqttError | undefined): void {
  const sent = world.peer.received.filter((sent) => sent.type === 'disconnect')
  expect(sent).toHaveLength(1)
  expect(world.peer.received.at(-1)).toBe(sent[0])
  expect(codes).toContain(sent[0]?.type === 'disconnect' && sent[0].reasonCode)
  expect(world.peer.ended).toEqual({ cause: undefined })
  expect(MqttError.is(cause)).toBe(true)
  expect(cause).toMatchObject({ fault: 'remote', reasonCode: sent[0]?.type === 'disconnect' ? sent[0].reasonCode : undefined })
  expect(cause?.code).toMatch(/^ERR_(MALFORMED_PACKET|PROTOCOL_ERROR|PACKET_TOO_LARGE|UNEXPECTED_PACKET|QUEUE_FULL)$/)
  expect(world.client.state).toBe('closed')
  expect(world.seen('disconnect')).toEqual([{ error: cause, cause }])
  expect(world.clock.pending).toBe(0)
}

describe('on a connection that is up: DISCONNECT with the reason is last, nothing is delivered', () => {
  it.each(rows)('%s', async (...row) => {
    const [name, bytes, ...codes] = row as unknown as Row
    const world = await connected({ receiveMaximum: 256, receiveMaximumExceeded: 'disconnect' })
    const subscription = world.client.subscription(['#', '$SYS/#'])
    const delivered: unknown[] = []
    world.client.on('unclaimed', (event) => delivered.push(event))
    await world.settle()
    const chunk = Uint8Array.from(Buffer.from(bytes.replaceAll(' ', ''), 'hex'))
    // Whatever stands behind the bad packet is ignored.
    world.peer.sendBytes(chunk, bytes.length > 2000 || bytes.startsWith('40 ff ff ff') ? '' : '3004000161003004000161 00')
    await world.settle()
    expect(world.client.state).toBe('closed')
    expectClosed(world, codes, await world.client.closed)
    expect(delivered).toEqual([])
    // Messages before the one that breaks the rule are good ones.
    if (!name.startsWith('more than')) expect(subscription.size).toBe(0)
    expect(world.peer.received.map((sent) => sent.type).filter((type) => type.startsWith('pub'))).toEqual([])
  })

  it.each(vectors.map((vector) => [vector.name, vector] as const))('vector %s', async (name, vector) => {
    const world = await connected()
    const subscription = world.client.subscription('#')
    await world.settle()
    for (const byte of Buffer.from(vector.hex, 'hex')) world.peer.sendBytes([byte])
    await world.settle()
    expect(world.client.state).toBe('closed')
    expectClosed(
      world,
      (vector.acceptErrors ?? []).map((name) => names[name] as number),
      await world.client.closed,
    )
    // A stream holds good packets before the bad one.
    if (!name.startsWith('stream')) expect(subscription.size).toBe(0)
  })
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
    expect(error.code).toMatch(/^ERR_(MALFORMED_PACKET|PROTOCOL_ERROR|PACKET_TOO_LARGE|UNEXPECTED_PACKET|CONNECT_REFUSED)$/)
    expect(world.peer.received.map((sent) => sent.type)).toEqual(['connect'])
    expect(world.peer.ended).toBeDefined()
    expect(world.client.state).toBe('closed')
    expect(subscription.size).toBe(0)
    expect(world.clock.pending).toBe(0)
  })
})

it('topics of length 1, of the maximum, and with 65,000 levels are handled', async () => {
  const world = await connected({}, agreeable)
  const subscription = world.client.subscription('#')
  await world.settle()
  for (const topic of ['a', 'x'.repeat(65_535), `a${'/'.repeat(65_000)}`]) await world.send(publish(topic, ''))
  expect([subscription.read(), subscription.read(), subscription.read()].map((message) => message?.topic.length)).toEqual([1, 65_535, 65_001])
})

it('user properties are plain pairs, whatever their names', async () => {
  const world = await connected()
  const subscription = world.client.subscription('a')
  const userProperties: [string, string][] = [
    ['__proto__', 'x'],
    ['constructor', 'y'],
    ['toString', ''],
    ['', ''],
    ['', ''],
  ]
  await world.send(publish('a', '', undefined, { properties: { userProperties } }))
  const { properties } = subscription.read() ?? {}
  expect(properties?.userProperties).toEqual(userProperties)
  expect(Object.keys(Object.prototype)).toEqual([])
})

it('128 user properties and 64 Subscription Identifiers are accepted', async () => {
  const world = await connected()
  const subscription = world.client.subscription('a')
  await world.settle()
  await world.sendBytes(withProperties(repeated(userProperty, 128) + repeated('0b01', 64)))
  expect(world.client.state).toBe('connected')
  expect(subscription.size).toBe(1)
})

it('the same packets at once and byte by byte', async () => {
  const stream = [
    packet('30', '0001610061'),
    packet('32', '00016100010062'),
    packet('34', '00016100020063'),
    'd000',
    packet('40', '0009'),
    packet('30', '0001610064'),
  ]
  const outcomes = []
  for (const split of [undefined, 1, 2, 3, 5]) {
    const world = await connected({}, accepting(), { backward: { split } })
    const subscription = world.client.subscription('a', { ack: 'on-receive' as const })
    await world.settle()
    await world.sendBytes(stream.join(''))
    const texts = []
    for (let message = subscription.read(); message !== undefined; message = subscription.read()) texts.push(`${message.text()} ${message.qos}`)
    outcomes.push([texts, world.peer.received.map((sent) => sent.type)])
  }
  for (const outcome of outcomes)
    expect(outcome).toEqual([
      ['a 0', 'b 1', 'c 2', 'd 0'],
      ['connect', 'subscribe', 'puback', 'pubrec'],
    ])
})

it('errors about bad bytes hold none of them', async () => {
  const world = await connected()
  await world.sendBytes(packet('30', `0006${Buffer.from('Zebra\0').toString('hex')}00${Buffer.from('Quagga').toString('hex')}`))
  const error = (await world.client.closed) as MqttError
  expect(`${error.message} ${String(error.cause)} ${JSON.stringify(error)}`).not.toMatch(/Zebra|Quagga/)
})
