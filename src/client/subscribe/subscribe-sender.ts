/**
 * Sends SUBSCRIBE and UNSUBSCRIBE in the order of the calls, as connection and packet identifiers
 * allow, and repeats unanswered ones on the next connection.
 *
 * `Answers` decides what an answer means. Nothing is sent twice on one connection, except after
 * reason code 0x91 (see `repeat`).
 */

import { tally } from '../../common/counters.js'
import { closedError, withOutcome } from '../../common/outcome.js'
import { Ring } from '../../common/ring.js'
import { SparseMap } from '../../common/sparse.js'
import type { MqttError } from '../../errors.js'
import type { Negotiated } from '../options/index.js'
import type { Blame } from '../session/refusal.js'
import type { SubscribeFilter, Suspicion } from './broker-subscription.js'
import { Trial } from './filter-trial.js'
import type { SubscribeHost } from './ports.js'
import {
  exonerate,
  Identifiers,
  isOurs,
  isWanted,
  objectionTo,
  type PendingPacket,
  type PendingSubscribe,
  packetOf,
  split,
  suspect,
  suspicionOf,
  unanswered,
} from './subscribe-packets.js'
import { answerUnsubscribe, isSuperseded, type Unsubscriber } from './unsubscribing.js'

/** A shorter queue is not swept for withdrawn packets. */
const leastSweep = 64
/** Number of filters that any server accepts in a packet composed here. AWS IoT allows no more. */
const usualFilters = 8
/**
 * DISCONNECT reason codes that reject a filter: Not authorized, Topic Filter invalid, Shared and
 * Wildcard Subscriptions not supported.
 */
const refusals: readonly (number | undefined)[] = [0x87, 0x8f, 0x9e, 0xa2]

/**
 * A filter that was granted before needs this factor more strikes to be refused, because overloaded
 * servers end connections, too.
 */
const oftenGranted = 2

/** What happens to requests. */
export interface Answers extends Unsubscriber {
  /**
   * The server ends connections instead of answering this packet, which has one filter: treat it as
   * refused.
   */
  handleRefusal(packet: PendingPacket, cause: MqttError): void
  /** This request's filter is being left; it is not sent any more. */
  giveUp(asked: SubscribeFilter): void
  /**
   * These requests cannot be made. A call fails with all of its filters; restored subscriptions
   * fail one by one.
   */
  refuse(asked: readonly SubscribeFilter[], error: MqttError, restoring: boolean | undefined): void
}

/** The SUBSCRIBE and UNSUBSCRIBE packets of one client. */
export class SubscribeSender {
  /** One packet for each call, not split yet, oldest first. */
  readonly #queue = new Ring<PendingPacket>()
  /** The oldest of them, split as the server requires. */
  readonly #next = new Ring<PendingPacket>()
  /** Suspects, one filter in each packet, fewest strikes first. */
  readonly #suspects: PendingPacket[] = []
  /** Sent and unanswered, by packet identifier. */
  readonly #sent = new SparseMap<number, PendingPacket>()
  #sweepAt = leastSweep
  readonly #host: SubscribeHost
  readonly #answers: Answers
  readonly #identifiers: Identifiers
  readonly #trial: Trial
  /** Most filters in a packet composed here. */
  #most = usualFilters
  /** The endpoint that `#most` was learnt on. */
  #endpoint: string

  constructor(host: SubscribeHost, answers: Answers, firstIdentifier: number) {
    this.#host = host
    this.#trial = new Trial(host)
    this.#answers = answers
    this.#identifiers = new Identifiers(firstIdentifier)
    this.#endpoint = host.connections.dialled.endpoint
  }

  /** True when a packet waits to be sent. */
  get waiting(): boolean {
    return this.#queue.length + this.#suspects.length > 0
  }

  /** Queues a packet; it is sent with everything else of this turn. */
  push(packet: PendingPacket): void {
    if (this.#queue.length >= this.#sweepAt) {
      refill(
        this.#queue,
        this.#queue.drain().filter(({ filters }) => filters.some(isWanted)),
      )
      this.#sweepAt = leastSweep + this.#queue.length * 2
    }
    this.#queue.push(packet)
    this.#host.connections.connection?.writer.queueFlush()
  }

