/**
 * Subscribing: consumers over the broker's shared subscriptions, and the SUBSCRIBE packets that
 * they need.
 *
 * Packets are sent in the order of the calls; requests of one turn for the same filter are
 * combined. Every call settles: with its answer, its abort, or the end of the client.
 */

import { aborted, onAbort, rejected, silent } from '../../common/abort.js'
import { tally } from '../../common/counters.js'
import { errorOfAll, firstError, withOutcome } from '../../common/outcome.js'
import { SparseSet } from '../../common/sparse.js'
import { MqttError } from '../../errors.js'
import type { QoS, SubackPacket, SubscriptionRequest, UnsubackPacket } from '../../wire/packets.js'
import type { Consumer } from '../deliver/consumer.js'
import type { CheckedSubscribe } from '../options/check-calls.js'
import type { Grant, Subscription, UnsubscribeResult } from '../options/index.js'
import { refusedByEnding } from '../session/refusal.js'
import {
  type BrokerSubscription,
  SubscribeCall,
  type SubscribeFilter,
  withdraw,
} from './broker-subscription.js'
import { Membership } from './membership.js'
import type { SubscribeHost } from './ports.js'
import { assertShared, difference, grantOf, merged, wantRetained } from './sharing.js'
import {
  firstIdentifier,
  type PendingPacket,
  type PendingSubscribe,
  type PendingUnsubscribe,
  restoring,
} from './subscribe-packets.js'
import { type Answers, SubscribeSender } from './subscribe-sender.js'
import { answerUnsubscribe, depart, unsubscribe } from './unsubscribing.js'

/** The SUBSCRIBE that a call needs. */
type Asking = Pick<PendingSubscribe, 'identifier' | 'userProperties'> & {
  readonly filters: SubscribeFilter[]
}

/** Consumers and subscriptions of one client. */
export class Subscriptions implements Answers {
  readonly host: SubscribeHost
  readonly membership: Membership
  /** Undefined until the first request. */
  senderIfUsed: SubscribeSender | undefined
  /** The first Subscription Identifier. */
  readonly #firstIdentifier: number
  openUnsubscribes = 0
  /**
   * Called at the end of the client: handlers that still run although their subscription is over.
   */
  readonly unfinished = new SparseSet<() => void>()

  constructor(host: SubscribeHost) {
    this.host = host
    this.membership = new Membership(host)
    this.#firstIdentifier = firstIdentifier(host.platform.random())
  }

