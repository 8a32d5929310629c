/**
 * Who subscribed to what: local subscriptions over shared broker subscriptions, and the SUBSCRIBE and UNSUBSCRIBE packets that follow from them.
 *
 * Packets leave in the order of the calls, those of one turn together where they concern one filter. It must never leave a call unsettled:
 * every claim ends with its answer, its abort, or the end of the client.
 */

import { MqttError } from '../../errors.js'
import { UNSUBACK } from '../../wire/constants.js'
import type { QoS, SubackPacket, SubscriptionRequest, UnsubackPacket, UserProperties } from '../../wire/packets.js'
import { TopicTrie } from '../../wire/trie.js'
import type { Grant, Subscription, UnsubscribeResult } from '../api/index.js'
import { aborted, assertNotAborted, deferred, onAbort, rejected, silent, within } from '../common/abort.js'
import { tally } from '../common/counters.js'
import { errorOfAll, firstError, withOutcome } from '../common/outcome.js'
import { SparseMap, SparseSet } from '../common/sparse.js'
import type { Consumer } from '../delivery/consumer.js'
import type { CheckedSubscribe } from '../parsing/requests.js'
import { nameOf, refusal } from '../session/refusal.js'
import { leastSweep } from './bounds.js'
import { type Claim, FilterEntry, grantOf, merged, type SubscribeItem } from './filter-entry.js'
import type { SubscribingHost } from './ports.js'
import {
  isSubscribe,
  restoringItem,
  type SentPacket,
  type SubscribeJob,
  type UnsubscribeItem,
  type UnsubscribeJob,
  withdraw,
} from './subscribe-jobs.js'
import { type Refusals, SubscribeSender } from './subscribe-sender.js'

/** Local and broker subscriptions of one client. */
export class Registry implements Refusals {
  readonly trie = new TopicTrie<FilterEntry>()
  readonly #entries = new SparseMap<string, FilterEntry>()
  /** To be told of the end of the client: handlers run on whose subscription is over. */
  readonly unfinished = new SparseSet<() => void>()
  readonly #consumers = new SparseMap<Consumer, Set<FilterEntry>>()
  readonly #claims = new SparseMap<Consumer, Claim>()
  /** Consumers that are gone from their filters while a turn of theirs runs. */
  readonly #lingering = new SparseSet<Consumer>()
  #sweepAt = leastSweep
  /** UNSUBSCRIBE calls without an answer. */
  farewells = 0
  readonly #host: SubscribingHost
  readonly #sender: SubscribeSender

  constructor(host: SubscribingHost) {
    this.#host = host
    this.#sender = new SubscribeSender(host, this)
  }

  /** How many filters there are. */
  get filters(): number {
    return this.#entries.size
  }

  get entries(): Iterable<FilterEntry> {
    return this.#entries.values()
  }

  get consumers(): Iterable<Consumer> {
    return this.#consumers.keys()
  }

  /** Consumers of which a turn runs, also those that have left their filters. */
  get running(): Consumer[] {
    return this.#everyone.filter(({ busy }) => busy)
  }

  get #everyone(): Consumer[] {
    return [...this.#lingering, ...this.#consumers.keys()]
  }

