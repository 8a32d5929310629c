/** Packet by packet: every CONNECT flag, every reason code, every cut, every length of a property block, and who may send what. */
import { describe, expect, it } from 'vitest'
import type { PacketInput, WireError } from '../../../src/wire/index.js'
import { decode, encode, isReasonCode, reasonName } from '../../../src/wire/index.js'
import { referenceDecode } from './reference-decoder.js'

type Sender = 'client' | 'server'
type Version = 4 | 5

const senders = ['client', 'server'] as const
const byte = (value: number): string => value.toString(16).padStart(2, '0')
const u16 = (value: number): string => value.toString(16).padStart(4, '0')

/** Of at most 127 bytes. */
const frame = (first: string, body: string): string => first + byte(body.length / 2) + body

function failure(hex: string, from: Sender, protocolVersion: Version = 5): WireError | undefined {
  try {
    decode(Buffer.from(hex, 'hex'), { from, protocolVersion })
  } catch (error) {
    return error as WireError
  }
  return undefined
}

const kindOf = (hex: string, from: Sender, version: Version = 5): string | undefined => failure(hex, from, version)?.kind

describe('CONNECT', () => {
  /** The fields that the flags announce. */
  function payload(flags: number, version: Version): string {
    const will = (flags & 4) > 0 ? `${version === 5 ? '00' : ''}0001770000` : ''
    return `000163${will}${(flags & 0x80) > 0 ? '000175' : ''}${(flags & 0x40) > 0 ? '000170' : ''}`
  }

  for (const version of [5, 4] as const) {
    it(`has flags that fit each other, all 256 of version ${version} [MQTT-3.1.2-3] [MQTT-3.1.2-11] [MQTT-3.1.2-12] [MQTT-3.1.2-13]`, () => {
      let taken = 0
      for (let flags = 0; flags < 256; flags++) {
        const hex = frame('10', `00044d515454${byte(version)}${byte(flags)}0000${version === 5 ? '00' : ''}${payload(flags, version)}`)
        const willQos = (flags >> 3) & 3
        const will = (flags & 4) > 0
        const valid = (flags & 1) === 0 && (will ? willQos < 3 : willQos === 0 && (flags & 0x20) === 0) && (version === 5 || (flags & 0xc0) !== 0x40)
        const error = failure(hex, 'client', version)
        if (!valid) {
          expect(error, byte(flags)).toMatchObject({ kind: 'malformed', reasonCode: 0x81 })
          continue
        }
        taken++
        const packet = decode(Buffer.from(hex, 'hex'), { from: 'client' })
        expect(packet, byte(flags)).toMatchObject({
          cleanStart: (flags & 2) > 0,
          will: will ? { topic: 'w', qos: willQos, retain: (flags & 0x20) > 0 } : undefined,
          username: (flags & 0x80) > 0 ? 'u' : undefined,
          password: (flags & 0x40) > 0 ? Uint8Array.of(0x70) : undefined,
        })
        expect(Buffer.from(encode(packet as PacketInput)).toString('hex')).toBe(hex)
      }
      // 7 forms of a will, or none; clean or not; user name and password.
      expect(taken).toBe(version === 5 ? 7 * 2 * 4 : 7 * 2 * 3)
    })
  }

  it('has the name MQTT and version 4 or 5; anything else is 0x84 [MQTT-3.1.2-1] [MQTT-3.1.2-2]', () => {
    for (const name of ['MQTT', 'MQIsdp', 'mqtt', 'MQTX', 'MQTT ', 'MQT', 'MQTTT', '', 'M', '\ufeffMQTT']) {
      for (let version = 0; version < 256; version++) {
        const field = u16(Buffer.byteLength(name)) + Buffer.from(name).toString('hex')
        const rest = version === 4 ? '0200000001' : '020000000001'
        const hex = frame('10', `${field}${byte(version)}${rest}63`)
        const error = failure(hex, 'client')
        if (name === 'MQTT' && (version === 4 || version === 5)) expect(error).toBeUndefined()
        else expect(error, `${name} ${version}`).toMatchObject({ kind: 'protocol', reasonCode: 0x84, reasonName: 'Unsupported Protocol Version' })
      }
    }
    for (const hex of ['00054d51545400', '0004ff515454', '0004c3285454']) {
      expect(kindOf(frame('10', `${hex}0502000000000163`), 'client'), hex).toBe('malformed')
    }
  })

  it('has authentication data only with a method (section 3.1.2.11.10), a CONNACK may have it alone', () => {
    const connect = (block: string): string => frame('10', `00044d51545405020000${byte(block.length / 2)}${block}000163`)
    expect(failure(connect('16000178'), 'client')).toMatchObject({ kind: 'protocol', reasonCode: 0x82 })
    expect(failure(connect('16000178150000'), 'client')).toBeUndefined()
    expect(failure(connect('15000016000178'), 'client')).toBeUndefined()
    expect(failure(frame('20', '00000416000178'), 'server')).toBeUndefined()
  })

  it('of 3.1.1 has a client identifier, or a clean session; 5.0 wants neither [MQTT-3.1.3-6] [MQTT-3.1.3-8]', () => {
    expect(failure('100c00044d515454040000000000', 'client', 4)).toMatchObject({ kind: 'protocol', reasonCode: 0x85 })
    expect(failure('100c00044d515454040200000000', 'client', 4)).toBeUndefined()
    expect(failure('100d00044d51545405000000000000', 'client')).toBeUndefined()
  })
})

