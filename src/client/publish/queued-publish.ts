/**
 * One outgoing message: its arguments, its progress, and the promise of its caller. Data and pure
 * functions; `publishing.ts` moves it.
 */

import type { Linked } from '../../common/queue.js'
import { hasSettings, optionError, unsupported } from '../../common/schema.js'
import { isProgramFault, MqttError } from '../../errors.js'
import { writeMessage } from '../../wire/encode-publish.js'
import type { Properties, ProtocolVersion, UserProperties } from '../../wire/packets.js'
import { Writer } from '../../wire/writer.js'
import type { CheckedPublish, Sending } from '../options/check-calls.js'
import { asInvalidOption, type OutboundConfig } from '../options/check-options.js'
import { isStored } from '../options/hidden.js'
import type { ClientEvents, InFlight, OfflinePolicy, Receipt } from '../options/index.js'
import { checkPublish } from '../session/limits.js'
import { nameOf, refusal, tooLarge } from '../session/refusal.js'
import type { PublishHost } from './ports.js'

/** Reason code: Packet Identifier in use. */
export const identifierInUse = 0x91
/** Bytes counted per message on top of payload, topic and properties, and per user property. */
const overhead = 64

/** The option name in errors about the message expiry interval. */
export const expiryOption = 'properties.messageExpiryInterval'
const trial = /* @__PURE__ */ new Writer()

/** What happened to messages in flight when the session was lost. */
export type Losses = Pick<ClientEvents['sessionlost'], 'republished' | 'rejected'>

type Settle<T> = (value: T) => void
let resolveMade: Settle<Receipt> = () => undefined
let rejectMade: Settle<unknown> = () => undefined
const make = (resolve: Settle<Receipt>, reject: Settle<unknown>): void => {
  resolveMade = resolve
  rejectMade = reject
}
const ignore = (): undefined => undefined

/** Evidence against a message since it was last answered. */
export interface Suspicion {
  /** Connections that ended on it, and whether the last of them ended with a complaint. */
  strikes: number
  complained: boolean
  /** The complaint blamed a packet. */
  named: boolean
  /**
   * Connections that ended on it without counting as a strike: nothing but CONNACK had come before
   * it was sent, or PINGREQ was unanswered.
   */
  unheard: number
}

/**
 * The suspicion that earlier processes recorded; undefined for 0. From two strikes on, the message
 * is sent alone, behind an answer to PINGREQ, from the first connection on. Otherwise a process
 * that restarts after each loss would never isolate it.
 */
export function earlierSuspicion(strikes: number): Suspicion | undefined {
  return strikes > 0
    ? {
        strikes,
        complained: false,
        named: false,
        unheard: strikes > 1 ? Number.MAX_SAFE_INTEGER : 0,
      }
    : undefined
}

/** An outgoing message. */
export class QueuedPublish implements Linked<QueuedPublish> {
  readonly topic: string
  readonly options: CheckedPublish
  readonly promise: Promise<Receipt>
  readonly size: number
  /** When it was published, in milliseconds; 0 without a message expiry interval. */
  readonly since: number
  /** The caller's bytes; a copy once the promise settled before the exchange was over. */
  payload: Uint8Array
  /** The promise has settled; later results only free what is held. */
  settled = false
  /** It counts as sent, until its last acknowledgement or the end of the session. */
  sent = false
  /** It was resent with DUP in its session. */
  repeated = false
  /**
   * It was sent in a session that was lost. Neither its time to live nor `clear()` applies to it.
   */
  again = false
  /**
   * Set when it must not be resent: it fails with this error once PUBREL has ended its exchange and
   * freed its identifier.
   */
  doubt: MqttError | undefined
  /** Set aside in the backlog: see `Backlog`. */
  aside = false
  /**
   * Where its packet ends in the output stream of the connection; 0 when this connection did not
   * carry it.
   */
  end = 0
  /** Nothing else was unanswered when it was sent. */
  lone = false
  /** Set when a connection ended on it. */
  suspicion: Suspicion | undefined
  /** Before it was sent, the server had sent something other than CONNACK on that connection. */
  proven = false
  /** Position in the order of sending. */
  order = 0
  /** Position in the order of PUBREC; 0 before that. */
  released = 0
  packetId = 0
  /** What to resend; undefined before the first sending, and when it must not be resent. */
  wire: Sending | undefined
  /** Bytes of its packet; negative while it waits for the store. */
  length = 0
  /** Reason code of PUBREC. */
  received = 0
  /** Times that the server reported its identifier as in use. */
  retries = 0
  /** Release the abort signal, the expiry timer and the acknowledgement timer. */
  stop: (() => void) | undefined
  cancel: (() => void) | undefined
  late: (() => void) | undefined
  previous: QueuedPublish | undefined
  following: QueuedPublish | undefined
  readonly #resolve: Settle<Receipt>
  readonly #reject: Settle<unknown>

