/**
 * Real proxies of this machine, with the agents of users: HTTP CONNECT by `proxy-chain` and `https-proxy-agent`, SOCKS5 by `@pondwader/socks5-server` and
 * `socks-proxy-agent`. Each counts the connections of its clients, and notes where they were led. Nothing of mqwire is used here.
 */
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { defaultConnectionHandler, Socks5Server } from '@pondwader/socks5-server'
import { HttpsProxyAgent } from 'https-proxy-agent'
import { Server as HttpProxy } from 'proxy-chain'
import { SocksProxyAgent } from 'socks-proxy-agent'
import type { Identity } from '../../support/certificates.js'
import { listening } from '../../support/servers.js'

/** Who may use a proxy. */
export interface Account {
  readonly username: string
  readonly password: string
}

/** A running proxy. */
export interface RunningProxy {
  /** An agent for it, by default of somebody who may use it. */
  agent(account?: Account): HttpsProxyAgent<string> | SocksProxyAgent
  readonly port: number
  /** Connections that are open now, and how many there were. */
  readonly open: number
  readonly total: number
  /** Where it led them, as `host:port`. */
  readonly led: readonly string[]
  /** Cuts the connections that are open. */
  cut(): void
  close(): void
}

/** What a test starts; with an account, others are refused. */
export type StartProxy = (account?: Account) => Promise<RunningProxy>

/** The connections of a server. */
class Connections {
  total = 0
  readonly #open = new Set<Socket>()
  readonly #server: Server

  constructor(server: Server) {
    this.#server = server
    server.on('connection', (socket) => {
      this.total += 1
      this.#open.add(socket)
      socket.on('error', () => undefined).on('close', () => this.#open.delete(socket))
    })
  }

  get open(): number {
    return this.#open.size
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port
  }

  cut(): void {
    for (const socket of this.#open) socket.destroy()
  }

  close(): void {
    this.#server.close()
    this.cut()
  }
}

function urlOf(scheme: string, port: number, account: Account | undefined): string {
  const login = account === undefined ? '' : `${account.username}:${account.password}@`
  return `${scheme}://${login}127.0.0.1:${port}`
}

class Counted implements RunningProxy {
  readonly led: string[] = []
  readonly #connections: Connections
  readonly #make: (account: Account | undefined) => HttpsProxyAgent<string> | SocksProxyAgent
  readonly #account: Account | undefined

  constructor(
    connections: Connections,
    account: Account | undefined,
    make: (account: Account | undefined) => HttpsProxyAgent<string> | SocksProxyAgent,
  ) {
    this.#connections = connections
    this.#account = account
    this.#make = make
  }

  get open(): number {
    return this.#connections.open
  }

  get port(): number {
    return this.#connections.port
  }

  get total(): number {
    return this.#connections.total
  }

  agent(account = this.#account): HttpsProxyAgent<string> | SocksProxyAgent {
    return this.#make(account)
  }

  cut(): void {
    this.#connections.cut()
  }

  close(): void {
    this.#connections.close()
  }
}

const startHttpProxy: StartProxy = async (account) => {
  const server = new HttpProxy({
    host: '127.0.0.1',
    port: 0,
    prepareRequestFunction: ({ username, password, hostname, port }) => {
      const known =
        account === undefined || (username === account.username && password === account.password)
      if (known) proxy.led.push(`${hostname}:${port}`)
      return { requestAuthentication: !known, upstreamProxyUrl: null }
    },
  })
  await server.listen()
  const make = (given: Account | undefined) =>
    new HttpsProxyAgent(urlOf('http', server.port, given))
  const proxy = new Counted(new Connections(server.server), account, make)
  return proxy
}

/** HTTP CONNECT over TLS; who uses it makes an agent that trusts it. */
export async function startSecureProxy(httpsOptions: Identity): Promise<RunningProxy> {
  const server = new HttpProxy({
    host: '127.0.0.1',
    port: 0,
    serverType: 'https',
    httpsOptions: { ...httpsOptions },
  })
  server.on('tlsError', () => undefined)
  await server.listen()
  return new Counted(
    new Connections(server.server),
    undefined,
    (given) => new HttpsProxyAgent(urlOf('https', server.port, given)),
  )
}

/**
 * SOCKS5. The package by itself never closes a connection whose other side has ended before the client's last bytes came: it stops reading, and does not
 * see that the client has gone. TLS below a WebSocket ends like that, by whatever client. `mended: false` leaves it so.
 */
export const startSocksProxy = async (account?: Account, mended = true): Promise<RunningProxy> => {
  const socks = new Socks5Server()
  if (mended) {
    socks.setConnectionHandler((connection, sendStatus) => {
      const stream = defaultConnectionHandler(connection, sendStatus)
      stream?.on('close', () => connection.socket.resume())
      return stream
    })
  }
  if (account)
    socks.setAuthHandler(
      ({ username, password }) => username === account.username && password === account.password,
    )
  socks.setRulesetValidator(({ destAddress, destPort }) => {
    proxy.led.push(`${destAddress}:${destPort}`)
    return true
  })
  const server = createServer((socket) => {
    socket.setNoDelay()
    socks._handleConnection(socket)
  })
  const port = await listening(server)
  const make = (given: Account | undefined) => new SocksProxyAgent(urlOf('socks5h', port, given))
  const proxy = new Counted(new Connections(server), account, make)
  return proxy
}

/** The proxies by name. */
export const proxies: Readonly<Record<string, StartProxy>> = {
  'HTTP CONNECT': startHttpProxy,
  SOCKS5: (account) => startSocksProxy(account),
}

/** A server that accepts and does as it is told with each socket, in place of a proxy; `agent` of both kinds. */
export async function startOddProxy(
  react: (socket: Socket) => void,
): Promise<RunningProxy & { readonly socks: SocksProxyAgent }> {
  const server = createServer((socket) => {
    // Only who reads sees an end.
    socket.on('error', () => undefined).resume()
    react(socket)
  })
  const port = await listening(server)
  const odd = new Counted(
    new Connections(server),
    undefined,
    (given) => new HttpsProxyAgent(urlOf('http', port, given)),
  )
  return Object.assign(odd, { socks: new SocksProxyAgent(urlOf('socks5h', port, undefined)) })
}
