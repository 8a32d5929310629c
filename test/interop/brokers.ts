/**
 * Starts real brokers: aedes in this process, mosquitto in one of its own, each on free ports and in a folder that is removed with it.
 *
 * A broker that was started accepts connections; `stop()` works in every state, and a test process that dies takes its brokers along.
 * Nothing of mqwire is used here.
 */
import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer as createHttpServer } from 'node:http'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { Aedes, type AedesOptions } from 'aedes'
import { expect, it } from 'vitest'
import { createWebSocketStream, WebSocketServer } from 'ws'
import { hasOpenssl, type Identity } from '../transport/certificates.js'
import { eventually } from './waiting.js'

/** How a client reaches a broker. */
export type TransportName = 'TCP' | 'TLS' | 'WebSocket' | 'Secure WebSocket' | 'Unix socket'

/** A running broker. */
export interface Broker {
  /** URL for each transport that it listens on. */
  readonly urls: Readonly<Partial<Record<TransportName, string>>>
  /** What it printed. Empty for aedes. */
  readonly log: string
  /** Answers nothing that was asked from now on; connections stay open. */
  freeze(): void
  /** Ends without a word to anybody, at once. */
  kill(): Promise<void>
  /** Ends, and removes what it left. Never throws. */
  stop(): Promise<void>
}

/** What mosquitto is started with. */
export interface MosquittoSettings {
  /** More lines for the configuration file, and for each of its listeners. */
  readonly lines?: readonly string[]
  readonly listenerLines?: readonly string[]
  /** Certificate and authority of the TLS listener. */
  readonly tls?: { readonly authority: Identity; readonly server: Identity; readonly clientCertificate?: boolean }
  /** User names with passwords; anybody may connect without. */
  readonly passwords?: Readonly<Record<string, string>>
}

const folders = [...(process.env['PATH'] ?? '').split(delimiter), '/usr/sbin', '/usr/local/sbin', '/opt/homebrew/sbin']

function find(program: string): string | undefined {
  return folders.map((folder) => join(folder, program)).find((path) => existsSync(path))
}

const programs = { mosquitto: find('mosquitto'), mosquitto_passwd: find('mosquitto_passwd') }

/** The programs that the mosquitto tests need and that are not here. Undefined when all are. */
export function missingForMosquitto(): string | undefined {
  const missing = Object.entries(programs)
    .filter(([, path]) => path === undefined)
    .map(([name]) => name)
  if (!hasOpenssl()) missing.push('openssl')
  return missing.length === 0 ? undefined : missing.join(', ')
}

function missingFor(transport: TransportName): string | undefined {
  const programs = missingForMosquitto()
  if (programs !== undefined) return `${programs} not found`
  return mosquittoSupports(transport) ? undefined : `mosquitto was built without ${transport}`
}

/** Defines tests that need mosquitto. Where it is missing they fail in CI; elsewhere the reason is printed and they are left out. */
export function withMosquitto(transports: readonly TransportName[], define: (transport: TransportName) => void): void {
  for (const transport of transports) {
    const missing = missingFor(transport)
    if (missing === undefined) define(transport)
    else {
      console.warn(`The mosquitto tests over ${transport} are left out: ${missing}`)
      it(`mosquitto over ${transport}: ${missing}`, () => expect(process.env['CI']).toBeUndefined())
    }
  }
}

/** What mosquitto prints when it opens a listener that may be left out of its build. */
const optional: Readonly<Partial<Record<TransportName, string>>> = {
  WebSocket: 'Opening websockets listen socket',
  'Secure WebSocket': 'Opening websockets listen socket',
  'Unix socket': 'Opening unix listen socket',
}

/** True when the installed mosquitto was built with what this transport needs. */
export function mosquittoSupports(transport: TransportName): boolean {
  const text = optional[transport]
  return text === undefined || (programs.mosquitto !== undefined && readFileSync(programs.mosquitto).includes(text))
}

/** True when the installed mosquitto is older than this version. */
export function mosquittoBefore(...wanted: readonly [number, number, number]): boolean {
  // It prints its version with its usage, and then ends with an error code.
  const { stdout } = spawnSync(programs.mosquitto ?? '', ['-h'], { encoding: 'utf8' })
  const found = /version (\d+)\.(\d+)\.(\d+)/.exec(stdout)?.slice(1).map(Number) ?? []
  const differing = wanted.findIndex((part, index) => part !== found[index])
  return differing >= 0 && (found[differing] ?? 0) < (wanted[differing] ?? 0)
}

