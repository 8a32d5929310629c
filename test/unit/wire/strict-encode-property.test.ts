/**
 * What the encoder takes, the decoder takes, with the same fields; what it does not take, it refuses by name.
 *
 * Packets are put together from values of every kind, mostly fitting ones. Tool builders hand in such objects.
 */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { PacketInput } from '../../../src/wire/index.js'
import { decode, encode, WireError } from '../../../src/wire/index.js'
import { senders } from './hex.js'
import { referenceDecode } from './reference-decoder.js'
import { plain } from './vector-files.js'

type Fields = Record<string, unknown>
type Any = fc.Arbitrary<unknown>

const junk = fc.constantFrom<unknown>(
  ...[null, '', 'a', 'a/#', '+', '\ud800', 'a\0', true, false, 1n, Symbol('x'), () => 1],
  ...[0, 1, 2, 3, -1, 1.5, Number.NaN, 65_535, 65_536],
  ...[
    {},
    [],
    [null],
    [[]],
    { length: 1n },
    { length: 2 },
    new Map(),
    new Date(0),
    new Uint8Array(1),
  ],
)
const odd = (usual: Any, weight = 25): Any =>
  fc.oneof({ weight, arbitrary: usual }, { weight: 1, arbitrary: junk })

const text = fc.constantFrom('', 'a', 'ü', 'a/b', '😀', 'x'.repeat(130))
const topic = odd(fc.constantFrom('a', '/', 'a/b', '', '$share/g/a', 'a\nb'), 12)
const filter = odd(
  fc.constantFrom(
    'a',
    '#',
    'a/+',
    '$share/g/a',
    '$share/g',
    '$share/+/a',
    '+a',
    '',
    '$SYS/#',
    'a/#/b',
  ),
  12,
)
const bytes = fc.uint8Array({ maxLength: 5 })
const flag = fc.constantFrom(0, 1)
const u16 = fc.constantFrom(0, 1, 65_535)
const u32 = fc.constantFrom(0, 1, 4_294_967_295)
const boolean = odd(fc.boolean(), 15)
const qos = odd(fc.constantFrom(0, 1, 2), 15)
const packetId = odd(fc.constantFrom(1, 65_535), 20)
const code = odd(
  fc.constantFrom(0, 0x80, 0x87, 0x97, 4, 0x8b, 0x8c, 0x10, 0x18, 0x19, 0x92, 0x9c, 5),
  20,
)

const values: Record<string, Any> = {
  responseTopic: topic,
  subscriptionIdentifiers: fc.array(fc.constantFrom(1, 127, 128, 268_435_455, 0, 268_435_456), {
    maxLength: 2,
  }),
  userProperties: fc.array(fc.tuple(text, text), { maxLength: 2 }),
}
const byValue: [Any, string][] = [
  [text, 'contentType assignedClientIdentifier authenticationMethod responseInformation'],
  [text, 'serverReference reasonString'],
  [bytes, 'correlationData authenticationData'],
  [flag, 'payloadFormatIndicator requestProblemInformation requestResponseInformation maximumQoS'],
  [flag, 'retainAvailable wildcardSubscriptionAvailable subscriptionIdentifierAvailable'],
  [flag, 'sharedSubscriptionAvailable'],
  [u16, 'serverKeepAlive receiveMaximum topicAliasMaximum topicAlias'],
  [u32, 'messageExpiryInterval sessionExpiryInterval willDelayInterval maximumPacketSize'],
]
for (const [value, names] of byValue) for (const name of names.split(' ')) values[name] = value

/** Absent, or some of those that fit, with now and then one that does not. */
function properties(fitting: string): Any {
  const usual = [...fitting.split(/\s+/), 'userProperties'].map((key) =>
    odd(values[key] as Any).map((value) => ({ [key]: value })),
  )
  const others = fc
    .constantFrom(...Object.keys(values), 'toString', '__proto__', 'nonsense')
    .chain((key) =>
      (Object.hasOwn(values, key) ? (values[key] as Any) : junk).map((value) => ({ [key]: value })),
    )
  const one = fc.oneof(
    { weight: 20, arbitrary: fc.oneof(...usual) },
    { weight: 1, arbitrary: others },
  )
  const several = fc
    .array(one, { maxLength: 4 })
    .map((list) => Object.assign({}, ...list) as object)
  return odd(fc.oneof(fc.constant(undefined), several), 30)
}

type Values = Record<string, Any>

function record(required: Values, optional: Values): Any {
  const requiredKeys = Object.keys(required)
  return fc.record({ ...required, ...optional }, { requiredKeys, noNullPrototype: true } as never)
}

const willProperties = properties(
  'willDelayInterval contentType responseTopic correlationData payloadFormatIndicator',
)
const will = record(
  { topic },
  { payload: odd(bytes), qos, retain: boolean, properties: willProperties },
)
const subscription = record(
  { filter },
  { qos, noLocal: boolean, retainAsPublished: boolean, retainHandling: qos },
)
const subscriptions = odd(fc.array(odd(subscription), { maxLength: 3 }))
const reasonCodes = odd(fc.array(code, { maxLength: 3 }))
const filters = odd(fc.array(filter, { maxLength: 3 }))
const protocolVersion = odd(fc.constantFrom(4, 5), 20)
const payload = odd(bytes)
const ofConnect = `sessionExpiryInterval receiveMaximum requestProblemInformation maximumPacketSize
  authenticationMethod authenticationData`
