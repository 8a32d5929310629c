/**
 * Queued and unanswered SUBSCRIBE and UNSUBSCRIBE packets, and how filters are split into packets
 * of the size that the server accepts. Data and pure functions; `subscribe-sender.ts` sends them.
 */

import type { Deferred } from '../../common/abort.js'
import { optionError, unsupported } from '../../common/schema.js'
import { SparseSet } from '../../common/sparse.js'
import { describe, type MqttError, printable } from '../../errors.js'
import { MAXIMUM_VARIABLE_BYTE_INTEGER } from '../../wire/constants.js'
import type { SubscribePacket, UnsubscribePacket, UserProperties } from '../../wire/packets.js'
import { utf8Length } from '../../wire/utf8.js'
import type { Negotiated, UnsubscribeResult } from '../options/index.js'
import { checkFilter } from '../session/limits.js'
import {
  type BrokerSubscription,
  type SubscribeFilter,
  type Suspicion,
  withdraw,
} from './broker-subscription.js'

/** Upper bound of the bytes of a SUBSCRIBE or UNSUBSCRIBE without filters and user properties. */
const packetOverhead = 32
/** Bytes of a filter besides its text. */
const filterOverhead = 3
/** Fewest registered identifiers that are worth a recount. */
const leastRecount = 64

/** A SUBSCRIBE; before it is sent it may hold more filters than fit one packet. */
export interface PendingSubscribe {
  readonly type: 'subscribe'
  readonly filters: readonly SubscribeFilter[]
  readonly userProperties?: UserProperties | undefined
  /** The Subscription Identifier, if the application chose one. */
  readonly identifier?: number | undefined
  /** It restores subscriptions after a lost session, and is useless on a later connection. */
  readonly restoring?: boolean
  /** It is already the second attempt, under another packet identifier. */
  readonly again?: boolean
}

/** One call of unsubscribe. */
export interface UnsubscribeCall {
  /** Its filters, each with the local subscription. */
  readonly known: ReadonlyMap<string, BrokerSubscription | undefined>
  /** By filter. */
  readonly results: Map<string, UnsubscribeResult>
  readonly answer: Deferred<UnsubscribeResult[]>
  /** Suspected filters, on which a connection ended. */
  suspicions?: Map<string, Suspicion>
  /** True once one of its packets was sent. */
  sent: boolean
}

/** An UNSUBSCRIBE; before it is sent it may hold more filters than fit one packet. */
export interface PendingUnsubscribe {
  readonly type: 'unsubscribe'
  readonly filters: string[]
  readonly userProperties?: UserProperties | undefined
  readonly call: UnsubscribeCall
  /** It is already the second attempt, under another packet identifier. */
  readonly again?: boolean
}

/** A SUBSCRIBE or an UNSUBSCRIBE. */
export type PendingPacket = PendingSubscribe | PendingUnsubscribe

/** False for a withdrawn request. */
export function isWanted(asked: SubscribeFilter | string): boolean {
  return typeof asked === 'string' || !asked.withdrawn
}

/** The evidence against a filter of this packet. */
export function suspicionOf(
  packet: PendingPacket,
  asked: SubscribeFilter | string,
): Suspicion | undefined {
  return typeof asked === 'string'
    ? (packet as PendingUnsubscribe).call.suspicions?.get(asked)
    : asked.known.suspicion
}

/** A connection ended while these were unanswered: marks all filters as suspects. */
export function suspect(packet: PendingPacket): void {
  if (packet.type === 'subscribe')
    for (const { known } of packet.filters) known.suspicion ??= { strikes: 0 }
  else {
    packet.call.suspicions ??= new Map()
    for (const filter of packet.filters)
      if (!packet.call.suspicions.has(filter)) packet.call.suspicions.set(filter, { strikes: 0 })
  }
}

/** Resets the strikes of all filters. */
export function exonerate(packet: PendingPacket): void {
  for (const asked of packet.filters) {
    const suspicion = suspicionOf(packet, asked)
    if (suspicion !== undefined) suspicion.strikes = 0
  }
}

/** True for packets whose grouping of filters is this client's choice, not the application's. */
export function isOurs(packet: PendingPacket): boolean {
  return packet.type === 'unsubscribe' || packet.restoring === true
}

/**
 * Splits a packet: one for each Subscription Identifier, with at most `most` filters and `room`
 * bytes.
 */
export function split(packet: PendingPacket, most: number, room: number): PendingPacket[] {
  const groups: (typeof packet.filters)[number][][] = []
  const open = new Map<unknown, { readonly group: (typeof groups)[number]; bytes: number }>()
  for (const asked of packet.filters) {
    // A repeated request keeps its identifier and user properties.
    const { filter, userProperties, identifier } =
      typeof asked === 'string' ? { ...packet, filter: asked, identifier: 0 } : asked.known
    const key = identifier || userProperties
    const bytes = utf8Length(filter) + filterOverhead
    let last = open.get(key)
    if (last === undefined || last.group.length >= most || last.bytes + bytes > room) {
      last = { group: [], bytes: packetOverhead + sizeOf(userProperties) }
      open.set(key, last)
      groups.push(last.group)
    }
    last.group.push(asked)
    last.bytes += bytes
  }
  return groups.map((filters) => ({ ...packet, filters }) as PendingPacket)
}

