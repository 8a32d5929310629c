/**
 * Checks the arguments of tests: names, types and ranges; errors say what is allowed.
 *
 * Arguments are never changed. Messages repeat only numbers and short names, never a value that may
 * be secret.
 */
import { MqttError } from '../../../errors.js'

/** The error for an option that cannot be used. */
export function invalid(option: string, message: string): MqttError {
  return new MqttError('ERR_INVALID_OPTION', `${option} ${message}`, { option })
}

/** @throws MqttError `ERR_INVALID_OPTION` unless it is a whole number in the range */
export function checkInteger(option: string, value: unknown, least: number, most: number): void {
  if (typeof value === 'number' && Number.isInteger(value) && value >= least && value <= most)
    return
  throw invalid(option, `must be an integer from ${least} to ${most}, not ${kindOf(value)}`)
}

/**
 * @throws MqttError `ERR_INVALID_OPTION` unless it is a number of milliseconds that a clock can add
 */
export function checkDuration(option: string, value: unknown): void {
  if (typeof value === 'number' && value >= 0 && value <= Number.MAX_SAFE_INTEGER) return
  throw invalid(option, `must be a number of milliseconds from 0 to 2^53 - 1, not ${kindOf(value)}`)
}

/** @throws MqttError `ERR_INVALID_OPTION` unless `typeof` returns this type */
export function checkType(
  option: string,
  value: unknown,
  type: 'boolean' | 'function' | 'string',
): void {
  if (typeof value !== type) throw invalid(option, `must be a ${type}, not ${kindOf(value)}`)
}

/** @throws MqttError `ERR_INVALID_OPTION` unless it is one of the values */
export function checkOneOf(option: string, value: unknown, values: readonly unknown[]): void {
  if (!values.includes(value))
    throw invalid(option, `must be ${values.map(quoted).join(' or ')}, not ${quoted(value)}`)
}

/** Describes a value in a word or two. */
export function kindOf(value: unknown): string {
  if (
    value === null ||
    typeof value === 'undefined' ||
    typeof value === 'number' ||
    typeof value === 'boolean'
  )
    return String(value)
  if (Array.isArray(value)) return 'an array'
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`
}

function quoted(value: unknown): string {
  return typeof value === 'string' ? `'${value.slice(0, 40)}'` : kindOf(value)
}
