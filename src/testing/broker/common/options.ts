/**
 * Options of a broker, with defaults, and the complete settings that the other files read.
 *
 * Parsing never writes to the caller's object. Limits that differ from the protocol's defaults are
 * announced in CONNACK and enforced.
 */

import { checkNames } from '../../../transport/names.js'
import { MAXIMUM_PACKET_SIZE } from '../../../wire/constants.js'
import type {
  Bytes,
  ClientPacket,
  ConnectPacket,
  Properties,
  ProtocolVersion,
  PublishPacket,
  QoS,
  ServerPacket,
  SubscriptionRequest,
} from '../../../wire/packets.js'
import { checkInteger, checkOneOf, checkType, invalid, kindOf } from './check.js'
import { type BrokerClock, realClock } from './clock.js'
import type { BrokerClient } from './events.js'
import { checkFault, type Fault } from './fault-table.js'
import type { BrokerMessage } from './message.js'

/**
 * The decision of a hook: `true` (or a code below 0x80) allows, `false` refuses with 0x87, and a
 * code of 0x80 or more refuses with that code. A {@link Refusal} adds properties to the refusal of
 * a CONNECT, for example a Server Reference to 0x9C.
 */
export type Verdict = boolean | number | Refusal

/** A refusal with properties. */
export interface Refusal {
  /** Reason code of the answer. */
  readonly reasonCode: number
  /** Properties of the answer. Default: none. */
  readonly properties?: Properties | undefined
}

/** Passed to an authentication method with each step. */
export interface BrokerAuthContext {
  /** Client Identifier of CONNECT. */
  readonly clientId: string
  /** User Name of CONNECT. */
  readonly username: string | undefined
  /** The `remote` argument of `accept`. */
  readonly remote: string | undefined
  /** False for CONNECT, true for an exchange that the client started later [MQTT-4.12.1-1]. */
  readonly reauthentication: boolean
  /** Free for use by the method, kept from `start` to the last `continue` of one exchange. */
  readonly state: Record<string, unknown>
}

/**
 * One step of an exchange: 0x18 asks the client for more, 0 (default) accepts, 0x80 or more
 * refuses. Throwing an error with such a `reasonCode` refuses with it. Any other throw, and an
 * invalid step, refuses with 0x87 and is reported as a {@link HookError}.
 */
export interface BrokerAuthStep {
  /** 0x18 asks for more, 0 accepts, 0x80 or more refuses. Default 0. */
  readonly reasonCode?: number | undefined
  /** Authentication Data for the client. Default: none. */
  readonly data?: Uint8Array | undefined
}

/** An enhanced authentication method (section 4.12). */
export interface BrokerAuthMethod {
  /** Processes the client's first data. */
  start(
    data: Bytes | undefined,
    context: BrokerAuthContext,
  ): BrokerAuthStep | Promise<BrokerAuthStep>
  /** Processes the client's answer to 0x18. */
  continue(
    data: Bytes | undefined,
    context: BrokerAuthContext,
  ): BrokerAuthStep | Promise<BrokerAuthStep>
}

/**
 * Result of {@link BrokerHooks.intercept}: another packet, `false` to discard this one, undefined
 * to leave it unchanged.
 */
export type Interception = ClientPacket | ServerPacket | false | undefined

/**
 * Hooks. Each may return its result or a promise of it. Only what a hook allows passes:
 *
 * - A verdict refuses unless it is `true` or a code below 0x80. A value that is not a verdict
 *   (nothing, a text, a fraction) refuses with 0x87.
 * - A hook that throws, rejects, or does not settle within `hookTimeout` refuses with 0x80, and so
 *   does a code of 0x80 or more that the answer cannot carry.
 * - While a promise is pending, further packets of the same client wait, in order and within
 *   `maxBacklog`. Other clients do not wait.
 * - Failures are reported: by the event `hookerror`, in `hookErrors`, and on the console without a
 *   listener. A hook never makes the broker throw.
 */
