/** A PUBLISH that is read where it lies: its fields, its properties by words or byte by byte, and where the bytes behind it end. */
import { describe, expect, it } from 'vitest'
import { WILL } from '../../../src/wire/constants.js'
import { Framer } from '../../../src/wire/framer.js'
import { encode, WireError } from '../../../src/wire/index.js'
import { decodeProperties, validateProperties } from '../../../src/wire/properties.js'
import { PublishView } from '../../../src/wire/publish.js'
import { TopicTable } from '../../../src/wire/topic-table.js'

const text = new TextEncoder()
const framerOf = (protocolVersion: 4 | 5 = 5) =>
  new Framer({ from: 'server', protocolVersion, maximumPacketSize: 1000 })

function viewOf(bytes: Uint8Array, version: 4 | 5 = 5): PublishView {
  const framer = framerOf(version)
  framer.push(bytes)
  expect(framer.next()).toBe(true)
  const view = new PublishView()
  view.read(framer.bytes, framer.start, framer.body, framer.end, version, 'server')
  return view
}

function identifiersOf(view: PublishView): number[] {
  const seen: number[] = []
  view.forEachSubscriptionIdentifier((identifier) => seen.push(identifier))
  return seen
}

const countsOf = (view: PublishView): number[] => [
  view.userPropertyCount,
  view.subscriptionIdentifierCount,
]

describe('PublishView', () => {
  const head = { qos: 2, dup: true, retain: true, packetId: 513 } as const
  const userProperties = ['a=b', '='].map((pair) => pair.split('=') as [string, string])
  const properties = {
    ...{ topicAlias: 7, messageExpiryInterval: 60, responseTopic: 'r', payloadFormatIndicator: 1 },
    ...{
      subscriptionIdentifiers: [1, 16_384, 5],
      correlationData: Uint8Array.of(0x0b, 1),
      userProperties,
    },
  }
  const packet = {
    type: 'publish',
    topic: 'a/ü',
    ...head,
    payload: Uint8Array.of(9, 8, 7),
    properties,
  } as const

  it('reads every field where it lies', () => {
    const bytes = Buffer.concat([Buffer.of(0xd0, 0), encode(packet), Buffer.of(0xd0, 0)])
    const view = new PublishView()
    view.read(bytes, 2, 4, bytes.length - 2, 5, 'server')
    expect(view).toMatchObject({ ...head, topicAlias: 7 })
    expect([view.topic(), view.properties(), [...view.payload()]]).toEqual([
      'a/ü',
      properties,
      [9, 8, 7],
    ])
    expect(view.payload().buffer).toBe(bytes.buffer)
    expect([countsOf(view), identifiersOf(view)]).toEqual([
      [2, 3],
      [1, 16_384, 5],
    ])
  })

  it('forgets what the packet before had', () => {
    const view = viewOf(encode(packet))
    const plain = encode({ type: 'publish', topic: 'b' })
    view.read(plain, 0, 2, plain.length, 5, 'server')
    expect(view).toMatchObject({ qos: 0, dup: false, retain: false, packetId: 0, topicAlias: 0 })
    expect([countsOf(view), identifiersOf(view), view.properties(), view.payload().length]).toEqual(
      [[0, 0], [], {}, 0],
    )
  })

  it('counts every Subscription Identifier and notes the first 256: a bomb of them takes no memory', () => {
    const subscriptionIdentifiers = Array.from({ length: 300 }, (_, index) => index + 1)
    const bytes = encode({ type: 'publish', topic: 'a', properties: { subscriptionIdentifiers } })
    const view = new PublishView()
    view.read(bytes, 0, 3, bytes.length, 5, 'server')
    expect([view.subscriptionIdentifierCount, view.subscriptionIdentifiers.length]).toEqual([
      300, 256,
    ])
    expect(identifiersOf(view)).toEqual(subscriptionIdentifiers.slice(0, 256))
    // `properties` gives them all, and the next packet its own.
    expect(view.properties()).toEqual({ subscriptionIdentifiers })
    const next = encode({
      type: 'publish',
      topic: 'a',
      properties: { subscriptionIdentifiers: [7] },
    })
    view.read(next, 0, 2, next.length, 5, 'server')
    expect(identifiersOf(view)).toEqual([7])
  })

  it('lets go of the buffer when it is released', () => {
    const view = viewOf(encode(packet))
    view.release()
    expect([view.bytes.length, view.payload().length, view.bytes.buffer.byteLength]).toEqual([
      0, 0, 0,
    ])
  })

  it('has no properties on 3.1.1', () => {
    const bytes = encode(
      { type: 'publish', topic: 'b', payload: Uint8Array.of(0, 1) },
      { protocolVersion: 4 },
    )
    const view = viewOf(bytes, 4)
    expect([view.properties(), [...view.payload()]]).toEqual([{}, [0, 1]])
  })

  it('takes an empty topic for its alias, and leaves the error of the packet where it lies', () => {
    const aliased = encode({ type: 'publish', topic: '', properties: { topicAlias: 1 } })
    expect(viewOf(aliased).topic()).toBe('')
    const bytes = Buffer.from('d000300400000078', 'hex')
    const attempt = (): void => new PublishView().read(bytes, 2, 4, 8, 5, 'server')
    expect(attempt).toThrow(expect.objectContaining({ kind: 'protocol', offset: 2 }))
  })
})

