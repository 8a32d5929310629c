/** Sections 4.2 and 6: the client over real streams, TCP, TLS and WebSocket, against a server that speaks bytes and frames by hand. */
import { createServer as createTcp, type Server, type Socket } from 'node:net'
import { createServer as createTls } from 'node:tls'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { WebSocket } from 'ws'
import type { ClientOptions, EndpointOptions } from '../../src/client/api/index.js'
import { Client as BrowserClient } from '../../src/client/browser.js'
import type { BaseClient } from '../../src/client/client.js'
import { Client } from '../../src/client/node.js'
import { hasOpenssl, issue, selfSigned } from '../support/certificates.js'
import { listening } from '../support/servers.js'
import { answer, frame, rawServer } from '../unit/transport/websocket-server.js'
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

/** The server's end of one connection. */
interface Link {
  /** Sends one part: one write, or one frame. */
  write(bytes: Buffer): void
  /** Bytes from the client, in whatever pieces they came. */
  handle: (bytes: Buffer) => void
  /** First bytes of the WebSocket frames that came in. */
  readonly heads: number[]
  readonly protocols: (string | undefined)[]
  /** Sends a frame of another kind. */
  frame(opcode: number, bytes: Buffer): void
  end(): void
  ended: boolean
}

type Serve = (begin: (link: Link) => void) => Promise<EndpointOptions>

const cleanups: (() => unknown)[] = []

