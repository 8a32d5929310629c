/**
 * One subscription as the broker has it, with its pending requests and the calls that wait for
 * them. Data with a few rules; `subscriptions.ts` drives it.
 *
 * The broker has one subscription per Topic Filter. All consumers of this client on that filter
 * share it.
 */

import { type Deferred, deferred } from '../../common/abort.js'
import type { MqttError, Outcome } from '../../errors.js'
import type { QoS, SubscriptionRequest, UserProperties } from '../../wire/packets.js'
import { isShared } from '../../wire/topics.js'
import type { Consumer } from '../deliver/consumer.js'
import type { DeliveredMessage } from '../deliver/message.js'
import type { Origin, Readership, RetainHabit } from '../deliver/ports.js'
import type { Grant, Subscription, UnsubscribeResult } from '../options/index.js'

/** Bits of `RetainHabit`: the server sends retained messages before or behind the SUBACK. */
const before = 1
const behind = 2

/**
 * `new`: its first SUBSCRIBE is not sent. `sent`: not answered. `active`: granted. `leaving`:
 * UNSUBSCRIBE is queued or sent.
 */
export type SubscriptionState = 'new' | 'sent' | 'active' | 'leaving'

/** Evidence against a filter: a connection ended while a request for it was unanswered. */
export interface Suspicion {
  /** Consecutive connections that ended while its request was sent alone. */
  strikes: number
}

/** A subscription as the broker knows it. */
export class BrokerSubscription implements Origin, Readership<Consumer> {
  declare readonly filter: string
  declare readonly noLocal: boolean
  declare readonly retainAsPublished: boolean
  /** Highest QoS that a consumer asked for. */
  declare qos: QoS
  /** Lowest Retain Handling that a consumer asked for. */
  declare retainHandling: 0 | 1 | 2
  readonly grouped: boolean
  grantedQos: QoS | undefined
  /** Sent with each SUBSCRIBE of this filter. */
  readonly userProperties: UserProperties | undefined
  /**
   * A repeated SUBSCRIBE was sent and is not granted yet: the server may not have the subscription.
   */
  unconfirmed = false
  /** Subscription Identifier that the broker puts on its copies; 0: none. */
  identifier: number
  state: SubscriptionState = 'new'
  /** Consumers with the QoS that each asked for. */
  readonly takers = new Map<Consumer, QoS>()
  /** The only consumer and its QoS, which is the usual case; undefined when there are several. */
  sole: Consumer | undefined
  soleQos: QoS = 0
  /**
   * Consumers for which the last answered SUBSCRIBE requested retained messages; undefined: all.
   */
  audience: Set<Consumer> | undefined
  /** Queued or unanswered SUBSCRIBEs for it, oldest first. */
  readonly requests: SubscribeFilter[] = []
  /** A consumer has detached: the subscription stays without consumers. */
  kept = false
  /**
   * A group member is leaving: messages that come after UNSUBACK still go to its readers, and none
   * is acknowledged unread, until the subscription is forgotten.
   */
  lingers = false
  /** Unanswered UNSUBSCRIBEs for it. While there are any, no new consumer may share it. */
  openUnsubscribes = 0
  /** The result of the pending UNSUBSCRIBE. */
  leaving: Promise<UnsubscribeResult[]> | undefined
  /** Set when a connection ended with its SUBSCRIBE unanswered; cleared by an answer. */
  suspicion: Suspicion | undefined
  /** Unacknowledged messages that consumers left behind, in the order of arrival. */
  requeued: DeliveredMessage[] = []

  constructor(request: SubscriptionRequest, identifier = 0, userProperties?: UserProperties) {
    Object.assign(this, request)
    this.identifier = identifier
    this.userProperties = userProperties
    this.grouped = isShared(request.filter)
  }

  /** It has no consumer, but the broker still sends its messages. */
  get detached(): boolean {
    return this.takers.size === 0 && !this.over
  }

  get over(): boolean {
    return this.state === 'leaving' && !this.lingers
  }

