/**
 * Sends SUBSCRIBE and UNSUBSCRIBE: in the order of the calls, as far as there are a connection and packet identifiers, again on the next connection
 * where a lost one left them without an answer.
 *
 * What an answer means is the registry's matter. It must never send on one connection what it has sent there already.
 */

import type { MqttError } from '../../errors.js'
import type { Negotiated } from '../api/index.js'
import { tally } from '../common/counters.js'
import { withOutcome } from '../common/outcome.js'
import { Ring } from '../common/ring.js'
import { SparseMap } from '../common/sparse.js'
import { leastSweep } from './bounds.js'
import type { FilterEntry, SubscribeItem } from './filter-entry.js'
import type { SubscribingHost } from './ports.js'
import {
  grouped,
  Identifiers,
  isSubscribe,
  isWanted,
  type Line,
  objectionTo,
  packetOf,
  type SentPacket,
  type SubscribeJob,
  type UnsubscribeItem,
  type UnsubscribeJob,
  unanswered,
} from './subscribe-jobs.js'

/** What becomes of requests. */
export interface Refusals {
  /** Every filter that is subscribed to. */
  readonly entries: Iterable<FilterEntry>
  /** A call's filters, all together. */
  refuse(items: readonly SubscribeItem[], error: unknown): void
  /** A filter that was to be brought back. */
  dismiss(item: SubscribeItem, error: MqttError): void
  /** An UNSUBSCRIBE had its effect, though its answer was lost: what was subscribed to after it is granted. It is answered, and not sent again. */
  isSuperseded(job: UnsubscribeJob, item: UnsubscribeItem): boolean
  /** Filters of a job have an answer: a code for each, none on 3.1.1, or why there is none. */
  answerUnsubscribe(job: UnsubscribeJob, items: readonly UnsubscribeItem[], codes: readonly number[], failure?: MqttError): void
}

/** Jobs on their way. */
export class SubscribeSender {
  readonly #jobs = new Ring<SubscribeJob | UnsubscribeJob>()
  readonly #sent = new SparseMap<number, SentPacket>()
  #sweepAt = leastSweep
  readonly #host: SubscribingHost
  readonly #answers: Refusals
  readonly #identifiers: Identifiers

  constructor(host: SubscribingHost, answers: Refusals) {
    this.#host = host
    this.#answers = answers
    this.#identifiers = new Identifiers(host.platform.random())
  }

  /** Jobs wait to be sent. */
  get waiting(): boolean {
    return this.#jobs.length > 0
  }

  /** A job leaves with everything else of this turn. */
  push(job: SubscribeJob | UnsubscribeJob): void {
    if (this.#jobs.length >= this.#sweepAt) {
      this.#refill(this.#jobs.drain().filter(({ items }) => items.some(isWanted)))
      this.#sweepAt = leastSweep + this.#jobs.length * 2
    }
    this.#jobs.push(job)
    this.#host.links.connection?.writer.queueFlush()
  }

