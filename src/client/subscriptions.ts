/**
 * Who subscribed to what: local subscriptions over shared broker subscriptions, and the SUBSCRIBE and UNSUBSCRIBE packets that follow from them.
 *
 * Packets leave in the order of the calls, those of one turn together where they concern one filter. It must never leave a call unsettled:
 * every claim ends with its answer, its abort, or the end of the client.
 */
import { MqttError } from '../errors.js'
import { SUBACK } from '../wire/constants.js'
import type { QoS, SubackPacket, SubscriptionRequest, UnsubackPacket, UserProperties } from '../wire/packets.js'
import { TopicTrie } from '../wire/trie.js'
import { aborted, assertNotAborted, type Deferred, deferred, onAbort, within } from './abort.js'
import type { Subscription, UnsubscribeResult } from './api.js'
import type { Connection } from './connection.js'
import { type Claim, FilterEntry, type Joiner, type SubscribeItem } from './filter-entry.js'
import type { Host } from './host.js'
import { withOutcome } from './outcome.js'
import type { CheckedSubscribe } from './requests.js'
import { Ring } from './ring.js'
import { checkFilter } from './session/limits.js'
import { nameOf, refusal } from './session/refusal.js'
import type { Consumer } from './subscription.js'

interface SubscribeJob {
  readonly items: SubscribeItem[]
  readonly userProperties: UserProperties | undefined
  readonly identifier: number | undefined
}

interface UnsubscribeJob {
  readonly filters: readonly string[]
  readonly entries: readonly (FilterEntry | undefined)[]
  readonly userProperties: UserProperties | undefined
  readonly results: UnsubscribeResult[]
  readonly answer: Deferred<UnsubscribeResult[]>
  /** How many of the filters have left. */
  sent: number
}

const identifierLimit = 268_435_455

/** Local and broker subscriptions of one client. */
export class Registry {
  readonly trie = new TopicTrie<FilterEntry>()
  readonly #entries = new Map<string, FilterEntry>()
  readonly #consumers = new Map<Consumer, FilterEntry[]>()
  readonly #jobs = new Ring<SubscribeJob | UnsubscribeJob>()
  /** What to do with the answer, by packet identifier. */
  readonly #sent = new Map<number, (codes: readonly number[]) => void>()
  /** Calls that are not settled. */
  readonly #claims = new Set<Claim>()
  readonly #unsubscribes = new Set<UnsubscribeJob>()
  readonly #host: Host
  #nextIdentifier: number
  /** Identifiers that the application chose itself. */
  readonly #taken = new Set<number>()

  constructor(host: Host) {
    this.#host = host
    // A random base, so that identifiers left over from another process of this session mean nothing here.
    this.#nextIdentifier = 1 + Math.floor(host.platform.random() * (identifierLimit / 2))
  }

  get consumers(): Iterable<Consumer> {
    return this.#consumers.keys()
  }

