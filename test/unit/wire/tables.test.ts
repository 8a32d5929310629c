/** The tables of the standard (`test/rules/tables.json`) against the codec: reason codes, properties by packet and sender, fixed headers. */
import { describe, expect, it } from 'vitest'
import type { PacketInput, SubscribePacket } from '../../../src/wire/index.js'
import { decode, encode, isReasonCode, reasonName } from '../../../src/wire/index.js'
import {
  block,
  byte,
  failure,
  field,
  frame,
  hexOf,
  kindOf,
  type Sender,
  senders,
  type Version,
} from './hex.js'
import { codesOf, type Property, tables } from './reference-decoder.js'

const typeOf = new Map(tables.packetTypes.map(({ name, value }) => [name, value]))
const allBytes = Array.from({ length: 256 }, (_, value) => value)
const malformed = { kind: 'malformed', reasonCode: 0x81 }

describe('reason codes', () => {
  it('have the names of section 2.4, by packet', () => {
    for (const { code, name, packets } of tables.reasonCodes) {
      for (const packet of packets) expect(reasonName(code, typeOf.get(packet))).toBe(name)
    }
    expect([reasonName(0), reasonName(0x8e)]).toEqual(['Success', 'Session taken over'])
    expect([reasonName(0x03), reasonName(0x8e, typeOf.get('PUBACK'))]).toEqual([
      undefined,
      undefined,
    ])
  })

  it.each(Object.keys(tables.reasonCodesByPacket))(
    'of %s are those of its table, for each sender',
    (name) => {
      const type = typeOf.get(name) as number
      for (const code of allBytes) {
        const found = senders.map((from) => isReasonCode(type, code, from))
        expect(found, byte(code)).toEqual(senders.map((from) => codesOf(name, from).includes(code)))
        expect(isReasonCode(type, code, 'either')).toBe(found.includes(true))
      }
    },
  )

  it('are integers from 0 to 255 only, whoever asks', () => {
    const numbers = [0.5, 0.0001, -1, 256, 65_536, 2 ** 32, Number.NaN, Number.POSITIVE_INFINITY]
    for (const code of [...numbers, '0', '', null, undefined, true, [0], 0n] as number[]) {
      for (let type = 0; type < 16; type++) {
        for (const from of senders)
          expect(isReasonCode(type, code, from), `${type} ${String(code)}`).toBe(false)
        expect(reasonName(code, type), `${type} ${String(code)}`).toBeUndefined()
      }
      expect(reasonName(code), String(code)).toBeUndefined()
    }
  })

  it('are refused by the encoder outside the table; 0x8C on DISCONNECT, which section 2.4 has, is written as it is read', () => {
    for (const reasonCode of allBytes) {
      const attempt = (): unknown => encode({ type: 'disconnect', reasonCode })
      if (
        reasonCode === 0x8c ||
        (tables.reasonCodesByPacket['DISCONNECT'] as number[]).includes(reasonCode)
      )
        expect(attempt).not.toThrow()
      else
        expect(attempt).toThrow(expect.objectContaining({ fault: 'local', option: 'reasonCode' }))
    }
  })
})

/** Packets with a reason code in the place of @. */
const coded: [name: string, from: Sender, version: Version, first: string, body: string][] = [
  ['CONNACK', 'server', 5, '20', '00@00'],
  ['CONNACK', 'server', 4, '20', '00@'],
  ['PUBACK', 'server', 5, '40', '0001@'],
  ['PUBACK', 'client', 5, '40', '0001@00'],
  ['PUBREC', 'server', 5, '50', '0001@00'],
  ['PUBREC', 'client', 5, '50', '0001@'],
  ['PUBREL', 'server', 5, '62', '0001@'],
  ['PUBREL', 'client', 5, '62', '0001@00'],
  ['PUBCOMP', 'server', 5, '70', '0001@00'],
  ['PUBCOMP', 'client', 5, '70', '0001@'],
  ['SUBACK', 'server', 5, '90', '00010000@'],
  ['SUBACK', 'server', 4, '90', '000100@'],
  ['UNSUBACK', 'server', 5, 'b0', '000100@00'],
  ['DISCONNECT', 'client', 5, 'e0', '@'],
  ['DISCONNECT', 'client', 5, 'e0', '@00'],
  ['DISCONNECT', 'server', 5, 'e0', '@'],
  ['AUTH', 'client', 5, 'f0', '@0415000178'],
  ['AUTH', 'server', 5, 'f0', '@0415000178'],
]

