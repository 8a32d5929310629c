/** Acknowledgements read where they lie: exactly what the decoder makes of them. */
import { describe, expect, it } from 'vitest'
import { takeAck } from '../../../src/client/connection/packet-reader.js'
import type { ConnectionHost } from '../../../src/client/connection/ports.js'
import { UNKNOWN } from '../../../src/client/session/send-window.js'
import { decodeServerPacket } from '../../../src/wire/decode-server.js'
import { WireError } from '../../../src/wire/error.js'

const names: Readonly<Record<number, string>> = { 4: 'puback', 5: 'pubrec', 7: 'pubcomp' }

/** A session that notes what it hears. */
function noting(): { readonly heard: unknown[]; readonly host: ConnectionHost } {
  const heard: unknown[] = []
  const handleAck = (type: number, id: number, reasonCode: number): number => {
    heard.push([names[type], id, reasonCode])
    return UNKNOWN
  }
  const handlePubrel = (id: number): void => void heard.push(['pubrel', id])
  const windows = { sendWindow: { handleAck }, receiveWindow: { handlePubrel } }
  const session = { state: 'connected', ...windows, expectConnected: () => true }
  return { heard, host: { session } as unknown as ConnectionHost }
}

function decoded(bytes: Uint8Array, version: 4 | 5): unknown[] | undefined {
  try {
    const packet = decodeServerPacket(bytes, 0, 2, bytes.length, version)
    if (packet.type === 'pubrel') return [packet.type, packet.packetId]
    return 'packetId' in packet && 'reasonCode' in packet
      ? [packet.type, packet.packetId, packet.reasonCode]
      : []
  } catch (error) {
    if (error instanceof WireError) return undefined
    throw error
  }
}

const hex = ' 01 0000 0001 0102 ffff 00010000 000100011f 0001100000'.split(' ')
const bodies = hex.map((body) => [...Buffer.from(body, 'hex')])
for (let code = 0; code < 256; code++) bodies.push([0, 9, code], [0, 0, code])

describe('an acknowledgement', () => {
  const kinds = [4, 5, 6, 7].flatMap((type) => [[type, 4] as const, [type, 5] as const])

  it.each(kinds)('of type %i in version %i is taken only where it decodes', (type, version) => {
    let taken = 0
    for (const body of bodies) {
      const bytes = Uint8Array.from([(type << 4) | (type === 6 ? 2 : 0), body.length, ...body])
      const { heard, host } = noting()
      if (!takeAck(host, type, bytes, 2, bytes.length, version)) {
        expect(heard).toEqual([])
        continue
      }
      taken += 1
      expect(heard).toEqual([decoded(bytes, version)])
    }
    expect(taken).toBeGreaterThanOrEqual(version === 4 ? 3 : 5)
  })

  it('before CONNACK ends the connection, and means nothing', () => {
    const { heard, host } = noting()
    const closed = {
      ...host,
      session: { ...host.session, state: 'connecting', expectConnected: () => false },
    } as unknown as ConnectionHost
    expect(takeAck(closed, 4, Uint8Array.of(0x40, 2, 0, 1), 2, 4, 5)).toBe(true)
    expect(heard).toEqual([])
  })
})
