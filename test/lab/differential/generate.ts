/** The packets of the differential run: valid, valid in their longer forms, and with a fault. The same seed gives the same bytes. */
import fc from 'fast-check'
import type { Packet, PacketInput } from '../../../src/wire/index.js'
import { encode } from '../../../src/wire/index.js'
import { type Sample, samples } from '../../unit/wire/arbitrary-packets.js'
import { codesOf } from '../../unit/wire/reference-decoder.js'
import { Random } from '../../world/random.js'
import { faulty, prolonged } from './faults.js'
import { handmade } from './handmade.js'

/** One packet of the run. */
export interface Case {
  /** Which one of its seed it is, from 0. */
  readonly number: number
  readonly bytes: Uint8Array
  readonly version: 4 | 5
  readonly from: 'client' | 'server'
  /** `encoded`: the shortest form. `long`: valid, with what could be left out. `faulty`: changed afterwards, most of them invalid. */
  readonly kind: 'encoded' | 'long' | 'faulty'
  /** What the bytes say, where nothing was changed. */
  readonly packet: Packet | undefined
  /** Why the valid packet that was drawn could not be encoded, where it could not. */
  readonly unencoded?: string
}

/** Packets of a batch. The number of a packet tells its batch. */
export const batchSize = 500

/** One batch of a seed. */
export function generate(seed: number, batch: number): Case[] {
  const random = new Random(seed * 1_000_003 + batch)
  const drawn = fc.sample(samples, { seed: random.next() | 0, numRuns: batchSize })
  return drawn.map((sample, index) =>
    makeCase(vary(sample, random), random, batch * batchSize + index),
  )
}

function makeCase(
  { packet, protocolVersion: version, from }: Sample,
  random: Random,
  number: number,
): Case {
  const shortest = encoded(packet, version)
  if (typeof shortest === 'string') {
    const bytes = handmade(version, from, random)
    return { number, bytes, version, from, kind: 'faulty', packet: undefined, unencoded: shortest }
  }
  const kind = random.pick(['encoded', 'encoded', 'long', 'faulty', 'faulty', 'faulty'] as const)
  if (kind === 'encoded') return { number, bytes: shortest, version, from, kind, packet }
  const long =
    version === 5 && random.chance(kind === 'long' ? 1 : 0.3)
      ? prolonged(shortest, random)
      : shortest
  if (kind === 'long') return { number, bytes: long, version, from, kind, packet }
  const bytes = random.chance(0.2) ? handmade(version, from, random) : faulty(long, version, random)
  return { number, bytes, version, from, kind, packet: undefined }
}

function encoded(packet: Packet, protocolVersion: 4 | 5): Uint8Array | string {
  try {
    return encode(packet as PacketInput, { protocolVersion })
  } catch (error) {
    return `${String(error)}: ${JSON.stringify(packet)}`
  }
}

function vary({ packet, protocolVersion, from }: Sample, random: Random): Sample {
  const codes =
    'reasonCode' in packet || 'reasonCodes' in packet
      ? codesOf(packet.type.toUpperCase(), from)
      : []
  if (protocolVersion === 5 && 'reasonCode' in packet && random.chance(0.7)) {
    packet.reasonCode = codes.includes(0x10) && random.chance(0.3) ? 0x10 : random.pick(codes)
    if (packet.type === 'connack') packet.sessionPresent &&= packet.reasonCode === 0
  }
  if (protocolVersion === 5 && 'reasonCodes' in packet)
    packet.reasonCodes = packet.reasonCodes.map(() => random.pick(codes))
  if ('properties' in packet) shuffle(packet, random)
  if (packet.type === 'publish' && random.chance(0.1)) {
    packet.payload = new Uint8Array(drawSize(random)).fill(random.below(256))
  }
  return { packet, protocolVersion, from }
}

// Where the Remaining Length takes another byte, and sometimes long strings.
function drawSize(random: Random): number {
  if (random.chance(0.0005)) return 2_097_152 - random.below(200)
  return (random.chance(0.1) ? 16_384 : 128) - random.below(random.chance(0.5) ? 10 : 128)
}

function shuffle(packet: Packet & { properties: object }, random: Random): void {
  const entries = Object.entries(packet.properties)
  const own = entries.find(([name]) => name === 'userProperties')
  // Names and values that repeat, that are empty, and names that an object puts in another order.
  if (own !== undefined && random.chance(0.2)) {
    const pair = () => [random.pick(['a', 'b', '1', '']), random.pick(['', 'x', 'y'])]
    own[1] = Array.from({ length: random.between(1, 5) }, pair)
  }
  for (let last = entries.length - 1; last > 0; last--) {
    const other = random.below(last + 1)
    const [moved] = entries.splice(other, 1, entries[last] as (typeof entries)[number])
    entries[last] = moved as (typeof entries)[number]
  }
  if (entries.length > 0 && random.chance(0.002)) {
    entries.push(['userProperties', [['long', 'x'.repeat(65_535 - random.below(2))]]])
  }
  packet.properties = Object.fromEntries(entries)
}
