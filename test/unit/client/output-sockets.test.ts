/** What is under way over a real stream is not written over, whatever the pace of the peer, and stays as it was when the caller has its memory back. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { setTimeout as passed, setImmediate as turn } from 'node:timers/promises'
import { describe, expect, it, onTestFinished } from 'vitest'
import { type Client, connect } from '../../../src/client/node.js'
import { listenTcp } from '../../../src/transport/tcp.js'
import type { Accept, Listener, Transport } from '../../../src/transport/transport.js'
import { listenUnix } from '../../../src/transport/unix.js'
import { listenWebSocket } from '../../../src/transport/websocket-node.js'
import { Decoder } from '../../../src/wire/decode.js'
import { encode } from '../../../src/wire/encode.js'
import type { ClientPacket } from '../../../src/wire/packets.js'
import { hasOpenssl, selfSigned } from '../../support/certificates.js'

/** A peer that pauses after every third read, or reads nothing behind CONNECT before `resume()`. */
class Peer {
  readonly payloads: Uint8Array[] = []
  #transport: Transport | undefined
  readonly #patient: boolean

  constructor(patient: boolean) {
    this.#patient = patient
  }

  readonly accept: Accept = (transport) => {
    this.#transport = transport
    const decoder = new Decoder({ from: 'client' })
    let reads = 0
    const take = (bytes: Uint8Array): void => {
      for (const packet of decoder.push(bytes) as Iterable<ClientPacket>) {
        if (packet.type === 'connect') {
          transport.write(encode({ type: 'connack' }))
          if (!this.#patient) transport.pause?.()
        }
        if (packet.type === 'publish') this.payloads.push(packet.payload.slice())
      }
      if (!this.#patient || ++reads % 3 !== 0) return
      transport.pause?.()
      void turn().then(() => transport.resume?.())
    }
    const window = new Uint8Array(65_536)
    transport.open({
      buffer: () => window,
      read: (length) => take(window.slice(0, length)),
      chunk: (bytes) => take(new Uint8Array(bytes)),
      drain: () => undefined,
      closed: () => undefined,
    })
  }

  resume(): void {
    this.#transport?.resume?.()
  }
}

const size = 12_000_000
const identity = hasOpenssl() ? selfSigned('localhost') : undefined
const tls = identity && { ca: identity.cert }

async function unix(accept: Accept): Promise<Listener> {
  const folder = mkdtempSync(path.join(tmpdir(), 'mqwire-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  return listenUnix({ path: path.join(folder, 's') }, accept)
}

const ways: [string, (accept: Accept) => Promise<Listener>][] = [
  ['tcp', (accept) => listenTcp({}, accept)],
  ['unix', unix],
  ['WebSocket', (accept) => listenWebSocket({ maximumPacketSize: 2 * size }, accept)],
]
if (identity !== undefined) ways.push(['TLS', (accept) => listenTcp({ tls: identity }, accept)])

describe.each(ways)('%s', (_name, listen) => {
  async function connected(peer: Peer): Promise<Client> {
    const listener = await listen(peer.accept)
    const { url } = listener
    const endpoint = url.startsWith('mqtts') && tls !== undefined ? { url, tls } : url
    const client = await connect(endpoint, { reconnect: false })
    onTestFinished(async () => {
      client.destroy()
      await listener.close()
    })
    return client
  }

  it('thousands of messages of all sizes arrive as they were posted, each buffer used many times', async () => {
    const peer = new Peer(true)
    const client = await connected(peer)
    const payload = new Uint8Array(40_000)
    const sizeOf = (number: number) => (number % 500 === 499 ? 40_000 : 4 + (number % 997))
    for (let number = 0; number < 6000; ) {
      const bytes = payload.subarray(0, sizeOf(number)).fill(number % 251)
      new DataView(bytes.buffer).setUint32(0, number)
      if (client.post('numbers', bytes)) number += 1
      else await client.writable
    }
    await client.flush()
    await client.disconnect()
    while (peer.payloads.length < 6000) await turn()
    const wrong = peer.payloads.filter((bytes, number) => {
      const isNumber = new DataView(bytes.buffer).getUint32(0) === number
      const isWhole = bytes.length === sizeOf(number)
      return !isNumber || !isWhole || bytes.subarray(4).some((byte) => byte !== number % 251)
    })
    expect([peer.payloads.length, wrong]).toEqual([6000, []])
  })

  it('QoS 1, aborted and written over: 12 MB go on as they were', async () => {
    const peer = new Peer(false)
    const client = await connected(peer)
    const payload = new Uint8Array(size).fill(1)
    const abort = new AbortController()
    const call = client.publish('a', payload, { qos: 1, signal: abort.signal })
    await passed(20)
    abort.abort()
    payload.fill(2)
    await expect(call).rejects.toMatchObject({ code: 'ERR_ABORTED' })
    peer.resume()
    while (peer.payloads.length === 0) await turn()
    const [got] = peer.payloads
    expect([got?.length, got?.every((byte) => byte === 1)]).toEqual([size, true])
  })
})
