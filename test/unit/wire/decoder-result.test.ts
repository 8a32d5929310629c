/** What `Decoder.push` gives back can be walked more than once, each time to the same end. */
import { expect, it } from 'vitest'
import { Decoder } from '../../../src/wire/decode.js'
import type { Packet } from '../../../src/wire/packets.js'

it('a result that ends in an error ends in it each time it is walked', () => {
  const result = new Decoder({ from: 'server' }).push(Uint8Array.of(0xd0, 0, 0xd0, 0, 0x00, 0))
  for (const _round of [1, 2]) {
    const packets: Packet[] = []
    expect(() => {
      for (const packet of result) packets.push(packet)
    }).toThrow(expect.objectContaining({ kind: 'malformed', reasonCode: 0x81 }))
    expect(packets.map(({ type }) => type)).toEqual(['pingresp', 'pingresp'])
  }
})

it('nothing is pending behind an error: what was held of a packet is let go', () => {
  const decoder = new Decoder({ from: 'server' })
  decoder.push(Uint8Array.of(0xd0, 0, 0x30, 0x80, 0x80))
  expect(decoder.pending).toBe(3)
  const result = decoder.push(Uint8Array.of(0x80, 0x80))
  expect(() => [...result]).toThrow(expect.objectContaining({ kind: 'malformed' }))
  expect(decoder.pending).toBe(0)
})
