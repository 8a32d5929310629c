/**
 * Routes incoming messages to consumers, and puts back what they leave unread.
 *
 * It owns no consumer and no connection. A message that waits for a reader is never acknowledged
 * here, and the memory budget is never exceeded except as `Budget` allows.
 */

import { tally } from '../../common/counters.js'
import type { Piece } from '../../common/message-memory.js'
import { SparseSet } from '../../common/sparse.js'
import { StallWatch, stallAge, stallCheck } from '../../common/stall-watch.js'
import type { PublishView } from '../../wire/publish.js'
import type { TopicRecord } from '../../wire/topic-table.js'
import type { TopicTrie } from '../../wire/topics.js'
import { noTicket } from '../session/receive-window.js'
import { Budget } from './budget.js'
import { OverflowSweep } from './buffer.js'
import type { Consumer } from './consumer.js'
import { DropReport } from './drop-report.js'
import { costOf, type DeliveredMessage } from './message.js'
import { MessageFactory } from './message-factory.js'
import type { DeliverHost, Movable } from './ports.js'
import { type ReadRoute, type Recipient, Recipients } from './recipients.js'
import { isOwed, SharedOutcome } from './shared-outcome.js'
import { Unclaimed } from './unclaimed.js'

/** The router of one client. */
export class MessageRouter {
  readonly drops: DropReport
  readonly budget: Budget
  /** Buffers with messages in shared memory. */
  readonly unmoved = new SparseSet<Movable>()
  /** Consumers that borrow messages from read buffers. */
  readonly borrowers = new SparseSet<Consumer>()
  readonly #host: DeliverHost<Consumer>
  readonly #trie: TopicTrie<ReadRoute>
  readonly #audience = new Recipients()
  #unclaimed: Unclaimed | undefined
  #sweep: OverflowSweep | undefined
  #factory: MessageFactory | undefined
  #watch: StallWatch | undefined

  constructor(host: DeliverHost<Consumer>, trie: TopicTrie<ReadRoute>) {
    this.#host = host
    this.#trie = trie
    this.drops = new DropReport(host)
    this.budget = new Budget(host, this.drops)
  }

  get sweep(): OverflowSweep {
    this.#sweep ??= new OverflowSweep(this.#host.platform)
    return this.#sweep
  }

  get factory(): MessageFactory {
    this.#factory ??= new MessageFactory(this.#host)
    return this.#factory
  }

  get unclaimed(): Unclaimed {
    this.#unclaimed ??= new Unclaimed(this.#host, this.budget)
    return this.#unclaimed
  }

  /**
   * A connection is up: what was learnt on the previous one is discarded. `resumed`: messages
   * without a subscription are held for a while.
   */
  handleConnected(resumed: boolean): void {
    this.budget.overdrawn = false
    this.drops.handleConnected()
    this.#audience.handleConnected()
    if (resumed) this.unclaimed.hold()
  }

  /** A read begins. `window` is its buffer, when it may be lent. */
  handleRead(window: Piece | undefined): void {
    this.factory.window = window
    this.budget.handleRead()
    if (this.unmoved.size > 0) this.moveOut(false)
  }

  /** The read buffer belongs to its owner again. */
  handleReadEnd(): void {
    this.factory.handleReadEnd()
    this.#sweep?.queue()
  }

