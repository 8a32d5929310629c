/**
 * Who reads what: the subscriptions that the broker has by Topic Filter, and the consumers here with those that each reads.
 *
 * It sends nothing and settles no call.
 */

import { SparseMap, SparseSet } from '../../common/sparse.js'
import type { MqttError } from '../../errors.js'
import type { SubscriptionRequest, UserProperties } from '../../wire/packets.js'
import { TopicTrie } from '../../wire/topics.js'
import type { Consumer } from '../deliver/consumer.js'
import { BrokerSubscription, type SubscribeCall } from './broker-subscription.js'
import type { SubscribeHost } from './ports.js'

/** With fewer consumers that are gone, nothing is swept. */
const leastSweep = 64

/** Subscriptions and consumers of one client. */
export class Membership {
  readonly trie = new TopicTrie<BrokerSubscription>()
  /** By Topic Filter; also those that are being unsubscribed. */
  readonly byFilter = new SparseMap<string, BrokerSubscription>()
  /** The call that each consumer came with. */
  readonly calls = new SparseMap<Consumer, SubscribeCall>()
  /** Consumers that are gone from their filters while a turn of theirs runs. */
  readonly #lingering = new SparseSet<Consumer>()
  #sweepAt = leastSweep
  readonly #host: SubscribeHost

  constructor(host: SubscribeHost) {
    this.#host = host
  }

  /** Consumers of which a turn runs, also those that have left their filters. */
  get running(): Consumer[] {
    return this.#everyone.filter(({ busy }) => busy)
  }

  get #everyone(): Consumer[] {
    return [...this.#lingering, ...this.calls.keys()]
  }

  /** The subscription that a new request shares; one that is being unsubscribed is not shared any more. */
  current(filter: string): BrokerSubscription | undefined {
    const subscription = this.byFilter.get(filter)
    return subscription?.state === 'leaving' ? undefined : subscription
  }

  /** A new one, in the place of another that is being unsubscribed. */
  create(
    request: SubscriptionRequest,
    identifier: number | undefined,
    userProperties: UserProperties | undefined,
  ): BrokerSubscription {
    const { filter } = request
    const old = this.byFilter.get(filter)
    if (old !== undefined) {
      this.trie.remove(filter, old)
      this.#host.router.handleLeft(old)
    }
    const subscription = new BrokerSubscription(request, identifier, userProperties)
    this.byFilter.set(filter, subscription)
    this.trie.add(filter, subscription)
    return subscription
  }

  /** The broker does not have it any more: what waited for a reader is let go, and readers without another filter end. */
  forget(subscription: BrokerSubscription): void {
    const { filter } = subscription
    subscription.state = 'leaving'
    this.trie.remove(filter, subscription)
    if (this.byFilter.get(filter) === subscription) this.byFilter.delete(filter)
    this.#host.router.handleForgotten(subscription)
    this.leaveAll(subscription)
  }

  /** A subscription has lost its last reader. */
  leaveAll(subscription: BrokerSubscription, error?: MqttError): void {
    for (const consumer of [...subscription.takers.keys()])
      this.leave(consumer, subscription, error)
  }

  /** A consumer does not read a subscription any more. */
  leave(consumer: Consumer, subscription: BrokerSubscription, error?: MqttError): void {
    subscription.leave(consumer)
    this.calls.get(consumer)?.joined.delete(subscription)
    this.retire(consumer, error)
  }

  /** Without a filter, and without the prospect of one, a consumer ends. */
  retire(consumer: Consumer, error?: MqttError): void {
    const call = this.calls.get(consumer)
    if (call?.joined.size !== 0 || !call.done) return
    // What it has when the client ends is handed out, or let go unacknowledged.
    if (this.#host.states.stopping) return consumer.end(error)
    this.remove(consumer)
    consumer.end(error)
    if (!consumer.attended) consumer.discard(true)
  }

  /** A consumer goes, while a turn of it may run on. */
  remove(consumer: Consumer): void {
    this.calls.delete(consumer)
    const lingering = this.#lingering
    lingering.add(consumer)
    // Those that are done are forgotten; not at each one, or many would cost a walk each.
    if (lingering.size < this.#sweepAt) return
    for (const other of lingering) if (!other.busy && other.size === 0) lingering.delete(other)
    this.#sweepAt = leastSweep + lingering.size * 2
  }

  /** The client is about to end: what came of subscriptions that are left is handed out still, nothing else. */
  close(): void {
    for (const { consumer, joined } of this.calls.values())
      consumer.close([...joined].some(({ state }) => state === 'leaving'))
    for (const consumer of this.#lingering) consumer.close(true)
  }

  /** Nothing that is buffered is handed out any more: readers end in order. */
  letGo(): void {
    for (const consumer of this.#everyone) {
      consumer.close(false, true)
      consumer.end(undefined)
    }
  }

  /** The client is over. */
  clear(): void {
    this.calls.clear()
    this.byFilter.clear()
  }
}
