/** The rules of `tables.json` that the tables in `test/unit/wire` leave open: bit fields, limits, error handling, and the points that the standard leaves open. */
import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { writeMessage } from '../../src/wire/encode-publish.js'
import type { Packet, PacketInput, WireError } from '../../src/wire/index.js'
import { Decoder, decode, encode } from '../../src/wire/index.js'
import { Writer } from '../../src/wire/writer.js'
import {
  block,
  connack,
  dialled,
  field,
  fresh,
  hex,
  opened,
  packet,
  publish,
  text,
  u8,
  u16,
  u32,
  varint,
} from './bytes.js'

interface Tables {
  properties: { id: number; key: string; type: keyof typeof bounds }[]
  propertiesByPacket: Record<string, number[]>
  limits: Record<string, number>
  variableByteInteger: { bytes: number; from: number; to: number }[]
  defaults: Record<string, { value: number | null }>
}

const json = (name: string): unknown =>
  JSON.parse(readFileSync(new URL(name, import.meta.url), 'utf8'))
const tables = json('./tables.json') as Tables

type Side = 'client' | 'server'

/** The packet, or the error. */
function outcome(bytes: string, from: Side): { packet?: Packet; error?: WireError } {
  try {
    return { packet: decode(Buffer.from(bytes, 'hex'), { from }) }
  } catch (error) {
    return { error: error as WireError }
  }
}

const codeOf = (bytes: string, from: Side): number | undefined =>
  outcome(bytes, from).error?.reasonCode

/** First byte, sender, and what stands before and behind the properties of each packet that has some. */
const hosts: Record<string, [number, Side, string, string]> = {
  CONNECT: [0x10, 'client', `${text('MQTT')}05020000`, text('c')],
  CONNACK: [0x20, 'server', '0000', ''],
  PUBLISH: [0x30, 'server', text('t'), ''],
  PUBACK: [0x40, 'server', '000100', ''],
  PUBREC: [0x50, 'server', '000100', ''],
  PUBREL: [0x62, 'server', '000100', ''],
  PUBCOMP: [0x70, 'server', '000100', ''],
  SUBSCRIBE: [0x82, 'client', '0001', `${text('a')}00`],
  SUBACK: [0x90, 'server', '0001', '00'],
  UNSUBSCRIBE: [0xa2, 'client', '0001', text('a')],
  UNSUBACK: [0xb0, 'server', '0001', '00'],
  DISCONNECT: [0xe0, 'client', '00', ''],
  AUTH: [0xf0, 'server', '18', ''],
  WILL: [0x10, 'client', `${text('MQTT')}0506000000${text('c')}`, `${text('w')}${text('')}`],
}

/** Smallest and largest value of each type, as bytes. */
const bounds = {
  byte: ['00', '01'],
  u16: ['0001', 'ffff'],
  u32: ['00000001', 'ffffffff'],
  varint: ['01', 'ffffff7f'],
  utf8: [text(''), text('x'.repeat(65_535))],
  binary: [field(''), field('ff'.repeat(65_535))],
  utf8pair: [text('') + text(''), text('x'.repeat(65_535)) + text('y'.repeat(65_535))],
} as const

function withProperty(host: string, property: string): string {
  const [first, , before, after] = hosts[host] as (typeof hosts)[string]
  const method = property.startsWith('15') ? '' : `15${text('m')}`
  const needed = host === 'AUTH' || (host === 'CONNECT' && property.startsWith('16')) ? method : ''
  return packet(first, before, block(needed, property), after)
}

/** A packet that may hold the property. */
const hostOf = (id: number): string =>
  Object.keys(tables.propertiesByPacket).find(
    (name) => tables.propertiesByPacket[name]?.includes(id) && name !== 'AUTH',
  ) as string

/** A client sends no Server Reference. */
const senderOf = (host: string, id: number): Side =>
  host === 'DISCONNECT' && id === 0x1c ? 'server' : (hosts[host] as (typeof hosts)[string])[1]