  /**
   * Copies waiting messages out of memory that they alone would keep alive; out of read windows
   * only with `must`.
   */
  moveOut(must: boolean): void {
    if (must) for (const { buffer } of this.#host.subscriptions.consumers) buffer.moveOut(true)
    else for (const buffer of this.unmoved) buffer.moveOut(false)
    this.unmoved.clear()
  }

  /**
   * A message came in; `ticket` is `noTicket` at QoS 0. `limit` is where the received bytes end in
   * the `bytes` of the view.
   */
  handleMessage(
    view: PublishView,
    record: TopicRecord,
    ticket: number,
    limit = view.payloadEnd,
  ): void {
    const { counters } = this.#host
    if (counters !== undefined) counters.received += 1
    this.factory.limit = limit
    const matched =
      record.version === this.#trie.version ? (record.route as ReadRoute[]) : this.#match(record)
    // The usual case: one filter with one reader.
    const sole =
      matched.length === 1 && !view.retain && counters === undefined ? matched[0] : undefined
    if (sole?.sole !== undefined && this.#audience.isOwn(view, sole))
      return this.#deliverToOne(view, record.name, ticket, sole, sole.sole, sole.soleQos > 0)
    const entries = this.#audience.identify(view, matched, counters)
    // A copy for a filter that was left is no loss and is acknowledged. A copy of a shared
    // subscription is reported, because no other member of the group gets it.
    const wanted =
      entries.length > 0 ||
      matched.length === 0 ||
      this.#audience.leftBy(view).some(({ grouped }) => grouped)
    if (wanted) this.#deliverToAll(view, record.name, ticket, entries)
    else if (ticket !== noTicket) this.#host.settle(ticket, 0)
  }

  #match(record: TopicRecord): ReadRoute[] {
    const entries = this.#trie.matchAll(record.name)
    record.route = entries
    record.version = this.#trie.version
    return entries
  }

  #deliverToOne(
    view: PublishView,
    topic: string,
    ticket: number,
    entry: ReadRoute,
    consumer: Consumer,
    owing: boolean,
  ): void {
    const owed = owing ? ticket : noTicket
    // A handler of borrowed messages sees the message while it is being read.
    if (consumer.mayShow && !this.budget.overdrawn && !this.budget.granted)
      this.factory.show(view, topic, owed, entry, consumer)
    else {
      const size = costOf(view, topic)
      if (!this.budget.affords(size, topic, ticket, view.qos)) return
      consumer.push(this.factory.make(view, topic, size, owed, entry, consumer))
    }
    if (ticket === noTicket) return
    if (owed === noTicket) this.#host.settle(ticket, 0)
    else this.#awaitSettling()
  }

