/**
 * Converts the failure of a member to a rejection, and failures of several members to one error.
 */
import { rejected } from '../common/abort.js'
import { brand, MqttError, type MqttErrorCode, type Outcome, put, textOf } from '../errors.js'

/**
 * Too many members have failed for the call to succeed. `errors` has their errors in the order of
 * the members, `members` by name. `MqttError.is` recognises it.
 */
export interface MembersError extends AggregateError {
  /** The code of all decisive errors if it is the same; otherwise a code for the whole call. */
  readonly code: MqttErrorCode
  /**
   * `'unknown'` if that is the outcome of any member, otherwise `'refused'` if that is the outcome
   * of any.
   */
  readonly outcome: Outcome
  /** The side at fault: `'remote'` if that is so for any member. */
  readonly fault: 'local' | 'remote'
  /** The MQTT reason code of all members, if it is the same. */
  readonly reasonCode: number | undefined
  /** The error of each member that failed. */
  readonly members: Readonly<Record<string, MqttError>>
}

/** One error for several members. @param code used if their codes differ */
export function membersError(
  code: MqttErrorCode,
  what: string,
  failures: ReadonlyMap<string, unknown>,
): MembersError {
  const named = [...failures].map(([name, error]) => [name, asMqttError(error)] as const)
  const errors = named.map(([, error]) => error)
  // Members that were not connected do not decide the outcome.
  const asked = errors.filter((error) => error.code !== 'ERR_NOT_CONNECTED')
  const decisive = asked.length > 0 ? asked : errors
  const shared = <K extends 'code' | 'reasonCode'>(field: K): MqttError[K] | undefined =>
    decisive.every((error) => error[field] === decisive[0]?.[field])
      ? decisive[0]?.[field]
      : undefined
  const text = named.map(([name, { message }]) => `${name}: ${message}`).join('\n')
  const all = new AggregateError(errors, `${what}:\n${text}`)
  put(all, brand, true)
  return Object.assign(all, {
    members: Object.fromEntries(named),
    code: shared('code') ?? code,
    outcome:
      (['unknown', 'refused'] as const).find((outcome) =>
        errors.some((error) => error.outcome === outcome),
      ) ?? ('not-sent' as const),
    fault: errors.some(({ fault }) => fault === 'remote')
      ? ('remote' as const)
      : ('local' as const),
    reasonCode: shared('reasonCode'),
  })
}

/** The result of a call; a thrown error becomes a rejection. */
export function attempt<R>(call: () => Promise<R>): Promise<R> {
  try {
    return call()
  } catch (error) {
    return rejected(error)
  }
}

/** Converts any rejection of a member to an error of this package. */
export function asMqttError(error: unknown): MqttError {
  return MqttError.is(error)
    ? error
    : new MqttError('ERR_NOT_CONNECTED', textOf(error), { cause: error })
}
