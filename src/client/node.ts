/**
 * The entry file of `mqwire` for Node. One of the two places that choose a transport. Importing it
 * has no side effect.
 */
import { type Channel, channel } from 'node:diagnostics_channel'
import { Reads } from '../common/reads.js'
import { printable, textOf } from '../errors.js'
import { dialTcp } from '../transport/tcp.js'
import { dialTls } from '../transport/tls.js'
import type { Dial } from '../transport/transport.js'
import { dialUnix } from '../transport/unix.js'
import { dialWebSocket } from '../transport/websocket.js'
import { dialWebSocketNode } from '../transport/websocket-node.js'
import { clientOn, connectWith } from './client.js'
import type { ClientInternals } from './lifecycle/internals.js'
import { hasSettings } from './options/check-endpoint.js'
import { socketSettings, tlsSettings } from './options/check-sockets.js'
import type { ClientOptions, ConnectOptions, Endpoint } from './options/index.js'
import { type Platform, type Print, runtime, spaced } from './platform.js'

// Bun replaces `ws` with its own implementation, which hides the stream that `dialWebSocketNode`
// needs; Bun's WebSocket class is standard.
const dialPlatformWebSocket = 'bun' in process.versions ? dialWebSocket : dialWebSocketNode

const diallers: Readonly<Record<string, Dial>> = {
  mqtt: dialTcp,
  tcp: dialTcp,
  mqtts: dialTls,
  ssl: dialTls,
  tls: dialTls,
  ws: dialPlatformWebSocket,
  wss: dialPlatformWebSocket,
  unix: dialUnix,
}
const secure = ['mqtts', 'ssl', 'tls', 'wss']
const tlsErrors = [
  'ERR_TLS',
  'ERR_SSL',
  'CERT_',
  'UNABLE_TO_',
  'SELF_SIGNED',
  'DEPTH_ZERO',
  'HOSTNAME_MISMATCH',
  'INVALID_CA',
  'EPROTO',
  'ERR_OSSL',
]

const channels = new Map<string, Channel>()

/** The diagnostics channel of an event: `mqwire:connect` and so on. */
function channelOf(type: string): Channel {
  const known = channels.get(type)
  if (known !== undefined) return known
  const made = channel(`mqwire:${type}`)
  channels.set(type, made)
  return made
}

/**
 * Clients that have not ended, to be checked when the process ends. Weak references, so that unused
 * clients can be collected.
 */
const attended = new Set<WeakRef<ClientInternals>>()
const collected = /* @__PURE__ */ new FinalizationRegistry<WeakRef<ClientInternals>>(forget)
const mostNamed = 4

/** Registers a client; one `exit` listener serves all of them. */
function attend(given: object): () => void {
  const client = given as ClientInternals
  if (attended.size === 0) process.on('exit', reportUnsent)
  const entry = new WeakRef(client)
  attended.add(entry)
  collected.register(client, entry)
  // Delayed until listeners of this turn have run, because one of them may end the process.
  return () => queueMicrotask(() => forget(entry))
}

function forget(entry: WeakRef<ClientInternals>): void {
  attended.delete(entry)
  if (attended.size === 0) process.off('exit', reportUnsent)
}

/** True while the process exits: deferred warnings would never be emitted. */
let ending = false

/** Calls back when the process exits, unless the returned function is called before. */
function atEnd(callback: () => void): () => void {
  const listener = (): void => {
    ending = true
    callback()
  }
  process.once('exit', listener)
  return () => process.off('exit', listener)
}

const print: Print = (code, text, detail) => {
  const now = (): void =>
    void process.emit(
      'warning',
      Object.assign(new Error(text), { name: 'MqwireWarning', code, detail }),
    )
  if (ending) return now()
  // Also prints when the program ends in this turn.
  const stop = atEnd(now)
  process.emitWarning(text, { type: 'MqwireWarning', code, detail: detail as string })
  process.nextTick(stop)
}

const report = spaced(print, (callback) => {
  const second = (): void => {
    stop()
    callback()
  }
  // Does not keep the process alive.
  const timer = setTimeout(second, 1000).unref()
  const stop = atEnd(() => {
    clearTimeout(timer)
    callback()
  })
})

/** The process exits: reports what is lost, and clients that were never connected. */
function reportUnsent(): void {
  ending = true
  const ids: string[] = []
  let wayOut = 'connect()'
  const total = { publishes: 0, bytes: 0 }
  for (const entry of attended) {
    const client = entry.deref()
    if (client === undefined) continue
    const { publishingIfUsed, connections, clientId, states } = client
    const idle = states.current === 'idle'
    if (idle) reportUnconnected(client)
    const { connection } = connections
    const publishes = (publishingIfUsed?.size ?? 0) + (publishingIfUsed?.inFlight ?? 0)
    const bytes = connection === undefined ? 0 : connection.writer.end - connection.writer.left
    if (publishes + bytes === 0) continue
    total.publishes += publishes
    total.bytes += bytes
    if (!idle) wayOut = 'drain()'
    ids.push(ids.length < mostNamed ? printable(clientId) : '…')
  }
  if (ids.length === 0) return
  const what = `publishes queued or in flight: ${total.publishes}, bytes perhaps not written: ${total.bytes}, clients: ${ids.slice(0, mostNamed + 1).join(', ')}`
  const text = `The process ends before mqwire is done (${what}): await client.${wayOut} first`
  process.emit(
    'warning',
    Object.assign(new Error(text), { name: 'Warning', code: 'MQWIRE_UNSENT' }),
  )
}

