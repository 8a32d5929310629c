/** Errors that are nobody's bytes: memory that is not to be had, a view that cannot be read. They pass through as they are. */
import { describe, expect, it, vi } from 'vitest'
import { Decoder, decode, WireError } from '../../../src/wire/index.js'
import { PublishView } from '../../../src/wire/publish.js'
import { thrown } from './hex.js'

const outOfMemory = new RangeError('Array buffer allocation failed')

const bytesOf = (hex: string): Uint8Array => new Uint8Array(Buffer.from(hex, 'hex'))

/** What is thrown while no copy can be made of any bytes. */
function thrownWithoutMemory(attempt: () => unknown): unknown {
  const subarray = vi
    .spyOn(Object.getPrototypeOf(Uint8Array.prototype) as Uint8Array, 'subarray')
    .mockImplementation(() => {
      throw outOfMemory
    })
  try {
    return thrown(attempt)
  } finally {
    subarray.mockRestore()
  }
}

describe('an error that the bytes are not to blame for', () => {
  it('leaves decode as it is, and is no WireError', () => {
    // AUTH with data, CONNECT with a password, PUBLISH with a payload: each is copied out.
    const packets: [hex: string, from: 'client' | 'server'][] = [
      ['f00a18081500016d16000178', 'server'],
      ['101100044d5154540542000000000163000178', 'client'],
      ['30050001610078', 'server'],
    ]
    for (const [hex, from] of packets) {
      expect(decode(Buffer.from(hex, 'hex'), { from })).toHaveProperty('type')
      expect(thrownWithoutMemory(() => decode(bytesOf(hex), { from }))).toBe(outOfMemory)
    }
  })

  it('leaves the view of a PUBLISH as it is, too', () => {
    const bytes = bytesOf('30050001610078')
    const view = new PublishView()
    view.read(bytes, 0, 2, 7, 5, 'server')
    expect(thrownWithoutMemory(() => view.payload())).toBe(outOfMemory)
  })

  it('leaves the Decoder as it is, while the peer’s errors come behind the packets before them', () => {
    const decoder = new Decoder({ from: 'server' })
    expect(thrownWithoutMemory(() => decoder.push(bytesOf('30050001610078')))).toBe(outOfMemory)
    const carrying = new Decoder({ from: 'server' })
    expect(thrownWithoutMemory(() => carrying.push(bytesOf('3005')))).toBe(outOfMemory)
    const peer = new Decoder({ from: 'server' })
    const packets = peer.push(bytesOf('d00000'))
    expect(thrown(() => [...packets])).toBeInstanceOf(WireError)
  })
})