describe('CONNACK', () => {
  it('has flags 0 or 1, and 1 in no refusal [MQTT-3.2.2-1] [MQTT-3.2.2-6]', () => {
    for (let flags = 0; flags < 256; flags++) {
      for (const [code, version] of [
        ['00', 5],
        ['87', 5],
        ['00', 4],
        ['05', 4],
      ] as const) {
        const kind = kindOf(frame('20', byte(flags) + code + (version === 5 ? '00' : '')), 'server', version)
        expect(kind, `${flags} ${code}`).toBe(flags > 1 ? 'malformed' : flags === 1 && code !== '00' ? 'protocol' : undefined)
      }
    }
  })

  it('of 3.1.1 on a 5.0 connection, and the other way, is malformed', () => {
    expect(kindOf('20020000', 'server', 5)).toBe('malformed')
    expect(kindOf('20020001', 'server', 5)).toBe('protocol')
    expect(kindOf('2003000000', 'server', 4)).toBe('malformed')
  })
})

/** By packet and sender: where a reason code stands, and which there may be (section 2.4 and the packets' tables). */
const acknowledged = [0x00, 0x80, 0x83, 0x87, 0x90, 0x91, 0x97, 0x99]
const goodbyes = [0x00, 0x80, 0x81, 0x82, 0x83, 0x90, 0x93, 0x94, 0x95, 0x96, 0x97, 0x98, 0x99]
const refusals = [0x80, 0x81, 0x82, 0x83, 0x84, 0x85, 0x86, 0x87, 0x88, 0x89, 0x8a, 0x8c, 0x90, 0x95, 0x97, 0x99, 0x9a, 0x9b, 0x9c, 0x9d, 0x9f]
const codes: [name: string, from: Sender, version: Version, body: (code: string) => string, valid: number[]][] = [
  ['CONNACK', 'server', 5, (code) => frame('20', `00${code}00`), [0, ...refusals]],
  ['CONNACK', 'server', 4, (code) => frame('20', `00${code}`), [0, 1, 2, 3, 4, 5]],
  ['PUBACK', 'server', 5, (code) => frame('40', `0001${code}`), [...acknowledged, 0x10]],
  ['PUBACK', 'client', 5, (code) => frame('40', `0001${code}00`), acknowledged],
  ['PUBREC', 'server', 5, (code) => frame('50', `0001${code}00`), [...acknowledged, 0x10]],
  ['PUBREC', 'client', 5, (code) => frame('50', `0001${code}`), acknowledged],
  ['PUBREL', 'server', 5, (code) => frame('62', `0001${code}`), [0, 0x92]],
  ['PUBREL', 'client', 5, (code) => frame('62', `0001${code}00`), [0, 0x92]],
  ['PUBCOMP', 'server', 5, (code) => frame('70', `0001${code}00`), [0, 0x92]],
  ['PUBCOMP', 'client', 5, (code) => frame('70', `0001${code}`), [0, 0x92]],
  ['SUBACK', 'server', 5, (code) => frame('90', `00010000${code}`), [0, 1, 2, 0x80, 0x83, 0x87, 0x8f, 0x91, 0x97, 0x9e, 0xa1, 0xa2]],
  ['SUBACK', 'server', 4, (code) => frame('90', `000100${code}`), [0, 1, 2, 0x80]],
  ['UNSUBACK', 'server', 5, (code) => frame('b0', `000100${code}00`), [0, 0x11, 0x80, 0x83, 0x87, 0x8f, 0x91]],
  ['DISCONNECT', 'client', 5, (code) => frame('e0', code), [...goodbyes, 0x04]],
  ['DISCONNECT', 'client', 5, (code) => frame('e0', `${code}00`), [...goodbyes, 0x04]],
  [
    'DISCONNECT',
    'server',
    5,
    (code) => frame('e0', code),
    // 0x8C: section 2.4 has it here, section 3.14 has not.
    [...goodbyes, 0x87, 0x89, 0x8b, 0x8c, 0x8d, 0x8e, 0x8f, 0x9a, 0x9b, 0x9c, 0x9d, 0x9e, 0x9f, 0xa0, 0xa1, 0xa2],
  ],
  ['AUTH', 'client', 5, (code) => frame('f0', `${code}0415000178`), [0x18, 0x19]],
  ['AUTH', 'server', 5, (code) => frame('f0', `${code}0415000178`), [0x00, 0x18]],
]

