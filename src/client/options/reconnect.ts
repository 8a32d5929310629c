/**
 * What follows a failed attempt or a lost connection. Types only.
 *
 * Durations are milliseconds unless a field says seconds (those that MQTT itself counts in seconds).
 */
import type { MqttError } from '../../errors.js'
import type { UserProperties } from '../../wire/packets.js'

/**
 * Milliseconds before the next attempt. `attempt` is 1 for the first delay since a connection was stable, `error` what made it necessary;
 * `random` gives numbers in [0, 1).
 */
export type Backoff = (
  attempt: number,
  error: MqttError | undefined,
  random?: () => number,
) => number

/** Options of {@link exponential}. */
export interface ExponentialOptions {
  /** Least delay in milliseconds. Default 1,000. */
  readonly min?: number | undefined
  /** Most. Default 30,000. */
  readonly max?: number | undefined
  /** `'full'` (default) draws from the whole window up to the current step, `'none'` gives the steps: `min`, twice that, and so on. */
  readonly jitter?: 'full' | 'none' | undefined
}

/**
 * `'retry'` after a delay; `'refresh'` once more with fresh credentials, and `'next'` after that; `'next'` never again at this endpoint, as long as
 * there are others; `'stop'` the client is over.
 */
export type Verdict = 'retry' | 'refresh' | 'next' | 'stop'

/** What `decide` gets besides the error. */
export interface DecisionContext {
  /** Attempts made since a connection was stable. */
  readonly attempt: number
  /** URL of the endpoint. */
  readonly endpoint: string
  /** What would be done. */
  readonly verdict: Verdict
}

/** How the client reconnects after a lost connection or a failed attempt. */
export interface ReconnectOptions {
  /** Milliseconds before each attempt. Default `exponential()`: full jitter, from 1 s to 30 s. */
  readonly backoff?: Backoff | undefined
  /** Milliseconds after which a connection counts as stable, so that delays start from the beginning; 0 to 2,147,483,647. Default 30,000. */
  readonly stableAfter?: number | undefined
  /**
   * Dials to come back after a loss, 1 or more; then the client ends with `ERR_RETRIES_EXHAUSTED`. The count restarts once a connection was stable.
   * Before the first connection every dial counts, but the first round goes over the whole list in any case. Default: no limit.
   */
  readonly maxAttempts?: number | undefined
  /** Overrides the table of verdicts in `docs/reconnecting.md`; undefined leaves it at that. Default: none. */
  readonly decide?:
    | ((error: MqttError, context: DecisionContext) => Verdict | undefined)
    | undefined
}

/** Options of `disconnect`. */
export interface DisconnectOptions {
  /** 0x00, or 0x04 so that the will is published; any code that a client may send (section 3.14.2.1). Default 0x00. */
  readonly reasonCode?: number | undefined
  /** Why, for the server's operator (section 3.14.2.2.3). Default: not sent. */
  readonly reasonString?: string | undefined
  /**
   * Seconds that the session lives on, 0 to 4,294,967,295; more than 0 only where CONNECT had more than 0 (section 3.14.2.2.2). Default: 0 with
   * `cleanStart: true`, else as in CONNECT.
   */
  readonly sessionExpiryInterval?: number | undefined
  /** Pairs of name and value (section 3.14.2.2.4). Default: none. */
  readonly userProperties?: UserProperties | undefined
  /** Milliseconds for running turns and the goodbye, 0 to 2,147,483,647; 0 is at once. Default 5,000. */
  readonly timeout?: number | undefined
  /** Cuts the wait short. Default: none. */
  readonly signal?: AbortSignal | undefined
}

/** Options of `reconnect`. */
export interface ReconnectNow {
  /** Replace a connection that is up. Default false. */
  readonly force?: boolean | undefined
  /** Why, for the `disconnect` event. Default: none. */
  readonly reason?: string | undefined
}
