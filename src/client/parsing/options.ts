/**
 * Client options, parsed into one complete frozen configuration before anything else happens.
 *
 * Wrong values throw `ERR_INVALID_OPTION` with the option's name and range; what a later version will know is `ERR_UNSUPPORTED_OPTION`.
 * The caller's object is never kept or written to; bytes are copied.
 */
import { MqttError } from '../../errors.js'
import { writeConnect } from '../../wire/encode-client.js'
import { WireError } from '../../wire/error.js'
import type { ConnectPacket, Properties, ProtocolVersion, QoS, UserProperties, Will } from '../../wire/packets.js'
import { check311 } from '../../wire/rules-311.js'
import { Writer } from '../../wire/writer.js'
import type { AuthMechanism, ClientOptions, Credentials, CredentialsContext, Logger, OfflinePolicy, OutboundOverflow, Overflow } from '../api.js'
import { exponential } from '../backoff.js'
import {
  anyObject,
  boolean,
  bytes,
  callable,
  duration,
  integer,
  invalid,
  limit,
  object,
  oneOf,
  optional,
  type Parser,
  string,
  text,
  that,
  userProperties,
  withDefault,
} from '../common/schema.js'
import { type ScannerOption, scannerOption } from '../connection/scanning.js'
import type { ReconnectPolicy } from '../dialling/supervisor.js'

const unsigned32 = 4_294_967_295
const megabyte = 1024 * 1024
const defaultKeepAlive = 30
const defaultSessionExpiry = 300

/** Quality of Service. */
export const qos: Parser<QoS> = oneOf(0, 1, 2)
export const overflow: Parser<Overflow> = oneOf('backpressure', 'drop-newest', 'drop-oldest')

const maybeBytes = optional(bytes)
const maybePairs = optional(userProperties)

/** Properties of an outgoing PUBLISH or of a will, copied. What else they may hold is checked by the encoder. */
export const publishProperties: Parser<Properties> = (value, path) => {
  const given: Record<string, unknown> = { ...anyObject(value, path) }
  if (given['topicAlias'] !== undefined) invalid(`${path}.topicAlias`, 'left out')
  given['correlationData'] = maybeBytes(given['correlationData'], `${path}.correlationData`)
  given['userProperties'] = maybePairs(given['userProperties'], `${path}.userProperties`)
  return given
}

const will: Parser<Will> = object<Will>({
  topic: string,
  payload: withDefault(bytes, new Uint8Array(0)),
  qos: withDefault(qos, 0),
  retain: withDefault(boolean, false),
  properties: withDefault(publishProperties, {}),
})

const keepAlive: Parser<number> = (value, path) => (value === false ? 0 : integer(0, 65_535, ' (seconds), or false')(value, path))
export const offlinePolicy: Parser<OfflinePolicy> = oneOf('queue', 'reject')
export const outboundOverflow: Parser<OutboundOverflow> = oneOf('wait', 'reject', 'drop-newest', 'drop-oldest')
export const onSessionLost: Parser<'republish' | 'reject'> = oneOf('republish', 'reject')

const version: Parser<ProtocolVersion | 'auto'> = that(
  (value) => value === 5 || value === 4 || value === 'auto',
  '5, 4 or "auto"; MQTT 3.1 (3) is not supported',
)

const reconnecting = object<ReconnectPolicy>({
  backoff: withDefault(callable, exponential()),
  stableAfter: withDefault(duration, 30_000),
  maxAttempts: withDefault(limit, Number.POSITIVE_INFINITY),
  decide: optional(callable),
})

const reconnect: Parser<ReconnectPolicy | false> = (value, path) => (value === false ? false : reconnecting(value === true ? {} : value, path))

const mechanism = object<AuthMechanism>({ method: text, start: callable, continue: callable, success: optional(callable) })

// Called as methods: a mechanism may be an object with state of its own.
const auth: Parser<AuthMechanism> = (value, path) => {
  const given = anyObject(value, path) as AuthMechanism
  const { method, start, success } = mechanism({ method: given.method, start: given.start, continue: given.continue, success: given.success }, path)
  return Object.freeze({
    method,
    start: start.bind(given),
    continue: given.continue.bind(given),
    success: success?.bind(given),
  })
}

