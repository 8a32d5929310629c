import { describe, expect, it } from 'vitest'
import type { Packet, PacketInput, PublishPacket } from '../../../src/wire/index.js'
import { Decoder, decode, encode, WireError } from '../../../src/wire/index.js'
import { formNames, inForm } from './byte-forms.js'
import { hexOf, thrown } from './hex.js'
import type { Outcome, Vector } from './vector-files.js'
import {
  bytesOf,
  decodeChunks,
  drip,
  nameOf,
  plain,
  readVectors,
  scanned,
  senderOf,
  splits,
} from './vector-files.js'

const vectors = readVectors('../../rules/vectors.json')
const held = vectors.filter((vector) => vector.fill === undefined)
const single = held.filter((vector) => !vector.name.startsWith('stream-'))

/** For `it.each`: title and vector. */
const titled = (list: Vector[]) =>
  list.map(
    (vector) =>
      [
        [vector.name, ...(vector.statements ?? []).map((id) => `[${id}]`)].join(' '),
        vector,
      ] as const,
  )
const isSession = ({ layer }: Vector): boolean => layer === 'session'
const isIncomplete = ({ error }: Vector): boolean => error === 'Incomplete'

function packetsOf({ valid, decoded }: Vector): unknown[] {
  return valid ? [decoded].flat() : []
}

/** However the bytes are cut, in whatever array they come, and whether a Decoder reads them or a Scanner. */
function expectSame(
  bytes: Uint8Array,
  options: Parameters<typeof decodeChunks>[1],
  whole: Outcome,
): void {
  let count = 0
  for (const chunks of splits(bytes)) {
    const form = formNames[count++ % formNames.length] as string
    expect(decodeChunks(chunks, options)).toEqual(whole)
    expect(decodeChunks(inForm(form, chunks), options), form).toEqual(whole)
    expect(scanned(chunks, options), 'Scanner').toEqual(whole)
  }
  expect(decodeChunks(drip(bytes), options)).toEqual(whole)
  expect(scanned(drip(bytes), options), 'Scanner').toEqual(whole)
  for (const form of formNames) {
    expect(decodeChunks(inForm(form, [bytes]), options), form).toEqual(whole)
    if (bytes.length < 5000)
      expect(decodeChunks(inForm(form, drip(bytes)), options), form).toEqual(whole)
  }
}

describe('conformance vectors, codec and role', () => {
  it.each(titled(single.filter((vector) => !isSession(vector) && !isIncomplete(vector))))(
    '%s',
    (_title, vector) => {
      const bytes = bytesOf(vector)
      const from = senderOf(vector)
      const whole = decodeChunks([bytes], { from })
      // Of the errors that a vector allows the first one is chosen.
      expect([whole.packets, whole.error?.name, whole.pending]).toEqual([
        packetsOf(vector),
        vector.error,
        0,
      ])
      if (vector.valid) expect(plain(decode(bytes, { from }))).toEqual(vector.decoded)
      // A wrong length may also leave bytes over, which `decode` sees first.
      else expect(() => decode(bytes, { from })).toThrow(WireError)
      expectSame(bytes, { from }, whole)
    },
  )

  it('decodes the fields that are absent as undefined', () => {
    const packet = decode(Buffer.from('100d00044d51545405020000000000', 'hex'), { from: 'client' })
    expect(packet).toHaveProperty('will', undefined)
    expect(packet).toHaveProperty('username', undefined)
    expect(packet).toHaveProperty('password', undefined)
    expect(decode(Buffer.from('300400016100', 'hex'), { from: 'server' })).toHaveProperty(
      'packetId',
      undefined,
    )
  })
})

describe('conformance vectors, incomplete', () => {
  it.each(titled(single.filter(isIncomplete)))('%s', (_title, vector) => {
    const bytes = bytesOf(vector)
    const from = senderOf(vector)
    for (const chunks of [[bytes], drip(bytes)]) {
      expect(decodeChunks(chunks, { from })).toEqual({
        packets: [],
        error: undefined,
        pending: bytes.length,
      })
    }
    const error = thrown(() => decode(bytes, { from }))
    expect(error).toBeInstanceOf(WireError)
    expect(error).toMatchObject({
      kind: 'incomplete',
      reasonCode: undefined,
      reasonName: undefined,
      fault: 'remote',
    })
  })
})

