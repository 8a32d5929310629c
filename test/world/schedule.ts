/**
 * What one run of the world is made of, as plain data: a setup, operations of the application at their times, and faults.
 *
 * Scenarios are written in it, the random generator makes it, the shrinker takes parts of it away, and a finding prints it. Types only, and the
 * default setup.
 */
import type { HabitName } from './habits.js'
import type { Form } from './payloads.js'
import type { PipeOptions } from './pipe.js'

/** What one CONNACK allows; what is absent is as the broker has it. */
export interface Limits {
  readonly receiveMaximum?: number
  readonly maximumPacketSize?: number
  readonly maximumQoS?: 0 | 1
  readonly topicAliasMaximum?: number
  readonly subscriptionIdentifierAvailable?: 0
  readonly wildcardSubscriptionAvailable?: 0
  readonly sharedSubscriptionAvailable?: 0
  readonly retainAvailable?: 0
}

/** How client, broker and network are set up. */
export interface Setup {
  readonly version: 4 | 5 | 'auto'
  readonly clientId: string
  readonly cleanStart: boolean
  /** Seconds. */
  readonly sessionExpiry: number
  readonly keepAlive: number
  readonly receiveMaximum: number
  readonly unclaimedHold: number
  readonly resubscribe: 'when-lost' | 'always'
  readonly firstConnect: 'reject' | 'wait'
  readonly reconnect: boolean
  readonly endpoints: number
  readonly maxQueuedMessages: number
  readonly maxQueuedBytes: number
  readonly memoryBudget: number | undefined
  readonly overflow: 'wait' | 'reject' | 'drop-newest' | 'drop-oldest'
  readonly offlineQos0: 'queue' | 'reject'
  readonly onSessionLost: 'republish' | 'reject' | undefined
  readonly ackTimeout: number | undefined
  readonly ttl: number | undefined
  readonly will: boolean
  /** Enhanced authentication by the world's own method. */
  readonly auth: boolean
  /** Credentials come from a function: fresh ones for each attempt, which expire, and sometimes an error instead. */
  readonly tokens: boolean
  /** Watches every packet, as a debugging application does. */
  readonly watch: boolean
  /** Of the broker. */
  readonly brokerReceiveMaximum: number
  readonly brokerAliases: number
  readonly brokerPacketSize: number
  /** From its second CONNACK on the broker allows one message in flight and no alias. */
  readonly narrower: boolean
  /** What each CONNACK says, the first one first; the last entry counts for all that follow. */
  readonly limits: readonly Limits[]
  /** What the broker makes of the rules. */
  readonly habit: HabitName
  /** Listeners of the application call the client back. */
  readonly meddling: boolean
  readonly pipe: PipeOptions
}

export const defaultSetup: Setup = {
  version: 5,
  clientId: 'subject',
  cleanStart: true,
  sessionExpiry: 300,
  keepAlive: 30,
  receiveMaximum: 256,
  unclaimedHold: 2000,
  resubscribe: 'when-lost',
  firstConnect: 'wait',
  reconnect: true,
  endpoints: 1,
  maxQueuedMessages: 10_000,
  maxQueuedBytes: 16 * 1024 * 1024,
  memoryBudget: undefined,
  overflow: 'wait',
  offlineQos0: 'reject',
  onSessionLost: undefined,
  ackTimeout: undefined,
  ttl: undefined,
  will: false,
  auth: false,
  tokens: false,
  watch: false,
  brokerReceiveMaximum: 20,
  brokerAliases: 5,
  brokerPacketSize: 100_000,
  narrower: false,
  limits: [],
  habit: 'none',
  meddling: false,
  pipe: { latency: 5, pieces: 'whole', highWaterMark: 65_536, delivery: 'chunk' },
}

/** How a subscription of the application reads; `'break'` leaves its loop after two messages, `'idle'` reads nothing. */
export type Style = 'loop' | 'break' | 'batches' | 'manual' | 'on-receive' | 'listen' | 'read' | 'idle'