describe('reason codes on the wire [MQTT-3.2.2-8] [MQTT-3.4.2-1] [MQTT-3.6.2-1] [MQTT-3.9.3-2] [MQTT-3.11.3-2] [MQTT-3.14.2-1] [MQTT-3.15.2-1]', () => {
  it.each(codes)('of %s from a %s, version %i, are those of its table', (_name, from, version, body, valid) => {
    for (let code = 0; code < 256; code++) {
      const expected = valid.includes(code) ? undefined : version === 5 ? 'protocol' : 'malformed'
      expect(kindOf(body(byte(code)), from, version), byte(code)).toBe(expected)
    }
  })
})

describe('the table of reason codes', () => {
  it('knows integers from 0 to 255 only, whoever asks', () => {
    const strange: unknown[] = [0.5, 0.0001, -1, 256, 65_536, 2 ** 32, Number.NaN, Number.POSITIVE_INFINITY, '0', '', null, undefined, true, [0], 0n]
    for (const code of strange) {
      for (let type = 0; type < 16; type++) {
        for (const from of senders) expect(isReasonCode(type, code as number, from), `${type} ${String(code)}`).toBe(false)
        expect(reasonName(code as number, type), `${type} ${String(code)}`).toBeUndefined()
      }
      expect(reasonName(code as number), String(code)).toBeUndefined()
    }
  })
})

/** One of each packet that has more than a fixed header, with something in every place: first byte, and the body field by field. */
const packets: [name: string, from: Sender, version: Version, first: string, fields: string][] = [
  ['CONNECT', 'client', 5, '10', '00044d515454 05 f6 003c 05 1100000001 000163 0a 0101 08000172 09000178 000177 0002aabb 000175 0002ccdd'],
  ['CONNECT', 'client', 4, '10', '00044d515454 04 f6 003c 000163 000177 0002aabb 000175 0002ccdd'],
  ['CONNACK', 'server', 5, '20', '00 00 0f 1200026162 130005 2600016b000176'],
  ['CONNACK', 'server', 4, '20', '01 00'],
  ['PUBLISH', 'client', 5, '32', '0003612f62 0001 06 0101 08000172'],
  ['PUBLISH', 'server', 4, '34', '000161 0001 aabb'],
  ['PUBACK', 'server', 5, '40', '0001 87 0a 1f000178 260001610000'],
  ['PUBREL', 'client', 5, '62', '0001 92 07 1f000477687921'],
  ['PUBREC', 'client', 4, '50', '0001'],
  ['SUBSCRIBE', 'client', 5, '82', '0001 03 0b8001 000161 2a 0003612f62 01'],
  ['SUBSCRIBE', 'client', 4, '82', '0001 000161 01 000162 02'],
  ['SUBACK', 'server', 5, '90', '0001 04 1f000178 00 01 87'],
  ['SUBACK', 'server', 4, '90', '0001 00 01 80'],
  ['UNSUBSCRIBE', 'client', 5, 'a2', '0001 05 2600000000 000161 00026162'],
  ['UNSUBSCRIBE', 'client', 4, 'a2', '0001 000161 00026162'],
  ['UNSUBACK', 'server', 5, 'b0', '0001 04 1f000178 00 11'],
  ['UNSUBACK', 'server', 4, 'b0', '0001'],
  ['DISCONNECT', 'client', 5, 'e0', '04 09 1100000064 1f000178'],
  ['DISCONNECT', 'server', 5, 'e0', '9c 04 1c000178'],
  ['AUTH', 'server', 5, 'f0', '18 08 1500016d 16000178'],
]

const bodyOf = (fields: string): string => fields.replaceAll(' ', '')

