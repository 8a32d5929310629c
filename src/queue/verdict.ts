/**
 * What the error of a publish means for its entry. A pure function.
 */
import { MqttError } from '../errors.js'

/**
 * `'retry'`: the same message may succeed later. `'dead'`: it never will. `'expired'`: it is no
 * longer worth sending. `'over'`: the publisher is closed.
 */
export type Verdict = 'retry' | 'dead' | 'expired' | 'over'

/**
 * Unspecified error, Implementation specific error, Packet Identifier in use, Quota exceeded
 * (section 3.4.2.1).
 */
const passing: readonly (number | undefined)[] = [0x80, 0x83, 0x91, 0x97]

/** Errors caused by the message itself, which would occur on every connection. */
const hopeless: readonly string[] = [
  'ERR_INVALID_OPTION',
  'ERR_INVALID_PAYLOAD',
  'ERR_INVALID_TOPIC',
  'ERR_PACKET_TOO_LARGE',
  'ERR_POISONED',
  'ERR_QOS_UNSUPPORTED',
  'ERR_RETAIN_UNSUPPORTED',
  'ERR_UNSUPPORTED_OPTION',
]

/** True when there is nothing to retry. */
export function endsEntry(verdict: Verdict): boolean {
  return verdict === 'dead' || verdict === 'expired'
}

/**
 * The verdict on an error. Unknown errors count as temporary, unless the message must arrive only
 * once and may have arrived.
 */
export function verdictOf(error: unknown, once = false): Verdict {
  if (!MqttError.is(error)) return 'retry'
  const { code, reasonCode, outcome } = error
  if (code === 'ERR_PUBLISH_REFUSED') return passing.includes(reasonCode) ? 'retry' : 'dead'
  if (code === 'ERR_EXPIRED') return 'expired'
  if (code === 'ERR_CLOSED' || code === 'ERR_QUEUE_CLOSED') return 'over'
  return hopeless.includes(code) || (once && outcome === 'unknown') ? 'dead' : 'retry'
}
