/** Output buffers over real sockets: what is under way is not written over, whatever the pace of the peer, and however it ends. */
import { setImmediate as turn } from 'node:timers/promises'
import { expect, it } from 'vitest'
import type { Endpoint } from '../../../src/client/api/index.js'
import { connect } from '../../../src/client/node.js'
import { listenTcp } from '../../../src/transport/tcp.js'
import type { Accept, Listener, Transport } from '../../../src/transport/transport.js'
import { listenWebSocket } from '../../../src/transport/websocket-node.js'
import { Decoder } from '../../../src/wire/decode.js'
import { encode } from '../../../src/wire/encode.js'
import type { ClientPacket } from '../../../src/wire/packets.js'
import { hasOpenssl, selfSigned } from '../../support/certificates.js'

/** A peer that stops reading now and then, and notes the numbers that it is sent; a message that is not whole is -1. */
function noting(numbers: number[], most: number): Accept {
  return (transport: Transport) => {
    const decoder = new Decoder({ from: 'client' })
    let reads = 0
    const take = (bytes: Uint8Array): void => {
      for (const packet of decoder.push(bytes) as Iterable<ClientPacket>) {
        if (packet.type === 'connect') transport.write(encode({ type: 'connack' }))
        if (packet.type !== 'publish') continue
        const { payload = new Uint8Array(0) } = packet
        const number = new DataView(payload.buffer, payload.byteOffset).getUint32(0)
        numbers.push(payload.subarray(4).every((byte) => byte === number % 251) ? number : -1)
        if (numbers.length === most) transport.destroy()
      }
      if (++reads % 3 !== 0) return
      transport.pause?.()
      void turn().then(() => transport.resume?.())
    }
    const window = new Uint8Array(16_384)
    transport.open({
      buffer: () => window,
      read: (length) => take(window.slice(0, length)),
      chunk: (bytes) => take(new Uint8Array(bytes)),
      drain: () => undefined,
      closed: () => undefined,
    })
  }
}

const identity = hasOpenssl() ? selfSigned('localhost') : undefined
const tls = identity && { ca: identity.cert }

/** Where a listener is to be found. */
function at({ url }: Listener): Endpoint {
  return url.startsWith('mqtts') && tls !== undefined ? { url, tls } : url
}

const ways: [string, (accept: Accept) => Promise<Listener>][] = [
  ...(identity === undefined
    ? []
    : [
        ['TLS', (accept: Accept) => listenTcp({ tls: identity }, accept)] as [
          string,
          (accept: Accept) => Promise<Listener>,
        ],
      ]),
  ['tcp', (accept) => listenTcp({}, accept)],
  ['WebSocket', (accept) => listenWebSocket({}, accept)],
]

it.each(ways)(
  '%s: thousands of messages of all sizes arrive as they were posted, each buffer used many times',
  async (_, listen) => {
    const numbers: number[] = []
    const listener = await listen(noting(numbers, Number.POSITIVE_INFINITY))
    const client = await connect(at(listener), { reconnect: false })
    const payload = new Uint8Array(40_000)
    for (let number = 0; number < 6000; ) {
      const size = number % 500 === 499 ? 40_000 : 4 + (number % 997)
      const bytes = payload.subarray(0, size).fill(number % 251)
      new DataView(bytes.buffer).setUint32(0, number)
      if (client.post('numbers', bytes)) number += 1
      else await client.writable
    }
    await client.flush()
    await client.disconnect()
    while (numbers.length < 6000) await turn()
    expect(numbers).toEqual(Array.from({ length: 6000 }, (_unused, index) => index))
    await listener.close()
  },
)

it.each(ways)(
  '%s: cut in the middle, another client goes on with the same buffers, and nothing of the one reaches the other',
  async (_, listen) => {
    const first: number[] = []
    const second: number[] = []
    const cut = await listen(noting(first, 300))
    const whole = await listen(noting(second, Number.POSITIVE_INFINITY))
    const [one, other] = await Promise.all([
      connect(at(cut), { reconnect: false }),
      connect(at(whole), { reconnect: false }),
    ])
    const bytes = new Uint8Array(500)
    const view = new DataView(bytes.buffer)
    for (let number = 0; number < 4000; ) {
      view.setUint32(0, 1_000_000 + number)
      bytes.fill((1_000_000 + number) % 251, 4)
      if (one.state === 'connected') one.post('one', bytes)
      view.setUint32(0, number)
      bytes.fill(number % 251, 4)
      if (other.post('other', bytes)) number += 1
      else await other.writable
      if (number % 50 === 0) await turn()
    }
    await other.flush()
    while (second.length < 4000) await turn()
    expect(second).toEqual(Array.from({ length: 4000 }, (_unused, index) => index))
    expect(first).toEqual(
      Array.from({ length: first.length }, (_unused, index) => 1_000_000 + index),
    )
    one.destroy()
    await other.disconnect()
    await Promise.all([cut.close(), whole.close()])
  },
)
