/**
 * Client options, parsed into one complete frozen configuration before anything else happens.
 *
 * Wrong values throw `ERR_INVALID_OPTION` with the option's name and range.
 * The caller's object is never kept or written to; bytes are copied.
 */
import {
  anyObject,
  assertHandler,
  assertNone,
  boolean,
  bytes,
  callable,
  duration,
  hasSettings,
  integer,
  invalid,
  limit,
  longestTimer,
  object,
  oneOf,
  optional,
  optionError,
  type Parsed,
  type Parser,
  quoted,
  settingsIn,
  string,
  text,
  that,
  unknown,
  userProperties,
  withDefault,
} from '../../common/schema.js'
import { inPlaceOf, isProgramFault, type MqttError, programFault, textOf } from '../../errors.js'
import type { Store } from '../../store/base/store.js'
import { writeConnect } from '../../wire/encode-client.js'
import { WireError } from '../../wire/error.js'
import type { FrameScanner } from '../../wire/frames.js'
import type {
  ConnectPacket,
  Properties,
  ProtocolVersion,
  QoS,
  UserProperties,
  Will,
} from '../../wire/packets.js'
import { Writer } from '../../wire/writer.js'
import type { Platform } from '../platform.js'
import { exponential } from './backoff.js'
import type {
  AuthMechanism,
  Backoff,
  ClientEvents,
  ClientListeners,
  ClientOptions,
  Credentials,
  CredentialsContext,
  DecisionContext,
  Logger,
  OfflinePolicy,
  OutboundOverflow,
  Overflow,
  RateOptions,
  SessionStore,
  Verdict,
} from './index.js'

/** Checks it. @throws MqttError ERR_INVALID_OPTION */
export const rate = /* @__PURE__ */ object<RateOptions>({
  messages: /* @__PURE__ */ optional(/* @__PURE__ */ integer(1, 1e9)),
  bytes: /* @__PURE__ */ optional(/* @__PURE__ */ integer(1, 1e12)),
  per: /* @__PURE__ */ optional(/* @__PURE__ */ integer(1, longestTimer, ' milliseconds')),
})

/** Every event. */
const events =
  'state,connect,disconnect,connecterror,reconnecting,dial,serverdisconnect,sessionlost,drop,stalled,late,unclaimed,recovered,storecorrupt,error,invalid,packet'.split(
    ',',
  )

/** Checks the name of an event; `path` names it in errors. */
export function eventName<K extends keyof ClientEvents>(type: K, path = 'type'): K {
  return events.includes(type) ? type : unknown(path, 'event', textOf(type), [...events, 'message'])
}

/** Listeners by event. */
export const listeners: Parser<ClientListeners> = (value, path) => {
  const given: Record<string, unknown> = { ...anyObject(value, path) }
  for (const type of settingsIn(given))
    assertHandler(
      given[eventName(type as keyof ClientEvents, `${path}.${type}`)],
      `${path}.${type}`,
    )
  return given
}

/** What the option `scanner` may be. */
export type ScannerOption = FrameScanner | PromiseLike<unknown> | false

/** Checks the option. */
export const scannerOption: Parser<ScannerOption> = that(
  (value) =>
    value === false ||
    isScanner(value) ||
    typeof (value as PromiseLike<unknown> | null)?.then === 'function',
  'what loadScanner() of mqwire/wasm gives, or false',
)

function isScanner(value: unknown): value is FrameScanner {
  return typeof (value as FrameScanner | null | undefined)?.frames === 'function'
}

/** Calls back with the scanner as soon as there is one, which may be never. */
export function findScanner(
  option: ScannerOption | undefined,
  platform: Platform,
  found: (scanner: FrameScanner) => void,
): void {
  if (option === false) return
  if (isScanner(option)) return found(option)
  const take = (loaded: unknown): void => {
    if (isScanner(loaded)) found(loaded)
  }
  Promise.resolve(option ?? platform.loadScanner?.()).then(take, () => undefined)
}

const megabyte = 1024 * 1024
const week = 604_800 // seconds that the server keeps a session that is in a store here
/** Seconds of keep-alive that a PINGREQ a minute late still keeps: the server waits for one and a half times as long. */
const hiddenKeepAlive = 180

export const expiryInterval: Parser<number> = integer(0, 0xffff_ffff)

/** Quality of Service. */
export const qos: Parser<QoS> = oneOf(0, 1, 2)
const overflow: Parser<Overflow> = oneOf('backpressure', 'drop-newest', 'drop-oldest')

