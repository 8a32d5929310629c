/**
 * Registers the broker's subscriptions by Topic Filter, and the consumers with the subscriptions
 * that each reads. It sends nothing and settles no call.
 */

import { SparseMap, SparseSet } from '../../common/sparse.js'
import type { MqttError } from '../../errors.js'
import type { SubscriptionRequest, UserProperties } from '../../wire/packets.js'
import { TopicTrie } from '../../wire/topics.js'
import type { Consumer } from '../deliver/consumer.js'
import { BrokerSubscription, type SubscribeCall } from './broker-subscription.js'
import type { SubscribeHost } from './ports.js'

/** Least number of removed consumers that is worth a sweep. */
const leastSweep = 64

/** Subscriptions and consumers of one client. */
export class Membership {
  readonly trie = new TopicTrie<BrokerSubscription>()
  /** Subscriptions by Topic Filter, including those being unsubscribed. */
  readonly byFilter = new SparseMap<string, BrokerSubscription>()
  /** The call that created each consumer. */
  readonly calls = new SparseMap<Consumer, SubscribeCall>()
  /** Consumers removed from their filters that may still have a turn running. */
  readonly #lingering = new SparseSet<Consumer>()
  #sweepAt = leastSweep
  readonly #host: SubscribeHost

  constructor(host: SubscribeHost) {
    this.#host = host
  }

  /** Consumers with a running turn, including those removed from their filters. */
  get running(): Consumer[] {
    return this.#everyone.filter(({ busy }) => busy)
  }

  get #everyone(): Consumer[] {
    return [...this.#lingering, ...this.calls.keys()]
  }

  /** The subscription that a new request can share: not one that is being unsubscribed. */
  current(filter: string): BrokerSubscription | undefined {
    const subscription = this.byFilter.get(filter)
    return subscription?.state === 'leaving' ? undefined : subscription
  }

  /** Creates a subscription; replaces one that is being unsubscribed. */
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

  /**
   * The broker no longer has it: waiting messages are released, and consumers without another
   * filter end.
   */
  forget(subscription: BrokerSubscription): void {
    const { filter } = subscription
    subscription.state = 'leaving'
    this.trie.remove(filter, subscription)
    if (this.byFilter.get(filter) === subscription) this.byFilter.delete(filter)
    this.#host.router.handleForgotten(subscription)
    this.leaveAll(subscription)
  }

  /** Removes all consumers from a subscription. */
  leaveAll(subscription: BrokerSubscription, error?: MqttError): void {
    for (const consumer of [...subscription.takers.keys()])
      this.leave(consumer, subscription, error)
  }

  /** Removes a consumer from a subscription. */
  leave(consumer: Consumer, subscription: BrokerSubscription, error?: MqttError): void {
    subscription.leave(consumer)
    this.calls.get(consumer)?.joined.delete(subscription)
    this.retire(consumer, error)
  }

  /** Ends a consumer that has no filter left and no request pending. */
  retire(consumer: Consumer, error?: MqttError): void {
    const call = this.calls.get(consumer)
    if (call?.joined.size !== 0 || !call.done) return
    // While the client ends, buffered messages are handed out or released unacknowledged.
    if (this.#host.states.stopping) return consumer.end(error)
    this.remove(consumer)
    consumer.end(error)
    if (!consumer.attended) consumer.discard(true)
  }

  /** Removes a consumer whose turn may still run. */
  remove(consumer: Consumer): void {
    this.calls.delete(consumer)
    const lingering = this.#lingering
    lingering.add(consumer)
    // Sweeps finished ones when the set has doubled, because each sweep walks all of it.
    if (lingering.size < this.#sweepAt) return
    for (const other of lingering) if (!other.busy && other.size === 0) lingering.delete(other)
    this.#sweepAt = leastSweep + lingering.size * 2
  }

  /**
   * The client is about to end: from now on, only messages of filters that are being left are
   * handed out.
   */
  close(): void {
    for (const { consumer, joined } of this.calls.values())
      consumer.close([...joined].some(({ state }) => state === 'leaving'))
    for (const consumer of this.#lingering) consumer.close(true)
  }

  /** Nothing that is buffered is handed out any more: readers end without an error. */
  letGo(): void {
    for (const consumer of this.#everyone) {
      consumer.close(false, true)
      consumer.end(undefined)
    }
  }

  /** The client has ended. */
  clear(): void {
    this.calls.clear()
    this.byFilter.clear()
  }
}
