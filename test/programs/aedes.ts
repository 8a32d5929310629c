/**
 * An aedes with WebSocket and TCP that goes down and comes back at the same ports, having forgotten everything.
 *
 * Nothing of mqwire is used here.
 */
import { createServer as createHttpServer } from 'node:http'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { Aedes, type AedesOptions } from 'aedes'
import { createWebSocketStream, WebSocketServer } from 'ws'

/** One broker through several lives. */
export class RestartableAedes {
  /** The one that lives. */
  aedes: Aedes | undefined
  readonly #options: AedesOptions
  readonly #sockets = new Set<Socket>()
  readonly #ports = { tcp: 0, http: 0 }
  #close: (() => Promise<unknown>) | undefined

  private constructor(options: AedesOptions) {
    this.#options = options
  }

  /** A broker that accepts connections. */
  static async start(options: AedesOptions = {}): Promise<RestartableAedes> {
    const broker = new RestartableAedes(options)
    await broker.live()
    return broker
  }

  get url(): string {
    return `mqtt://127.0.0.1:${this.#ports.tcp}`
  }

  get webSocketUrl(): string {
    return `ws://127.0.0.1:${this.#ports.http}`
  }

  /** Starts it again, after `kill()`. */
  async live(): Promise<void> {
    const aedes = await Aedes.createBroker(this.#options)
    const tcp = createServer((socket) => void aedes.handle(socket)).on('connection', (socket) => this.#track(socket))
    const http = createHttpServer().on('connection', (socket) => this.#track(socket))
    new WebSocketServer({ server: http }).on('connection', (socket, request) => {
      const stream = createWebSocketStream(socket).on('error', () => undefined)
      void aedes.handle(stream, request)
    })
    const servers = [tcp, http] as const
    const [tcpPort, httpPort] = [this.#ports.tcp, this.#ports.http]
    await Promise.all([
      new Promise<void>((resolve, reject) => tcp.once('error', reject).listen(tcpPort, '127.0.0.1', resolve)),
      new Promise<void>((resolve, reject) => http.once('error', reject).listen(httpPort, '127.0.0.1', resolve)),
    ])
    this.#ports.tcp = (tcp.address() as AddressInfo).port
    this.#ports.http = (http.address() as AddressInfo).port
    this.aedes = aedes
    this.#close = async () => {
      for (const socket of this.#sockets) socket.destroy()
      await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))))
      await new Promise<void>((resolve) => aedes.close(() => resolve()))
    }
  }

  /** Ends without a word to anybody. */
  async kill(): Promise<void> {
    const close = this.#close
    this.#close = undefined
    this.aedes = undefined
    await close?.()
  }

  #track(socket: Socket): void {
    this.#sockets.add(socket)
    socket.on('error', () => undefined).once('close', () => this.#sockets.delete(socket))
  }
}