  /** Removes and returns the packet that was answered under this identifier. */
  take(packetId: number): PendingPacket | undefined {
    const packet = this.#sent.get(packetId)
    if (packet === undefined) return undefined
    this.#sent.delete(packetId)
    this.#trial.handleAnswer(packet)
    return packet
  }

  /** The same for an answer that does not match the request. */
  takeMismatched(packetId: number): PendingPacket | undefined {
    const packet = this.take(packetId)
    if (packet !== undefined) this.#handleUnanswered([packet])
    return packet
  }

  /** The server accepted this many filters in one packet. */
  handleAnswered({ filters }: PendingPacket): void {
    this.#most = Math.max(this.#most, filters.length)
  }

  /**
   * The server reported the identifier as in use by itself: sends the packet again under another.
   * False when that was already tried.
   */
  repeat(packet: PendingPacket, packetId: number): boolean {
    const { connections, session } = this.#host
    if (packet.again || connections.connection === undefined) return false
    session.sendWindow.avoid(packetId)
    this.#send({ ...packet, again: true })
    return true
  }

  /** Puts requests that restore subscriptions before everything else. */
  restore(filters: readonly SubscribeFilter[]): void {
    refill(this.#queue, [{ type: 'subscribe', filters, restoring: true }, ...this.#queue.drain()])
  }

  /** A connection is up. */
  handleConnected(): void {
    const { endpoint } = this.#host.connections.dialled
    if (endpoint !== this.#endpoint) this.#most = Math.min(this.#most, usualFilters)
    this.#endpoint = endpoint
  }

  /**
   * The client is about to end: nothing is tried any more. A suspect UNSUBSCRIBE is sent with the
   * others, a suspect SUBSCRIBE is not sent.
   */
  close(): void {
    if (this.#suspects.length === 0 && this.#trial.alone === undefined) return
    refill(this.#queue, this.#suspects.splice(0))
    this.flush()
  }

  /** The client has ended: waiting unsubscribe calls reject. */
  end(reason: MqttError): void {
    this.#trial.stop()
    for (const packet of this.#takeAll())
      if (packet.type === 'unsubscribe')
        packet.call.answer.reject(withOutcome(reason, packet.call.sent ? 'unknown' : 'not-sent'))
  }

  // All packets, sent ones first.
  #takeAll(): PendingPacket[] {
    const all = [
      ...this.#sent.values(),
      ...this.#next.drain(),
      ...this.#suspects.splice(0),
      ...this.#queue.drain(),
    ]
    this.#sent.clear()
    return all
  }

  /** Sends what waits, as connection and packet identifiers allow. */
  flush(): void {
    const { connections, session } = this.#host
    // Acknowledgements leave first: some brokers confuse the identifier of an unacknowledged
    // message of theirs with one of ours.
    if (this.#next.length + this.#queue.length > 0) connections.connection?.writer.writeAcks()
    while (
      connections.connection !== undefined &&
      session.sendWindow.hasIdentifier &&
      !this.#trial.silent
    ) {
      const packet = this.#next.shift()
      const filters = packet?.filters.filter(isWanted) ?? []
      if (filters.length > 0) this.#send({ ...packet, filters } as PendingPacket)
      else if (packet === undefined && !this.#prepare() && !this.#try()) return
    }
  }

  /** What the end of the connection says about unanswered requests. */
  blame(error: MqttError): Blame {
    return this.#trial.blame(error, this.#sent.size)
  }

  /**
   * The connection is lost: unanswered requests are repeated on the next one in the same order,
   * except those that only restored subscriptions.
   */
  handleLost(error: MqttError, blame: Blame): void {
    const sent = [...this.#sent.values()]
    this.#handleUnanswered(sent)
    if (blame !== undefined) for (const packet of sent) suspect(packet)
    const { alone } = this.#trial
    const blamed = blame === 'blamed' ? alone : undefined
    const refused = blamed !== undefined && this.#isRefused(blamed, error) ? blamed : undefined
    const clears = blamed === undefined && !this.#host.states.stopping && this.#trial.isPeers(error)
    this.#trial.handleLost()
    const rest = this.#takeAll().filter((packet) => packet !== refused)
    if (clears) for (const packet of rest) exonerate(packet)
    const again = unanswered(rest, (packet, filter) => isSuperseded(this.#answers, packet, filter))
    refill(this.#queue, again)
    if (refused !== undefined) this.#answers.handleRefusal(refused, error)
  }

  // The packet may have held more filters than the server accepts: later ones hold half.
  #handleUnanswered(packets: readonly PendingPacket[]): void {
    if (packets.some((packet) => isOurs(packet) && packet.filters.length > 1))
      this.#most = Math.max(1, Math.floor(this.#most / 2))
  }

  // Counts a strike; true when the filter is to be treated as refused.
  #isRefused(packet: PendingPacket, { reasonCode }: MqttError): boolean {
    const { poisonAfter } = this.#host.options.subscriptions
    const [asked] = packet.filters
    const suspicion = suspicionOfFirst(packet)
    suspicion.strikes += 1
    const { filter, known } =
      typeof asked === 'string' ? { filter: asked } : (asked as SubscribeFilter)
    const most = known?.grantedQos === undefined ? poisonAfter : poisonAfter * oftenGranted
    this.#host.log(
      'warn',
      `the server ended the connection at ${packet.type.toUpperCase()} `,
      filter,
      ` (${suspicion.strikes} of ${most})`,
    )
    return (
      most < Number.POSITIVE_INFINITY &&
      (suspicion.strikes >= most || refusals.includes(reasonCode))
    )
  }

  // Only called while connected.
  get #limits(): Negotiated {
    return this.#host.session.negotiated as Negotiated
  }

  // Splits the oldest waiting packet; false when no packet waits.
  #prepare(): boolean {
    const packet = this.#queue.peek()
    if (packet === undefined) return false
    const filters = packet.type === 'subscribe' ? this.#allowed(packet) : packet.filters
    // A refusal may have ended the connection and refilled the queue.
    if (this.#queue.peek() !== packet) return true
    this.#queue.shift()
    const { maxFiltersPerSubscribe } = this.#host.options
    const most =
      maxFiltersPerSubscribe === Number.POSITIVE_INFINITY && isOurs(packet)
        ? this.#most
        : maxFiltersPerSubscribe
    const part = (suspected: boolean, size: number): PendingPacket[] => {
      const those = (filters as (string | SubscribeFilter)[]).filter(
        (asked) => (suspicionOf(packet, asked) !== undefined) === suspected,
      )
      return split(
        { ...packet, filters: those } as PendingPacket,
        size,
        this.#limits.maximumPacketSize,
      )
    }
    refill(this.#next, part(false, most))
    for (const each of part(true, 1)) this.#putAside(each)
    return true
  }

  // Queues a suspect, to be sent alone after everything else.
  #putAside(packet: PendingPacket): void {
    const suspicion = suspicionOfFirst(packet)
    const { strikes } = suspicion
    if (packet.type === 'unsubscribe' && this.#host.states.stopping) {
      // While the client ends there is no time for trials: a suspect UNSUBSCRIBE is sent once more
      // with the others.
      suspicion.strikes = 1
      if (strikes === 0) this.#next.push(packet)
      else packet.call.answer.reject(withOutcome(closedError(), 'unknown'))
      return
    }
    let at = this.#suspects.length
    while (at > 0 && suspicionOfFirst(this.#suspects[at - 1] as PendingPacket).strikes > strikes)
      at -= 1
    this.#suspects.splice(at, 0, packet)
  }

  // Sends the next suspect if its time has come; false when there is nothing to do now.
  #try(): boolean {
    const [packet] = this.#suspects
    const { connections, states } = this.#host
    if (packet === undefined || states.stopping) return false
    const over = this.#isOver(packet)
    if (!over && !this.#trial.admits(suspicionOfFirst(packet), this.#sent.size)) return false
    // The check may have ended the connection.
    if (packet !== this.#suspects[0]) return true
    this.#suspects.shift()
    if (over) return true
    connections.connection?.writer.writeAcks()
    this.#trial.begin(packet)
    this.#send(packet)
    return true
  }

  // True when the filter was left, or subscribed again, while the suspect waited: it is not sent.
  #isOver(packet: PendingPacket): boolean {
    if (packet.type === 'unsubscribe')
      return isSuperseded(this.#answers, packet, packet.filters[0] as string)
    const [asked] = packet.filters as [SubscribeFilter]
    if (asked.known.state === 'leaving') this.#answers.giveUp(asked)
    return asked.withdrawn
  }

  // Refuses what the server does not support before a byte is sent, and returns the rest.
  #allowed(packet: PendingSubscribe): SubscribeFilter[] {
    const wanted = packet.filters.filter(isWanted)
    for (const asked of wanted) {
      const error = isWanted(asked) ? objectionTo(asked, packet, this.#limits) : undefined
      if (error !== undefined)
        this.#answers.refuse(packet.restoring ? [asked] : wanted, error, packet.restoring)
    }
    const allowed = wanted.filter(isWanted)
    if (allowed.length > 0) this.#identify(allowed, packet.identifier)
    return allowed
  }

  #identify(filters: readonly SubscribeFilter[], chosen: number | undefined): void {
    const { byFilter } = this.#answers.membership
    if (chosen !== undefined) this.#identifiers.take(chosen, byFilter.values())
    const fresh =
      chosen ??
      (this.#limits.subscriptionIdentifierAvailable
        ? this.#identifiers.fresh(byFilter.values())
        : 0)
    for (const { known } of filters)
      if (known.state === 'new' || fresh === 0) known.identifier = fresh
  }

  #send(packet: PendingPacket): void {
    const { connections, session } = this.#host
    const packetId = session.sendWindow.request(packet.type, packet.filters.length)
    // Registered before it is written, because a `packet` listener may unsubscribe.
    this.#sent.set(packetId, packet)
    if (packet !== this.#trial.alone) this.#trial.alone = undefined
    tally(this.#host, `${packet.type}s`)
    const asked = packet.type === 'subscribe' ? packet.filters : []
    const fresh = asked.filter(({ known }) => known.state === 'new')
    for (const each of asked) handleSent(each)
    try {
      connections.connection?.writer.send(packetOf(packet, packetId, this.#limits))
      if (packet.type === 'unsubscribe') packet.call.sent = true
    } catch (error) {
      session.sendWindow.withdraw(packetId)
      this.#sent.delete(packetId)
      this.#trial.alone = undefined
      // None of its bytes left, so there is nothing to undo.
      for (const { known } of fresh) known.state = 'new'
      if (packet.type === 'subscribe')
        this.#answers.refuse(packet.filters, error as MqttError, packet.restoring)
      else answerUnsubscribe(this.#answers, packet, [], error as MqttError)
    }
  }
}

function refill(queue: Ring<PendingPacket>, packets: readonly PendingPacket[]): void {
  for (const packet of packets) queue.push(packet)
}

// The suspicion of a packet with one filter; another request may have cleared it meanwhile.
function suspicionOfFirst(packet: PendingPacket): Suspicion {
  return suspicionOf(packet, packet.filters[0] as string | SubscribeFilter) ?? { strikes: 0 }
}

function handleSent(asked: SubscribeFilter): void {
  const { known, calls } = asked
  asked.sent = true
  if (known.state === 'new') known.state = 'sent'
  for (const call of calls.keys()) call.sent = true
  // A restored subscription is for all its consumers.
  const isForAll = calls.size === 0 || known.unconfirmed
  const waiting = [...calls].filter(([, retained]) => retained).map(([{ consumer }]) => consumer)
  asked.audience = isForAll ? undefined : new Set(waiting)
}
