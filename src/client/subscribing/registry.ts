/**
 * Who subscribed to what: local subscriptions over shared broker subscriptions, and the SUBSCRIBE and UNSUBSCRIBE packets that follow from them.
 *
 * Packets leave in the order of the calls, those of one turn together where they concern one filter. It must never leave a call unsettled:
 * every claim ends with its answer, its abort, or the end of the client.
 */
import { MqttError } from '../../errors.js'
import { SUBACK, UNSUBACK } from '../../wire/constants.js'
import type { QoS, SubackPacket, SubscriptionRequest, UnsubackPacket, UserProperties } from '../../wire/packets.js'
import { TopicTrie } from '../../wire/trie.js'
import type { Subscription, UnsubscribeResult } from '../api.js'
import { aborted, deferred, onAbort, rejected } from '../common/abort.js'
import { withOutcome } from '../common/outcome.js'
import type { Consumer } from '../delivery/consumer.js'
import type { Host } from '../host.js'
import type { CheckedSubscribe } from '../parsing/requests.js'
import { nameOf, refusal } from '../session/refusal.js'
import { SparseMap, SparseSet } from '../session/sparse.js'
import { type Claim, FilterEntry, grantOf, grantsOf, type Joiner, merged, type SubscribeItem } from './filter-entry.js'
import { isWanted, restoringItem, type SubscribeJob, type UnsubscribeJob, withdraw } from './subscribe-jobs.js'
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
  readonly #host: Host
  readonly #sender: SubscribeSender

  constructor(host: Host) {
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

  /** True while a turn runs, also of a consumer that has left its filters. */
  get busy(): boolean {
    for (const consumer of this.#lingering) if (!consumer.busy) this.#lingering.delete(consumer)
    return this.#lingering.size > 0 || [...this.#consumers.keys()].some((consumer) => consumer.busy)
  }

  /** Adds a consumer: routed at once, granted when `ready` settles. @throws MqttError ERR_SUBSCRIPTION_CONFLICT */
  subscribe(consumer: Consumer, asked: readonly SubscriptionRequest[], call: CheckedSubscribe): Promise<Subscription> {
    const { subscriptionIdentifier } = call.properties
    if (call.signal?.aborted === true) {
      consumer.end(aborted(call.signal))
      return rejected(aborted(call.signal))
    }
    const requests = merged(asked)
    for (const request of requests) this.#current(request.filter)?.check(request, subscriptionIdentifier)
    const claim: Claim = {
      consumer,
      asked,
      requests,
      grants: [],
      requireQos: call.requireQos,
      ready: deferred(),
      remaining: requests.length,
      sent: false,
      done: false,
    }
    this.#claims.set(consumer, claim)
    const job: SubscribeJob = {
      kind: 'subscribe',
      items: [],
      groups: undefined,
      userProperties: call.properties.userProperties,
      identifier: subscriptionIdentifier,
    }
    const granted: Joiner[] = []
    const entries = new Set(requests.map((request, index) => this.#join(request, claim, index, job, granted)))
    this.#consumers.set(consumer, new Set(entries))
    if (consumer.config.lifetime === 'borrowed') this.#host.inbox.borrowers.add(consumer)
    if (job.items.length > 0) this.#sender.push(job)
    this.#host.inbox.handleJoined(consumer, entries)
    for (const joiner of granted) this.#grantAsIs(joiner)
    const stop = onAbort(call.signal, () => this.#fail(claim, aborted(call.signal, claim.sent ? 'unknown' : 'not-sent')))
    claim.ready.promise.then(stop, stop)
    return claim.ready.promise
  }

  /** Takes a consumer off its filters; the last one on a filter unsubscribes. Settles when the broker has answered. */
  async leave(consumer: Consumer): Promise<void> {
    const answers: (Promise<UnsubscribeResult[]> | undefined)[] = []
    const last: string[] = []
    for (const entry of this.#consumers.get(consumer) ?? []) {
      if (entry.state === 'leaving') answers.push(entry.leaving)
      else if (entry.members.size > 1) this.#remove(consumer, entry)
      else last.push(entry.filter)
    }
    if (last.length > 0) answers.push(this.unsubscribe(last, undefined, undefined))
    for (const results of await Promise.all(answers)) for (const result of results ?? []) if (result.error !== undefined) throw result.error
  }

  /** The consumer is gone: its filters stay (detach), or go where it was the last. */
  drop(consumer: Consumer, how: 'unsubscribe' | 'detach'): void {
    if (consumer.busy) this.#lingering.add(consumer)
    const early = new MqttError('ERR_ABORTED')
    const claim = this.#claims.get(consumer)
    if (claim !== undefined) this.#settle(claim, early)
    const entries = [...(this.#consumers.get(consumer) ?? [])]
    this.#consumers.delete(consumer)
    for (const entry of entries) {
      entry.leave(consumer)
      entry.kept ||= how === 'detach'
    }
    // What has not left is not sent any more, whatever becomes of the rest.
    const goes = ({ state }: FilterEntry): boolean => (how === 'detach' ? state === 'new' : state !== 'leaving')
    const empty = entries.filter((entry) => entry.members.size === 0 && goes(entry))
    if (empty.length > 0) {
      const filters = empty.map((entry) => entry.filter)
      this.unsubscribe(filters, undefined, undefined).catch(() => undefined)
    }
  }

  /** UNSUBSCRIBE for these filters, known here or not; local subscriptions on them end with the answer. */
  unsubscribe(filters: readonly string[], userProperties: UserProperties | undefined, signal: AbortSignal | undefined): Promise<UnsubscribeResult[]> {
    if (signal?.aborted === true) return Promise.reject(aborted(signal))
    // Also those that are leaving: that answer may be a refusal.
    const entries = filters.map((filter) => this.#entries.get(filter))
    const unsent = entries.every((entry) => entry?.state === 'new')
    for (const entry of entries) if (entry !== undefined) this.#withdraw(entry)
    const job: UnsubscribeJob = { kind: 'unsubscribe', filters, entries, userProperties, results: [], answer: deferred(), sent: 0, again: [] }
    for (const entry of entries) {
      if (entry === undefined) continue
      entry.leaving = job.answer.promise
      entry.farewells += 1
    }
    if (unsent)
      this.#answerUnsubscribe(
        job,
        filters.map(() => 0),
      )
    else this.#sender.push(job)
    const stop = onAbort(signal, () => job.answer.reject(aborted(signal, 'unknown')))
    job.answer.promise.then(stop, stop)
    return job.answer.promise
  }

  /** A SUBACK or UNSUBACK for a request of ours. */
  handleAnswer(packet: SubackPacket | UnsubackPacket): void {
    const sent = this.#sender.take(packet.packetId)
    if (sent === undefined) return
    if ('items' in sent) {
      sent.items.forEach((item, index) => {
        this.#handleGrant(item, packet.reasonCodes[index] as number)
      })
    } else {
      const codes = packet.reasonCodes.length > 0 ? packet.reasonCodes : new Array<number>(sent.part.count).fill(0)
      this.#answerUnsubscribe(sent.job, codes, sent.part.from)
    }
    this.flush()
  }

  /** Sends what waits. */
  flush(): void {
    this.#sender.flush()
  }

  /** The connection ends because of an answer that cannot be right: that call is over, or it would be so on every connection. */
  handleMismatch(packetId: number, cause: MqttError): void {
    const sent = this.#sender.take(packetId)
    const error = withOutcome(cause, 'unknown')
    if (sent === undefined) return
    if ('part' in sent) this.refuseUnsubscribe(sent.job, sent.part.from, error)
    else {
      const items = sent.job.restoring === true ? sent.items.filter((item) => item.joiners.length > 0) : sent.items
      if (items !== sent.items) withdraw(sent.items.filter((item) => item.joiners.length === 0))
      this.refuse(items, error)
    }
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
      for (const { request } of entry.requests)
        request.retainHandling = Math.min(request.retainHandling, lost ? entry.retainHandling : 2) as 0 | 1 | 2
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

  #join(request: SubscriptionRequest, claim: Claim, index: number, job: SubscribeJob, granted: Joiner[]): FilterEntry {
    const entry = this.#current(request.filter)
    if (entry === undefined) return this.#create(request, claim, index, job)
    const joiner = { claim, index, retained: request.retainHandling === 0 }
    entry.join(claim.consumer, Math.max(request.qos, entry.members.get(claim.consumer) ?? 0) as QoS)
    entry.retainHandling = Math.min(entry.retainHandling, request.retainHandling) as 0 | 1 | 2
    const first = entry.state === 'new'
    const more = first || (!entry.shared && (request.retainHandling === 0 || request.qos > entry.qos))
    const queued = entry.requests.find((item) => !item.sent)
    if (more && queued !== undefined) {
      queued.joiners.push({ claim, index, retained: first ? request.retainHandling !== 2 : request.retainHandling === 0 })
      const merged = queued.request
      merged.qos = Math.max(merged.qos, request.qos) as QoS
      const handling = first || request.retainHandling === 0 ? request.retainHandling : 2
      merged.retainHandling = Math.min(merged.retainHandling, handling) as 0 | 1 | 2
      entry.qos = merged.qos
    } else if (more) {
      entry.qos = Math.max(entry.qos, request.qos) as QoS
      const again: SubscriptionRequest = { ...request, qos: entry.qos, retainHandling: request.retainHandling === 0 ? 0 : 2 }
      const item: SubscribeItem = { entry, request: again, joiners: [joiner], sent: false }
      entry.requests.push(item)
      job.items.push(item)
    } else granted.push(joiner)
    return entry
  }

  // The broker's subscription is good enough: its grant is ours, as soon as there is one.
  #grantAsIs(joiner: Joiner): void {
    const { filter } = joiner.claim.requests[joiner.index] as SubscriptionRequest
    const entry = this.#entries.get(filter)
    const pending = entry?.requests.at(-1)
    if (pending !== undefined) pending.joiners.push({ ...joiner, retained: false })
    else this.#grant(joiner, entry?.grantedQos ?? 0, filter)
  }

  #create(request: SubscriptionRequest, claim: Claim, index: number, job: SubscribeJob): FilterEntry {
    const old = this.#entries.get(request.filter)
    if (old !== undefined) this.trie.remove(old.filter, old)
    const entry = new FilterEntry(request)
    entry.identifier = job.identifier ?? 0
    entry.userProperties = job.userProperties
    this.#entries.set(request.filter, entry)
    this.trie.add(request.filter, entry)
    entry.join(claim.consumer, request.qos)
    const item: SubscribeItem = { entry, request: { ...request }, joiners: [{ claim, index, retained: request.retainHandling !== 2 }], sent: false }
    entry.requests.push(item)
    job.items.push(item)
    return entry
  }

  /** A subscription that cannot be brought back is over, for all who read it. */
  dismiss({ entry }: SubscribeItem, error: MqttError): void {
    for (const { joiners } of entry.requests.splice(0)) for (const { claim } of joiners) this.#fail(claim, error)
    this.#host.events.emit('error', { error })
    this.#forget(entry, error)
  }

  #handleGrant(item: SubscribeItem, reasonCode: number): void {
    const { entry, joiners } = item
    const refused = reasonCode >= 0x80
    if (refused && this.#host.counters !== undefined) this.#host.counters.refusals += 1
    if (isWanted(item)) entry.requests.splice(entry.requests.indexOf(item), 1)
    if (!refused) {
      entry.grantedQos = reasonCode as QoS
      entry.unconfirmed = false
      if (entry.state === 'sent') entry.state = 'active'
    }
    // The server does not have it: it never did, or it has forgotten it.
    const gone = refused && entry.requests.length === 0 && (entry.state === 'sent' || (entry.unconfirmed && entry.state === 'active'))
    const forgotten = gone && entry.unconfirmed
    // What came in already goes back where it was, if it can.
    if (gone) entry.state = 'leaving'
    for (const joiner of joiners) this.#grant(joiner, reasonCode, entry.filter)
    if (forgotten) this.dismiss(item, refusal('ERR_SUBSCRIBE_REFUSED', reasonCode, undefined, SUBACK))
    else if (gone) this.#forget(entry)
  }

  #grant({ claim, index }: Joiner, reasonCode: number, filter: string): void {
    if (claim.done) return
    claim.grants[index] = grantOf(filter, reasonCode)
    claim.remaining -= 1
    if (reasonCode >= 0x80) {
      const entry = this.#entries.get(filter)
      if (entry !== undefined) this.#remove(claim.consumer, entry)
      // Whoever read it before has left it to this one.
      if (entry?.members.size === 0 && entry.state !== 'leaving' && !entry.kept)
        this.unsubscribe([filter], undefined, undefined).catch(() => undefined)
    }
    if (claim.remaining === 0) this.#complete(claim)
  }

  #complete(claim: Claim): void {
    claim.consumer.granted = Object.freeze(grantsOf(claim))
    const refused = claim.grants.every((grant) => grant.error !== undefined) ? claim.grants[0]?.error : undefined
    const lowered = claim.requireQos && claim.grants.some((grant, index) => grant.qos !== undefined && grant.qos < (claim.requests[index]?.qos ?? 0))
    if (refused !== undefined) this.#fail(claim, refused)
    else if (lowered)
      this.#fail(
        claim,
        new MqttError('ERR_SUBSCRIBE_REFUSED', 'the server granted a lower QoS than required', { outcome: 'refused', fault: 'remote' }),
      )
    else {
      claim.consumer.handleGranted()
      this.#settle(claim, undefined)
      this.#retire(claim.consumer)
    }
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
    this.#host.inbox.handleKept(unseen)
  }

  #settle(claim: Claim, error: unknown): void {
    if (claim.done) return
    claim.done = true
    this.#claims.delete(claim.consumer)
    if (error === undefined) claim.ready.resolve(claim.consumer)
    else claim.ready.reject(error)
  }

  refuse(items: readonly SubscribeItem[], error: unknown): void {
    const claims = new Set(items.flatMap((item) => item.joiners.map((joiner) => joiner.claim)))
    for (const item of items) item.entry.requests.splice(item.entry.requests.indexOf(item), 1)
    for (const claim of claims) this.#fail(claim, error as MqttError)
    for (const { entry, sent } of items)
      if ((sent || entry.state === 'new') && entry.grantedQos === undefined && entry.requests.length === 0) this.#forget(entry)
  }

  // A SUBSCRIBE that has not left is not needed any more.
  #withdraw(entry: FilterEntry): void {
    const unsent = entry.state === 'new'
    entry.state = 'leaving'
    if (!unsent) return
    for (const item of entry.requests.splice(0)) {
      for (const { claim } of item.joiners) this.#settle(claim, new MqttError('ERR_ABORTED'))
    }
    this.#sender.handleWithdrawn()
  }

  isSuperseded(job: UnsubscribeJob, index: number): boolean {
    const current = this.#entries.get(job.filters[index] as string)
    if (current === undefined || current === job.entries[index] || current.state !== 'active') return false
    this.#answerUnsubscribe(job, [0], index)
    return true
  }

  refuseUnsubscribe(job: UnsubscribeJob, from: number, error: unknown): void {
    for (const entry of job.entries.slice(from)) {
      if (entry === undefined) continue
      entry.farewells -= 1
      if (entry.farewells === 0) entry.state = 'active'
    }
    job.answer.reject(error)
  }

  #answerUnsubscribe(job: UnsubscribeJob, codes: readonly number[], from = 0): void {
    codes.forEach((code, index) => {
      const filter = job.filters[from + index] as string
      const entry = job.entries[from + index]
      const error = code < 0x80 ? undefined : refusal('ERR_UNSUBSCRIBE_REFUSED', code, undefined, UNSUBACK)
      job.results[from + index] = Object.freeze({ filter, reasonCode: code, reasonName: nameOf(code, UNSUBACK), error })
      if (entry === undefined) return
      entry.farewells -= 1
      // Refused or not, a subscription that was made anew meanwhile has taken its place.
      if (error === undefined || this.#entries.get(filter) !== entry) this.#forget(entry)
      // With nobody left here to read it, it stays as good as gone: what comes is acknowledged and dropped.
      else if (entry.members.size > 0) entry.state = entry.farewells > 0 ? 'leaving' : 'active'
      else this.#host.inbox.handleForgotten(entry)
    })
    if (Object.keys(job.results).length === job.filters.length) job.answer.resolve(job.results)
  }

  // The broker does not have this subscription any more: what waited for a reader is let go, and readers without another filter end.
  #forget(entry: FilterEntry, error?: MqttError): void {
    entry.state = 'leaving'
    this.trie.remove(entry.filter, entry)
    if (this.#entries.get(entry.filter) === entry) this.#entries.delete(entry.filter)
    this.#host.inbox.handleForgotten(entry)
    for (const consumer of [...entry.members.keys()]) this.#remove(consumer, entry, error)
  }

  #remove(consumer: Consumer, entry: FilterEntry, error?: MqttError): void {
    entry.leave(consumer)
    this.#consumers.get(consumer)?.delete(entry)
    this.#retire(consumer, error)
  }

  // Without a filter, and without the prospect of one, it ends.
  #retire(consumer: Consumer, error?: MqttError): void {
    if (this.#consumers.get(consumer)?.size !== 0 || this.#waits(consumer)) return
    this.#consumers.delete(consumer)
    consumer.end(error)
    if (!consumer.attended) consumer.discard(true)
    if (consumer.busy) this.#lingering.add(consumer)
  }

  #waits(consumer: Consumer): boolean {
    if (this.#claims.has(consumer)) return true
    return false
  }
}
