/**
 * Decides the step after each failure, loss and success: dial, after which delay, or stop with
 * which error.
 *
 * Pure: no timer, clock (`now` is an argument) or promise; the source of randomness is passed in.
 * `reconnector.ts` carries the steps out. It never asks for two dials at a time.
 */
import { longestTimer } from '../../common/schema.js'
import { SparseSet } from '../../common/sparse.js'
import { describe, MqttError } from '../../errors.js'
import type { ReconnectPolicy } from '../options/check-options.js'
import type { Verdict } from '../options/index.js'
import type { Platform } from '../platform.js'
import type { Blame } from '../session/refusal.js'
import type { BrokerList, Failure } from './brokers.js'

/**
 * Shortest time in milliseconds between dials without backoff: after wake-ups, `reconnect()`, and
 * replaced connections.
 */
export const wakeInterval = 1000
/** Delay in milliseconds when the application's backoff returns none. */
const fallback = 30_000

/** Configuration of the policy. */
export interface RetryConfig<E> {
  readonly brokers: BrokerList<E>
  /** False: try each endpoint once, and do not reconnect. */
  readonly policy: ReconnectPolicy | false
  /** If every endpoint fails in the first round, stop. */
  readonly rejectFirst: boolean
  /** Credentials come from a function, so asking again may help. */
  readonly refreshable: boolean
  readonly platform: Pick<Platform, 'random'>
  /** The name of an endpoint in error contexts. */
  readonly nameOf: (endpoint: E) => string
}

/**
 * A change of endpoints made while a failure was decided: the brokers follow a reference, or the
 * list was replaced.
 */
export type Hint = 'followed' | 'replaced' | undefined

/** What to do next. A dial without `delay` happens immediately and is not announced. */
export type Step =
  | { readonly type: 'dial'; readonly delay: number | undefined; readonly urgent?: boolean }
  | { readonly type: 'stop'; readonly error: MqttError }

/**
 * `round`: the first pass over the list; `up`: connected; `down`: any later time without a
 * connection.
 */
type State<E> =
  | { readonly name: 'idle' }
  | { readonly name: 'round'; readonly failures: Failure<E>[]; left: number }
  | { readonly name: 'up'; readonly since: number }
  | { readonly name: 'down' }

const immediately: Step = { type: 'dial', delay: undefined }
const urgently: Step = { type: 'dial', delay: 0, urgent: true }

/** The decisions of one client. */
export class RetryPolicy<E> {
  /** Number of the current or next attempt since a connection was stable, from 1. */
  attempt = 1
  /** True once a server has accepted a connection. */
  connectedOnce = false
  /** The failure that made the attempt necessary. */
  lastError: MqttError | undefined
  #state: State<E> = { name: 'idle' }
  #delays = 0
  /**
   * Attempts counted against `maxAttempts`. Those that led to the first connection are discounted
   * once it is up.
   */
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

  /** The list was replaced: a first round restarts. */
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

  /**
   * An attempt that does not count: the endpoint is retried with the other version, or the dial was
   * aborted.
   */
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
   * The connection ended. `urgent`: no need to wait, as after a wake-up or a replacement. `blame`:
   * a request may be the cause; the server then does not reject the client, and if a single request
   * is to blame, the delay does not grow.
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
      // An end by choice does not count against the server.
      if (!urgent && blame !== 'blamed' && error.fault !== 'local') this.#spent += 1
    }
    this.#state = { name: 'down' }
    this.lastError = error
    // A replaced connection is not lost.
    if (policy === false && !(urgent && error.fault === 'local')) return { type: 'stop', error }
    if (hint === 'followed') this.#config.brokers.handleFollowed(error)
    if (hint === 'followed' || urgent) return urgently
    if (hint === 'replaced') return this.#delayed(error)
    // The endpoint that worked is tried first, unless it keeps accepting and dropping connections.
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

  // The error after all endpoints have failed, with the cause for each.
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

  // If the application's function decided to stop, the error is ERR_RETRIES_EXHAUSTED; for the
  // default reasons, the original error.
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

// Calls a function of the application; undefined when it throws.
function guarded<T>(ask: () => T): T | undefined {
  try {
    const answer = ask()
    // A promise is not accepted as a result.
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

/**
 * CONNACK reason codes that may be temporary: Unspecified error, Server unavailable, Server busy,
 * Quota exceeded, Connection rate exceeded.
 */
const passing: readonly number[] = [0x80, 0x88, 0x89, 0x97, 0x9f]
/** Bad User Name or Password, Not authorized. */
const credentials: readonly number[] = [0x86, 0x87]
/**
 * DISCONNECT reason codes after which the same server is not dialled again: Bad authentication
 * method, Use another server, Server moved.
 */
const departed: readonly number[] = [0x8c, 0x9c, 0x9d]
/** Session taken over, Administrative action. */
const final: readonly number[] = [0x8e, 0x98]

/** The default verdict; `refreshable` when the next attempt may use other credentials. */
export function verdictOf({ code, reasonCode = 0 }: MqttError, refreshable = false): Verdict {
  // An invalid option or URL: retrying does not help.
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
