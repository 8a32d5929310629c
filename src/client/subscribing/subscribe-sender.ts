/**
 * Sends SUBSCRIBE and UNSUBSCRIBE: in the order of the calls, as far as there are a connection and packet identifiers, again on the next connection
 * where a lost one left them without an answer.
 *
 * What an answer means is the registry's matter. It must never send on one connection what it has sent there already.
 */
import type { MqttError } from '../../errors.js'
import { withOutcome } from '../common/outcome.js'
import { Ring } from '../common/ring.js'
import type { Connection } from '../connection/connection.js'
import type { Host } from '../host.js'
import type { Negotiated } from '../session/limits.js'
import { SparseMap } from '../session/sparse.js'
import type { FilterEntry, SubscribeItem } from './filter-entry.js'
import {
  grouped,
  Identifiers,
  isWanted,
  objectionTo,
  requestOf,
  type SentPacket,
  type SubscribeJob,
  subscribeProperties,
  type UnsubscribeJob,
  unanswered,
} from './subscribe-jobs.js'

/** What becomes of requests that cannot be sent. */
export interface Refusals {
  /** Every filter that is subscribed to. */
  readonly entries: Iterable<FilterEntry>
  /** A call's filters, all together. */
  refuse(items: readonly SubscribeItem[], error: unknown): void
  /** A filter that was to be brought back. */
  dismiss(item: SubscribeItem, error: MqttError): void
  /** An UNSUBSCRIBE had its effect, though its answer was lost: what was subscribed to after it is granted. It is answered, and not sent again. */
  isSuperseded(job: UnsubscribeJob, index: number): boolean
  /** The filters of a job from an index on. */
  refuseUnsubscribe(job: UnsubscribeJob, from: number, error: unknown): void
}

/** Withdrawn jobs that may wait in the queue before it is swept. */
const deadLimit = 64

/** Jobs on their way. */
export class SubscribeSender {
  readonly #jobs = new Ring<SubscribeJob | UnsubscribeJob>()
  readonly #sent = new SparseMap<number, SentPacket>()
  /** SUBSCRIBE jobs that were withdrawn before they left. */
  #dead = 0
  readonly #host: Host
  readonly #answers: Refusals
  readonly #identifiers: Identifiers

  constructor(host: Host, answers: Refusals) {
    this.#host = host
    this.#answers = answers
    this.#identifiers = new Identifiers(host.platform.random())
  }

  /** A job leaves with everything else of this turn. */
  push(job: SubscribeJob | UnsubscribeJob): void {
    this.#jobs.push(job)
    this.#host.connection?.output.queueFlush()
  }

  /** What was sent under this identifier; it has its answer now. */
  take(packetId: number): SentPacket | undefined {
    const sent = this.#sent.get(packetId)
    this.#sent.delete(packetId)
    return sent
  }

  /** Puts what brings subscriptions back before everything else. */
  restore(items: SubscribeItem[]): void {
    const rest = this.#jobs.drain()
    this.#jobs.push({ kind: 'subscribe', items, groups: undefined, userProperties: undefined, identifier: undefined, restoring: true })
    for (const job of rest) this.#jobs.push(job)
  }