const isHost = (item: unknown): boolean => {
  if (typeof item !== 'string' || /[/@?#\\\s]/.test(item) || !URL.canParse(`mqtt://${item}`)) return false
  return new URL(`mqtt://${item}`).hostname !== ''
}

const references: Parser<readonly string[]> = (value, path) =>
  that<readonly string[]>((given) => Array.isArray(given) && given.every(isHost), 'an array of host names, each with or without a port')(
    value,
    path,
  ).map((item) => item.toLowerCase())

/** Options that the design knows, and of which this version knows one value. */
function only<const T>(supported: T): Parser<T> {
  return (value, path) => {
    if (value !== undefined && value !== supported) throw new MqttError('ERR_UNSUPPORTED_OPTION', undefined, { option: path })
    return supported
  }
}

/** An option that the design knows and this version does not. */
export const later: Parser<undefined> = only(undefined)

/** Subscription buffers. */
export interface BufferConfig {
  readonly buffer: number
  readonly bufferBytes: number
  /** Undefined: depends on the ack mode. */
  readonly overflow: Overflow | undefined
}

/** What waits to be sent. */
export interface OutboundConfig {
  readonly maxQueuedMessages: number
  readonly maxQueuedBytes: number
  readonly maxInflight: number
  readonly overflow: OutboundOverflow
  readonly offline: { readonly qos0: OfflinePolicy; readonly qos1: OfflinePolicy; readonly qos2: OfflinePolicy }
  readonly ackTimeout: number | undefined
  readonly ttl: number | undefined
  /** Undefined: depends on the QoS, and on the protocol version. */
  readonly onSessionLost: 'republish' | 'reject' | undefined
}

/** Every option with its value. */
export interface Config {
  readonly clientId: string
  readonly protocolVersion: ProtocolVersion | 'auto'
  readonly username: string | undefined
  readonly password: Uint8Array | undefined
  readonly credentials: ((context: CredentialsContext) => Credentials | Promise<Credentials>) | undefined
  readonly keepAlive: number
  readonly pingTimeout: number
  readonly connectTimeout: number
  readonly cleanStart: boolean
  readonly sessionExpiryInterval: number
  readonly receiveMaximum: number
  readonly maximumPacketSize: number
  readonly topicAliasMaximum: number
  readonly requestResponseInformation: boolean
  readonly requestProblemInformation: boolean
  readonly userProperties: UserProperties | undefined
  readonly will: Will | undefined
  readonly firstConnect: 'reject' | 'wait'
  readonly reconnect: ReconnectPolicy | false
  readonly refreshBefore: number
  readonly unclaimedHold: number
  readonly subscriptions: BufferConfig
  readonly outbound: OutboundConfig
  readonly maxFiltersPerSubscribe: number
  readonly memoryBudget: number
  readonly logger: Logger | undefined
  readonly store: undefined
  readonly auth: AuthMechanism | undefined
  readonly scanner: ScannerOption | undefined
  readonly stats: boolean
  readonly resubscribe: 'when-lost' | 'always'
  readonly serverReferences: readonly string[] | undefined
  readonly strictTopics: false
  readonly checkPayloadFormat: false
}

const offline = object<OutboundConfig['offline']>({
  qos0: withDefault(offlinePolicy, 'reject'),
  qos1: withDefault(offlinePolicy, 'queue'),
  qos2: withDefault(offlinePolicy, 'queue'),
})

const buffers = object<BufferConfig>({
  buffer: withDefault(integer(1, 1_000_000_000), 1024),
  bufferBytes: withDefault(integer(1, Number.MAX_SAFE_INTEGER), 4 * megabyte),
  overflow: optional(overflow),
})

const outbound = object<OutboundConfig>({
  maxQueuedMessages: withDefault(limit, 10_000),
  maxQueuedBytes: withDefault(limit, 16 * megabyte),
  maxInflight: withDefault(integer(1, 65_535), 65_535),
  overflow: withDefault(outboundOverflow, 'wait'),
  offline,
  ackTimeout: optional(duration),
  ttl: optional(duration),
  onSessionLost: optional(onSessionLost),
})

const connectOptions = {
  keepAlive: withDefault(keepAlive, defaultKeepAlive),
  sessionExpiryInterval: withDefault(integer(0, unsigned32), defaultSessionExpiry),
  receiveMaximum: withDefault(integer(1, 65_535), 256),
  maximumPacketSize: withDefault(integer(1, unsigned32), megabyte),
  topicAliasMaximum: withDefault(integer(0, 65_535), 10),
  requestResponseInformation: withDefault(boolean, false),
  requestProblemInformation: withDefault(boolean, true),
  userProperties: optional(userProperties),
  will: optional(will),
}

/** What of these may change with each CONNECT; what is left out stays as the client's options say. */
export const overrides: Parser<Partial<ConnectOverrides>> = (value, path) => {
  const given = anyObject(value, path) as Record<string, unknown>
  const names = Object.keys(given).filter((name) => given[name] !== undefined)
  const parsed = object<ConnectOverrides>(connectOptions)(given, path) as Record<string, unknown>
  return Object.fromEntries(names.map((name) => [name, parsed[name]]))
}

const config = object<Config>({
  ...connectOptions,
  clientId: withDefault(string, ''),
  protocolVersion: withDefault(version, 5),
  username: optional(string),
  password: optional(bytes),
  credentials: optional(callable),
  pingTimeout: withDefault(duration, 10_000),
  connectTimeout: withDefault(duration, 10_000),
  cleanStart: withDefault(boolean, true),
  firstConnect: withDefault(oneOf('reject', 'wait'), 'reject'),
  reconnect,
  refreshBefore: withDefault(duration, 60_000),
  unclaimedHold: withDefault(duration, 30_000),
  subscriptions: buffers,
  outbound,
  maxFiltersPerSubscribe: withDefault(limit, Number.POSITIVE_INFINITY),
  memoryBudget: withDefault(limit, 32 * megabyte),
  logger: optional(anyObject),
  store: later,
  auth: optional(auth),
  scanner: optional(scannerOption),
  stats: withDefault(boolean, false),
  resubscribe: withDefault(oneOf('when-lost', 'always'), 'when-lost'),
  serverReferences: optional(references),
  strictTopics: only(false),
  checkPayloadFormat: only(false),
})

/** Parses the options of a client. @throws MqttError ERR_INVALID_OPTION, ERR_UNSUPPORTED_OPTION */
export function parseOptions(options: ClientOptions): Config {
  const parsed = config(options, '')
  if (!parsed.cleanStart && parsed.clientId === '') invalid('clientId', 'set without cleanStart')
  const v4 = parsed.protocolVersion === 4
  if (v4)
    for (const name of ['auth', 'userProperties'] as const)
      if (parsed[name] !== undefined) throw new MqttError('ERR_UNSUPPORTED_OPTION', undefined, { option: name })
  // A trial run of the encoder finds text that no CONNECT can carry, with the name of its field.
  const { cleanStart, clientId, receiveMaximum, username, password } = parsed
  checkConnect(connectPacket(parsed, { version: v4 ? 4 : 5, cleanStart, clientId, receiveMaximum, username, password }))
  return parsed
}

/** CONNECT options that `credentials()` may change for one connection. */
export type ConnectOverrides = Pick<Config, keyof typeof connectOptions>

/** What distinguishes one CONNECT from the next. */
export interface ConnectInput {
  readonly version: ProtocolVersion
  readonly cleanStart: boolean
  readonly clientId: string
  readonly receiveMaximum: number
  readonly username?: string | undefined
  readonly password?: Uint8Array | undefined
  readonly overrides?: Partial<ConnectOverrides> | undefined
  /** Timers come once a minute. */
  readonly hidden?: boolean | undefined
  readonly auth?: Properties | undefined
}

/** Seconds of keep-alive that a PINGREQ a minute late still keeps: the server waits for one and a half times as long. */
const hiddenKeepAlive = 180

/** The CONNECT of one attempt (section 3.1). */
export function connectPacket(given: Config, input: ConnectInput): ConnectPacket {
  const { version, cleanStart, clientId, username, password, overrides = {}, hidden, auth } = input
  const options = { ...given, receiveMaximum: input.receiveMaximum, ...overrides }
  return {
    type: 'connect',
    protocolName: 'MQTT',
    protocolVersion: version,
    cleanStart,
    keepAlive: hidden && options.keepAlive > 0 ? Math.max(options.keepAlive, hiddenKeepAlive) : options.keepAlive,
    clientId,
    will: options.will,
    username,
    password: password as ConnectPacket['password'],
    properties:
      version === 4
        ? {}
        : {
            sessionExpiryInterval: options.sessionExpiryInterval || undefined,
            receiveMaximum: options.receiveMaximum,
            maximumPacketSize: options.maximumPacketSize,
            topicAliasMaximum: options.topicAliasMaximum || undefined,
            requestResponseInformation: options.requestResponseInformation ? 1 : undefined,
            requestProblemInformation: options.requestProblemInformation ? undefined : 0,
            userProperties: options.userProperties,
            ...auth,
          },
  }
}

/** Throws what is wrong with a CONNECT in the caller's terms: what it carries as a property is an option by itself. */
export function checkConnect(packet: ConnectPacket): void {
  try {
    if (packet.protocolVersion === 4) check311(packet)
    writeConnect(new Writer(), packet)
  } catch (error) {
    throw asInvalidOption(error, 'properties.')
  }
}

/** The encoder's objection in the caller's terms: the code for topics and sizes, else `ERR_INVALID_OPTION`. `prefix` of the field is left out. */
export function asInvalidOption(error: unknown, prefix = ''): unknown {
  if (!(error instanceof WireError)) return error
  const field = error.option ?? ''
  const option = field.startsWith(prefix) ? field.slice(prefix.length) : field
  const code =
    error.kind === 'too-large' || option === 'payload' ? 'ERR_PACKET_TOO_LARGE' : option === 'topic' ? 'ERR_INVALID_TOPIC' : 'ERR_INVALID_OPTION'
  return new MqttError(code, error.message, { option, cause: error })
}