describe('properties', () => {
  it.each(Object.entries(tables.propertiesByPacket))(
    '[rule propertiesByPacket] %s takes those of its list, and no other',
    (host, allowed) => {
      const taken = tables.properties.filter(({ id, type }) => {
        const value = id === 0x08 ? text('r') : bounds[type][0]
        return outcome(withProperty(host, u8(id) + value), senderOf(host, id)).error === undefined
      })
      // A Session Expiry Interval is the client's to send, a Server Reference the server's.
      expect(taken.map(({ id }) => id).sort((a, b) => a - b)).toEqual(
        [...allowed].sort((a, b) => a - b),
      )
    },
  )

  it.each(Object.keys(bounds) as (keyof typeof bounds)[])(
    '[rule propertyTypes] %s: the smallest and the largest value go both ways, byte for byte',
    (type) => {
      let count = 0
      for (const { id } of tables.properties.filter((each) => each.type === type)) {
        const host = hostOf(id)
        for (const value of bounds[type]) {
          const usable = id === 0x08 ? text('r') : value
          const bytes = withProperty(host, u8(id) + usable)
          const { packet: read, error } = outcome(bytes, senderOf(host, id))
          expect(error, `${id} in ${host}`).toBeUndefined()
          expect(hex(encode(read as PacketInput))).toBe(bytes)
          count += 1
        }
      }
      expect(count).toBeGreaterThan(0)
    },
  )

  it.each(Object.keys(bounds) as (keyof typeof bounds)[])(
    '[rule propertyTypes] %s: a value that ends too early is malformed',
    (type) => {
      for (const { id } of tables.properties.filter((each) => each.type === type)) {
        const host = hostOf(id)
        const textual = text('ab').repeat(type === 'utf8pair' ? 2 : 1)
        const value = id === 0x08 ? text('r') : /utf8|binary/.test(type) ? textual : bounds[type][1]
        for (let cut = 2; cut <= value.length; cut += 2) {
          expect(
            codeOf(withProperty(host, u8(id) + value.slice(0, -cut)), senderOf(host, id)),
            `${id} in ${host}`,
          ).toBe(0x81)
        }
      }
    },
  )
})

describe('bit fields', () => {
  it('[rule connectFlags] all 256: each bit means its field, reserved bit and Will QoS 3 are malformed, will bits without a will are refused', () => {
    for (let flags = 0; flags < 256; flags++) {
      const [name, password, retain, , , will, clean, reserved] = Array.from(
        { length: 8 },
        (_, at) => (flags >> (7 - at)) & 1,
      )
      const qos = (flags >> 3) & 3
      const fields = [
        will ? `00${text('w')}${text('p')}` : '',
        name ? text('u') : '',
        password ? text('s') : '',
      ]
      const { packet: read, error } = outcome(
        packet(0x10, text('MQTT'), '05', u8(flags), '0000', '00', text('c'), ...fields),
        'client',
      )
      if (reserved === 1 || qos === 3) expect(error?.reasonCode, u8(flags)).toBe(0x81)
      else if (will === 0 && (qos > 0 || retain === 1))
        expect([0x81, 0x82], u8(flags)).toContain(error?.reasonCode)
      else {
        expect(error, u8(flags)).toBeUndefined()
        const [username, secret] = [
          name ? 'u' : undefined,
          password ? new Uint8Array([0x73]) : undefined,
        ]
        expect(read).toMatchObject({ cleanStart: clean === 1, username, password: secret })
        expect(read).toHaveProperty(
          'will',
          will ? expect.objectContaining({ qos, retain: retain === 1, topic: 'w' }) : undefined,
        )
      }
    }
  })

  it('[rule connackFlags] [rule errorHandling.silent.6] all 256: bit 0 is Session Present, any other is malformed', () => {
    for (let flags = 0; flags < 256; flags++) {
      const { packet: read, error } = outcome(packet(0x20, u8(flags), '00', '00'), 'server')
      if (flags > 1) expect(error?.reasonCode, u8(flags)).toBe(0x81)
      else expect(read).toMatchObject({ sessionPresent: flags === 1 })
    }
  })

  it('[rule subscriptionOptions] all 256: each bit means its option', () => {
    for (let options = 0; options < 0x40; options++) {
      const [handling, published, local, qos] = [
        options >> 4,
        (options >> 3) & 1,
        (options >> 2) & 1,
        options & 3,
      ]
      const { packet: read, error } = outcome(
        packet(0x82, u16(1), '00', text('a'), u8(options)),
        'client',
      )
      if (qos === 3 || handling === 3) expect(error?.reasonCode).toBe(0x82)
      else
        expect(read).toMatchObject({
          subscriptions: [
            {
              qos,
              noLocal: local === 1,
              retainAsPublished: published === 1,
              retainHandling: handling,
            },
          ],
        })
      expect(codeOf(packet(0x82, u16(1), '00', text('$share/g/a'), u8(options)), 'client')).toBe(
        local === 1 || qos === 3 || handling === 3 ? 0x82 : undefined,
      )
    }
    for (let options = 0x40; options < 256; options++)
      expect(codeOf(packet(0x82, u16(1), '00', text('a'), u8(options)), 'client')).toBe(0x81)
  })
})