/** What the application does, and when. */
export type Operation =
  | {
      readonly do: 'publish'
      readonly n: number
      readonly topic: string
      readonly qos: 0 | 1 | 2
      readonly size?: number
      readonly expiry?: number
      /** Default `'text'`. The memory of all others is written over once the promise has settled. */
      readonly form?: Form
    }
  | {
      readonly do: 'abortable'
      readonly n: number
      readonly topic: string
      readonly qos: 0 | 1 | 2
      readonly after: number
      readonly size?: number
      readonly form?: Form
    }
  | { readonly do: 'post'; readonly n: number; readonly topic: string; readonly size?: number; readonly form?: Form }
  /** So many posts, each as soon as `writable` says so. */
  | { readonly do: 'post-all'; readonly n: number; readonly topic: string; readonly count: number; readonly size?: number }
  | {
      readonly do: 'subscribe'
      readonly s: number
      readonly filter: string
      /** Beside `filter`. */
      readonly more?: readonly string[]
      readonly qos: 0 | 1 | 2
      readonly style: Style
      readonly buffer?: number
      readonly overflow?: 'backpressure' | 'drop-newest' | 'drop-oldest'
      readonly lifetime?: 'owned' | 'borrowed'
      /** Of a handler. */
      readonly concurrency?: number
      /** Milliseconds that each further message takes less. */
      readonly hurry?: number
      /** Milliseconds that each message takes. */
      readonly work: number
      /** The handler fails this often for each message before it succeeds. */
      readonly failures?: number
      /** Abort the wait for the grant after so long. */
      readonly abortAfter?: number
    }
  | { readonly do: 'unsubscribe'; readonly s: number }
  | { readonly do: 'detach'; readonly s: number }
  /** As `await using` leaves it. */
  | { readonly do: 'dispose'; readonly s: number }
  | { readonly do: 'feed'; readonly n: number; readonly topic: string; readonly qos: 0 | 1 | 2; readonly retain?: boolean; readonly size?: number }
  | { readonly do: 'request'; readonly n: number; readonly topic: string; readonly qos?: 0 | 1; readonly timeout: number; readonly careless?: true }
  /** The responder that `fails` throws at every request. */
  | { readonly do: 'respond'; readonly s: number; readonly topic: string; readonly fails?: true }
  | { readonly do: 'reconnect'; readonly force: boolean }
  | { readonly do: 'set-brokers'; readonly endpoints: number }
  | { readonly do: 'reauthenticate' }
  | { readonly do: 'flush' }
  | { readonly do: 'clear' }
  | { readonly do: 'disconnect'; readonly timeout: number }
  | { readonly do: 'drain'; readonly timeout: number }
  | { readonly do: 'destroy' }
  /** The process dies without a word and a new one starts, with a new client on the same session. */
  | { readonly do: 'restart-process' }
  | { readonly do: 'connect' }
  /** All in one turn. */
  | { readonly do: 'together'; readonly ops: readonly Operation[] }

/** An operation at its time, in milliseconds. */
export type Op = { readonly at: number } & Operation

/** What may go wrong. */
export type FaultKind =
  /** Both ends see a reset; what is under way is lost. */
  | 'reset'
  /** The broker ends the stream in order. */
  | 'end'
  /** A reset after `k` more bytes from the client. */
  | 'cut-up'
  /** A reset after `k` more bytes to the client. */
  | 'cut-down'
  /** Nothing passes any more, in both directions or one, for `k` milliseconds. */
  | 'stall'
  | 'stall-up'
  | 'stall-down'
  /** The broker's process is replaced; it is away for `k` milliseconds. */
  | 'restart-keep'
  | 'restart-lose'
  /** The next packet of the broker is lost, doubled, or 3 s late; `k` packets are left alone before it. */
  | 'drop-packet'
  | 'double-packet'
  | 'delay-packet'
  /** The next dial is refused, or hangs for ever; the link that is there is cut. */
  | 'refuse-dial'
  | 'hang-dial'
  /** The next CONNECT is answered by this refusal; the link that is there is cut. */
  | 'connack-88'
  | 'connack-89'
  /** DISCONNECT from the broker with a code that is worth another attempt. */
  | 'server-busy'
  /** Another client comes with the same identifier. */
  | 'takeover'
  /** Time passes while nothing runs, `k` milliseconds. */
  | 'jump'
  /** The client's transport throws at the next write. */
  | 'throw-write'

/** One fault: at a step of the run, at a time, or so many milliseconds after a link was opened (1 is the first). */
export interface Fault {
  readonly kind: FaultKind
  readonly step?: number
  readonly at?: number
  readonly link?: number
  readonly after?: number
  readonly k?: number
}

/** One run. */
export interface Schedule {
  readonly name: string
  readonly seed: number
  readonly setup: Partial<Setup>
  readonly ops: readonly Op[]
  readonly faults: readonly Fault[]
  /** Milliseconds until the world heals. */
  readonly span: number
}

/** The operations of a schedule, also those that are done together with others. */
export function operationsOf(ops: readonly Op[]): Op[] {
  return ops.flatMap((op) => (op.do === 'together' ? operationsOf(op.ops.map((inner) => ({ ...inner, at: op.at }))) : [op]))
}