describe('reason codes on the wire [MQTT-3.2.2-8] [MQTT-3.4.2-1] [MQTT-3.5.2-1] [MQTT-3.6.2-1] [MQTT-3.7.2-1] [MQTT-3.9.3-2] [MQTT-3.11.3-2] [MQTT-3.14.2-1] [MQTT-3.15.2-1]', () => {
  it.each(coded)(
    'of %s from a %s, version %i, are those of its table',
    (name, from, version, first, body) => {
      const old = name === 'CONNACK' ? [0, 1, 2, 3, 4, 5] : [0, 1, 2, 0x80]
      const valid = version === 4 ? old : codesOf(name, from)
      for (const code of allBytes) {
        const expected = valid.includes(code) ? undefined : version === 5 ? 'protocol' : 'malformed'
        expect(kindOf(frame(first, body.replace('@', byte(code))), from, version), byte(code)).toBe(
          expected,
        )
      }
    },
  )
})

/** Packets with a property block in the place of @, and who sends them. */
const hosts: Record<string, [first: string, from: Sender, body: string]> = {
  CONNECT: ['10', 'client', '00044d51545405020000@000163'],
  WILL: ['10', 'client', '00044d5154540506000000000163@0001770000'],
  CONNACK: ['20', 'server', '0000@'],
  PUBLISH: ['30', 'server', '000174@'],
  PUBACK: ['40', 'server', '000100@'],
  PUBREC: ['50', 'client', '000100@'],
  PUBREL: ['62', 'server', '000100@'],
  PUBCOMP: ['70', 'client', '000100@'],
  SUBSCRIBE: ['82', 'client', '0001@00016100'],
  SUBACK: ['90', 'server', '0001@00'],
  UNSUBSCRIBE: ['a2', 'client', '0001@000161'],
  UNSUBACK: ['b0', 'server', '0001@00'],
  DISCONNECT: ['e0', 'client', '00@'],
  AUTH: ['f0', 'server', '18@'],
}

const sample: Record<Property['type'], string> = {
  ...{ byte: '01', u16: '0001', u32: '00000001', varint: '01' },
  ...{ utf8: '000178', binary: '000178', utf8pair: '00016b000176' },
}

/** One property in one packet. */
class Case {
  readonly name: string
  readonly from: Sender
  readonly allowed: boolean
  /** What the packet needs besides: authentication data wants a method. */
  readonly companion: string
  readonly host: string
  readonly entry: Property

  constructor(host: string, entry: Property) {
    const { key } = entry
    this.host = host
    this.entry = entry
    this.name = `${key} in ${host}`
    // Only a server refers to another server.
    this.from =
      host === 'DISCONNECT' && key === 'serverReference'
        ? 'server'
        : (hosts[host] as (typeof hosts)[string])[1]
    this.allowed = host === 'WILL' ? entry.will : entry.packets.includes(host)
    const needed =
      host === 'AUTH'
        ? key !== 'authenticationMethod'
        : host === 'CONNECT' && key === 'authenticationData'
    this.companion = needed ? '1500016d' : ''
  }

  property(value = sample[this.entry.type]): string {
    return byte(this.entry.id) + value
  }

  failure(properties: string) {
    return failure(withProperties(this.host, this.companion + properties), this.from)
  }
}

function withProperties(host: string, properties: string): string {
  const [first, , body] = hosts[host] as (typeof hosts)[string]
  return frame(first, body.replace('@', block(properties)))
}

