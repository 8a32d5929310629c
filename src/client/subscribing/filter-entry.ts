/**
 * One topic filter towards the broker, shared by all local subscriptions on it, and one consumer's wait for its grants.
 *
 * Data with a few rules; the traffic is in `registry.ts`.
 */
import { MqttError } from '../../errors.js'
import { SUBACK } from '../../wire/constants.js'
import type { QoS, SubscriptionRequest, UserProperties } from '../../wire/packets.js'
import { isShared } from '../../wire/topics.js'
import type { Grant, Subscription, UnsubscribeResult } from '../api.js'
import type { Deferred } from '../common/abort.js'
import type { Consumer } from '../delivery/consumer.js'
import type { DeliveredMessage } from '../delivery/message.js'
import { nameOf, refusal } from '../session/refusal.js'

/** `new`: its first SUBSCRIBE has not left. `sent`: no answer yet. `active`: granted. `leaving`: UNSUBSCRIBE is queued or sent. */
export type FilterState = 'new' | 'sent' | 'active' | 'leaving'

/** A filter as the broker knows it. */
export class FilterEntry {
  readonly filter: string
  readonly shared: boolean
  readonly noLocal: boolean
  readonly retainAsPublished: boolean
  /** Highest that any consumer asked for. */
  qos: QoS
  grantedQos: QoS | undefined
  /** Lowest Retain Handling that any consumer asked for. */
  retainHandling: 0 | 1 | 2
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
  /** Who gets copies with RETAIN 1: those whose SUBSCRIBE asked for them last. */
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
  held: DeliveredMessage[] = []

  constructor(request: SubscriptionRequest) {
    this.filter = request.filter
    this.shared = isShared(request.filter)
    this.qos = request.qos
    this.retainHandling = request.retainHandling as 0 | 1 | 2
    this.noLocal = request.noLocal
    this.retainAsPublished = request.retainAsPublished
  }

  /** Nobody here reads it, but the broker goes on sending. */
  get detached(): boolean {
    return this.members.size === 0 && this.state !== 'leaving'
  }

  /** A consumer reads it, or asks for more. */
  join(consumer: Consumer, qos: QoS): void {
    this.members.set(consumer, qos)
    this.#findSole()
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

  /** @throws MqttError ERR_SUBSCRIPTION_CONFLICT when the request cannot share this broker subscription */
  check(request: SubscriptionRequest, identifier?: number): void {
    const identified = identifier === undefined || identifier === this.identifier
    if (identified && request.noLocal === this.noLocal && request.retainAsPublished === this.retainAsPublished) return
    throw new MqttError('ERR_SUBSCRIPTION_CONFLICT', undefined, {
      option: 'filter',
    })
  }
}

/** A claim's interest in one line of a SUBSCRIBE packet. */
export interface Joiner {
  readonly claim: Claim
  /** Which of the claim's filters it is. */
  readonly index: number
  readonly retained: boolean
}

/** One line of a SUBSCRIBE packet. */
export interface SubscribeItem {
  readonly entry: FilterEntry
  readonly request: SubscriptionRequest
  /** Whose grants the answer decides, and whether each waits for retained messages. */
  readonly joiners: Joiner[]
  /** True from when it left to its answer. */
  sent: boolean
}

/** One consumer's call: settled when every filter has its answer. */
export interface Claim {
  readonly consumer: Consumer
  /** As the caller gave them. */
  readonly asked: readonly SubscriptionRequest[]
  /** One for each filter. */
  readonly requests: readonly SubscriptionRequest[]
  readonly grants: Grant[]
  readonly requireQos: boolean
  readonly ready: Deferred<Subscription>
  remaining: number
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

/** The grants in the order asked: a filter that was named twice has one. */
export function grantsOf({ asked, requests, grants }: Claim): readonly Grant[] {
  if (asked.length === requests.length) return grants
  const byFilter = new Map(grants.map((grant) => [grant.filter, grant]))
  return asked.map(({ filter }) => byFilter.get(filter) as Grant)
}

/** One request for each filter: those that name the same are merged. @throws MqttError ERR_SUBSCRIPTION_CONFLICT */
export function merged(asked: readonly SubscriptionRequest[]): SubscriptionRequest[] {
  const byFilter = new Map<string, SubscriptionRequest>()
  for (const request of asked) {
    const other = byFilter.get(request.filter) ?? request
    new FilterEntry(other).check(request)
    const qos = Math.max(other.qos, request.qos) as QoS
    const retainHandling = Math.min(other.retainHandling, request.retainHandling) as 0 | 1 | 2
    byFilter.set(request.filter, { ...request, qos, retainHandling })
  }
  return [...byFilter.values()]
}
