/**
 * Incoming messages on their way to consumers: who gets a copy, what nobody claims, what the memory budget allows, and what stands still.
 *
 * It owns no consumer and no connection. It must never acknowledge a message that waits for somebody, and never hold more than the budget.
 */

import { MqttError } from '../../errors.js'
import { MOST_NOTED } from '../../wire/property-numbers.js'
import type { PublishView } from '../../wire/publish.js'
import type { TopicRecord } from '../../wire/topic-table.js'
import type { TopicTrie } from '../../wire/trie.js'
import type { Counters } from '../common/counters.js'
import { tally } from '../common/counters.js'
import { SparseSet } from '../common/sparse.js'
import { type Piece, Pieces } from '../memory/message-memory.js'
import type { CancelTimer } from '../platform/platform.js'
import { noTicket } from '../session/numbers.js'
import { nameOf } from '../session/refusal.js'
import { dropInterval, lookAgain, mostIdleLooks, mostLeft, stallAge, stallCheck } from './bounds.js'
import type { Consumer } from './consumer.js'
import { BorrowedMessage, costOf, type DeliveredMessage, OwnedMessage, type Settler, SharedOutcome } from './message.js'
import type { DeliveryHost, Route } from './ports.js'

interface Recipient {
  readonly consumer: Consumer
  readonly entry: ReadRoute
  readonly owing: boolean
}

/** A filter with those who read it. */
type ReadRoute = Route<Consumer>

/** Routes messages. */
export class MessageRouter {
  /** Bytes of messages that are buffered or held. */
  bytes = 0
  /** Consumers with messages in memory that others may share. */
  readonly loosened = new SparseSet<Consumer>()
  readonly #host: DeliveryHost<Consumer>
  readonly #trie: TopicTrie<ReadRoute>
  readonly #pieces = new Pieces()
  /** The window that is read from, where messages may be lent in it. */
  #window: Piece | undefined
  /** Bytes that the budget has left beside what is held elsewhere. */
  #room = 0
  readonly #unclaimed: DeliveredMessage[] = []
  readonly #identified: ReadRoute[] = []
  /** Filters that were left last: copies for them may still be under way. */
  readonly #left = new SparseSet<ReadRoute>()
  /** Where retained messages came in: `before` a SUBACK, or `behind` it. */
  #habits = 0
  /** There was no room for a message: this connection brings no more at QoS 1 and 2. */
  #overdrawn = false
  #stopLook: CancelTimer | undefined
  #holding = false
  #stopHold: CancelTimer | undefined
  #stallTimer: CancelTimer | undefined
  #oldestTicket = -1
  #oldestSince = 0
  #reported = false
  /** Consumers that may drop what is too much for them, once they had a turn. */
  readonly #crowded = new SparseSet<Consumer>()
  #relieving = false
  #dropped = 0
  #dropTopic = ''
  #dropTimer: CancelTimer | undefined

  constructor(host: DeliveryHost<Consumer>, trie: TopicTrie<ReadRoute>) {
    this.#host = host
    this.#trie = trie
  }

  /** Consumers that borrow messages: memory that reads go into is lent to them. */
  readonly borrowers = new SparseSet<Consumer>()

  /** A connection is up: what was learnt of the one before says nothing about it. */
  handleConnected(): void {
    this.#overdrawn = false
    this.#habits = 0
  }

  /** A read begins. `window` is what it went into, where that may be lent. */
  handleRead(window: Piece | undefined): void {
    this.#window = window
    this.#room = this.#host.options.memoryBudget - this.#host.links.held
    if (this.loosened.size > 0) this.moveOut(false)
  }

  /** What was read belongs to its owner again. */
  handleReadEnd(): void {
    this.#window = undefined
    this.#pieces.forget()
    if (this.#crowded.size > 0) this.#relieve()
  }

  /** A consumer that may drop has more to read. */
  crowd(consumer: Consumer): void {
    this.#crowded.add(consumer)
    this.#relieve()
  }

  #relieve(): void {
    if (this.#relieving) return
    this.#relieving = true
    this.#host.platform.nextTurn(() => {
      this.#relieving = false
      for (const consumer of this.#crowded) if (!consumer.relieve()) this.#crowded.delete(consumer)
    })
  }

