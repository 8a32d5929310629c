/**
 * Decides what follows from each failure, loss and success: dial whom, after how long, or stop with which error.
 *
 * Pure: no timer, no clock (`now` is an argument), no promise; the source of randomness is passed in. States are objects, each with its own answers; `reconnector.ts`
 * carries the steps out. It never asks for two dials at a time.
 */
import { longestTimer } from '../../common/schema.js'
import { SparseSet } from '../../common/sparse.js'
import { describe, MqttError } from '../../errors.js'
import type { ReconnectPolicy } from '../options/check-options.js'
import type { Verdict } from '../options/index.js'
import type { Platform } from '../platform.js'
import type { Blame } from '../session/refusal.js'
import type { BrokerList, Failure } from './brokers.js'

/** Milliseconds between dials that do not wait for the backoff: wake-ups, `reconnect()`, our own replacements. */
export const wakeInterval = 1000
/** Milliseconds, where a backoff of the application gives no delay. */
const fallback = 30_000

/** What the policy needs to know. */
export interface RetryConfig<E> {
  readonly brokers: BrokerList<E>
  /** False: one round, one connection. */
  readonly policy: ReconnectPolicy | false
  /** The first round decides. */
  readonly rejectFirst: boolean
  /** Credentials come from a function, so that asking once more may help. */
  readonly refreshable: boolean
  readonly platform: Pick<Platform, 'random'>
  /** How an endpoint is named in contexts. */
  readonly nameOf: (endpoint: E) => string
}

/** What a failure comes with: the brokers hold a reference to follow, or the application gave a new list. */
export type Hint = 'followed' | 'replaced' | undefined

/** What to do next. A dial with `delay` undefined follows at once, without being announced. */
export type Step =
  | { readonly type: 'dial'; readonly delay: number | undefined; readonly urgent?: boolean }
  | { readonly type: 'stop'; readonly error: MqttError }

/** Where the client stands: `round` is the first pass over the list, `up` a connection, `down` anything after. */
type State<E> =
  | { readonly name: 'idle' }
  | { readonly name: 'round'; readonly failures: Failure<E>[]; left: number }
  | { readonly name: 'up'; readonly since: number }
  | { readonly name: 'down' }

const immediately: Step = { type: 'dial', delay: undefined }
const urgently: Step = { type: 'dial', delay: 0, urgent: true }

/** The decisions of one client. */
export class RetryPolicy<E> {
  /** Number of the attempt that is under way or comes next, from 1 since a connection was stable. */
  attempt = 1
  /** True once a server took us in. */
  connectedOnce = false
  /** What made the attempt necessary. */
  lastError: MqttError | undefined
  #state: State<E> = { name: 'idle' }
  #delays = 0
  /** Dials that count against `maxAttempts`: what led to the first connection was not to come back. */
  #spent = 0
  readonly #refreshed = new SparseSet<E>()
  readonly #config: RetryConfig<E>

  constructor(config: RetryConfig<E>) {
    this.#config = config
  }

  /** `connect()` was called. */
  begin(): Step {
    this.#state = { name: 'round', failures: [], left: this.#config.brokers.length }
    return immediately
  }

  /** The list was replaced: a round in progress is one over the new list. */
  handleReplaced(): void {
    if (this.#state.name === 'round') this.begin()
  }

  /** An attempt failed. */
  handleFailed(error: MqttError, hint: Hint): Step {
    const state = this.#state
    const { brokers, policy } = this.#config
    this.lastError = error
    this.attempt += 1
    this.#spent += 1
    if (hint === 'followed') {
      const departed = brokers.handleFollowed(error)
      if (state.name === 'round') {
        state.failures.push([brokers.asked, error])
        if (departed) state.left -= 1
      }
      return immediately
    }
    if (hint === 'replaced')
      return state.name === 'round' && policy === false ? urgently : this.#delayed(error)
    return state.name === 'round' ? this.#afterRound(state, error) : this.#again(error, true)
  }

  /** An attempt that counts for nothing: the endpoint is asked at once at the other version, or the dial was given up. */
  handleVoid(urgent: boolean): Step {
    this.attempt += 1
    return urgent ? urgently : immediately
  }

  handleConnected(now: number): void {
    if (!this.connectedOnce) this.#spent = -1
    this.connectedOnce = true
    this.#state = { name: 'up', since: now }
    this.#config.brokers.worked()
  }

  /**
   * The connection ended. `urgent`: there is nothing to wait for, as after a wake-up or by our own choice. `blame`: a request of ours may be the cause;
   * then the server has nothing against the client, and where one request is to blame, no delay grows.
   */
  handleLost(error: MqttError, now: number, urgent: boolean, hint: Hint, blame?: Blame): Step {
    const { policy } = this.#config
    if (
      this.#state.name === 'up' &&
      policy !== false &&
      now - this.#state.since >= policy.stableAfter
    )
      this.#settled()
    else {
      this.attempt += 1
      // An end of our own choice says nothing of the server.
      if (!urgent && blame !== 'blamed' && error.fault !== 'local') this.#spent += 1
    }
    this.#state = { name: 'down' }
    this.lastError = error
    // What we replace ourselves is not lost.
    if (policy === false && !(urgent && error.fault === 'local')) return { type: 'stop', error }
    if (hint === 'followed') this.#config.brokers.handleFollowed(error)
    if (hint === 'followed' || urgent) return urgently
    if (hint === 'replaced') return this.#delayed(error)
    // What worked is tried first; not for ever, where it takes us in and hangs up again and again.
    return this.#again(error, this.#delays > 0, blame)
  }

  #settled(): void {
    this.attempt = 1
    this.#delays = 0
    this.#spent = 0
    this.#refreshed.clear()
    this.#config.brokers.settled()
  }