const ofConnack = `maximumQoS serverKeepAlive assignedClientIdentifier authenticationData retainAvailable
  reasonString`
const ofPublish =
  'topicAlias subscriptionIdentifiers contentType responseTopic messageExpiryInterval'
const ofAuth = 'authenticationMethod authenticationMethod authenticationData reasonString'
const secrets = { username: odd(text), password: odd(bytes) }
const identity = { cleanStart: boolean, keepAlive: odd(u16), clientId: odd(text), ...secrets }

/** By type: fields that are there, fields that may be, and the properties that fit. */
const shapes: [type: string, required: Values, optional: Values, properties: string][] = [
  ['connect', {}, { ...identity, protocolVersion, will: odd(will) }, ofConnect],
  ['connack', {}, { sessionPresent: boolean, reasonCode: code }, ofConnack],
  ['publish', { topic }, { payload, qos, dup: boolean, retain: boolean, packetId }, ofPublish],
  ['subscribe', { packetId, subscriptions }, {}, 'subscriptionIdentifiers'],
  ['unsubscribe', { packetId, filters }, {}, 'userProperties'],
  ['suback', { packetId }, { reasonCodes }, 'reasonString'],
  ['unsuback', { packetId }, { reasonCodes }, 'reasonString'],
  ['disconnect', {}, { reasonCode: code }, 'reasonString sessionExpiryInterval serverReference'],
  ['auth', {}, { reasonCode: code }, ofAuth],
]
for (const type of ['puback', 'pubrec', 'pubrel', 'pubcomp'])
  shapes.push([type, { packetId }, { reasonCode: code }, 'reasonString'])
const kinds: Record<string, Any> = {
  pingreq: record({ type: fc.constant('pingreq') }, {}),
  pingresp: record({ type: fc.constant('pingresp') }, {}),
}
for (const [type, required, optional, fitting] of shapes) {
  kinds[type] = record(
    { type: fc.constant(type), ...required },
    { ...optional, properties: properties(fitting) },
  )
}

/** Lists that hold nothing are not on the wire. */
function withoutEmptyLists(given: Fields): Fields {
  const isEmpty = (key: string, value: unknown): boolean =>
    key !== 'reasonCodes' && Array.isArray(value) && value.length === 0
  return Object.fromEntries(
    Object.entries(given).filter(([key, value]) => value !== undefined && !isEmpty(key, value)),
  )
}

/** What was given must be there again; what was not has its default, which other tests look at. */
function expectSame(found: Fields, given: Fields): void {
  for (const [key, value] of Object.entries(given)) {
    if (value === undefined || (key === 'packetId' && value === 0)) continue
    if (key === 'properties') expect(found[key]).toEqual(plain(withoutEmptyLists(value as Fields)))
    else if (key === 'will') expectSame(found[key] as Fields, value as Fields)
    else if (key === 'subscriptions') {
      for (const [index, entry] of (value as Fields[]).entries())
        expectSame((found[key] as Fields[])[index] as Fields, entry)
    } else expect(found[key]).toEqual(plain(value))
  }
}

/** The sides from which the bytes are a packet, by ours and by a second decoder: the same ones. */
function takers(encoded: Uint8Array, protocolVersion: 4 | 5): Fields[] {
  return senders.flatMap((side) => {
    let expected: Fields
    try {
      expected = referenceDecode(encoded, side, protocolVersion)
    } catch {
      expect(() => decode(encoded, { from: side, protocolVersion })).toThrow(WireError)
      return []
    }
    expect(plain(decode(encoded, { from: side, protocolVersion }))).toEqual(expected)
    return [expected]
  })
}

describe('any object', () => {
  for (const protocolVersion of [5, 4] as const) {
    it.each(Object.keys(kinds))(
      `of type %s, version ${protocolVersion}: encoded to what decodes to the same, or refused by name`,
      (type) => {
        let taken = 0
        let refused = 0
        fc.assert(
          fc.property(kinds[type] as Any, (given) => {
            let encoded: Uint8Array
            try {
              encoded = encode(given as PacketInput, { protocolVersion })
            } catch (error) {
              expect(error).toBeInstanceOf(WireError)
              expect(error).toMatchObject({ fault: 'local', reasonCode: undefined, offset: 0 })
              expect((error as WireError).option).toMatch(/^[a-zA-Z_\d.[\]]+$/)
              refused++
              return
            }
            taken++
            const found = takers(encoded, protocolVersion)
            expect(found.length).toBeGreaterThan(0)
            for (const packet of found) expectSame(packet, given as Fields)
          }),
          { numRuns: 400 },
        )
        const exists = !(protocolVersion === 4 && type === 'auth')
        expect(taken > 0).toBe(exists)
        expect(refused > 0).toBe(!type.startsWith('ping'))
      },
    )
  }
})