/** What is not the caller's to give. */
export const leftOut: Parser<undefined> = that((value) => value === undefined, 'left out')

/** Properties of an outgoing PUBLISH or of a will, copied; some have a parser. What else they may hold is checked by the encoder. */
export function propertiesWith(
  parsers: { readonly [K in keyof Properties]: Parser<unknown> },
): Parser<Properties> {
  const all: [string, Parser<unknown>][] = Object.entries({
    topicAlias: leftOut,
    correlationData: bytes,
    userProperties,
    ...parsers,
  })
  return (value, path) => {
    const given: Record<string, unknown> = { ...anyObject(value, path) }
    for (const [name, parse] of all)
      if (given[name] !== undefined) given[name] = parse(given[name], `${path}.${name}`)
    return given
  }
}

export const publishProperties: Parser<Properties> = propertiesWith({})

const will: Parser<Will> = object<Will>({
  topic: string,
  payload: withDefault(bytes, new Uint8Array(0)),
  qos: withDefault(qos, 0),
  retain: withDefault(boolean, false),
  properties: withDefault(publishProperties, {}),
})

const keepAlive: Parser<number> = (value, path) =>
  value === false ? 0 : integer(0, 65_535, ' (seconds), or false')(value, path)
export const offlinePolicy: Parser<OfflinePolicy> = oneOf('queue', 'reject')
export const outboundOverflow: Parser<OutboundOverflow> = oneOf(
  'wait',
  'reject',
  'drop-newest',
  'drop-oldest',
)

/** What may be said of one message, and of all. */
export const messageOptions = {
  ackTimeout: optional(duration),
  ttl: optional(duration),
  onSessionLost: optional(oneOf('republish', 'reject')),
}

const bufferBytes: Parser<number> = integer(1, Number.MAX_SAFE_INTEGER)

/** What may be said of the buffer of one subscription, and of all. */
export const bufferOptions = {
  buffer: optional(integer(1, 1_000_000_000)),
  bufferBytes: optional(bufferBytes),
  overflow: optional(overflow),
}

const logger: Parser<Logger | null> = that(
  (value) => typeof value === 'object',
  'console, an object with some of its methods, or null',
)

const version: Parser<ProtocolVersion | 'auto'> = oneOf(5, 4, 'auto')

const reconnecting = object<ReconnectPolicy>({
  backoff: withDefault(callable, exponential()),
  stableAfter: withDefault(duration, 30_000),
  maxAttempts: withDefault(limit, Number.POSITIVE_INFINITY),
  decide: optional(callable),
})

const reconnect: Parser<ReconnectPolicy | false> = (value, path) => {
  if (value === false) return false
  if (typeof value === 'number') invalid(path, `false or { backoff: constant(${value}) }`)
  return reconnecting(value === true ? {} : value, path)
}

const mechanismSchema = {
  method: text,
  start: callable,
  continue: callable,
  success: optional(callable),
}
const mechanism = object<AuthMechanism>(mechanismSchema)

// Called as methods: a mechanism may be an object with state of its own.
const auth: Parser<AuthMechanism> = (value, path) => {
  const given = anyObject(value, path) as Record<string, unknown>
  const bound = (member: unknown): unknown =>
    typeof member === 'function' ? member.bind(given) : member
  return mechanism(
    Object.fromEntries(Object.keys(mechanismSchema).map((name) => [name, bound(given[name])])),
    path,
  )
}