  /** The items of a job that waits were withdrawn. */
  handleWithdrawn(): void {
    this.#dead += 1
    if (this.#dead > deadLimit && this.#dead * 2 > this.#jobs.length) this.#sweep()
  }

  /** Nothing is sent any more: calls that wait reject. */
  end(reason: MqttError): void {
    for (const job of this.#jobs.drain()) if (job.kind === 'unsubscribe') job.answer.reject(withOutcome(reason, 'not-sent'))
    for (const sent of this.#sent.values()) if ('part' in sent) sent.job.answer.reject(withOutcome(reason, 'unknown'))
    this.#sent.clear()
  }

  /** Sends what waits, as far as there are a connection and packet identifiers. */
  flush(): void {
    // What was settled before leaves before: brokers are about that take the identifier of a message in flight for one of ours.
    if (this.#jobs.length > 0) this.#host.connection?.output.writeAcks()
    for (let job = this.#jobs.peek(); job !== undefined; job = this.#jobs.peek()) {
      const { connection, session } = this.#host
      if (connection === undefined || !session.outbound.hasIdentifier) return
      const done = job.kind === 'subscribe' ? this.#sendSubscribe(job, connection) : this.#sendUnsubscribe(job, connection)
      if (done && this.#jobs.peek() === job) this.#jobs.shift()
    }
  }

  /** The connection is over: what has no answer is sent again on the next one, in the same order; what brought a session back, as that needs. */
  handleLost(): void {
    const again = unanswered([...this.#sent.values()], this.#jobs.drain(), (job, index) => this.#answers.isSuperseded(job, index))
    this.#sent.clear()
    for (const job of again) this.#jobs.push(job)
  }

  // One packet at a time; true when there is no more to send.
  #sendSubscribe(job: SubscribeJob, connection: Connection): boolean {
    job.groups ??= this.#prepare(job)
    const group = job.groups.shift()?.filter(isWanted) ?? []
    if (group.length > 0) this.#sendGroup(group, job, connection)
    return job.groups.length === 0
  }

  #prepare(job: SubscribeJob): SubscribeItem[][] {
    const wanted = job.items.filter(isWanted)
    if (wanted.length === 0) this.#dead = Math.max(0, this.#dead - 1)
    const limits = this.#host.session.negotiated
    if (limits === undefined || wanted.length === 0) return []
    const items = this.#allowed(wanted, job, limits)
    if (items.length === 0) return []
    if (job.identifier !== undefined) this.#identifiers.take(job.identifier)
    const fresh = job.identifier ?? (limits.subscriptionIdentifierAvailable ? this.#identifiers.fresh(this.#answers.entries) : 0)
    for (const { entry } of items) if (entry.state === 'new') entry.identifier = fresh
    return grouped(items, this.#host.options.maxFiltersPerSubscribe, limits.maximumPacketSize)
  }

  // What the server said it does not have is refused before a byte is sent: a call as a whole, what is brought back one by one.
  #allowed(items: SubscribeItem[], job: SubscribeJob, limits: Negotiated): SubscribeItem[] {
    if (job.restoring === true) {
      return items.filter((item) => {
        const error = objectionTo(item, job, limits)
        if (error !== undefined) this.#answers.dismiss(item, error)
        return error === undefined
      })
    }
    const error = items.map((item) => objectionTo(item, job, limits)).find((found) => found !== undefined)
    if (error !== undefined) this.#answers.refuse(items, error)
    return error === undefined ? items : []
  }

  #sendGroup(items: SubscribeItem[], job: SubscribeJob, connection: Connection): void {
    const { outbound, negotiated } = this.#host.session
    if (negotiated === undefined) return
    const properties = subscribeProperties(items[0]?.entry, negotiated)
    const packetId = outbound.request('subscribe', items.length)
    // On file before it is written: a listener of `packet` may leave again.
    this.#sent.set(packetId, { items, job })
    this.#count('subscribes')
    const fresh = items.filter(({ entry }) => entry.state === 'new')
    for (const item of items) this.#handleSent(item)
    try {
      connection.output.send({ type: 'subscribe', packetId, properties, subscriptions: items.map((item) => requestOf(item, negotiated)) })
    } catch (error) {
      outbound.withdraw(packetId)
      this.#sent.delete(packetId)
      // Not a byte of it left: there is nothing to undo.
      for (const { entry } of fresh) entry.state = 'new'
      if (job.restoring !== true) this.#answers.refuse(items, error)
      else for (const item of items) this.#answers.dismiss(item, error as MqttError)
    }
  }

  #handleSent(item: SubscribeItem): void {
    const { entry, joiners, request } = item
    item.sent = true
    if (entry.state === 'new') entry.state = 'sent'
    for (const { claim } of joiners) claim.sent = true
    if (request.retainHandling === 2) return
    // What brings a subscription back is for all who read it.
    if (joiners.length === 0 || entry.unconfirmed) {
      entry.audience = undefined
      return
    }
    // Those of earlier requests that were answered have what they asked for; what was asked for and not answered may still come.
    const waiting = entry.requests.filter((other) => other.sent).flatMap((other) => other.joiners)
    entry.audience = new Set(waiting.filter((joiner) => joiner.retained).map((joiner) => joiner.claim.consumer))
  }

  #count(kind: 'subscribes' | 'unsubscribes'): void {
    const { counters } = this.#host
    if (counters !== undefined) counters[kind] += 1
  }

  #sweep(): void {
    const live = this.#jobs.drain().filter((job) => job.kind === 'unsubscribe' || job.items.some(isWanted))
    for (const job of live) this.#jobs.push(job)
    this.#dead = 0
  }

  // One packet at a time; true when there is no more to send.
  #sendUnsubscribe(job: UnsubscribeJob, connection: Connection): boolean {
    const { session, options } = this.#host
    const next = { from: job.sent, count: Math.min(options.maxFiltersPerSubscribe, job.filters.length - job.sent) }
    const part = job.again.shift() ?? next
    const { from } = part
    const filters = job.filters.slice(from, from + part.count)
    const packetId = session.outbound.request('unsubscribe', filters.length)
    if (part === next) job.sent += filters.length
    this.#sent.set(packetId, { job, part })
    this.#count('unsubscribes')
    try {
      connection.output.send({ type: 'unsubscribe', packetId, properties: { userProperties: job.userProperties }, filters })
    } catch (error) {
      session.outbound.withdraw(packetId)
      this.#sent.delete(packetId)
      this.#answers.refuseUnsubscribe(job, from, error)
      return true
    }
    return job.again.length === 0 && job.sent >= job.filters.length
  }
}
