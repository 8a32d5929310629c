import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import type { PacketInput, WireError } from '../../../src/wire/index.js'
import { decode, encode, isReasonCode, reasonName } from '../../../src/wire/index.js'

interface Property {
  id: number
  key: string
  type: 'byte' | 'u16' | 'u32' | 'varint' | 'utf8' | 'binary' | 'utf8pair'
  packets: string[]
  will: boolean
  repeatableIn: string[]
}

interface Tables {
  packetTypes: { value: number; name: string; direction: 'c2s' | 's2c' | 'both' | 'forbidden'; flags: string | null; minRemainingLength: number }[]
  properties: Property[]
  reasonCodes: { code: number; name: string; packets: string[] }[]
  reasonCodesByPacket: Record<string, number[]>
  disconnectCodesBySender: Record<'client' | 'server', number[]>
  authCodesBySender: Record<'client' | 'server', number[]>
}

const tables = JSON.parse(readFileSync(new URL('../../rules/tables.json', import.meta.url), 'utf8')) as Tables
const typeOf = new Map(tables.packetTypes.map(({ name, value }) => [name, value]))
const sides = ['client', 'server'] as const

function failure(hex: string, from: 'client' | 'server', protocolVersion: 4 | 5 = 5): WireError | undefined {
  try {
    decode(Buffer.from(hex, 'hex'), { from, protocolVersion })
    return undefined
  } catch (error) {
    return error as WireError
  }
}

/** A frame with a one-byte length. */
function frame(first: number, body: string): string {
  return Buffer.concat([Buffer.of(first, body.length / 2), Buffer.from(body, 'hex')]).toString('hex')
}

describe('reason codes', () => {
  const packetNames = Object.keys(tables.reasonCodesByPacket)

  it('have the names of section 2.4, by packet', () => {
    for (const { code, name, packets } of tables.reasonCodes) {
      for (const packet of packets) expect(reasonName(code, typeOf.get(packet))).toBe(name)
    }
    expect(reasonName(0)).toBe('Success')
    expect(reasonName(0x8e)).toBe('Session taken over')
    expect(reasonName(0x03)).toBeUndefined()
    expect(reasonName(0x8e, typeOf.get('PUBACK'))).toBeUndefined()
  })

  for (const name of packetNames) {
    it(`of ${name} are those of its table, for each sender`, () => {
      const type = typeOf.get(name) as number
      for (let code = 0; code < 256; code++) {
        const inTable = (tables.reasonCodesByPacket[name] as number[]).includes(code)
        for (const side of sides) {
          let expected = inTable
          if (name === 'DISCONNECT') expected = tables.disconnectCodesBySender[side].includes(code)
          if (name === 'AUTH') expected = tables.authCodesBySender[side].includes(code)
          // The table's notes: taken from a server, and for servers only.
          if (name === 'DISCONNECT' && code === 0x8c) expected = side === 'server'
          if (code === 0x10 && side === 'client') expected = false
          expect(isReasonCode(type, code, side), `${code} from ${side}`).toBe(expected)
        }
        expect(isReasonCode(type, code, 'either')).toBe(sides.some((side) => isReasonCode(type, code, side)))
      }
    })
  }

  it('are refused by the encoder outside the table; 0x8C on DISCONNECT, which section 2.4 has, is written as it is read', () => {
    for (let reasonCode = 0; reasonCode < 256; reasonCode++) {
      const attempt = (): unknown => encode({ type: 'disconnect', reasonCode })
      if (reasonCode === 0x8c || (tables.reasonCodesByPacket['DISCONNECT'] as number[]).includes(reasonCode)) expect(attempt).not.toThrow()
      else expect(attempt).toThrow(expect.objectContaining({ fault: 'local', option: 'reasonCode' }))
    }
  })
})

/** Packets with one property block, which begins with its length byte, as hex around it; and who sends them. */
const hosts: Record<string, { first: number; from: 'client' | 'server'; before: string; after: string }> = {
  CONNECT: { first: 0x10, from: 'client', before: '00044d51545405020000', after: '000163' },
  WILL: { first: 0x10, from: 'client', before: '00044d5154540506000000000163', after: '0001770000' },
  CONNACK: { first: 0x20, from: 'server', before: '0000', after: '' },
  PUBLISH: { first: 0x30, from: 'server', before: '000174', after: '' },
  PUBACK: { first: 0x40, from: 'server', before: '000100', after: '' },
  PUBREC: { first: 0x50, from: 'client', before: '000100', after: '' },
  PUBREL: { first: 0x62, from: 'server', before: '000100', after: '' },
  PUBCOMP: { first: 0x70, from: 'client', before: '000100', after: '' },
  SUBSCRIBE: { first: 0x82, from: 'client', before: '0001', after: '00016100' },
  SUBACK: { first: 0x90, from: 'server', before: '0001', after: '00' },
  UNSUBSCRIBE: { first: 0xa2, from: 'client', before: '0001', after: '000161' },
  UNSUBACK: { first: 0xb0, from: 'server', before: '0001', after: '00' },
  DISCONNECT: { first: 0xe0, from: 'client', before: '00', after: '' },
  AUTH: { first: 0xf0, from: 'server', before: '18', after: '' },
}