function sizeOf(pairs: UserProperties = []): number {
  return pairs.reduce((sum, [name, value]) => sum + 5 + utf8Length(name) + utf8Length(value), 0)
}

/** The reason why this server cannot be asked for a filter; undefined when it can. */
export function objectionTo(
  { filter, request, calls }: SubscribeFilter,
  packet: PendingSubscribe,
  limits: Negotiated,
): MqttError | undefined {
  const names = ['noLocal', 'retainAsPublished', 'retainHandling'] as const
  const option =
    packet.userProperties !== undefined
      ? 'properties.userProperties'
      : packet.identifier !== undefined
        ? 'properties.subscriptionIdentifier'
        : names.find((name) => Boolean(request[name]))
  // A restored subscription was accepted earlier, so 5.0 options are omitted instead of refused.
  if (limits.protocolVersion === 4 && option !== undefined && calls.size > 0)
    return unsupported(option)
  const code = checkFilter(limits, filter, packet.identifier !== undefined)
  return code && optionError(code, 'filter', describe(code, printable(filter)))
}

/** The packet to write, without options that the server does not support. */
export function packetOf(
  packet: PendingPacket,
  packetId: number,
  limits: Negotiated,
): SubscribePacket | UnsubscribePacket {
  if (packet.type === 'unsubscribe') {
    const { type, userProperties, filters } = packet
    return { type, packetId, properties: { userProperties }, filters }
  }
  const { identifier = 0, userProperties } = packet.filters[0]?.known ?? {}
  const subscriptionIdentifiers =
    limits.subscriptionIdentifierAvailable && identifier > 0 ? [identifier] : undefined
  const less =
    limits.protocolVersion === 5
      ? {}
      : ({ noLocal: false, retainAsPublished: false, retainHandling: 0 } as const)
  // A repeated request must not lower the QoS that a later one has raised.
  const subscriptions = packet.filters.map(({ request, known: { qos } }) => ({
    ...request,
    qos,
    ...less,
  }))
  return {
    type: 'subscribe',
    packetId,
    properties: { userProperties, subscriptionIdentifiers },
    subscriptions,
  }
}

/**
 * A request that restores a subscription: with its own Retain Handling after a loss, otherwise
 * without retained messages that were already received.
 */
export function restoring(subscription: BrokerSubscription, lost: boolean): SubscribeFilter {
  const { filter, qos, noLocal, retainAsPublished, retainHandling: asked } = subscription
  const retainHandling = lost || asked === 2 ? asked : 1
  subscription.unconfirmed = true
  return subscription.ask({ filter, qos, noLocal, retainAsPublished, retainHandling }, new Map())
}

/**
 * Packets to repeat on the next connection, in the same order. Those that only restored
 * subscriptions are left out.
 */
export function unanswered(
  packets: readonly PendingPacket[],
  isOver: (packet: PendingUnsubscribe, filter: string) => boolean,
): PendingPacket[] {
  return packets
    .map((packet): PendingPacket => {
      if (packet.type === 'subscribe')
        return { ...packet, filters: askedAgain(packet), again: false }
      return {
        ...packet,
        filters: packet.filters.filter((filter) => !isOver(packet, filter)),
        again: false,
      }
    })
    .filter(({ filters }) => filters.length > 0)
}

// The filters of an unanswered SUBSCRIBE to repeat. Requests that only restore are left out,
// because they are created again when needed.
function askedAgain({ filters, restoring = false }: PendingSubscribe): SubscribeFilter[] {
  // No pending call wants a filter that is being left.
  const isOver = ({ known, calls }: SubscribeFilter): boolean =>
    (restoring && calls.size === 0) ||
    (known.state === 'leaving' && [...calls.keys()].every(({ done }) => done))
  withdraw(filters.filter(isOver))
  for (const asked of filters) asked.sent = false
  return filters.filter(isWanted)
}

/**
 * The first Subscription Identifier, from a random number in [0, 1), so that identifiers of another
 * process of this session are unknown here.
 */
export function firstIdentifier(random: number): number {
  return 1 + Math.floor(random * (MAXIMUM_VARIABLE_BYTE_INTEGER / 2))
}

/** Subscription Identifiers: each SUBSCRIBE gets its own (section 3.8.2.1.2). */
export class Identifiers {
  #next: number
  /**
   * Identifiers that the application chose, and all that were in use when numbering last wrapped.
   * `fresh` skips them.
   */
  readonly #taken = new SparseSet<number>()
  #recountAt = leastRecount

  constructor(first: number) {
    this.#next = first
  }

  take(identifier: number, subscriptions: Iterable<BrokerSubscription>): void {
    if (this.#taken.size >= this.#recountAt) this.#recount(subscriptions)
    this.#taken.add(identifier)
  }

  /** An identifier that no subscription uses. */
  fresh(subscriptions: Iterable<BrokerSubscription>): number {
    for (;;) {
      const identifier = this.#next
      this.#next = (identifier % MAXIMUM_VARIABLE_BYTE_INTEGER) + 1
      if (identifier === 1) this.#recount(subscriptions)
      if (!this.#taken.has(identifier)) return identifier
    }
  }

  // Forgets identifiers that no subscription uses any more.
  #recount(subscriptions: Iterable<BrokerSubscription>): void {
    this.#taken.clear()
    for (const { identifier } of subscriptions) this.#taken.add(identifier)
    this.#recountAt = leastRecount + this.#taken.size * 2
  }
}
