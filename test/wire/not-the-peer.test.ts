/** Errors that are nobody's bytes: memory that is not to be had, a view that cannot be read. They pass through as they are. */
import { describe, expect, it } from 'vitest'
import { Decoder, decode, WireError } from '../../src/wire/index.js'
import { PublishView } from '../../src/wire/publish.js'

const outOfMemory = new RangeError('Array buffer allocation failed')

/** Bytes of which no copy can be made. */
class Stubborn extends Uint8Array {
  override subarray(): Uint8Array<ArrayBuffer> {
    throw outOfMemory
  }
}

/** As `Stubborn`, but only after the packet was looked at. */
const stubborn = (hex: string): Uint8Array => new Stubborn(Buffer.from(hex, 'hex'))

function thrown(attempt: () => unknown): unknown {
  try {
    attempt()
  } catch (error) {
    return error
  }
  return undefined
}

describe('an error that the bytes are not to blame for', () => {
  it('leaves decode as it is, and is no WireError (N36)', () => {
    // AUTH with data, CONNECT with a password, PUBLISH with a payload: each is copied out.
    const packets: [hex: string, from: 'client' | 'server'][] = [
      ['f00a18081500016d16000178', 'server'],
      ['101100044d5154540542000000000163000178', 'client'],
      ['30050001610078', 'server'],
    ]
    for (const [hex, from] of packets) {
      expect(decode(Buffer.from(hex, 'hex'), { from })).toHaveProperty('type')
      expect(thrown(() => decode(stubborn(hex), { from }))).toBe(outOfMemory)
    }
  })

  it('leaves the view of a PUBLISH as it is, too', () => {
    const bytes = stubborn('30050001610078')
    const view = new PublishView()
    view.read(bytes, 0, 2, 7, 5, 'server')
    expect(thrown(() => view.payload())).toBe(outOfMemory)
  })

  it('leaves the Decoder as it is, while the peer’s errors come behind the packets before them', () => {
    const decoder = new Decoder({ from: 'server' })
    expect(thrown(() => decoder.push(stubborn('30050001610078')))).toBe(outOfMemory)
    const carrying = new Decoder({ from: 'server' })
    expect(thrown(() => carrying.push(stubborn('3005')))).toBe(outOfMemory)
    const peer = new Decoder({ from: 'server' })
    const packets = peer.push(Buffer.from('d000' + '00', 'hex'))
    expect(thrown(() => [...packets])).toBeInstanceOf(WireError)
  })
})
