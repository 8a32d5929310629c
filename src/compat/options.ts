/**
 * Converts options of MQTT.js to endpoints and options of mqwire. Options that MQTT.js supports and
 * mqwire does not are refused by name before dialling. Options that MQTT.js ignores are ignored and
 * logged, because frameworks pass such options and their users cannot change them.
 *
 * The caller's object is never changed. Values are checked by mqwire itself.
 */
import {
  type ClientOptions,
  constant,
  type Endpoint,
  type EndpointOptions,
  MqttError,
} from 'mqwire'
import {
  anyObject,
  boolean,
  callable,
  duration,
  integer,
  invalid,
  limit,
  longestTimer,
  optionError,
  type Parser,
  string,
  that,
  unsupported,
} from '../common/schema.js'
import { propertiesOf } from './packets.js'
import type {
  IClientOptions,
  ISecureClientOptions,
  IServer,
  IWebSocketOptions,
  MqttProtocol,
} from './types.js'

/** The result: how to create a client. */
export interface Plan {
  readonly endpoints: readonly Endpoint[]
  readonly options: ClientOptions
  /** The options with defaults, as `client.options` shows them. */
  readonly shown: IClientOptions
  /**
   * Names of options that MQTT.js supports and that have no counterpart because none is needed, if
   * they ask for something other than the default.
   */
  readonly unheeded: readonly string[]
}

/** Supported options. */
const known =
  'auth autoAssignTopicAlias autoUseTopicAlias clean clientId connectTimeout defaultProtocol host hostname keepalive log manualConnect ' +
  'password path port properties protocol protocolVersion query queueQoSZero reconnectOnConnackError reconnectPeriod resubscribe servers ' +
  'subscribeBatchSize transformWsUrl unixSocket username will wsOptions'

/**
 * Options that MQTT.js supports and this module does not. The last ones are read only by its
 * command line; ignoring them would omit a certificate.
 */
const notCarried =
  'authPacket createWebsocket customHandleAcks encoding forceNativeWebSocket incomingStore messageIdProvider my outgoingStore pfx socksProxy ' +
  'caPaths certPath keyPath'
/** Options of Node's `tls.connect()`, to which MQTT.js passes all options. */
const notCarriedByTls =
  'ALPNCallback SNICallback allowPartialTrustChain checkServerIdentity ciphers clientCertEngine crl dhparam ecdhCurve family localAddress lookup ' +
  'maxVersion minDHSize minVersion pskCallback secureContext secureOptions secureProtocol session sigalgs timeout'

const tlsNames = 'ALPNProtocols ca cert key passphrase rejectUnauthorized servername'
const webSocketNames = `${tlsNames} family headers localAddress protocols`
const propertyNames =
  'maximumPacketSize receiveMaximum requestProblemInformation requestResponseInformation sessionExpiryInterval topicAliasMaximum userProperties'

/** Options with the only value that is accepted. */
const fixed: Readonly<Record<string, unknown>> = {
  protocolId: 'MQTT',
  reschedulePings: true,
  timerVariant: 'auto',
  writeCache: true,
}

/**
 * WebSocket options for buffering and framing, with their defaults in MQTT.js: mqwire works
 * differently.
 */
const webDefaults: Readonly<Record<string, unknown>> = {
  binary: true,
  browserBufferSize: 524_288,
  browserBufferTimeout: 1000,
  objectMode: false,
}

const defaults = {
  clean: true,
  connectTimeout: 30_000,
  keepalive: 60,
  protocolVersion: 4,
  queueQoSZero: true,
  resubscribe: true,
} as const

/** Largest packet accepted, in bytes. */
const defaultSize = 16 * 2 ** 20

/** The error for an option that is not supported. */
export function refused(option: string, where = 'in mqwire/compat'): MqttError {
  return unsupported(option, where)
}

/** True for an option that has a value. */
function isGiven(value: unknown): boolean {
  return value !== undefined && value !== null
}

/** Refuses options without a counterpart. @throws MqttError ERR_UNSUPPORTED_OPTION */
export function assertKnown(given: object, names: string, prefix = ''): void {
  const [unknown] = unknownIn(given, names)
  if (unknown !== undefined) throw refused(prefix + unknown)
}

// The properties of CONNECT; none on 3.1.1. There MQTT.js accepts messages of any size, so the
// given size may only raise the limit.
function spokenOf({ protocolVersion, properties = {}, will }: IClientOptions) {
  if (protocolVersion === 5) return { properties, will, unspoken: [] }
  const { maximumPacketSize = 0 } = properties
  const isSize =
    Number.isInteger(maximumPacketSize) &&
    maximumPacketSize > defaultSize &&
    maximumPacketSize < 2 ** 32
  const kept = isSize ? { maximumPacketSize } : {}
  const names = unknownIn(properties, Object.keys(kept).join(' ')).map(
    (name) => `properties.${name}`,
  )
  const unspoken = isGiven(will?.properties) ? [...names, 'will.properties'] : names
  return { properties: kept, will: will && { ...will, properties: undefined }, unspoken }
}

