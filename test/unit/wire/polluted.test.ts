/** Somebody gave every object fields (prototype pollution): the codec reads and writes what it did before. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  Decoder,
  decode,
  Encoder,
  encode,
  type PacketInput,
  Scanner,
  WireError,
} from '../../../src/wire/index.js'
import { type Sample, samples } from './arbitrary-packets.js'
import { plain } from './vector-files.js'

/** Fields that every object gets for a moment. */
type Pollution = readonly (readonly [key: string, value: unknown])[]

/** Runs while every object has these fields; what is looked at must be looked at afterwards. */
function polluted<T>(fields: Pollution, enumerable: boolean, run: () => T): T {
  for (const [key, value] of fields)
    Object.defineProperty(Object.prototype, key, {
      value,
      enumerable,
      configurable: true,
      writable: true,
    })
  try {
    return run()
  } finally {
    for (const [key] of fields) delete (Object.prototype as unknown as Record<string, unknown>)[key]
  }
}

function outcome(run: () => unknown): unknown {
  try {
    return run()
  } catch (error) {
    if (!(error instanceof WireError)) throw error
    const { kind, message, offset } = error
    return [kind, message, offset]
  }
}

/** Everything that the codec does with a packet, as text. */
function story({ packet, protocolVersion, from }: Sample, bytes: Uint8Array): unknown[] {
  const options = { protocolVersion, from }
  return [
    () => encode(packet as PacketInput, options),
    () => {
      const encoder = new Encoder(options)
      encoder.write(packet as PacketInput)
      return encoder.take()
    },
    // Most fields absent: none of them is made up.
    () => encode({ type: packet.type } as PacketInput, options),
    () => encode({ type: 'publish', topic: 'a' }, options),
    () => encode({ type: 'subscribe', packetId: 1, subscriptions: [{ filter: 'a' }] }, options),
    () => encode({ type: 'connect', will: { topic: 'w' } } as PacketInput, options),
    () => encode({ type: 'disconnect', properties: {} }, options),
    () => encode({ type: 'connect' }, {}),
    () => decode(bytes, options),
    () => decode(bytes, { from }),
    () => [...new Decoder(options).push(bytes)],
    () => {
      const scanner = new Scanner(options)
      scanner.push(bytes)
      return [scanner.next(), scanner.packet()]
    },
  ].map(outcome)
}

const names: Pollution = [
  ...([0, 1, 2, 3, 4] as const).map((value) => ['qos', value] as const),
  ['type', 'pingreq'],
  ['topic', 'polluted'],
  ['payload', Uint8Array.of(1)],
  ['retain', true],
  ['dup', true],
  ['packetId', 7],
  ['properties', { contentType: 'polluted' }],
  ['reasonCode', 0x87],
  ['reasonCodes', [0]],
  ['sessionPresent', true],
  ['protocolName', 'MQIsdp'],
  ['protocolVersion', 4],
  ['cleanStart', false],
  ['keepAlive', 7],
  ['clientId', 'polluted'],
  ['will', { topic: 'polluted' }],
  ['username', 'polluted'],
  ['password', Uint8Array.of(1)],
  ['subscriptions', [{ filter: 'polluted' }]],
  ['filters', ['polluted']],
  ['filter', 'polluted'],
  ['noLocal', true],
  ['retainAsPublished', true],
  ['retainHandling', 2],
  ['from', 'server'],
  ['maximumPacketSize', 3],
  ['scanner', { frames: () => undefined }],
  ['topicAlias', 5],
  ['userProperties', [['polluted', 'polluted']]],
  ['subscriptionIdentifiers', [7]],
  ['authenticationMethod', 'polluted'],
  ['authenticationData', Uint8Array.of(1)],
  ['sessionExpiryInterval', 7],
  ['serverReference', 'polluted'],
  ['contentType', 'polluted'],
  ...[0, 4, 5, 6, 7, 10, 12, 20, 27, 29, 30, 32, 43, 99, 127].map(
    (id) => [String(id), ['contentType', 6, 0xffff]] as const,
  ),
]

describe('every object has', () => {
  const some = fc.sample(samples, { numRuns: 30, seed: 13 })
  const wrong =
    'f0021800 30070001610304000000 f007180426000161 3004000161ff 101400044d51545405020000041600017800016300 300600016102040000'

  const told = some.map((sample, index) => {
    const bytes = encode(sample.packet as PacketInput, sample)
    const odd = new Uint8Array(Buffer.from(wrong.split(' ')[index % 6] as string, 'hex'))
    const stories = (): unknown[][] => [story(sample, bytes), story(sample, odd)]
    return { stories, before: stories().map(plain) }
  })

  it.each(names)('%s: packets are written and read as if it had not', (key, value) => {
    for (const [index, { stories, before }] of told.entries())
      expect(polluted([[key, value]], index % 2 === 0, stories).map(plain)).toEqual(before)
  })

  it('a field: packets that are instances of a class, with getters, are written all the same', () => {
    class Given {
      readonly type = 'publish'
      get topic(): string {
        return 'a'
      }
      get qos(): number {
        return 1
      }
      readonly packetId = 7
    }
    const before = encode(new Given())
    expect(polluted([['qos', 2]], true, () => encode(new Given()))).toEqual(before)
  })
})

describe('a subscription that is no object', () => {
  const packet = { type: 'subscribe', packetId: 1, subscriptions: [null] } as unknown as PacketInput
  it.each([4, 5] as const)(
    'is refused on level %i, whatever fields every object has',
    (protocolVersion) => {
      const clean = outcome(() => encode(packet, { protocolVersion }))
      expect((clean as readonly unknown[])[1]).toContain('subscriptions')
      expect(
        polluted([['filter', 'a']], true, () => outcome(() => encode(packet, { protocolVersion }))),
      ).toEqual(clean)
    },
  )
})
