/**
 * One outgoing message on its way: what was asked for, where it stands, and what its end is told with.
 *
 * Data and pure functions; the way itself is in `outbound.ts`.
 */
import { MqttError } from '../errors.js'
import type { Properties } from '../wire/packets.js'
import { type Deferred, deferred } from './abort.js'
import type { Receipt } from './api.js'
import type { Encoded } from './control.js'
import type { ClientEvents, InFlight } from './events.js'
import type { Linked } from './queue.js'
import type { CheckedPublish } from './requests.js'
import { nameOf } from './session/refusal.js'

/** A publish that was checked. */
export interface PublishCall {
  readonly topic: string
  readonly payload: Uint8Array
  readonly options: CheckedPublish
}

/** What became of messages in flight when the session was lost. */
export type Losses = Pick<ClientEvents['sessionlost'], 'republished' | 'rejected'>

/** An outgoing message. */
export interface Item extends Linked<Item> {
  readonly call: PublishCall
  readonly done: Deferred<Receipt>
  readonly size: number
  readonly since: number
  /** The caller was told already: what follows only frees what is held. */
  settled: boolean
  /** It counts as sent, and stays so until its acknowledgement or the end of the session. */
  sent: boolean
  /** It was sent in a session that was lost: neither its time to live nor `clear()` concern it any more. */
  again: boolean
  /** The connection that is up has carried it. */
  carried: boolean
  /** Connections that the server ended with a complaint while this was in flight. */
  complaints: number
  /** Rises with each message that is sent. */
  order: number
  packetId: number
  encoded: Encoded | undefined
  /** Reason code of PUBREC. */
  received: number
  /** Times that the server found its identifier in use. */
  retries: number
  /** Let go of the signal, of the time to live, and of the time for an acknowledgement. */
  stop: (() => void) | undefined
  cancel: (() => void) | undefined
  late: (() => void) | undefined
}

/** Per message, on top of payload, topic and properties; and per user property. */
const overhead = 64

function sizeOf({ topic, payload, options }: PublishCall): number {
  const { userProperties = [], correlationData, responseTopic, contentType } = options.properties ?? {}
  const pairs = userProperties.reduce((sum, [name, value]) => sum + lengthOf(name) + lengthOf(value) + overhead, 0)
  return payload.length + topic.length + pairs + (correlationData?.length ?? 0) + lengthOf(responseTopic) + lengthOf(contentType) + overhead
}

// What it may hold is checked by the encoder, later.
function lengthOf(text: unknown): number {
  return typeof text === 'string' ? text.length : 0
}

/** An item for a call that is made now. */
export function itemOf(call: PublishCall, now: number): Item {
  return {
    call,
    done: deferred(),
    size: sizeOf(call),
    since: now,
    settled: false,
    sent: false,
    again: false,
    carried: false,
    complaints: 0,
    order: 0,
    packetId: 0,
    encoded: undefined,
    received: 0,
    stop: undefined,
    retries: 0,
    cancel: undefined,
    late: undefined,
    previous: undefined,
    following: undefined,
  }
}

/** A message that goes with so many connections which end in a complaint is not sent again. */
const mostComplaints = 5
/** DISCONNECT reason codes that say we sent something wrong. */
const complaints: readonly number[] = [0x81, 0x82, 0x90, 0x93, 0x94, 0x95, 0x99, 0x9a, 0x9b]

/** Does a DISCONNECT with this reason code say that we sent something wrong? */
export function isComplaint(reasonCode: number): boolean {
  return complaints.includes(reasonCode)
}

/** A connection is over: the oldest of its messages that went with too many which ended in a complaint. */
export function blamed(items: readonly Item[], complaint: boolean): Item | undefined {
  for (const item of items) {
    if (complaint && item.carried) item.complaints += 1
    item.carried = false
  }
  return items.find((item) => item.complaints >= mostComplaints)
}

/**
 * The call as it is sent now: its message expiry interval goes down by the whole seconds that it waited here [MQTT-3.3.2-6].
 * @throws MqttError ERR_EXPIRED
 */
export function aged({ call, since, again }: Item, now: number): PublishCall {
  const { properties } = call.options
  const interval = properties?.messageExpiryInterval
  const waited = interval === undefined ? 0 : Math.floor((now - since) / 1000)
  if (interval === undefined || waited === 0) return call
  if (waited >= interval && !again) throw new MqttError('ERR_EXPIRED', undefined, { option: 'properties.messageExpiryInterval' })
  const messageExpiryInterval = Math.max(1, interval - waited)
  return { ...call, options: { ...call.options, properties: { ...properties, messageExpiryInterval } } }
}

/** A message in flight, for events. */
export function describe({ call, packetId }: Item): InFlight {
  return { topic: call.topic, qos: call.options.qos, packetId }
}

/** The error of a message that a lost session leaves in doubt. */
export function sessionLost(): MqttError {
  return new MqttError('ERR_SESSION_LOST', undefined, { fault: 'remote', outcome: 'unknown' })
}

/** How a publish ended well. */
export function receipt(reasonCode: number, packetId: number | undefined, { reasonString, userProperties = [] }: Properties = {}): Receipt {
  return Object.freeze({ reasonCode, reasonName: nameOf(reasonCode), reasonString, userProperties: Object.freeze(userProperties), packetId })
}
