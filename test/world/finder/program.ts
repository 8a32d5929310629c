/**
 * A program over the public API of the client, as plain data: what may be printed, replayed and made smaller.
 *
 * Types and the two ways between text and program, nothing else. Times are milliseconds. Topics, filters and client identifiers are relative:
 * whoever runs a program puts a prefix before them, so that many programs share a broker.
 */
import type { Form } from '../payloads.js'

/**
 * What is met at an endpoint: the broker, the broker behind a slow door, nobody (`dead`), a dial that never ends (`hang`), a peer that says nothing
 * (`silent`), one that refuses with 0x89 (`busy`) or 0x8A (`banned`).
 */
export type EndpointName = 'good' | 'other' | 'late' | 'dead' | 'hang' | 'silent' | 'busy' | 'banned'

/** Options of a client that are plain data. */
export interface ClientPlan {
  readonly endpoints: readonly EndpointName[]
  /** As `ClientOptions`, but for `reconnect.backoff`, which is a constant, and `will.topic`, which is made up. */
  readonly options: Readonly<Record<string, unknown>>
  /** Milliseconds before each further dial. */
  readonly backoff: number
  readonly maxAttempts?: number
  readonly stableAfter?: number
  /** Enhanced authentication with a method that the broker knows. */
  readonly auth?: boolean
  readonly will?: boolean
}

/** When a signal aborts: before its first use, in the turn of its first use, or so many milliseconds after it. */
export type AbortTime = 'before' | 'turn' | number

/** How messages of a subscription are read: a loop, at most so many, each kept for some milliseconds. */
export interface Reading {
  readonly how: 'loop' | 'next' | 'batches' | 'none'
  /** Leaves the loop after so many messages. */
  readonly most?: number
  /** Milliseconds that each message is kept. */
  readonly hold?: number
  /** Acknowledges by hand. */
  readonly acks?: boolean
}

/** A payload: its size, and the form in which it is handed over. Its bytes follow from the step's number. */
export interface PayloadPlan {
  readonly topic: string
  readonly size: number
  readonly form: Form
}

/** One call of the API, or one thing that happens to the network. */
export type Call =
  | { readonly call: 'connect'; readonly signal?: number }
  | (PayloadPlan & {
      readonly call: 'publish'
      readonly qos: 0 | 1 | 2
      readonly options: Readonly<Record<string, unknown>>
      readonly signal?: number
      /** Nothing is attached to the promise. */
      readonly forget?: boolean
    })
  | (PayloadPlan & { readonly call: 'post' })
  | {
      readonly call: 'subscribe'
      readonly filters: readonly string[]
      readonly options: Readonly<Record<string, unknown>>
      readonly through: 'subscribe' | 'subscription' | 'listen'
      readonly reading: Reading
      readonly signal?: number
      readonly until?: number
      /** What a handler of `listen` does inside, at its first messages. */
      readonly inside?: Call
    }
  | { readonly call: 'unsubscribe'; readonly filters: readonly string[]; readonly signal?: number; readonly forget?: boolean }
  | { readonly call: 'leave'; readonly of: number; readonly how: 'unsubscribe' | 'detach' | 'dispose' }
  | (PayloadPlan & { readonly call: 'request'; readonly timeout: number; readonly signal?: number })
  | { readonly call: 'respond'; readonly filter: string; readonly fails?: boolean }
  | { readonly call: 'reauthenticate'; readonly signal?: number }
  | { readonly call: 'setBrokers'; readonly endpoints: readonly EndpointName[] }
  | { readonly call: 'reconnect'; readonly force: boolean; readonly forget?: boolean }
  | { readonly call: 'drain'; readonly timeout: number; readonly signal?: number }
  | { readonly call: 'disconnect'; readonly timeout: number; readonly signal?: number }
  | { readonly call: 'destroy' | 'dispose' | 'flush' | 'writable' | 'stats' | 'clear' | 'cut' }
  | { readonly call: 'on'; readonly event: string; readonly does: Call | undefined; readonly throws: boolean }
  | { readonly call: 'wrong'; readonly what: string }
  | { readonly call: 'stall'; readonly milliseconds: number }
  | { readonly call: 'down'; readonly milliseconds: number }

/** A step of a program. */
export interface Step {
  /** Never changes, also when other steps are taken out: what it publishes has its name from it. */
  readonly id: number
  readonly client: number
  /** Milliseconds to wait before; 0 is the same turn. */
  readonly after: number
  /** The program waits for it. */
  readonly wait: boolean
  readonly call: Call
}

/** How the links of a program are. */
export interface LinkPlan {
  readonly latency: number
  readonly pieces: 'whole' | 'random' | 'joined'
  /** Bytes a millisecond, upwards. */
  readonly rate?: number
}

/** A whole program. */
export interface Program {
  readonly seed: number
  readonly clients: readonly ClientPlan[]
  readonly signals: readonly AbortTime[]
  readonly link: LinkPlan
  readonly steps: readonly Step[]
  /** How each client is ended in the end, where the program has not done so. */
  readonly end: 'disconnect' | 'destroy' | 'drain' | 'dispose'
}

/** A program as text that can be run again. */
export function shown({ steps, ...rest }: Program): string {
  return [JSON.stringify(rest), ...steps.map((step) => JSON.stringify(step))].join('\n')
}

/** Reads what `shown` gave; other lines are passed over. */
export function parsed(text: string): Program {
  const lines = text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line) as Record<string, unknown>)
  const head = lines.find((line) => 'seed' in line)
  if (head === undefined) throw new Error('there is no line with a seed')
  return { ...(head as unknown as Program), steps: lines.filter((line) => 'id' in line) as unknown as Step[] }
}

/** Steps with those that listeners and handlers make. */
export function allCalls(program: Program): { readonly step: Step; readonly call: Call; readonly nested: boolean }[] {
  return program.steps.flatMap((step) => {
    const { call } = step
    const inner = call.call === 'on' ? call.does : call.call === 'subscribe' ? call.inside : undefined
    return [{ step, call, nested: false }, ...(inner === undefined ? [] : [{ step, call: inner, nested: true }])]
  })
}