/** A port that was free a moment ago. */
async function freePort(): Promise<number> {
  const server = createServer()
  const port = await listening(server)
  await new Promise((resolve) => server.close(resolve))
  return port
}

function listening(server: Server | ReturnType<typeof createHttpServer>): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(0, '127.0.0.1', () => {
      const address = server.address()
      resolve(typeof address === 'object' && address !== null ? address.port : 0)
    })
  })
}

/** Starts mosquitto with a listener for each transport. */
export async function startMosquitto(settings: MosquittoSettings = {}): Promise<Broker> {
  // Somebody else may take a port between its choice and mosquitto's start.
  for (let attempt = 1; ; attempt += 1) {
    const process = await MosquittoProcess.spawn(settings)
    try {
      await process.ready()
      return process
    } catch (error) {
      await process.stop()
      if (attempt === 3) throw error
    }
  }
}

class MosquittoProcess implements Broker {
  readonly urls: Broker['urls']
  log = ''
  readonly #folder: string
  readonly #child: ChildProcess
  readonly #exited: Promise<void>
  readonly #doors: readonly (number | string)[]
  readonly #guard: ChildProcess

  private constructor(folder: string, ports: readonly number[], tls: boolean) {
    const [tcp = 0, websocket = 0, secure = 0, secureWebSocket = 0] = ports
    const doors: Record<TransportName, [door: number | string, url: string]> = {
      TCP: [tcp, `mqtt://127.0.0.1:${tcp}`],
      TLS: [secure, `mqtts://localhost:${secure}`],
      WebSocket: [websocket, `ws://127.0.0.1:${websocket}`],
      'Secure WebSocket': [secureWebSocket, `wss://localhost:${secureWebSocket}`],
      'Unix socket': [join(folder, 'socket'), `unix://${join(folder, 'socket')}`],
    }
    const open = Object.entries(doors).filter(([name]) => listens(name as TransportName, tls))
    this.#folder = folder
    this.#doors = open.map(([, [door]]) => door)
    this.urls = Object.fromEntries(open.map(([name, [, url]]) => [name, url]))
    this.#child = spawn(programs.mosquitto ?? 'mosquitto', ['-c', join(folder, 'mosquitto.conf')], { stdio: ['ignore', 'pipe', 'pipe'] })
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      stream?.setEncoding('utf8').on('data', (text: string) => {
        this.log += text
      })
    }
    this.#exited = new Promise((resolve) => {
      this.#child.once('exit', () => resolve()).once('error', () => resolve())
    })
    this.#guard = guard(this.#child.pid, folder)
  }

  static async spawn(settings: MosquittoSettings): Promise<MosquittoProcess> {
    const folder = mkdtempSync(join(tmpdir(), 'mqwire-'))
    const ports = [await freePort(), await freePort(), await freePort(), await freePort()]
    writeFileSync(join(folder, 'mosquitto.conf'), configuration(folder, ports, settings).join('\n'))
    return new MosquittoProcess(folder, ports, settings.tls !== undefined)
  }

  async ready(): Promise<void> {
    for (const door of this.#doors) {
      await eventually(async () => {
        if (this.#child.exitCode !== null) throw new Error(`mosquitto ended: ${this.log}`)
        return accepts(door)
      }, `mosquitto accepting at ${door}; it printed: ${this.log}`)
    }
  }

  freeze(): void {
    this.#child.kill('SIGSTOP')
  }

  async kill(): Promise<void> {
    this.#child.kill('SIGKILL')
    await this.#exited
  }

  async stop(): Promise<void> {
    await this.kill()
    this.#guard.kill('SIGKILL')
    rmSync(this.#folder, { recursive: true, force: true })
  }
}

// Outlives this process by the moment that it takes to see it gone, however it ended: handlers of `exit` do not run when it is killed.
function guard(pid: number | undefined, folder: string): ChildProcess {
  const script = 'cat > /dev/null; kill -9 "$0"; rm -rf "$1"'
  const watcher = spawn('sh', ['-c', script, String(pid), folder], { stdio: ['pipe', 'ignore', 'ignore'], detached: true })
  watcher.once('error', () => undefined)
  return watcher
}

function listens(transport: TransportName, tls: boolean): boolean {
  return mosquittoSupports(transport) && (tls || !(transport === 'TLS' || transport === 'Secure WebSocket'))
}

function configuration(folder: string, ports: readonly number[], settings: MosquittoSettings): string[] {
  const { lines = [], listenerLines = [], tls, passwords } = settings
  const [tcp, websocket, secure, secureWebSocket] = ports
  const encrypted = tls === undefined ? [] : certificateLines(folder, tls)
  const listeners: Record<TransportName, string[]> = {
    TCP: [`listener ${tcp} 127.0.0.1`],
    TLS: [`listener ${secure} 127.0.0.1`, ...encrypted],
    WebSocket: [`listener ${websocket} 127.0.0.1`, 'protocol websockets'],
    'Secure WebSocket': [`listener ${secureWebSocket} 127.0.0.1`, 'protocol websockets', ...encrypted],
    'Unix socket': [`listener 0 ${join(folder, 'socket')}`],
  }
  const open = Object.entries(listeners).filter(([name]) => listens(name as TransportName, tls !== undefined))
  return [
    // Started as root, mosquitto would turn into a user who cannot read the folder.
    ...(process.getuid?.() === 0 ? ['user root'] : []),
    'log_dest stdout',
    'log_type error',
    'log_type warning',
    'log_type notice',
    // More than these tests ever leave waiting: the default of 1,000 drops the rest. 0, for no limit, is not obeyed by every version.
    'max_queued_messages 100000',
    ...lines,
    ...login(folder, passwords),
    ...open.flatMap(([, listener]) => [...listener, ...listenerLines]),
    '',
  ]
}

function login(folder: string, passwords: MosquittoSettings['passwords']): string[] {
  if (passwords === undefined) return ['allow_anonymous true']
  const path = join(folder, 'passwords')
  writeFileSync(path, '')
  for (const [name, password] of Object.entries(passwords))
    execFileSync(programs.mosquitto_passwd ?? '', ['-b', path, name, password], { stdio: 'pipe' })
  return ['allow_anonymous false', `password_file ${path}`]
}

function certificateLines(folder: string, tls: NonNullable<MosquittoSettings['tls']>): string[] {
  const files = { 'ca.pem': tls.authority.cert, 'cert.pem': tls.server.cert, 'key.pem': tls.server.key }
  for (const [name, content] of Object.entries(files)) writeFileSync(join(folder, name), content)
  const options = { cafile: 'ca.pem', certfile: 'cert.pem', keyfile: 'key.pem' }
  return [
    ...Object.entries(options).map(([option, name]) => `${option} ${join(folder, name)}`),
    ...(tls.clientCertificate ? ['require_certificate true'] : []),
  ]
}

function accepts(door: number | string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = typeof door === 'number' ? connect(door, '127.0.0.1') : connect(door)
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false))
    socket.once('connect', () => socket.destroy())
  })
}

