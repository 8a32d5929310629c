/**
 * What happened in one run of the world of many connections: what was published, to whom it was handed, who took it and what its caller was told; what was
 * read; findings. A record only.
 */
import type { Outcome } from '../../../src/errors.js'
import { Findings } from '../play.js'
import type { PublishOp } from './schedule.js'

/** What a caller was told of a publish, in all or at one member. */
export interface End {
  status: 'pending' | 'fulfilled' | 'rejected'
  code?: string
  outcome?: Outcome
  /** It was pending when the publish fulfilled. */
  later?: true
  /** Its place in the history, and when it was. */
  seq: number
  at: number
}

export interface Published {
  readonly op: PublishOp
  readonly name: string
  readonly routing: string
  readonly at: number
  readonly seq: number
  readonly end: End
  /** In a group: of each member that the receipt or the error names. What was pending there goes on to its end. */
  readonly ends: Map<string, End>
  elsewhere: boolean
  /** When it settled a member was without a connection, and on its way to one. */
  lonely: boolean
}

/** A publish was handed to the client of a member. */
export interface Handed {
  readonly name: string
  readonly to: string
  readonly seq: number
  readonly at: number
  readonly end: End
}

export interface Taken {
  readonly seq: number
  readonly at: number
  readonly broker: string
  readonly clientId: string
  readonly name: string
  readonly topic: string
  readonly qos: number
  readonly bytes: Uint8Array
}

/** A message for the group, at one broker. */
export interface Fed {
  readonly name: string
  readonly key: string
  readonly topic: string
  readonly qos: number
  readonly broker: string
  /** Sessions that this broker had lost when it took the message; undefined: nobody had asked for it. */
  readonly losses: number | undefined
}

/** What the application saw of a message: the group asked for its key, or handed it out. */
export interface Read {
  readonly what: 'key' | 'handed'
  readonly name: string
  readonly member: string
  readonly at: number
}

/** A call that has an end: connect, resize, remove, drain and the like. */
export interface Call {
  readonly what: string
  readonly at: number
  readonly seq: number
  /** Milliseconds that it was given; undefined where it has as many as it needs. */
  readonly timeout: number | undefined
  /** Names of the members that it ends. */
  readonly leaving: readonly string[]
  readonly end: End
}

export class History extends Findings {
  readonly published = new Map<string, Published>()
  readonly unsettled = new Set<Published>()
  readonly handed: Handed[] = []
  readonly #handedBy = new Map<string, Handed[]>()
  readonly taken: Taken[] = []
  readonly fed = new Map<string, Fed>()
  readonly reads: Read[] = []
  readonly calls: Call[] = []

  hand(name: string, to: string): Handed {
    const handed = { name, to, seq: this.next(), at: this.now(), end: this.open() }
    this.handed.push(handed)
    this.#handedBy.set(name, [...this.handedOf(name), handed])
    return handed
  }

  handedOf(name: string): readonly Handed[] {
    return this.#handedBy.get(name) ?? []
  }

  open(): End {
    return { status: 'pending', seq: 0, at: 0 }
  }

  /** Follows a promise to its end; `then` is called behind that. */
  follow<T>(
    end: End,
    promise: Promise<T>,
    then: (value: T | undefined, error: unknown) => void = () => undefined,
  ): void {
    const settle = (status: 'fulfilled' | 'rejected', error?: unknown): void => {
      const { code, outcome, name } = (error ?? {}) as {
        code?: string
        outcome?: Outcome
        name?: string
      }
      Object.assign(end, {
        status,
        seq: this.next(),
        at: this.now(),
        ...(error === undefined ? {} : { code: code ?? name, outcome }),
      })
    }
    promise.then(
      (value) => {
        settle('fulfilled')
        then(value, undefined)
      },
      (error) => {
        settle('rejected', error)
        then(undefined, error)
      },
    )
  }

  track(
    what: string,
    promise: Promise<unknown>,
    timeout?: number,
    leaving: readonly string[] = [],
  ): Call {
    const call: Call = {
      what,
      at: this.now(),
      seq: this.next(),
      timeout,
      leaving,
      end: this.open(),
    }
    this.calls.push(call)
    this.follow(call.end, promise, (_, error) =>
      this.note(`  ${what} ${error === undefined ? 'is done' : `failed: ${error}`}`),
    )
    return call
  }
}