export interface BrokerHooks {
  /**
   * Decides on a CONNECT. A promise may take until `connectTimeout`. Default: every client may
   * connect.
   */
  readonly authenticate?:
    | ((
        connect: ConnectPacket,
        context: { readonly remote: string | undefined },
      ) => Verdict | Promise<Verdict>)
    | undefined
  /**
   * Decides on a PUBLISH, or a will when it is due. At QoS 0 and on 3.1.1 the client gets no
   * answer. Default: everything may be published.
   */
  readonly authorizePublish?:
    | ((
        client: BrokerClient,
        packet: PublishPacket,
      ) => boolean | number | Promise<boolean | number>)
    | undefined
  /** Decides on one filter of a SUBSCRIBE. Default: everything may be subscribed to. */
  readonly authorizeSubscribe?:
    | ((
        client: BrokerClient,
        subscription: SubscriptionRequest,
      ) => boolean | number | Promise<boolean | number>)
    | undefined
  /**
   * Decides on a message for one receiver, right before it is first sent: `true` sends it;
   * `'discard'` or `false` withholds it and counts it in the session's `discarded`. Later messages
   * to this receiver wait while a promise is pending. A withheld message of a shared subscription
   * goes to no other receiver. Default: everything is delivered.
   */
  readonly authorizeDelivery?:
    | ((
        client: BrokerClient,
        message: BrokerMessage,
      ) => boolean | 'discard' | Promise<boolean | 'discard'>)
    | undefined
  /**
   * Called with every packet: a returned packet replaces it, `false` discards it, undefined leaves
   * it unchanged. `client` is undefined until its CONNECT was accepted. If it fails, or returns
   * anything else, the connection is closed.
   */
  readonly intercept?:
    | ((
        direction: 'in' | 'out',
        packet: ClientPacket | ServerPacket,
        client: BrokerClient | undefined,
      ) => Interception | Promise<Interception>)
    | undefined
}

/** Limits announced in CONNACK (section 3.2.2.3). */
export interface BrokerLimits {
  /** QoS 1/2 publishes that a client may have unacknowledged. Default 65,535, not announced. */
  readonly receiveMaximum?: number | undefined
  /** Largest packet accepted, in bytes. Default 1 MiB. */
  readonly maximumPacketSize?: number | undefined
  /** Highest QoS accepted. Default 2. */
  readonly maximumQoS?: QoS | undefined
  /** Whether retained messages are accepted. Default true. */
  readonly retainAvailable?: boolean | undefined
  /** Aliases that a client may use. Default 10. */
  readonly topicAliasMaximum?: number | undefined
  /** Whether filters may have wildcards. Default true. */
  readonly wildcardSubscriptionAvailable?: boolean | undefined
  /** Whether Subscription Identifiers are supported. Default true. */
  readonly subscriptionIdentifierAvailable?: boolean | undefined
  /** Whether shared subscriptions are supported. Default true. */
  readonly sharedSubscriptionAvailable?: boolean | undefined
  /** Keep Alive in seconds, in place of the client's. Default: the client's. */
  readonly serverKeepAlive?: number | undefined
  /** Longest time that a session outlives its connection, in seconds. Default: no limit. */
  readonly maximumSessionExpiry?: number | undefined
}

