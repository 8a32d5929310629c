/**
 * What waits to be sent for subscriptions: SUBSCRIBE and UNSUBSCRIBE jobs, and how their filters are put into packets.
 *
 * Data and pure functions; the traffic is in `subscribe-sender.ts`.
 */

import { describe, MqttError, printable } from '../../errors.js'
import type { SubscribePacket, UnsubscribePacket, UserProperties } from '../../wire/packets.js'
import { utf8Length } from '../../wire/utf8.js'
import type { Negotiated, UnsubscribeResult } from '../api/index.js'
import type { Deferred } from '../common/abort.js'
import { unsupported } from '../common/schema.js'
import { SparseSet } from '../common/sparse.js'
import { checkFilter } from '../session/limits.js'
import { filterOverhead, identifierLimit, leastRecount, packetOverhead } from './bounds.js'
import type { FilterEntry, SubscribeItem } from './filter-entry.js'

interface Job<Item> {
  readonly userProperties?: UserProperties | undefined
  items: Item[]
  /** The items by packets that are to be sent; made when the first one can be. */
  groups?: Item[][] | undefined
}

/** Filters to be subscribed to. */
export interface SubscribeJob extends Job<SubscribeItem> {
  readonly kind: 'subscribe'
  readonly identifier?: number | undefined
  /** It brings back what a lost session had: it is worth nothing on a later connection. */
  readonly restoring?: boolean
}

/** One line of an UNSUBSCRIBE packet. */
export interface UnsubscribeItem {
  readonly filter: string
  readonly entry: FilterEntry | undefined
  /** Where its result stands. */
  readonly index: number
  readonly wanted: true
}

/** Filters to be unsubscribed from. */
export interface UnsubscribeJob extends Job<UnsubscribeItem> {
  readonly kind: 'unsubscribe'
  readonly results: UnsubscribeResult[]
  readonly answer: Deferred<UnsubscribeResult[]>
  /** How many filters have no result. */
  open: number
  /** True once a packet of it has left. */
  sent: boolean
}

interface Sent<J extends Job<unknown>> {
  readonly job: J
  readonly items: J['items']
  /** It went for the second time, under another identifier. */
  readonly again?: boolean
}

/** A packet without its answer. */
export type SentPacket = Sent<SubscribeJob> | Sent<UnsubscribeJob>

/** Tells the two kinds apart. */
export function isSubscribe(sent: SentPacket): sent is Sent<SubscribeJob> {
  return sent.job.kind === 'subscribe'
}

/** Not withdrawn since it was asked for. */
export function isWanted({ wanted }: SubscribeItem | UnsubscribeItem): boolean {
  return wanted
}

/** What the size of a packet depends on, and which items may share one. */
export type Line = Pick<FilterEntry, 'filter' | 'identifier' | 'userProperties'>

/** One packet holds one Subscription Identifier, no more filters than allowed, and no more bytes than the server takes. */
export function grouped<Item>(items: readonly Item[], lineOf: (item: Item) => Line, most: number, room: number): Item[][] {
  const groups: Item[][] = []
  const open = new Map<unknown, { readonly group: Item[]; bytes: number }>()
  for (const item of items) {
    const { identifier, userProperties, filter } = lineOf(item)
    const key = identifier || userProperties
    const bytes = utf8Length(filter) + filterOverhead
    let last = open.get(key)
    if (last === undefined || last.group.length >= most || last.bytes + bytes > room) {
      last = { group: [], bytes: packetOverhead + sizeOf(userProperties) }
      open.set(key, last)
      groups.push(last.group)
    }
    last.group.push(item)
    last.bytes += bytes
  }
  return groups
}

function sizeOf(pairs: UserProperties = []): number {
  return pairs.reduce((sum, [name, value]) => sum + 5 + utf8Length(name) + utf8Length(value), 0)
}

/** Why this server cannot be asked for an item; undefined when it can. */
export function objectionTo({ entry, request, joiners }: SubscribeItem, job: SubscribeJob, limits: Negotiated): MqttError | undefined {
  const names = ['noLocal', 'retainAsPublished', 'retainHandling'] as const
  const option =
    job.userProperties !== undefined
      ? 'properties.userProperties'
      : job.identifier !== undefined
        ? 'properties.subscriptionIdentifier'
        : names.find((name) => Boolean(request[name]))
  // What is brought back was accepted once: it goes without what only 5.0 has.
  if (limits.protocolVersion === 4 && option !== undefined && joiners.length > 0) return unsupported(option)
  const code = checkFilter(limits, entry.filter, job.identifier !== undefined)
  return code && new MqttError(code, describe(code, printable(entry.filter)), { option: 'filter' })
}