afterEach(async () => {
  vi.unstubAllGlobals()
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

function link(
  socket: Socket,
  write: (bytes: Buffer) => void = (bytes) => void socket.write(bytes),
  protocols: (string | undefined)[] = [],
): Link {
  const made: Link = {
    write,
    handle: () => undefined,
    heads: [],
    protocols,
    frame: (opcode, bytes) => void socket.write(frame(opcode, bytes)),
    end: () => void socket.end(),
    ended: false,
  }
  socket.on('error', () => undefined)
  socket.on('close', () => {
    made.ended = true
  })
  return made
}

async function served(server: Server, url: (port: number) => string): Promise<EndpointOptions> {
  const sockets = new Set<Socket>()
  server.on('connection', (socket: Socket) => sockets.add(socket))
  cleanups.push(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return { url: url(await listening(server)) }
}

const stream =
  (begin: (link: Link) => void) =>
  (socket: Socket): void => {
    socket.setNoDelay(true)
    const made = link(socket)
    socket.on('data', (bytes: Buffer) => made.handle(bytes))
    begin(made)
  }

const tcp: Serve = (begin) => served(createTcp(stream(begin)), (port) => `mqtt://127.0.0.1:${port}`)

const tls: Serve = async (begin) => {
  const ca = selfSigned('Test Authority', 'DNS:authority.test')
  const { cert, key } = issue(ca)
  return {
    ...(await served(
      createTls({ cert, key }, stream(begin)),
      (port) => `mqtts://127.0.0.1:${port}`,
    )),
    tls: { ca: ca.cert },
  }
}

/** Takes the client's frames apart (RFC 6455, section 5.2). */
function unframe(made: Link): (bytes: Buffer) => void {
  let rest = Buffer.alloc(0)
  return (bytes) => {
    rest = Buffer.concat([rest, bytes])
    while (rest.length >= 6) {
      const short = (rest[1] as number) & 127
      const head = short < 126 ? 2 : short === 126 ? 4 : 10
      if (rest.length < head + 4) return
      const length =
        short < 126 ? short : short === 126 ? rest.readUInt16BE(2) : Number(rest.readBigUInt64BE(2))
      if (rest.length < head + 4 + length) return
      const mask = rest.subarray(head, head + 4)
      const payload = rest
        .subarray(head + 4, head + 4 + length)
        .map((byte, index) => byte ^ (mask[index & 3] as number))
      made.heads.push(rest[0] as number)
      rest = rest.subarray(head + 4 + length)
      const opcode = (made.heads.at(-1) as number) & 15
      if (opcode <= 2) made.handle(Buffer.from(payload))
      // A server does its part of the closing handshake.
      if (opcode === 8) made.end()
    }
  }
}

const websocket: Serve = async (begin) => {
  const server = await rawServer((socket, request) => {
    socket.setNoDelay(true)
    socket.write(answer(request))
    const made = link(socket, (bytes) => void socket.write(frame(2, bytes)), [
      request.headers['sec-websocket-protocol'],
    ])
    const handle = unframe(made)
    socket.on('data', (bytes: Buffer) => handle(bytes))
    begin(made)
  })
  cleanups.push(() => server.close())
  return { url: server.url }
}

/** What came in so far, packet by packet. */
class Incoming {
  readonly packets: string[] = []
  #rest: Buffer = Buffer.alloc(0)

  push(bytes: Buffer): string[] {
    this.#rest = Buffer.concat([this.#rest, bytes])
    const found: string[] = []
    for (;;) {
      let length = 0
      let body = 1
      for (let shift = 0; ; shift += 7) {
        if (body >= this.#rest.length) return this.#keep(found)
        const byte = this.#rest[body++] as number
        length += (byte & 0x7f) * 2 ** shift
        if (byte < 0x80) break
      }
      if (this.#rest.length < body + length) return this.#keep(found)
      found.push(hex(this.#rest.subarray(0, body + length)))
      this.#rest = this.#rest.subarray(body + length)
    }
  }

  #keep(found: string[]): string[] {
    this.packets.push(...found)
    return found
  }
}

async function until(condition: () => boolean, what: string): Promise<void> {
  for (let waited = 0; !condition(); waited++) {
    if (waited > 5000) throw new Error(`never: ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 1))
  }
}

const pattern = (length: number): Buffer =>
  Buffer.from(Uint8Array.from({ length }, (_, index) => (index * 7 + (index >> 8)) & 255))
const large = 150_000

/** What a server sends when somebody subscribes: many packets in a row, of every kind that may come. */
function greeting(request: string): Buffer {
  const many = Array.from({ length: 50 }, (_, index) => publish(0x30, 'a', 0, `quick ${index}`))
  const rest = [publish(0x32, 'a', 0x1234, 'one'), publish(0x34, 'a', 0x0102, 'two'), 'd000']
  const bulk = packet(0x30, text('a'), '00', hex(pattern(large)))
  return Buffer.from([suback(identifierOf(request), 2), ...many, ...rest, bulk].join(''), 'hex')
}

/** How the server cuts what it sends. */
const cuts: Record<string, (bytes: Buffer) => Buffer[]> = {
  'in one piece': (bytes) => [bytes],
  'one byte at a time, where it is not bulk': (bytes) => {
    const small = bytes.length - large
    return [
      ...Array.from({ length: Math.max(0, small) }, (_, index) => bytes.subarray(index, index + 1)),
      bytes.subarray(Math.max(0, small)),
    ]
  },
  'in pieces of 1, 2, 3 … bytes': (bytes) => {
    const pieces: Buffer[] = []
    for (let at = 0; at < bytes.length; at += pieces.length)
      pieces.push(bytes.subarray(at, at + pieces.length + 1))
    return pieces
  },
}

/** A client that subscribed, was greeted, and published; what it read, and what the server got. */
async function exchange(
  serve: Serve,
  cut: (bytes: Buffer) => Buffer[],
  make: (endpoint: EndpointOptions, options: ClientOptions) => BaseClient,
): Promise<{ read: string[]; bulk: Uint8Array | undefined; got: string[]; link: Link }> {
  const incoming = new Incoming()
  let current: Link | undefined
  const endpoint = await serve((made) => {
    current = made
    const send = (bytes: Buffer): void => {
      for (const piece of cut(bytes)) made.write(piece)
    }
    made.handle = (bytes) => {
      for (const each of incoming.push(bytes)) {
        if (each.startsWith('10')) send(Buffer.from('20050000022900', 'hex'))
        if (each.startsWith('82')) send(greeting(each))
        if (each.startsWith('50')) send(Buffer.from(pubrel(0x0102), 'hex'))
        if (each.startsWith('32')) send(Buffer.from(puback(2), 'hex'))
      }
    }
  })
  const client = make(endpoint, { keepAlive: false, reconnect: false, sessionExpiryInterval: 0 })
  cleanups.push(() => client.destroy())
  await client.connect()
  const reader = await client.subscribe('a', { qos: 2 })
  const read: string[] = []
  let bulk: Uint8Array | undefined
  while (bulk === undefined) {
    const message = await reader.next({ timeout: 5000 })
    if (message === undefined) throw new Error('the subscription ended')
    if (message.payload.length === large) bulk = message.payload
    else read.push(message.text())
  }
  await client.publish('b', pattern(large), { qos: 1 })
  await client.disconnect({ timeout: 1000 })
  await until(() => incoming.packets.includes('e000'), 'DISCONNECT')
  if (current === undefined) throw new Error('nobody came')
  return { read, bulk, got: incoming.packets, link: current }
}

function check({ read, bulk, got }: Awaited<ReturnType<typeof exchange>>): void {
  expect(read).toEqual([
    ...Array.from({ length: 50 }, (_, index) => `quick ${index}`),
    'one',
    'two',
  ])
  expect(Buffer.compare(bulk as Uint8Array, pattern(large))).toBe(0)
  // PUBLISH and PUBCOMP pass each other as the streams have it.
  const published = packet(0x32, text('b'), u16(2), '00', hex(pattern(large)))
  expect(got.map((each) => each.slice(0, 2)).sort()).toEqual([
    '10',
    '32',
    '40',
    '50',
    '70',
    '82',
    'e0',
  ])
  expect(got.filter((each) => /^[457]/.test(each))).toEqual([
    puback(0x1234),
    pubrec(0x0102),
    pubcomp(0x0102),
  ])
  expect(got.includes(published)).toBe(true)
}

const onNode = (endpoint: EndpointOptions, options: ClientOptions): BaseClient =>
  new Client(endpoint, options)
const inBrowser = (endpoint: EndpointOptions, options: ClientOptions): BaseClient => {
  vi.stubGlobal('WebSocket', WebSocket)
  return new BrowserClient(endpoint, options)
}

const streams: [string, Serve, typeof onNode][] = [
  ['TCP', tcp, onNode],
  ...(hasOpenssl() ? [['TLS', tls, onNode] as [string, Serve, typeof onNode]] : []),
]
const sockets: [string, Serve, typeof onNode][] = [
  ['WebSocket on Node', websocket, onNode],
  ['WebSocket in a browser', websocket, inBrowser],
]

describe.each([...streams, ...sockets])('%s', (_name, serve, make) => {
  it.each(Object.entries(cuts))(
    '[MQTT-4.2.0-1] [MQTT-6.0.0-2] carries every packet whole and in order, both ways, sent %s',
    async (_cut, cut) => {
      check(await exchange(serve, cut, make))
    },
  )
})

describe.each(sockets)('%s', (_name, serve, make) => {
  it('[MQTT-6.0.0-1] every frame of the client is binary, however large the packet; [MQTT-6.0.0-3] the sub-protocol offered is mqtt', async () => {
    const { link: made } = await exchange(serve, (bytes) => [bytes], make)
    const data = made.heads.filter((head) => (head & 15) < 8)
    expect(data.length).toBeGreaterThan(5)
    expect(new Set(data.map((head) => head & 15))).toEqual(new Set([2]))
    expect(made.protocols).toEqual(['mqtt'])
  })

  it.each([
    ['PINGRESP as text', 1, Buffer.from('d000', 'hex')],
    ['PUBLISH as text', 1, Buffer.from(publish(0x30, 'a', 0, 'text'), 'hex')],
    ['no bytes as text', 1, Buffer.alloc(0)],
  ])(
    '[MQTT-6.0.0-1] a data frame of another kind ends the connection: %s',
    async (_what, opcode, bytes) => {
      let current: Link | undefined
      const endpoint = await serve((made) => {
        current = made
        made.handle = (given) => {
          if (given[0] === 0x10) made.write(Buffer.from('20050000022900', 'hex'))
        }
      })
      const client = make(endpoint, { keepAlive: false, reconnect: false })
      cleanups.push(() => client.destroy())
      await client.connect()
      const seen: unknown[] = []
      client.on('unclaimed', (event) => seen.push(event))
      current?.frame(opcode, bytes)
      expect(await client.closed).toMatchObject({ code: 'ERR_CONNECTION_LOST' })
      await until(() => current?.ended === true, 'the end of the socket')
      expect(seen).toEqual([])
    },
  )
})
