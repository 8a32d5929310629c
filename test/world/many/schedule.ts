/** What one run of the world of many connections is made of, as plain data: a pool or a group, what its application does, and what goes wrong. */
import type { PipeOptions } from '../pipe.js'
import type { Refused } from '../play.js'
import type { LinkFault, ScheduleOf } from '../schedule.js'

/** How the pool or the group, its brokers and the network are set up. */
export const defaultSetup = {
  subject: 'pool' as 'pool' | 'group',
  /** Of a pool all but `'broadcast'`, of a group all but `'least-in-flight'`. */
  routing: 'round-robin' as 'round-robin' | 'hash' | 'least-in-flight' | 'broadcast',
  onLost: 'wait' as 'wait' | 'move',
  /** Connections of the pool, or members of the group, at the start. */
  size: 2,
  /** What a publisher of the application does with what it gets while no connection of the pool is up. */
  fallback: 'none' as 'none' | 'takes' | 'refuses',
  /** Of the group. */
  offline: 'reject' as 'reject' | 'queue',
  stalledAfter: 1000,
  /** Seconds. */
  keepAlive: 10,
  cleanStart: true,
  brokerReceiveMaximum: 20,
  onSessionLost: undefined as 'republish' | 'reject' | undefined,
  /** How the application reads from the group. */
  reading: 'none' as 'none' | 'loop' | 'manual' | 'listen',
  /** Milliseconds that it takes for a message. */
  work: 0,
  deduplicate: undefined as { readonly window: number; readonly limit: number } | undefined,
  /** The broker answers at once, in batches, or late. */
  habit: 'none' as 'none' | 'gathered' | 'late',
  /** How it ends, and within how many milliseconds. */
  end: 'disconnect' as 'drain' | 'disconnect',
  endTimeout: 5000,
  pipe: { latency: 1, pieces: 'whole', highWaterMark: 65_536, delivery: 'chunk' } as PipeOptions,
}
export type Setup = Readonly<typeof defaultSetup>

/** What the application does, and other clients of the brokers. */
export type Op =
  | { readonly at: number; readonly do: 'connect' }
  | {
      readonly at: number
      readonly do: 'publish'
      readonly n: number
      readonly topic: string
      readonly qos: 0 | 1 | 2
      readonly size?: number
      readonly refused?: Refused
      /** The caller gives it up after so many milliseconds. */
      readonly abort?: number
      /** In a group, another routing than the group's. */
      readonly routing?: 'round-robin' | 'hash' | 'broadcast'
      /** In a broadcast, only to that many of the members. */
      readonly few?: number
    }
  /** Of a pool. */
  | { readonly at: number; readonly do: 'resize'; readonly size: number; readonly timeout: number }
  /** Of a group: one more member, or one less, by its place. */
  | { readonly at: number; readonly do: 'add' }
  | { readonly at: number; readonly do: 'remove'; readonly place: number; readonly timeout: number }
  /** Another client publishes to the group, the same message at each of these brokers by number, so many milliseconds later at each next one. */
  | {
      readonly at: number
      readonly do: 'feed'
      readonly n: number
      readonly topic: string
      readonly qos: 0 | 1 | 2
      readonly brokers: readonly number[]
      readonly later: number
    }
  /** The end, before the time. */
  | { readonly at: number; readonly do: 'drain' | 'disconnect'; readonly timeout: number }

export type PublishOp = Extract<Op, { do: 'publish' }>

/** What goes wrong with one connection, by its place, or with the broker that it leads to. */
export interface Fault {
  readonly kind: LinkFault
  readonly at: number
  readonly place: number
  readonly k?: number
}

export type Schedule = ScheduleOf<Setup, Op, Fault>
