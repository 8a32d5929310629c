/**
 * Options for failed attempts and lost connections. Types only.
 *
 * Durations are milliseconds unless a field says seconds (those that MQTT itself counts in
 * seconds).
 */
import type { MqttError } from '../../errors.js'
import type { UserProperties } from '../../wire/packets.js'

/**
 * Returns the milliseconds before the next attempt. `attempt` is 1 for the first delay since a
 * connection was stable, `error` is the failure before it; `random` returns numbers in [0, 1).
 */
export type Backoff = (
  attempt: number,
  error: MqttError | undefined,
  random?: () => number,
) => number

/** Options of {@link exponential}. */
export interface ExponentialOptions {
  /** Shortest delay in milliseconds. Default 1,000. */
  readonly min?: number | undefined
  /** Longest delay in milliseconds. Default 30,000. */
  readonly max?: number | undefined
  /**
   * `'full'` (default) chooses randomly between `min` and the next step; `'none'` uses the steps:
   * `min`, twice that, and so on up to `max`.
   */
  readonly jitter?: 'full' | 'none' | undefined
}

/**
 * `'retry'`: try again after a delay. `'refresh'`: once more with fresh credentials, then as
 * `'next'`. `'next'`: not again at this endpoint while there are others. `'stop'`: end the client.
 */
export type Verdict = 'retry' | 'refresh' | 'next' | 'stop'

/** What `decide` gets besides the error. */
export interface DecisionContext {
  /** Attempts made since a connection was stable. */
  readonly attempt: number
  /** URL of the endpoint. */
  readonly endpoint: string
  /** The default verdict. */
  readonly verdict: Verdict
}

/** How the client reconnects after a lost connection or a failed attempt. */
export interface ReconnectOptions {
  /** Milliseconds before each attempt. Default `exponential()`: full jitter, from 1 s to 30 s. */
  readonly backoff?: Backoff | undefined
  /**
   * Milliseconds after which a connection counts as stable and the backoff restarts; 0 to
   * 2,147,483,647. Default 30,000.
   */
  readonly stableAfter?: number | undefined
  /**
   * Attempts to reconnect after a loss, 1 or more; then the client ends with
   * `ERR_RETRIES_EXHAUSTED`. The count restarts once a connection was stable. Before the first
   * connection every attempt counts, but the first round always tries the whole list. Default: no
   * limit.
   */
  readonly maxAttempts?: number | undefined
  /**
   * Overrides the table of verdicts in `docs/reconnecting.md`; undefined keeps the default verdict.
   * Default: none.
   */
  readonly decide?:
    | ((error: MqttError, context: DecisionContext) => Verdict | undefined)
    | undefined
}

/** Options of `disconnect`. */
export interface DisconnectOptions {
  /**
   * 0x00, or 0x04 to have the will published; any code that a client may send (section 3.14.2.1).
   * Default 0x00.
   */
  readonly reasonCode?: number | undefined
  /** Reason String for the server's operator (section 3.14.2.2.3). Default: not sent. */
  readonly reasonString?: string | undefined
  /**
   * Seconds that the session outlives the connection, 0 to 4,294,967,295; more than 0 only if
   * CONNECT had more than 0 (section 3.14.2.2.2). Default: 0 with `cleanStart: true`, otherwise as
   * in CONNECT.
   */
  readonly sessionExpiryInterval?: number | undefined
  /** Pairs of name and value (section 3.14.2.2.4). Default: none. */
  readonly userProperties?: UserProperties | undefined
  /**
   * Milliseconds for running turns and DISCONNECT, 0 to 2,147,483,647; 0 does not wait. Default
   * 5,000.
   */
  readonly timeout?: number | undefined
  /** Ends the wait early. Default: none. */
  readonly signal?: AbortSignal | undefined
}

/** Options of `reconnect`. */
export interface ReconnectNow {
  /** Replace an open connection. Default false. */
  readonly force?: boolean | undefined
  /** The reason, for the `disconnect` event. Default: none. */
  readonly reason?: string | undefined
}