  // Servers answer SUBSCRIBEs in order. A retained message that arrives while one is unanswered
  // belongs to it or, if the server sends retained messages behind the SUBACK, to the one before.
  get retainHabit(): RetainHabit {
    const [next] = this.requests
    // With Retain As Published, any message may carry RETAIN 1, so it proves nothing.
    if (this.retainAsPublished) return 0
    if (!next?.sent || next.request.retainHandling === 2) return behind
    return this.grantedQos === undefined ? before : 0
  }

  audiencesOf(habit: RetainHabit): readonly (Set<Consumer> | undefined)[] {
    const both = [this.audience, this.requests[0]?.audience]
    return this.retainAsPublished
      ? [undefined]
      : habit === behind
        ? [both[0]]
        : habit === before
          ? [both[1]]
          : both
  }

  /** Adds a consumer, or changes its QoS. */
  join(consumer: Consumer, qos: QoS): void {
    this.takers.set(consumer, qos)
    this.#findSole()
  }

  /** Registers a SUBSCRIBE for this filter and returns its entry in the packet. */
  ask(request: SubscriptionRequest, calls: SubscribeFilter['calls']): SubscribeFilter {
    const asked: SubscribeFilter = {
      filter: this.filter,
      known: this,
      request,
      calls,
      audience: undefined,
      sent: false,
      withdrawn: false,
    }
    this.requests.push(asked)
    return asked
  }

  /** Removes a consumer. */
  leave(consumer: Consumer): void {
    this.takers.delete(consumer)
    this.audience?.delete(consumer)
    this.#findSole()
  }

  /** The QoS that a consumer asked for; undefined when it does not read this filter. */
  qosOf(consumer: Consumer): QoS | undefined {
    return this.sole === consumer ? this.soleQos : this.takers.get(consumer)
  }

  #findSole(): void {
    this.sole = undefined
    if (this.takers.size === 1)
      for (const [consumer, qos] of this.takers) [this.sole, this.soleQos] = [consumer, qos]
  }
}

/** One Topic Filter in a queued or unanswered SUBSCRIBE. */
export interface SubscribeFilter {
  readonly filter: string
  readonly known: BrokerSubscription
  readonly request: SubscriptionRequest
  /** Calls that the answer settles; the value says whether the call wants retained messages. */
  readonly calls: Map<SubscribeCall, boolean>
  /** Set on sending: consumers for which it requests retained messages; undefined: all. */
  audience: Set<Consumer> | undefined
  /** True between sending and answer. */
  sent: boolean
  /** True once it is no longer wanted or has been answered. */
  withdrawn: boolean
}

/** Withdraws requests that are not needed any more; returns the calls that waited for them. */
export function withdraw(asked: readonly SubscribeFilter[]): SubscribeCall[] {
  return asked.flatMap((each) => {
    const { requests } = each.known
    // Answers come in order, so this is the usual case.
    if (requests[0] === each) requests.shift()
    else if (!each.withdrawn) requests.splice(requests.indexOf(each), 1)
    each.withdrawn = true
    return [...each.calls.keys()]
  })
}

/**
 * One call of subscribe: settled when every filter is answered. Also records which subscriptions
 * its consumer reads.
 */
export class SubscribeCall {
  readonly consumer: Consumer
  /** The requests as the caller gave them. */
  readonly asked: readonly SubscriptionRequest[]
  readonly requireQos: boolean
  readonly ready: Deferred<Subscription> = deferred()
  /** By filter. */
  readonly grants = new Map<string, Grant>()
  /** The subscriptions that its consumer reads. */
  readonly joined = new Set<BrokerSubscription>()
  /** Number of unanswered filters. */
  open: number
  /** True once a packet with one of its filters may have been sent. */
  sent = false
  done = false

  constructor(
    consumer: Consumer,
    asked: readonly SubscriptionRequest[],
    requireQos: boolean,
    open: number,
  ) {
    this.consumer = consumer
    this.asked = asked
    this.requireQos = requireQos
    this.open = open
  }

  get outcome(): Outcome {
    return this.sent ? 'unknown' : 'not-sent'
  }

  /** Settles the call. */
  settle(error: MqttError | undefined): void {
    this.done = true
    if (error === undefined) this.ready.resolve(this.consumer.subscription)
    else this.ready.reject(error)
  }
}
