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

/** A load of devices, which are the publishers. The only subscriber is the backend. */
export interface DevicePlan extends Plan {
  /** Connections that are opened a second, over all threads. */
  readonly ramp: number
  /** Commands a second, to all devices in turn. */
  readonly commands: number
  /** Times that all devices lose their connections. */
  readonly storms: number
}

/** True for a load of devices. */
export function hasDevices(plan: Plan): plan is DevicePlan {
  return 'storms' in plan
}

/** The commands as a load of their own, in which the backend is one publisher for each device. */
export function commandsOf(plan: DevicePlan): Plan {
  return { ...plan, rate: plan.commands / plan.publishers }
}

/** Milliseconds after the start at which a storm begins: spread evenly over the duration. */
export function stormAt({ duration, storms }: DevicePlan, storm: number): number {
  return ((storm + 1) * duration) / (storms + 1)
}

/** The storm that is nearest to a time. What is lost counts to the one nearest to when it was due. */
export function nearestStorm({ duration, storms }: DevicePlan, time: number): number {
  const nearest = Math.round((time * (storms + 1)) / duration) - 1
  return Math.max(0, Math.min(nearest, storms - 1))
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

/** Messages that all subscribers together receive of all publishers. */
export function expectedOf(plan: Plan): number {
  let all = 0
  for (let publisher = 0; publisher < plan.publishers; publisher++)
    all += countOf(plan, publisher) * receiversOf(plan, publisher)
  return all
}

/** Telemetry and commands that count to each storm. */
export function expectedByStorm(plan: DevicePlan): number[] {
  const all = new Array<number>(plan.storms).fill(0)
  if (plan.storms === 0) return all
  for (const load of [plan, commandsOf(plan)])
    for (let device = 0; device < plan.publishers; device++) {
      const count = countOf(load, device)
      for (let next = 0; next < count; next++) {
        const storm = nearestStorm(plan, wholeMicroseconds(dueAt(load, device, next)))
        all[storm] = (all[storm] as number) + 1
      }
    }
  return all
}

/** Milliseconds, rounded so that a time of the plan stays the same in a stamp. */
export function wholeMicroseconds(milliseconds: number): number {
  return Math.round(milliseconds * 1000) / 1000
}

/** Those of `count` that a part of `parts` has. */
export function shareOf(count: number, part: number, parts: number): number[] {
  return Array.from({ length: count }, (_, index) => index).filter(
    (index) => index % parts === part,
  )
}