/** Limits on what clients can make the broker hold. */
export interface BrokerBounds {
  /** Messages waiting in one session. Default 1,000. */
  readonly maxQueuedMessages?: number | undefined
  /** Bytes of messages that one session holds, waiting or unacknowledged. Default 16 MiB. */
  readonly maxQueuedBytes?: number | undefined
  /**
   * Which message is dropped when a queue is full, counted in the session's `dropped`. Default
   * `'drop-newest'`.
   */
  readonly overflow?: 'drop-newest' | 'drop-oldest' | undefined
  /** Unacknowledged messages sent to one client, whatever its Receive Maximum. Default 65,535. */
  readonly maxInflight?: number | undefined
  /** Whether QoS 0 messages are queued for disconnected clients. Default false. */
  readonly queueQoS0?: boolean | undefined
  /** Sessions that are kept. Default 10,000. */
  readonly maxSessions?: number | undefined
  /** Connections at a time. Default 10,000. */
  readonly maxConnections?: number | undefined
  /** Retained messages. Default 10,000. */
  readonly maxRetained?: number | undefined
  /** Bytes of retained messages. Default 64 MiB. */
  readonly maxRetainedBytes?: number | undefined
  /** Subscriptions of a session. Default 1,000. */
  readonly maxSubscriptions?: number | undefined
  /** Levels of a topic or filter. Default 128. */
  readonly maxTopicLevels?: number | undefined
  /**
   * Limit for two backlogs, in bytes: data written to a client that does not read, not counting the
   * packet at which it stopped; and packets from a client that wait for a hook, each counted with
   * 100 bytes more. Default 4 MiB.
   */
  readonly maxBacklog?: number | undefined
  /**
   * Entries of `accepted`, `violations` and `hookErrors`; the older half is removed when there are
   * more. Default 100,000.
   */
  readonly maxLog?: number | undefined
  /** Bytes of messages in `accepted`. Default 64 MiB. */
  readonly maxLogBytes?: number | undefined
}

/** Options of `new MemoryBroker()`. Everything has a default. */
export interface MemoryBrokerOptions extends BrokerLimits, BrokerBounds, BrokerHooks {
  /** The clock. Default: real time. A `VirtualClock` makes runs repeatable. */
  readonly clock?: BrokerClock | undefined
  /**
   * Returns numbers in [0, 1) for Assigned Client Identifiers. Default: a counter, so that runs
   * repeat.
   */
  readonly random?: (() => number) | undefined
  /** Supported protocol versions. Default 5 and 4. */
  readonly protocolVersions?: readonly ProtocolVersion[] | undefined
  /**
   * Response Information for clients that ask for it (section 3.2.2.3.15). If a function fails, the
   * property is omitted and the failure is reported. Default: omitted.
   */
  readonly responseInformation?:
    | string
    | ((connect: ConnectPacket) => string | undefined | Promise<string | undefined>)
    | undefined
  /** Uses topic aliases towards clients that allow them. Default true. */
  readonly assignTopicAliases?: boolean | undefined
  /**
   * Milliseconds from the opening of a connection to its CONNACK, hooks and authentication
   * included. Default 10,000.
   */
  readonly connectTimeout?: number | undefined
  /** Milliseconds that the promise of a hook may take after CONNACK. Default 10,000. */
  readonly hookTimeout?: number | undefined
  /** Enhanced authentication, by method. Default: none. */
  readonly auth?: Readonly<Record<string, BrokerAuthMethod>> | undefined
  /** Faults to inject. Default: none. */
  readonly faults?: readonly Fault[] | undefined
}

const defaults = {
  clock: realClock,
  protocolVersions: [5, 4] as readonly ProtocolVersion[],
  assignTopicAliases: true,
  connectTimeout: 10_000,
  hookTimeout: 10_000,
  receiveMaximum: 65_535,
  maximumPacketSize: 1024 * 1024,
  maximumQoS: 2 as QoS,
  retainAvailable: true,
  topicAliasMaximum: 10,
  wildcardSubscriptionAvailable: true,
  subscriptionIdentifierAvailable: true,
  sharedSubscriptionAvailable: true,
  maximumSessionExpiry: 0xffff_ffff,
  maxQueuedMessages: 1000,
  maxQueuedBytes: 16 * 1024 * 1024,
  overflow: 'drop-newest' as 'drop-newest' | 'drop-oldest',
  maxInflight: 65_535,
  queueQoS0: false,
  maxSessions: 10_000,
  maxConnections: 10_000,
  maxRetained: 10_000,
  maxRetainedBytes: 64 * 1024 * 1024,
  maxSubscriptions: 1000,
  maxTopicLevels: 128,
  maxBacklog: 4 * 1024 * 1024,
  maxLog: 100_000,
  maxLogBytes: 64 * 1024 * 1024,
  auth: {} as Readonly<Record<string, BrokerAuthMethod>>,
  faults: [] as readonly Fault[],
}