  get sender(): SubscribeSender {
    this.senderIfUsed ??= new SubscribeSender(this.host, this, this.#firstIdentifier)
    return this.senderIfUsed
  }

  get filters(): number {
    return this.membership.byFilter.size
  }

  get consumers(): Iterable<Consumer> {
    return this.membership.calls.keys()
  }

  /**
   * Adds a consumer: messages reach it at once; `ready` resolves when it is granted. @throws
   * MqttError ERR_SUBSCRIPTION_CONFLICT
   */
  subscribe(
    consumer: Consumer,
    asked: readonly SubscriptionRequest[],
    options: CheckedSubscribe,
  ): Promise<Subscription> {
    const { signal, requireQos, properties } = options
    const { subscriptionIdentifier: identifier, userProperties } = properties
    if (signal?.aborted) {
      const error = aborted(signal)
      consumer.end(error)
      return rejected(error)
    }
    for (const request of asked) {
      const known = this.membership.current(request.filter)
      if (known !== undefined && known.takers.size > 0) assertShared(known, request, identifier)
    }
    const requests = merged(asked)
    const call = new SubscribeCall(consumer, asked, requireQos, requests.length)
    const packet: Asking = { filters: [], userProperties, identifier }
    const asIs = requests.filter((request) => !this.#join(request, call, packet))
    this.membership.calls.set(consumer, call)
    if (consumer.config.lifetime === 'borrowed') this.host.router.borrowers.add(consumer)
    if (packet.filters.length > 0) this.sender.push({ type: 'subscribe', ...packet })
    this.host.router.handleJoined(consumer, call.joined)
    // These filters need no SUBSCRIBE: their grant is that of the existing subscription.
    for (const { filter } of asIs) {
      const subscription = this.membership.byFilter.get(filter)
      const pending = subscription?.requests.at(-1)
      if (pending !== undefined) pending.calls.set(call, false)
      else this.#grant(call, grantOf(filter, subscription?.grantedQos ?? 0))
    }
    const stop = onAbort(signal, () => this.#fail(call, aborted(signal, call.outcome)))
    const { promise } = call.ready
    promise.then(stop, stop)
    return promise
  }

  /**
   * Removes a consumer from its filters; the last one on a filter unsubscribes it. Resolves when
   * the broker has answered.
   */
  async leave(consumer: Consumer): Promise<void> {
    const answers: (Promise<UnsubscribeResult[]> | [])[] = []
    const last: string[] = []
    for (const subscription of this.membership.calls.get(consumer)?.joined ?? []) {
      if (subscription.state === 'leaving') answers.push(subscription.leaving ?? [])
      else if (subscription.takers.size > 1) this.membership.leave(consumer, subscription)
      else last.push(subscription.filter)
    }
    if (last.length > 0) answers.push(unsubscribe(this, last))
    const error = firstError((await Promise.all(answers)).flat())
    if (error !== undefined) throw error
  }

  /** A consumer is gone: filters that it alone read are unsubscribed or, after `detach`, kept. */
  drop(consumer: Consumer, how: 'unsubscribe' | 'detach'): void {
    const call = this.membership.calls.get(consumer)
    this.membership.remove(consumer)
    if (call?.done === false) call.settle(new MqttError('ERR_ABORTED'))
    const subscriptions = [...(call?.joined ?? [])]
    for (const subscription of subscriptions) {
      subscription.leave(consumer)
      subscription.kept ||= how === 'detach'
    }
    // A SUBSCRIBE that was not sent yet is dropped in both cases.
    const goes = ({ state }: BrokerSubscription): boolean =>
      how === 'detach' ? state === 'new' : state !== 'leaving'
    const empty = subscriptions.filter(
      (subscription) => subscription.takers.size === 0 && goes(subscription),
    )
    if (empty.length > 0) depart(this, empty)
  }

  /** A SUBACK or UNSUBACK came in. */
  handleAnswer({ packetId, reasonCodes }: SubackPacket | UnsubackPacket): void {
    const packet = this.sender.take(packetId)
    if (packet === undefined) return
    // Packet Identifier in use: some servers share one set of identifiers between both directions.
    const inUse = reasonCodes[0] === 0x91 && reasonCodes.every((code) => code === 0x91)
    if (inUse && this.#isLatest(packet) && this.sender.repeat(packet, packetId)) return
    this.sender.handleAnswered(packet)
    if (packet.type === 'unsubscribe') answerUnsubscribe(this, packet, reasonCodes)
    else
      for (const [index, asked] of packet.filters.entries())
        this.#handleGrant(asked, reasonCodes[index] as number)
    this.sender.flush()
  }

  // False when a later call has changed the state of these filters.
  #isLatest(packet: PendingPacket): boolean {
    if (packet.type === 'subscribe')
      return packet.filters.every(({ known }) => known.state !== 'leaving')
    return packet.filters.every((filter) => this.membership.current(filter) === undefined)
  }

  /**
   * The client is about to end. With `leaving`, shared filters are unsubscribed. From now on, only
   * messages of filters that are being left are handed out.
   */
  close(leaving: boolean): void {
    const shared = [...this.membership.byFilter.values()].filter(
      (subscription) =>
        subscription.grouped && subscription.takers.size > 0 && subscription.state !== 'leaving',
    )
    if (leaving && shared.length > 0)
      silent(
        unsubscribe(
          this,
          shared.map(({ filter }) => filter),
        ),
      )
    this.senderIfUsed?.close()
    this.membership.close()
  }

  handleRefusal(packet: PendingPacket, cause: MqttError): void {
    const [asked] = packet.filters
    if (asked === undefined) return
    if (typeof asked !== 'string') {
      const error = refusedByEnding('ERR_SUBSCRIBE_REFUSED', asked.filter, cause)
      return this.#handleGrant(asked, error.reasonCode as number, error)
    }
    const error = refusedByEnding('ERR_UNSUBSCRIBE_REFUSED', asked, cause)
    answerUnsubscribe(this, packet as PendingUnsubscribe, [error.reasonCode as number], error)
  }

  giveUp(asked: SubscribeFilter): void {
    const grant = grantOf(asked.filter, 0x80, new MqttError('ERR_ABORTED'))
    for (const call of withdraw([asked])) this.#grant(call, grant)
  }

  /**
   * An answer did not match its request, which ends the connection. The call fails, because
   * repeating it would end every connection.
   */
  handleMismatch(packetId: number, cause: MqttError): void {
    const packet = this.senderIfUsed?.takeMismatched(packetId)
    const error = withOutcome(cause, 'unknown')
    if (packet?.type === 'subscribe') this.refuse(packet.filters, error)
    else if (packet !== undefined) answerUnsubscribe(this, packet, [], error)
  }

  /**
   * A connection is up: subscriptions that the server has lost, or may not have, are restored
   * before anything else.
   */
  handleConnected(lost: boolean): void {
    const { resubscribe } = this.host.options
    const all = lost || resubscribe === 'always'
    const filters: SubscribeFilter[] = []
    this.senderIfUsed?.handleConnected()
    for (const subscription of this.membership.byFilter.values()) {
      const { state, unconfirmed, requests } = subscription
      if (state !== 'active' || !(all || unconfirmed)) continue
      // A waiting request restores it as well.
      if (requests.length === 0) filters.push(restoring(subscription, lost || unconfirmed))
      subscription.unconfirmed ||= lost
      if (lost) for (const { request } of requests) wantRetained(request, subscription)
    }
    if (filters.length > 0) this.sender.restore(filters)
  }

  /**
   * The client has ended: readers end with `error` (undefined: without one), pending calls reject
   * with `reason`.
   */
  end(error: MqttError | undefined, reason: MqttError): void {
    const calls = [...this.membership.calls.values()]
    this.senderIfUsed?.end(reason)
    for (const call of calls) if (!call.done) call.settle(withOutcome(reason, call.outcome))
    for (const { consumer } of calls) consumer.end(error)
    for (const end of [...this.unfinished]) end()
    this.membership.clear()
  }

  // True when a SUBSCRIBE is needed for this filter; false when the existing subscription is
  // sufficient.
  #join(request: SubscriptionRequest, call: SubscribeCall, packet: Asking): boolean {
    const { identifier, userProperties } = packet
    const subscription =
      this.membership.current(request.filter) ??
      this.membership.create(request, identifier, userProperties)
    call.joined.add(subscription)
    const first = subscription.state === 'new'
    const retainHandling = first || request.retainHandling === 0 ? request.retainHandling : 2
    // Only a subscription without readers can differ here: the next SUBSCRIBE replaces its options.
    const changed = difference(subscription, request, identifier) !== undefined
    if (changed)
      Object.assign(subscription, request, { identifier: identifier ?? subscription.identifier })
    subscription.join(call.consumer, request.qos)
    wantRetained(subscription, request)
    const more =
      first ||
      changed ||
      (!subscription.grouped && (request.retainHandling === 0 || request.qos > subscription.qos))
    if (!more) return false
    subscription.qos = Math.max(subscription.qos, request.qos) as QoS
    const queued = subscription.requests.at(-1)
    if (!changed && queued?.sent === false) {
      queued.calls.set(call, retainHandling !== 2)
      wantRetained(queued.request, { retainHandling })
    } else
      packet.filters.push(
        subscription.ask({ ...request, retainHandling }, new Map([[call, retainHandling !== 2]])),
      )
    return true
  }

  // Ends a subscription that cannot be restored, for all its readers.
  #dismiss(subscription: BrokerSubscription, error: MqttError): void {
    for (const call of withdraw([...subscription.requests])) this.#fail(call, error)
    // A resumed session may still have it: its messages go to no other reader until the server has
    // removed it.
    this.membership.leaveAll(subscription, error)
    if (this.host.session.negotiated?.sessionPresent) depart(this, [subscription])
    else this.membership.forget(subscription)
    this.host.events.emit('error', { error })
  }

  #handleGrant(asked: SubscribeFilter, reasonCode: number, refused?: MqttError): void {
    const { known: subscription } = asked
    const grant = grantOf(asked.filter, reasonCode, refused)
    const { error } = grant
    subscription.suspicion = undefined
    if (error !== undefined) tally(this.host, 'refusals')
    const calls = withdraw([asked])
    if (error === undefined) {
      subscription.grantedQos = grant.qos
      if (asked.request.retainHandling < 2) subscription.audience = asked.audience
      subscription.unconfirmed = false
      if (subscription.state === 'sent') subscription.state = 'active'
    }
    const { state, unconfirmed, requests } = subscription
    // The server does not have it: it never did, or has lost it.
    const gone =
      error !== undefined &&
      requests.length === 0 &&
      (state === 'sent' || (unconfirmed && state === 'active'))
    // Set first, so that messages already received are put back instead of going to other readers.
    if (gone) subscription.state = 'leaving'
    for (const call of calls) this.#grant(call, grant)
    if (gone && unconfirmed) this.#dismiss(subscription, error)
    else if (gone) this.membership.forget(subscription)
  }

