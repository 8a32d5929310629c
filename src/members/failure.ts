/**
 * What failed at a member, as a rejection; at several, as one error that names each of them.
 */
import { rejected } from '../client/common/abort.js'
import { MqttError, textOf } from '../errors.js'

/** Every member that was asked has failed, or one too many: `errors` in the order of the members, `members` by their names. */
export interface MembersError extends AggregateError {
  /** The error of each member that failed. */
  readonly members: Readonly<Record<string, MqttError>>
}

/** One error for several members. */
export function membersError(what: string, failures: ReadonlyMap<string, unknown>): MembersError {
  const errors = [...failures].map(([name, error]) => [name, asMqttError(error)] as const)
  const text = errors.map(([name, { message }]) => `${name}: ${message}`).join('\n')
  const all = new AggregateError(
    errors.map(([, error]) => error),
    `${what}:\n${text}`,
  )
  return Object.assign(all, { members: Object.fromEntries(errors) })
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
  return MqttError.is(error) ? error : new MqttError('ERR_NOT_CONNECTED', textOf(error), { cause: error })
}

/** What was rejected, by the names of those that were asked. */
export function failuresOf(asked: readonly { readonly name: string }[], results: readonly PromiseSettledResult<unknown>[]): Map<string, unknown> {
  return new Map(results.flatMap((result, index) => (result.status === 'rejected' ? [[asked[index]?.name as string, result.reason] as const] : [])))
}