/** Starts aedes with a TCP and a WebSocket listener. */
export async function startAedes(options: AedesOptions = {}): Promise<Broker> {
  const gate = { frozen: false }
  const { authorizePublish, authorizeSubscribe, ...rest } = options
  const aedes = await Aedes.createBroker({
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
  const sockets = new Set<Socket>()
  const track = (socket: Socket): void => {
    sockets.add(socket)
    socket.on('error', () => undefined).once('close', () => sockets.delete(socket))
  }
  const tcp = createServer((socket) => void aedes.handle(socket)).on('connection', track)
  const http = createHttpServer().on('connection', track)
  const upgrader = new WebSocketServer({ server: http })
  upgrader.on(
    'connection',
    (socket, request) =>
      void aedes.handle(
        createWebSocketStream(socket).on('error', () => undefined),
        request,
      ),
  )
  const urls = { TCP: `mqtt://127.0.0.1:${await listening(tcp)}`, WebSocket: `ws://127.0.0.1:${await listening(http)}` }
  const kill = async (): Promise<void> => {
    for (const socket of sockets) socket.destroy()
    await Promise.all([tcp, http].map((server) => new Promise((resolve) => server.close(resolve))))
  }
  return {
    urls,
    log: '',
    freeze: () => {
      gate.frozen = true
    },
    kill,
    stop: async () => {
      await kill()
      await new Promise<void>((resolve) => aedes.close(() => resolve()))
    },
  }
}