  /** Adds a consumer: routed at once, granted when `ready` settles. @throws MqttError ERR_SUBSCRIPTION_CONFLICT */
  subscribe(consumer: Consumer, requests: readonly SubscriptionRequest[], options: CheckedSubscribe): Promise<Subscription> {
    const { requireQos, signal, properties } = options
    for (const request of requests) {
      assertCompatible(request, this.#current(request.filter))
      assertCompatible(
        request,
        requests.find((other) => other.filter === request.filter),
      )
    }
    const claim: Claim = { consumer, requests, grants: [], requireQos, ready: deferred(), remaining: requests.length, sent: false }
    this.#claims.add(claim)
    const job: SubscribeJob = { items: [], userProperties: properties.userProperties, identifier: properties.subscriptionIdentifier }
    const entries = new Set(requests.map((request, index) => this.#join(request, claim, index, job)))
    this.#consumers.set(consumer, [...entries])
    if (job.items.length > 0) this.#enqueue(job)
    this.#host.inbox.handleJoined(consumer, entries)
    const stop = onAbort(signal, () => this.#fail(claim, aborted(signal, claim.sent ? 'unknown' : 'not-sent')))
    claim.ready.promise.then(stop, stop)
    return claim.ready.promise
  }

  /** Takes a consumer off its filters; the last one on a filter unsubscribes. Settles when the broker has answered. */
  async leave(consumer: Consumer): Promise<void> {
    const last: string[] = []
    for (const entry of this.#consumers.get(consumer) ?? []) {
      if (entry.state === 'leaving') continue
      if (entry.members.size > 1) this.#remove(consumer, entry)
      else last.push(entry.filter)
    }
    const results = last.length > 0 ? await this.unsubscribe(last) : []
    for (const { error } of results) if (error !== undefined) throw error
  }

  /** The consumer is gone: its filters stay (detach), or go where it was the last. */
  drop(consumer: Consumer, how: 'unsubscribe' | 'detach'): void {
    for (const claim of this.#claims) if (claim.consumer === consumer) this.#settle(claim, new MqttError('ERR_ABORTED'))
    const entries = this.#consumers.get(consumer) ?? []
    this.#consumers.delete(consumer)
    for (const entry of entries) entry.members.delete(consumer)
    const filters = entries.filter((entry) => entry.detached).map((entry) => entry.filter)
    if (how === 'unsubscribe' && filters.length > 0) this.unsubscribe(filters).catch(() => undefined)
  }

  /** UNSUBSCRIBE for these filters, known here or not; local subscriptions on them end with the answer. */
  async unsubscribe(filters: readonly string[], userProperties?: UserProperties, signal?: AbortSignal): Promise<UnsubscribeResult[]> {
    assertNotAborted(signal)
    const entries = filters.map((filter) => this.#current(filter))
    const unsent = entries.every((entry) => entry?.state === 'new')
    for (const entry of entries) if (entry !== undefined) this.#withdraw(entry)
    const job: UnsubscribeJob = { filters, entries, userProperties, results: [], answer: deferred(), sent: 0 }
    this.#unsubscribes.add(job)
    if (unsent) this.#answerUnsubscribe(job, 0, filters, [])
    else this.#enqueue(job)
    return within(job.answer.promise, signal, 'unknown')
  }

  /** A SUBACK or UNSUBACK for a request of ours. */
  handleAnswer(packet: SubackPacket | UnsubackPacket): void {
    const answer = this.#sent.get(packet.packetId)
    this.#sent.delete(packet.packetId)
    answer?.(packet.reasonCodes)
    this.flush()
  }

  /** Sends what waits, as far as there are a connection and packet identifiers. */
  flush(): void {
    for (let job = this.#jobs.peek(); job !== undefined; job = this.#jobs.peek()) {
      const { connection, session } = this.#host
      if (connection === undefined || !session.outbound.hasIdentifier) return
      this.#jobs.shift()
      if ('items' in job) this.#sendSubscribe(job, connection)
      else this.#sendUnsubscribe(job, connection)
    }
  }

  /** The client is over: readers end with `error` (undefined: in order), calls that wait reject with `reason`. */
  end(error: MqttError | undefined, reason: MqttError): void {
    for (const { answer, sent } of this.#unsubscribes) answer.reject(withOutcome(reason, sent > 0 ? 'unknown' : 'not-sent'))
    this.#unsubscribes.clear()
    this.#jobs.drain()
    this.#sent.clear()
    for (const claim of [...this.#claims]) this.#settle(claim, withOutcome(reason, claim.sent ? 'unknown' : 'not-sent'))
    for (const consumer of [...this.#consumers.keys()]) consumer.end(error)
    this.#consumers.clear()
    this.#entries.clear()
  }

  // The entry that a new subscription on this filter shares; one that is being unsubscribed is not shared any more.
  #current(filter: string): FilterEntry | undefined {
    const entry = this.#entries.get(filter)
    return entry?.state === 'leaving' ? undefined : entry
  }

  #join(request: SubscriptionRequest, claim: Claim, index: number, job: SubscribeJob): FilterEntry {
    const { qos, retainHandling } = request
    const { consumer } = claim
    const entry = this.#current(request.filter) ?? this.#create(request)
    const { members, requests } = entry
    members.set(consumer, Math.max(qos, members.get(consumer) ?? 0) as QoS)
    const first = entry.state === 'new'
    const more = first || (!entry.shared && (retainHandling === 0 || qos > entry.qos))
    // A subscription that is made again is not new: retained messages come only to who asks for them always.
    const handling = first || retainHandling === 0 ? retainHandling : 2
    const joiner: Joiner = { claim, index, retained: more && handling !== 2 }
    if (!more) {
      this.#joinAsIs(entry, joiner)
      return entry
    }
    entry.qos = Math.max(entry.qos, qos) as QoS
    const queued = [...requests].find((item) => !item.sent)
    if (queued === undefined) {
      const item: SubscribeItem = { entry, request: { ...request, qos: entry.qos, retainHandling: handling }, joiners: [joiner], sent: false }
      requests.add(item)
      job.items.push(item)
    } else {
      queued.joiners.push(joiner)
      queued.request.qos = entry.qos
      queued.request.retainHandling = Math.min(queued.request.retainHandling, handling) as 0 | 1 | 2
    }
    return entry
  }

  // The broker's subscription is good enough: its grant is ours, as soon as there is one.
  #joinAsIs(entry: FilterEntry, joiner: Joiner): void {
    const pending = [...entry.requests].at(-1)
    if (pending !== undefined) pending.joiners.push(joiner)
    else this.#grant(joiner, entry.grantedQos ?? 0, entry.filter)
  }

  #create(request: SubscriptionRequest): FilterEntry {
    const { filter } = request
    const old = this.#entries.get(filter)
    if (old !== undefined) this.trie.remove(filter, old)
    const entry = new FilterEntry(request)
    this.#entries.set(filter, entry)
    this.trie.add(filter, entry)
    return entry
  }

  // Leaves with everything else of this turn.
  #enqueue(job: SubscribeJob | UnsubscribeJob): void {
    this.#jobs.push(job)
    this.#host.connection?.queueFlush()
  }

  #sendSubscribe(job: SubscribeJob, connection: Connection): void {
    const items = job.items.filter((item) => item.entry.requests.has(item))
    const limits = this.#host.session.negotiated
    if (limits === undefined || items.length === 0) return
    const objection = items.map(({ entry }) => checkFilter(limits, entry.filter, job.identifier !== undefined)).find((code) => code !== undefined)
    if (objection !== undefined) return this.#refuse(items, new MqttError(objection, undefined, { option: 'filter' }))
    if (job.identifier !== undefined) this.#taken.add(job.identifier)
    const fresh = job.identifier ?? (limits.subscriptionIdentifierAvailable ? this.#freshIdentifier() : 0)
    for (const { entry } of items) if (entry.state === 'new') entry.identifier = fresh
    for (const group of grouped(items, this.#host.options.maxFiltersPerSubscribe)) this.#sendGroup(group, job, connection)
  }

  #sendGroup(items: SubscribeItem[], job: SubscribeJob, connection: Connection): void {
    const { outbound } = this.#host.session
    if (!outbound.hasIdentifier) return this.#jobs.push({ ...job, items })
    const identifier = items[0]?.entry.identifier
    const properties = { userProperties: job.userProperties, subscriptionIdentifiers: identifier ? [identifier] : undefined }
    const packetId = outbound.request('subscribe', items.length)
    try {
      connection.send({ type: 'subscribe', packetId, properties, subscriptions: items.map((item) => item.request) })
    } catch (error) {
      outbound.withdraw(packetId)
      return this.#refuse(items, error)
    }
    this.#sent.set(packetId, (codes) => {
      items.forEach((item, index) => {
        this.#handleGrant(item, codes[index] as number)
      })
    })
    for (const item of items) this.#handleSent(item)
  }

  #handleSent(item: SubscribeItem): void {
    const { entry, joiners, request } = item
    item.sent = true
    if (entry.state === 'new') entry.state = 'sent'
    for (const { claim } of joiners) claim.sent = true
    if (request.retainHandling === 2) return
    // Those of earlier requests that were answered have what they asked for; what was asked for and not answered may still come.
    const waiting = [...entry.requests].filter((other) => other.sent).flatMap((other) => other.joiners)
    entry.audience = new Set(waiting.filter((joiner) => joiner.retained).map((joiner) => joiner.claim.consumer))
  }

  #handleGrant(item: SubscribeItem, reasonCode: number): void {
    const { entry, joiners } = item
    entry.requests.delete(item)
    if (reasonCode < 0x80) {
      entry.grantedQos = reasonCode as QoS
      if (entry.state === 'sent') entry.state = 'active'
    }
    for (const joiner of joiners) this.#grant(joiner, reasonCode, entry.filter)
    if (reasonCode >= 0x80 && entry.state === 'sent' && entry.requests.size === 0) this.#forget(entry)
  }

  #grant({ claim, index }: Joiner, reasonCode: number, filter: string): void {
    if (!this.#claims.has(claim)) return
    const error = reasonCode < 0x80 ? undefined : refusal('ERR_SUBSCRIBE_REFUSED', reasonCode)
    claim.grants[index] = { filter, qos: error ? undefined : (reasonCode as QoS), reasonCode, reasonName: nameOf(reasonCode, SUBACK), error }
    claim.remaining -= 1
    const entry = error && this.#entries.get(filter)
    if (entry !== undefined) this.#remove(claim.consumer, entry)
    if (claim.remaining === 0) this.#complete(claim)
  }

  #complete(claim: Claim): void {
    const { consumer, grants, requests, requireQos } = claim
    consumer.granted = grants
    const lowered = requireQos && grants.some(({ qos }, index) => qos !== undefined && qos < (requests[index]?.qos ?? 0))
    if (grants.every((grant) => grant.error !== undefined)) this.#fail(claim, grants[0]?.error)
    else if (lowered) this.#fail(claim, new MqttError('ERR_SUBSCRIBE_REFUSED', 'granted QoS is lower', { outcome: 'refused', fault: 'remote' }))
    else this.#settle(claim)
  }

  // A subscription that does not come about ends for its reader too, and leaves nothing behind on the broker.
  #fail(claim: Claim, error: unknown): void {
    const { consumer } = claim
    if (!this.#settle(claim, error)) return
    consumer.discard(true)
    consumer.end(error as MqttError)
    this.drop(consumer, 'unsubscribe')
  }

  // False when it was settled before.
  #settle(claim: Claim, error?: unknown): boolean {
    if (!this.#claims.delete(claim)) return false
    if (error === undefined) claim.ready.resolve(claim.consumer)
    else claim.ready.reject(error)
    return true
  }

  #refuse(items: readonly SubscribeItem[], error: unknown): void {
    for (const item of items) item.entry.requests.delete(item)
    for (const { claim } of items.flatMap((item) => item.joiners)) this.#fail(claim, error)
    for (const { entry } of items) if (entry.state === 'new' && entry.requests.size === 0) this.#forget(entry)
  }

  // A SUBSCRIBE that has not left is not needed any more.
  #withdraw(entry: FilterEntry): void {
    const unsent = entry.state === 'new'
    entry.state = 'leaving'
    if (!unsent) return
    const joiners = [...entry.requests].flatMap((item) => item.joiners)
    entry.requests.clear()
    for (const { claim } of joiners) this.#settle(claim, new MqttError('ERR_ABORTED'))
  }

