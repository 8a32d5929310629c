/** Small raw servers on the loopback interface, for TCP and WebSocket: they hand over bytes and take bytes, and know nothing of MQTT but CONNECT. */
import { createServer as createHttpServer } from 'node:http'
import { createServer, type Server, type Socket } from 'node:net'
import { type WebSocket, WebSocketServer } from 'ws'
import { listening } from '../../../support/servers.js'
import { Hearing } from './hearing.js'
import type { Observed } from './verdict.js'

/** Characters of a user name. */
export const nameLength = 6

export type Kind = 'tcp' | 'websocket'

interface Wire {
  write(bytes: Uint8Array): void
  /** Without a word. */
  drop(): void
}

export class Link {
  readonly words: string[] = []
  stream: Observed['stream'] = 'up'
  told = 0
  /** Called for each change of any kind. */
  onChange: (() => void) | undefined
  /** Called as soon as this word was heard, before anything else can happen. */
  reflex: { readonly word: string; readonly act: () => void } | undefined
  readonly #wire: Wire
  readonly #hearing = new Hearing()

  constructor(wire: Wire) {
    this.#wire = wire
  }

  say(bytes: Uint8Array): void {
    this.told += bytes.length
    this.#wire.write(bytes)
  }

  drop(): void {
    this.onChange = undefined
    this.#wire.drop()
  }

  handleBytes(bytes: Uint8Array): void {
    const words = this.#hearing.push(bytes)
    this.words.push(...words)
    if (this.reflex !== undefined && words.includes(this.reflex.word)) this.reflex.act()
    this.onChange?.()
  }

  handleEnd(stream: Observed['stream']): void {
    if (this.stream !== 'up') return
    this.stream = stream
    this.onChange?.()
  }
}

/** Waits for CONNECT, and gives the link to whoever waits for its name. */
class Reception {
  readonly #expected = new Map<string, (link: Link) => void>()

  expect(name: string): Promise<Link> {
    return new Promise((resolve) => void this.#expected.set(name, resolve))
  }

  /** Makes a link; gives what takes its bytes. */
  welcome(link: Link): (bytes: Uint8Array) => void {
    const first: number[] = []
    let known = false
    return (bytes) => {
      link.handleBytes(bytes)
      if (known) return
      first.push(...bytes)
      if (!link.words.includes('connect')) return
      known = true
      const name = String.fromCharCode(...first.slice(-nameLength))
      this.#expected.get(name)?.(link)
      this.#expected.delete(name)
    }
  }
}

export interface Servers {
  readonly urls: readonly string[]
  /** The link of the client with this user name, once its CONNECT is there. */
  expect(name: string): Promise<Link>
  close(): Promise<void>
}

function acceptTcp(socket: Socket, reception: Reception): void {
  const link = new Link({
    write: (bytes) => void socket.write(bytes),
    drop: () => socket.resetAndDestroy(),
  })
  socket.on('data', reception.welcome(link))
  // How a stream was cut is not to be seen here: a destroyed socket may look like an ended one.
  for (const event of ['end', 'close', 'error'] as const)
    socket.on(event, () => link.handleEnd('over'))
}

function acceptWebSocket(socket: WebSocket, reception: Reception): void {
  const link = new Link({
    write: (bytes) => socket.send(bytes, () => undefined),
    drop: () => socket.terminate(),
  })
  const take = reception.welcome(link)
  socket.on('message', (data) => take(data as Buffer))
  socket.on('error', () => undefined)
  socket.on('close', (code) => link.handleEnd(code === 1000 ? 'ended' : 'cut'))
}

async function listenTcp(reception: Reception): Promise<{ url: string; server: Server }> {
  // Our side stays open when the client ends its own.
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) =>
    acceptTcp(socket, reception),
  )
  return { url: `mqtt://127.0.0.1:${await listening(server)}`, server }
}

async function listenWebSocket(reception: Reception): Promise<{ url: string; server: Server }> {
  const server = createHttpServer()
  const sockets = new WebSocketServer({
    server,
    perMessageDeflate: false,
    handleProtocols: () => 'mqtt',
  })
  sockets.on('connection', (socket) => acceptWebSocket(socket, reception))
  return { url: `ws://127.0.0.1:${await listening(server)}/mqtt`, server }
}

export async function serve(kind: Kind, ports = 8): Promise<Servers> {
  const reception = new Reception()
  const started = await Promise.all(
    Array.from({ length: ports }, () =>
      kind === 'tcp' ? listenTcp(reception) : listenWebSocket(reception),
    ),
  )
  return {
    urls: started.map(({ url }) => url),
    expect: (name) => reception.expect(name),
    close: async () => {
      await Promise.all(
        started.map(({ server }) => new Promise((resolve) => void server.close(resolve))),
      )
    },
  }
}
