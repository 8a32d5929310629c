/**
 * Who publishes what, and who receives it. Pure, so that the parts of several threads agree.
 */
import type { QoS } from 'mqwire'

/** A load. */
export interface Plan {
  readonly publishers: number
  readonly subscribers: number
  readonly topics: number
  /** Messages a second of each publisher. */
  readonly rate: number
  /** Milliseconds. */
  readonly duration: number
  readonly qos: QoS
  /** Bytes of a payload. */
  readonly size: number
  readonly prefix: string
  /** Every subscriber gets every topic. */
  readonly all: boolean
  /** Subscribers share the topics: each message goes to one of them. */
  readonly shared: boolean
}

/** The topic of a publisher. */
export function topicOf({ prefix, topics }: Plan, publisher: number): string {
  return `${prefix}/${publisher % topics}`
}

/** The filters of a subscriber. */
export function filtersOf(
  { prefix, topics, subscribers, all, shared }: Plan,
  subscriber: number,
): string[] {
  if (shared) return [`$share/bench/${prefix}/+`]
  if (all) return [`${prefix}/+`]
  if (subscribers >= topics) return [`${prefix}/${subscriber % topics}`]
  return Array.from({ length: topics }, (_, topic) => topic)
    .filter((topic) => topic % subscribers === subscriber)
    .map((topic) => `${prefix}/${topic}`)
}

/** Subscribers that get each message of a publisher. */
export function receiversOf({ topics, subscribers, all, shared }: Plan, publisher: number): number {
  if (shared || subscribers === 0) return Math.min(1, subscribers)
  if (all) return subscribers
  if (subscribers < topics) return 1
  const topic = publisher % topics
  return Math.floor(subscribers / topics) + (topic < subscribers % topics ? 1 : 0)
}

/** Milliseconds after the start at which a publisher sends a message: spread evenly over all. */
export function dueAt({ rate, publishers }: Plan, publisher: number, number: number): number {
  return ((number + publisher / publishers) * 1000) / rate
}

/** Messages that a publisher sends. */
export function countOf(plan: Plan, publisher: number): number {
  const phase = (publisher / plan.publishers) * (1000 / plan.rate)
  return Math.max(0, Math.ceil(((plan.duration - phase) * plan.rate) / 1000))
}

/** Those of `count` that a part of `parts` has. */
export function shareOf(count: number, part: number, parts: number): number[] {
  return Array.from({ length: count }, (_, index) => index).filter(
    (index) => index % parts === part,
  )
}