/** The packet for items that share their properties, as far as the server takes them. */
export function packetOf(sent: SentPacket, packetId: number, limits: Negotiated): SubscribePacket | UnsubscribePacket {
  if (!isSubscribe(sent)) {
    const { userProperties } = sent.job
    return { type: 'unsubscribe', packetId, properties: { userProperties }, filters: sent.items.map(({ filter }) => filter) }
  }
  const { identifier = 0, userProperties } = sent.items[0]?.entry ?? {}
  const subscriptionIdentifiers = limits.subscriptionIdentifierAvailable && identifier > 0 ? [identifier] : undefined
  const less = limits.protocolVersion === 5 ? {} : ({ noLocal: false, retainAsPublished: false, retainHandling: 0 } as const)
  // One that goes again must not lower what a later one has raised.
  const subscriptions = sent.items.map(({ request, entry: { qos } }) => ({ ...request, qos, ...less }))
  return { type: 'subscribe', packetId, properties: { userProperties, subscriptionIdentifiers }, subscriptions }
}

/** The SUBSCRIBE that brings back a filter: after a loss as it was asked for, otherwise without retained messages that were seen before. */
export function restoringItem(entry: FilterEntry, lost: boolean): SubscribeItem {
  const { filter, qos, noLocal, retainAsPublished, retainHandling: asked } = entry
  const retainHandling = lost || asked === 2 ? asked : 1
  entry.unconfirmed = true
  return entry.ask({ filter, qos, noLocal, retainAsPublished, retainHandling }, [])
}

/** The jobs of the next connection: what has no answer goes again, before what waits, in the same order; what brought a session back does not. */
export function unanswered(
  jobs: Iterable<SubscribeJob | UnsubscribeJob>,
  isOver: (job: UnsubscribeJob, item: UnsubscribeItem) => boolean,
): (SubscribeJob | UnsubscribeJob)[] {
  const again = new Set(jobs)
  for (const job of again) {
    job.groups = undefined
    if (job.kind === 'subscribe') job.items = asked(job)
    else job.items = job.items.filter((item) => job.results[item.index] === undefined && !isOver(job, item))
  }
  return [...again].filter(({ items }) => items.length > 0)
}

// What only brings a subscription back is made anew where it is needed; what somebody asked for meanwhile goes on.
function asked({ items, restoring = false }: SubscribeJob): SubscribeItem[] {
  // Nobody waits for what is on its way out.
  const isOver = ({ entry, joiners }: SubscribeItem): boolean =>
    (restoring && joiners.length === 0) || (entry.state === 'leaving' && joiners.every(({ claim }) => claim.done))
  withdraw(items.filter(isOver))
  for (const item of items) item.sent = false
  return items.filter(isWanted)
}

/** These requests are not needed any more. */
export function withdraw(items: readonly SubscribeItem[]): readonly SubscribeItem[] {
  for (const item of items) {
    const { requests } = item.entry
    // The oldest has its answer first.
    if (requests[0] === item) requests.shift()
    else if (item.wanted) requests.splice(requests.indexOf(item), 1)
    item.wanted = false
  }
  return items
}

/** Subscription Identifiers: each is used for one SUBSCRIBE at a time (section 3.8.2.1.2). */
export class Identifiers {
  #next: number
  /** Those that the application chose itself; and all that were in use when they last began anew, for ours are new in between. */
  readonly #taken = new SparseSet<number>()
  #recountAt = leastRecount

  /** `random`, in [0, 1), gives a base: identifiers left over from another process of this session shall mean nothing here. */
  constructor(random: number) {
    this.#next = 1 + Math.floor(random * (identifierLimit / 2))
  }

  take(identifier: number, entries: Iterable<FilterEntry>): void {
    if (this.#taken.size >= this.#recountAt) this.#recount(entries)
    this.#taken.add(identifier)
  }

  /** One that no entry has. */
  fresh(entries: Iterable<FilterEntry>): number {
    for (;;) {
      const identifier = this.#next
      this.#next = (identifier % identifierLimit) + 1
      if (identifier === 1) this.#recount(entries)
      if (!this.#taken.has(identifier)) return identifier
    }
  }

  // Those that no entry has any more are forgotten.
  #recount(entries: Iterable<FilterEntry>): void {
    this.#taken.clear()
    for (const { identifier } of entries) this.#taken.add(identifier)
    this.#recountAt = leastRecount + this.#taken.size * 2
  }
}