  constructor(topic: string, payload: Uint8Array, options: CheckedPublish, since: number) {
    this.topic = topic
    this.options = options
    this.payload = payload
    this.size = sizeOf(topic, payload, options)
    this.since = since
    const stored = options[isStored]
    if (typeof stored === 'object') this.suspicion = earlierSuspicion(stored.strikes)
    this.promise = new Promise(make)
    this.#resolve = resolveMade
    this.#reject = rejectMade
  }

  /** Resolves the promise, unless it has settled. */
  resolve(done: Receipt): void {
    this.settled = true
    this.#resolve(done)
  }

  /** Rejects the promise. An unhandled rejection stays silent unless the program is at fault. */
  reject(error: unknown): void {
    this.settled = true
    if (!isProgramFault(error)) this.promise.catch(ignore)
    this.#reject(error)
  }
}

function sizeOf(topic: string, payload: Uint8Array, { properties }: CheckedPublish): number {
  const size = payload.length + topic.length + overhead
  return properties === undefined ? size : size + sizeOfProperties(properties)
}

function sizeOfProperties({
  userProperties = [],
  correlationData,
  responseTopic,
  contentType,
}: Properties): number {
  const pairs = userProperties.reduce(
    (sum, [name, value]) => sum + lengthOf(name) + lengthOf(value) + overhead,
    0,
  )
  return pairs + (correlationData?.length ?? 0) + lengthOf(responseTopic) + lengthOf(contentType)
}

// The encoder checks the type later.
function lengthOf(text: unknown): number {
  return typeof text === 'string' ? text.length : 0
}

/**
 * The options to send with. The message expiry interval is reduced by the whole seconds spent
 * waiting [MQTT-3.3.2-6].
 * @throws MqttError ERR_EXPIRED
 */
export function aged({ options, since, again }: QueuedPublish, now: () => number): Sending {
  const interval = options.properties?.messageExpiryInterval
  if (interval === undefined) return options
  const waited = Math.floor((now() - since) / 1000)
  if (waited === 0) return options
  if (waited >= interval && !again) throw optionError('ERR_EXPIRED', expiryOption)
  const messageExpiryInterval = Math.max(1, interval - waited)
  return { ...options, properties: { ...options.properties, messageExpiryInterval } }
}

/** @throws MqttError when the connected server does not support it */
export function assertTaken(
  { qos, retain, properties }: CheckedPublish,
  { connections, session }: PublishHost,
): void {
  const limits = connections.connection && session.negotiated
  if (limits === undefined) return
  const objection = checkPublish(limits, qos, retain)
  if (objection === 'ERR_QOS_UNSUPPORTED')
    throw optionError(objection, 'qos', `the server takes QoS ${limits.maximumQoS} at most`)
  if (objection !== undefined) throw optionError(objection, 'retain')
  if (limits.protocolVersion === 5 || properties === undefined || !hasSettings(properties)) return
  throw unsupported('properties')
}

/**
 * Encodes everything but the payload into a scratch buffer, to find errors before queueing. @throws
 * MqttError when it can never be sent
 */