/** All options, complete and frozen. */
export type BrokerSettings = Readonly<typeof defaults> &
  BrokerHooks &
  Pick<MemoryBrokerOptions, 'random' | 'responseInformation' | 'serverKeepAlive'>

/** Ranges of the numbers, where they are not 0 to 2^53. */
const ranges: Readonly<Record<string, readonly [least: number, most: number]>> = {
  receiveMaximum: [1, 65_535],
  maximumPacketSize: [1, MAXIMUM_PACKET_SIZE],
  maximumQoS: [0, 2],
  topicAliasMaximum: [0, 65_535],
  serverKeepAlive: [0, 65_535],
  maximumSessionExpiry: [0, 0xffff_ffff],
  maxInflight: [1, 65_535],
}

const hooks = [
  'authenticate',
  'authorizePublish',
  'authorizeSubscribe',
  'authorizeDelivery',
  'intercept',
  'random',
]

const names = [...Object.keys(defaults), ...hooks, 'responseInformation', 'serverKeepAlive']

/** @throws MqttError `ERR_INVALID_OPTION` with the option's name */
export function parseOptions(options: MemoryBrokerOptions): BrokerSettings {
  checkNames('options', options, names)
  const settings: Record<string, unknown> = { ...defaults }
  for (const [option, value] of Object.entries(options)) {
    if (value === undefined) continue
    check(option, value)
    settings[option] = value
  }
  return Object.freeze(settings) as unknown as BrokerSettings
}

/** Checks of the options that are neither numbers nor booleans nor hooks. */
const checks: Readonly<Record<string, (value: unknown) => void>> = {
  overflow: (value) => checkOneOf('overflow', value, ['drop-newest', 'drop-oldest']),
  protocolVersions: checkVersions,
  clock: (value) => checkMethods('clock', value, ['now', 'setTimer']),
  auth: checkAuth,
  faults(value) {
    if (!Array.isArray(value)) throw invalid('faults', `must be an array, not ${kindOf(value)}`)
    for (const fault of value) checkFault(fault)
  },
  responseInformation(value) {
    if (typeof value !== 'string' && typeof value !== 'function')
      throw invalid('responseInformation', `must be a string or a function, not ${kindOf(value)}`)
  },
}

function check(option: string, value: unknown): void {
  const example: unknown = (defaults as Record<string, unknown>)[option]
  const special = checks[option]
  if (special !== undefined) special(value)
  else if (hooks.includes(option)) checkType(option, value, 'function')
  else if (typeof example === 'boolean') checkType(option, value, 'boolean')
  else checkInteger(option, value, ...(ranges[option] ?? [0, Number.MAX_SAFE_INTEGER]))
}

function checkVersions(value: unknown): void {
  if (!Array.isArray(value) || value.length === 0)
    throw invalid('protocolVersions', 'must be an array of 5 and 4, or one of them')
  for (const version of value) checkOneOf('protocolVersions', version, [5, 4])
}

function checkAuth(value: unknown): void {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw invalid('auth', `must be an object, not ${kindOf(value)}`)
  for (const [name, method] of Object.entries(value))
    checkMethods(`auth.${name.slice(0, 40)}`, method, ['start', 'continue'])
}

function checkMethods(option: string, value: unknown, methods: readonly string[]): void {
  const given = value as Readonly<Record<string, unknown>> | null | undefined
  for (const method of methods) {
    if (typeof given?.[method] !== 'function')
      throw invalid(option, `must be an object with the methods ${methods.join(' and ')}`)
  }
}