/** Names of options that have a value and are not in the list. */
export function unknownIn(given: object, names: string): string[] {
  return Object.keys(given).filter(
    (name) => isGiven(given[name as keyof typeof given]) && !names.split(' ').includes(name),
  )
}

/** A line of the log. */
export function ignoredLine(names: readonly string[]): string {
  return `mqwire/compat ignores ${names.join(', ')}, as MQTT.js does`
}

/** A random client identifier. */
export function defaultId(): string {
  return `mqttjs_${Math.random().toString(16).slice(2, 10)}`
}

/**
 * Options with defaults and with the parts of the URL that MQTT.js uses, without undefined ones.
 */
function complete(url: string, given: IClientOptions): IClientOptions {
  const own = Object.fromEntries(
    Object.entries(given).filter(([, value]) => isGiven(value)),
  ) as IClientOptions
  const { username, password, ...parts } = partsOf(url)
  // A user in the URL overrides one in the options.
  const login =
    username === undefined ? {} : { username, ...(password !== undefined && { password }) }
  const options = { ...defaults, ...parts, ...own, ...login }
  const clientId = options.query?.['clientId'] ?? options.clientId
  // A generated identifier has no session to resume.
  if (options.clean === false && !clientId)
    throw new MqttError('ERR_INVALID_OPTION', 'Missing clientId for unclean clients', {
      option: 'clientId',
    })
  return addressed({ ...options, ...loginOf(options.auth), clientId: clientId ?? defaultId() })
}

function loginOf(auth: string | undefined): IClientOptions {
  if (auth === undefined) return {}
  const at = auth.lastIndexOf(':')
  return at < 0 ? { username: auth } : { username: auth.slice(0, at), password: auth.slice(at + 1) }
}

const secure: Readonly<Record<string, string>> = { mqtt: 'mqtts', tcp: 'mqtts', ws: 'wss' }

/**
 * Normalises the address: scheme without suffix, `hostname` in place of `host`, a path only where
 * it is used.
 */
function addressed({ path, ...options }: IClientOptions): IClientOptions {
  const {
    protocol,
    defaultProtocol = usualProtocol(),
    host = 'localhost',
    hostname = host,
    cert,
    key,
  } = options
  const [given = '', decoration] = (protocol ?? defaultProtocol).replace(':', '').split('+')
  const unixSocket = options.unixSocket === true || decoration === 'unix' || given === 'unix'
  const scheme = cert !== undefined && key !== undefined ? (secure[given] ?? given) : given
  const hasPath = path !== undefined && (unixSocket || scheme.startsWith('ws'))
  return {
    ...options,
    protocol: scheme as MqttProtocol,
    hostname,
    unixSocket,
    ...(hasPath && { path }),
  }
}

/** The parts of a URL. mqwire refuses an invalid one later. */
function partsOf(given: string): IClientOptions {
  const { location } = globalThis as { readonly location?: { readonly href: string } }
  // In a page, a path is relative to its origin.
  const text =
    given.startsWith('/') && location !== undefined
      ? new URL(given, location.href).href.replace('http', 'ws')
      : given
  if (!URL.canParse(text)) return {}
  const { protocol, hostname, port, pathname, search, searchParams, username, password } = new URL(
    text,
  )
  const host = hostname.replace('[', '').replace(']', '')
  const rest = pathname + search
  // The option holds the path without percent-encoding.
  const path = protocol.includes('unix') ? decoded(rest) : rest
  const parts: IClientOptions = { protocol: protocol.slice(0, -1) as MqttProtocol, host, path }
  if (port !== '') parts.port = Number(port)
  if (username !== '') parts.username = decoded(username)
  if (password !== '') parts.password = decoded(password)
  if (search !== '') parts.query = Object.fromEntries(searchParams)
  return parts
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    throw optionError('ERR_INVALID_BROKER_URL', 'url', 'invalid broker URL: bad percent-encoding')
  }
}

// The default scheme, from the page if there is one.
function usualProtocol(): string {
  const { location } = globalThis as { readonly location?: { readonly protocol: string } }
  return location === undefined ? 'mqtt' : location.protocol === 'https:' ? 'wss' : 'ws'
}