describe('property blocks', () => {
  it('are validated by packet and sender', () => {
    const expiry = Buffer.from('1100000001', 'hex')
    const validate = (type: number, sender: 'client' | 'server') => () =>
      validateProperties(expiry, 0, 5, type, sender)
    expect(validate(14, 'client')).not.toThrow()
    expect(validate(14, 'server')).toThrow(expect.objectContaining({ kind: 'protocol' }))
    expect(validate(WILL, 'client')).toThrow(expect.objectContaining({ kind: 'malformed' }))
    expect(decodeProperties(expiry, 0, 5, 1, 'client')).toEqual({ sessionExpiryInterval: 1 })
    expect(decodeProperties(expiry, 5, 5, 1, 'client')).toEqual({})
  })
})

/** A PUBLISH with one User Property of these bytes; `cut` takes that many off the value's length. */
function withPair(name: Uint8Array, value: Uint8Array, cut = 0): Uint8Array {
  const pair = [
    0x26,
    name.length >> 8,
    name.length & 255,
    ...name,
    (value.length + cut) >> 8,
    (value.length + cut) & 255,
    ...value,
  ]
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
  const good = [
    '',
    'a',
    'abc',
    'abcd',
    'abcde',
    'abcdefgh',
    'x'.repeat(40),
    'é',
    'abcé',
    'größe 😀',
    '\u007f\u0001',
    '\ufeff',
  ]
  const bad = [
    ...Array.from({ length: 9 }, (_, place) => text.encode('abcdefghi').with(place, 0)),
    ...['ff', '616263c3', 'eda080', '61616161c080'].map((hex) =>
      Uint8Array.from(Buffer.from(hex, 'hex')),
    ),
  ].map((bytes) => [bytes] as const)

  /** As name and as value, at any place. */
  function expectJudged(word: Uint8Array, verdict: unknown[]): void {
    for (const packet of [
      withPair(word, text.encode('value')),
      withPair(text.encode('name'), word),
    ]) {
      for (const at of [0, 1, 2, 3]) {
        const slow = judged(packet, at, false)
        expect(slow).toMatchObject(verdict)
        expect(judged(packet, at, true)).toEqual(slow)
      }
    }
  }

  it.each(good)('%j is text, as name and as value', (word) => {
    expectJudged(text.encode(word), [1, 'a', { userProperties: [expect.arrayContaining([word])] }])
  })

  it.each(bad)('bytes %o are none, as name and as value', (word) => {
    expectJudged(word, ['malformed', 'string is not well-formed UTF-8', expect.any(Number), 0x81])
  })

  it('one that ends too late is refused as it is', () => {
    for (const cut of [1, 5, 300]) {
      const packet = withPair(text.encode('name'), text.encode('value'), cut)
      expect(judged(packet, 2, true)).toEqual(judged(packet, 2, false))
      expect(judged(packet, 2, true)).toMatchObject([
        'malformed',
        'packet is too short',
        expect.any(Number),
        0x81,
      ])
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
  const publish = encode({ type: 'publish', topic: 'a', payload: Uint8Array.of(1, 2) })

  it('the chunk, where the packet lies in it', () => {
    const framer = framerOf()
    framer.push(new Uint8Array([...publish, ...publish, 0, 0]), publish.length * 2)
    expect([framer.next(), framer.limit, framer.next(), framer.limit]).toEqual([
      true,
      publish.length * 2,
      true,
      publish.length * 2,
    ])
  })

  it('the packet, where it came in two', () => {
    const framer = framerOf()
    framer.push(publish.slice(0, 3))
    framer.next()
    framer.push(new Uint8Array([...publish.slice(3), ...publish]))
    expect([framer.next(), framer.end, framer.limit]).toEqual([
      true,
      publish.length,
      publish.length,
    ])
    expect([framer.next(), framer.limit]).toEqual([true, publish.length * 2 - 3])
  })
})