  #afterRound(state: State<E> & { name: 'round' }, error: MqttError): Step {
    const { brokers, rejectFirst, policy } = this.#config
    const verdict = this.#verdict(error)
    if (verdict === 'refresh') return immediately
    if (verdict === 'stop') return this.#stopped(error)
    state.failures.push([brokers.asked, error])
    if (verdict === 'next') brokers.refuse(error)
    if (!brokers.detoured) state.left -= 1
    if (state.left > 0) {
      brokers.rotate()
      return immediately
    }
    if (rejectFirst || policy === false) return this.#allFailed(state.failures)
    this.#state = { name: 'down' }
    return this.#rotated(error)
  }

  #again(error: MqttError, rotates: boolean, blame?: Blame): Step {
    const { policy, brokers } = this.#config
    if (policy === false) return { type: 'stop', error }
    const verdict = this.#verdict(error, blame && 'retry')
    if (verdict === 'stop') return this.#stopped(error)
    if (verdict === 'next') brokers.refuse(error)
    const blamed = blame === 'blamed'
    return verdict === 'next' || (verdict === 'retry' && rotates && !blamed)
      ? this.#rotated(error)
      : this.#delayed(error, blamed)
  }

  #rotated(error: MqttError): Step {
    const { brokers } = this.#config
    brokers.rotate()
    const { refusals } = brokers
    return refusals === undefined ? this.#delayed(error) : this.#allFailed(refusals)
  }

  #delayed(error: MqttError, blamed = false): Step {
    const { policy, platform } = this.#config
    if (policy === false) return { type: 'stop', error }
    if (!blamed) {
      if (this.#spent >= policy.maxAttempts) return exhausted(error)
      this.#delays += 1
    }
    const delay = guarded(() =>
      policy.backoff(Math.max(1, this.#delays), error, () => platform.random()),
    )
    return {
      type: 'dial',
      delay: typeof delay === 'number' && delay >= 0 ? Math.min(delay, longestTimer) : fallback,
    }
  }

  // One cause for each endpoint that was tried, also in words.
  #allFailed(failures: readonly Failure<E>[]): Step {
    const errors = failures.map(([, error]) => error)
    const texts = failures.map(
      ([endpoint, { message }]) => `${this.#config.nameOf(endpoint)}: ${message}`,
    )
    const all = new MqttError('ERR_CONNECT_FAILED', texts.join('\n'), {
      fault: 'remote',
      cause: new AggregateError(errors),
    })
    return { type: 'stop', error: errors.length === 1 ? (errors[0] as MqttError) : all }
  }

  // A policy of the application that gives up has had enough; the table's own reasons speak for themselves.
  #stopped(error: MqttError): Step {
    return verdictOf(error) === 'stop' ? { type: 'stop', error } : exhausted(error)
  }

  #verdict(error: MqttError, usual = verdictOf(error, this.#config.refreshable)): Verdict {
    const { policy, brokers, refreshable, nameOf } = this.#config
    const context = { attempt: this.attempt - 1, endpoint: nameOf(brokers.asked), verdict: usual }
    const given = policy === false ? undefined : guarded(() => policy.decide?.(error, context))
    const verdict = given !== undefined && verdicts.includes(given) ? given : usual
    if (verdict !== 'refresh') return verdict
    if (!refreshable || this.#refreshed.has(brokers.asked)) return 'next'
    this.#refreshed.add(brokers.asked)
    return 'refresh'
  }
}

// A function of the application that throws has no opinion.
function guarded<T>(ask: () => T): T | undefined {
  try {
    const answer = ask()
    // One that takes its time is no answer either.
    if (answer instanceof Promise) answer.catch(() => undefined)
    return answer
  } catch {
    return undefined
  }
}

function exhausted(cause: MqttError): Step {
  return {
    type: 'stop',
    error: new MqttError(
      'ERR_RETRIES_EXHAUSTED',
      describe('ERR_RETRIES_EXHAUSTED', cause.message),
      {
        fault: 'remote',
        outcome: cause.outcome,
        cause,
      },
    ),
  }
}

export const verdicts: readonly Verdict[] = ['retry', 'refresh', 'next', 'stop']

/** CONNACK reason codes that may pass: Unspecified error, Server unavailable, Server busy, Quota exceeded, Connection rate exceeded. */
const passing: readonly number[] = [0x80, 0x88, 0x89, 0x97, 0x9f]
/** Bad User Name or Password, Not authorized. */
const credentials: readonly number[] = [0x86, 0x87]
/** DISCONNECT reason codes after which the same server is not asked again: Bad authentication method, Use another server, Server moved. */
const departed: readonly number[] = [0x8c, 0x9c, 0x9d]
/** Session taken over, Administrative action. */
const final: readonly number[] = [0x8e, 0x98]

/** The default decision; `refreshable` where the next attempt may be made with something else. */
export function verdictOf({ code, reasonCode = 0 }: MqttError, refreshable = false): Verdict {
  // An option or a URL that is wrong: another try does not cure it.
  if (code.endsWith('_OPTION') || code.endsWith('_URL')) return refreshable ? 'retry' : 'next'
  if (code === 'ERR_CONNECT_REFUSED') {
    if (credentials.includes(reasonCode)) return 'refresh'
    return passing.includes(reasonCode) ? 'retry' : 'next'
  }
  if (code === 'ERR_SERVER_DISCONNECT' || code === 'ERR_SESSION_TAKEN_OVER') {
    if (final.includes(reasonCode)) return 'stop'
    if (credentials.includes(reasonCode)) return 'refresh'
    return departed.includes(reasonCode) ? 'next' : 'retry'
  }
  return code === 'ERR_CLOSED' || code === 'ERR_ABORTED' ? 'stop' : 'retry'
}
