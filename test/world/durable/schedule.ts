/**
 * What one run of the durable world is made of, as plain data: a setup, what the application does, and what goes wrong. Types, and the default setup.
 *
 * A run counts its moments: every timer, every packet in and out, every step of the disk. A crash strikes at one of them, or at a time.
 */
import type { commonFaults } from '../generate.js'
import type { HabitName } from '../habits.js'
import type { PipeOptions } from '../pipe.js'

/** How the device, its disk, the broker and the network are set up. */
export interface Setup {
  readonly version: 4 | 5
  /** In the store of the session, or none. */
  readonly queue: 'shared' | 'none'
  /** Entries under way at a time. */
  readonly concurrency: number
  readonly durability: 'sync' | 'os'
  /** False: incoming messages are not kept. */
  readonly inbound: boolean
  /** Dead letters are kept in the same store. */
  readonly letters: boolean
  /** Least and most milliseconds of a step of the disk. */
  readonly disk: readonly [least: number, most: number]
  /** Seconds. */
  readonly keepAlive: number
  /** Of the device, and of the broker. */
  readonly receiveMaximum: number
  readonly brokerReceiveMaximum: number
  readonly onSessionLost: 'republish' | 'reject' | undefined
  /** Milliseconds that the handler takes for a message; how many messages it takes at a time. */
  readonly work: number
  readonly handlers: number
  /** Of messages that are refused by the handler once before it takes them: each so many-th. */
  readonly failing: number
  readonly habit: HabitName
  /** The broker uses the lowest identifier that is free, over and over. */
  readonly lowIdentifiers: boolean
  readonly pipe: PipeOptions
}

export const defaultSetup: Setup = {
  version: 5,
  queue: 'shared',
  concurrency: 64,
  durability: 'sync',
  inbound: true,
  letters: false,
  disk: [0, 0],
  keepAlive: 10,
  receiveMaximum: 256,
  brokerReceiveMaximum: 20,
  onSessionLost: undefined,
  work: 0,
  handlers: 1,
  failing: 0,
  habit: 'none',
  lowIdentifiers: false,
  pipe: { latency: 1, pieces: 'whole', highWaterMark: 65_536, delivery: 'chunk' },
}

/** How the broker answers the first copies of a message: with this code, so often. */
export interface Refused {
  readonly code: 0x87 | 0x97 | 0x91
  readonly times: number
}

/** What the application does, and another client. */
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
  | { readonly at: number; readonly do: 'feed'; readonly n: number; readonly topic: string; readonly qos: 0 | 1 | 2; readonly size?: number }
  | { readonly at: number; readonly do: 'reconnect' }
  /** The client is closed in order, or at once, and another one takes its place in the same process. */
  | { readonly at: number; readonly do: 'replace'; readonly how: 'disconnect' | 'destroy'; readonly delay: number }

/** What may go wrong with the network and the broker, as in the other world. */
type NetworkFault = (typeof commonFaults)[number] | 'refuse-dial' | 'connack-88' | 'server-busy'

/** What goes wrong. */
export type Fault =
  | { readonly kind: NetworkFault; readonly at: number; readonly k?: number }
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
  | { readonly kind: 'store-fails'; readonly at: number; readonly k: number; readonly code: 'ENOSPC' | 'EIO'; readonly p: number }
  /** Each step of the disk takes so long, for `k` milliseconds. */
  | { readonly kind: 'store-slow'; readonly at: number; readonly k: number; readonly step: number }

  /** For `k` milliseconds the store takes nothing but deletions, as a quota that is used up does. */
  | { readonly kind: 'store-full'; readonly at: number; readonly k: number }

export type Crash = Extract<Fault, { kind: 'crash' }>

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

/** True where the store refuses some of what it is given. */
export function storeRefuses({ faults }: Schedule): boolean {
  return faults.some(({ kind }) => kind === 'store-fails' || kind === 'store-full')
}
