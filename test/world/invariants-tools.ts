/** What the checks of a history share: what they read, and what a schedule, a setup and a trace say about it. */
import type { ModelBroker } from './broker.js'
import { mannersOf, smallPacket } from './habits.js'
import type { History, Subscribed } from './history.js'
import type { Monitor } from './monitor.js'
import type { Seen } from './reader.js'
import type { FaultKind, Operation, Schedule, Setup } from './schedule.js'
import { operationsOf } from './schedule.js'

export interface Checked {
  readonly history: History
  readonly monitor: Pick<Monitor, 'violations' | 'passed'>
  readonly broker: Pick<ModelBroker, 'accepted' | 'violations' | 'wills' | 'filters'>
  readonly setup: Setup
  readonly schedule: Schedule
  /** Sessions that the broker began. One that the client has not heard of looks to it like its own: no client can know. */
  readonly network: { readonly begun: number }
}

/** What is read while the client is connected. */
export interface Held extends Checked {
  now(): number
  readonly passable: boolean
  readonly application: { readonly client: { readonly clientId: string; readonly state: string } }
}

/** True when the broker lost a session and the CONNACK that said so never arrived. */
export function isUnheard({ network, monitor }: Pick<Checked, 'network' | 'monitor'>): boolean {
  return network.begun > freshSessions(monitor.passed).length
}

/**
 * True where a filter may be left without a reader and keep its messages unacknowledged, which holds up all others by design: after a detach, and
 * after a subscribe of a durable session that was given up before its grant.
 */
export function detaches({ schedule, setup }: Pick<Checked, 'schedule' | 'setup'>): boolean {
  return operationsOf(schedule.ops).some(
    (op) =>
      op.do === 'detach' ||
      (op.do === 'subscribe' && op.abortAfter !== undefined && !setup.cleanStart),
  )
}

/** True where a server does not take some filters any more: a subscription lives on without them. */
export function isFickle({ limits }: Setup): boolean {
  return limits.some(
    (each) => each.wildcardSubscriptionAvailable === 0 || each.sharedSubscriptionAvailable === 0,
  )
}

type Passing = Monitor['passed']

/** How often a CONNACK said that there is no session, after the first of a run. */
export function sessionLosses(passed: Passing): number {
  return Math.max(0, freshSessions(passed).length - 1)
}

export function lastLoss(passed: Passing): number {
  return freshSessions(passed).at(-1)?.at ?? 0
}

function freshSessions(passed: Passing): Passing {
  const known = new Set<number>()
  return passed.filter(({ way, seen, connection }) => {
    if (
      way !== 'down' ||
      seen.kind !== 'connack' ||
      seen.reason !== 0 ||
      seen.sessionPresent ||
      known.has(connection)
    )
      return false
    known.add(connection)
    return true
  })
}

/** Copies of messages that came and are larger than the client takes. */
export function oversized({ monitor, setup }: Pick<Checked, 'monitor' | 'setup'>): Seen[] {
  if (!mannersOf(setup.habit).includes('ignores-sizes')) return []
  return packets({ monitor }, 'down', 'publish').flatMap(({ seen }) =>
    seen.size > smallPacket ? [seen] : [],
  )
}

/** The key of a message among those that are too large. */
export const sizeKey = ({ topic, qos, size }: Pick<Seen, 'topic' | 'qos' | 'size'>): string =>
  `${topic} ${qos} ${size}`

/** The keys of all `drop` events for messages that are too large. */
export function droppedSizes({ events }: History): string[] {
  return events.flatMap(({ type, event }) =>
    type === 'drop' && (event as { reason?: string }).reason === 'too-large'
      ? [sizeKey(event as Seen)]
      : [],
  )
}

/** Names of messages of which the application heard that they are too large. */
export function toldLarge(run: Pick<Checked, 'monitor' | 'setup' | 'history'>): Set<string> {
  const told = new Set(droppedSizes(run.history))
  return new Set(oversized(run).flatMap((seen) => (told.has(sizeKey(seen)) ? [seen.payload] : [])))
}

export function has(schedule: Schedule, ...kinds: readonly FaultKind[]): boolean {
  return schedule.faults.some((fault) => kinds.includes(fault.kind))
}

/** True where the application does one of these. */
export function does({ ops }: Schedule, ...names: readonly Operation['do'][]): boolean {
  return operationsOf(ops).some((op) => names.includes(op.do))
}

export function packets(
  { monitor }: Pick<Checked, 'monitor'>,
  way: 'up' | 'down',
  kind: string,
): Passing {
  return monitor.passed.filter((each) => each.way === way && each.seen.kind === kind)
}

export function retainedPayloads(schedule: Schedule): Set<string> {
  return new Set(
    operationsOf(schedule.ops).flatMap((op) =>
      op.do === 'feed' && op.retain === true ? [`f${op.n}`] : [],
    ),
  )
}

// Two subscriptions, or two filters of one, that a message may concern both; the broker keeps those of an earlier process.
export function overlapping({ subscribed }: History): boolean {
  return subscribed.some(
    (one, index) =>
      one.filters.some((filter, at) =>
        one.filters.slice(at + 1).some((other) => mayOverlap(filter, other)),
      ) ||
      subscribed
        .slice(index + 1)
        .some(
          (other) =>
            (one.process === other.process || one.filter !== other.filter) &&
            one.s !== other.s &&
            overlap(one, other),
        ),
  )
}

const overlap = (one: Subscribed, other: Subscribed): boolean =>
  one.filters.some((a) => other.filters.some((b) => mayOverlap(a, b)))

export const concerns = ({ filters }: Subscribed, topic: string): boolean =>
  filters.some((filter) => matches(filter, topic))

function mayOverlap(one: string, other: string): boolean {
  if (one === other) return true
  const a = plain(one).split('/')
  const b = plain(other).split('/')
  for (let level = 0; level < Math.max(a.length, b.length); level++) {
    if (a[level] === '#' || b[level] === '#') return true
    if (a[level] === undefined || b[level] === undefined) return false
    if (a[level] !== b[level] && a[level] !== '+' && b[level] !== '+') return false
  }
  return true
}

function plain(filter: string): string {
  return filter.startsWith('$share/') ? filter.split('/').slice(2).join('/') : filter
}

export function matches(filter: string, topic: string): boolean {
  const levels = plain(filter).split('/')
  const names = topic.split('/')
  for (const [index, level] of levels.entries()) {
    if (level === '#') return true
    if (names[index] === undefined || (level !== '+' && level !== names[index])) return false
  }
  return levels.length === names.length
}