describe('limits', () => {
  const { limits } = tables
  const most = limits['remainingLengthMax'] as number

  it('[rule limits.variableByteIntegerMax] [rule variableByteInteger] each length from its first value to its last, written and read', () => {
    const subscribe = (identifier: number): PacketInput => ({
      ...{ type: 'subscribe', packetId: 1, subscriptions: [{ filter: 'a' }] },
      properties: { subscriptionIdentifiers: [identifier] },
    })
    for (const { bytes, from, to } of tables.variableByteInteger) {
      for (const value of new Set([Math.max(from, 1), to])) {
        const written = encode(subscribe(value))
        expect(hex(written)).toBe(
          packet(0x82, u16(1), block(`0b${varint(value)}`), text('a'), '00'),
        )
        expect(varint(value).length / 2).toBe(bytes)
        expect(outcome(hex(written), 'client').packet).toMatchObject({
          properties: { subscriptionIdentifiers: [value] },
        })
      }
    }
    expect(() => encode(subscribe(most + 1))).toThrow(expect.objectContaining({ fault: 'local' }))
  })

  it('[rule limits.remainingLengthMax] [rule limits.packetSizeMax] the largest packet is waited for and may be written, one byte more may not', () => {
    const decoder = new Decoder({ from: 'server' })
    expect([...decoder.push(Buffer.from('30ffffff7f', 'hex'))]).toEqual([])
    expect(
      () => [...new Decoder({ from: 'server' }).push(Buffer.from('30ffffffff', 'hex'))].length,
    ).toThrow(expect.objectContaining({ reasonCode: 0x81 }))
    const head = (payload: number): number => {
      const writer = new Writer()
      writeMessage(
        writer,
        't',
        { length: payload },
        { qos: 0, retain: false, properties: undefined },
        0,
        0,
        false,
        5,
        true,
      )
      return writer.length + payload
    }
    // Topic and Property Length take four bytes.
    expect(head(most - 4)).toBe(limits['packetSizeMax'])
    expect(() => head(most - 3)).toThrow(expect.objectContaining({ fault: 'local' }))
  })

  it('[rule limits.stringMaxBytes] [rule limits.binaryMaxBytes] 65,535 bytes, and no more', () => {
    const longest = `${'ä'.repeat(32_767)}x`
    expect(encode({ type: 'publish', topic: longest })).toHaveLength(65_535 + 2 + 1 + 4)
    expect(() => encode({ type: 'publish', topic: `${longest}x` })).toThrow(
      expect.objectContaining({ fault: 'local' }),
    )
    const data = (length: number): Uint8Array =>
      encode({ type: 'connect', password: new Uint8Array(length) } as PacketInput)
    expect(data(65_535).length).toBeGreaterThan(65_535)
    expect(() => data(65_536)).toThrow(expect.objectContaining({ fault: 'local' }))
  })

  const identified: [string, number, Side, string][] = [
    ['PUBLISH at QoS 1', 0x32, 'server', ''],
    ['PUBLISH at QoS 2', 0x34, 'server', ''],
    ['PUBACK', 0x40, 'server', ''],
    ['PUBREC', 0x50, 'server', ''],
    ['PUBREL', 0x62, 'server', ''],
    ['PUBCOMP', 0x70, 'server', ''],
    ['SUBSCRIBE', 0x82, 'client', `00${text('a')}00`],
    ['SUBACK', 0x90, 'server', '0000'],
    ['UNSUBSCRIBE', 0xa2, 'client', `00${text('a')}`],
    ['UNSUBACK', 0xb0, 'server', '0000'],
  ]

  it.each(identified)(
    '[rule limits.packetIdentifier] [rule errorHandling.silent.2] %s: 1 to 65,535; 0 is refused',
    (_name, first, from, rest) => {
      const make = (id: number): string =>
        first >> 4 === 3
          ? publish(first, 't', id || 0x10000, 'x').replace('10000', '0000')
          : packet(first, u16(id), rest)
      for (const id of [1, 65_535])
        expect(outcome(make(id), from).packet).toMatchObject({ packetId: id })
      expect([0x81, 0x82]).toContain(
        codeOf(first >> 4 === 3 ? packet(first, text('t'), '0000', '00', '78') : make(0), from),
      )
    },
  )

  it('[rule limits.clientIdAlwaysAllowed] 1 to 23 bytes of digits and letters are sent and read as they are', () => {
    const letters = '0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ'
    for (const clientId of [
      ...letters,
      letters.slice(0, 23),
      letters.slice(23, 46),
      letters.slice(39),
    ]) {
      const written = hex(encode({ type: 'connect', clientId }))
      expect(written).toBe(packet(0x10, text('MQTT'), '0502', '0000', '00', text(clientId)))
      expect(outcome(written, 'client').packet).toMatchObject({ clientId })
    }
  })
})

