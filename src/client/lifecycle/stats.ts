/**
 * `client.stats()`: the counters and current values.
 */

import { Counters } from '../../common/counters.js'
import type { Stats } from '../options/index.js'
import type { ClientInternals } from './internals.js'

/** A frozen snapshot of the counters and current values. */
export function snapshot({
  counters,
  publishingIfUsed,
  subscriptions,
  session,
}: Pick<ClientInternals, 'counters' | 'publishingIfUsed' | 'subscriptions' | 'session'>): Stats {
  const { failures, ...rest } = counters ?? new Counters()
  // Without `stats`, every value is 0.
  const gauge = (value: number): number => (counters === undefined ? 0 : value)
  return Object.freeze({
    ...rest,
    publishesInFlight: gauge(publishingIfUsed?.inFlight ?? 0),
    publishesQueued: gauge(publishingIfUsed?.size ?? 0),
    unread: gauge([...subscriptions.consumers].reduce((sum, consumer) => sum + consumer.size, 0)),
    unsolicitedAcks: gauge(session.sendWindow.unsolicited),
    receiveMaximumExceeded: gauge(session.receiveWindow.excess),
    failures: Object.freeze(
      Object.assign(Object.create(null), Object.fromEntries(failures)) as Record<string, number>,
    ),
  })
}
