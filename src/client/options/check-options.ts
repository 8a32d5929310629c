/**
 * Parses client options into one complete frozen configuration.
 *
 * Invalid values throw `ERR_INVALID_OPTION` with the option's name and range. The caller's object
 * is neither kept nor changed; bytes are copied.
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
  type Schema,
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

/** Checks `outbound.rate`. @throws MqttError ERR_INVALID_OPTION */
export const rate = /* @__PURE__ */ object<RateOptions>({
  messages: /* @__PURE__ */ optional(/* @__PURE__ */ integer(1, 1e9)),
  bytes: /* @__PURE__ */ optional(/* @__PURE__ */ integer(1, 1e12)),
  per: /* @__PURE__ */ optional(/* @__PURE__ */ integer(1, longestTimer, ' milliseconds')),
})

/** The names of all events. */
const events =
  'state,connect,disconnect,connecterror,reconnecting,dial,serverdisconnect,sessionlost,drop,stalled,late,unclaimed,recovered,storecorrupt,error,invalid,packet'.split(
    ',',
  )

/** Checks the name of an event; `path` names it in errors. */
export function eventName<K extends keyof ClientEvents>(type: K, path = 'type'): K {
  return events.includes(type) ? type : unknown(path, 'event', textOf(type), [...events, 'message'])
}

/** Checks listeners by event name. */
export const listeners: Parser<ClientListeners> = (value, path) => {
  const given: Record<string, unknown> = { ...anyObject(value, path) }
  for (const type of settingsIn(given))
    assertHandler(
      given[eventName(type as keyof ClientEvents, `${path}.${type}`)],
      `${path}.${type}`,
    )
  return given
}

/** Type of the option `scanner`. */
export type ScannerOption = FrameScanner | PromiseLike<unknown> | false

/** Checks the option `scanner`. */
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

/** Calls back with the scanner once it is loaded, if there is one. */
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
/**
 * Keep-alive in seconds that a PINGREQ delayed by a minute still meets: the server waits for one
 * and a half times as long.
 */
const hiddenKeepAlive = 180

export const expiryInterval: Parser<number> = integer(0, 0xffff_ffff)

/** Quality of Service. */
export const qos: Parser<QoS> = oneOf(0, 1, 2)
const overflow: Parser<Overflow> = oneOf('backpressure', 'drop-newest', 'drop-oldest')

/** A property that the caller must not give. */
export const leftOut: Parser<undefined> = that((value) => value === undefined, 'left out')

/**
 * Checks and copies properties of an outgoing PUBLISH or a will. `parsers` are applied to some; the
 * encoder checks the rest.
 */
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

/** Options for one message and for all. */
export const messageOptions = {
  ackTimeout: optional(duration),
  ttl: optional(duration),
  onSessionLost: optional(oneOf('republish', 'reject')),
}

const bufferBytes: Parser<number> = integer(1, Number.MAX_SAFE_INTEGER)

/** Options for the buffer of one subscription and of all. */
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

// The functions are bound, because a mechanism may be an object with state.
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

/** Checked options of `reconnect`. */
export interface ReconnectPolicy {
  readonly backoff: Backoff
  /** Milliseconds. */
  readonly stableAfter: number
  readonly maxAttempts: number
  readonly decide: ((error: MqttError, context: DecisionContext) => Verdict | undefined) | undefined
}

/** Checked options of `outbound`. */
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
  /** Undefined: the default for QoS and protocol version. */
  readonly onSessionLost: 'republish' | 'reject' | undefined
  readonly poisonAfter: number
}