describe('what is left out', () => {
  it('[rule defaults] of CONNACK means the value of the standard', async () => {
    const wire = await opened({ keepAlive: 77, sessionExpiryInterval: 123 }, connack(''))
    const { negotiated } = wire.client
    const value = (name: string): unknown => tables.defaults[name]?.value
    const flags = [
      'retain',
      'wildcardSubscription',
      'subscriptionIdentifier',
      'sharedSubscription',
    ].map((name) => `${name}Available`)
    expect(negotiated).toMatchObject({
      ...Object.fromEntries(
        ['receiveMaximum', 'maximumQoS', 'topicAliasMaximum'].map((name) => [name, value(name)]),
      ),
      ...Object.fromEntries(flags.map((name) => [name, value(name) === 1])),
      // No limit of the server: that of the protocol. No word of it: what CONNECT said.
      maximumPacketSize: tables.limits['packetSizeMax'],
      ...{ keepAlive: 77, serverKeepAlive: undefined, sessionExpiryInterval: 123 },
    })
    expect([value('maximumPacketSize'), value('serverKeepAlive'), value('keepAlive')]).toEqual([
      null,
      null,
      null,
    ])
  })

  it('[rule defaults] of CONNECT, its will and PUBLISH is absent, and the values of the standard are not written', async () => {
    const { packet: read } = outcome(
      packet(0x10, text('MQTT'), '0506', '0000', '00', text(''), '00', text('w'), text('')),
      'client',
    )
    expect(read).toMatchObject({ keepAlive: 0, properties: {}, will: { properties: {} } })
    expect(outcome(publish(0x30, 't', 0, 'x'), 'server').packet).toMatchObject({ properties: {} })
    const wire = await dialled({
      sessionExpiryInterval: 0,
      receiveMaximum: 65_535,
      topicAliasMaximum: 0,
      will: { topic: 'w' },
    })
    expect(wire.take()).toEqual([
      connectOf('06', block(`27${u32(16 * 1024 * 1024)}`), '00', text('w'), text('')),
    ])
  })

  it('[rule defaults.messageExpiryInterval] a message without an interval never expires', async () => {
    const wire = await opened({ reconnect: { backoff: () => 90_000_000 } })
    const waiting = wire.publish(1, 'x')
    await wire.cut()
    wire.publish(1, 'y')
    await wire.advance(90_000_000 - 10)
    await wire.redialled()
    await wire.give(fresh)
    expect(
      wire
        .take()
        .slice(1)
        .map((bytes) => bytes.slice(-2)),
    ).toEqual(['78', '79'])
    expect((await wire.world.outcome(waiting)).state).toBe('pending')
  })
})

