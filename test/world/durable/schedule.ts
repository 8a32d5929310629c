/** What one run of the durable world is made of, as plain data: a setup, what the application does, and what goes wrong. */
import type { HabitName } from '../habits.js'
import type { PipeOptions } from '../pipe.js'
import type { Refused } from '../play.js'
import type { LinkFault, ScheduleOf } from '../schedule.js'

/** How the device, its disk, the broker and the network are set up. */
export const defaultSetup = {
  version: 5 as 4 | 5,
  /** In the store of the session, or none. */
  queue: 'shared' as 'shared' | 'none',
  /** Entries under way at a time. */
  concurrency: 64,
  durability: 'sync' as 'sync' | 'os',
  /** False: incoming messages are not kept. */
  inbound: true,
  letters: false,
  /** Least and most milliseconds of a step of the disk. */
  disk: [0, 0] as readonly [least: number, most: number],
  /** Seconds. */
  keepAlive: 10,
  /** Of the device, and of the broker. */
  receiveMaximum: 256,
  brokerReceiveMaximum: 20,
  onSessionLost: undefined as 'republish' | 'reject' | undefined,
  /** Milliseconds that the handler takes for a message; how many messages it takes at a time. */
  work: 0,
  handlers: 1,
  /** Of messages that are refused by the handler once before it takes them: each so many-th. */
  failing: 0,
  habit: 'none' as HabitName,
  /** The broker uses the lowest identifier that is free, over and over. */
  lowIdentifiers: false,
  pipe: { latency: 1, pieces: 'whole', highWaterMark: 65_536, delivery: 'chunk' } as PipeOptions,
}
export type Setup = Readonly<typeof defaultSetup>

export type Op =
  /** Straight to the client, or into the queue. */
  | {
      readonly at: number
      readonly do: 'publish' | 'enqueue'
      readonly n: number
      readonly topic: string
      readonly qos: 1 | 2
      readonly size?: number
      readonly refused?: Refused
    }
  /** Another client publishes to the device. */
  | {
      readonly at: number
      readonly do: 'feed'
      readonly n: number
      readonly topic: string
      readonly qos: 0 | 1 | 2
      readonly size?: number
    }
  | { readonly at: number; readonly do: 'reconnect' }
  /** The client is closed in order, or at once, and another one takes its place in the same process. */
  | {
      readonly at: number
      readonly do: 'replace'
      readonly how: 'disconnect' | 'destroy'
      readonly delay: number
    }

export type Fault =
  | { readonly kind: LinkFault; readonly at: number; readonly k?: number }
  /** The process dies, and another one starts `delay` milliseconds later. */
  | {
      readonly kind: 'crash'
      readonly at?: number
      readonly moment?: number
      readonly delay: number
      /** Share of what was not synced that outlives it, and, at an append, of what is being appended that gets through. */
      readonly kept?: number
      readonly through?: number
      /** What was written to the network still arrives. */
      readonly arrives?: boolean
    }
  /** Each step of the disk fails with this probability, for `k` milliseconds. */
  | {
      readonly kind: 'store-fails'
      readonly at: number
      readonly k: number
      readonly code: 'ENOSPC' | 'EIO'
      readonly p: number
    }
  /** Each step of the disk takes so long, for `k` milliseconds. */
  | { readonly kind: 'store-slow'; readonly at: number; readonly k: number; readonly step: number }

  /** For `k` milliseconds the store takes nothing but deletions, as a quota that is used up does. */
  | { readonly kind: 'store-full'; readonly at: number; readonly k: number }

export type Crash = Extract<Fault, { kind: 'crash' }>

export type Schedule = ScheduleOf<Setup, Op, Fault>

/** True where the store refuses some of what it is given. */
export function storeRefuses({ faults }: Schedule): boolean {
  return faults.some(({ kind }) => kind === 'store-fails' || kind === 'store-full')
}
