/** Packet by packet: every CONNECT flag, every cut, every length of a property block, and who may send what. */
import { describe, expect, it } from 'vitest'
import type { PacketInput } from '../../../src/wire/index.js'
import { decode, encode } from '../../../src/wire/index.js'
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
import { referenceDecode } from './reference-decoder.js'
import { plain } from './vector-files.js'

const malformed = { kind: 'malformed', reasonCode: 0x81 }
const protocol = { kind: 'protocol', reasonCode: 0x82 }

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
        const hex = frame(
          '10',
          `00044d515454${byte(version)}${byte(flags)}0000${version === 5 ? '00' : ''}${payload(flags, version)}`,
        )
        const willQos = (flags >> 3) & 3
        const will = (flags & 4) > 0
        const valid =
          (flags & 1) === 0 &&
          (will ? willQos < 3 : willQos === 0 && (flags & 0x20) === 0) &&
          (version === 5 || (flags & 0xc0) !== 0x40)
        const error = failure(hex, 'client', version)
        if (!valid) {
          expect(error, byte(flags)).toMatchObject(malformed)
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
        expect(hexOf(encode(packet as PacketInput))).toBe(hex)
      }
      // 7 forms of a will, or none; clean or not; user name and password.
      expect(taken).toBe(version === 5 ? 7 * 2 * 4 : 7 * 2 * 3)
    })
  }

  it('has the name MQTT and version 4 or 5; anything else is 0x84 [MQTT-3.1.2-1] [MQTT-3.1.2-2]', () => {
    for (const name of [
      'MQTT',
      'MQIsdp',
      'mqtt',
      'MQTX',
      'MQTT ',
      'MQT',
      'MQTTT',
      '',
      'M',
      '\ufeffMQTT',
    ]) {
      for (let version = 0; version < 256; version++) {
        const rest = version === 4 ? '0200000001' : '020000000001'
        const error = failure(
          frame('10', `${field(hexOf(Buffer.from(name)))}${byte(version)}${rest}63`),
          'client',
        )
        if (name === 'MQTT' && (version === 4 || version === 5)) expect(error).toBeUndefined()
        else
          expect(error, `${name} ${version}`).toMatchObject({
            kind: 'protocol',
            reasonCode: 0x84,
            reasonName: 'Unsupported Protocol Version',
          })
      }
    }
    for (const hex of ['00054d51545400', '0004ff515454', '0004c3285454']) {
      expect(kindOf(frame('10', `${hex}0502000000000163`), 'client'), hex).toBe('malformed')
    }
  })

  it('has authentication data only with a method (section 3.1.2.11.10), a CONNACK may have it alone', () => {
    const connect = (properties: string): string =>
      frame('10', `00044d51545405020000${block(properties)}000163`)
    expect(failure(connect('16000178'), 'client')).toMatchObject(protocol)
    expect(failure(connect('16000178150000'), 'client')).toBeUndefined()
    expect(failure(connect('15000016000178'), 'client')).toBeUndefined()
    expect(failure(frame('20', '00000416000178'), 'server')).toBeUndefined()
  })

  it('of 3.1.1 has a client identifier, or a clean session; 5.0 wants neither [MQTT-3.1.3-6] [MQTT-3.1.3-8]', () => {
    expect(failure('100c00044d515454040000000000', 'client', 4)).toMatchObject({
      kind: 'protocol',
      reasonCode: 0x85,
    })
    expect(failure('100c00044d515454040200000000', 'client', 4)).toBeUndefined()
    expect(failure('100d00044d51545405000000000000', 'client')).toBeUndefined()
  })
})

describe('CONNACK', () => {
  it('has flags 0 or 1, and 1 in no refusal [MQTT-3.2.2-1] [MQTT-3.2.2-6]', () => {
    for (let flags = 0; flags < 256; flags++) {
      for (const rest of ['0000', '8700', '00', '05']) {
        const kind = kindOf(frame('20', byte(flags) + rest), 'server', rest.length === 4 ? 5 : 4)
        expect(kind, `${flags} ${rest}`).toBe(
          flags > 1 ? 'malformed' : flags === 1 && !rest.startsWith('00') ? 'protocol' : undefined,
        )
      }
    }
  })
})

