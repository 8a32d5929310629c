/**
 * Errors in the form of MQTT.js: with the numeric reason code, or the code of the system. The
 * mqwire error is the `cause`.
 */
import { MqttError } from 'mqwire'

/** An error with a reason code. Its `cause` is the more detailed error of mqwire. */
export class ErrorWithReasonCode extends Error {
  /** The reason code (section 2.4); for a CONNECT refused on 3.1.1, the return code. */
  code: number

  /** @param cause the mqwire error */
  constructor(message: string, code: number, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.code = code
  }
}

/** Return codes of 3.1.1, by reason code of 5.0. */
const returnCodes: Readonly<Record<number, number>> = { 132: 1, 133: 2, 136: 3, 134: 4, 135: 5 }

/** Beginning of the message, by error code. */
const subjects: Readonly<Record<string, string>> = {
  ERR_CONNECT_REFUSED: 'Connection refused',
  ERR_PUBLISH_REFUSED: 'Publish error',
  ERR_SUBSCRIBE_REFUSED: 'Subscribe error',
}

/** Messages of MQTT.js that programs may compare. */
const texts: Readonly<Record<string, string>> = {
  ERR_CONNECT_TIMEOUT: 'connack timeout',
  ERR_KEEPALIVE_TIMEOUT: 'Keepalive timeout',
}

/**
 * Converts an error to the form of MQTT.js if it comes from the broker or the system; others stay
 * unchanged.
 */
export function familiar(error: unknown, modern: boolean): Error {
  if (!MqttError.is(error)) return error as Error
  const { code, reasonCode, reasonName, cause } = error
  const subject = subjects[code]
  if (subject !== undefined && reasonCode !== undefined) {
    const number =
      modern || code !== 'ERR_CONNECT_REFUSED'
        ? reasonCode
        : (returnCodes[reasonCode] ?? reasonCode)
    return new ErrorWithReasonCode(`${subject}: ${reasonName}`, number, error)
  }
  const text = texts[code]
  if (text !== undefined) return new MqttError(code, text, { ...error, cause: error })
  const isOfSystem =
    cause instanceof Error &&
    !MqttError.is(cause) &&
    typeof (cause as { code?: unknown }).code === 'string'
  return isOfSystem ? cause : error
}

/** True for a mistake of the program in a call, which a retry would not fix. */
export function isMistake(error: unknown): boolean {
  return (
    MqttError.is(error) && ['_OPTION', '_TOPIC', '_PAYLOAD'].some((end) => error.code.endsWith(end))
  )
}

/**
 * True for errors that MQTT.js emits as `error` when a connection ends: not after an orderly end.
 */
export function isFault(error: MqttError | undefined): error is MqttError {
  if (error === undefined || error.code === 'ERR_SERVER_DISCONNECT') return false
  return error.code !== 'ERR_CONNECTION_LOST' || error.cause !== undefined
}
