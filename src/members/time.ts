/**
 * Time, as the clients of a group or pool have it: that of the runtime, or that of a test.
 */
import { type Behind, inside } from '../client/common/inside.js'
import { runtime } from '../client/platform/runtime.js'

/** A clock and its timers, in milliseconds. */
export type Time = NonNullable<Behind['platform']>

/** The time of a client; of one that does not tell, and of none, that of the runtime. */
export function timeOf(client: object | undefined): Time {
  return (client as { [inside]?(): Behind } | undefined)?.[inside]?.().platform ?? runtime
}
