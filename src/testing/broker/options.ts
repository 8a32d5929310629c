/**
 * What a broker can be told, with defaults, and the complete settings that the other files read.
 *
 * Parsing never writes to the caller's object. Limits that differ from the protocol's defaults are announced in CONNACK and enforced.
 */
import { MqttError } from '../../errors.js'
import { MAXIMUM_PACKET_SIZE } from '../../wire/constants.js'
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
} from '../../wire/packets.js'
import { type BrokerClock, realClock } from './clock.js'
import type { BrokerClient } from './events.js'
import type { Fault } from './fault-table.js'

/**
 * What a hook decides: true (or a code below 0x80) lets it pass, false refuses with 0x87, a number refuses with that reason code. The long form
 * adds properties to the refusal, for example a Server Reference to 0x9C.
 */
export type Verdict = boolean | number | Refusal

/** A refusal in full. */
export interface Refusal {
  /** Reason code of the answer. */
  readonly reasonCode: number
  /** Properties of the answer. Default: none. */
  readonly properties?: Properties | undefined
}

/** What an authentication method is told about its exchange. */
export interface BrokerAuthContext {
  /** Client Identifier of CONNECT. */
  readonly clientId: string
  /** User Name of CONNECT. */
  readonly username: string | undefined
  /** What `accept` was given besides the transport. */
  readonly remote: string | undefined
  /** False for CONNECT, true for an exchange that the client started later [MQTT-4.12.1-1]. */
  readonly reauthentication: boolean
  /** The method's own notes, kept from `start` to the last `continue` of one exchange. */
  readonly state: Record<string, unknown>
}

/** One step of an exchange: 0x18 asks the client for more, 0 (default) accepts. Throwing refuses: with the `reasonCode` of the error where it is one, else 0x87. */
export interface BrokerAuthStep {
  /** 0x18: go on. 0: accepted. Default 0. */
  readonly reasonCode?: number | undefined
  /** Authentication Data for the client. Default: none. */
  readonly data?: Uint8Array | undefined
}

/** An enhanced authentication method (section 4.12). */
export interface BrokerAuthMethod {
  /** Takes the data with which the client begins. */
  start(data: Bytes | undefined, context: BrokerAuthContext): BrokerAuthStep | Promise<BrokerAuthStep>
  /** Takes what the client answered to 0x18. */
  continue(data: Bytes | undefined, context: BrokerAuthContext): BrokerAuthStep | Promise<BrokerAuthStep>
}

/** Hooks. One that throws refuses with 0x80, and so does a code that the answer cannot say. */
export interface BrokerHooks {
  /** Decides on a CONNECT. Default: everybody may come. */
  readonly authenticate?: ((connect: ConnectPacket, context: { readonly remote: string | undefined }) => Verdict | Promise<Verdict>) | undefined
  /** Decides on a PUBLISH, or a will when it is due. */
  readonly authorizePublish?: ((client: BrokerClient, packet: PublishPacket) => boolean | number) | undefined
  /** Decides on one filter of a SUBSCRIBE. */
  readonly authorizeSubscribe?: ((client: BrokerClient, subscription: SubscriptionRequest) => boolean | number) | undefined
  /**
   * Sees every packet: what it returns takes the packet's place, `false` swallows it, nothing leaves it as it is. `client` is undefined until its
   * CONNECT was accepted.
   */
  readonly intercept?:
    | ((
        direction: 'in' | 'out',
        packet: ClientPacket | ServerPacket,
        client: BrokerClient | undefined,
      ) => ClientPacket | ServerPacket | false | undefined)
    | undefined
}

/** Limits that a client is told about, each with its meaning in CONNACK (section 3.2.2.3). */
export interface BrokerLimits {
  /** QoS 1/2 publishes that a client may have open. Default 65,535, not announced. */
  readonly receiveMaximum?: number | undefined
  /** Largest packet taken, in bytes. Default 1 MiB. */
  readonly maximumPacketSize?: number | undefined
  /** Highest QoS that is taken. Default 2. */
  readonly maximumQoS?: QoS | undefined
  /** Whether retained messages are taken. Default true. */
  readonly retainAvailable?: boolean | undefined
  /** Aliases that a client may use. Default 10. */
  readonly topicAliasMaximum?: number | undefined
  /** Whether filters may have wildcards. Default true. */
  readonly wildcardSubscriptionAvailable?: boolean | undefined
  /** Whether there are Subscription Identifiers. Default true. */
  readonly subscriptionIdentifierAvailable?: boolean | undefined
  /** Whether there are shared subscriptions. Default true. */
  readonly sharedSubscriptionAvailable?: boolean | undefined
  /** Seconds, in place of the client's. Default: the client's. */
  readonly serverKeepAlive?: number | undefined
  /** Most seconds that a session outlives its connection. Default: no limit. */
  readonly maximumSessionExpiry?: number | undefined
}

