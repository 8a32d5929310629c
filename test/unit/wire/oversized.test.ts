import { describe, expect, it } from 'vitest'
import { Framer } from '../../../src/wire/framer.js'
import { encode, type PacketInput, type PublishPacket, WireError } from '../../../src/wire/index.js'
import { PublishView } from '../../../src/wire/publish.js'
import { TopicTable } from '../../../src/wire/topic-table.js'
import { thrown, varint } from './hex.js'

function publish(given: Partial<PublishPacket>, protocolVersion: 4 | 5 = 5): Uint8Array {
  return encode({ type: 'publish', topic: 'a/b', ...given } as PacketInput, { protocolVersion })
}

function skipping(maximumPacketSize: number, protocolVersion: 4 | 5 = 5): Framer {
  const passes = { splits: true, skips: true, sizeLimit: (): number => 100_000 }
  return new Framer({ from: 'server', protocolVersion, maximumPacketSize, ...passes })
}

type Seen = { readonly size: number; readonly packet: PublishPacket; readonly sample: number[] }

/** Everything that is exposed of a stream in these pieces, and the most memory that an incomplete frame took. */
function walk(framer: Framer, pieces: Iterable<Uint8Array>): { seen: Seen[]; most: number } {
  const view = new PublishView()
  const topics = new TopicTable()
  const seen: Seen[] = []
  let most = 0
  for (const piece of pieces) {
    framer.push(piece)
    while (framer.next()) {
      framer.read(view, topics)
      seen.push({ size: framer.size, packet: view.packet(), sample: [...(framer.apart ?? [])] })
    }
    most = Math.max(most, framer.cost)
  }
  return { seen, most }
}

function* cut(bytes: Uint8Array, size: number): Generator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.slice(at, at + size)
}

const payload = Uint8Array.from({ length: 5000 }, (_, index) => index % 251)
const userProperties: [string, string][] = [['a', 'b']]
const properties = { contentType: 'x'.repeat(200), topicAlias: 4, userProperties }

