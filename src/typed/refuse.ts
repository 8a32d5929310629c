/**
 * Refuses invalid arguments. Shared, so that each entry contains these texts once.
 */
import { MqttError, programFault } from '../errors.js'

/** The longest delay of a timer, in milliseconds. */
export const longestWait = 2_147_483_647

/** Throws the error for an invalid option. @throws MqttError ERR_INVALID_OPTION, always */
export function refuse(option: string, what: string): never {
  throw programFault(new MqttError('ERR_INVALID_OPTION', `${option} ${what}`, { option }))
}

/**
 * Refuses callbacks and other values that are not options objects.
 * @throws MqttError ERR_INVALID_OPTION
 */
export function assertOptions(given: unknown): void {
  if (given === undefined || (typeof given === 'object' && given !== null)) return
  refuse(
    'options',
    typeof given === 'function'
      ? 'must be an object, not a callback: await the promise'
      : 'must be an object',
  )
}

/** A whole number from 1 to `most`, or `usual`. @throws MqttError ERR_INVALID_OPTION */
export function wholeNumber<Usual extends number | undefined>(
  option: string,
  value: number | undefined,
  usual: Usual,
  most = longestWait,
): number | Usual {
  if (value === undefined) return usual
  return Number.isInteger(value) && value >= 1 && value <= most
    ? value
    : refuse(option, `must be an integer from 1 to ${most}`)
}

/**
 * @throws MqttError ERR_INVALID_OPTION unless it is a codec; schemas of some libraries also have
 * `encode` and `decode`
 */
export function assertCodec(
  given:
    | { readonly encode: unknown; readonly decode: unknown; readonly '~standard'?: unknown }
    | undefined,
): void {
  if (given?.['~standard'] !== undefined)
    refuse('codec', 'must be a codec, not a schema: json(schema) makes one of it')
  if (typeof given?.encode !== 'function' || typeof given.decode !== 'function')
    refuse('codec', 'must have encode and decode')
}

/** @throws MqttError ERR_INVALID_HANDLER unless it is a function */
export function assertHandler(given: unknown): void {
  if (typeof given !== 'function')
    throw programFault(new MqttError('ERR_INVALID_HANDLER', 'handler must be a function'))
}

/** Throws unless the client has this method. @throws MqttError ERR_INVALID_OPTION */
export function assertAble(
  client: object,
  method: 'listen' | 'post' | 'publish' | 'request' | 'respond' | 'subscription' | 'subscribe',
): void {
  if (typeof (client as Record<string, unknown>)[method] === 'function') return
  refuse(
    'client',
    `must have ${method}(): pools and queues only publish, and groups neither ask nor answer; bind it to a client for that`,
  )
}