/** One endpoint. */
function endpointOf(options: IClientOptions): EndpointOptions {
  const { protocol = '', hostname = '', port, path = '', query, unixSocket, wsOptions } = options
  if (unixSocket)
    return {
      url: `unix:${path.startsWith('/') ? '//' : ''}${path.split('/').map(encodeURIComponent).join('/')}`,
    }
  const isWeb = protocol.startsWith('ws')
  const name = hostname.includes(':') ? `[${hostname}]` : hostname
  const search = query === undefined || path.includes('?') ? '' : `?${new URLSearchParams(query)}`
  const url = `${protocol}://${name}${port === undefined ? '' : `:${port}`}${isWeb ? path + search : ''}`
  const { headers, protocols, localAddress, family, ...web } = isWeb
    ? (wsOptions ?? {})
    : ({} as IWebSocketOptions)
  const settings = tlsOf({ ...web, ...options })
  const tls = isSecure(protocol) ? settings : {}
  return { url, ...only({ tls, headers, protocols, socket: only({ localAddress, family }) }) }
}

function isSecure(protocol: string): boolean {
  return ['mqtts', 'ssl', 'tls', 'wss'].includes(protocol)
}

// Options that MQTT.js ignores as well; without TLS, also the TLS settings.
function ignoredIn(given: IClientOptions, endpoints: readonly IClientOptions[]): string[] {
  const protocols = endpoints.map(({ protocol = '' }) => protocol)
  const refusals = protocols.some(isSecure) ? `${notCarried} ${notCarriedByTls}` : notCarried
  const heeded = `${known} ${Object.keys(fixed).join(' ')} ${protocols.some(isSecure) ? tlsNames : ''}`
  const unknown = unknownIn(given, heeded)
  const [first] = unknown.filter((name) => refusals.split(' ').includes(name))
  if (first !== undefined) throw refused(first)
  return unknown.filter((name) => !(hasWeb(endpoints) && Object.hasOwn(webDefaults, name)))
}

function hasWeb(endpoints: readonly IClientOptions[]): boolean {
  return endpoints.some(({ protocol = '' }) => protocol.startsWith('ws'))
}

function unheededIn(given: IClientOptions, endpoints: readonly IClientOptions[]): string[] {
  if (!hasWeb(endpoints)) return []
  return Object.keys(webDefaults).filter((name) => {
    const value: unknown = given[name as keyof IClientOptions]
    return isGiven(value) && value !== webDefaults[name]
  })
}

// Options that have a value and are not empty.
function only<T extends object>(given: T): T {
  const isThere = (value: unknown): boolean =>
    isGiven(value) && (value?.constructor !== Object || Object.keys(value).length > 0)
  return Object.fromEntries(Object.entries(given).filter(([, value]) => isThere(value))) as T
}

function tlsOf({
  ca,
  cert,
  key,
  passphrase,
  servername,
  ALPNProtocols,
  rejectUnauthorized,
}: ISecureClientOptions): object {
  if (rejectUnauthorized !== undefined) boolean(rejectUnauthorized, 'rejectUnauthorized')
  return only({
    ca,
    cert: single(cert, 'cert'),
    key: single(key, 'key'),
    passphrase,
    servername,
    alpn: ALPNProtocols?.map((name) =>
      name instanceof Uint8Array ? new TextDecoder().decode(name) : name,
    ),
    insecure: rejectUnauthorized === false ? 'rejectUnauthorized is false' : undefined,
  })
}

function single(given: ISecureClientOptions['key'], name: string): string | Uint8Array | undefined {
  if (!Array.isArray(given)) return given as string | Uint8Array | undefined
  return given.length === 1 ? given[0] : invalid(name, 'one, and not a list')
}

function credentialsOf(all: IClientOptions, client: object): ClientOptions['credentials'] {
  const { transformWsUrl } = all
  if (transformWsUrl === undefined) return undefined
  return ({ endpoint }) =>
    endpoint.startsWith('ws') ? { url: transformWsUrl(endpoint, all, client as never) } : {}
}

function reconnectOf({
  reconnectPeriod,
  reconnectOnConnackError,
}: IClientOptions): ClientOptions['reconnect'] {
  if (reconnectPeriod === 0) return false
  const verdict = reconnectOnConnackError ? 'retry' : 'stop'
  const decide = ({ code }: MqttError) => (code === 'ERR_CONNECT_REFUSED' ? verdict : undefined)
  return {
    ...(reconnectPeriod !== undefined && { backoff: constant(reconnectPeriod) }),
    ...(reconnectOnConnackError !== undefined && { decide }),
  }
}

function loggerOf(log: ((line: never) => void) | undefined): ClientOptions['logger'] {
  if (log === undefined) return undefined
  const write = (line: string): void => log(line as never)
  return { debug: write, info: write, warn: write, error: write }
}

