/**
 * One subscription of the session, with the requests for it that are on their way, and the calls that wait for them.
 *
 * Data with a few rules; the traffic is in `subscriptions.ts`. The broker has one subscription for each Topic Filter, shared by all consumers on it here.
 */

import { type Deferred, deferred } from '../../common/abort.js'
import type { MqttError, Outcome } from '../../errors.js'
import type { QoS, SubscriptionRequest, UserProperties } from '../../wire/packets.js'
import { isShared } from '../../wire/topics.js'
import type { Consumer } from '../deliver/consumer.js'
import type { DeliveredMessage } from '../deliver/message.js'
import type { Origin, Readership, RetainHabit } from '../deliver/ports.js'
import type { Grant, Subscription, UnsubscribeResult } from '../options/index.js'

/** Where retained messages come in, beside the SUBACK of who asked for them. */
const before = 1
const behind = 2

/** `new`: its first SUBSCRIBE has not left. `sent`: no answer yet. `active`: granted. `leaving`: UNSUBSCRIBE is queued or sent. */
export type SubscriptionState = 'new' | 'sent' | 'active' | 'leaving'

/** What speaks against a filter: a connection ended while a request for it had no answer. */
export interface Suspicion {
  /** Connections in a row that ended over it while it was sent alone. */
  strikes: number
}

/** A subscription as the broker knows it. */
export class BrokerSubscription implements Origin, Readership<Consumer> {
  declare readonly filter: string
  declare readonly noLocal: boolean
  declare readonly retainAsPublished: boolean
  /** Highest that any consumer asked for. */
  declare qos: QoS
  /** Lowest Retain Handling that any consumer asked for. */
  declare retainHandling: 0 | 1 | 2
  readonly grouped: boolean
  grantedQos: QoS | undefined
  /** Sent with each SUBSCRIBE for it. */
  readonly userProperties: UserProperties | undefined
  /** A new SUBSCRIBE was sent and not granted yet: the server may not know the subscription. */
  unconfirmed = false
  /** Subscription Identifier that the broker sends with its copies; 0: no identifier. */
  identifier: number
  state: SubscriptionState = 'new'
  /** Consumers with the QoS that each asked for. */
  readonly takers = new Map<Consumer, QoS>()
  /** The only member, with what it asked for: most filters have one. */
  sole: Consumer | undefined
  soleQos: QoS = 0
  /** For whom the last SUBSCRIBE with an answer asked for copies with RETAIN 1; undefined: for all. */
  audience: Set<Consumer> | undefined
  /** Requests for it that are queued or not answered, oldest first. */
  readonly requests: SubscribeFilter[] = []
  /** A consumer detached from it: it stays, even without readers. */
  kept = false
  /** What comes behind UNSUBACK is for its readers too, and nothing of it is acknowledged unread, until it is forgotten. */
  lingers = false
  /** UNSUBSCRIBE requests for it without an answer: while there are any, no new reader may share it. */
  openUnsubscribes = 0
  /** The answer to the UNSUBSCRIBE that is under way. */
  leaving: Promise<UnsubscribeResult[]> | undefined
  /** From the end of a connection that left its SUBSCRIBE without an answer, to its answer. */
  suspicion: Suspicion | undefined
  /** Unacknowledged messages that a consumer left behind, in the order of arrival. */
  requeued: DeliveredMessage[] = []

  constructor(request: SubscriptionRequest, identifier = 0, userProperties?: UserProperties) {
    Object.assign(this, request)
    this.identifier = identifier
    this.userProperties = userProperties
    this.grouped = isShared(request.filter)
  }

  /** It has no reader here, but the broker goes on sending. */
  get detached(): boolean {
    return this.takers.size === 0 && !this.over
  }

  get over(): boolean {
    return this.state === 'leaving' && !this.lingers
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
    return this.retainAsPublished
      ? [undefined]
      : habit === behind
        ? [both[0]]
        : habit === before
          ? [both[1]]
          : both
  }

  /** A consumer reads it, or asks for more. */
  join(consumer: Consumer, qos: QoS): void {
    this.takers.set(consumer, qos)
    this.#findSole()
  }

  /** A SUBSCRIBE is to be sent for it: gives its place in the packet. */
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

  /** A consumer is gone from it. */
  leave(consumer: Consumer): void {
    this.takers.delete(consumer)
    this.audience?.delete(consumer)
    this.#findSole()
  }

  /** What a consumer asked for; undefined when it does not read this. */
  qosOf(consumer: Consumer): QoS | undefined {
    return this.sole === consumer ? this.soleQos : this.takers.get(consumer)
  }

  #findSole(): void {
    this.sole = undefined
    if (this.takers.size === 1)
      for (const [consumer, qos] of this.takers) [this.sole, this.soleQos] = [consumer, qos]
  }
}

/** One Topic Filter of a SUBSCRIBE that is queued, or not answered. */
export interface SubscribeFilter {
  readonly filter: string
  readonly known: BrokerSubscription
  readonly request: SubscriptionRequest
  /** The calls whose grants the answer decides, each with whether it waits for retained messages. */
  readonly calls: Map<SubscribeCall, boolean>
  /** For whom it asks for copies with RETAIN 1, once it has left; undefined: for all. */
  audience: Set<Consumer> | undefined
  /** True from when it left to its answer. */
  sent: boolean
  /** True once it is not wanted any more, or has its answer. */
  withdrawn: boolean
}

/** These requests are not needed any more: gives the calls that waited for them. */
export function withdraw(asked: readonly SubscribeFilter[]): SubscribeCall[] {
  return asked.flatMap((each) => {
    const { requests } = each.known
    // The oldest has its answer first.
    if (requests[0] === each) requests.shift()
    else if (!each.withdrawn) requests.splice(requests.indexOf(each), 1)
    each.withdrawn = true
    return [...each.calls.keys()]
  })
}

/** One call that subscribes: settled when every filter has its answer, and what its consumer reads to its end. */
export class SubscribeCall {
  readonly consumer: Consumer
  /** As the caller gave them. */
  readonly asked: readonly SubscriptionRequest[]
  readonly requireQos: boolean
  readonly ready: Deferred<Subscription> = deferred()
  /** By filter. */
  readonly grants = new Map<string, Grant>()
  /** What its consumer reads. */
  readonly joined = new Set<BrokerSubscription>()
  /** Filters without an answer. */
  open: number
  /** True once a packet with one of its filters may have left. */
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

  /** The first end counts. */
  settle(error: MqttError | undefined): void {
    this.done = true
    if (error === undefined) this.ready.resolve(this.consumer.subscription)
    else this.ready.reject(error)
  }
}