function isTaken(hex: string, from: Sender, version: Version): boolean {
  try {
    referenceDecode(Buffer.from(hex, 'hex'), from, version)
    return true
  } catch {
    return false
  }
}

describe('cut and stretched', () => {
  it('the samples are valid', () => {
    for (const [name, from, version, first, fields] of packets)
      expect(failure(frame(first, bodyOf(fields)), from, version), `${name} ${version}`).toBeUndefined()
  })

  it.each(packets)(
    '%s from a %s, version %i: each shorter body is taken where the standard allows it, else refused',
    (name, from, version, first, fields) => {
      const body = bodyOf(fields)
      for (let length = 0; length < body.length; length += 2) {
        const cut = frame(first, body.slice(0, length))
        const error = failure(cut, from, version)
        if (isTaken(cut, from, version)) expect(error, cut).toBeUndefined()
        else if (error?.kind === 'protocol') {
          // Whole fields that lack what must follow: a filter, a code, a method.
          expect(['SUBSCRIBE', 'UNSUBSCRIBE', 'SUBACK', 'UNSUBACK', 'AUTH'], cut).toContain(name)
          expect(error.message, cut).toMatch(/without|no reason codes/)
        } else expect(error, cut).toMatchObject({ kind: 'malformed', reasonCode: 0x81 })
      }
    },
  )

  it.each(packets)(
    '%s from a %s, version %i: each longer body is taken where the standard allows it, else malformed',
    (name, from, version, first, fields) => {
      for (const tail of ['00', 'ff', '0000', '000161', '00016100']) {
        const longer = frame(first, bodyOf(fields) + tail)
        const error = failure(longer, from, version)
        if (isTaken(longer, from, version)) expect(error, longer).toBeUndefined()
        // Lists go on: what follows may be a filter or a code that is none.
        else if (['SUBSCRIBE', 'UNSUBSCRIBE', 'SUBACK', 'UNSUBACK'].includes(name)) expect(['malformed', 'protocol'], longer).toContain(error?.kind)
        else expect(error, longer).toMatchObject({ kind: 'malformed', reasonCode: 0x81 })
      }
    },
  )

  it.each(packets)('%s from a %s, version %i: the other side may not send it, unless both may', (name, from, version, first, fields) => {
    const other = from === 'client' ? 'server' : 'client'
    const error = failure(frame(first, bodyOf(fields)), other, version)
    if (['PUBLISH', 'PUBACK', 'PUBREC', 'PUBREL', 'AUTH'].includes(name)) expect(error).toBeUndefined()
    // Of DISCONNECT it is the content that is the other side's.
    else expect(error, name).toMatchObject({ kind: 'protocol', reasonCode: 0x82 })
  })

  it.each(packets.filter(([name]) => !/CONN|AUTH/.test(name)))(
    '%s from a %s, version %i: packet identifier 0 is none [MQTT-2.2.1-3]',
    (name, from, version, first, fields) => {
      const body = bodyOf(fields)
      const at = name === 'PUBLISH' ? 2 * (2 + Number.parseInt(body.slice(0, 4), 16)) : 0
      const zero = frame(first, `${body.slice(0, at)}0000${body.slice(at + 4)}`)
      expect(failure(zero, from, version)).toMatchObject({ kind: 'protocol', reasonCode: 0x82 })
    },
  )
})