export function assertSendable(
  topic: string,
  payloadLength: number,
  how: Sending,
  { connections, session }: PublishHost,
): void {
  const limit =
    (connections.connection && session.negotiated?.maximumPacketSize) ?? Number.POSITIVE_INFINITY
  let size = 0
  try {
    size = sizeOfMessage(topic, { length: payloadLength }, how, 5)
  } catch (error) {
    throw asInvalidOption(error, '', topic)
  }
  if (size > limit) throw tooLarge(size, limit)
}

/** Bytes of its PUBLISH packet. @throws WireError when it can never be sent */
export function sizeOfMessage(
  topic: string,
  payload: { readonly length: number },
  how: Sending,
  version: ProtocolVersion,
): number {
  trial.reset()
  writeMessage(trial, topic, payload, how, how.qos, 0, false, version, true)
  return trial.length + payload.length
}

/** True when its publisher keeps it in a store and publishes it again. */
export function isKept({ options }: QueuedPublish): boolean {
  return options.link !== undefined || options[isStored] !== undefined
}

/** The error of a publish without a connection, with advice for the current state. */
export function notConnected({ states }: PublishHost, cause?: MqttError): MqttError {
  const wayOut =
    states.current === 'idle'
      ? 'await client.connect() first'
      : `the client is ${states.current}; await client.writable`
  return new MqttError(
    'ERR_NOT_CONNECTED',
    `not connected: ${wayOut}, or set outbound.offline or offline: 'queue'`,
    {
      option: 'outbound.offline',
      cause,
    },
  )
}

/** The offline policy that applies to this message. */
export function offlinePolicy(
  { options, again }: QueuedPublish,
  { offline }: OutboundConfig,
): OfflinePolicy {
  return again ? 'queue' : (options.offline ?? offline[`qos${options.qos}`])
}

/**
 * True when the message is sent again after a lost session. A clean 3.1.1 session ends with every
 * connection, so its default is not to repeat.
 */
export function republishes(
  { options }: QueuedPublish,
  host: Pick<PublishHost, 'options' | 'session'>,
): boolean {
  const { outbound, cleanStart } = host.options
  const { session } = host
  const usual = options.qos === 1 && !(session.version === 4 && cleanStart)
  return (
    (options.onSessionLost ?? outbound.onSessionLost ?? (usual ? 'republish' : 'reject')) ===
    'republish'
  )
}

function describe({ topic, options, packetId }: QueuedPublish): InFlight {
  return { topic, qos: options.qos, packetId }
}

/**
 * The `sessionlost` event's lists: messages that are sent again, and messages that are rejected.
 */
export function lossesOf(again: readonly QueuedPublish[], lost: readonly QueuedPublish[]): Losses {
  const rejected = lost
    .filter((item) => !item.settled)
    .map((item) => ({ ...describe(item), error: sessionLost() }))
  return { republished: Object.freeze(again.map(describe)), rejected: Object.freeze(rejected) }
}

/** The error of a message whose outcome a lost session leaves unknown. */
export function sessionLost(): MqttError {
  return new MqttError('ERR_SESSION_LOST', undefined, { fault: 'remote', outcome: 'unknown' })
}

const none: Properties = {}
const noPairs: UserProperties = []
let success: string | undefined

/** The result of a successful publish. */
export function receipt(
  reasonCode: number,
  packetId: number | undefined,
  properties?: Properties,
): Receipt {
  const { reasonString, userProperties = noPairs } = properties ?? none
  success ??= nameOf(0)
  const reasonName = reasonCode === 0 ? success : nameOf(reasonCode)
  return Object.freeze({
    reasonCode,
    reasonName,
    reasonString,
    userProperties: Object.freeze(userProperties),
    packetId,
  })
}

/**
 * The error of a negative acknowledgement. If the message was resent, its first copy may hold the
 * identifier, so the outcome is unknown.
 */
export function refused(
  { repeated }: QueuedPublish,
  packetType: number,
  reasonCode: number,
  properties: Properties | undefined,
): MqttError {
  const outcome = repeated && reasonCode === identifierInUse ? 'unknown' : 'refused'
  return refusal('ERR_PUBLISH_REFUSED', reasonCode, properties?.reasonString, packetType, outcome)
}