/** Bounds of what clients can make the broker hold. */
export interface BrokerBounds {
  /** Messages that wait in a session, per session. Default 1,000. */
  readonly maxQueuedMessages?: number | undefined
  /** Bytes of messages that a session holds, waiting or unacknowledged. Default 16 MiB. */
  readonly maxQueuedBytes?: number | undefined
  /** Which message goes when a queue is full; it is counted in the session's `dropped`. Default `'drop-newest'`. */
  readonly overflow?: 'drop-newest' | 'drop-oldest' | undefined
  /** Unacknowledged messages sent to one client, whatever its Receive Maximum. Default 65,535. */
  readonly maxInflight?: number | undefined
  /** Whether QoS 0 messages wait for clients that are away. Default false. */
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
  /** Bytes written to a client that does not read, and bytes from a client that is still being authenticated. Default 4 MiB. */
  readonly maxBacklog?: number | undefined
  /** Entries of `accepted` and `violations`; the older half goes when there are more. Default 100,000. */
  readonly maxLog?: number | undefined
  /** Bytes of messages in `accepted`. Default 64 MiB. */
  readonly maxLogBytes?: number | undefined
}

/** What `new MemoryBroker()` takes. Everything has a default. */
export interface MemoryBrokerOptions extends BrokerLimits, BrokerBounds, BrokerHooks {
  /** Where time comes from. Default: real time. A `VirtualClock` makes every run the same. */
  readonly clock?: BrokerClock | undefined
  /** Numbers in [0, 1) for Assigned Client Identifiers. Default: a counter, so that runs repeat. */
  readonly random?: (() => number) | undefined
  /** Versions that are spoken. Default 5 and 4. */
  readonly protocolVersions?: readonly ProtocolVersion[] | undefined
  /** Response Information for clients that ask for it (section 3.2.2.3.15). Default: none. */
  readonly responseInformation?: string | ((connect: ConnectPacket) => string | undefined) | undefined
  /** Uses topic aliases towards clients that allow them. Default true. */
  readonly assignTopicAliases?: boolean | undefined
  /** Milliseconds from the opening of a connection to its CONNECT. Default 10,000. */
  readonly connectTimeout?: number | undefined
  /** Enhanced authentication, by method. Default: none. */
  readonly auth?: Readonly<Record<string, BrokerAuthMethod>> | undefined
  /** What goes wrong, and when. Default: nothing. */
  readonly faults?: readonly Fault[] | undefined
}

const defaults = {
  clock: realClock,
  protocolVersions: [5, 4] as readonly ProtocolVersion[],
  assignTopicAliases: true,
  connectTimeout: 10_000,
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

/** Complete, frozen. */
export type BrokerSettings = Readonly<typeof defaults> & BrokerHooks & Pick<MemoryBrokerOptions, 'random' | 'responseInformation' | 'serverKeepAlive'>

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

const named = ['random', 'responseInformation', 'serverKeepAlive', 'authenticate', 'authorizePublish', 'authorizeSubscribe', 'intercept']

/** @throws MqttError `ERR_INVALID_OPTION` with the option's name */
export function parseOptions(options: MemoryBrokerOptions): BrokerSettings {
  const settings: Record<string, unknown> = { ...defaults }
  for (const [option, value] of Object.entries(options)) {
    if (value === undefined) continue
    if (!(option in defaults) && !named.includes(option)) throw invalid(option, 'is unknown')
    check(option, value)
    settings[option] = value
  }
  return Object.freeze(settings) as unknown as BrokerSettings
}

function check(option: string, value: unknown): void {
  const example: unknown = option === 'serverKeepAlive' ? 0 : (defaults as Record<string, unknown>)[option]
  if (example !== undefined && typeof value !== typeof example) throw invalid(option, `must be a ${typeof example}`)
  if (typeof value === 'number') {
    const [least, most] = ranges[option] ?? [0, Number.MAX_SAFE_INTEGER]
    if (!Number.isInteger(value) || value < least || value > most) throw invalid(option, `must be an integer from ${least} to ${most}`)
  }
  if (option === 'overflow' && value !== 'drop-newest' && value !== 'drop-oldest') throw invalid(option, 'is unknown')
}

function invalid(option: string, message: string): MqttError {
  return new MqttError('ERR_INVALID_OPTION', `${option}: ${message}`, { option })
}

/** The reason code in a verdict. */
export function reasonOf(verdict: Verdict | undefined): number {
  if (verdict === undefined || verdict === true) return 0
  if (verdict === false) return 0x87
  return typeof verdict === 'number' ? verdict : verdict.reasonCode
}

/** Asks a hook that answers at once. */
export function ask(hook: () => boolean | number | undefined): number {
  try {
    return reasonOf(hook())
  } catch {
    return 0x80
  }
}
