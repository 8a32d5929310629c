/**
 * Starts aedes in this process, on TCP, WebSocket, Unix sockets and, with a certificate, on TLS and secure WebSockets.
 *
 * aedes takes any stream: the listeners are ours. It keeps everything in memory, so that each life of it begins with nothing. Nothing of mqwire is
 * used here.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer as createHttpServer, type IncomingMessage } from 'node:http'
import { createServer as createHttpsServer } from 'node:https'
import { createServer, type Server, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Duplex } from 'node:stream'
import { createServer as createTlsServer } from 'node:tls'
import { Aedes, type AedesOptions } from 'aedes'
import { createWebSocketStream, WebSocketServer } from 'ws'
import type { Identity } from '../support/certificates.js'
import { closed, listening } from '../support/servers.js'
import type { Broker, TransportName } from './brokers.js'
import { account, limits, type Setup } from './setups.js'

export interface AedesListeners {
  /** Certificate of the listeners for TLS and secure WebSocket, which are there only with it. */
  readonly server?: Identity
}

async function create(options: AedesOptions, gate: { frozen: boolean }): Promise<Aedes> {
  const { authorizePublish, authorizeSubscribe, ...rest } = options
  return Aedes.createBroker({
    ...rest,
    // An answer that never comes also holds up whatever the client asked after it.
    authorizePublish: (client, packet, done) => {
      if (gate.frozen) return
      if (authorizePublish) authorizePublish(client, packet, done)
      else done(null)
    },
    authorizeSubscribe: (client, subscription, done) => {
      if (gate.frozen) return
      if (authorizeSubscribe) authorizeSubscribe(client, subscription, done)
      else done(null, subscription)
    },
  })
}

class AedesBroker implements Broker {
  readonly log = ''
  readonly #options: AedesOptions
  readonly #listeners: AedesListeners
  readonly #folder = mkdtempSync(join(tmpdir(), 'mqwire-'))
  readonly #ports = new Map<TransportName, number>()
  readonly #sockets = new Set<Socket>()
  readonly #servers: Server[] = []
  #gate = { frozen: false }
  #aedes: Aedes | undefined

  constructor(options: AedesOptions, listeners: AedesListeners) {
    this.#options = options
    this.#listeners = listeners
  }

  get urls(): Broker['urls'] {
    const at = (transport: TransportName): string => String(this.#ports.get(transport))
    return {
      TCP: `mqtt://127.0.0.1:${at('TCP')}`,
      WebSocket: `ws://127.0.0.1:${at('WebSocket')}`,
      'Unix socket': `unix://${this.#path}`,
      ...(this.#listeners.server && {
        TLS: `mqtts://localhost:${at('TLS')}`,
        'Secure WebSocket': `wss://localhost:${at('Secure WebSocket')}`,
      }),
    }
  }

  get #path(): string {
    return join(this.#folder, 'socket')
  }

  async live(): Promise<void> {
    this.#gate = { frozen: false }
    const aedes = await create(this.#options, this.#gate)
    this.#aedes = aedes
    const take: Take = (stream, request) => void aedes.handle(stream, request)
    const { server } = this.#listeners
    await this.#listen(
      'TCP',
      createServer((socket) => take(socket)),
    )
    await this.#listen('WebSocket', upgrading(createHttpServer(), take))
    await this.#listen(
      'Unix socket',
      createServer((socket) => take(socket)),
    )
    if (server === undefined) return
    await this.#listen(
      'TLS',
      createTlsServer({ ...server }, (socket) => take(socket)),
    )
    await this.#listen('Secure WebSocket', upgrading(createHttpsServer({ ...server }), take))
  }

  freeze(): void {
    this.#gate.frozen = true
  }

  async kill(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy()
    await Promise.all(this.#servers.splice(0).map(closed))
  }

  async shutDown(): Promise<void> {
    const aedes = this.#aedes
    this.#aedes = undefined
    await this.kill()
    if (aedes !== undefined) await new Promise<void>((resolve) => aedes.close(() => resolve()))
  }

  async stop(): Promise<void> {
    await this.shutDown()
    rmSync(this.#folder, { recursive: true, force: true })
  }

  async #listen(transport: TransportName, server: Server): Promise<void> {
    this.#servers.push(server)
    server.on('tlsClientError', () => undefined)
    server.on('connection', (socket: Socket) => {
      this.#sockets.add(socket)
      socket.on('error', () => undefined).once('close', () => this.#sockets.delete(socket))
    })
    if (transport === 'Unix socket')
      await new Promise<void>((resolve) => server.listen(this.#path, resolve))
    else this.#ports.set(transport, await listening(server, this.#ports.get(transport)))
  }
}

/** What becomes of a connection; the request is the one that a WebSocket began with. */
type Take = (stream: Duplex, request?: IncomingMessage) => void

function upgrading<
  T extends ReturnType<typeof createHttpServer> | ReturnType<typeof createHttpsServer>,
>(server: T, take: Take): T {
  new WebSocketServer({ server }).on('connection', (socket, request) =>
    take(
      createWebSocketStream(socket).on('error', () => undefined),
      request,
    ),
  )
  return server
}

export async function startAedes(
  options: AedesOptions = {},
  listeners: AedesListeners = {},
): Promise<Broker> {
  const broker = new AedesBroker(options, listeners)
  await broker.live()
  return broker
}

export const aedesSetups: Readonly<Record<Setup, AedesOptions>> = {
  plain: {},
  narrow: {
    receiveMaximum: limits.receiveMaximum,
    maximumPacketSize: limits.maximumPacketSize,
    keepaliveLimit: limits.keepAlive,
  },
  lesser: {},
  guarded: {
    authenticate: (_client, username, password, done) => {
      const known = username === account.username && password?.toString() === account.password
      done(known ? null : Object.assign(new Error('no'), { returnCode: 4 }), known)
    },
    authorizePublish: (_client, { topic }, done) =>
      done(topic.includes('/denied/') ? new Error('no') : null),
    authorizeSubscribe: (_client, subscription, done) =>
      done(null, subscription.topic.includes('/denied/') ? null : subscription),
  },
  scram: {},
  durable: {},
}
