/**
 * Starts real brokers: what they all have in common, and mosquitto in a process of its own, on free ports and in a folder that is removed with it.
 *
 * A broker that was started accepts connections; `stop()` works in every state, and a test process that dies takes its brokers along.
 * Nothing of mqwire is used here.
 */
import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { expect, it } from 'vitest'
import { hasOpenssl, type Identity } from '../support/certificates.js'
import { freePorts } from '../support/servers.js'
import { ProcessBroker, startProcess } from './process-broker.js'
import { account, limits, type Setup, type TransportName } from './setups.js'

export { startAedes } from './aedes.js'
export { account, limits, type Setup, type TransportName, transports } from './setups.js'

export interface Broker {
  /** URL for each transport that it listens on. */
  readonly urls: Readonly<Partial<Record<TransportName, string>>>
  /** What it printed. Empty for aedes. */
  readonly log: string
  /** Answers nothing that was asked from now on; connections stay open. */
  freeze(): void
  /** Ends without a word to anybody, at once. */
  kill(): Promise<void>
  /** Ends as its makers mean it to. */
  shutDown(): Promise<void>
  /** Begins again where it was, with what it remembers, after `kill()` or `shutDown()`. */
  live(): Promise<void>
  /** Ends, and removes what it left. Never throws. */
  stop(): Promise<void>
}

/** What of a life outlives SIGKILL: all of it, all but the last few changes, what there was a second before or less, or nothing. */
export type Memory = 'all of it' | 'most of it' | 'every second' | 'nothing'

const memories: Readonly<Record<Memory, readonly string[]>> = {
  'all of it': ['persistence true', 'autosave_on_changes true', 'autosave_interval 1'],
  'most of it': ['persistence true', 'autosave_on_changes true', 'autosave_interval 20'],
  'every second': ['persistence true', 'autosave_interval 1'],
  nothing: ['persistence false'],
}

export interface MosquittoSettings {
  /** More lines for the configuration file, and for each of its listeners. */
  readonly lines?: readonly string[]
  readonly listenerLines?: readonly string[]
  /** Certificate and authority of the TLS listener. */
  readonly tls?: {
    readonly authority: Identity
    readonly server: Identity
    readonly clientCertificate?: boolean
  }
  /** User names with passwords; anybody may connect without. */
  readonly passwords?: Readonly<Record<string, string>>
  /** A filter that nobody may publish or subscribe to. */
  readonly denied?: string
  /** What it remembers of sessions and retained messages from one life to the next. Default `'nothing'`. */
  readonly memory?: Memory
}

const folders = [
  ...(process.env['PATH'] ?? '').split(delimiter),
  '/usr/sbin',
  '/usr/local/sbin',
  '/opt/homebrew/sbin',
]

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
export function withMosquitto(
  transports: readonly TransportName[],
  define: (transport: TransportName) => void,
): void {
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
  return (
    text === undefined ||
    (programs.mosquitto !== undefined && readFileSync(programs.mosquitto).includes(text))
  )
}

/** The version of the installed mosquitto, such as `2.0.11`; empty when it does not say. */
export function mosquittoVersion(): string {
  // It prints its version with its usage, and then ends with an error code.
  const { stdout } = spawnSync(programs.mosquitto ?? '', ['-h'], { encoding: 'utf8' })
  return /version (\d+\.\d+\.\d+)/.exec(stdout)?.[1] ?? ''
}

/** True when the installed mosquitto is older than this version. */
export function mosquittoBefore(...wanted: readonly [number, number, number]): boolean {
  const found = mosquittoVersion().split('.').map(Number)
  const differing = wanted.findIndex((part, index) => part !== found[index])
  return differing >= 0 && (found[differing] ?? 0) < (wanted[differing] ?? 0)
}

export const mosquittoSetups: Readonly<Record<Setup, MosquittoSettings>> = {
  plain: {},
  narrow: {
    lines: [
      `max_inflight_messages ${limits.receiveMaximum}`,
      `max_packet_size ${limits.maximumPacketSize}`,
      `max_keepalive ${limits.keepAlive}`,
    ],
  },
  lesser: { lines: ['retain_available false'], listenerLines: ['max_qos 1'] },
  guarded: { passwords: { [account.username]: account.password }, denied: '+/denied/#' },
  scram: {},
  durable: { memory: 'all of it' },
}

