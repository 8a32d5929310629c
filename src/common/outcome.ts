/**
 * Outcomes and errors of ended operations. Operations that end because of one failure get the same
 * error, each with its own outcome.
 */
import { MqttError, type Outcome } from '../errors.js'

/**
 * A QoS 0 publish with a payload of this many bytes or more resolves when it was written; a smaller
 * one, when it was handed over.
 */
export const largePayload = 32 * 1024

/** The same error with another outcome. */
export function withOutcome(error: unknown, outcome: Outcome): MqttError {
  if (!MqttError.is(error))
    return new MqttError('ERR_CONNECTION_LOST', undefined, {
      fault: 'remote',
      outcome,
      cause: error,
    })
  return error.outcome === outcome
    ? error
    : new MqttError(error.code, error.message, { ...error, outcome, cause: error.cause })
}

/** The error of calls on a closed client; `states` knows the reason. */
export function closedError(states?: {
  readonly why?: string
  readonly failure?: MqttError | undefined
}): MqttError {
  return new MqttError(
    'ERR_CLOSED',
    `closed: ${states?.why || 'the client has ended'}; to start again, make a new Client`,
    {
      cause: states?.failure,
    },
  )
}

interface Result {
  readonly error: MqttError | undefined
}

/** The first error; undefined without an error. */
export function firstError(results: readonly Result[]): MqttError | undefined {
  return results.find(({ error }) => error !== undefined)?.error
}

/** The first error if every result is one. */
export function errorOfAll(results: readonly Result[]): MqttError | undefined {
  return results.every(({ error }) => error !== undefined) ? results[0]?.error : undefined
}