  #deliverToAll(
    view: PublishView,
    topic: string,
    ticket: number,
    entries: readonly ReadRoute[],
  ): void {
    const recipients = this.#audience.recipientsOf(entries, view.retain && !view.dup)
    const [first] = recipients
    if (first !== undefined && recipients.length === 1)
      return this.#deliverToOne(view, topic, ticket, first.entry, first.consumer, first.owing)
    if (first !== undefined) return this.#deliver(view, topic, ticket, recipients)
    const detached = entries.find((entry) => entry.detached)
    if (entries.length > 0 && (detached === undefined || ticket === noTicket)) {
      // Subscribed, but the reader has left: the copy is acknowledged and dropped.
      if (ticket !== noTicket) this.#host.settle(ticket, 0)
      return this.drops.add(topic)
    }
    const size = costOf(view, topic)
    if (!this.budget.affords(size, topic, ticket, view.qos)) return
    const message = this.factory.makeUnread(view, topic, size, ticket, detached)
    if (detached !== undefined) this.#store(message, detached.requeued)
    else this.unclaimed.add(message)
    this.#awaitSettling()
  }

  /** A message exceeded `maximumPacketSize`: only the part before its payload was read. */
  handleTooLarge({ qos }: PublishView, topic: string, size: number): void {
    tally(this.#host, 'received')
    this.drops.handleTooLarge(
      topic,
      qos,
      size,
      this.#host.options.maximumPacketSize,
      'maximumPacketSize',
    )
  }

  /** A message came in again that is being handled or was already received. */
  handleRepeat(): void {
    tally(this.#host, 'duplicates')
    this.#awaitSettling()
  }

  /** A consumer joined filters: messages kept for them go to it in the order of arrival. */
  handleJoined(consumer: Consumer, entries: ReadonlySet<ReadRoute>): void {
    const waiting = [...entries].flatMap((entry) => entry.requeued.splice(0))
    waiting.push(
      ...(this.#unclaimed?.claim((topic) =>
        this.#trie.matchAll(topic).find((entry) => entries.has(entry)),
      ) ?? []),
    )
    for (const message of waiting.sort((first, second) => first.ticket - second.ticket)) {
      this.budget.add(-message.size)
      if (message.settled) continue
      consumer.push(message)
    }
  }

  /**
   * Messages were left unacknowledged: kept for the next consumer of their filter, if there can be
   * one.
   */
  requeue(messages: readonly DeliveredMessage[]): void {
    for (const message of messages) {
      const entry = message.origin as ReadRoute
      const { over } = entry
      // If others read on, a share is left to them, and anything else goes to one of them.
      if (!over && message.giveUp()) continue
      message.own()
      if (over) this.unclaimed.add(message)
      else this.#passOn(message, entry)
    }
    this.#awaitSettling()
  }

  #passOn(message: DeliveredMessage, entry: ReadRoute): void {
    for (const [consumer, qos] of entry.takers) if (qos > 0) return consumer.push(message)
    // Readers at QoS 0 already had their copy.
    if (entry.takers.size > 0) message.settle(0)
    else this.#store(message, entry.requeued)
  }

  /** A filter has no subscription any more. */
  handleForgotten(entry: ReadRoute): void {
    this.#audience.handleLeft(entry)
    for (const message of entry.requeued.splice(0)) {
      this.budget.add(-message.size)
      message.settle(0)
    }
  }

  /** A subscription was left or replaced. */
  handleLeft(entry: ReadRoute): void {
    this.#audience.handleLeft(entry)
  }

  /** The client has ended: everything is released, and losses are reported. */
  stop(): void {
    this.#watch?.stop()
    this.#unclaimed?.stop()
    this.budget.stop()
    this.drops.stop()
  }

  #deliver(
    view: PublishView,
    topic: string,
    ticket: number,
    recipients: readonly Recipient[],
  ): void {
    const size = costOf(view, topic)
    if (!this.budget.affords(size, topic, ticket, view.qos, recipients.length)) return
    const owing = ticket === noTicket ? 0 : recipients.filter((recipient) => recipient.owing).length
    const { settler } = this.factory
    const outcome = owing > 1 ? new SharedOutcome(settler, ticket, owing) : settler
    // All copies are made before any is pushed, so that shared memory is known to be shared.
    const messages = recipients.map(({ consumer, entry, owing: owes }) =>
      this.factory.make(view, topic, size, owes ? ticket : noTicket, entry, consumer, outcome),
    )
    for (const [index, message] of messages.entries())
      (recipients[index] as Recipient).consumer.push(message)
    // Consumers that asked for QoS 0 never delay an acknowledgement.
    if (ticket !== noTicket && owing === 0) settler.settle(ticket, 0)
    if (owing > 0) this.#awaitSettling()
  }

  #awaitSettling(): void {
    this.#watch ??= inboundWatch(this.#host)
    this.#watch.start()
  }

  #store(message: DeliveredMessage, list: DeliveredMessage[]): void {
    message.own()
    list.push(message)
    this.budget.add(message.size)
  }
}

// Watches whether the application settles the messages it owes an acknowledgement for.
function inboundWatch(host: DeliverHost<Consumer>): StallWatch {
  const { receiveWindow } = host.session
  return new StallWatch(host.platform, {
    open: () => receiveWindow.unsettled,
    progress: () => receiveWindow.oldestTicket,
    patience: () => (receiveWindow.full ? stallCheck : stallAge),
    report: (age) => {
      host.log('warn', `we acknowledge nothing since ${Math.round(age)} ms`)
      const oldest = receiveWindow.oldestTicket
      const holds = ({ unacknowledged, buffer }: Consumer): boolean =>
        [unacknowledged, buffer].some(({ messages }) => messages.find(isOwed)?.ticket === oldest)
      const subscription = [...host.subscriptions.consumers].find(holds)?.subscription
      host.events.emit('stalled', {
        direction: 'in',
        subscription,
        age,
        inFlight: receiveWindow.unsettled,
      })
    },
  })
}
