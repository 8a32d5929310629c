/**
 * Sends SUBSCRIBE and UNSUBSCRIBE: in the order of the calls, as far as there are a connection and packet identifiers, again on the next connection
 * where a lost one left them without an answer.
 *
 * What an answer means is the registry's matter. It must never send on one connection what it has sent there already.
 */

import { tally } from '../../common/counters.js'
import { closedError, withOutcome } from '../../common/outcome.js'
import { Ring } from '../../common/ring.js'
import { SparseMap } from '../../common/sparse.js'
import type { MqttError } from '../../errors.js'
import type { Negotiated } from '../options/index.js'
import type { Blame } from '../session/refusal.js'
import type { SubscribeFilter, Suspicion } from './broker-subscription.js'
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
} from './pending-packets.js'
import type { SubscribeHost } from './ports.js'
import { Trial } from './trial.js'
import { answerUnsubscribe, isSuperseded, type Unsubscriber } from './unsubscribing.js'

/** A shorter queue is not swept for packets that are not needed any more. */
const leastSweep = 64
/** Filters in a packet of our own making that any server takes: AWS IoT takes no more. */
const usualFilters = 8
/** DISCONNECT reason codes that say no to a filter: Not authorized, Topic Filter invalid, Shared and Wildcard Subscriptions not supported. */
const refusals: readonly (number | undefined)[] = [0x87, 0x8f, 0x9e, 0xa2]

/** A filter that was granted before is refused after so many times as many connections: servers that are overloaded end connections, too. */
const oftenGranted = 2

/** What becomes of requests. */
export interface Answers extends Unsubscriber {
  /** The server ends connections instead of an answer to a packet with one filter: it is refused. */
  handleRefusal(packet: PendingPacket, cause: MqttError): void
  /** This one is left before it was answered, and not sent any more. */
  giveUp(asked: SubscribeFilter): void
  /** These are not asked for: a call fails with all of its filters, what was to be brought back one by one. */
  refuse(asked: readonly SubscribeFilter[], error: MqttError, restoring: boolean | undefined): void
}

/** Packets on their way. */
export class SubscribeSender {
  /** One for each call, oldest first. */
  readonly #queue = new Ring<PendingPacket>()
  /** Those of the oldest call, as the server takes them. */
  readonly #next = new Ring<PendingPacket>()
  /** Those at which a connection ended, one filter in each: what was blamed least comes first. */
  readonly #suspects: PendingPacket[] = []
  /** Without an answer. */
  readonly #sent = new SparseMap<number, PendingPacket>()
  #sweepAt = leastSweep
  readonly #host: SubscribeHost
  readonly #answers: Answers
  readonly #identifiers: Identifiers
  readonly #trial: Trial
  /** Most filters in a packet of our own making. */
  #most = usualFilters
  /** Where that was learned. */
  #endpoint: string

  constructor(host: SubscribeHost, answers: Answers, firstIdentifier: number) {
    this.#host = host
    this.#trial = new Trial(host)
    this.#answers = answers
    this.#identifiers = new Identifiers(firstIdentifier)
    this.#endpoint = host.connections.dialled.endpoint
  }

  /** Something waits to be sent. */
  get waiting(): boolean {
    return this.#queue.length + this.#suspects.length > 0
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
    this.#host.connections.connection?.writer.queueFlush()
  }

  /** What was sent under this identifier; it has its answer now. */
  take(packetId: number): PendingPacket | undefined {
    const packet = this.#sent.get(packetId)
    if (packet === undefined) return undefined
    this.#sent.delete(packetId)
    this.#trial.handleAnswer(packet)
    return packet
  }

  /** The same, where the answer does not fit what was sent. */
  takeMismatched(packetId: number): PendingPacket | undefined {
    const packet = this.take(packetId)
    if (packet !== undefined) this.#handleUnanswered([packet])
    return packet
  }

  /** The server took so many filters in one packet. */
  handleAnswered({ filters }: PendingPacket): void {
    this.#most = Math.max(this.#most, filters.length)
  }

  /** The server uses its identifier for a message of its own: once more under another one. False when that was tried. */
  repeat(packet: PendingPacket, packetId: number): boolean {
    const { connections, session } = this.#host
    if (packet.again || connections.connection === undefined) return false
    session.sendWindow.avoid(packetId)
    this.#send({ ...packet, again: true })
    return true
  }