/** One of each packet that has more than a fixed header, with something in every place: first byte, and the body field by field. */
const packets: [name: string, from: Sender, version: Version, first: string, fields: string][] = [
  [
    'CONNECT',
    'client',
    5,
    '10',
    '00044d515454 05 f6 003c 05 1100000001 000163 0a 0101 08000172 09000178 000177 0002aabb 000175 0002ccdd',
  ],
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

const lists = ['SUBSCRIBE', 'UNSUBSCRIBE', 'SUBACK', 'UNSUBACK']

describe.each(packets)('%s from a %s, version %i', (name, from, version, first, fields) => {
  const body = bodyOf(fields)

  it('is valid', () => {
    expect(failure(frame(first, body), from, version)).toBeUndefined()
  })

  it('each shorter body is taken where the standard allows it, else refused', () => {
    for (let length = 0; length < body.length; length += 2) {
      const cut = frame(first, body.slice(0, length))
      const error = failure(cut, from, version)
      if (isTaken(cut, from, version)) expect(error, cut).toBeUndefined()
      else if (error?.kind === 'protocol') {
        // Whole fields that lack what must follow: a filter, a code, a method.
        expect([...lists, 'AUTH'], cut).toContain(name)
        expect(error.message, cut).toMatch(/without|no reason codes/)
      } else expect(error, cut).toMatchObject(malformed)
    }
  })

  it('each longer body is taken where the standard allows it, else malformed', () => {
    for (const tail of ['00', 'ff', '0000', '000161', '00016100']) {
      const longer = frame(first, body + tail)
      const error = failure(longer, from, version)
      if (isTaken(longer, from, version)) expect(error, longer).toBeUndefined()
      // Lists go on: what follows may be a filter or a code that is none.
      else if (lists.includes(name))
        expect(['malformed', 'protocol'], longer).toContain(error?.kind)
      else expect(error, longer).toMatchObject(malformed)
    }
  })

  if (/CONN|AUTH/.test(name)) return
  it('packet identifier 0 is none [MQTT-2.2.1-3]', () => {
    const at = name === 'PUBLISH' ? 2 * (2 + Number.parseInt(body.slice(0, 4), 16)) : 0
    expect(
      failure(frame(first, `${body.slice(0, at)}0000${body.slice(at + 4)}`), from, version),
    ).toMatchObject(protocol)
  })
})

describe('a property block', () => {
  const property = '2600016b000176'

  it('is the same in any order, and its order is kept', () => {
    const parts = ['0101', '020000000a', '03000178', '08000172', '0900020102', '230005', property]
    for (let turn = 0; turn < parts.length; turn++) {
      const hex = frame(
        '30',
        `000174${block([...parts.slice(turn), ...parts.slice(0, turn)].join(''))}78`,
      )
      const packet = decode(Buffer.from(hex, 'hex'), { from: 'server' })
      expect(packet).toHaveProperty('properties', {
        ...{
          payloadFormatIndicator: 1,
          messageExpiryInterval: 10,
          contentType: 'x',
          responseTopic: 'r',
          topicAlias: 5,
        },
        ...{ correlationData: Uint8Array.of(1, 2), userProperties: [['k', 'v']] },
      })
      expect(hexOf(encode(packet as PacketInput))).toBe(hex)
    }
  })

  it('has identifiers of subscriptions from a server only, one or more, none of them 0 [MQTT-3.3.4-6]', () => {
    const ids = ['01', '7f', '8001', 'ff7f', '808001', 'ffff7f', '80808001', 'ffffff7f']
    for (const id of ids) {
      const hex = frame('30', `000174${block(`0b${id}`)}`)
      expect(kindOf(hex, 'server'), id).toBeUndefined()
      expect(failure(hex, 'client'), id).toMatchObject(protocol)
    }
    expect(
      kindOf(frame('30', `000174${block(ids.map((id) => `0b${id}`).join(''))}`), 'server'),
    ).toBeUndefined()
    for (const from of senders)
      expect(failure(frame('30', '000174020b00'), from), from).toMatchObject(protocol)
    for (const id of ['8000', '8100', '8080808001', 'ffffffff01', '80', 'ffffff']) {
      expect(kindOf(frame('30', `000174${block(`0b${id}`)}`), 'server'), id).toBe('malformed')
      expect(kindOf(frame('82', `0001${block(`0b${id}`)}00016100`), 'client'), id).toBe('malformed')
    }
  })

  it('tells an alias of 0 by 0x94, from either side, and takes every other [MQTT-3.3.2-8]', () => {
    for (const from of senders) {
      expect(failure(frame('30', '00017403230000'), from)).toMatchObject({
        kind: 'protocol',
        reasonCode: 0x94,
        reasonName: 'Topic Alias invalid',
      })
      for (const alias of ['0001', '00ff', 'ffff'])
        expect(kindOf(frame('30', `00000323${alias}`), from), alias).toBeUndefined()
      expect(failure(frame('30', '000000'), from)).toMatchObject(protocol)
    }
  })

  it('of DISCONNECT says who sent it: an expiry the client, a reference the server [MQTT-3.14.2-2]', () => {
    const kinds = (hex: string) => senders.map((from) => kindOf(frame('e0', hex), from))
    expect(kinds('00051100000001')).toEqual([undefined, 'protocol'])
    expect(kinds('80041c000178')).toEqual(['protocol', undefined])
    expect(kindOf(frame('e0', '9d041c000178'), 'server')).toBeUndefined()
  })
})

it('every packet whose body has one byte at most is what the tables of the standard say, or refused', () => {
  for (const from of senders) {
    for (let first = 0; first < 256; first++) {
      const step = [0x40, 0xc0, 0xd0, 0xe0, 0xf0].includes(first) ? 1 : 51
      const bodies = Array.from({ length: 256 / step }, (_, index) => byte(index * step))
      for (const [body, version] of [
        ['', 4] as const,
        ...['', ...bodies].map((each) => [each, 5] as const),
      ]) {
        const hex = frame(byte(first), body)
        const error = failure(hex, from, version)
        expect(error === undefined, `${hex} from a ${from}`).toBe(isTaken(hex, from, version))
        if (error !== undefined) continue
        const bytes = Buffer.from(hex, 'hex')
        expect(plain(decode(bytes, { from, protocolVersion: version }))).toEqual(
          referenceDecode(bytes, from, version),
        )
      }
    }
  }
})
