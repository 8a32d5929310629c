/**
 * One topic filter towards the broker, shared by all local subscriptions on it, and one consumer's wait for its grants.
 *
 * Data with a few rules; the traffic is in `subscriptions.ts`.
 */
import type { QoS, SubscriptionRequest } from '../wire/packets.js'
import { isShared } from '../wire/topics.js'
import type { Deferred } from './abort.js'
import type { Grant, Subscription } from './api.js'
import type { DeliveredMessage } from './message.js'
import type { Consumer } from './subscription.js'

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
  /** Subscription Identifier that the broker sends with its copies; 0 when there is none. */
  identifier = 0
  state: FilterState = 'new'
  /** Consumers with the QoS that each asked for. */
  readonly members = new Map<Consumer, QoS>()
  /** Who gets copies with RETAIN 1: those whose SUBSCRIBE asked for them last. */
  audience = new Set<Consumer>()
  /** SUBSCRIBE requests for it that are queued or not answered, oldest first. */
  readonly requests = new Set<SubscribeItem>()
  /** Unacknowledged messages that a consumer left behind, in the order of arrival. */
  held: DeliveredMessage[] = []

  constructor(request: SubscriptionRequest) {
    this.filter = request.filter
    this.shared = isShared(request.filter)
    this.qos = request.qos
    this.noLocal = request.noLocal
    this.retainAsPublished = request.retainAsPublished
  }

  /** Nobody here reads it, but the broker goes on sending. */
  get detached(): boolean {
    return this.members.size === 0 && this.state !== 'leaving'
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
  readonly requests: readonly SubscriptionRequest[]
  readonly grants: Grant[]
  readonly requireQos: boolean
  readonly ready: Deferred<Subscription>
  remaining: number
  /** True once a packet with one of its filters may have left. */
  sent: boolean
}
