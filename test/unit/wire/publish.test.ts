import { describe, expect, it } from 'vitest'
import { WILL } from '../../../src/wire/constants.js'
import { Framer } from '../../../src/wire/framer.js'
import { encode } from '../../../src/wire/index.js'
import { decodeProperties, validateProperties } from '../../../src/wire/properties.js'
import { PublishView } from '../../../src/wire/publish.js'

function viewOf(bytes: Uint8Array, version: 4 | 5 = 5): PublishView {
  const framer = new Framer({ from: 'server', protocolVersion: version, maximumPacketSize: 1000 })
  framer.push(bytes)
  expect(framer.next()).toBe(true)
  const view = new PublishView()
  view.read(framer.bytes, framer.start, framer.body, framer.end, version, 'server')
  return view
}

describe('PublishView', () => {
  const packet = {
    type: 'publish',
    topic: 'a/ü',
    qos: 2,
    dup: true,
    retain: true,
    packetId: 513,
    payload: Uint8Array.of(9, 8, 7),
    properties: {
      topicAlias: 7,
      messageExpiryInterval: 60,
      subscriptionIdentifiers: [1, 16_384, 5],
      correlationData: Uint8Array.of(0x0b, 1),
      userProperties: [
        ['a', 'b'],
        ['', ''],
      ] as [string, string][],
      responseTopic: 'r',
      payloadFormatIndicator: 1,
    },
  } as const

  it('reads every field where it lies', () => {
    const bytes = Buffer.concat([Buffer.of(0xd0, 0), encode(packet as never), Buffer.of(0xd0, 0)])
    const view = new PublishView()
    view.read(bytes, 2, 4, bytes.length - 2, 5, 'server')
    expect([view.qos, view.dup, view.retain, view.packetId, view.topicAlias]).toEqual([2, true, true, 513, 7])
    expect([view.userPropertyCount, view.subscriptionIdentifierCount]).toEqual([2, 3])
    expect(view.topic()).toBe('a/ü')
    expect(view.properties()).toEqual(packet.properties)
    expect([...view.payload()]).toEqual([9, 8, 7])
    expect(view.payload().buffer).toBe(bytes.buffer)
    const seen: number[] = []
    view.forEachSubscriptionIdentifier((identifier) => seen.push(identifier))
    expect(seen).toEqual([1, 16_384, 5])
  })

  it('forgets what the packet before had', () => {
    const view = viewOf(encode(packet as never))
    const plain = encode({ type: 'publish', topic: 'b' })
    view.read(plain, 0, 2, plain.length, 5, 'server')
    expect([view.qos, view.dup, view.retain, view.packetId, view.topicAlias]).toEqual([0, false, false, 0, 0])
    expect([view.userPropertyCount, view.subscriptionIdentifierCount]).toEqual([0, 0])
    expect(view.properties()).toEqual({})
    expect(view.payload()).toHaveLength(0)
    view.forEachSubscriptionIdentifier(() => expect.unreachable())
  })

  it('counts every Subscription Identifier and notes the first 256: a bomb of them takes no memory', () => {
    const subscriptionIdentifiers = Array.from({ length: 300 }, (_, index) => index + 1)
    const bytes = encode({ type: 'publish', topic: 'a', properties: { subscriptionIdentifiers } })
    const view = new PublishView()
    view.read(bytes, 0, 3, bytes.length, 5, 'server')
    const seen: number[] = []
    view.forEachSubscriptionIdentifier((identifier) => seen.push(identifier))
    expect([view.subscriptionIdentifierCount, view.subscriptionIdentifiers.length, seen]).toEqual([300, 256, subscriptionIdentifiers.slice(0, 256)])
    // `properties` gives them all, and the next packet its own.
    expect(view.properties()).toEqual({ subscriptionIdentifiers })
    const next = encode({ type: 'publish', topic: 'a', properties: { subscriptionIdentifiers: [7] } })
    view.read(next, 0, 2, next.length, 5, 'server')
    const found: number[] = []
    view.forEachSubscriptionIdentifier((identifier) => found.push(identifier))
    expect(found).toEqual([7])
  })

  it('lets go of the buffer when it is released', () => {
    const view = viewOf(encode(packet as never))
    view.release()
    expect([view.bytes.length, view.payload().length, view.bytes.buffer.byteLength]).toEqual([0, 0, 0])
  })

  it('has no properties on 3.1.1', () => {
    const view = viewOf(encode({ type: 'publish', topic: 'b', payload: Uint8Array.of(0, 1) }, { protocolVersion: 4 }), 4)
    expect(view.properties()).toEqual({})
    expect([...view.payload()]).toEqual([0, 1])
  })

  it('takes an empty topic for its alias, and leaves the error of the packet where it lies', () => {
    expect(viewOf(encode({ type: 'publish', topic: '', properties: { topicAlias: 1 } })).topic()).toBe('')
    const bytes = Buffer.from('d000300400000078', 'hex')
    expect(() => new PublishView().read(bytes, 2, 4, 8, 5, 'server')).toThrow(expect.objectContaining({ kind: 'protocol', offset: 2 }))
  })
})

describe('property blocks', () => {
  it('are validated by packet and sender', () => {
    const expiry = Buffer.from('1100000001', 'hex')
    expect(() => validateProperties(expiry, 0, 5, 14, 'client')).not.toThrow()
    expect(() => validateProperties(expiry, 0, 5, 14, 'server')).toThrow(expect.objectContaining({ kind: 'protocol' }))
    expect(() => validateProperties(expiry, 0, 5, WILL, 'client')).toThrow(expect.objectContaining({ kind: 'malformed' }))
    expect(decodeProperties(expiry, 0, 5, 1, 'client')).toEqual({ sessionExpiryInterval: 1 })
    expect(decodeProperties(expiry, 5, 5, 1, 'client')).toEqual({})
  })
})