  #grant(call: SubscribeCall, grant: Grant): void {
    if (call.done) return
    call.grants.set(grant.filter, grant)
    call.open -= 1
    const subscription = this.membership.byFilter.get(grant.filter)
    if (grant.error !== undefined && subscription !== undefined) {
      this.membership.leave(call.consumer, subscription)
      // Its other readers have left meanwhile.
      if (subscription.takers.size === 0 && subscription.state !== 'leaving' && !subscription.kept)
        depart(this, [subscription])
    }
    if (call.open === 0) this.#complete(call)
  }

  #complete(call: SubscribeCall): void {
    const { asked, consumer, grants } = call
    // In the order of the call; a filter that was named twice has one grant.
    const granted = asked.map(({ filter }) => grants.get(filter) as Grant)
    consumer.subscription.granted = Object.freeze(granted)
    const lowered =
      call.requireQos && asked.some(({ qos, filter }) => (grants.get(filter)?.qos ?? qos) < qos)
    const error =
      errorOfAll(granted) ??
      (lowered
        ? new MqttError('ERR_SUBSCRIBE_REFUSED', 'QoS lowered', {
            outcome: 'refused',
            fault: 'remote',
          })
        : undefined)
    if (error !== undefined) return this.#fail(call, error)
    consumer.handleGranted()
    call.settle(undefined)
    this.membership.retire(consumer)
  }

  // Ends the consumer of a refused call. Its buffered messages were never handed out, so they are
  // given back.
  #fail(call: SubscribeCall, error: MqttError): void {
    if (call.done) return
    const { consumer } = call
    call.settle(error)
    const unseen = consumer.discard(false)
    consumer.end(error)
    // A failed call does not remove what a persistent session subscribed to earlier.
    this.drop(consumer, this.host.options.cleanStart ? 'unsubscribe' : consumer.config.onExit)
    this.host.router.requeue(unseen)
  }

  refuse(asked: readonly SubscribeFilter[], error: MqttError, restoring?: boolean): void {
    if (restoring) {
      for (const { known } of asked) this.#dismiss(known, error)
      return
    }
    for (const call of withdraw(asked)) this.#fail(call, error)
    for (const { known: subscription, calls, sent } of asked) {
      const { requests, state, grantedQos, unconfirmed } = subscription
      // The request only restored a lost session: it is restored on the next connection.
      if (requests.length > 0 || calls.size === 0) continue
      if ((sent || state === 'new') && grantedQos === undefined)
        this.membership.forget(subscription)
      // The aborted SUBSCRIBE would have restored a filter that the server may not have.
      else if (unconfirmed && state === 'active') this.#dismiss(subscription, error)
    }
  }
}