const sample: Record<Property['type'], string> = {
  byte: '01',
  u16: '0001',
  u32: '00000001',
  varint: '01',
  utf8: '000178',
  binary: '000178',
  utf8pair: '00016b000176',
}

function withProperties(host: string, properties: string): string {
  const { first, before, after } = hosts[host] as (typeof hosts)[string]
  return frame(first, before + Buffer.of(properties.length / 2).toString('hex') + properties + after)
}

function property({ id, type }: Property, value = sample[type]): string {
  return Buffer.of(id).toString('hex') + value
}

/** What a packet needs besides the property under test: authentication data wants a method. */
function companion(host: string, key: string): string {
  const needed = host === 'AUTH' ? key !== 'authenticationMethod' : host === 'CONNECT' && key === 'authenticationData'
  return needed ? '1500016d' : ''
}

describe('properties', () => {
  const all = Object.keys(hosts).flatMap((host) => tables.properties.map((entry) => ({ host, entry })))

  it('are allowed in the packets of the table, and malformed elsewhere', () => {
    for (const { host, entry } of all) {
      let from = (hosts[host] as (typeof hosts)[string]).from
      // Only a server refers to another server.
      if (host === 'DISCONNECT' && entry.key === 'serverReference') from = 'server'
      const error = failure(withProperties(host, companion(host, entry.key) + property(entry)), from)
      const allowed = host === 'WILL' ? entry.will : entry.packets.includes(host)
      expect(error?.kind, `${entry.key} in ${host}`).toBe(allowed ? undefined : 'malformed')
    }
  })

  it('twice are a protocol error, but for user properties and the identifiers of a PUBLISH', () => {
    for (const { host, entry } of all) {
      if (!(host === 'WILL' ? entry.will : entry.packets.includes(host))) continue
      if (host === 'DISCONNECT' && entry.key === 'serverReference') continue
      const hex = withProperties(host, companion(host, entry.key) + property(entry) + property(entry))
      const error = failure(hex, (hosts[host] as (typeof hosts)[string]).from)
      expect(error?.kind, `${entry.key} in ${host}`).toBe(entry.repeatableIn.includes(host) ? undefined : 'protocol')
    }
  })

  it('cut at each byte are malformed', () => {
    for (const { host, entry } of all) {
      if (!(host === 'WILL' ? entry.will : entry.packets.includes(host))) continue
      const { from } = hosts[host] as (typeof hosts)[string]
      const value = property(entry)
      for (let length = 2; length < value.length; length += 2) {
        const hex = withProperties(host, companion(host, entry.key) + value.slice(0, length))
        const kind = failure(hex, host === 'DISCONNECT' && entry.key === 'serverReference' ? 'server' : from)?.kind
        expect(kind, `${entry.key} in ${host} cut at ${length / 2}`).toBe('malformed')
      }
    }
  })

  it('with an unknown identifier are malformed: each gap, and those of several bytes', () => {
    const known = new Set(tables.properties.map(({ id }) => id))
    for (const host of Object.keys(hosts)) {
      for (let id = 0; id < 128; id++) {
        if (known.has(id)) continue
        const kind = failure(withProperties(host, `${Buffer.of(id).toString('hex')}00`), (hosts[host] as (typeof hosts)[string]).from)?.kind
        expect(kind, `${id} in ${host}`).toBe('malformed')
      }
      expect(failure(withProperties(host, 'a60100'), (hosts[host] as (typeof hosts)[string]).from)?.kind).toBe('malformed')
    }
  })

  it('have strings that must be well-formed, each of them', () => {
    for (const { host, entry } of all) {
      if (!(host === 'WILL' ? entry.will : entry.packets.includes(host)) || !entry.type.startsWith('utf8')) continue
      const from = host === 'DISCONNECT' && entry.key === 'serverReference' ? 'server' : (hosts[host] as (typeof hosts)[string]).from
      for (const bad of ['00', 'c080', 'eda080', 'ff', 'c3', 'f4908080', 'e282']) {
        const text = `${Buffer.of(0, bad.length / 2).toString('hex')}${bad}`
        const values = entry.type === 'utf8' ? [text] : [`${text}000176`, `00016b${text}`]
        for (const value of values) {
          const error = failure(withProperties(host, companion(host, entry.key) + property(entry, value)), from)
          expect(error, `${entry.key} in ${host}: ${bad}`).toMatchObject({ kind: 'malformed', reasonCode: 0x81 })
        }
      }
    }
  })

  it('keep their limits: flags 0 and 1, no zero where it is forbidden', () => {
    const forbidden = new Set(['subscriptionIdentifier', 'receiveMaximum', 'topicAlias', 'maximumPacketSize'])
    for (const { host, entry } of all) {
      if (!(host === 'WILL' ? entry.will : entry.packets.includes(host)) || entry.type.startsWith('utf8') || entry.type === 'binary') continue
      const { from } = hosts[host] as (typeof hosts)[string]
      const zero = failure(withProperties(host, companion(host, entry.key) + property(entry, sample[entry.type].replaceAll('1', '0'))), from)
      expect(zero?.kind, `${entry.key} 0`).toBe(forbidden.has(entry.key) ? 'protocol' : undefined)
      if (entry.key === 'topicAlias') expect(zero?.reasonCode).toBe(0x94)
      if (entry.type === 'byte') {
        for (const value of ['02', 'ff']) expect(failure(withProperties(host, property(entry, value)), from)?.kind).toBe('protocol')
      }
    }
  })

  it('round trip alone and all together', () => {
    for (const { host, entry } of all) {
      if (!(host === 'WILL' ? entry.will : entry.packets.includes(host)) || companion(host, entry.key) !== '') continue
      const from = host === 'DISCONNECT' && entry.key === 'serverReference' ? 'server' : (hosts[host] as (typeof hosts)[string]).from
      const hex = withProperties(host, property(entry))
      expect(Buffer.from(encode(decode(Buffer.from(hex, 'hex'), { from }) as PacketInput)).toString('hex')).toBe(hex)
    }
  })
})

