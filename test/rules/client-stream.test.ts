/** Sections 4.2 and 6: the client over TCP and WebSocket, against a server that speaks bytes by hand. */
import { createServer, type Socket } from 'node:net'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { WebSocket, WebSocketServer } from 'ws'
import { Client as BrowserClient } from '../../src/client/browser.js'
import { Client } from '../../src/client/node.js'
import { listening } from '../support/servers.js'
import {
  hex,
  identifierOf,
  packet,
  puback,
  pubcomp,
  publish,
  pubrec,
  pubrel,
  suback,
  text,
  u16,
} from './bytes.js'

/** The server's end of one connection; `write` sends one part: one write, or one frame. */
interface Link {
  write(bytes: Buffer): void
  handle: (bytes: Buffer) => void
}
/** Serves each connection so; gives the URL. */
type Serve = (begin: (link: Link) => void) => Promise<string>

const cleanups: (() => unknown)[] = []
afterEach(async () => {
  vi.unstubAllGlobals()
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

const tcp: Serve = async (begin) => {
  const server = createServer((socket: Socket) => {
    const link: Link = { write: (bytes) => void socket.write(bytes), handle: () => undefined }
    socket.setNoDelay(true).on('error', () => undefined)
    socket.on('data', (bytes: Buffer) => link.handle(bytes))
    cleanups.push(() => socket.destroy())
    begin(link)
  })
  cleanups.push(() => server.close())
  return `mqtt://127.0.0.1:${await listening(server)}`
}

/** What the latest WebSocket offered, and whether each of its frames was binary. */
let offered: string | undefined
let binary: boolean[]
let socket: WebSocket
const websocket: Serve = async (begin) => {
  const server = new WebSocketServer({ host: '127.0.0.1', port: 0 })
  server.on('connection', (made, request) => {
    socket = made
    offered = request.headers['sec-websocket-protocol']
    binary = []
    const link: Link = { write: (bytes) => made.send(bytes), handle: () => undefined }
    made.on('message', (bytes: Buffer, isBinary) => {
      binary.push(isBinary)
      link.handle(bytes)
    })
    begin(link)
  })
  cleanups.push(() => server.close())
  await new Promise((resolve) => server.once('listening', resolve))
  return `ws://127.0.0.1:${(server.address() as { port: number }).port}`
}

/** Packets of a stream that comes in pieces. */
class Incoming {
  readonly packets: string[] = []
  #rest: Buffer = Buffer.alloc(0)

  push(bytes: Buffer): string[] {
    this.#rest = Buffer.concat([this.#rest, bytes])
    const found: string[] = []
    for (;;) {
      const size = sizeOf(this.#rest)
      if (this.#rest.length < size) break
      found.push(hex(this.#rest.subarray(0, size)))
      this.#rest = this.#rest.subarray(size)
    }
    this.packets.push(...found)
    return found
  }
}

/** Of the packet that begins here; without end where its length is not there. */
function sizeOf(bytes: Buffer): number {
  for (let body = 1, length = 0; body < bytes.length; body++) {
    length += ((bytes[body] as number) & 0x7f) * 128 ** (body - 1)
    if ((bytes[body] as number) < 0x80) return body + 1 + length
  }
  return Number.POSITIVE_INFINITY
}

const pattern = (length: number): Buffer =>
  Buffer.from(Uint8Array.from({ length }, (_, index) => (index * 7 + (index >> 8)) & 255))
const large = 150_000
const connack = Buffer.from('20050000022900', 'hex')

/** What a server sends when somebody subscribes: many packets in a row, of every kind that may come. */
function greeting(request: string): Buffer {
  const many = Array.from({ length: 50 }, (_, index) => publish(0x30, 'a', 0, `quick ${index}`))
  const rest = [publish(0x32, 'a', 0x1234, 'one'), publish(0x34, 'a', 0x0102, 'two'), 'd000']
  const bulk = packet(0x30, text('a'), '00', hex(pattern(large)))
  return Buffer.from([suback(identifierOf(request), 2), ...many, ...rest, bulk].join(''), 'hex')
}

const options = { keepAlive: false, reconnect: false, sessionExpiryInterval: 0 } as const
const onNode = (url: string) => new Client(url, options)
const inBrowser = (url: string) => {
  vi.stubGlobal('WebSocket', WebSocket)
  return new BrowserClient(url, options)
}
const sockets: [string, Serve, typeof onNode | typeof inBrowser][] = [
  ['WebSocket on Node', websocket, onNode],
  ['WebSocket in a browser', websocket, inBrowser],
]

describe.each([['TCP', tcp, onNode] as (typeof sockets)[number], ...sockets])(
  '%s',
  (_name, serve, make) => {
    it('[MQTT-4.2.0-1] [MQTT-6.0.0-2] carries every packet whole and in order, both ways, sent in pieces of 1, 2, 3 … bytes', async () => {
      const incoming = new Incoming()
      const url = await serve((link) => {
        const send = (bytes: Buffer): void => {
          for (let at = 0, size = 1; at < bytes.length; at += size++)
            link.write(bytes.subarray(at, at + size))
        }
        link.handle = (bytes) => {
          for (const each of incoming.push(bytes)) {
            if (each.startsWith('10')) send(connack)
            if (each.startsWith('82')) send(greeting(each))
            if (each.startsWith('50')) send(Buffer.from(pubrel(0x0102), 'hex'))
            if (each.startsWith('32')) send(Buffer.from(puback(2), 'hex'))
          }
        }
      })
      const client = make(url)
      cleanups.push(() => client.destroy())
      await client.connect()
      const reader = await client.subscribe('a', { qos: 2 })
      const read: string[] = []
      for (let count = 0; count < 52; count++) read.push((await reader.next())?.text() ?? '')
      expect(read).toEqual([...Array.from({ length: 50 }, (_, at) => `quick ${at}`), 'one', 'two'])
      const bulk = (await reader.next())?.payload as Uint8Array
      expect(Buffer.compare(bulk, pattern(large))).toBe(0)
      await client.publish('b', pattern(large), { qos: 1 })
      await client.disconnect({ timeout: 1000 })
      await vi.waitFor(() => expect(incoming.packets).toContain('e000'), 5000)
      // PUBLISH and PUBCOMP pass each other as the streams have it.
      const firsts = incoming.packets.map((each) => each.slice(0, 2))
      expect(firsts.sort()).toEqual(['10', '32', '40', '50', '70', '82', 'e0'])
      const acks = [puback(0x1234), pubrec(0x0102), pubcomp(0x0102)]
      expect(incoming.packets.filter((each) => /^[457]/.test(each))).toEqual(acks)
      const published = packet(0x32, text('b'), u16(2), '00', hex(pattern(large)))
      expect(incoming.packets.includes(published)).toBe(true)
      if (serve === tcp) return
      expect([offered, new Set(binary)]).toEqual(['mqtt', new Set([true])])
    })
  },
)

describe.each(sockets)('%s', (_name, serve, make) => {
  it.each([
    ['PINGRESP', 'd000'],
    ['PUBLISH', publish(0x30, 'a', 0, 'text')],
    ['nothing', ''],
  ])(
    '[MQTT-6.0.0-1] [MQTT-6.0.0-3] every frame is binary, and the sub-protocol mqtt; a text ends the connection: %s',
    async (_what, bytes) => {
      const client = make(
        await serve((link) => {
          link.handle = (given) => void (given[0] === 0x10 && link.write(connack))
        }),
      )
      cleanups.push(() => client.destroy())
      await client.connect()
      expect([offered, binary]).toEqual(['mqtt', [true]])
      const seen: unknown[] = []
      client.on('unclaimed', (event) => seen.push(event))
      socket.send(Buffer.from(bytes, 'hex').toString(), { binary: false })
      expect(await client.closed).toMatchObject({ code: 'ERR_CONNECTION_LOST' })
      await vi.waitFor(() => expect(socket.readyState).toBe(WebSocket.CLOSED), 5000)
      expect(seen).toEqual([])
    },
  )
})