describe('a property block', () => {
  const blocks: [name: string, from: Sender, before: string, first: string, after: string][] = [
    ['CONNECT', 'client', '00044d51545405020000', '10', '000163'],
    ['will', 'client', '00044d5154540506000000000163', '10', '0001770000'],
    ['CONNACK', 'server', '0000', '20', ''],
    ['PUBLISH', 'client', '000174', '30', '78'],
    ['PUBACK', 'server', '000100', '40', ''],
    ['SUBSCRIBE', 'client', '0001', '82', '00016100'],
    ['SUBACK', 'server', '0001', '90', '00'],
    ['UNSUBSCRIBE', 'client', '0001', 'a2', '000161'],
    ['DISCONNECT', 'client', '00', 'e0', ''],
  ]
  const property = '2600016b000176'

  it.each(blocks)('of %s from a %s has a length of one to four bytes, no longer than needed [MQTT-1.5.5-1]', (_name, from, before, first, after) => {
    const sized = (length: string): string => frame(first, before + length + property + after)
    expect(kindOf(sized('07'), from)).toBeUndefined()
    for (const length of ['8700', '878000', '87808000', '8780808000', '8080808001', 'ffffffffff', 'ffffff7f', '80808001']) {
      expect(failure(sized(length), from), length).toMatchObject({ kind: 'malformed', reasonCode: 0x81 })
    }
  })

  it.each(blocks)('of %s from a %s ends where a property ends', (_name, from, before, first, after) => {
    for (let length = 1; length < 7; length++) {
      expect(failure(frame(first, before + byte(length) + property + after), from), String(length)).toMatchObject({ kind: 'malformed' })
    }
  })

  it.each(blocks)('of %s from a %s holds user properties in their order, equal ones too', (_name, from, before, first, after) => {
    const pairs = ['26000162000131', '26000161000132', '26000162000131', '2600000000', '260001610000']
    const block = pairs.join('')
    const packet = decode(Buffer.from(frame(first, before + byte(block.length / 2) + block + after), 'hex'), { from }) as {
      properties: { userProperties?: unknown }
      will?: { properties: { userProperties?: unknown } }
    }
    const expected = [
      ['b', '1'],
      ['a', '2'],
      ['b', '1'],
      ['', ''],
      ['a', ''],
    ]
    expect((packet.will ?? packet).properties.userProperties).toEqual(expected)
  })

  it('is the same in any order, and its order is kept', () => {
    const parts = ['0101', '020000000a', '03000178', '08000172', '0900020102', '230005', property]
    for (let turn = 0; turn < parts.length; turn++) {
      const block = [...parts.slice(turn), ...parts.slice(0, turn)].join('')
      const hex = frame('30', `000174${byte(block.length / 2)}${block}78`)
      const packet = decode(Buffer.from(hex, 'hex'), { from: 'server' })
      expect(packet).toMatchObject({
        properties: {
          payloadFormatIndicator: 1,
          messageExpiryInterval: 10,
          contentType: 'x',
          responseTopic: 'r',
          correlationData: Uint8Array.of(1, 2),
          topicAlias: 5,
          userProperties: [['k', 'v']],
        },
      })
      expect(Buffer.from(encode(packet as PacketInput)).toString('hex')).toBe(hex)
    }
  })

  it('has identifiers of subscriptions from a server only, one or more, none of them 0 [MQTT-3.3.4-6]', () => {
    const ids = ['01', '7f', '8001', 'ff7f', '808001', 'ffff7f', '80808001', 'ffffff7f']
    for (const id of ids) {
      const hex = frame('30', `000174${byte(1 + id.length / 2)}0b${id}`)
      expect(kindOf(hex, 'server'), id).toBeUndefined()
      expect(failure(hex, 'client'), id).toMatchObject({ kind: 'protocol', reasonCode: 0x82 })
    }
    const all = ids.map((id) => `0b${id}`).join('')
    expect(kindOf(frame('30', `000174${byte(all.length / 2)}${all}`), 'server')).toBeUndefined()
    for (const from of senders) expect(failure(frame('30', '000174020b00'), from), from).toMatchObject({ kind: 'protocol', reasonCode: 0x82 })
    for (const id of ['8000', '8100', '8080808001', 'ffffffff01', '80', 'ffffff']) {
      expect(kindOf(frame('30', `000174${byte(1 + id.length / 2)}0b${id}`), 'server'), id).toBe('malformed')
      expect(kindOf(frame('82', `0001${byte(1 + id.length / 2)}0b${id}00016100`), 'client'), id).toBe('malformed')
    }
  })

  it('tells an alias of 0 by 0x94, from either side, and takes every other [MQTT-3.3.2-8]', () => {
    for (const from of senders) {
      expect(failure(frame('30', '00017403230000'), from)).toMatchObject({ kind: 'protocol', reasonCode: 0x94, reasonName: 'Topic Alias invalid' })
      for (const alias of ['0001', '00ff', 'ffff']) expect(kindOf(frame('30', `00000323${alias}`), from), alias).toBeUndefined()
      expect(failure(frame('30', '000000'), from)).toMatchObject({ kind: 'protocol', reasonCode: 0x82 })
    }
  })

  it('of DISCONNECT says who sent it: an expiry the client, a reference the server [MQTT-3.14.2-2]', () => {
    const expiry = frame('e0', '00051100000001')
    const reference = frame('e0', '9d041c000178')
    expect([kindOf(expiry, 'client'), kindOf(expiry, 'server'), kindOf(frame('e0', '80041c000178'), 'client'), kindOf(reference, 'server')]).toEqual([
      undefined,
      'protocol',
      'protocol',
      undefined,
    ])
  })
})
