/**
 * What a failed attempt or a lost connection means for the next one: the decision table over CONNACK and DISCONNECT reason codes.
 *
 * Pure. Failures of the network are always worth another try; a server that said no is asked again only where its reason may pass.
 */

import type { MqttError } from '../../errors.js'
import type { Verdict } from '../options/index.js'

export const verdicts: readonly Verdict[] = ['retry', 'refresh', 'next', 'stop']

/** CONNACK reason codes that may pass: Unspecified error, Server unavailable, Server busy, Quota exceeded, Connection rate exceeded. */
const passing: readonly number[] = [0x80, 0x88, 0x89, 0x97, 0x9f]
/** Bad User Name or Password, Not authorized. */
const credentials: readonly number[] = [0x86, 0x87]
/** DISCONNECT reason codes after which the same server is not asked again: Bad authentication method, Use another server, Server moved. */
const departed: readonly number[] = [0x8c, 0x9c, 0x9d]
/** Session taken over, Administrative action. */
const final: readonly number[] = [0x8e, 0x98]

/** The default decision; `refreshable` where the next attempt may be made with something else. */
export function verdictOf({ code, reasonCode = 0 }: MqttError, refreshable = false): Verdict {
  // An option or a URL that is wrong: another try does not cure it.
  if (code.endsWith('_OPTION') || code.endsWith('_URL')) return refreshable ? 'retry' : 'next'
  if (code === 'ERR_CONNECT_REFUSED') {
    if (credentials.includes(reasonCode)) return 'refresh'
    return passing.includes(reasonCode) ? 'retry' : 'next'
  }
  if (code === 'ERR_SERVER_DISCONNECT' || code === 'ERR_SESSION_TAKEN_OVER') {
    if (final.includes(reasonCode)) return 'stop'
    if (credentials.includes(reasonCode)) return 'refresh'
    return departed.includes(reasonCode) ? 'next' : 'retry'
  }
  return code === 'ERR_CLOSED' || code === 'ERR_ABORTED' ? 'stop' : 'retry'
}
