/** Large payloads over real streams whose peer reads slowly: the memory of the caller is the caller's again once the publish has settled. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { setTimeout as passed } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import type { Endpoint } from '../../../src/client/api/index.js'
import { type Client, connect } from '../../../src/client/node.js'
import { memoryPair } from '../../../src/transport/memory.js'
import { listenTcp } from '../../../src/transport/tcp.js'
import type { Accept, Transport } from '../../../src/transport/transport.js'
import { listenUnix } from '../../../src/transport/unix.js'
import { listenWebSocket } from '../../../src/transport/websocket-node.js'
import { Decoder } from '../../../src/wire/decode.js'
import { encode } from '../../../src/wire/encode.js'
import type { ClientPacket } from '../../../src/wire/packets.js'
import { hasOpenssl, selfSigned } from '../../support/certificates.js'

const size = 12_000_000
const [A, B] = ['A'.charCodeAt(0), 'B'.charCodeAt(0)]

/** What got to a peer that reads nothing before it is told to. */
class Reader {
  readonly packets: string[] = []
  ended = false
  #transport: Transport | undefined

  readonly accept: Accept = (transport) => {
    this.#transport = transport
    const decoder = new Decoder({ from: 'client' })
    const take = (bytes: Uint8Array): void => {
      for (const packet of decoder.push(bytes) as Iterable<ClientPacket>) {
        if (packet.type === 'connect') {
          transport.write(encode({ type: 'connack' }))
          transport.pause?.()
        }
        if (packet.type === 'publish')
          this.packets.push(
            `${packet.payload.length} ${packet.payload.every((byte) => byte === A)}`,
          )
        if (packet.type === 'disconnect') this.packets.push('disconnect')
      }
    }
    const window = new Uint8Array(65_536)
    transport.open({
      buffer: () => window,
      read: (length) => take(window.slice(0, length)),
      chunk: (bytes) => take(new Uint8Array(bytes)),
      drain: () => undefined,
      closed: () => {
        this.ended = true
      },
    })
  }

  /** Reads all that comes, until a packet did. */
  async packet(count: number): Promise<string[]> {
    this.#transport?.resume?.()
    while (this.packets.length < count && !this.ended) await passed(5)
    return this.packets
  }
}

const identity = hasOpenssl() ? selfSigned('localhost') : undefined

/** A listener, and where it is to be found. */
type Way = (accept: Accept) => Promise<{ endpoint: Endpoint; close(): unknown }>

const listening = (listener: { url: string; close(): unknown }) => ({
  endpoint: listener.url,
  close: () => listener.close(),
})

const ways: [string, Way][] = [
  ['tcp', async (accept) => listening(await listenTcp({}, accept))],
  [
    'unix',
    async (accept) => {
      const folder = mkdtempSync(path.join(tmpdir(), 'mqwire-'))
      const listener = await listenUnix({ path: path.join(folder, 's') }, accept)
      return {
        endpoint: listener.url,
        close: () => listener.close().then(() => rmSync(folder, { recursive: true })),
      }
    },
  ],
  [
    'WebSocket',
    async (accept) => listening(await listenWebSocket({ maximumPacketSize: 2 * size }, accept)),
  ],
  [
    'memory',
    async (accept) => {
      const transport = async () => {
        const [near, far] = memoryPair({ latency: 1 })
        accept(far)
        return near
      }
      return { endpoint: { url: 'x://memory', transport }, close: () => undefined }
    },
  ],
]
if (identity !== undefined)
  ways.push([
    'TLS',
    async (accept) => {
      const { endpoint, close } = listening(await listenTcp({ tls: identity }, accept))
      return { endpoint: { url: endpoint, tls: { ca: identity.cert } }, close }
    },
  ])

describe.each(ways)('%s', (_name, listen) => {
  /** A client of a peer that does not read, with a payload of 12 MB. */
  async function reluctant(
    test: (client: Client, payload: Uint8Array, reader: Reader) => Promise<void>,
  ): Promise<void> {
    const reader = new Reader()
    const { endpoint, close } = await listen(reader.accept)
    const client = await connect(endpoint, { reconnect: false })
    await test(client, new Uint8Array(size).fill(A), reader)
    client.destroy()
    await close()
  }

  it.each([0, 1] as const)('QoS %i, aborted and written over: 12 MB go on as they were', (qos) =>
    reluctant(async (client, payload, reader) => {
      const abort = new AbortController()
      const call = client.publish('a', payload, { qos, signal: abort.signal })
      await passed(20)
      abort.abort()
      payload.fill(B)
      await expect(call).rejects.toMatchObject({ code: 'ERR_ABORTED' })
      expect(await reader.packet(1)).toEqual([`${size} true`])
    }),
  )

  it('post() of 12 MB, written over at once', () =>
    reluctant(async (client, payload, reader) => {
      expect(client.post('a', payload)).toBe(true)
      payload.fill(B)
      expect(await reader.packet(1)).toEqual([`${size} true`])
    }))

  it('disconnect({ timeout: 0 }) in the middle of it: the packet as it was and DISCONNECT, or neither', () =>
    reluctant(async (client, payload, reader) => {
      const call = client.publish('a', payload).catch(() => payload.fill(B))
      await passed(20)
      await client.disconnect({ timeout: 0 })
      await call
      const got = await reader.packet(2)
      expect(got.length === 0 || (got[0] === `${size} true` && got.length === 2)).toBe(true)
    }))
})