  /** Puts what brings subscriptions back before everything else. */
  restore(filters: readonly SubscribeFilter[]): void {
    refill(this.#queue, [{ type: 'subscribe', filters, restoring: true }, ...this.#queue.drain()])
  }

  /** A connection is up. */
  handleConnected(): void {
    const { endpoint } = this.#host.connections.dialled
    if (endpoint !== this.#endpoint) this.#most = Math.min(this.#most, usualFilters)
    this.#endpoint = endpoint
  }

  /** The client is about to end: nothing is tried any more. */
  close(): void {
    if (this.#suspects.length === 0) return
    refill(this.#queue, this.#suspects.splice(0))
    this.flush()
  }

  /** Nothing is sent any more: calls that wait reject. */
  end(reason: MqttError): void {
    this.#trial.stop()
    for (const packet of this.#takeAll())
      if (packet.type === 'unsubscribe')
        packet.call.answer.reject(withOutcome(reason, packet.call.sent ? 'unknown' : 'not-sent'))
  }

  // Those that were sent first.
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

  /** Sends what waits, as far as there are a connection and packet identifiers. */
  flush(): void {
    const { connections, session } = this.#host
    // What was settled before leaves before: brokers are about that take the identifier of a message in flight for one of ours.
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

  /** What the end of the connection says about what has no answer. */
  blame(error: MqttError): Blame {
    return this.#trial.blame(error, this.#sent.size)
  }

  /** The connection is over: what has no answer is sent again on the next one, in the same order; what brought a session back, as that needs. */
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

  // They may hold more filters than the server takes.
  #handleUnanswered(packets: readonly PendingPacket[]): void {
    if (packets.some((packet) => isOurs(packet) && packet.filters.length > 1))
      this.#most = Math.max(1, Math.floor(this.#most / 2))
  }

  // It is to blame for the end of the connection: once too often?
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

  // There are some while there is a connection.
  get #limits(): Negotiated {
    return this.#host.session.negotiated as Negotiated
  }

  // Makes packets of the oldest call; false without one.
  #prepare(): boolean {
    const packet = this.#queue.peek()
    if (packet === undefined) return false
    const filters = packet.type === 'subscribe' ? this.#allowed(packet) : packet.filters
    // A refusal may have ended the connection: then the packet is made again.
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

  // It goes last and alone.
  #putAside(packet: PendingPacket): void {
    const suspicion = suspicionOfFirst(packet)
    const { strikes } = suspicion
    if (packet.type === 'unsubscribe' && this.#host.states.stopping) {
      // While the client ends there is no time for that: it goes once more with the others.
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

  // Sends the next suspect, when its time has come, or gives it up; false when neither is to be done now.
  #try(): boolean {
    const [packet] = this.#suspects
    const { connections, states } = this.#host
    if (packet === undefined || states.stopping) return false
    const over = this.#isOver(packet)
    if (!over && !this.#trial.admits(suspicionOfFirst(packet), this.#sent.size)) return false
    // The connection may have ended meanwhile.
    if (packet !== this.#suspects[0]) return true
    this.#suspects.shift()
    if (over) return true
    connections.connection?.writer.writeAcks()
    this.#trial.begin(packet)
    this.#send(packet)
    return true
  }

  // What was left, or subscribed to again, while it waited, is not sent.
  #isOver(packet: PendingPacket): boolean {
    if (packet.type === 'unsubscribe')
      return isSuperseded(this.#answers, packet, packet.filters[0] as string)
    const [asked] = packet.filters as [SubscribeFilter]
    if (asked.known.state === 'leaving') this.#answers.giveUp(asked)
    return asked.withdrawn
  }

  // What the server said it does not have is refused before a byte is sent.
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
    // On file before it is written: a listener of `packet` may leave again.
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
      // Not a byte of it left: there is nothing to undo.
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

// Of a packet with one filter. Another request for that may have been answered meanwhile.
function suspicionOfFirst(packet: PendingPacket): Suspicion {
  return suspicionOf(packet, packet.filters[0] as string | SubscribeFilter) ?? { strikes: 0 }
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