describe('subscription options', () => {
  it('are refused for QoS 3, Retain Handling 3 and reserved bits [MQTT-3.8.3-5]', () => {
    for (let options = 0; options < 256; options++) {
      const kind = failure(frame(0x82, `000100000161${Buffer.of(options).toString('hex')}`), 'client')?.kind
      const reserved = options > 0x3f
      const forbidden = (options & 3) === 3 || (options & 0x30) === 0x30
      expect(kind, String(options)).toBe(reserved ? 'malformed' : forbidden ? 'protocol' : undefined)
    }
  })
})

describe('the fixed header', () => {
  it('has the flags of its type, on both versions', () => {
    for (const { value, direction, flags } of tables.packetTypes) {
      if (flags === null || value === 3) continue
      const from = direction === 's2c' ? 'server' : 'client'
      for (let low = 0; low < 16; low++) {
        if (low === Number.parseInt(flags, 2)) continue
        for (const version of [4, 5] as const) {
          expect(failure(Buffer.of((value << 4) | low, 0).toString('hex'), from, version), `type ${value} flags ${low}`).toMatchObject({
            kind: 'malformed',
            offset: 0,
          })
        }
      }
    }
  })

  it('is for one direction', () => {
    for (const { value, direction, flags } of tables.packetTypes) {
      if (direction === 'both' || flags === null) continue
      const from = direction === 's2c' ? 'client' : 'server'
      const first = Buffer.of((value << 4) | Number.parseInt(flags, 2))
      expect(failure(`${first.toString('hex')}00`, from)).toMatchObject({ kind: 'protocol', reasonCode: 0x82 })
    }
  })

  it('has a length of at most four bytes, no longer than needed, for every type', () => {
    for (const { value, direction, flags } of tables.packetTypes) {
      if (direction === 'forbidden') continue
      const from = direction === 's2c' ? 'server' : 'client'
      const first = Buffer.of((value << 4) | (flags?.includes('D') ? 0 : Number.parseInt(flags ?? '0', 2))).toString('hex')
      for (const length of ['8080808001', 'ffffffff7f', '8000', '808000', '80808000']) {
        expect(failure(first + length, from), first + length).toMatchObject({ kind: 'malformed', reasonCode: 0x81 })
      }
    }
    expect(failure('0000', 'server')).toMatchObject({ kind: 'malformed' })
    expect(failure('f000', 'server', 4)).toMatchObject({ kind: 'malformed' })
  })

  it('announces at least the mandatory fields', () => {
    for (const { value, direction, flags, minRemainingLength } of tables.packetTypes) {
      if (direction === 'forbidden') continue
      const from = direction === 's2c' ? 'server' : 'client'
      const first = (value << 4) | (flags?.includes('D') ? 0 : Number.parseInt(flags ?? '0', 2))
      for (let length = 0; length < minRemainingLength; length++) {
        const error = failure(Buffer.concat([Buffer.of(first, length), Buffer.alloc(length)]).toString('hex'), from)
        expect(error, `type ${value} length ${length}`).toBeInstanceOf(Error)
        expect(error?.kind).not.toBe('incomplete')
      }
    }
  })
})