export function startMosquitto(settings: MosquittoSettings = {}): Promise<Broker> {
  return startProcess(() => makeMosquitto(settings))
}

/** A mosquitto that is not started. */
export async function makeMosquitto(settings: MosquittoSettings): Promise<ProcessBroker> {
  const folder = mkdtempSync(join(tmpdir(), 'mqwire-'))
  const ports = await freePorts(4)
  const file = join(folder, 'mosquitto.conf')
  writeFileSync(file, configuration(folder, ports, settings).join('\n'))
  const [tcp = 0, websocket = 0, secure = 0, secureWebSocket = 0] = ports
  const doors: Record<TransportName, [door: number | string, url: string]> = {
    TCP: [tcp, `mqtt://127.0.0.1:${tcp}`],
    TLS: [secure, `mqtts://localhost:${secure}`],
    WebSocket: [websocket, `ws://127.0.0.1:${websocket}`],
    'Secure WebSocket': [secureWebSocket, `wss://localhost:${secureWebSocket}`],
    'Unix socket': [join(folder, 'socket'), `unix://${join(folder, 'socket')}`],
  }
  const open = Object.entries(doors).filter(([name]) =>
    listens(name as TransportName, settings.tls !== undefined),
  )
  return new ProcessBroker({
    name: 'mosquitto',
    command: programs.mosquitto ?? 'mosquitto',
    parameters: ['-c', file],
    folder,
    urls: Object.fromEntries(open.map(([name, [, url]]) => [name, url])),
    doors: open.map(([, [door]]) => door),
  })
}

function listens(transport: TransportName, tls: boolean): boolean {
  return (
    mosquittoSupports(transport) &&
    (tls || !(transport === 'TLS' || transport === 'Secure WebSocket'))
  )
}

function configuration(
  folder: string,
  ports: readonly number[],
  settings: MosquittoSettings,
): string[] {
  const { lines = [], listenerLines = [], tls, passwords, denied, memory = 'nothing' } = settings
  const [tcp, websocket, secure, secureWebSocket] = ports
  const encrypted = tls === undefined ? [] : certificateLines(folder, tls)
  const listeners: Record<TransportName, string[]> = {
    TCP: [`listener ${tcp} 127.0.0.1`],
    TLS: [`listener ${secure} 127.0.0.1`, ...encrypted],
    WebSocket: [`listener ${websocket} 127.0.0.1`, 'protocol websockets'],
    'Secure WebSocket': [
      `listener ${secureWebSocket} 127.0.0.1`,
      'protocol websockets',
      ...encrypted,
    ],
    'Unix socket': [`listener 0 ${join(folder, 'socket')}`],
  }
  const open = Object.entries(listeners).filter(([name]) =>
    listens(name as TransportName, tls !== undefined),
  )
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
    ...memories[memory],
    `persistence_location ${folder}/`,
    ...(denied === undefined ? [] : [accessFile(folder, denied)]),
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

function accessFile(folder: string, denied: string): string {
  const path = join(folder, 'access')
  writeFileSync(path, `pattern readwrite #\npattern deny ${denied}\n`)
  return `acl_file ${path}`
}

function certificateLines(folder: string, tls: NonNullable<MosquittoSettings['tls']>): string[] {
  const files = {
    'ca.pem': tls.authority.cert,
    'cert.pem': tls.server.cert,
    'key.pem': tls.server.key,
  }
  for (const [name, content] of Object.entries(files)) writeFileSync(join(folder, name), content)
  const options = { cafile: 'ca.pem', certfile: 'cert.pem', keyfile: 'key.pem' }
  return [
    ...Object.entries(options).map(([option, name]) => `${option} ${join(folder, name)}`),
    ...(tls.clientCertificate ? ['require_certificate true'] : []),
  ]
}