describe('properties', () => {
  const all = Object.keys(hosts).flatMap((host) =>
    tables.properties.map((entry) => new Case(host, entry)),
  )
  const allowed = all.filter((each) => each.allowed)

  it('are allowed in the packets of the table, and malformed elsewhere', () => {
    for (const each of all)
      expect(each.failure(each.property())?.kind, each.name).toBe(
        each.allowed ? undefined : 'malformed',
      )
  })

  it('twice are a protocol error, but for user properties and the identifiers of a PUBLISH', () => {
    for (const each of allowed) {
      const expected = each.entry.repeatableIn.includes(each.host) ? undefined : 'protocol'
      expect(each.failure(each.property() + each.property())?.kind, each.name).toBe(expected)
    }
  })

  it('have a length of one to four bytes, no longer than needed [MQTT-1.5.5-1]', () => {
    const lengths = '8700 878000 87808000 8780808000 8080808001 ffffffffff ffffff7f 80808001'
    for (const [host, [first, from, body]] of Object.entries(hosts)) {
      if (host === 'AUTH') continue
      const sized = (length: string): string =>
        frame(first, body.replace('@', `${length}2600016b000176`))
      expect(kindOf(sized('07'), from), host).toBeUndefined()
      for (const length of lengths.split(' '))
        expect(failure(sized(length), from), `${length} in ${host}`).toMatchObject(malformed)
    }
  })

  it('cut at each byte are malformed', () => {
    for (const each of allowed) {
      const value = each.property()
      for (let length = 2; length < value.length; length += 2) {
        expect(
          each.failure(value.slice(0, length))?.kind,
          `${each.name} cut at ${length / 2}`,
        ).toBe('malformed')
      }
    }
  })

  it('with an unknown identifier are malformed: each gap, and those of several bytes', () => {
    const known = new Set(tables.properties.map(({ id }) => id))
    const unknown = allBytes.slice(0, 128).filter((id) => !known.has(id))
    for (const [host, [, from]] of Object.entries(hosts)) {
      for (const hex of [...unknown.map((id) => `${byte(id)}00`), 'a60100']) {
        expect(kindOf(withProperties(host, hex), from), `${hex} in ${host}`).toBe('malformed')
      }
    }
  })

  it('have strings that must be well-formed, each of them', () => {
    for (const each of allowed.filter(({ entry }) => entry.type.startsWith('utf8'))) {
      for (const bad of ['00', 'c080', 'eda080', 'ff', 'c3', 'f4908080', 'e282'].map(field)) {
        for (const value of each.entry.type === 'utf8' ? [bad] : [`${bad}000176`, `00016b${bad}`]) {
          expect(each.failure(each.property(value)), `${each.name}: ${bad}`).toMatchObject(
            malformed,
          )
        }
      }
    }
  })

  it('keep their limits: flags 0 and 1, no zero where it is forbidden', () => {
    const forbidden = [
      'subscriptionIdentifier',
      'receiveMaximum',
      'topicAlias',
      'maximumPacketSize',
    ]
    for (const each of allowed.filter(
      ({ entry }) => !entry.type.startsWith('utf8') && entry.type !== 'binary',
    )) {
      const { key, type } = each.entry
      const zero = each.failure(each.property(sample[type].replaceAll('1', '0')))
      expect(zero?.kind, `${each.name} 0`).toBe(forbidden.includes(key) ? 'protocol' : undefined)
      if (key === 'topicAlias') expect(zero?.reasonCode).toBe(0x94)
      if (type === 'byte')
        for (const value of ['02', 'ff'])
          expect(each.failure(each.property(value))?.kind).toBe('protocol')
    }
  })

  it('round trip alone', () => {
    for (const { host, from, ...each } of allowed.filter(({ companion }) => companion === '')) {
      const hex = withProperties(host, byte(each.entry.id) + sample[each.entry.type])
      expect(
        hexOf(encode(decode(Buffer.from(hex, 'hex'), { from }) as PacketInput)),
        each.name,
      ).toBe(hex)
    }
  })
})

describe('subscription options', () => {
  it('mean their bits, and are refused for QoS 3, Retain Handling 3 and reserved bits [MQTT-3.8.3-5]', () => {
    for (const options of allBytes) {
      const forbidden = (options & 3) === 3 || (options & 0x30) === 0x30
      const expected = options > 0x3f ? 'malformed' : forbidden ? 'protocol' : undefined
      const hex = frame('82', `000100000161${byte(options)}`)
      expect(kindOf(hex, 'client'), byte(options)).toBe(expected)
      if (expected !== undefined) continue
      const { subscriptions } = decode(Buffer.from(hex, 'hex'), {
        from: 'client',
      }) as SubscribePacket
      expect(subscriptions[0]).toMatchObject({
        ...{ qos: options & 3, noLocal: (options & 4) > 0, retainAsPublished: (options & 8) > 0 },
        retainHandling: options >> 4,
      })
    }
  })
})

describe('the fixed header', () => {
  const types = tables.packetTypes
    .filter(({ direction }) => direction !== 'forbidden')
    .map(({ flags, ...type }) => {
      const from: Sender = type.direction === 's2c' ? 'server' : 'client'
      return {
        ...type,
        from,
        fixed: flags !== null && type.name !== 'PUBLISH',
        low: flags?.includes('D') ? 0 : Number.parseInt(flags ?? '0', 2),
      }
    })

  it('has the flags of its type, on both versions', () => {
    for (const { value, low, from } of types.filter(({ fixed }) => fixed)) {
      for (const other of allBytes.slice(0, 16).filter((flags) => flags !== low)) {
        for (const version of [4, 5] as const) {
          const error = failure(`${byte((value << 4) | other)}00`, from, version)
          expect(error, `type ${value} flags ${other}`).toMatchObject({
            kind: 'malformed',
            offset: 0,
          })
        }
      }
    }
  })

  it('is for one direction', () => {
    for (const { value, low, from } of types.filter(
      ({ direction, fixed }) => direction !== 'both' && fixed,
    )) {
      const error = failure(
        `${byte((value << 4) | low)}00`,
        from === 'server' ? 'client' : 'server',
      )
      expect(error).toMatchObject({ kind: 'protocol', reasonCode: 0x82 })
    }
  })

  it('has a length of at most four bytes, no longer than needed, for every type', () => {
    for (const { value, low, from } of types) {
      for (const length of ['8080808001', 'ffffffff7f', '8000', '808000', '80808000']) {
        const hex = byte((value << 4) | low) + length
        expect(failure(hex, from), hex).toMatchObject(malformed)
      }
    }
    expect([kindOf('0000', 'server'), kindOf('f000', 'server', 4)]).toEqual([
      'malformed',
      'malformed',
    ])
  })
})