const isHost = (item: unknown): boolean =>
  typeof item === 'string' && /^[^/@?#\\\s]+$/.test(item) && URL.canParse(`mqtt://${item}`)

const references: Parser<readonly string[]> = (value, path) =>
  that<readonly string[]>(
    (given) => Array.isArray(given) && given.every(isHost),
    'hosts, with or without a port',
  )(value, path).map((item) => item.toLowerCase())

/** How a lost connection is made good. */
export interface ReconnectPolicy {
  readonly backoff: Backoff
  /** Milliseconds. */
  readonly stableAfter: number
  readonly maxAttempts: number
  readonly decide: ((error: MqttError, context: DecisionContext) => Verdict | undefined) | undefined
}

/** What waits to be sent. */
export interface OutboundConfig {
  readonly maxQueuedMessages: number
  readonly maxQueuedBytes: number
  readonly maxInflight: number | undefined
  readonly overflow: OutboundOverflow
  readonly offline: {
    readonly qos0: OfflinePolicy
    readonly qos1: OfflinePolicy
    readonly qos2: OfflinePolicy
  }
  readonly ackTimeout: number | undefined
  readonly ttl: number | undefined
  readonly rate: RateOptions | undefined
  /** Undefined: depends on the QoS, and on the protocol version. */
  readonly onSessionLost: 'republish' | 'reject' | undefined
  readonly poisonAfter: number
}

/** Every option with its value. */
export interface Config {
  /** What the caller gave of those for which it counts. */
  readonly set: { readonly [K in (typeof said)[number]]?: Exclude<Given[K], undefined> }
  readonly clientId: string
  readonly protocolVersion: ProtocolVersion | 'auto'
  readonly username: string | undefined
  readonly password: Uint8Array | undefined
  readonly credentials:
    | ((context: CredentialsContext) => Credentials | Promise<Credentials>)
    | undefined
  readonly credentialsTimeout: number
  readonly keepAlive: number | undefined
  readonly pingTimeout: number
  readonly connectTimeout: number
  readonly cleanStart: boolean
  /** Undefined where the session ends with the process. */
  readonly store: Store | SessionStore | undefined
  readonly sessionExpiryInterval: number
  readonly receiveMaximum: number
  readonly maximumPacketSize: number
  readonly oversized: 'skip' | 'disconnect'
  readonly topicAliasMaximum: number | undefined
  readonly requestResponseInformation: boolean | undefined
  readonly requestProblemInformation: boolean | undefined
  readonly userProperties: UserProperties | undefined
  readonly will: Will | undefined
  readonly firstConnect: 'reject' | 'wait'
  readonly reconnect: ReconnectPolicy | false
  readonly refreshBefore: number
  readonly unclaimedHold: number
  /** Subscription buffers; what is undefined depends on what is subscribed to, and how. */
  readonly subscriptions: Parsed<typeof bufferOptions> & {
    readonly bufferBytes: number
    readonly poisonAfter: number
  }
  readonly outbound: OutboundConfig
  readonly maxFiltersPerSubscribe: number
  readonly memoryBudget: number
  readonly receiveMaximumExceeded: 'tolerate' | 'disconnect'
  readonly on: ClientListeners | undefined
  readonly platform: Platform | undefined
  readonly logger: Logger | null | undefined
  readonly auth: AuthMechanism | undefined
  readonly scanner: ScannerOption | undefined
  readonly stats: boolean
  readonly resubscribe: 'when-lost' | 'always'
  readonly serverReferences: readonly string[] | undefined
}

const offline = object<OutboundConfig['offline']>({
  qos0: withDefault(offlinePolicy, 'reject'),
  qos1: withDefault(offlinePolicy, 'queue'),
  qos2: withDefault(offlinePolicy, 'queue'),
})

const outbound = object<OutboundConfig>({
  maxQueuedMessages: withDefault(limit, 10_000),
  maxQueuedBytes: withDefault(limit, 16 * megabyte),
  maxInflight: optional(integer(1, 65_535)),
  overflow: withDefault(outboundOverflow, 'wait'),
  offline,
  ...messageOptions,
  poisonAfter: withDefault(limit, 5),
  rate: optional(rate),
})

const connectFive = {
  sessionExpiryInterval: optional(expiryInterval),
  receiveMaximum: optional(integer(1, 65_535)),
  topicAliasMaximum: optional(integer(0, 65_535)),
  requestResponseInformation: optional(boolean),
  requestProblemInformation: optional(boolean),
  userProperties: optional(userProperties),
}

/** Options that 3.1.1 does not have. */
const fiveOnly = { ...connectFive, auth: optional(auth), serverReferences: optional(references) }

const connectProperties = { ...connectFive, maximumPacketSize: optional(integer(1, 0xffff_ffff)) }

const connectOptions = {
  ...connectProperties,
  keepAlive: optional(keepAlive),
  will: optional(will),
}

/** Bytes of a packet that are announced at least, however small the memory budget is: CONNACK has to fit. */
const leastPacketSize = 1024

/** Options of which it counts whether the caller gave them: 3.1.1 refuses only what was given. */
const said = [
  ...(Object.keys(fiveOnly) as (keyof typeof fiveOnly)[]),
  'will',
  'pingTimeout',
] as const

const connectSchema = object<Parsed<typeof connectOptions>>(connectOptions)

/** What of these may change with each CONNECT; what is left out stays as the client's options say. */
export const overrides: Parser<Partial<ConnectOverrides>> = (value, path) =>
  filled(connectSchema(value, path), Object.keys(connectOptions) as (keyof ConnectOverrides)[])

// Those that have a value.
function filled<T extends object, K extends keyof T>(
  settings: T,
  names: readonly K[],
): { readonly [P in K]?: Exclude<T[P], undefined> } {
  const found: Partial<T> = {}
  for (const name of names) if (settings[name] !== undefined) found[name] = settings[name]
  return found as never
}

/** Names of what is set and 3.1.1 does not have. */
export function unspoken(
  set: {
    readonly [K in keyof Config['set']]: Config['set'][K] | undefined
  },
): string[] {
  const names = settingsIn(set).filter((name) => name in fiveOnly)
  return hasSettings(set.will?.properties ?? {}) ? [...names, 'will.properties'] : names
}

// What is beside the store is checked by what keeps the session.
const store: Parser<Store> = (value, path) => {
  const given = ((value as Partial<SessionStore> | null)?.store ?? value) as Partial<
    Store & PromiseLike<Store>
  > | null
  if (typeof ((value as Partial<Store> | null)?.batch ?? given?.batch) === 'function')
    return value as Store
  return invalid(
    path,
    typeof given?.then === 'function' ? 'a store: await the promise of levelStore()' : 'a store',
  )
}

const config = object<Given>({
  ...fiveOnly,
  ...connectOptions,
  clientId: withDefault(string, ''),
  protocolVersion: withDefault(version, 5),
  username: optional(string),
  password: optional(bytes),
  credentials: optional(
    that<never>(
      (value) => typeof value === 'function',
      'a function; username and password are options by themselves',
    ),
  ),
  credentialsTimeout: withDefault(duration, 30_000),
  pingTimeout: optional(duration),
  connectTimeout: withDefault(duration, 10_000),
  cleanStart: optional(boolean),
  store: optional(store),
  firstConnect: withDefault(oneOf('reject', 'wait'), 'reject'),
  reconnect,
  refreshBefore: withDefault(duration, 60_000),
  unclaimedHold: withDefault(duration, 30_000),
  subscriptions: object<Config['subscriptions']>({
    ...bufferOptions,
    bufferBytes: withDefault(bufferBytes, 4 * megabyte),
    poisonAfter: withDefault(limit, 3),
  }),
  outbound,
  maxFiltersPerSubscribe: withDefault(limit, Number.POSITIVE_INFINITY),
  memoryBudget: optional(limit),
  receiveMaximumExceeded: withDefault(oneOf('tolerate', 'disconnect'), 'tolerate'),
  oversized: withDefault(oneOf('skip', 'disconnect'), 'skip'),
  on: optional(listeners),
  platform: optional(
    that<Platform>(
      (value) => typeof (value as Partial<Platform>)?.nextTurn === 'function',
      'virtualPlatform()',
    ),
  ),
  logger: optional(logger),
  scanner: optional(scannerOption),
  stats: withDefault(boolean, false),
  resubscribe: withDefault(oneOf('when-lost', 'always'), 'when-lost'),
})

/** Parses the options of a client. @throws MqttError ERR_INVALID_OPTION, ERR_UNSUPPORTED_OPTION */
export function parseOptions(options: ClientOptions): Config {
  const given = config(options)
  const durable = given.store !== undefined
  // A message that we say we take has to fit, and so has what it is put together from.
  const memoryBudget =
    given.memoryBudget ?? Math.max(32 * megabyte, 2 * (given.maximumPacketSize ?? 0))
  const maximumPacketSize = Math.max(
    leastPacketSize,
    Math.min(16 * megabyte, Math.floor(memoryBudget / 2)),
  )
  const parsed: Config = Object.freeze({
    ...given,
    set: filled(given, said),
    cleanStart: given.cleanStart ?? !durable,
    sessionExpiryInterval: given.sessionExpiryInterval ?? (durable ? week : 300),
    memoryBudget,
    maximumPacketSize: given.maximumPacketSize ?? maximumPacketSize,
    receiveMaximum: given.receiveMaximum ?? 65_535,
    requestResponseInformation: given.requestResponseInformation ?? false,
    requestProblemInformation: given.requestProblemInformation ?? true,
    keepAlive: given.keepAlive ?? 30,
    pingTimeout: given.pingTimeout ?? 10_000,
  })
  if (!parsed.cleanStart && parsed.clientId === '' && !durable)
    invalid('clientId', 'set where cleanStart is false')
  const v4 = parsed.protocolVersion === 4
  if (v4) assertNone(unspoken(parsed.set))
  // A trial run of the encoder finds text that no CONNECT can carry, with the name of its field.
  const { cleanStart, clientId, username, password } = parsed
  checkConnect(
    connectPacket(parsed, { version: v4 ? 4 : 5, cleanStart, clientId, username, password }),
  )
  return parsed
}

type Given = Omit<
  Config,
  'set' | 'memoryBudget' | 'pingTimeout' | 'cleanStart' | keyof ConnectOverrides
> & {
  readonly cleanStart: boolean | undefined
  readonly memoryBudget: number | undefined
  readonly pingTimeout: number | undefined
} & Parsed<typeof connectOptions>

/** CONNECT options that `credentials()` may change for one connection. */
export type ConnectOverrides = Pick<Config, keyof typeof connectOptions>

/** What distinguishes one CONNECT from the next. */
export interface ConnectInput {
  readonly version: ProtocolVersion
  readonly cleanStart: boolean
  readonly clientId: string
  /** These go over everything. */
  readonly limits?: Partial<ConnectOverrides> | undefined
  readonly username?: string | undefined
  readonly password?: Uint8Array | undefined
  readonly overrides?: Partial<ConnectOverrides> | undefined
  /** Timers come once a minute. */
  readonly hidden?: boolean | undefined
  readonly auth?: Properties | undefined
}

/** The CONNECT of one attempt (section 3.1). */
export function connectPacket(given: Config, input: ConnectInput): ConnectPacket {
  const { version, cleanStart, clientId, username, password, hidden, auth } = input
  const chosen: Choice = (name) => input.limits?.[name] ?? input.overrides?.[name] ?? given[name]
  const keepAlive = chosen('keepAlive') ?? 0
  const will = chosen('will')
  return {
    type: 'connect',
    protocolName: 'MQTT',
    protocolVersion: version,
    cleanStart,
    keepAlive: hidden && keepAlive > 0 ? Math.max(keepAlive, hiddenKeepAlive) : keepAlive,
    clientId,
    will: will && (version === 4 ? { ...will, properties: {} } : will),
    username,
    password: password as ConnectPacket['password'],
    properties: version === 4 ? {} : { ...announced(chosen), ...auth },
  }
}

type Choice = <K extends keyof ConnectOverrides>(name: K) => ConnectOverrides[K]

/** What CONNECT leaves out, as it means no more (section 3.1.2.11). */
const usual: object = {
  sessionExpiryInterval: 0,
  receiveMaximum: 65_535,
  topicAliasMaximum: 0,
  requestResponseInformation: false,
  requestProblemInformation: true,
}

function announced(chosen: Choice): Properties {
  const properties: Record<string, unknown> = {}
  for (const name of Object.keys(connectProperties) as (keyof typeof connectProperties)[]) {
    const value = chosen(name)
    if (value !== undefined && value !== usual[name as never])
      properties[name] = typeof value === 'boolean' ? Number(value) : value
  }
  return properties
}

/** Throws what is wrong with a CONNECT in the caller's terms: what it carries as a property is an option by itself. */
export function checkConnect(packet: ConnectPacket): void {
  // [MQTT-3.1.2-22] of 3.1.1.
  if (
    packet.protocolVersion === 4 &&
    packet.password !== undefined &&
    packet.username === undefined
  )
    invalid('password', 'with a user name on 3.1.1')
  try {
    writeConnect(new Writer(), packet)
  } catch (error) {
    throw asInvalidOption(error, 'properties.')
  }
}

/** The encoder's objection in the caller's terms: the code for topics and sizes, else `ERR_INVALID_OPTION`. `prefix` of the field is left out, `topic` is shown. */
export function asInvalidOption(error: unknown, prefix = '', topic?: string): unknown {
  if (!(error instanceof WireError)) return error
  const field = error.option ?? ''
  const option = field.startsWith(prefix) ? field.slice(prefix.length) : field
  const code =
    error.kind === 'too-large' || option === 'payload'
      ? 'ERR_PACKET_TOO_LARGE'
      : option === 'topic'
        ? 'ERR_INVALID_TOPIC'
        : 'ERR_INVALID_OPTION'
  const { message } = error
  const text =
    topic !== undefined && option === 'topic'
      ? message.replace(':', () => ` ${quoted(topic)}`)
      : message
  const located = inPlaceOf(error, () => optionError(code, option, text))
  return isProgramFault(error) ? programFault(located) : located
}
