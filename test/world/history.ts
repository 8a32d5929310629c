/** What happened in one run, as the application and the world saw it: calls and how they ended, messages handed out, events, findings. */
import { Findings } from './play.js'
import type { Operation } from './schedule.js'

export interface Call {
  readonly what: string
  readonly process: number
  /** Of the client, before the application made the call. */
  readonly state?: string | undefined
  readonly at: number
  readonly begun: number
  settled: number
  /** Entry number of the settlement. */
  ended: number
  endedAt: number
  error: unknown
  value: unknown
  /** Given to it, and when that aborted; before the call? */
  readonly signal?: AbortSignal | undefined
  abortedAt?: number
  abortedBefore?: boolean
  /** Milliseconds that it was given. */
  readonly timeout?: number | undefined
}

export interface Published {
  readonly op: Extract<Operation, { do: 'publish' | 'abortable' }>
  readonly payload: string
  readonly call: Call
}

export interface Subscribed {
  readonly s: number
  readonly filter: string
  /** `filter`, and those beside it. */
  readonly filters: readonly string[]
  readonly qos: number
  readonly style: string
  /** Its buffer drops what is too much. */
  readonly drops: boolean
  readonly buffer: number
  readonly concurrency: number
  readonly process: number
  /** It lives: granted and not ended by anybody. */
  live: boolean
  /** Entry number from which the application is done with it, and has not detached it: its filters are to be unsubscribed. 0: it is not. */
  dismissed: number
  /** Entry number of the grant, and of the wish to end it. */
  granted: number
  left: number
  grantedAt: number
  grantedQos: number
  /** What its iteration or handling ended with. */
  ended: { readonly error: unknown } | undefined
  size: () => number
}

export interface Delivered {
  readonly s: number
  readonly process: number
  readonly payload: string
  readonly topic: string
  readonly qos: number
  readonly redelivered: boolean
  readonly seq: number
  /** Entry number at which the application was done with it. */
  done: number
  /** Entry number at which its handler failed, and since when it waits for the next attempt; 0 while it does not wait. */
  waits: number
}

/** A PUBACK or PUBREC of the client, seen on the wire. */
export interface WireAck {
  readonly payload: string
  readonly reason: number
  readonly repeat: boolean
  readonly seq: number
  readonly connection: number
}

export interface Happened {
  readonly type: string
  readonly event: unknown
  readonly at: number
  readonly seq: number
  readonly process: number
}

export class History extends Findings {
  readonly calls: Call[] = []
  readonly published: Published[] = []
  readonly subscribed: Subscribed[] = []
  readonly delivered: Delivered[] = []
  readonly acks: WireAck[] = []
  readonly events: Happened[] = []
  process = 1
  /** Entry number of `destroy()`, once it has returned. */
  destroyed = 0
  /** Which process that was. */
  destroyedIn = 0
  /** Lists of endpoints that were set: how long each is, and the number of the entry before it. */
  readonly lists: { readonly process: number; readonly seq: number; readonly count: number }[] = []
  /** What the client of each process ended with. */
  readonly closed = new Map<number, unknown>()

  track<T>(
    what: string,
    promise: PromiseLike<T>,
    more: Pick<Call, 'signal' | 'timeout' | 'state'> = {},
  ): Call {
    const begun = { what, process: this.process, at: this.now(), begun: this.next(), ...more }
    const call: Call = {
      ...begun,
      settled: 0,
      ended: 0,
      endedAt: 0,
      error: undefined,
      value: undefined,
    }
    this.calls.push(call)
    const abort = (): void => {
      call.abortedAt = this.now()
    }
    call.abortedBefore = more.signal?.aborted === true
    if (call.abortedBefore) abort()
    else more.signal?.addEventListener('abort', abort)
    const settle = (key: 'value' | 'error') => (result: unknown) => {
      call.settled += 1
      call.ended = this.next()
      call.endedAt = this.now()
      call[key] = result
    }
    promise.then(settle('value'), settle('error'))
    return call
  }
}
