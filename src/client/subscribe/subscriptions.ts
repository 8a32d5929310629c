/**
 * Subscribing: consumers over shared subscriptions of the broker, and the SUBSCRIBE packets that follow from them.
 *
 * Packets leave in the order of the calls, those of one turn together where they concern one filter. It must never leave a call unsettled:
 * every one ends with its answer, its abort, or the end of the client.
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
import {
  firstIdentifier,
  type PendingPacket,
  type PendingSubscribe,
  type PendingUnsubscribe,
  restoring,
} from './pending-packets.js'
import type { SubscribeHost } from './ports.js'
import { assertShared, difference, grantOf, merged, wantRetained } from './sharing.js'
import { type Answers, SubscribeSender } from './subscribe-sender.js'
import { answerUnsubscribe, depart, unsubscribe } from './unsubscribing.js'

/** The SUBSCRIBE that a call comes to. */
type Asking = Pick<PendingSubscribe, 'identifier' | 'userProperties'> & {
  readonly filters: SubscribeFilter[]
}

/** Consumers and subscriptions of one client. */
export class Subscriptions implements Answers {
  readonly host: SubscribeHost
  readonly membership: Membership
  /** Undefined before the first request. */
  senderIfUsed: SubscribeSender | undefined
  /** Where Subscription Identifiers begin. */
  readonly #firstIdentifier: number
  openUnsubscribes = 0
  /** They hear of the end of the client: their handlers still run although the subscription is over. */
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

  /** Adds a consumer: routed at once, granted when `ready` settles. @throws MqttError ERR_SUBSCRIPTION_CONFLICT */
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
    // Its grant is ours, as soon as there is one.
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

  /** Takes a consumer off its filters; the last one on a filter unsubscribes. Settles when the broker has answered. */
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

  /** The consumer is gone: its filters stay (detach), or go where it was the last. */
  drop(consumer: Consumer, how: 'unsubscribe' | 'detach'): void {
    const call = this.membership.calls.get(consumer)
    this.membership.remove(consumer)
    if (call?.done === false) call.settle(new MqttError('ERR_ABORTED'))
    const subscriptions = [...(call?.joined ?? [])]
    for (const subscription of subscriptions) {
      subscription.leave(consumer)
      subscription.kept ||= how === 'detach'
    }
    // What has not left is not sent any more, whatever becomes of the rest.
    const goes = ({ state }: BrokerSubscription): boolean =>
      how === 'detach' ? state === 'new' : state !== 'leaving'
    const empty = subscriptions.filter(
      (subscription) => subscription.takers.size === 0 && goes(subscription),
    )
    if (empty.length > 0) depart(this, empty)
  }

  /** A SUBACK or UNSUBACK for a request of ours. */
  handleAnswer({ packetId, reasonCodes }: SubackPacket | UnsubackPacket): void {
    const packet = this.sender.take(packetId)
    if (packet === undefined) return
    // Packet Identifier in use: some servers have one set of them for both directions.
    const inUse = reasonCodes[0] === 0x91 && reasonCodes.every((code) => code === 0x91)
    if (inUse && this.#isLatest(packet) && this.sender.repeat(packet, packetId)) return
    this.sender.handleAnswered(packet)
    if (packet.type === 'unsubscribe') answerUnsubscribe(this, packet, reasonCodes)
    else
      for (const [index, asked] of packet.filters.entries())
        this.#handleGrant(asked, reasonCodes[index] as number)
    this.sender.flush()
  }

  // False when a later call has changed what this packet was about.
  #isLatest(packet: PendingPacket): boolean {
    if (packet.type === 'subscribe')
      return packet.filters.every(({ known }) => known.state !== 'leaving')
    return packet.filters.every((filter) => this.membership.current(filter) === undefined)
  }

  /** The client is about to end: shared filters are left when `leaving`. What came of filters that are left is handed out still, nothing else. */
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

