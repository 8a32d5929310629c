/**
 * Time, as the clients of a group or pool have it: that of the runtime, or that of a test.
 */
import { type Behind, inside } from '../client/internals.js'
import { runtime } from '../client/runtime.js'

/** A clock and its timers, in milliseconds. */
export type Time = NonNullable<Behind['platform']>

interface Telling {
  [inside]?(): Behind
  /** Of a pool. */
  members?(): readonly { readonly client: object }[]
}

/** The time of a client, or of the first one of a pool; of one that does not tell, and of none, that of the runtime. */
export function timeOf(client: object | undefined): Time {
  const { [inside]: behind, members } = (client ?? {}) as Telling
  const first = members?.call(client)[0]
  return first === undefined ? (behind?.call(client).platform ?? runtime) : timeOf(first.client)
}