  #refill(jobs: readonly (SubscribeJob | UnsubscribeJob)[]): void {
    for (const job of jobs) this.#jobs.push(job)
  }

  /** What was sent under this identifier; it has its answer now. */
  take(packetId: number): SentPacket | undefined {
    const sent = this.#sent.get(packetId)
    this.#sent.delete(packetId)
    return sent
  }

  /** The server uses its identifier for a message of its own: once more under another one. False when that was tried. */
  repeat(sent: SentPacket, packetId: number): boolean {
    const { links, session } = this.#host
    const { connection } = links
    if (sent.again || connection === undefined) return false
    session.sendWindow.avoid(packetId)
    this.#send({ ...sent, again: true })
    return true
  }

  /** Puts what brings subscriptions back before everything else. */
  restore(items: SubscribeItem[]): void {
    this.#refill([{ kind: 'subscribe', items, restoring: true }, ...this.#jobs.drain()])
  }

  /** Nothing is sent any more: calls that wait reject. */
  end(reason: MqttError): void {
    for (const job of this.#takeAll()) if (job.kind === 'unsubscribe') job.answer.reject(withOutcome(reason, job.sent ? 'unknown' : 'not-sent'))
  }

  // Those that were sent first, some more than once.
  #takeAll(): (SubscribeJob | UnsubscribeJob)[] {
    const sent = [...this.#sent.values()].map(({ job }) => job)
    this.#sent.clear()
    return [...sent, ...this.#jobs.drain()]
  }

  /** Sends what waits, as far as there are a connection and packet identifiers. */
  flush(): void {
    // What was settled before leaves before: brokers are about that take the identifier of a message in flight for one of ours.
    if (this.#jobs.length > 0) this.#host.links.connection?.writer.writeAcks()
    for (let job = this.#jobs.peek(); job !== undefined; job = this.#jobs.peek()) {
      const { links, session } = this.#host
      const { connection } = links
      if (connection === undefined || !session.sendWindow.hasIdentifier) return
      if (this.#sendNext(job) && this.#jobs.peek() === job) this.#jobs.shift()
    }
  }

  /** The connection is over: what has no answer is sent again on the next one, in the same order; what brought a session back, as that needs. */
  handleLost(): void {
    const again = unanswered(this.#takeAll(), (job, item) => this.#answers.isSuperseded(job, item))
    this.#refill(again)
  }

  // One packet at a time; true when there is no more to send.
  #sendNext(job: SubscribeJob | UnsubscribeJob): boolean {
    job.groups ??= this.#prepare(job)
    const items = job.groups.shift()?.filter(isWanted) ?? []
    if (items.length > 0) this.#send({ job, items } as SentPacket)
    // Sending may have ended the connection: then it is made anew.
    return job.groups?.length === 0
  }

  #grouped<Item>(items: readonly Item[], lineOf: (item: Item) => Line): Item[][] {
    return grouped(items, lineOf, this.#host.options.maxFiltersPerSubscribe, this.#limits.maximumPacketSize)
  }

  // There are some while there is a connection.
  get #limits(): Negotiated {
    return this.#host.session.negotiated as Negotiated
  }

  #prepare(job: SubscribeJob | UnsubscribeJob): SubscribeItem[][] | UnsubscribeItem[][] {
    if (job.kind === 'unsubscribe') {
      const { userProperties } = job
      return this.#grouped(job.items, ({ filter }) => ({ filter, userProperties, identifier: 0 }))
    }
    const items = this.#allowed(job)
    if (items.length === 0) return []
    const { entries } = this.#answers
    if (job.identifier !== undefined) this.#identifiers.take(job.identifier, entries)
    const fresh = job.identifier ?? (this.#limits.subscriptionIdentifierAvailable ? this.#identifiers.fresh(entries) : 0)
    for (const { entry } of items) if (entry.state === 'new' || fresh === 0) entry.identifier = fresh
    return this.#grouped(items, ({ entry }) => entry)
  }

  // What the server said it does not have is refused before a byte is sent.
  #allowed(job: SubscribeJob): SubscribeItem[] {
    const wanted = job.items.filter(isWanted)
    for (const item of wanted) {
      const error = isWanted(item) ? objectionTo(item, job, this.#limits) : undefined
      if (error !== undefined) this.#refuse(job, job.restoring ? [item] : wanted, error)
    }
    return wanted.filter(isWanted)
  }

  // A call fails as a whole, what is brought back one by one.
  #refuse({ restoring }: SubscribeJob, items: readonly SubscribeItem[], error: unknown): void {
    if (!restoring) this.#answers.refuse(items, error)
    else for (const item of items) this.#answers.dismiss(item, error as MqttError)
  }

  #send(sent: SentPacket): void {
    const { links, session } = this.#host
    const { connection } = links
    const { job, items } = sent
    const packetId = session.sendWindow.request(job.kind, items.length)
    // On file before it is written: a listener of `packet` may leave again.
    this.#sent.set(packetId, sent)
    tally(this.#host, `${job.kind}s`)
    const subscribing = isSubscribe(sent)
    const fresh = subscribing ? sent.items.filter(({ entry }) => entry.state === 'new') : []
    if (subscribing) for (const item of sent.items) this.#handleSent(item)
    try {
      connection?.writer.send(packetOf(sent, packetId, this.#limits))
      if (!subscribing) sent.job.sent = true
    } catch (error) {
      session.sendWindow.withdraw(packetId)
      this.#sent.delete(packetId)
      // Not a byte of it left: there is nothing to undo.
      for (const { entry } of fresh) entry.state = 'new'
      if (subscribing) this.#refuse(sent.job, sent.items, error)
      else this.#answers.answerUnsubscribe(sent.job, sent.items, [], error as MqttError)
    }
  }

  #handleSent(item: SubscribeItem): void {
    const { entry, joiners } = item
    item.sent = true
    if (entry.state === 'new') entry.state = 'sent'
    for (const { claim } of joiners) claim.sent = true
    // What brings a subscription back is for all who read it.
    const isForAll = joiners.length === 0 || entry.unconfirmed
    item.audience = isForAll ? undefined : new Set(joiners.filter(({ retained }) => retained).map(({ claim }) => claim.consumer))
  }
}
