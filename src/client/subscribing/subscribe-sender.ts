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
import type { SubscribeFilter } from './broker-subscription.js'
import { Identifiers, isWanted, objectionTo, type PendingPacket, type PendingSubscribe, packetOf, split, unanswered } from './pending-packets.js'
import type { SubscribingHost } from './ports.js'
import { answerUnsubscribe, isSuperseded, type Unsubscriber } from './unsubscribing.js'

/** A shorter queue is not swept for packets that are not needed any more. */
const leastSweep = 64

/** What becomes of requests. */
export interface Answers extends Unsubscriber {
  /** These are not asked for: a call fails with all of its filters, what was to be brought back one by one. */
  refuse(asked: readonly SubscribeFilter[], error: MqttError, restoring: boolean | undefined): void
}

/** Packets on their way. */
export class SubscribeSender {
  /** One for each call, oldest first. */
  readonly #queue = new Ring<PendingPacket>()
  /** Those of the oldest call, as the server takes them. */
  readonly #next = new Ring<PendingPacket>()
  /** Without an answer. */
  readonly #sent = new SparseMap<number, PendingPacket>()
  #sweepAt = leastSweep
  readonly #host: SubscribingHost
  readonly #answers: Answers
  readonly #identifiers: Identifiers

  constructor(host: SubscribingHost, answers: Answers) {
    this.#host = host
    this.#answers = answers
    this.#identifiers = new Identifiers(host.platform.random())
  }

  /** Something waits to be sent. */
  get waiting(): boolean {
    return this.#queue.length > 0
  }

  /** A packet leaves with everything else of this turn. */
  push(packet: PendingPacket): void {
    if (this.#queue.length >= this.#sweepAt) {
      refill(
        this.#queue,
        this.#queue.drain().filter(({ filters }) => filters.some(isWanted)),
      )
      this.#sweepAt = leastSweep + this.#queue.length * 2
    }
    this.#queue.push(packet)
    this.#host.links.connection?.writer.queueFlush()
  }

  /** What was sent under this identifier; it has its answer now. */
  take(packetId: number): PendingPacket | undefined {
    const packet = this.#sent.get(packetId)
    this.#sent.delete(packetId)
    return packet
  }

  /** The server uses its identifier for a message of its own: once more under another one. False when that was tried. */
  repeat(packet: PendingPacket, packetId: number): boolean {
    const { links, session } = this.#host
    if (packet.again || links.connection === undefined) return false
    session.sendWindow.avoid(packetId)
    this.#send({ ...packet, again: true })
    return true
  }

  /** Puts what brings subscriptions back before everything else. */
  restore(filters: readonly SubscribeFilter[]): void {
    refill(this.#queue, [{ type: 'subscribe', filters, restoring: true }, ...this.#queue.drain()])
  }

  /** Nothing is sent any more: calls that wait reject. */
  end(reason: MqttError): void {
    for (const packet of this.#takeAll())
      if (packet.type === 'unsubscribe') packet.call.answer.reject(withOutcome(reason, packet.call.sent ? 'unknown' : 'not-sent'))
  }

  // Those that were sent first.
  #takeAll(): PendingPacket[] {
    const all = [...this.#sent.values(), ...this.#next.drain(), ...this.#queue.drain()]
    this.#sent.clear()
    return all
  }

  /** Sends what waits, as far as there are a connection and packet identifiers. */
  flush(): void {
    const { links, session } = this.#host
    // What was settled before leaves before: brokers are about that take the identifier of a message in flight for one of ours.
    if (this.#next.length + this.#queue.length > 0) links.connection?.writer.writeAcks()
    while (links.connection !== undefined && session.sendWindow.hasIdentifier) {
      const packet = this.#next.shift()
      const filters = packet?.filters.filter(isWanted) ?? []
      if (filters.length > 0) this.#send({ ...packet, filters } as PendingPacket)
      else if (packet === undefined && !this.#prepare()) return
    }
  }

  /** The connection is over: what has no answer is sent again on the next one, in the same order; what brought a session back, as that needs. */
  handleLost(): void {
    const again = unanswered(this.#takeAll(), (packet, filter) => isSuperseded(this.#answers, packet, filter))
    refill(this.#queue, again)
  }

  // There are some while there is a connection.
  get #limits(): Negotiated {
    return this.#host.session.negotiated as Negotiated
  }

  // Makes packets of the oldest call; false when there is none.
  #prepare(): boolean {
    const packet = this.#queue.peek()
    if (packet === undefined) return false
    const filters = packet.type === 'subscribe' ? this.#allowed(packet) : packet.filters
    // A refusal may have ended the connection: then it is made anew.
    if (this.#queue.peek() !== packet) return true
    this.#queue.shift()
    refill(this.#next, split({ ...packet, filters } as PendingPacket, this.#host.options.maxFiltersPerSubscribe, this.#limits.maximumPacketSize))
    return true
  }

  // What the server said it does not have is refused before a byte is sent.
  #allowed(packet: PendingSubscribe): SubscribeFilter[] {
    const wanted = packet.filters.filter(isWanted)
    for (const asked of wanted) {
      const error = isWanted(asked) ? objectionTo(asked, packet, this.#limits) : undefined
      if (error !== undefined) this.#answers.refuse(packet.restoring ? [asked] : wanted, error, packet.restoring)
    }
    const allowed = wanted.filter(isWanted)
    if (allowed.length > 0) this.#identify(allowed, packet.identifier)
    return allowed
  }

  #identify(filters: readonly SubscribeFilter[], chosen: number | undefined): void {
    const { byFilter } = this.#answers.membership
    if (chosen !== undefined) this.#identifiers.take(chosen, byFilter.values())
    const fresh = chosen ?? (this.#limits.subscriptionIdentifierAvailable ? this.#identifiers.fresh(byFilter.values()) : 0)
    for (const { known } of filters) if (known.state === 'new' || fresh === 0) known.identifier = fresh
  }

  #send(packet: PendingPacket): void {
    const { links, session } = this.#host
    const packetId = session.sendWindow.request(packet.type, packet.filters.length)
    // On file before it is written: a listener of `packet` may leave again.
    this.#sent.set(packetId, packet)
    tally(this.#host, `${packet.type}s`)
    const asked = packet.type === 'subscribe' ? packet.filters : []
    const fresh = asked.filter(({ known }) => known.state === 'new')
    for (const each of asked) handleSent(each)
    try {
      links.connection?.writer.send(packetOf(packet, packetId, this.#limits))
      if (packet.type === 'unsubscribe') packet.call.sent = true
    } catch (error) {
      session.sendWindow.withdraw(packetId)
      this.#sent.delete(packetId)
      // Not a byte of it left: there is nothing to undo.
      for (const { known } of fresh) known.state = 'new'
      if (packet.type === 'subscribe') this.#answers.refuse(packet.filters, error as MqttError, packet.restoring)
      else answerUnsubscribe(this.#answers, packet, [], error as MqttError)
    }
  }
}

function refill(queue: Ring<PendingPacket>, packets: readonly PendingPacket[]): void {
  for (const packet of packets) queue.push(packet)
}

function handleSent(asked: SubscribeFilter): void {
  const { known, calls } = asked
  asked.sent = true
  if (known.state === 'new') known.state = 'sent'
  for (const call of calls.keys()) call.sent = true
  // What brings a subscription back is for all who read it.
  const isForAll = calls.size === 0 || known.unconfirmed
  const waiting = [...calls].filter(([, retained]) => retained).map(([{ consumer }]) => consumer)
  asked.audience = isForAll ? undefined : new Set(waiting)
}
