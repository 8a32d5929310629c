/**
 * One topic filter towards the broker, shared by all local subscriptions on it, and one consumer's wait for its grants.
 *
 * Data with a few rules; the traffic is in `registry.ts`.
 */
import { describe, MqttError, printable } from '../../errors.js'
import { SUBACK } from '../../wire/constants.js'
import type { QoS, SubscriptionRequest, UserProperties } from '../../wire/packets.js'
import { isShared } from '../../wire/topics.js'
import type { Grant, Subscription, UnsubscribeResult } from '../api/index.js'
import type { Deferred } from '../common/abort.js'
import type { Consumer } from '../delivery/consumer.js'
import type { DeliveredMessage } from '../delivery/message.js'
import type { Origin, Readership, RetainHabit } from '../delivery/ports.js'
import { nameOf, refusal } from '../session/refusal.js'
import { before, behind } from './bounds.js'

/** `new`: its first SUBSCRIBE has not left. `sent`: no answer yet. `active`: granted. `leaving`: UNSUBSCRIBE is queued or sent. */
export type FilterState = 'new' | 'sent' | 'active' | 'leaving'

/** A filter as the broker knows it. */
export class FilterEntry implements Origin, Readership<Consumer> {
  declare readonly filter: string
  declare readonly noLocal: boolean
  declare readonly retainAsPublished: boolean
  /** Highest that any consumer asked for. */
  declare qos: QoS
  /** Lowest Retain Handling that any consumer asked for. */
  declare retainHandling: 0 | 1 | 2
  readonly shared: boolean
  grantedQos: QoS | undefined
  /** Sent with each SUBSCRIBE for it. */
  userProperties: UserProperties | undefined
  /** It was subscribed to anew, and the server has not said yes: it may not know of it. */
  unconfirmed = false
  /** Subscription Identifier that the broker sends with its copies; 0 when there is none. */
  identifier = 0
  state: FilterState = 'new'
  /** Consumers with the QoS that each asked for. */
  readonly members = new Map<Consumer, QoS>()
  /** The only member, with what it asked for: most filters have one. */
  sole: Consumer | undefined
  soleQos: QoS = 0
  /** For whom the last SUBSCRIBE with an answer asked for copies with RETAIN 1; undefined: for all. */
  audience: Set<Consumer> | undefined
  /** SUBSCRIBE requests for it that are queued or not answered, oldest first. */
  readonly requests: SubscribeItem[] = []
  /** Somebody detached from it: it stays without readers too. */
  kept = false
  /** UNSUBSCRIBE requests for it without an answer: while there are any, it is shared by nobody new. */
  farewells = 0
  /** The answer to the UNSUBSCRIBE that is under way. */
  leaving: Promise<UnsubscribeResult[]> | undefined
  /** Unacknowledged messages that a consumer left behind, in the order of arrival. */
  requeued: DeliveredMessage[] = []

  constructor(request: SubscriptionRequest) {
    Object.assign(this, request)
    this.shared = isShared(request.filter)
  }

  /** Nobody here reads it, but the broker goes on sending. */
  get detached(): boolean {
    return this.members.size === 0 && this.state !== 'leaving'
  }

  // Servers answer SUBSCRIBEs in order. What comes while one waits for its answer is for that one, or, with servers that send retained messages
  // behind SUBACK, for the one before.
  get retainHabit(): RetainHabit {
    const [next] = this.requests
    // Any message may come with RETAIN 1: that says nothing.
    if (this.retainAsPublished) return 0
    if (!next?.sent || next.request.retainHandling === 2) return behind
    return this.grantedQos === undefined ? before : 0
  }

  audiencesOf(habit: RetainHabit): readonly (Set<Consumer> | undefined)[] {
    const both = [this.audience, this.requests[0]?.audience]
    return this.retainAsPublished ? [undefined] : habit === behind ? [both[0]] : habit === before ? [both[1]] : both
  }

  /** A consumer reads it, or asks for more. */
  join(consumer: Consumer, qos: QoS): void {
    this.members.set(consumer, qos)
    this.#findSole()
  }

  /** A SUBSCRIBE is to be sent for it. */
  ask(request: SubscriptionRequest, joiners: Joiner[]): SubscribeItem {
    const item: SubscribeItem = { entry: this, request, joiners, audience: undefined, sent: false, wanted: true }
    this.requests.push(item)
    return item
  }

