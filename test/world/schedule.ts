/** What one run of the world is made of, as plain data: a setup, operations of the application at their times, and faults. */
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
export const defaultSetup = {
  version: 5 as 4 | 5 | 'auto',
  clientId: 'subject',
  cleanStart: true,
  /** Seconds. */
  sessionExpiry: 300,
  keepAlive: 30,
  receiveMaximum: 256,
  unclaimedHold: 2000,
  resubscribe: 'when-lost' as 'when-lost' | 'always',
  firstConnect: 'wait' as 'reject' | 'wait',
  reconnect: true,
  endpoints: 1,
  maxQueuedMessages: 10_000,
  maxQueuedBytes: 16 * 1024 * 1024,
  memoryBudget: undefined as number | undefined,
  overflow: 'wait' as 'wait' | 'reject' | 'drop-newest' | 'drop-oldest',
  offlineQos0: 'reject' as 'queue' | 'reject',
  onSessionLost: undefined as 'republish' | 'reject' | undefined,
  ackTimeout: undefined as number | undefined,
  ttl: undefined as number | undefined,
  will: false,
  auth: false,
  /** Credentials come from a function: fresh ones for each attempt, which expire, and sometimes an error instead. */
  tokens: false,
  watch: false,
  /** Of the broker. */
  brokerReceiveMaximum: 20,
  brokerAliases: 5,
  brokerPacketSize: 100_000,
  /** From its second CONNACK on the broker allows one message in flight and no alias. */
  narrower: false,
  /** What each CONNACK says, the first one first; the last entry counts for all that follow. */
  limits: [] as readonly Limits[],
  habit: 'none' as HabitName,
  meddling: false,
  /** The application makes the first `connect()`, when it likes; else the world does. */
  idle: false,
  /** Of `reconnect` where it is on, of `outbound`, and of the client, beside what has a name here. */
  retries: {} as { readonly maxAttempts?: number; readonly stableAfter?: number },
  outbound: {} as Readonly<Record<string, unknown>>,
  more: {} as Readonly<Record<string, unknown>>,
  pipe: { latency: 5, pieces: 'whole', highWaterMark: 65_536, delivery: 'chunk' } as PipeOptions,
}
export type Setup = Readonly<typeof defaultSetup>

/** How a subscription of the application reads; `'break'` leaves its loop after two messages, `'idle'` reads nothing. */
export type Style =
  | 'loop'
  | 'break'
  | 'batches'
  | 'manual'
  | 'on-receive'
  | 'listen'
  | 'read'
  | 'next'
  | 'idle'

/** When a signal aborts: before the call, or so many milliseconds after it. */
export type Abort = 'before' | number

interface Sent {
  readonly n: number
  readonly topic: string
  readonly size?: number
  /** Default `'text'`. The memory of all others is written over once the promise has settled. */
  readonly form?: Form
}
interface Graded extends Sent {
  readonly qos: 0 | 1 | 2
}

export type Operation =
  /** With `options` as `PublishOptions`. */
  | (Graded & {
      readonly do: 'publish'
      readonly expiry?: number
      readonly options?: Readonly<Record<string, unknown>>
      readonly abort?: Abort
    })
  | (Graded & { readonly do: 'abortable'; readonly after: number })
  | (Sent & { readonly do: 'post' })
  /** So many posts, each as soon as `writable` says so. */
  | (Sent & { readonly do: 'post-all'; readonly count: number })
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
      readonly work: number
      /** The handler fails this often for each message before it succeeds. */
      readonly failures?: number
      /** Abort the wait for the grant after so long. */
      readonly abortAfter?: number
      /** It ends after so long. */
      readonly until?: number
    }
  /** From a filter, whoever has it. */
  | { readonly do: 'unsubscribe-from'; readonly filter: string; readonly abort?: Abort }
  /** `'dispose'` as `await using` leaves it. */
  | { readonly do: 'unsubscribe' | 'detach' | 'dispose'; readonly s: number }
  | (Graded & { readonly do: 'feed'; readonly retain?: boolean })
  | {
      readonly do: 'request'
      readonly n: number
      readonly topic: string
      readonly qos?: 0 | 1
      readonly timeout: number
      readonly careless?: true
    }
  /** The responder that `fails` throws at every request. */
  | { readonly do: 'respond'; readonly s: number; readonly topic: string; readonly fails?: true }
  | { readonly do: 'reconnect'; readonly force: boolean }
  | { readonly do: 'set-brokers'; readonly endpoints: number }
  | { readonly do: 'disconnect' | 'drain'; readonly timeout: number }
  /** `'restart-process'`: the process dies without a word and a new one starts, with a new client on the same session. */
  | { readonly do: 'reauthenticate' | 'flush' | 'clear' | 'destroy' | 'restart-process' }
  | { readonly do: 'connect'; readonly abort?: Abort }
  /** A listener, which does something at the first few events and may throw. */
  | {
      readonly do: 'on'
      readonly event: string
      readonly does?: Operation
      readonly throws?: boolean
    }
  | { readonly do: 'together'; readonly ops: readonly Operation[] }

/** An operation at its time, in milliseconds. */
export type Op = { readonly at: number } & Operation

export type FaultKind =
  /** Both ends see a reset; what is under way is lost. */
  | 'reset'
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

export interface ScheduleOf<S, O, F> {
  readonly name: string
  readonly seed: number
  readonly setup: Partial<S>
  readonly ops: readonly O[]
  readonly faults: readonly F[]
  /** Milliseconds until the world heals. */
  readonly span: number
}

export type Schedule = ScheduleOf<Setup, Op, Fault>

/** What may go wrong with a link or a broker in every kind of world, as often as it is drawn. */
export const commonFaults = [
  ...([
    'reset',
    'reset',
    'reset',
    'end',
    'cut-up',
    'cut-up',
    'cut-down',
    'cut-down',
    'stall',
    'stall-up',
    'stall-down',
  ] as const),
  ...(['restart-keep', 'restart-keep', 'restart-lose'] as const),
]
export const linkFaults = [...commonFaults, 'refuse-dial', 'connack-88', 'server-busy'] as const
export type LinkFault = (typeof linkFaults)[number]

/** The operations of a schedule, also those that are done together with others, or by listeners. */
export function operationsOf(ops: readonly Op[]): Op[] {
  return ops.flatMap((op) => {
    const inner =
      op.do === 'together' ? op.ops : op.do === 'on' && op.does !== undefined ? [op.does] : []
    return [
      ...(op.do === 'together' ? [] : [op]),
      ...operationsOf(inner.map((each) => ({ ...each, at: op.at }))),
    ]
  })
}