describe('a PUBLISH over the limit', () => {
  it.each([1, 2, 3, 7, 64, 300, 4999, 100_000])(
    'in pieces of %i bytes: topic, identifier and properties are shown, and what follows is intact',
    (size) => {
      for (const version of [4, 5] as const) {
        const head = {
          qos: 2,
          packetId: 77,
          retain: true,
          properties: version === 5 ? properties : {},
        } as const
        const large = { ...head, payload }
        const small = {
          topic: 'next',
          qos: 1,
          packetId: 3,
          payload: payload.subarray(0, 9),
        } as const
        const bytes = Buffer.concat(
          [small, large, large, small].map((each) => publish(each, version)),
        )
        const { seen } = walk(skipping(1000, version), cut(bytes, size))
        const shown = { topic: 'a/b', ...head, payload: new Uint8Array() }
        expect(seen.map(({ packet }) => packet)).toMatchObject([small, shown, shown, small])
        expect(seen[1]?.size).toBe(publish(large, version).length)
        expect(seen[2]?.sample).toEqual([...payload.subarray(0, 64)])
      }
    },
  )

  it('with exactly the limit before its payload is shown; with one byte more it is refused', () => {
    const bytes = publish({ topic: 't'.repeat(100), qos: 1, packetId: 1, payload })
    const head = bytes.length - payload.length
    for (const size of [1, 100, 10_000]) {
      expect(walk(skipping(head), cut(bytes, size)).seen).toHaveLength(1)
      const error = thrown(() => walk(skipping(head - 1), cut(bytes, size)))
      expect(error).toMatchObject({ kind: 'too-large' })
    }
  })

  it('that begins behind a large packet is not read into the payload of that one', () => {
    const large = publish({ payload: new Uint8Array(20_000) })
    const framer = skipping(30_000)
    framer.push(large.subarray(0, 10_000))
    expect([framer.next(), framer.room?.length]).toEqual([false, large.length - 10_000])
    const next = publish({ payload: new Uint8Array(50_000) }).subarray(0, 100)
    framer.push(Buffer.concat([large.subarray(10_000), next]))
    expect([framer.next(), framer.next(), framer.pending]).toEqual([true, false, 100])
    expect(framer.room).toBeUndefined()
  })

  it('takes no more memory than what stands before its payload, whatever its size and however it comes', () => {
    const head = publish({ qos: 1, packetId: 1, properties, payload: new Uint8Array(2) })
    const bytes = Uint8Array.from(Buffer.from(`32${varint(200_000_000)}`, 'hex'))
    const framer = skipping(1000)
    let most = 0
    let came = bytes.length
    for (const piece of [bytes, head.subarray(3), ...cut(new Uint8Array(4_000_000), 65_536)]) {
      framer.push(piece)
      expect(framer.next()).toBe(false)
      most = Math.max(most, framer.cost)
      came += piece === bytes ? 0 : piece.length
      expect(framer.room).toBeUndefined()
    }
    expect(most).toBeLessThan(head.length + 70)
    expect(framer.pending).toBe(came)
  })

  it.each([
    ['a topic', publish({ topic: 't'.repeat(2000) })],
    ['properties', publish({ properties: { contentType: 'p'.repeat(2000) } })],
    [
      'properties of which one byte is too much',
      publish({ properties: { contentType: 'p'.repeat(990) }, payload }),
    ],
    [
      'another packet',
      encode({
        type: 'puback',
        packetId: 1,
        reasonCode: 0,
        properties: { reasonString: 'r'.repeat(2000) },
      }),
    ],
  ])('with %s beyond the limit: 0x95', (_name, bytes) => {
    for (const size of [1, 100, 10_000]) {
      const error = thrown(() => walk(skipping(1000), cut(bytes, size)))
      expect(error).toMatchObject({ kind: 'too-large', reasonCode: 0x95 })
    }
  })

  it('whose contents break a rule is an error once it has come in, whatever the limit', () => {
    const bytes = publish({ topic: 'abc', payload })
    bytes[5] = 0xff
    for (const size of [1, 100, 10_000]) {
      expect(thrown(() => walk(skipping(1000), cut(bytes, size)))).toMatchObject({
        kind: 'malformed',
      })
    }
    const nameless = Uint8Array.of(0x30, 3, 0, 0, 1)
    expect(thrown(() => walk(skipping(4, 4), [nameless]))).toMatchObject({ kind: 'protocol' })
  })
})

describe('a Will Delay Interval in a PUBLISH', () => {
  const bytes = Uint8Array.from([0x30, 12, 0, 1, 0x74, 7, 0x18, 0, 0, 0, 5, 1, 1, 0x78])

  it('is read past by a lenient view, and is no property of the message', () => {
    const framer = skipping(1000)
    const view = new PublishView(true)
    framer.push(bytes)
    expect(framer.next()).toBe(true)
    framer.read(view, new TopicTable())
    expect([view.willDelay, view.properties(), [...view.payload()]]).toEqual([
      true,
      { payloadFormatIndicator: 1 },
      [0x78],
    ])
  })

  it.each([
    ['twice', [0x18, 0, 0, 0, 5, 0x18, 0, 0, 0, 5]],
    ['cut off', [0x18, 0, 0]],
    ['beside another that is none of a PUBLISH', [0x18, 0, 0, 0, 5, 0x11, 0, 0, 0, 5]],
  ])('%s is malformed, or breaks the rule, all the same', (_name, block) => {
    const framer = skipping(1000)
    framer.push(Uint8Array.from([0x30, 4 + block.length, 0, 1, 0x74, block.length, ...block]))
    framer.next()
    expect(thrown(() => framer.read(new PublishView(true), new TopicTable()))).toBeInstanceOf(
      WireError,
    )
  })
})
