/**
 * SUBSCRIBE and UNSUBSCRIBE packets that are queued or not answered: what they hold, and how filters are put into as many as the server takes.
 *
 * Data and pure functions; the traffic is in `subscribe-sender.ts`.
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

/** Bytes of a SUBSCRIBE or UNSUBSCRIBE besides its filters and user properties. */
const packetOverhead = 32
/** Bytes of a filter besides its text. */
const filterOverhead = 3
/** Identifiers on file that are not looked through. */
const leastRecount = 64

/** A SUBSCRIBE; before it is first sent it may hold more filters than one packet can. */
export interface PendingSubscribe {
  readonly type: 'subscribe'
  readonly filters: readonly SubscribeFilter[]
  readonly userProperties?: UserProperties | undefined
  /** As the application chose it. */
  readonly identifier?: number | undefined
  /** It brings back what a lost session had: it is worth nothing on a later connection. */
  readonly restoring?: boolean
  /** It went for the second time, under another identifier. */
  readonly again?: boolean
}

/** One call that unsubscribes. */
export interface UnsubscribeCall {
  /** Its filters, each with the subscription that it had here. */
  readonly known: ReadonlyMap<string, BrokerSubscription | undefined>
  /** By filter. */
  readonly results: Map<string, UnsubscribeResult>
  readonly answer: Deferred<UnsubscribeResult[]>
  /** By filter: those at which a connection ended. */
  suspicions?: Map<string, Suspicion>
  /** True once a packet of it has left. */
  sent: boolean
}

/** An UNSUBSCRIBE; before it is first sent it may hold more filters than one packet can. */
export interface PendingUnsubscribe {
  readonly type: 'unsubscribe'
  readonly filters: string[]
  readonly userProperties?: UserProperties | undefined
  readonly call: UnsubscribeCall
  /** It went for the second time, under another identifier. */
  readonly again?: boolean
}

/** One of both. */
export type PendingPacket = PendingSubscribe | PendingUnsubscribe

/** False once it was withdrawn. */
export function isWanted(asked: SubscribeFilter | string): boolean {
  return typeof asked === 'string' || !asked.withdrawn
}

/** What speaks against a filter of this packet. */
export function suspicionOf(
  packet: PendingPacket,
  asked: SubscribeFilter | string,
): Suspicion | undefined {
  return typeof asked === 'string'
    ? (packet as PendingUnsubscribe).call.suspicions?.get(asked)
    : asked.known.suspicion
}

/** A connection ended before these had an answer. */
export function suspect(packet: PendingPacket): void {
  if (packet.type === 'subscribe')
    for (const { known } of packet.filters) known.suspicion ??= { strikes: 0 }
  else {
    packet.call.suspicions ??= new Map()
    for (const filter of packet.filters)
      if (!packet.call.suspicions.has(filter)) packet.call.suspicions.set(filter, { strikes: 0 })
  }
}

/** Nothing that was counted against these holds any more. */
export function exonerate(packet: PendingPacket): void {
  for (const asked of packet.filters) {
    const suspicion = suspicionOf(packet, asked)
    if (suspicion !== undefined) suspicion.strikes = 0
  }
}

/** True for what no call asked for in one packet. */
export function isOurs(packet: PendingPacket): boolean {
  return packet.type === 'unsubscribe' || packet.restoring === true
}

/** One packet for each Subscription Identifier, with no more filters than `most`, and no more bytes than `room`. */
export function split(packet: PendingPacket, most: number, room: number): PendingPacket[] {
  const groups: (typeof packet.filters)[number][][] = []
  const open = new Map<unknown, { readonly group: (typeof groups)[number]; bytes: number }>()
  for (const asked of packet.filters) {
    // What goes once more keeps what it had.
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

/** Why this server cannot be asked for a filter; undefined when it can. */
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
  // What is brought back was accepted once: it goes without what only 5.0 has.
  if (limits.protocolVersion === 4 && option !== undefined && calls.size > 0)
    return unsupported(option)
  const code = checkFilter(limits, filter, packet.identifier !== undefined)
  return code && optionError(code, 'filter', describe(code, printable(filter)))
}

/** The packet as it is written, as far as the server takes it. */
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
  // One that goes again must not lower what a later one has raised.
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

/** What brings back a subscription: after a loss as it was asked for, otherwise without retained messages that were seen before. */
export function restoring(subscription: BrokerSubscription, lost: boolean): SubscribeFilter {
  const { filter, qos, noLocal, retainAsPublished, retainHandling: asked } = subscription
  const retainHandling = lost || asked === 2 ? asked : 1
  subscription.unconfirmed = true
  return subscription.ask({ filter, qos, noLocal, retainAsPublished, retainHandling }, new Map())
}

/** What goes again on the next connection, in the same order; what brought a session back does not. */
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

// Packets that only restore a subscription are made again where needed; calls made meanwhile go on.
function askedAgain({ filters, restoring = false }: PendingSubscribe): SubscribeFilter[] {
  // No call waits for a filter that is being left.
  const isOver = ({ known, calls }: SubscribeFilter): boolean =>
    (restoring && calls.size === 0) ||
    (known.state === 'leaving' && [...calls.keys()].every(({ done }) => done))
  withdraw(filters.filter(isOver))
  for (const asked of filters) asked.sent = false
  return filters.filter(isWanted)
}

/** Where numbering begins, for a random number in [0, 1): identifiers left over from another process of this session shall mean nothing here. */
export function firstIdentifier(random: number): number {
  return 1 + Math.floor(random * (MAXIMUM_VARIABLE_BYTE_INTEGER / 2))
}

/** Subscription Identifiers: each is used for one SUBSCRIBE at a time (section 3.8.2.1.2). */
export class Identifiers {
  #next: number
  /** Identifiers that the application chose itself, and all that were in use when numbering last restarted: ours are new in between. */
  readonly #taken = new SparseSet<number>()
  #recountAt = leastRecount

  constructor(first: number) {
    this.#next = first
  }

  take(identifier: number, subscriptions: Iterable<BrokerSubscription>): void {
    if (this.#taken.size >= this.#recountAt) this.#recount(subscriptions)
    this.#taken.add(identifier)
  }

  /** One that no subscription has. */
  fresh(subscriptions: Iterable<BrokerSubscription>): number {
    for (;;) {
      const identifier = this.#next
      this.#next = (identifier % MAXIMUM_VARIABLE_BYTE_INTEGER) + 1
      if (identifier === 1) this.#recount(subscriptions)
      if (!this.#taken.has(identifier)) return identifier
    }
  }

  // Those that none has any more are forgotten.
  #recount(subscriptions: Iterable<BrokerSubscription>): void {
    this.#taken.clear()
    for (const { identifier } of subscriptions) this.#taken.add(identifier)
    this.#recountAt = leastRecount + this.#taken.size * 2
  }
}