// The port is that of the server entry, or the default of its scheme.
function hostOf({ port: _, ...options }: IClientOptions, server: IServer): IClientOptions {
  return addressed({ ...options, ...server, hostname: server.host })
}

const list: Parser<unknown> = /* @__PURE__ */ that(Array.isArray, 'a list')
const milliseconds: Parser<unknown> = /* @__PURE__ */ that(
  (value) => typeof value === 'number' && value >= 0,
  'milliseconds',
  true,
)

/** Types of options that are parsed here or have another name in mqwire. */
const kinds: readonly (readonly [parse: Parser<unknown>, names: string])[] = [
  [string, 'auth defaultProtocol host hostname path protocol'],
  [anyObject, 'properties query will wsOptions'],
  [list, 'ALPNProtocols servers'],
  [callable, 'log transformWsUrl'],
  [duration, 'reconnectPeriod'],
  [milliseconds, 'connectTimeout'],
  [limit, 'subscribeBatchSize'],
  [/* @__PURE__ */ integer(0, 65_535, ' seconds'), 'keepalive'],
  [
    boolean,
    'autoAssignTopicAlias autoUseTopicAlias clean manualConnect queueQoSZero reconnectOnConnackError rejectUnauthorized resubscribe unixSocket',
  ],
]

/** @throws MqttError ERR_INVALID_OPTION */
function assertKinds(given: IClientOptions): void {
  for (const [parse, names] of kinds)
    for (const name of names.split(' ')) {
      const value: unknown = given[name as keyof IClientOptions]
      if (isGiven(value)) parse(value, name)
    }
}

/**
 * Converts the arguments of `connect`. `client` is passed to `transformWsUrl`.
 * @throws MqttError ERR_UNSUPPORTED_OPTION, ERR_INVALID_OPTION
 */
export function planOf(url: string, given: IClientOptions, client: object): Plan {
  assertKinds(given)
  for (const server of given.servers ?? []) assertKinds(anyObject(server, 'servers') as IServer)
  assertKnown(given.wsOptions ?? {}, webSocketNames, 'wsOptions.')
  for (const [name, value] of Object.entries(fixed)) {
    const asked = given[name as keyof IClientOptions]
    if (isGiven(asked) && asked !== value) throw refused(name, `but ${value}`)
  }
  const shown = complete(url, given)
  if (shown.protocolVersion === 3) throw refused('protocolVersion', '3, which is MQTT 3.1')
  if (shown.resubscribe === false && shown.clean === false)
    throw refused('resubscribe', 'false, where clean is false')
  const {
    clientId,
    username,
    password,
    clean,
    keepalive,
    protocolVersion,
    connectTimeout,
    subscribeBatchSize,
    queueQoSZero,
    servers,
  } = shown
  const { properties, will, unspoken } = spokenOf(shown)
  assertKnown(properties, propertyNames, 'properties.')
  const hosts: readonly (IServer | undefined)[] =
    servers === undefined || servers.length === 0 ? [undefined] : servers
  const isUrl = url === '' || url.startsWith('/') || URL.canParse(url)
  const addresses = hosts.map((server) => (server === undefined ? shown : hostOf(shown, server)))
  const ignored = [...ignoredIn(given, addresses), ...unspoken]
  if (ignored.length > 0) loggerOf(given.log)?.warn?.(ignoredLine(ignored))
  // mqwire refuses an invalid URL.
  const endpoints = isUrl ? addresses.map(endpointOf) : [url]
  const options: ClientOptions = {
    ...only({
      username,
      password,
      credentials: credentialsOf(shown, client),
      maxFiltersPerSubscribe: subscribeBatchSize,
      logger: loggerOf(shown.log),
    }),
    // An empty will is passed on as well, and refused.
    ...(will !== undefined && {
      will: only({ ...will, properties: propertiesOf(will.properties) }),
    }),
    maximumPacketSize: defaultSize,
    ...propertiesOf(properties),
    clientId: clientId as string,
    cleanStart: clean as boolean,
    keepAlive: keepalive as number,
    protocolVersion: protocolVersion as 4 | 5,
    connectTimeout: Math.min(connectTimeout as number, longestTimer),
    firstConnect: shown.reconnectPeriod === 0 ? 'reject' : 'wait',
    reconnect: reconnectOf(shown),
    // Callbacks are called on acknowledgement, even if the session was lost in between.
    outbound: { offline: { qos0: queueQoSZero ? 'queue' : 'reject' }, onSessionLost: 'republish' },
    unclaimedHold: 0,
  }
  return { endpoints, options, shown, unheeded: unheededIn(given, addresses) }
}
