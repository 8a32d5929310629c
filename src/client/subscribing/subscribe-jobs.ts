/**
 * What waits to be sent for subscriptions: SUBSCRIBE and UNSUBSCRIBE jobs, and how their filters are put into packets.
 *
 * Data and pure functions; the traffic is in `subscribe-sender.ts`.
 */
import { MqttError } from '../../errors.js'
import type { Properties, SubscriptionRequest, UserProperties } from '../../wire/packets.js'
import { utf8Length } from '../../wire/utf8.js'
import type { UnsubscribeResult } from '../api.js'
import type { Deferred } from '../common/abort.js'
import { checkFilter, type Negotiated } from '../session/limits.js'
import { SparseSet } from '../session/sparse.js'
import type { FilterEntry, SubscribeItem } from './filter-entry.js'

/** Filters to be subscribed to. */
export interface SubscribeJob {
  readonly kind: 'subscribe'
  readonly items: SubscribeItem[]
  /** Packets that are to be sent; made when the first one can be. */
  groups: SubscribeItem[][] | undefined
  readonly userProperties: UserProperties | undefined
  readonly identifier: number | undefined
  /** It brings back what a lost session had: it is worth nothing on a later connection. */
  readonly restoring?: boolean
}

/** Filters to be unsubscribed from. */
export interface UnsubscribeJob {
  readonly kind: 'unsubscribe'
  readonly filters: readonly string[]
  readonly entries: readonly (FilterEntry | undefined)[]
  readonly userProperties: UserProperties | undefined
  readonly results: UnsubscribeResult[]
  readonly answer: Deferred<UnsubscribeResult[]>
  /** How many filters have left. */
  sent: number
  /** Parts whose packet a lost connection left without an answer: they go first. */
  readonly again: Part[]
}

/** Filters of a job that one packet holds. */
export interface Part {
  readonly from: number
  readonly count: number
}

/** A packet without its answer. */
export type SentPacket = { readonly items: SubscribeItem[]; readonly job: SubscribeJob } | { readonly job: UnsubscribeJob; readonly part: Part }

/** Bytes of a SUBSCRIBE besides its filters and user properties. */
const packetOverhead = 32
/** Bytes of a filter besides its text. */
const filterOverhead = 3

/** Not withdrawn since it was asked for. */
export function isWanted(item: SubscribeItem): boolean {
  return item.entry.requests.includes(item)
}

