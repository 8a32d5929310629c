/**
 * What a program could see while it ran: calls and what came of them, messages, events, and what the broker took.
 *
 * It records and judges nothing; the model reads it afterwards. Records are in order of `seq`, which rises with everything that happens.
 */
import type { Call, EndpointName, Program } from './program.js'

/** A call and what came of it. */
export interface CallRecord {
  /** The step; calls of listeners and handlers have the number of their step too. */
  readonly id: number
  /** Names its payload. */
  readonly name: string
  readonly client: number
  readonly call: Call
  readonly nested: boolean
  readonly at: number
  readonly seq: number
  /** The client's state when it was called. */
  readonly state: string
  how: 'pending' | 'fulfilled' | 'rejected' | 'threw'
  value: unknown
  error: unknown
  settledAt: number
  settledSeq: number
  /** The client's state when it settled. */
  stateAfter: string
  /** The signal given to it, and when that aborted. */
  signal?: number
}

/** A message that the program got. */
export interface Delivery {
  readonly id: number
  readonly client: number
  readonly at: number
  readonly seq: number
  readonly topic: string
  readonly name: string
  /** What is wrong with its bytes. */
  readonly wrong: string | undefined
  readonly qos: number
  readonly retain: boolean
  readonly redelivered: boolean
}

/** An event of a client. */
export interface EventRecord {
  readonly client: number
  readonly at: number
  readonly seq: number
  readonly type: string
  readonly event: Readonly<Record<string, unknown>>
}

/** A message that the broker took, as an observer saw it. */
export interface Taken {
  readonly topic: string
  readonly name: string
  readonly wrong: string | undefined
  readonly qos: number
  readonly retain: boolean
  readonly properties: Readonly<Record<string, unknown>>
  readonly will: boolean
}

/** Something that was seen against what was promised. */
export interface Finding {
  readonly rule: string
  readonly detail: string
}

/** The end of one client. */
export interface Closed {
  readonly client: number
  readonly at: number
  readonly seq: number
  readonly error: unknown
}

/** Everything of one run. */
export class History {
  readonly program: Program
  readonly calls: CallRecord[] = []
  readonly deliveries: Delivery[] = []
  readonly events: EventRecord[] = []
  readonly closed: Closed[] = []
  readonly findings: Finding[] = []
  /** When each signal aborted. */
  readonly aborts = new Map<number, { readonly at: number; readonly seq: number; readonly reason: unknown }>()
  /** When a reader of a subscription was seen to be at its end. */
  readonly ended = new Map<number, { readonly at: number; readonly seq: number; readonly how: string }>()
  /** What the observer saw, in order. */
  taken: readonly Taken[] = []
  /** Streams and timers of clients that were left in the end. */
  left: readonly string[] = []
  /** When the calm after the last step began, and when it ended. */
  calm: { readonly from: number; readonly to: number; readonly seq: number } | undefined
  /** The name of the endpoint that an event tells of. */
  nameOf: (url: string) => EndpointName = () => 'good'
  #seq = 0

  constructor(program: Program) {
    this.program = program
  }

  /** A subscription is over for its reader: what is said first counts. */
  end(id: number, at: number, how: string): void {
    const known = this.ended.get(id)
    if (known === undefined || known.how === 'kept') this.ended.set(id, { at, seq: this.next(), how })
  }

  next(): number {
    this.#seq += 1
    return this.#seq
  }

  report(rule: string, detail: string): void {
    this.findings.push({ rule, detail })
  }
}