const connectOf = (flags: string, properties = '00', ...rest: string[]): string =>
  packet(0x10, text('MQTT'), '05', flags, '0000', properties, text(''), ...rest)
/** Packets that break a rule, by sender: rule, bytes, reason codes. */
const broken: Readonly<Record<Side, [rule: string, bytes: string, codes: string][]>> = {
  server: [
    ['explicitMalformed.1: ill-formed UTF-8', packet(0x30, field('c328'), '00'), '81'],
    ['explicitMalformed.1: U+0000', packet(0x30, field('610062'), '00'), '81'],
    ['explicitMalformed.2: a Remaining Length of five bytes', '308080808001', '81'],
    [
      'explicitMalformed.2: a Property Length of five bytes',
      packet(0x30, text('t'), '8080808001'),
      '81',
    ],
    [
      'explicitMalformed.2: an identifier of five bytes',
      packet(0x30, text('t'), block('0b8080808001')),
      '81',
    ],
    [
      'explicitMalformed.3: a property of another packet',
      packet(0x40, u16(1), '00', block('2400')),
      '81 82',
    ],
    [
      'explicitMalformed.3: a property that there is not',
      packet(0x40, u16(1), '00', block('7f00')),
      '81',
    ],
    ['explicitMalformed.6: QoS 3', packet(0x36, text('t'), u16(1), '00'), '81'],
    [
      'explicitProtocolError.1: a property twice',
      packet(0x30, text('t'), block('23000123'.concat('0001'))),
      '82',
    ],
    ['explicitProtocolError.2: Retain Available 2', connack('2502'), '82'],
    ['explicitProtocolError.3: Receive Maximum 0', connack('210000'), '82'],
    ['explicitProtocolError.3: Maximum Packet Size 0', connack('2700000000'), '82'],
    [
      'explicitProtocolError.4: Subscription Identifier 0',
      packet(0x30, text('t'), block('0b00')),
      '82',
    ],
    ['explicitProtocolError.5: Topic Alias 0', packet(0x30, text('t'), block('230000')), '94'],
    ['explicitProtocolError.6: an empty topic without an alias', publish(0x30, '', 0, 'x'), '82'],
    [
      'explicitProtocolError.10: AUTH without a method',
      packet(0xf0, '18', block(`16${text('x')}`)),
      '82',
    ],
    ['silent.0: an integer longer than needed', packet(0x30, text('t'), '8000'), '81'],
    ['silent.1: DUP at QoS 0', packet(0x38, text('t'), '00'), '81 82'],
    ['silent.3: a wildcard in a topic', packet(0x30, text('a/#'), '00'), '81 82 90'],
    ['silent.5: a code of another packet', packet(0x40, u16(1), '92'), '81 82'],
    ['silent.7: Payload Format Indicator 2', packet(0x30, text('t'), block('0102')), '81 82 99'],
    ['silent.8: PINGREQ of a server', 'c000', '82'],
    ['openPoints.1: AUTH of no length, which names no method', 'f000', '82'],
    [
      'openPoints.3: Payload Format Indicator twice',
      packet(0x30, text('t'), block('01000100')),
      '82',
    ],
    [
      'openPoints.3: Message Expiry Interval twice',
      packet(0x30, text('t'), block('02000000010200000001')),
      '82',
    ],
  ],
  client: [
    ['explicitMalformed.4: reserved flag of CONNECT', connectOf('03'), '81'],
    ['explicitMalformed.5: Will QoS 3', connectOf('1e', '00', '00', text('w'), text('')), '81'],
    [
      'explicitMalformed.8: reserved bits of the options',
      packet(0x82, u16(1), '00', text('a'), '40'),
      '81',
    ],
    [
      'explicitProtocolError.2: Request Problem Information 2',
      connectOf('02', block('1702')),
      '82',
    ],
    ['explicitProtocolError.7: SUBSCRIBE without payload', packet(0x82, u16(1), '00'), '82'],
    ['explicitProtocolError.7: UNSUBSCRIBE without payload', packet(0xa2, u16(1), '00'), '82'],
    [
      'explicitProtocolError.8: QoS 3 in the options',
      packet(0x82, u16(1), '00', text('a'), '03'),
      '82',
    ],
    [
      'explicitProtocolError.8: Retain Handling 3',
      packet(0x82, u16(1), '00', text('a'), '30'),
      '82',
    ],
    [
      'explicitProtocolError.8: No Local on a share',
      packet(0x82, u16(1), '00', text('$share/g/a'), '04'),
      '82',
    ],
    [
      'explicitProtocolError.9: data without a method',
      connectOf('02', block(`16${text('x')}`)),
      '82',
    ],
    ['silent.4: a filter that is none', packet(0x82, u16(1), '00', text('a#'), '00'), '81 82 8f'],
    ['silent.8: CONNACK of a client', '2003000000', '82'],
  ],
}

