/** `mqwire decode` on every vector: the verdict, the statement, and fields that cover each byte. */
import { describe, expect, it } from 'vitest'
import { packetsOf, type ShownPacket } from '../../../src/cli/decode/packets.js'
import statements from '../../rules/statements.json' with { type: 'json' }
import { bytesOf, readVectors, senderOf, type Vector } from '../wire/vector-files.js'

/** More than this is only filled memory. */
const mostFill = 2 ** 24
const known = new Set(statements.map(({ id }) => id))
const isSmall = ({ fill }: Vector): boolean => (fill?.count ?? 0) < mostFill

/** What is wrong with the cover of the bytes, or nothing. */
function gaps(packets: readonly ShownPacket[], size: number): string[] {
  let end = 0
  const found: string[] = []
  for (const { type, offset, length, fields, valid } of packets) {
    if (offset !== end) found.push(`${type} at ${offset}, not ${end}`)
    end = offset + length
    let at = 0
    for (const field of fields) {
      if (field.offset !== at || field.length < 1) found.push(`${field.name} at ${field.offset}`)
      if (valid && field.name === 'not read') found.push(`not read at ${at}`)
      at += field.length
    }
    if (at !== length) found.push(`${type}: ${at} of ${length} bytes`)
  }
  return end === size ? found : [...found, `${end} of ${size} bytes`]
}

/** What differs from what the vector says. */
function differences(vector: Vector, version: 4 | 5): string[] {
  const bytes = bytesOf(vector)
  const packets = [...packetsOf(bytes, senderOf(vector), version)]
  const found = gaps(packets, bytes.length)
  const broken = packets.filter(({ valid }) => !valid)
  // What only a session shows is valid by its bytes.
  if (vector.valid !== (broken.length === 0)) found.push(vector.valid ? 'broken' : 'valid')
  const named = broken.flatMap(({ error }) => error?.statement ?? [])
  const wanted = vector.statements ?? []
  if (!vector.valid && wanted.length > 0 && !named.some((id) => wanted.includes(id)))
    found.push(`${named.join() || 'nothing'} in place of ${wanted.join()}`)
  if (version === 5) found.push(...named.filter((id) => !known.has(id)))
  return found.map((text) => `${vector.name}: ${text}`)
}

describe('decode', () => {
  it('judges every vector of 5.0, names the statement that it breaks, and covers each byte', () => {
    const vectors = readVectors('../../rules/vectors.json').filter(
      (vector) => vector.layer !== 'session' && isSmall(vector),
    )
    expect(vectors.length).toBeGreaterThan(690)
    expect(vectors.flatMap((vector) => differences(vector, 5))).toEqual([])
  })

  it('judges every vector of 3.1.1', () => {
    const vectors = readVectors('vectors-311.json')
    expect(vectors.flatMap((vector) => differences(vector, 4))).toEqual([])
  })

  it('takes no text of a packet for a fault', () => {
    const topic = Buffer.from('malformed').toString('hex')
    const bytes = new Uint8Array(Buffer.from(`300d0009${topic}0031`, 'hex'))
    const [packet] = packetsOf(bytes, 'client', 5)
    expect(packet?.fields.map(({ value }) => value).slice(2)).toEqual(['malformed', 0, '1'])
  })

  it('covers any bytes, and never throws', () => {
    const seeds = readVectors('../../rules/vectors.json').filter(({ fill }) => fill === undefined)
    let state = 1
    const random = (below: number): number => {
      state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
      return Math.floor((state / 2 ** 32) * below)
    }
    const found: string[] = []
    for (let round = 0; round < 6000; round++) {
      const bytes =
        round % 2 > 0
          ? Uint8Array.from({ length: 1 + random(60) }, () => random(256))
          : bytesOf(seeds[random(seeds.length)] as Vector)
      for (let count = random(4); count > 0; count--) bytes[random(bytes.length)] = random(256)
      if (bytes.length === 0) continue
      const version = round % 3 === 0 ? 4 : 5
      const from = ([undefined, 'client', 'server'] as const)[random(3)]
      const problems = gaps([...packetsOf(bytes, from, version)], bytes.length)
      if (problems.length > 0) found.push(`${Buffer.from(bytes).toString('hex')}: ${problems}`)
    }
    expect(found).toEqual([])
  })
})