  /** The connection ends because of an answer that cannot be right: that call is over, or it would be so on every connection. */
  handleMismatch(packetId: number, cause: MqttError): void {
    const packet = this.senderIfUsed?.takeMismatched(packetId)
    const error = withOutcome(cause, 'unknown')
    if (packet?.type === 'subscribe') this.refuse(packet.filters, error)
    else if (packet !== undefined) answerUnsubscribe(this, packet, [], error)
  }

  /** A connection is up: subscriptions that the server does not have, or may not have, are made again before anything else. */
  handleConnected(lost: boolean): void {
    const { resubscribe } = this.host.options
    const all = lost || resubscribe === 'always'
    const filters: SubscribeFilter[] = []
    this.senderIfUsed?.handleConnected()
    for (const subscription of this.membership.byFilter.values()) {
      const { state, unconfirmed, requests } = subscription
      if (state !== 'active' || !(all || unconfirmed)) continue
      // What has a request of its own waiting needs no other.
      if (requests.length === 0) filters.push(restoring(subscription, lost || unconfirmed))
      subscription.unconfirmed ||= lost
      if (lost) for (const { request } of requests) wantRetained(request, subscription)
    }
    if (filters.length > 0) this.sender.restore(filters)
  }

  /** The client is over: readers end with `error` (undefined: in order), calls that wait reject with `reason`. */
  end(error: MqttError | undefined, reason: MqttError): void {
    const calls = [...this.membership.calls.values()]
    this.senderIfUsed?.end(reason)
    for (const call of calls) if (!call.done) call.settle(withOutcome(reason, call.outcome))
    for (const { consumer } of calls) consumer.end(error)
    for (const end of [...this.unfinished]) end()
    this.membership.clear()
  }

  // True when a SUBSCRIBE is needed for it; where it is not, the broker's subscription is good enough.
  #join(request: SubscriptionRequest, call: SubscribeCall, packet: Asking): boolean {
    const { identifier, userProperties } = packet
    const subscription =
      this.membership.current(request.filter) ??
      this.membership.create(request, identifier, userProperties)
    call.joined.add(subscription)
    const first = subscription.state === 'new'
    const retainHandling = first || request.retainHandling === 0 ? request.retainHandling : 2
    // Without a reader the next SUBSCRIBE may replace its options.
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

  // A subscription that cannot be brought back is over, for all who read it.
  #dismiss(subscription: BrokerSubscription, error: MqttError): void {
    for (const call of withdraw([...subscription.requests])) this.#fail(call, error)
    // A resumed session may still hold it: until the server has removed it, its messages go to no other reader.
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
    // The server does not have it: it never did, or it has forgotten it.
    const gone =
      error !== undefined &&
      requests.length === 0 &&
      (state === 'sent' || (unconfirmed && state === 'active'))
    // What came in already goes back where it was, if it can.
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
      // The reader before has left it to this one.
      if (subscription.takers.size === 0 && subscription.state !== 'leaving' && !subscription.kept)
        depart(this, [subscription])
    }
    if (call.open === 0) this.#complete(call)
  }

  #complete(call: SubscribeCall): void {
    const { asked, consumer, grants } = call
    // In the order asked: a filter that was named twice has one.
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

  // A subscription that is refused ends for its reader too. Its waiting messages were never handed out: they are given back.
  #fail(call: SubscribeCall, error: MqttError): void {
    if (call.done) return
    const { consumer } = call
    call.settle(error)
    const unseen = consumer.discard(false)
    consumer.end(error)
    // What a durable session subscribed to earlier is not taken away by a call that failed.
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
      // What only a lost session requires is restored on the next connection.
      if (requests.length > 0 || calls.size === 0) continue
      if ((sent || state === 'new') && grantedQos === undefined)
        this.membership.forget(subscription)
      // It would have brought back what the server may not have.
      else if (unconfirmed && state === 'active') this.#dismiss(subscription, error)
    }
  }
}
