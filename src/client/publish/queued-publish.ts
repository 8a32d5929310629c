/**
 * One outgoing message on its way: what was asked for, where it stands, and how its end reaches the caller.
 *
 * Data and pure functions; the way itself is in `publish-queue.ts`.
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
/** Bytes per message, on top of payload, topic and properties; and per user property. */
const overhead = 64

/** What an error about the message expiry interval names. */
export const expiryOption = 'properties.messageExpiryInterval'
const trial = /* @__PURE__ */ new Writer()

/** What became of messages in flight when the session was lost. */
export type Losses = Pick<ClientEvents['sessionlost'], 'republished' | 'rejected'>

type Settle<T> = (value: T) => void
let resolveMade: Settle<Receipt> = () => undefined
let rejectMade: Settle<unknown> = () => undefined
const make = (resolve: Settle<Receipt>, reject: Settle<unknown>): void => {
  resolveMade = resolve
  rejectMade = reject
}
const ignore = (): undefined => undefined

/** What speaks against a message, since it was answered last. */
export interface Suspicion {
  /** Connections that ended over it, and whether the last one of them did so with a complaint. */
  strikes: number
  complained: boolean
  /** That named a packet as its reason. */
  named: boolean
  /** Connections that ended over it without another word from the server. */
  unheard: number
}

/**
 * What earlier processes counted; undefined where they counted nothing. One that two connections ended over is sent behind an answer to PINGREQ, and
 * alone: otherwise no process would come to count it.
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
  /** Milliseconds; 0 where it has no message expiry interval. */
  readonly since: number
  /** As the caller gave it; a copy once the promise settled before the exchange was over. */
  payload: Uint8Array
  /** The promise has settled already: what follows only frees what is held. */
  settled = false
  /** It counts as sent, and stays so until its acknowledgement or the end of the session. */
  sent = false
  /** It was sent again in its session, with DUP. */
  repeated = false
  /** It was sent in a session that was lost: neither its time to live nor `clear()` concern it any more. */
  again = false
  /** It is not sent again, and ends with this once its exchange has ended with PUBREL, so that its identifier is free. */
  doubt: MqttError | undefined
  /** It waits beside the queue: see `Backlog`. */
  aside = false
  /** Where its packet ends in the stream of the connection that is up; 0 when that did not carry it. */
  end = 0
  /** Nothing else lacked an answer when it was sent. */
  lone = false
  /** Connections ended over it. */
  suspicion: Suspicion | undefined
  /** Something but CONNACK was heard on a connection before it was sent there. */
  proven = false
  /** Rises with each message that is sent. */
  order = 0
  /** Rises with each message that gets its PUBREC; 0 before that. */
  released = 0
  packetId = 0
  /** What was sent, to be sent again; undefined before that, and when it is not to be. */
  wire: Sending | undefined
  /** Bytes of its packet, negative while it waits for the store. */
  length = 0
  /** Reason code of PUBREC. */
  received = 0
  /** Times that the server found its identifier in use. */
  retries = 0
  /** Let go of the signal, of the time to live, and of the time for an acknowledgement. */
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

  /** It ended well, unless the promise has settled already. */
  resolve(done: Receipt): void {
    this.settled = true
    this.#resolve(done)
  }

  /** It failed. A rejection that is not awaited stays silent, unless the program is at fault. */
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

// What it may hold is checked by the encoder, later.
function lengthOf(text: unknown): number {
  return typeof text === 'string' ? text.length : 0
}

/**
 * What is sent now: the message expiry interval goes down by the whole seconds that it waited here [MQTT-3.3.2-6].
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

/** @throws MqttError for what the server that we are connected to does not take */
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

/** Writes what cannot leave now to a scratch buffer, but for the payload. @throws MqttError for what can never be sent */
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

/** Bytes of its packet. @throws WireError for what can never be sent */
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

/** True where its publisher has it in a store, and publishes it again. */
export function isKept({ options }: QueuedPublish): boolean {
  return options.link !== undefined || options[isStored] !== undefined
}

/** There is no connection, and what the policy says then. */
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

/** What happens to it without a connection. */
export function offlinePolicy(
  { options, again }: QueuedPublish,
  { offline }: OutboundConfig,
): OfflinePolicy {
  return again ? 'queue' : (options.offline ?? offline[`qos${options.qos}`])
}

/**
 * Is it sent once more when the session is lost? A clean 3.1.1 session is lost with every connection: a program that asks for one has no use for repeats, unless it
 * is said.
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

/** What became of messages in flight when the session was lost, for its event: those that are sent again, and those that are not. */
export function lossesOf(again: readonly QueuedPublish[], lost: readonly QueuedPublish[]): Losses {
  const rejected = lost
    .filter((item) => !item.settled)
    .map((item) => ({ ...describe(item), error: sessionLost() }))
  return { republished: Object.freeze(again.map(describe)), rejected: Object.freeze(rejected) }
}

/** The error of a message that a lost session leaves in doubt. */
export function sessionLost(): MqttError {
  return new MqttError('ERR_SESSION_LOST', undefined, { fault: 'remote', outcome: 'unknown' })
}

const none: Properties = {}
const noPairs: UserProperties = []
let success: string | undefined

/** How a publish ended well. */
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

/** The server's no. What holds the identifier of a message that was sent again may be its first copy. */
export function refused(
  { repeated }: QueuedPublish,
  packetType: number,
  reasonCode: number,
  properties: Properties | undefined,
): MqttError {
  const outcome = repeated && reasonCode === identifierInUse ? 'unknown' : 'refused'
  return refusal('ERR_PUBLISH_REFUSED', reasonCode, properties?.reasonString, packetType, outcome)
}
