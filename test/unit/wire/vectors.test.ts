import { describe, expect, it } from 'vitest'
import type { Packet, PacketInput, PublishPacket } from '../../../src/wire/index.js'
import { Decoder, decode, encode, WireError } from '../../../src/wire/index.js'
import { formNames, inForm } from './byte-forms.js'
import type { Outcome, Vector } from './vector-files.js'
import { bytesOf, decodeChunks, drip, nameOf, plain, readVectors, senderOf, splits } from './vector-files.js'

const vectors = readVectors('../../rules/vectors.json')
const held = vectors.filter((vector) => vector.fill === undefined)
const single = held.filter((vector) => !vector.name.startsWith('stream-'))

function title(vector: Vector): string {
  return `${vector.name} [${(vector.statements ?? []).join(' ')}]`
}

/** A session-layer vector is wrong, if it is, by its context only: the codec takes it, unless the context gives a packet size. */
function expected(vector: Vector): { packets: unknown[]; errors: string[] } {
  if (vector.valid) return { packets: Array.isArray(vector.decoded) ? vector.decoded : [vector.decoded], errors: [] }
  return { packets: [], errors: vector.acceptErrors ?? [] }
}

/** However the bytes are cut, and in whatever array they come. */
function expectSame(bytes: Uint8Array, options: Parameters<typeof decodeChunks>[1], whole: Outcome): void {
  let count = 0
  for (const chunks of splits(bytes)) {
    const form = formNames[count++ % formNames.length] as string
    expect(decodeChunks(chunks, options)).toEqual(whole)
    expect(decodeChunks(inForm(form, chunks), options), form).toEqual(whole)
  }
  expect(decodeChunks(drip(bytes), options)).toEqual(whole)
  for (const form of formNames) {
    expect(decodeChunks(inForm(form, [bytes]), options), form).toEqual(whole)
    if (bytes.length < 5000) expect(decodeChunks(inForm(form, drip(bytes)), options), form).toEqual(whole)
  }
}

describe('conformance vectors, codec and role', () => {
  for (const vector of single.filter((candidate) => candidate.layer !== 'session' && candidate.error !== 'Incomplete')) {
    it(title(vector), () => {
      const bytes = bytesOf(vector)
      const from = senderOf(vector)
      const { packets, errors } = expected(vector)
      const whole = decodeChunks([bytes], { from })
      expect(whole.packets).toEqual(packets)
      if (vector.valid) expect(whole.error).toBeUndefined()
      else expect(errors).toContain(whole.error?.name)
      expect(whole.pending).toBe(0)
      expectSame(bytes, { from }, whole)
    })
  }

  it('chooses the first choice of every vector', () => {
    const others = held
      .filter((vector) => !vector.valid && vector.layer !== 'session' && vector.error !== 'Incomplete')
      .filter((vector) => {
        return decodeChunks([bytesOf(vector)], { from: senderOf(vector) }).error?.name !== vector.error
      })
    expect(others.map((vector) => vector.name)).toEqual([])
  })
})

describe('conformance vectors, decode()', () => {
  it('gives the same as the Decoder for each single packet', () => {
    for (const vector of single) {
      if (vector.layer === 'session' || vector.error === 'Incomplete') continue
      const bytes = bytesOf(vector)
      const { packets, error } = decodeChunks([bytes], { from: senderOf(vector) })
      if (error === undefined) expect(plain(decode(bytes, { from: senderOf(vector) }))).toEqual(packets[0])
      // A wrong length may also leave bytes over, which `decode` sees first.
      else expect(() => decode(bytes, { from: senderOf(vector) })).toThrow(WireError)
    }
  })

  it('decodes the fields that are absent as undefined', () => {
    const packet = decode(Buffer.from('100d00044d51545405020000000000', 'hex'), { from: 'client' })
    expect(packet).toHaveProperty('will', undefined)
    expect(packet).toHaveProperty('username', undefined)
    expect(packet).toHaveProperty('password', undefined)
    expect(decode(Buffer.from('300400016100', 'hex'), { from: 'server' })).toHaveProperty('packetId', undefined)
  })
})

describe('conformance vectors, incomplete', () => {
  for (const vector of single.filter((candidate) => candidate.error === 'Incomplete')) {
    it(title(vector), () => {
      const bytes = bytesOf(vector)
      expect(decodeChunks([bytes], { from: senderOf(vector) })).toEqual({ packets: [], error: undefined, pending: bytes.length })
      expect(decodeChunks(drip(bytes), { from: senderOf(vector) })).toEqual({ packets: [], error: undefined, pending: bytes.length })
      const attempt = (): Packet => decode(bytes, { from: senderOf(vector) })
      expect(attempt).toThrow(WireError)
      expect(attempt).toThrow(expect.objectContaining({ kind: 'incomplete', reasonCode: undefined, reasonName: undefined, fault: 'remote' }))
    })
  }
})