describe('conformance vectors, session: what the codec has to say', () => {
  // Wrong, if at all, by their context only: the codec takes them, unless the context gives a packet size.
  it.each(titled(held.filter(isSession)))('%s', (_title, vector) => {
    const context = vector.direction === 's2c' ? vector.context?.connect : vector.context?.connack
    const maximumPacketSize = context?.['maximumPacketSize']
    const { packets, error } = decodeChunks([bytesOf(vector)], {
      from: senderOf(vector),
      maximumPacketSize,
    })
    if (maximumPacketSize === undefined) expect([packets.length, error]).toEqual([1, undefined])
    else expect(vector.acceptErrors).toContain(error?.name)
  })
})

describe('conformance vectors, streams', () => {
  it.each(titled(held.filter(({ name }) => name.startsWith('stream-'))))('%s', (_title, vector) => {
    const bytes = bytesOf(vector)
    const from = senderOf(vector)
    const whole = decodeChunks([bytes], { from })
    if (vector.valid)
      expect(whole).toEqual({ packets: vector.decoded, error: undefined, pending: 0 })
    else expect([whole.packets.length, whole.error?.name]).toEqual([1, vector.error])
    expectSame(bytes, { from }, whole)
  })
})

describe('conformance vectors, encoded', () => {
  const acknowledgements = new Set(['puback', 'pubrec', 'pubrel', 'pubcomp', 'disconnect'])

  /** Why the encoder writes other bytes than the vector: reason code 0 and empty properties are left out where the standard allows it. */
  function hasShorterForm(vector: Vector, packet: Packet): boolean {
    if (!acknowledgements.has(packet.type)) return false
    const { reasonCode, properties } = packet as { reasonCode: number; properties: object }
    const body = vector.hex.length / 2 - 2 - (packet.type === 'disconnect' ? 0 : 2)
    return Object.keys(properties).length === 0 && body > (reasonCode === 0 ? 0 : 1)
  }

  it.each(titled(single.filter(({ valid }) => valid)))('%s', (_title, vector) => {
    const bytes = bytesOf(vector)
    const from = senderOf(vector)
    const packet = decode(bytes, { from })
    const encoded = encode(packet as PacketInput)
    expect(plain(decode(encoded, { from }))).toEqual(vector.decoded)
    if (hasShorterForm(vector, packet)) expect(encoded.length).toBeLessThan(bytes.length)
    else expect(hexOf(encoded)).toBe(vector.hex)
  })
})

describe('conformance vectors, filled', () => {
  for (const vector of vectors.filter((candidate) => candidate.fill !== undefined)) {
    it(`${vector.name} in chunks of 1 MiB`, { timeout: 60_000 }, () => {
      const { byte, count } = vector.fill as { byte: string; count: number }
      const decoder = new Decoder({ from: senderOf(vector) })
      const packets: Packet[] = [...decoder.push(Buffer.from(vector.hex, 'hex'))]
      const chunk = new Uint8Array(1 << 20).fill(Number.parseInt(byte, 16))
      for (let left = count; left > 0; left -= chunk.length)
        packets.push(...decoder.push(chunk.subarray(0, left)))
      expect(packets).toHaveLength(1)
      expect(decoder.pending).toBe(0)
      const { payload, ...rest } = packets[0] as PublishPacket
      const {
        payloadLength,
        payloadByte: _,
        ...fields
      } = vector.decoded as { payloadLength: number; payloadByte: string }
      expect(plain(rest)).toEqual(fields)
      expect(payload.length).toBe(payloadLength)
      for (let at = 0; at < payload.length; at += chunk.length) {
        const part = payload.subarray(at, at + chunk.length)
        expect(Buffer.compare(part, chunk.subarray(0, part.length))).toBe(0)
      }
    })
  }
})

describe('conformance vectors, 3.1.1', () => {
  const old = readVectors('./vectors-311.json')

  it.each(titled(old))('%s', (_title, vector) => {
    const bytes = bytesOf(vector)
    const options = { from: senderOf(vector), protocolVersion: 4 as const }
    const whole = decodeChunks([bytes], options)
    if (vector.valid) {
      expect(whole).toEqual({ packets: [vector.decoded], error: undefined, pending: 0 })
      expect(hexOf(encode(decode(bytes, options) as PacketInput, options))).toBe(vector.hex)
    } else if (isIncomplete(vector))
      expect(whole).toEqual({ packets: [], error: undefined, pending: bytes.length })
    else {
      expect(vector.acceptErrors).toContain(whole.error?.name)
      const error = thrown(() => decode(bytes, options)) as WireError
      expect(vector.acceptErrors).toContain(nameOf(error))
      expect(error.reasonName).toBeTypeOf('string')
    }
    expectSame(bytes, options, whole)
  })
})