/**
 * Reports a client whose `connect()` was never called although something waits for a connection.
 */
function reportUnconnected(client: ClientInternals): void {
  const { publishingIfUsed, subscriptions } = client
  const what =
    subscriptions.filters > 0
      ? 'a subscription waits'
      : publishingIfUsed?.awaited
        ? 'client.writable waits'
        : undefined
  if (what === undefined) return
  client.report(
    'MQWIRE_NOT_CONNECTED',
    `the process ends while ${what} for a connection: await client.connect() first, or use connect()`,
    undefined,
  )
}

/** Loaded with the first client, for all. */
let scanner: ReturnType<NonNullable<Platform['loadScanner']>> | undefined

const platform: Platform = {
  ...runtime,
  attend,
  report,
  // Called within a microtask, it runs after all other microtasks: a loop that awaits each publish
  // fills one write.
  turnEnd: (callback) => process.nextTick(callback),
  nextTurn: (callback) => void setImmediate(callback),
  trace(type, event) {
    const events = channelOf(type)
    if (events.hasSubscribers) events.publish(event)
  },
  traced: (type) => channelOf(type).hasSubscribers,
  reads: (...parts) => new Reads(...parts),
  allocate: (size) => new Uint8Array(Buffer.allocUnsafeSlow(size).buffer),
  loadScanner: () => {
    scanner ??= import('../wasm/index.js').then((wasm) => wasm.loadScanner())
    return scanner
  },
  loadKeeper: async (parts) =>
    (await import('./durable/keeper.js')).openKeeper(parts as ClientInternals),
  schemes: `${Object.keys(diallers).join(':, ')}:`,
  dialler: (scheme) => (Object.hasOwn(diallers, scheme) ? diallers[scheme] : undefined),
  isTlsError: (error) => tlsErrors.some((prefix) => codeOf(error).startsWith(prefix)),
  describe: described,
  tls: tlsSettings,
  socket: socketSettings,
  unsupported({ url, tls, socket, headers }) {
    const scheme = url.protocol.slice(0, -1)
    if (hasSettings(tls) && !secure.includes(scheme)) return 'tls'
    if (hasSettings(headers) && !scheme.startsWith('ws')) return 'headers'
    return hasSettings(socket) && scheme === 'unix' ? 'socket' : undefined
  },
}

const noTls = ({ protocol, host }: URL): string =>
  `there is no TLS; ${protocol === 'wss:' ? 'ws:' : 'mqtt:'}//${host}?`

const advice: Readonly<Record<string, string | ((url: URL) => string)>> = {
  ECONNREFUSED: 'nobody listens there; host and port?',
  ECONNRESET: hungUp,
  ENOTFOUND: 'no such host',
  EPROTO: noTls,
  ETIMEDOUT: 'no answer; host and port?',
  ERR_SSL_WRONG_VERSION_NUMBER: noTls,
  ERR_SSL_PACKET_LENGTH_TOO_LONG: noTls,
  DEPTH_ZERO_SELF_SIGNED_CERT: 'tls: { ca } trusts it',
  SELF_SIGNED_CERT_IN_CHAIN: 'tls: { ca } trusts it',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'tls: { ca } trusts it',
}

// Hint about other schemes that the port may serve.
function hungUp({ protocol, host }: URL): string {
  if (protocol === 'ws:')
    return `it hung up; for a port of MQTT over TCP mqtt://${host}, for one of TLS wss:?`
  if (protocol === 'wss:')
    return `it hung up; for a port of MQTT over TLS mqtts://${host}, without TLS ws:?`
  return protocol === 'mqtt:' || protocol === 'tcp:'
    ? 'it hung up; mqtts: or wss:?'
    : 'it hung up; port, or a client certificate?'
}

// For example `ECONNREFUSED 127.0.0.1:1883`. If all addresses of a name failed, the first one.
function described(error: Error, url: URL): string {
  const code = codeOf(error)
  const one = (error instanceof AggregateError && (error.errors[0] as unknown)) || error
  const { address, port, hostname } = one as { address?: string; port?: number; hostname?: string }
  const where =
    address === undefined ? hostname : port === undefined ? address : `${address}:${port}`
  const text = [code || textOf(error.message), where].filter(Boolean).join(' ')
  const hint = Object.hasOwn(advice, code) ? advice[code] : undefined
  return hint === undefined ? text : `${text}: ${typeof hint === 'string' ? hint : hint(url)}`
}

function codeOf(error: unknown): string {
  return typeof error === 'object' &&
    error !== null &&
    'code' in error &&
    typeof error.code === 'string'
    ? error.code
    : ''
}

/** An MQTT client; `await using` disconnects it at the end of the block. */
export class Client extends /* @__PURE__ */ clientOn(platform) {
  /** Fixed, because bundlers may rename the class. */
  static override readonly name = 'Client'
}

/**
 * Creates a client and connects it to one endpoint, or to a list that is tried in order.
 * @throws MqttError as `new Client` and `client.connect`
 */
export const connect: (
  endpoints: Endpoint | readonly Endpoint[],
  options?: ClientOptions & ConnectOptions,
) => Promise<Client> = /* @__PURE__ */ connectWith(Client)

export * from './public.js'