/** All options with their values. */
export interface Config {
  /** The options that the caller gave, of those for which that matters. */
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
  /** Undefined when the session ends with the process. */
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
  /** Subscription buffers; undefined values get a default that depends on the subscription. */
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

/** Options that do not exist in 3.1.1. */
const fiveOnly = { ...connectFive, auth: optional(auth), serverReferences: optional(references) }

const connectProperties = { ...connectFive, maximumPacketSize: optional(integer(1, 0xffff_ffff)) }

const connectOptions = {
  ...connectProperties,
  keepAlive: optional(keepAlive),
  will: optional(will),
}

/** Lowest default of `maximumPacketSize`, even with a small memory budget: CONNACK has to fit. */
const leastPacketSize = 1024

/**
 * Options whose defaults must not look as if the caller had given them: 3.1.1 refuses given ones.
 */
const said = [
  ...(Object.keys(fiveOnly) as (keyof typeof fiveOnly)[]),
  'will',
  'pingTimeout',
] as const

const connectSchema = object<Parsed<typeof connectOptions>>(connectOptions)

/** Checks CONNECT options for one attempt; omitted ones stay as in the client's options. */
export const overrides: Parser<Partial<ConnectOverrides>> = (value, path) =>
  filled(connectSchema(value, path), Object.keys(connectOptions) as (keyof ConnectOverrides)[])

const nothing = Object.freeze({})

// The entries that have a value.
function filled<T extends object, K extends keyof T>(
  settings: T,
  names: readonly K[],
): { readonly [P in K]?: Exclude<T[P], undefined> } {
  let found: Partial<T> | undefined
  for (const name of names)
    if (settings[name] !== undefined) {
      found ??= {}
      found[name] = settings[name]
    }
  return (found ?? nothing) as never
}

/** Names of given options that do not exist in 3.1.1. */
export function unspoken(
  set: {
    readonly [K in keyof Config['set']]: Config['set'][K] | undefined
  },
): string[] {
  const names = settingsIn(set).filter((name) => name in fiveOnly)
  return hasSettings(set.will?.properties ?? {}) ? [...names, 'will.properties'] : names
}

// The other members of a `SessionStore` are checked by the session keeper.
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

const options: Schema<Given> = {
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
}
const config = object(options, '', undefined, true)

// The values of all options where nothing is given: the prototype of all others, so that each client
// keeps only what differs.
let usualOptions: Config | undefined

function withoutOptions(): Config {
  return {
    ...(Object.getPrototypeOf(config(Object.create(null))) as Given),
    set: nothing,
    cleanStart: true,
    sessionExpiryInterval: 300,
    memoryBudget: 32 * megabyte,
    maximumPacketSize: 16 * megabyte,
    receiveMaximum: 65_535,
    requestResponseInformation: false,
    requestProblemInformation: true,
    keepAlive: 30,
    pingTimeout: 10_000,
  }
}

/** Parses the options of a client. @throws MqttError ERR_INVALID_OPTION, ERR_UNSUPPORTED_OPTION */
export function parseOptions(options: ClientOptions): Config {
  const given = config(options)
  usualOptions ??= withoutOptions()
  const parsed: { -readonly [K in keyof Config]: Config[K] } = Object.assign(
    Object.create(usualOptions) as Config,
    given,
    { set: filled(given, said) },
  )
  const durable = given.store !== undefined
  if (durable) {
    parsed.cleanStart = given.cleanStart ?? false
    parsed.sessionExpiryInterval = given.sessionExpiryInterval ?? week
  }
  // A message of the announced size must fit the budget together with the buffer it is assembled
  // from.
  if ((given.memoryBudget ?? given.maximumPacketSize) !== undefined) {
    const { memoryBudget = Math.max(parsed.memoryBudget, 2 * parsed.maximumPacketSize) } = given
    const most = Math.max(leastPacketSize, Math.min(16 * megabyte, Math.floor(memoryBudget / 2)))
    parsed.memoryBudget = memoryBudget
    parsed.maximumPacketSize = given.maximumPacketSize ?? most
  }
  if (!parsed.cleanStart && parsed.clientId === '' && !durable)
    invalid('clientId', 'set where cleanStart is false')
  const v4 = parsed.protocolVersion === 4
  if (v4) assertNone(unspoken(parsed.set))
  // A trial run of the encoder finds text that CONNECT cannot carry, with the name of its field.
  const { cleanStart, clientId, username, password } = parsed
  checkConnect(
    connectPacket(parsed, { version: v4 ? 4 : 5, cleanStart, clientId, username, password }),
  )
  return Object.freeze(parsed)
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

/** The values that may differ between attempts. */
export interface ConnectInput {
  readonly version: ProtocolVersion
  readonly cleanStart: boolean
  readonly clientId: string
  /** Take precedence over `overrides` and options. */
  readonly limits?: Partial<ConnectOverrides> | undefined
  readonly username?: string | undefined
  readonly password?: Uint8Array | undefined
  readonly overrides?: Partial<ConnectOverrides> | undefined
  /** The page is hidden, so timers run only once a minute. */
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

/** Default values, which CONNECT omits (section 3.1.2.11). */
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

/** Throws for an invalid CONNECT; errors name the option, not the property. */
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

/**
 * An encoder error as an option error: with the code for topics and sizes, otherwise
 * `ERR_INVALID_OPTION`. `prefix` is removed from the field's name; `topic` is shown.
 */
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