describe('conformance vectors, session: what the codec has to say', () => {
  for (const vector of held.filter((candidate) => candidate.layer === 'session')) {
    it(title(vector), () => {
      const context = vector.direction === 's2c' ? vector.context?.connect : vector.context?.connack
      const maximumPacketSize = context?.['maximumPacketSize']
      const { packets, error } = decodeChunks([bytesOf(vector)], { from: senderOf(vector), maximumPacketSize })
      if (maximumPacketSize === undefined) {
        expect(error).toBeUndefined()
        expect(packets).toHaveLength(1)
      } else expect(vector.acceptErrors).toContain(error?.name)
    })
  }
})

describe('conformance vectors, streams', () => {
  for (const vector of held.filter((candidate) => candidate.name.startsWith('stream-'))) {
    it(title(vector), () => {
      const bytes = bytesOf(vector)
      const from = senderOf(vector)
      const whole = decodeChunks([bytes], { from })
      if (vector.valid) expect(whole).toEqual({ packets: vector.decoded, error: undefined, pending: 0 })
      else {
        expect(whole.packets).toHaveLength(1)
        expect(vector.acceptErrors).toContain(whole.error?.name)
      }
      expectSame(bytes, { from }, whole)
    })
  }

  it('takes all valid packets of a side in one chunk', () => {
    for (const direction of ['c2s', 's2c'] as const) {
      const valid = held.filter((vector) => vector.valid && vector.direction === direction)
      const all = Buffer.concat(valid.map((vector) => bytesOf(vector)))
      const { packets, error } = decodeChunks([all], { from: direction === 'c2s' ? 'client' : 'server' })
      expect(error).toBeUndefined()
      expect(packets).toEqual(valid.flatMap((vector) => expected(vector).packets))
    }
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

  for (const vector of single.filter((candidate) => candidate.valid)) {
    it(vector.name, () => {
      const bytes = bytesOf(vector)
      const packet = decode(bytes, { from: senderOf(vector) })
      const encoded = encode(packet as PacketInput)
      expect(plain(decode(encoded, { from: senderOf(vector) }))).toEqual(vector.decoded)
      if (hasShorterForm(vector, packet)) expect(encoded.length).toBeLessThan(bytes.length)
      else expect(Buffer.from(encoded).toString('hex')).toBe(vector.hex)
    })
  }
})

describe('conformance vectors, filled', () => {
  for (const vector of vectors.filter((candidate) => candidate.fill !== undefined)) {
    it(`${vector.name} in chunks of 1 MiB`, { timeout: 60_000 }, () => {
      const { byte, count } = vector.fill as { byte: string; count: number }
      const decoder = new Decoder({ from: senderOf(vector) })
      const packets: Packet[] = [...decoder.push(Buffer.from(vector.hex, 'hex'))]
      const chunk = new Uint8Array(1 << 20).fill(Number.parseInt(byte, 16))
      for (let left = count; left > 0; left -= chunk.length) packets.push(...decoder.push(chunk.subarray(0, Math.min(left, chunk.length))))
      expect(packets).toHaveLength(1)
      expect(decoder.pending).toBe(0)
      const { payload, ...rest } = packets[0] as PublishPacket
      const { payloadLength, payloadByte: _, ...fields } = vector.decoded as { payloadLength: number; payloadByte: string }
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

  it('are at least a hundred', () => {
    expect(old.length).toBeGreaterThan(100)
  })

  for (const vector of old) {
    it(vector.name, () => {
      const bytes = bytesOf(vector)
      const options = { from: senderOf(vector), protocolVersion: 4 as const }
      const whole = decodeChunks([bytes], options)
      if (vector.valid) expect(whole).toEqual({ packets: [vector.decoded], error: undefined, pending: 0 })
      else if (vector.error === 'Incomplete') expect(whole).toEqual({ packets: [], error: undefined, pending: bytes.length })
      else expect(vector.acceptErrors).toContain(whole.error?.name)
      expectSame(bytes, options, whole)
    })
  }

  for (const vector of old.filter((candidate) => candidate.valid)) {
    it(`${vector.name} encodes to the same bytes`, () => {
      const packet = decode(bytesOf(vector), { from: senderOf(vector), protocolVersion: 4 })
      expect(Buffer.from(encode(packet as PacketInput, { protocolVersion: 4 })).toString('hex')).toBe(vector.hex)
    })
  }

  it('names errors by the table of reason codes', () => {
    const failing = old.filter((vector) => !vector.valid && vector.error !== 'Incomplete')
    for (const vector of failing) {
      try {
        decode(bytesOf(vector), { from: senderOf(vector), protocolVersion: 4 })
        expect.unreachable(vector.name)
      } catch (error) {
        expect(error).toBeInstanceOf(WireError)
        expect(vector.acceptErrors).toContain(nameOf(error as WireError))
        expect((error as WireError).reasonName).toBeTypeOf('string')
      }
    }
  })
})