  /** Adds a consumer: routed at once, granted when `ready` settles. @throws MqttError ERR_SUBSCRIPTION_CONFLICT */
  subscribe(consumer: Consumer, asked: readonly SubscriptionRequest[], call: CheckedSubscribe): Promise<Subscription> {
    const { subscriptionIdentifier, userProperties } = call.properties
    if (call.signal?.aborted) {
      const error = aborted(call.signal)
      consumer.end(error)
      return rejected(error)
    }
    const requests = merged(asked)
    for (const request of requests) this.#current(request.filter)?.check(request, subscriptionIdentifier)
    const claim: Claim = {
      consumer,
      asked,
      grants: new Map(),
      requireQos: call.requireQos,
      ready: deferred(),
      open: requests.length,
      sent: false,
      done: false,
    }
    this.#claims.set(consumer, claim)
    const job: SubscribeJob = { kind: 'subscribe', items: [], userProperties, identifier: subscriptionIdentifier }
    const granted: string[] = []
    const entries = new Set(requests.map((request) => this.#join(request, claim, job, granted)))
    this.#consumers.set(consumer, entries)
    if (consumer.config.lifetime === 'borrowed') this.#host.router.borrowers.add(consumer)
    if (job.items.length > 0) this.#sender.push(job)
    this.#host.router.handleJoined(consumer, entries)
    for (const filter of granted) this.#grantAsIs(claim, filter)
    const stop = onAbort(call.signal, () => this.#fail(claim, aborted(call.signal, claim.sent ? 'unknown' : 'not-sent')))
    claim.ready.promise.then(stop, stop)
    return claim.ready.promise
  }

  /** Takes a consumer off its filters; the last one on a filter unsubscribes. Settles when the broker has answered. */
  async leave(consumer: Consumer): Promise<void> {
    const answers: (Promise<UnsubscribeResult[]> | [])[] = []
    const last: string[] = []
    for (const entry of this.#consumers.get(consumer) ?? []) {
      if (entry.state === 'leaving') answers.push(entry.leaving ?? [])
      else if (entry.members.size > 1) this.#remove(consumer, entry)
      else last.push(entry.filter)
    }
    if (last.length > 0) answers.push(this.unsubscribe(last))
    const error = firstError((await Promise.all(answers)).flat())
    if (error !== undefined) throw error
  }

  /** The consumer is gone: its filters stay (detach), or go where it was the last. */
  drop(consumer: Consumer, how: 'unsubscribe' | 'detach'): void {
    this.#linger(consumer)
    const claim = this.#claims.get(consumer)
    if (claim !== undefined) this.#settle(claim, new MqttError('ERR_ABORTED'))
    const entries = [...(this.#consumers.get(consumer) ?? [])]
    this.#consumers.delete(consumer)
    for (const entry of entries) {
      entry.leave(consumer)
      entry.kept ||= how === 'detach'
    }
    // What has not left is not sent any more, whatever becomes of the rest.
    const goes = ({ state }: FilterEntry): boolean => (how === 'detach' ? state === 'new' : state !== 'leaving')
    const empty = entries.filter((entry) => entry.members.size === 0 && goes(entry))
    if (empty.length > 0) this.#depart(empty)
  }

  /** UNSUBSCRIBE for these filters, known here or not; local subscriptions on them end with the answer. */
  unsubscribe(filters: readonly string[], userProperties?: UserProperties, signal?: AbortSignal): Promise<UnsubscribeResult[]> {
    assertNotAborted(signal)
    // Also those that are leaving: that answer may be a refusal.
    const items = filters.map((filter, index) => ({ filter, index, entry: this.#entries.get(filter), wanted: true as const }))
    const unsent = items.every(({ entry }) => entry?.state === 'new')
    const job: UnsubscribeJob = { kind: 'unsubscribe', items, userProperties, results: [], answer: deferred(), open: items.length, sent: false }
    const { promise } = job.answer
    for (const { entry } of items) {
      if (entry === undefined) continue
      this.#withdraw(entry)
      entry.leaving = promise
      entry.farewells += 1
    }
    if (unsent) this.answerUnsubscribe(job, items, [])
    else this.#sender.push(job)
    const done = (): void => {
      this.farewells -= 1
      this.#host.handleTurnEnd()
    }
    this.farewells += 1
    promise.then(done, done)
    // Others may wait for the same answer: an abort is only about who asked.
    return within(promise, signal, 'unknown')
  }

  // Nobody waits for this answer: of a failure the application is told.
  #depart(entries: readonly FilterEntry[]): void {
    const filters = entries.map(({ filter }) => filter)
    this.unsubscribe(filters).then(
      (results) => {
        const error = firstError(results)
        if (error !== undefined) this.#host.events.emit('error', { error })
      },
      () => undefined,
    )
  }

  /** A SUBACK or UNSUBACK for a request of ours. */
  handleAnswer(packet: SubackPacket | UnsubackPacket): void {
    const { packetId, reasonCodes } = packet
    const sent = this.#sender.take(packetId)
    if (sent === undefined) return
    // Packet Identifier in use: some servers have one set of them for both directions.
    if (reasonCodes[0] === 0x91 && reasonCodes.every((code) => code === 0x91) && this.#isLatest(sent) && this.#sender.repeat(sent, packetId)) return
    if (isSubscribe(sent)) for (const [index, item] of sent.items.entries()) this.#handleGrant(item, reasonCodes[index] as number)
    else this.answerUnsubscribe(sent.job, sent.items, reasonCodes)
    this.#sender.flush()
  }

  // False when a later call has changed what this packet was about.
  #isLatest(sent: SentPacket): boolean {
    if (isSubscribe(sent)) return sent.items.every(({ entry }) => entry.state !== 'leaving')
    return sent.items.every(({ filter }) => this.#current(filter) === undefined)
  }

  /** Sends what waits. */
  get sender(): SubscribeSender {
    return this.#sender
  }

  /** The client is about to end: shared filters are left when `leaving`. What came of filters that are left is handed out still, nothing else. */
  close(leaving: boolean): void {
    const shared = [...this.#entries.values()].filter((entry) => entry.shared && entry.members.size > 0 && entry.state !== 'leaving')
    const filters = shared.map((entry) => entry.filter)
    if (leaving && filters.length > 0) silent(this.unsubscribe(filters))
    for (const [consumer, entries] of [...this.#consumers.entries()]) consumer.close([...entries].some((entry) => entry.state === 'leaving'))
    for (const consumer of this.#lingering) consumer.close(true)
  }

  /** Nothing that is buffered is handed out any more: readers end in order. */
  letGo(): void {
    for (const consumer of this.#everyone) {
      consumer.close(false, true)
      consumer.end(undefined)
    }
  }

  /** No connection will come: calls that wait for one reject. */
  abandon(reason: MqttError): void {
    this.#sender.end(reason)
  }

  /** The connection ends because of an answer that cannot be right: that call is over, or it would be so on every connection. */
  handleMismatch(packetId: number, cause: MqttError): void {
    const sent = this.#sender.take(packetId)
    const error = withOutcome(cause, 'unknown')
    if (sent === undefined) return
    if (isSubscribe(sent)) this.refuse(sent.items, error)
    else this.answerUnsubscribe(sent.job, sent.items, [], error)
  }

  /** The connection is over. */
  handleLost(): void {
    this.#sender.handleLost()
  }

  /** A connection is up: subscriptions that the server does not have, or may not have, are made again before anything else. */
  handleConnected(lost: boolean): void {
    const { resubscribe } = this.#host.options
    const all = lost || resubscribe === 'always'
    const items: SubscribeItem[] = []
    for (const entry of this.#entries.values()) {
      if (entry.state !== 'active' || !(all || entry.unconfirmed)) continue
      // What has a request of its own waiting needs no other.
      if (entry.requests.length === 0) items.push(restoringItem(entry, lost || entry.unconfirmed))
      entry.unconfirmed ||= lost
      if (lost) for (const { request } of entry.requests) request.retainHandling = Math.min(request.retainHandling, entry.retainHandling) as 0 | 1 | 2
    }
    if (items.length > 0) this.#sender.restore(items)
  }

  /** The client is over: readers end with `error` (undefined: in order), calls that wait reject with `reason`. */
  end(error: MqttError | undefined, reason: MqttError): void {
    this.#sender.end(reason)
    for (const claim of [...this.#claims.values()]) this.#settle(claim, withOutcome(reason, claim.sent ? 'unknown' : 'not-sent'))
    for (const consumer of [...this.#consumers.keys()]) consumer.end(error)
    for (const tell of [...this.unfinished]) tell()
    this.#consumers.clear()
    this.#entries.clear()
  }

  // The entry that a new subscription on this filter shares; one that is being unsubscribed is not shared any more.
  #current(filter: string): FilterEntry | undefined {
    const entry = this.#entries.get(filter)
    return entry?.state === 'leaving' ? undefined : entry
  }

  #join(request: SubscriptionRequest, claim: Claim, job: SubscribeJob, granted: string[]): FilterEntry {
    const entry = this.#current(request.filter) ?? this.#create(request, job)
    const first = entry.state === 'new'
    const retainHandling = first || request.retainHandling === 0 ? request.retainHandling : 2
    const joiner = { claim, retained: retainHandling !== 2 }
    // Where nobody reads it, the next SUBSCRIBE may replace its options.
    const changed = !entry.fits(request, job.identifier)
    if (changed) Object.assign(entry, request, { identifier: job.identifier ?? entry.identifier })
    entry.join(claim.consumer, request.qos)
    entry.retainHandling = Math.min(entry.retainHandling, request.retainHandling) as 0 | 1 | 2
    const more = first || changed || (!entry.shared && (request.retainHandling === 0 || request.qos > entry.qos))
    if (!more) {
      granted.push(entry.filter)
      return entry
    }
    entry.qos = Math.max(entry.qos, request.qos) as QoS
    const queued = entry.requests.at(-1)
    if (!changed && queued?.sent === false) {
      queued.joiners.push(joiner)
      queued.request.retainHandling = Math.min(queued.request.retainHandling, retainHandling) as 0 | 1 | 2
    } else job.items.push(entry.ask({ ...request, retainHandling }, [joiner]))
    return entry
  }

  // The broker's subscription is good enough: its grant is ours, as soon as there is one.
  #grantAsIs(claim: Claim, filter: string): void {
    const entry = this.#entries.get(filter)
    const pending = entry?.requests.at(-1)
    if (pending !== undefined) pending.joiners.push({ claim, retained: false })
    else this.#grant(claim, grantOf(filter, entry?.grantedQos ?? 0))
  }

  #create(request: SubscriptionRequest, job: SubscribeJob): FilterEntry {
    const { filter } = request
    const old = this.#entries.get(filter)
    if (old !== undefined) {
      this.trie.remove(filter, old)
      this.#host.router.handleLeft(old)
    }
    const entry = new FilterEntry(request)
    entry.identifier = job.identifier ?? 0
    entry.userProperties = job.userProperties
    this.#entries.set(filter, entry)
    this.trie.add(filter, entry)
    return entry
  }

  /** A subscription that cannot be brought back is over, for all who read it. */
  dismiss({ entry }: SubscribeItem, error: MqttError): void {
    for (const { joiners } of withdraw([...entry.requests])) for (const { claim } of joiners) this.#fail(claim, error)
    // A session that goes on may have it all the same: until the server has given it up, its messages are for nobody else.
    for (const consumer of [...entry.members.keys()]) this.#remove(consumer, entry, error)
    if (this.#host.session.negotiated?.sessionPresent) this.#depart([entry])
    else this.#forget(entry)
    this.#host.events.emit('error', { error })
  }

  #handleGrant(item: SubscribeItem, reasonCode: number): void {
    const { entry, joiners } = item
    const grant = grantOf(entry.filter, reasonCode)
    const { error } = grant
    if (error !== undefined) tally(this.#host, 'refusals')
    withdraw([item])
    if (error === undefined) {
      entry.grantedQos = grant.qos
      if (item.request.retainHandling < 2) entry.audience = item.audience
      entry.unconfirmed = false
      if (entry.state === 'sent') entry.state = 'active'
    }
    // The server does not have it: it never did, or it has forgotten it.
    const gone = error !== undefined && entry.requests.length === 0 && (entry.state === 'sent' || (entry.unconfirmed && entry.state === 'active'))
    // What came in already goes back where it was, if it can.
    if (gone) entry.state = 'leaving'
    for (const { claim } of joiners) this.#grant(claim, grant)
    if (gone && entry.unconfirmed) this.dismiss(item, error)
    else if (gone) this.#forget(entry)
  }

  #grant(claim: Claim, grant: Grant): void {
    if (claim.done) return
    claim.grants.set(grant.filter, grant)
    claim.open -= 1
    if (grant.error !== undefined) {
      const entry = this.#entries.get(grant.filter)
      if (entry !== undefined) this.#remove(claim.consumer, entry)
      // Whoever read it before has left it to this one.
      if (entry?.members.size === 0 && entry.state !== 'leaving' && !entry.kept) this.#depart([entry])
    }
    if (claim.open === 0) this.#complete(claim)
  }

  #complete(claim: Claim): void {
    const { asked, consumer, grants } = claim
    // In the order asked: a filter that was named twice has one.
    const granted = asked.map(({ filter }) => grants.get(filter) as Grant)
    consumer.subscription.granted = Object.freeze(granted)
    const lowered = claim.requireQos && asked.some(({ qos, filter }) => (grants.get(filter)?.qos ?? qos) < qos)
    const error =
      errorOfAll(granted) ?? (lowered ? new MqttError('ERR_SUBSCRIBE_REFUSED', 'QoS lowered', { outcome: 'refused', fault: 'remote' }) : undefined)
    if (error !== undefined) return this.#fail(claim, error)
    consumer.handleGranted()
    this.#settle(claim, undefined)
    this.#retire(consumer)
  }

  // A subscription that does not come about ends for its reader too. What waited for it was seen by nobody: it is given back.
  #fail(claim: Claim, error: MqttError): void {
    if (claim.done) return
    const { consumer } = claim
    this.#settle(claim, error)
    const unseen = consumer.discard(false)
    consumer.end(error)
    // What a durable session subscribed to earlier is not taken away by a call that failed.
    this.drop(consumer, this.#host.options.cleanStart ? 'unsubscribe' : consumer.config.onExit)
    this.#host.router.requeue(unseen)
  }

  #settle(claim: Claim, error: unknown): void {
    if (claim.done) return
    claim.done = true
    this.#claims.delete(claim.consumer)
    if (error === undefined) claim.ready.resolve(claim.consumer.subscription)
    else claim.ready.reject(error)
  }

  refuse(items: readonly SubscribeItem[], error: unknown): void {
    const claims = new Set(items.flatMap((item) => item.joiners.map((joiner) => joiner.claim)))
    withdraw(items)
    for (const claim of claims) this.#fail(claim, error as MqttError)
    for (const item of items) {
      const { entry, joiners, sent } = item
      // What nobody asked for, but for a session that was lost, is brought back on the next connection.
      if (entry.requests.length > 0 || joiners.length === 0) continue
      if ((sent || entry.state === 'new') && entry.grantedQos === undefined) this.#forget(entry)
      // It would have brought back what the server may not have.
      else if (entry.unconfirmed && entry.state === 'active') this.dismiss(item, error as MqttError)
    }
  }

  // A SUBSCRIBE that has not left is not needed any more.
  #withdraw(entry: FilterEntry): void {
    const { state } = entry
    entry.state = 'leaving'
    if (state !== 'new') return
    // Whoever asked for more filters than this one has none of them.
    for (const { joiners } of withdraw([...entry.requests])) for (const { claim } of joiners) this.#settle(claim, new MqttError('ERR_ABORTED'))
    for (const consumer of [...entry.members.keys()]) consumer.leave()
  }

  isSuperseded(job: UnsubscribeJob, item: UnsubscribeItem): boolean {
    const current = this.#entries.get(item.filter)
    if (current === undefined || current === item.entry || current.state !== 'active') return false
    this.answerUnsubscribe(job, [item], [])
    return true
  }

  answerUnsubscribe(job: UnsubscribeJob, items: readonly UnsubscribeItem[], codes: readonly number[], failure?: MqttError): void {
    for (const [at, { filter, entry, index }] of items.entries()) {
      const code = failure === undefined ? (codes[at] ?? 0) : 0x80
      const error = failure ?? (code < 0x80 ? undefined : refusal('ERR_UNSUBSCRIBE_REFUSED', code, undefined, UNSUBACK))
      job.results[index] = Object.freeze({ filter, reasonCode: code, reasonName: nameOf(code, UNSUBACK), error })
      if (entry === undefined) continue
      entry.farewells -= 1
      // Servers send what they had for it behind UNSUBACK: a member that leaves its group hands that out too.
      if (this.#host.states.stopping && entry.shared && entry.members.size > 0) continue
      // Refused or not, a subscription that was made anew meanwhile has taken its place.
      if (error === undefined || this.#entries.get(filter) !== entry) this.#forget(entry)
      // With nobody left here to read it, it stays as good as gone: what comes is acknowledged and dropped.
      else if (entry.members.size > 0) entry.state = entry.farewells > 0 ? 'leaving' : 'active'
      else this.#host.router.handleForgotten(entry)
    }
    job.open -= items.length
    if (job.open === 0) job.answer.resolve(job.results)
  }

  // The broker does not have this subscription any more: what waited for a reader is let go, and readers without another filter end.
  #forget(entry: FilterEntry): void {
    entry.state = 'leaving'
    this.trie.remove(entry.filter, entry)
    if (this.#entries.get(entry.filter) === entry) this.#entries.delete(entry.filter)
    this.#host.router.handleForgotten(entry)
    for (const consumer of [...entry.members.keys()]) this.#remove(consumer, entry)
  }

  #remove(consumer: Consumer, entry: FilterEntry, error?: MqttError): void {
    entry.leave(consumer)
    this.#consumers.get(consumer)?.delete(entry)
    this.#retire(consumer, error)
  }

  // Without a filter, and without the prospect of one, it ends.
  #retire(consumer: Consumer, error?: MqttError): void {
    if (this.#consumers.get(consumer)?.size !== 0 || this.#claims.has(consumer)) return
    // What it has when the client ends is handed out, or let go unacknowledged.
    if (this.#host.states.stopping) return consumer.end(error)
    this.#consumers.delete(consumer)
    consumer.end(error)
    if (!consumer.attended) consumer.discard(true)
    this.#linger(consumer)
  }

  // Those that are done are forgotten; not at each one, or many would cost a walk each.
  #linger(consumer: Consumer): void {
    const lingering = this.#lingering
    lingering.add(consumer)
    if (lingering.size < this.#sweepAt) return
    for (const other of lingering) if (!other.busy && other.size === 0) lingering.delete(other)
    this.#sweepAt = leastSweep + lingering.size * 2
  }
}