  /** Messages that wait move out of memory that they may keep alive by themselves; out of read windows only when they must. */
  moveOut(must: boolean): void {
    for (const consumer of must ? this.#host.registry.consumers : this.loosened) consumer.moveOut(must)
    this.loosened.clear()
  }

  /** Session Present 1: what comes before anybody subscribed is kept for a while. */
  hold(): void {
    this.#holding = true
    this.#stopHold = this.#host.platform.setTimer(() => this.#release(), this.#host.options.unclaimedHold)
  }

  /** A message came in; `ticket` is `noTicket` at QoS 0. `limit` is where what the view's bytes hold of the stream ends. */
  handleMessage(view: PublishView, record: TopicRecord, ticket: number, limit = view.payloadEnd): void {
    const { counters } = this.#host
    if (counters !== undefined) counters.received += 1
    const matched = record.version === this.#trie.version ? (record.route as ReadRoute[]) : this.#match(record)
    // Nearly every message: for one filter with one reader.
    const sole = matched.length === 1 && !view.retain && counters === undefined ? matched[0] : undefined
    if (sole?.sole !== undefined && this.#isOwn(view, sole)) return this.#deliverToOne(view, record.name, ticket, limit, sole, sole.sole)
    const entries = this.#identify(view, matched)
    // Nobody misses a copy for a filter that was left, but for that of a share: no other member of the group gets it, so that the application is told.
    const wanted = entries.length > 0 || matched.length === 0 || this.#leftBy(view).some(({ shared }) => shared)
    if (wanted) this.#deliverToAll(view, record.name, ticket, limit, entries)
    else if (ticket !== noTicket) this.#host.settle(ticket, 0)
  }

  #leftBy({ subscriptionIdentifiers, subscriptionIdentifierCount }: PublishView): ReadRoute[] {
    const named = subscriptionIdentifiers.slice(0, subscriptionIdentifierCount)
    return [...this.#left].filter(({ identifier }) => named.includes(identifier))
  }

  #match(record: TopicRecord): ReadRoute[] {
    const entries = this.#trie.matchAll(record.name)
    record.route = entries
    record.version = this.#trie.version
    return entries
  }

  #deliverToOne(view: PublishView, topic: string, ticket: number, limit: number, entry: ReadRoute, consumer: Consumer): void {
    const owed = entry.soleQos > 0 ? ticket : noTicket
    if (!this.#show(view, topic, owed, limit, entry, consumer)) {
      const size = costOf(view, topic)
      if ((this.#overdrawn || this.bytes + size > this.#room) && !this.#affords(size, topic, ticket)) return
      consumer.push(this.#messageFor(consumer, entry, view, topic, limit, size, owed, this.#host))
    }
    if (ticket === noTicket) return
    if (owed === noTicket) this.#host.settle(ticket, 0)
    else this.watch()
  }

  // A handler of borrowed messages sees one while it is read: where it lies, if that can be lent.
  #show(view: PublishView, topic: string, ticket: number, limit: number, entry: ReadRoute, consumer: Consumer): boolean {
    if (!consumer.mayShow || this.#overdrawn) return false
    const window = this.#window
    if (window !== undefined && view.bytes === window.bytes) consumer.show(view, topic, window, 0, ticket, entry)
    else consumer.show(view, topic, this.#pieces.lend(view, limit), this.#pieces.shift, ticket, entry)
    return true
  }

  #messageFor(
    consumer: Consumer,
    entry: ReadRoute,
    view: PublishView,
    topic: string,
    limit: number,
    size: number,
    ticket: number,
    settler: Settler,
  ): DeliveredMessage {
    const borrowed = consumer.config.lifetime === 'borrowed'
    const window = borrowed && view.bytes === this.#window?.bytes && consumer.config.ack !== 'manual' ? this.#window : undefined
    const piece = window ?? (borrowed ? this.#pieces.lend(view, limit) : this.#pieces.hold(view, limit, false))
    const message = new (borrowed ? BorrowedMessage : OwnedMessage)(
      view,
      topic,
      piece,
      window === undefined ? this.#pieces.shift : 0,
      size,
      settler,
      ticket,
    )
    message.origin = entry
    piece.give(consumer.mark, view.payloadEnd - view.propertiesStart)
    return message
  }

  #deliverToAll(view: PublishView, topic: string, ticket: number, limit: number, entries: readonly ReadRoute[]): void {
    const recipients = this.#recipientsOf(entries, view.retain && !view.dup)
    if (recipients.length > 0) return this.#deliver(view, topic, ticket, limit, recipients)
    const detached = entries.find((entry) => entry.detached)
    if (entries.length > 0 && (detached === undefined || ticket === noTicket)) {
      // Subscribed, but nobody to give it to: a copy for somebody who left is let go.
      if (ticket !== noTicket) this.#host.settle(ticket, 0)
      return this.#countDrop(topic)
    }
    const size = costOf(view, topic)
    if (!this.#affords(size, topic, ticket)) return
    const message = new OwnedMessage(view, topic, this.#pieces.hold(view, view.payloadEnd, false), this.#pieces.shift, size, this.#host, ticket)
    message.origin = detached
    if (detached !== undefined) this.#keep(message, detached.held)
    else if (this.#holding && ticket !== noTicket) this.#keep(message, this.#unclaimed)
    else this.#handOver(message)
    this.watch()
  }

  /** A message came in again that is in hand or was received. */
  handleRepeat(): void {
    tally(this.#host, 'duplicates')
    this.watch()
  }

  /** A consumer joined filters: what waited for one goes to it, in the order of arrival. */
  handleJoined(consumer: Consumer, entries: ReadonlySet<ReadRoute>): void {
    const waiting = [...entries].flatMap((entry) => entry.held.splice(0))
    for (const message of this.#unclaimed.splice(0)) {
      const origin = this.#trie.matchAll(message.topic).find((entry) => entries.has(entry))
      if (origin === undefined) this.#unclaimed.push(message)
      else waiting.push(Object.assign(message, { origin }))
    }
    for (const message of waiting.sort((first, second) => first.ticket - second.ticket)) {
      this.bytes -= message.size
      if (message.settled) continue
      consumer.push(message)
    }
  }

  /** Messages were left unacknowledged: kept for the next consumer of their filter, if there can be one. */
  handleKept(messages: readonly DeliveredMessage[]): void {
    for (const message of messages) {
      const entry = message.origin as ReadRoute
      const leaving = entry.state === 'leaving'
      // Where others read on, it is theirs: a share is given up, the rest goes to one of them.
      if (!leaving && message.giveUp()) continue
      message.own()
      if (leaving) this.#giveBack(message)
      else this.#passOn(message, entry)
    }
    this.watch()
  }

  #passOn(message: DeliveredMessage, entry: ReadRoute): void {
    for (const [consumer, qos] of entry.members) if (qos > 0) return consumer.push(message)
    // Those who read on at QoS 0 had their copy.
    if (entry.members.size > 0) message.settle(0)
    else this.#keep(message, entry.held)
  }

  #giveBack(message: DeliveredMessage): void {
    if (this.#holding) return this.#keep(message, this.#unclaimed)
    this.#handOver(message)
  }

  /** A filter has no subscription any more. */
  handleForgotten(entry: ReadRoute): void {
    this.handleLeft(entry)
    for (const message of entry.held.splice(0)) {
      this.bytes -= message.size
      message.settle(0)
    }
  }

  /** A subscription was left, or another one takes its place: copies for it may still come. */
  handleLeft(entry: ReadRoute): void {
    const left = this.#left
    if (entry.identifier > 0) left.add(entry)
    if (left.size > mostLeft) left.delete(left.keys().next().value as ReadRoute)
  }

  /** Starts looking at the progress of acknowledgements; stops by itself when none are owed. */
  watch(): void {
    if (this.#stallTimer !== undefined || this.#host.session.receiveWindow.unsettled === 0) return
    this.#stallTimer = this.#host.platform.setTimer(() => this.#checkProgress(), stallCheck)
  }

  /** The client is over: nothing is watched or held any more, and what was lost is told. */
  stop(): void {
    this.#stopHold?.()
    this.#stopLook?.()
    this.#stallTimer?.()
    this.#stallTimer = undefined
    this.#dropTimer?.()
    this.#holding = false
    for (const message of this.#unclaimed.splice(0)) this.bytes -= message.size
    this.#tellDrops()
  }

  // Not a copy for a filter that was left, which one of overlapping filters would take for another copy of its own.
  #isOwn(view: PublishView, entry: ReadRoute): boolean {
    return this.#left.size === 0 || view.subscriptionIdentifierCount === 0 || view.subscriptionIdentifiers[0] === entry.identifier
  }

  // Subscription Identifiers tell which of overlapping filters a copy is for; without a known one the topic alone decides.
  #identify(view: PublishView, matched: readonly ReadRoute[]): readonly ReadRoute[] {
    if (view.subscriptionIdentifierCount === 0) return matched
    if (this.#host.counters !== undefined) countUnknown(view, matched, this.#host.counters)
    const [only] = matched
    if (matched.length < 2 && (only === undefined || this.#isOwn(view, only))) return matched
    // Those that were not noted may be for any of them.
    if (view.subscriptionIdentifierCount > MOST_NOTED) return matched
    const identified = this.#identified
    identified.length = 0
    view.forEachSubscriptionIdentifier((identifier) => {
      for (const entry of matched) if (entry.identifier === identifier && !identified.includes(entry)) identified.push(entry)
    })
    if (identified.length > 0) {
      // No copy names a subscription that was made where the server had no identifiers.
      for (const entry of matched) if (entry.identifier === 0 && entry.state !== 'new') identified.push(entry)
      return identified
    }
    // A copy for a filter that was left is for who has subscribed to it again, and for nobody else: the others get their own.
    const gone = this.#leftBy(view)
    return gone.length > 0 ? matched.filter(({ filter }) => gone.some((one) => one.filter === filter)) : matched
  }

  #deliver(view: PublishView, topic: string, ticket: number, limit: number, recipients: readonly Recipient[]): void {
    const size = costOf(view, topic)
    if (!this.#affords(size * recipients.length, topic, ticket)) return
    const owing = ticket === noTicket ? 0 : recipients.filter((recipient) => recipient.owing).length
    const settler = this.#host
    const outcome = owing > 1 ? new SharedOutcome(settler, ticket, owing) : settler
    // Memory is known to be shared before anybody sees it.
    const messages = recipients.map(({ consumer, entry, owing: owes }) =>
      this.#messageFor(consumer, entry, view, topic, limit, size, owes ? ticket : noTicket, outcome),
    )
    for (const [index, message] of messages.entries()) (recipients[index] as Recipient).consumer.push(message)
    // A consumer that asked for QoS 0 never delays an acknowledgement.
    if (ticket !== noTicket && owing === 0) settler.settle(ticket, 0)
    if (owing > 0) this.watch()
  }

  #keep(message: DeliveredMessage, list: DeliveredMessage[]): void {
    message.own()
    list.push(message)
    this.bytes += message.size
  }

  #affords(size: number, topic: string, ticket: number): boolean {
    const { memoryBudget } = this.#host.options
    if (size > memoryBudget) {
      // It alone is too much, and would be again on the next connection: it is refused, not the server.
      this.#countDrop(topic)
      if (ticket !== noTicket) this.#host.settle(ticket, 0x97)
      return false
    }
    // One may always come: what else is held goes by itself.
    const fits = this.bytes === 0 || this.bytes + size <= this.#room
    if (ticket === noTicket) {
      if (!fits) this.#countDrop(topic)
      return fits
    }
    if (fits && !this.#overdrawn) return true
    this.#host.session.receiveWindow.takeBack()
    this.#overdraw()
    return false
  }

  // What had no room comes again on the next connection. What is held is handed out before, while somebody reads, or it came again, too.
  #overdraw(): void {
    const { platform, registry, session } = this.#host
    const { negotiated } = session
    if (this.#overdrawn) return
    this.#overdrawn = true
    let most = Number.POSITIVE_INFINITY
    let idle = 0
    const look = (): void => {
      // The end of the client is orderly, and says goodbye by itself.
      if (session.state !== 'connected' || session.negotiated !== negotiated || this.#host.states.stopping) return
      const left = session.receiveWindow.unsettled + this.bytes
      idle = left < most ? 0 : idle + 1
      most = left
      const reads = [...registry.consumers].some(({ attended, busy }) => attended || busy)
      if (reads && left > 0 && idle < mostIdleLooks) {
        this.#stopLook = platform.setTimer(look, lookAgain)
        return
      }
      session.close(overBudget(), 0x97)
      this.#host.links.pump()
    }
    look()
  }

  /** A consumer dropped a message unread. */
  handleDrop(consumer: Consumer, message: DeliveredMessage): void {
    this.#countDrop(message.topic)
    try {
      consumer.config.onDrop?.(message)
    } catch (error) {
      this.#host.log('error', 'onDrop threw: ', error)
    }
  }

  // Told at most once in an interval, with what came together meanwhile.
  #countDrop(topic: string): void {
    tally(this.#host, 'dropped')
    this.#dropped += 1
    this.#dropTopic = topic
    // While the client ends: all at once, at its end.
    if (this.#dropTimer === undefined && !this.#host.states.stopping) this.#tellDrops()
  }

  #tellDrops(): void {
    const count = this.#dropped
    this.#dropTimer = undefined
    if (count === 0) return
    this.#dropped = 0
    if (!this.#host.states.ended) this.#dropTimer = this.#host.platform.setTimer(() => this.#tellDrops(), dropInterval)
    this.#host.events.emit('drop', { direction: 'in', topic: this.#dropTopic, count, error: undefined })
  }

  // Nobody claimed it.
  #handOver(message: DeliveredMessage): void {
    tally(this.#host, 'unclaimed')
    message.settle(0)
    this.#host.log('debug', 'nobody subscribed to ', message.topic)
    this.#host.events.emit('unclaimed', { message })
  }

  #release(): void {
    this.#holding = false
    for (const message of this.#unclaimed.splice(0)) {
      this.bytes -= message.size
      this.#handOver(message)
    }
  }

  #checkProgress(): void {
    this.#stallTimer = undefined
    const { session, platform } = this.#host
    if (session.receiveWindow.unsettled === 0) return
    const now = platform.now()
    const oldest = session.receiveWindow.oldestTicket
    if (oldest !== this.#oldestTicket) {
      this.#oldestTicket = oldest
      this.#oldestSince = now
      this.#reported = false
    }
    const age = now - this.#oldestSince
    if (!this.#reported && (age >= stallAge || (session.receiveWindow.full && age >= stallCheck))) {
      this.#reported = true
      this.#host.log('warn', `we acknowledge nothing since ${Math.round(age)} ms`)
      this.#host.events.emit('stalled', { direction: 'in', subscription: this.#holder(oldest), age, inFlight: session.receiveWindow.unsettled })
    }
    this.watch()
  }

  // Each consumer once, however many of its filters match. A retained copy that is sent again may be for anybody.
  #recipientsOf(entries: readonly ReadRoute[], retain: boolean): Recipient[] {
    const recipients = new Map<Consumer, Recipient>()
    for (const entry of entries) {
      const audiences = retain ? this.#audiencesOf(entry) : [undefined]
      for (const [consumer, qos] of entry.members) {
        if (audiences.every((audience) => audience?.has(consumer) === false)) continue
        if (qos > 0 || !recipients.has(consumer)) recipients.set(consumer, { consumer, entry, owing: qos > 0 })
      }
    }
    return [...recipients.values()]
  }

  // A server that does both leaves it open.
  #audiencesOf(entry: ReadRoute): ReturnType<ReadRoute['audiencesOf']> {
    const sure = entry.retainHabit
    this.#habits |= sure
    return entry.audiencesOf(sure || this.#habits)
  }

  #holder(ticket: number): Consumer | undefined {
    for (const consumer of this.#host.registry.consumers) if (consumer.oldestTicket === ticket) return consumer
    return undefined
  }
}

function countUnknown(view: PublishView, matched: readonly ReadRoute[], counters: Counters): void {
  view.forEachSubscriptionIdentifier((identifier) => {
    if (!matched.some((entry) => entry.identifier === identifier)) counters.unknownIdentifiers += 1
  })
}

/** Why the budget ends a connection. */
function overBudget(): MqttError {
  return new MqttError('ERR_CONNECTION_LOST', 'memory budget spent', { outcome: 'unknown', reasonCode: 0x97, reasonName: nameOf(0x97) })
}
