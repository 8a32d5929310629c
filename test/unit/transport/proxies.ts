/**
 * Real proxies of this machine, with the agents of users: HTTP CONNECT by `proxy-chain` and `https-proxy-agent`, SOCKS5 by `@pondwader/socks5-server` and
 * `socks-proxy-agent`. Each counts the connections of its clients, and notes where they were led. Nothing of mqwire is used here.
 */
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { defaultConnectionHandler, Socks5Server } from '@pondwader/socks5-server'
import { HttpsProxyAgent } from 'https-proxy-agent'
import { Server as HttpProxy } from 'proxy-chain'
import { SocksProxyAgent } from 'socks-proxy-agent'
import { listening } from '../../support/servers.js'

/** Who may use a proxy. */
export interface Account {
  readonly username: string
  readonly password: string
}

const agents = { http: HttpsProxyAgent, socks5h: SocksProxyAgent }

export class RunningProxy {
  /** Connections so far. */
  total = 0
  /** Where it led them, as `host:port`. */
  readonly led: string[] = []
  readonly #open = new Set<Socket>()
  readonly #server: Server
  readonly #scheme: keyof typeof agents
  readonly #account: Account | undefined

  constructor(server: Server, scheme: keyof typeof agents, account?: Account) {
    this.#server = server
    this.#scheme = scheme
    this.#account = account
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

  /** An agent for it, by default of somebody who may use it. */
  agent(account = this.#account, scheme = this.#scheme) {
    const login = account === undefined ? '' : `${account.username}:${account.password}@`
    return new agents[scheme](`${scheme}://${login}127.0.0.1:${this.port}`)
  }

  cut(): void {
    for (const socket of this.#open) socket.destroy()
  }

  close(): void {
    this.#server.close()
    this.cut()
  }
}

/** What a test starts; with an account, others are refused. */
type StartProxy = (account?: Account) => Promise<RunningProxy>

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
  const proxy = new RunningProxy(server.server, 'http', account)
  return proxy
}

const startSocksProxy: StartProxy = async (account) => {
  const socks = new Socks5Server()
  // The package never closes a connection whose other side has ended before the client's last bytes came, as TLS below a WebSocket does: it stops reading.
  socks.setConnectionHandler((connection, sendStatus) => {
    const stream = defaultConnectionHandler(connection, sendStatus)
    stream?.on('close', () => connection.socket.resume())
    return stream
  })
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
  await listening(server)
  const proxy = new RunningProxy(server, 'socks5h', account)
  return proxy
}

export const proxies: Readonly<Record<string, StartProxy>> = {
  'HTTP CONNECT': startHttpProxy,
  SOCKS5: startSocksProxy,
}

/** A server that accepts and does as it is told with each socket, in place of a proxy; `socks` is an agent of the other kind. */
export async function startOddProxy(
  react: (socket: Socket) => void,
): Promise<RunningProxy & { readonly socks: SocksProxyAgent }> {
  const server = createServer((socket) => {
    // Only who reads sees an end.
    socket.on('error', () => undefined).resume()
    react(socket)
  })
  await listening(server)
  const odd = new RunningProxy(server, 'http')
  return Object.assign(odd, { socks: odd.agent(undefined, 'socks5h') as SocksProxyAgent })
}