  #sendUnsubscribe(job: UnsubscribeJob, connection: Connection): void {
    const { session, options } = this.#host
    const { outbound } = session
    while (job.sent < job.filters.length) {
      if (!outbound.hasIdentifier) return this.#jobs.push(job)
      const from = job.sent
      const filters = job.filters.slice(from, from + options.maxFiltersPerSubscribe)
      const packetId = outbound.request('unsubscribe', filters.length)
      job.sent += filters.length
      try {
        connection.send({ type: 'unsubscribe', packetId, properties: { userProperties: job.userProperties }, filters })
      } catch (error) {
        outbound.withdraw(packetId)
        for (const entry of job.entries) if (entry?.state === 'leaving') entry.state = 'active'
        this.#unsubscribes.delete(job)
        return job.answer.reject(error)
      }
      this.#sent.set(packetId, (codes) => this.#answerUnsubscribe(job, from, filters, codes))
    }
  }

  // MQTT 3.1.1 has no reason codes here: whatever was asked was done.
  #answerUnsubscribe(job: UnsubscribeJob, from: number, filters: readonly string[], codes: readonly number[]): void {
    filters.forEach((filter, index) => {
      const entry = job.entries[from + index]
      const reasonCode = codes[index] ?? 0
      const error = reasonCode < 0x80 ? undefined : refusal('ERR_UNSUBSCRIBE_REFUSED', reasonCode)
      job.results[from + index] = { filter, reasonCode, reasonName: nameOf(reasonCode), error }
      if (entry === undefined) return
      if (error === undefined) this.#forget(entry)
      // With nobody left here to read it, it stays as good as gone: what comes is acknowledged and dropped.
      else if (this.#entries.get(filter) === entry && entry.members.size > 0) entry.state = 'active'
    })
    if (Object.keys(job.results).length < job.filters.length) return
    this.#unsubscribes.delete(job)
    job.answer.resolve(job.results)
  }

  // The broker does not have this subscription any more: what waited for a reader is let go, and readers without another filter end.
  #forget(entry: FilterEntry): void {
    this.trie.remove(entry.filter, entry)
    if (this.#entries.get(entry.filter) === entry) this.#entries.delete(entry.filter)
    this.#host.inbox.handleForgotten(entry)
    for (const consumer of [...entry.members.keys()]) this.#remove(consumer, entry)
  }

  #remove(consumer: Consumer, entry: FilterEntry): void {
    entry.members.delete(consumer)
    const rest = (this.#consumers.get(consumer) ?? []).filter((other) => other !== entry)
    this.#consumers.set(consumer, rest)
    if (rest.length > 0 || [...this.#claims].some((claim) => claim.consumer === consumer)) return
    this.#consumers.delete(consumer)
    consumer.end(undefined)
    if (!consumer.attended) consumer.dropBuffered()
  }

  #freshIdentifier(): number {
    const identifier = this.#nextIdentifier
    this.#nextIdentifier = identifier === identifierLimit ? 1 : identifier + 1
    if (this.#taken.has(identifier)) return this.#freshIdentifier()
    for (const entry of this.#entries.values()) if (entry.identifier === identifier) return this.#freshIdentifier()
    return identifier
  }
}

// Subscriptions that share one broker subscription cannot differ in these.
function assertCompatible(request: SubscriptionRequest, other: FilterEntry | SubscriptionRequest = request): void {
  if (request.noLocal === other.noLocal && request.retainAsPublished === other.retainAsPublished) return
  throw new MqttError('ERR_SUBSCRIPTION_CONFLICT', undefined, { option: 'filter' })
}

// One packet holds one Subscription Identifier, and no more filters than allowed.
function grouped(items: readonly SubscribeItem[], most: number): SubscribeItem[][] {
  const groups: SubscribeItem[][] = []
  const open = new Map<number, SubscribeItem[]>()
  for (const item of items) {
    const { identifier } = item.entry
    const group = open.get(identifier)
    if (group !== undefined && group.length < most) group.push(item)
    else {
      const next = [item]
      open.set(identifier, next)
      groups.push(next)
    }
  }
  return groups
}
