/**
 * Which requests can share one subscription at the broker, and what a reason code grants. Pure
 * functions.
 */

import { optionError } from '../../common/schema.js'
import { describe, type MqttError, printable } from '../../errors.js'
import { SUBACK } from '../../wire/constants.js'
import type { QoS, SubscriptionRequest } from '../../wire/packets.js'
import type { Grant } from '../options/index.js'
import { nameOf, refusal } from '../session/refusal.js'

type Shared = Pick<SubscriptionRequest, 'noLocal' | 'retainAsPublished'> & {
  readonly identifier?: number
}

/**
 * The option in which a request differs from an existing subscription; undefined when it can share
 * it.
 */
export function difference(
  mine: Shared,
  asked: SubscriptionRequest,
  identifier = mine.identifier,
): string | undefined {
  const name = (['noLocal', 'retainAsPublished'] as const).find(
    (option) => mine[option] !== asked[option],
  )
  if (name !== undefined) return `${name} ${mine[name]}, not ${asked[name]}`
  return identifier === mine.identifier
    ? undefined
    : `subscriptionIdentifier ${mine.identifier}, not ${identifier}`
}

/**
 * The server keeps one value of each option per filter. @throws MqttError ERR_SUBSCRIPTION_CONFLICT
 */
export function assertShared(mine: Shared, asked: SubscriptionRequest, identifier?: number): void {
  const text = difference(mine, asked, identifier)
  const code = 'ERR_SUBSCRIPTION_CONFLICT'
  if (text !== undefined)
    throw optionError(code, 'filter', describe(code, `${printable(asked.filter)} has ${text}`))
}

/** Applies the lower Retain Handling, which asks for more. */
export function wantRetained(
  request: { retainHandling: 0 | 1 | 2 },
  { retainHandling }: { readonly retainHandling: 0 | 1 | 2 },
): void {
  if (retainHandling < request.retainHandling) request.retainHandling = retainHandling
}

/** Merges requests for the same filter into one. @throws MqttError ERR_SUBSCRIPTION_CONFLICT */
export function merged(asked: readonly SubscriptionRequest[]): SubscriptionRequest[] {
  const byFilter = new Map<string, SubscriptionRequest>()
  for (const request of asked) {
    const other = byFilter.get(request.filter) ?? request
    assertShared(other, request)
    const both = { ...request, qos: Math.max(other.qos, request.qos) as QoS }
    wantRetained(both, other)
    byFilter.set(request.filter, both)
  }
  return [...byFilter.values()]
}

/**
 * The grant for a SUBACK reason code (section 3.9.3); `error` replaces the default error of a
 * refusal.
 */
export function grantOf(filter: string, reasonCode: number, error?: MqttError): Grant {
  const refused = reasonCode >= 0x80
  if (refused) error ??= refusal('ERR_SUBSCRIBE_REFUSED', reasonCode, undefined, SUBACK)
  return Object.freeze<Grant>({
    filter,
    qos: refused ? undefined : (reasonCode as QoS),
    reasonCode,
    reasonName: nameOf(reasonCode, SUBACK),
    error,
  })
}
