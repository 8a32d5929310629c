/**
 * What one run of the world of many connections is made of, as plain data: a pool or a group, what its application does, and what goes wrong. Types, and
 * the default setup.
 */
import type { commonFaults } from '../generate.js'
import type { PipeOptions } from '../pipe.js'

/** How the pool or the group, its brokers and the network are set up. */
export interface Setup {
  readonly subject: 'pool' | 'group'
  /** Of a pool all but `'broadcast'`, of a group all but `'least-in-flight'`. */
  readonly routing: 'round-robin' | 'hash' | 'least-in-flight' | 'broadcast'
  readonly onLost: 'wait' | 'move'
  /** Connections of the pool, or members of the group, at the start. */
  readonly size: number
  /** What a publisher of the application does with what it gets while no connection of the pool is up. */
  readonly fallback: 'none' | 'takes' | 'refuses'
  /** Of the group. */
  readonly offline: 'reject' | 'queue'
  readonly stalledAfter: number
  /** Seconds. */
  readonly keepAlive: number
  readonly cleanStart: boolean
  readonly brokerReceiveMaximum: number
  readonly onSessionLost: 'republish' | 'reject' | undefined
  /** How the application reads from the group. */
  readonly reading: 'none' | 'loop' | 'manual' | 'listen'
  /** Milliseconds that it takes for a message. */
  readonly work: number
  readonly deduplicate: { readonly window: number; readonly limit: number } | undefined
  /** The broker answers at once, in batches, or late. */
  readonly habit: 'none' | 'gathered' | 'late'
  /** How it ends, and within how many milliseconds. */
  readonly end: 'drain' | 'disconnect'
  readonly endTimeout: number
  readonly pipe: PipeOptions
}

export const defaultSetup: Setup = {
  subject: 'pool',
  routing: 'round-robin',
  onLost: 'wait',
  size: 2,
  fallback: 'none',
  offline: 'reject',
  stalledAfter: 1000,
  keepAlive: 10,
  cleanStart: true,
  brokerReceiveMaximum: 20,
  onSessionLost: undefined,
  reading: 'none',
  work: 0,
  deduplicate: undefined,
  habit: 'none',
  end: 'disconnect',
  endTimeout: 5000,
  pipe: { latency: 1, pieces: 'whole', highWaterMark: 65_536, delivery: 'chunk' },
}

/** How a broker answers the first copies of a message: with this code, so often. */
export interface Refused {
  readonly code: 0x87 | 0x97
  readonly times: number
  /** Number of the only broker that does; all do where it is left out. */
  readonly at?: number
}

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
  readonly kind: (typeof commonFaults)[number] | 'refuse-dial' | 'connack-88' | 'server-busy'
  readonly at: number
  readonly place: number
  readonly k?: number
}

/** One run. */
export interface Schedule {
  readonly name: string
  readonly seed: number
  readonly setup: Partial<Setup>
  readonly ops: readonly Op[]
  readonly faults: readonly Fault[]
  /** Milliseconds until nothing goes wrong any more. */
  readonly span: number
}
