/** What is read and written in place goes faster, and is judged the same. */
import { describe, expect, it } from 'vitest'
import { Framer } from '../../../src/wire/framer.js'
import { encode, type PublishPacket, WireError } from '../../../src/wire/index.js'
import { PublishView } from '../../../src/wire/publish.js'
import { TopicTable } from '../../../src/wire/topic-table.js'
import { Writer } from '../../../src/wire/writer.js'

const text = new TextEncoder()

/** A PUBLISH with one User Property of these bytes; `cut` takes that many off the value's length. */
function withPair(name: Uint8Array, value: Uint8Array, cut = 0): Uint8Array {
  const pair = [0x26, name.length >> 8, name.length & 255, ...name, (value.length + cut) >> 8, (value.length + cut) & 255, ...value]
  return Uint8Array.of(0x30, 4 + pair.length, 0, 1, 0x61, pair.length, ...pair)
}

/** What a view makes of it, with the bytes at hand for access by words or without, at any place of a larger array. */
function judged(packet: Uint8Array, at: number, byWords: boolean): unknown {
  const bytes = new Uint8Array(packet.length + at + 9).fill(0x61)
  bytes.set(packet, at)
  const view = new PublishView()
  const data = new DataView(bytes.buffer)
  const end = at + packet.length
  try {
    if (byWords) view.read(bytes, at, at + 2, end, 5, 'server', data, new TopicTable())
    else view.read(bytes, at, at + 2, end, 5, 'server')
    return [view.userPropertyCount, view.topic(), view.properties()]
  } catch (error) {
    if (!(error instanceof WireError)) throw error
    return [error.kind, error.message, error.offset, error.reasonCode]
  }
}

describe('User Properties, four bytes at a time', () => {
  const good = ['', 'a', 'abc', 'abcd', 'abcde', 'abcdefgh', 'x'.repeat(40), 'é', 'abcé', 'größe 😀', '\u007f\u0001', '\ufeff']
  const bad = [
    ...Array.from({ length: 9 }, (_, place) => {
      const bytes = text.encode('abcdefghi')
      bytes[place] = 0
      return bytes
    }),
    Uint8Array.of(0xff),
    Uint8Array.of(0x61, 0x62, 0x63, 0xc3),
    Uint8Array.of(0xed, 0xa0, 0x80),
    Uint8Array.of(0x61, 0x61, 0x61, 0x61, 0xc0, 0x80),
  ]

  it.each(good)('%j is text, as name and as value', (word) => {
    for (const packet of [withPair(text.encode(word), text.encode('value')), withPair(text.encode('name'), text.encode(word))]) {
      for (const at of [0, 1, 2, 3]) {
        const slow = judged(packet, at, false)
        expect(slow).toMatchObject([1, 'a', { userProperties: [expect.arrayContaining([word])] }])
        expect(judged(packet, at, true)).toEqual(slow)
      }
    }
  })

  it.each(bad.map((bytes) => [[...bytes].join(), bytes] as const))('bytes %s are none, as name and as value', (_bytes, word) => {
    for (const packet of [withPair(word, text.encode('value')), withPair(text.encode('name'), word)]) {
      for (const at of [0, 1, 2, 3]) {
        const slow = judged(packet, at, false)
        expect(slow).toMatchObject(['malformed', 'string is not well-formed UTF-8', expect.any(Number), 0x81])
        expect(judged(packet, at, true)).toEqual(slow)
      }
    }
  })

  it('one that ends too late is refused as it is', () => {
    for (const cut of [1, 5, 300]) {
      const packet = withPair(text.encode('name'), text.encode('value'), cut)
      expect(judged(packet, 2, true)).toEqual(judged(packet, 2, false))
      expect(judged(packet, 2, true)).toMatchObject(['malformed', 'packet is too short', expect.any(Number), 0x81])
    }
  })

  it('one that ends anywhere in its packet', () => {
    const whole = withPair(text.encode('name'), text.encode('value'))
    for (let length = 7; length < whole.length; length++) {
      const packet = whole.slice(0, length)
      packet[1] = length - 2
      packet[5] = length - 6
      expect(judged(packet, 1, true)).toEqual(judged(packet, 1, false))
    }
  })
})

describe('where what is held of the stream ends', () => {
  const publish = encode({ type: 'publish', topic: 'a', payload: Uint8Array.of(1, 2), qos: 0 } as PublishPacket)

  it('the chunk, where the packet lies in it', () => {
    const framer = new Framer({ from: 'server', protocolVersion: 5, maximumPacketSize: 100 })
    framer.push(new Uint8Array([...publish, ...publish, 0, 0]), publish.length * 2)
    expect([framer.next(), framer.limit, framer.next(), framer.limit]).toEqual([true, publish.length * 2, true, publish.length * 2])
  })

  it('the packet, where it came in two', () => {
    const framer = new Framer({ from: 'server', protocolVersion: 5, maximumPacketSize: 100 })
    framer.push(publish.slice(0, 3))
    framer.next()
    framer.push(new Uint8Array([...publish.slice(3), ...publish]))
    expect([framer.next(), framer.end, framer.limit]).toEqual([true, publish.length, publish.length])
    expect([framer.next(), framer.limit]).toEqual([true, publish.length * 2 - 3])
  })
})

describe('ASCII, written without a look at its length', () => {
  it('is written', () => {
    const writer = new Writer(0)
    expect(writer.ascii('a/b')).toBe(true)
    expect(writer.ascii('')).toBe(true)
    expect([writer.length, ...writer.take()]).toEqual([3, 0x61, 0x2f, 0x62])
  })

  it('other text is not, nor any part of it', () => {
    const writer = new Writer(1)
    expect([writer.ascii('abcé'), writer.length]).toEqual([false, 0])
    expect([writer.ascii('ab\u007f'), writer.length]).toEqual([true, 3])
  })
})