describe('errors', () => {
  describe.each(['server', 'client'] as const)('of a %s', (from) => {
    it.each(broken[from])('[rule %s]', (_rule, bytes, codes) => {
      expect(codes.split(' ')).toContain(u8(codeOf(bytes, from) ?? 0))
    })
  })

  it('[rule errorHandling.explicitMalformed.0] [rule errorHandling.explicitMalformed.7] flags of the fixed header that are not those of the type', () => {
    for (const [first, from] of [
      [0x62, 'server'],
      [0x82, 'client'],
      [0xa2, 'client'],
      [0xe0, 'server'],
      [0xf0, 'server'],
    ] as const) {
      for (let flags = 0; flags < 16; flags++) {
        if (flags !== (first & 15))
          expect(codeOf(packet((first & 0xf0) | flags, '0001'), from)).toBe(0x81)
      }
    }
  })

  it('[rule openPoints.0] 0x8C on DISCONNECT is read from a server, written as it is read, and never sent by the client', async () => {
    expect(outcome('e0018c', 'server').packet).toMatchObject({ reasonCode: 0x8c })
    expect([0x81, 0x82]).toContain(codeOf('e0018c', 'client'))
    expect(Buffer.from(encode({ type: 'disconnect', reasonCode: 0x8c })).toString('hex')).toBe(
      'e0018c',
    )
    const wire = await opened()
    await expect(wire.client.disconnect({ reasonCode: 0x8c })).rejects.toMatchObject({
      code: 'ERR_INVALID_OPTION',
    })
  })

  it('[rule openPoints.2] 0x9B on DISCONNECT is a code of servers', async () => {
    expect(outcome('e0019b', 'server').packet).toMatchObject({ reasonCode: 0x9b })
    expect([0x81, 0x82]).toContain(codeOf('e0019b', 'client'))
    const wire = await opened()
    await expect(wire.client.disconnect({ reasonCode: 0x9b })).rejects.toMatchObject({
      code: 'ERR_INVALID_OPTION',
    })
  })

  it('[rule openPoints.4] the statements whose tags are damaged in the text are there under their numbers', () => {
    const ids = (json('./statements.json') as { id: string }[]).map(({ id }) => id)
    expect(new Set(ids).size).toBe(251)
    expect(ids).toEqual(expect.arrayContaining(['MQTT-4.2.0-1', 'MQTT-3.2.2-8']))
  })
})
