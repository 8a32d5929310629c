/**
 * Time, as the clients of a group or pool have it: that of the runtime, or that of a test.
 */
import { access, type ClientAccess } from '../client/access.js'
import { runtime } from '../client/platform.js'

/** A clock and its timers, in milliseconds. */
export type Time = NonNullable<ClientAccess['platform']>

interface Telling {
  [access]?(): ClientAccess
  /** Of a pool. */
  members?(): readonly { readonly client: object }[]
}

/** The time of a client, or of the first one of a pool; the runtime's where there is no client, or one that gives none. */
export function timeOf(client: object | undefined): Time {
  const { [access]: behind, members } = (client ?? {}) as Telling
  const first = members?.call(client)[0]
  return first === undefined ? (behind?.call(client).platform ?? runtime) : timeOf(first.client)
}