  /** A consumer is gone from it. */
  leave(consumer: Consumer): void {
    this.members.delete(consumer)
    this.audience?.delete(consumer)
    this.#findSole()
  }

  /** What a consumer asked for; undefined when it does not read this. */
  qosOf(consumer: Consumer): QoS | undefined {
    return this.sole === consumer ? this.soleQos : this.members.get(consumer)
  }

  #findSole(): void {
    this.sole = undefined
    if (this.members.size === 1) for (const [consumer, qos] of this.members) [this.sole, this.soleQos] = [consumer, qos]
  }

  /** True when a request can share this broker subscription as it is. */
  fits(request: SubscriptionRequest, identifier?: number): boolean {
    const identified = identifier === undefined || identifier === this.identifier
    return identified && request.noLocal === this.noLocal && request.retainAsPublished === this.retainAsPublished
  }

  /** @throws MqttError ERR_SUBSCRIPTION_CONFLICT when the request cannot share the broker subscription with those who read it */
  check(request: SubscriptionRequest, identifier?: number): void {
    if (this.members.size > 0 && !this.fits(request, identifier)) throw conflict(this, request, identifier)
  }
}

/** A claim's interest in one line of a SUBSCRIBE packet. */
export interface Joiner {
  readonly claim: Claim
  readonly retained: boolean
}

/** One line of a SUBSCRIBE packet. */
export interface SubscribeItem {
  readonly entry: FilterEntry
  readonly request: SubscriptionRequest
  /** Whose grants the answer decides, and whether each waits for retained messages. */
  readonly joiners: Joiner[]
  /** For whom it asks for copies with RETAIN 1, once it has left; undefined: for all. */
  audience: Set<Consumer> | undefined
  /** True from when it left to its answer. */
  sent: boolean
  /** False once it was withdrawn, or has its answer. */
  wanted: boolean
}

/** One consumer's call: settled when every filter has its answer. */
export interface Claim {
  readonly consumer: Consumer
  /** As the caller gave them. */
  readonly asked: readonly SubscriptionRequest[]
  /** By filter. */
  readonly grants: Map<string, Grant>
  readonly requireQos: boolean
  readonly ready: Deferred<Subscription>
  /** Filters without an answer. */
  open: number
  /** True once a packet with one of its filters may have left. */
  sent: boolean
  done: boolean
}

/** What a SUBACK reason code means for a filter (section 3.9.3). */
export function grantOf(filter: string, reasonCode: number): Grant {
  const refused = reasonCode >= 0x80
  const error = refused ? refusal('ERR_SUBSCRIBE_REFUSED', reasonCode, undefined, SUBACK) : undefined
  return Object.freeze<Grant>({ filter, qos: refused ? undefined : (reasonCode as QoS), reasonCode, reasonName: nameOf(reasonCode, SUBACK), error })
}

// The server has one subscription on a filter, with one value of each.
function conflict(mine: FilterEntry | SubscriptionRequest, asked: SubscriptionRequest, identifier?: number): MqttError {
  const name = (['noLocal', 'retainAsPublished'] as const).find((option) => mine[option] !== asked[option])
  const text =
    name === undefined ? `subscriptionIdentifier ${(mine as FilterEntry).identifier}, not ${identifier}` : `${name} ${mine[name]}, not ${asked[name]}`
  return new MqttError('ERR_SUBSCRIPTION_CONFLICT', describe('ERR_SUBSCRIPTION_CONFLICT', `${printable(asked.filter)} has ${text}`), {
    option: 'filter',
  })
}

/** One request for each filter: those that name the same are merged. @throws MqttError ERR_SUBSCRIPTION_CONFLICT */
export function merged(asked: readonly SubscriptionRequest[]): SubscriptionRequest[] {
  const byFilter = new Map<string, SubscriptionRequest>()
  for (const request of asked) {
    const other = byFilter.get(request.filter) ?? request
    if (!new FilterEntry(other).fits(request)) throw conflict(other, request)
    const qos = Math.max(other.qos, request.qos) as QoS
    const retainHandling = Math.min(other.retainHandling, request.retainHandling) as 0 | 1 | 2
    byFilter.set(request.filter, { ...request, qos, retainHandling })
  }
  return [...byFilter.values()]
}
