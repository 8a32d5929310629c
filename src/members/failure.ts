/**
 * What failed at a member, as a rejection; at several, as one error that names each of them.
 */
import { rejected } from '../common/abort.js'
import { brand, MqttError, type MqttErrorCode, type Outcome, put, textOf } from '../errors.js'

/** Every member that was asked has failed, or one too many: `errors` in the order of the members, `members` by their names. `MqttError.is` knows it. */
export interface MembersError extends AggregateError {
  /** That of all members that were asked, where they have the same; else what it means for the call. */
  readonly code: MqttErrorCode
  /** `'unknown'` where that of any member is, `'refused'` where that of any other one is. */
  readonly outcome: Outcome
  /** Whose doing it is: `'remote'` where that of any member is. */
  readonly fault: 'local' | 'remote'
  /** The MQTT reason code of all of them where they have the same. */
  readonly reasonCode: number | undefined
  /** The error of each member that failed. */
  readonly members: Readonly<Record<string, MqttError>>
}

/** One error for several members. @param code where theirs differ */
export function membersError(
  code: MqttErrorCode,
  what: string,
  failures: ReadonlyMap<string, unknown>,
): MembersError {
  const named = [...failures].map(([name, error]) => [name, asMqttError(error)] as const)
  const errors = named.map(([, error]) => error)
  // One that was not there says nothing of the call.
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

/** What a call gives; one that throws rejects. */
export function attempt<R>(call: () => Promise<R>): Promise<R> {
  try {
    return call()
  } catch (error) {
    return rejected(error)
  }
}

/** Whatever a member rejected with, as an error of this package. */
export function asMqttError(error: unknown): MqttError {
  return MqttError.is(error)
    ? error
    : new MqttError('ERR_NOT_CONNECTED', textOf(error), { cause: error })
}
