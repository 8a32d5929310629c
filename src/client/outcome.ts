/**
 * One failure, told to many: each operation that it ends gets the same error with what it means for that operation.
 */
import { MqttError, type Outcome } from '../errors.js'

/** The same failure, with what it means for one message. */
export function withOutcome(error: unknown, outcome: Outcome): MqttError {
  if (!MqttError.is(error)) return new MqttError('ERR_CONNECTION_LOST', 'the connection was lost', { fault: 'remote', outcome, cause: error })
  if (error.outcome === outcome) return error
  const { code, message, fault, reasonCode, reasonName: name, reasonString, option } = error
  return new MqttError(code, message, { outcome, fault, reasonCode, reasonName: name, reasonString, option, cause: error.cause })
}