/** One packet holds one Subscription Identifier, no more filters than allowed, and no more bytes than the server takes. */
export function grouped(items: readonly SubscribeItem[], most: number, room: number): SubscribeItem[][] {
  const groups: SubscribeItem[][] = []
  const open = new Map<unknown, { readonly group: SubscribeItem[]; bytes: number }>()
  for (const item of items) {
    const { identifier, userProperties, filter } = item.entry
    const key = identifier === 0 ? userProperties : identifier
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

/** Properties of a SUBSCRIBE for items that share them, as far as the server takes them. */
export function subscribeProperties(entry: FilterEntry | undefined, limits: Negotiated): Properties {
  const identifier = limits.subscriptionIdentifierAvailable ? (entry?.identifier ?? 0) : 0
  return { userProperties: entry?.userProperties, subscriptionIdentifiers: identifier === 0 ? undefined : [identifier] }
}

/** Why this server cannot be asked for an item; undefined when it can. */
export function objectionTo({ entry, request, joiners }: SubscribeItem, job: SubscribeJob, limits: Negotiated): MqttError | undefined {
  const names = ['noLocal', 'retainAsPublished', 'retainHandling'] as const
  const option = job.userProperties === undefined ? names.find((name) => Boolean(request[name])) : 'properties.userProperties'
  // What is brought back was accepted once: it goes without what only 5.0 has.
  if (limits.protocolVersion === 4 && option !== undefined && joiners.length > 0)
    return new MqttError('ERR_UNSUPPORTED_OPTION', undefined, { option })
  const code = checkFilter(limits, entry.filter, job.identifier !== undefined)
  return code && new MqttError(code, undefined, { option: 'filter' })
}

/** A request as the server's protocol version knows it. */
export function requestOf({ request }: SubscribeItem, { protocolVersion }: Negotiated): SubscriptionRequest {
  return protocolVersion === 5 ? request : { ...request, noLocal: false, retainAsPublished: false, retainHandling: 0 }
}

/** The SUBSCRIBE that brings back a filter: after a loss as it was asked for, otherwise without retained messages that were seen before. */
export function restoringItem(entry: FilterEntry, lost: boolean): SubscribeItem {
  const { filter, qos, noLocal, retainAsPublished, retainHandling: asked } = entry
  const retainHandling = lost || asked === 2 ? asked : 1
  entry.unconfirmed = true
  const item: SubscribeItem = { entry, request: { filter, qos, noLocal, retainAsPublished, retainHandling }, joiners: [], sent: false }
  entry.requests.push(item)
  return item
}

/** The jobs of the next connection: what has no answer goes again, before what waits, in the same order; what brought a session back does not. */
export function unanswered(
  sent: readonly SentPacket[],
  waiting: readonly (SubscribeJob | UnsubscribeJob)[],
  isOver: (job: UnsubscribeJob, index: number) => boolean,
): Set<SubscribeJob | UnsubscribeJob> {
  const again = new Set<SubscribeJob | UnsubscribeJob>()
  for (const packet of sent) {
    if ('part' in packet) {
      for (const part of partsLeft(packet.job, packet.part, isOver)) packet.job.again.push(part)
      if (packet.job.again.length > 0) again.add(packet.job)
    } else {
      const items = asked(packet.job, packet.items)
      for (const item of items) item.sent = false
      if (items.length > 0) again.add({ ...packet.job, items, groups: undefined })
    }
  }
  for (const job of waiting) {
    if (job.kind === 'subscribe' && job.restoring === true) {
      const items = asked(job, job.items)
      if (items.length > 0) again.add({ ...job, items, groups: undefined })
    } else again.add(job)
  }
  return again
}

// The runs of a part that still have to be sent.
function partsLeft(job: UnsubscribeJob, { from, count }: Part, isOver: (job: UnsubscribeJob, index: number) => boolean): Part[] {
  const parts: { from: number; count: number }[] = []
  for (let index = from; index < from + count; index++) {
    const last = parts.at(-1)
    if (isOver(job, index)) continue
    if (last !== undefined && last.from + last.count === index) last.count += 1
    else parts.push({ from: index, count: 1 })
  }
  return parts
}

// What only brings a subscription back is made anew where it is needed; what somebody asked for meanwhile goes on.
function asked({ restoring }: SubscribeJob, items: readonly SubscribeItem[]): SubscribeItem[] {
  // Nobody waits for what is on its way out.
  const idle = ({ entry, joiners }: SubscribeItem): boolean => entry.state === 'leaving' && joiners.every(({ claim }) => claim.done)
  const over = new Set(items.filter((item) => idle(item) || (restoring === true && item.joiners.length === 0)))
  withdraw([...over])
  return items.filter((item) => !over.has(item) && (restoring !== true || isWanted(item)))
}

/** These requests are not needed any more. */
export function withdraw(items: readonly SubscribeItem[]): void {
  for (const item of items) if (isWanted(item)) item.entry.requests.splice(item.entry.requests.indexOf(item), 1)
}

const identifierLimit = 268_435_455

/** Subscription Identifiers: each is used for one SUBSCRIBE at a time (section 3.8.2.1.2). */
export class Identifiers {
  #next: number
  #wrapped = false
  /** Those that the application chose itself. */
  readonly #taken = new SparseSet<number>()

  /** `random`, in [0, 1), gives a base: identifiers left over from another process of this session shall mean nothing here. */
  constructor(random: number) {
    this.#next = 1 + Math.floor(random * (identifierLimit / 2))
  }

  take(identifier: number): void {
    this.#taken.add(identifier)
  }

  /** One that no entry has. */
  fresh(entries: Iterable<FilterEntry>): number {
    // Until they begin anew each is new.
    const used = new Set(this.#wrapped ? [...entries].map((entry) => entry.identifier) : [])
    for (const identifier of this.#taken) used.add(identifier)
    let identifier = this.#next
    while (used.has(identifier)) identifier = identifier === identifierLimit ? 1 : identifier + 1
    this.#wrapped ||= identifier === identifierLimit
    this.#next = identifier === identifierLimit ? 1 : identifier + 1
    return identifier
  }
}
