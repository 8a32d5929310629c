/**
 * UNSUBSCRIBE: calls of the application, filters whose last consumer has left, and the broker's
 * answers. Every call settles with its answer or the end of the client.
 */

import { assertNotAborted, deferred, within } from '../../common/abort.js'
import { firstError } from '../../common/outcome.js'
import { MqttError } from '../../errors.js'
import { UNSUBACK } from '../../wire/constants.js'
import type { UserProperties } from '../../wire/packets.js'
import type { UnsubscribeResult } from '../options/index.js'
import { nameOf, refusal } from '../session/refusal.js'
import { type BrokerSubscription, withdraw } from './broker-subscription.js'
import type { Membership } from './membership.js'
import type { SubscribeHost } from './ports.js'
import type { PendingPacket, PendingUnsubscribe, UnsubscribeCall } from './subscribe-packets.js'

/** What the functions here work on. */
export interface Unsubscriber {
  readonly host: SubscribeHost
  readonly membership: Membership
  readonly sender: { push(packet: PendingPacket): void }
  /** Unanswered unsubscribe calls. */
  openUnsubscribes: number
}

/**
 * Unsubscribes filters, whether known here or not; local subscriptions on them end with the answer.
 */
export function unsubscribe(
  by: Unsubscriber,
  filters: readonly string[],
  userProperties?: UserProperties,
  signal?: AbortSignal,
): Promise<UnsubscribeResult[]> {
  assertNotAborted(signal)
  // Including those that are being left already, because that answer may be a refusal.
  const known = new Map(filters.map((filter) => [filter, by.membership.byFilter.get(filter)]))
  const call: UnsubscribeCall = { known, results: new Map(), answer: deferred(), sent: false }
  const packet: PendingUnsubscribe = {
    type: 'unsubscribe',
    filters: [...known.keys()],
    userProperties,
    call,
  }
  const unsent = [...known.values()].every((subscription) => subscription?.state === 'new')
  const { promise } = call.answer
  for (const subscription of known.values()) {
    if (subscription === undefined) continue
    stop(subscription)
    subscription.leaving = promise
    subscription.openUnsubscribes += 1
  }
  if (unsent) answerUnsubscribe(by, packet, [])
  else by.sender.push(packet)
  const done = (): void => {
    by.openUnsubscribes -= 1
    by.host.handleTurnEnd()
  }
  by.openUnsubscribes += 1
  promise.then(done, done)
  // Others may wait for the same answer, so an abort affects only this caller.
  return within(promise, signal, 'unknown')
}

// Marks a subscription as leaving; a SUBSCRIBE that was not sent is withdrawn.
function stop(subscription: BrokerSubscription): void {
  const { state, requests, takers } = subscription
  subscription.state = 'leaving'
  if (state !== 'new') return
  // A call that asked for several filters fails as a whole.
  for (const call of withdraw([...requests])) call.settle(new MqttError('ERR_ABORTED'))
  for (const consumer of [...takers.keys()]) consumer.leave()
}

/** Unsubscribes without a caller: a failure becomes an `error` event. */
export function depart(by: Unsubscriber, subscriptions: readonly BrokerSubscription[]): void {
  const filters = subscriptions.map(({ filter }) => filter)
  unsubscribe(by, filters).then(
    (results) => {
      const error = firstError(results)
      if (error !== undefined) by.host.events.emit('error', { error })
    },
    () => undefined,
  )
}

/**
 * True when a later SUBSCRIBE of this filter was granted: the UNSUBSCRIBE took effect although its
 * answer was lost. It is settled and not repeated.
 */
export function isSuperseded(
  by: Unsubscriber,
  { type, call }: PendingUnsubscribe,
  filter: string,
): boolean {
  const current = by.membership.byFilter.get(filter)
  if (current === undefined || current === call.known.get(filter) || current.state !== 'active')
    return false
  answerUnsubscribe(by, { type, filters: [filter], call }, [])
  return true
}

/**
 * Settles filters with an answer: a code for each (3.1.1 has none), or the reason why no answer
 * came.
 */
export function answerUnsubscribe(
  by: Unsubscriber,
  { call, filters }: PendingUnsubscribe,
  codes: readonly number[],
  failure?: MqttError,
): void {
  const { known, results, answer } = call
  for (const [at, filter] of filters.entries()) {
    const subscription = known.get(filter)
    const code = codes[at] ?? (failure === undefined ? 0 : 0x80)
    const error =
      failure ??
      (code < 0x80 ? undefined : refusal('ERR_UNSUBSCRIBE_REFUSED', code, undefined, UNSUBACK))
    results.set(
      filter,
      Object.freeze({ filter, reasonCode: code, reasonName: nameOf(code, UNSUBACK), error }),
    )
    if (subscription !== undefined) handleAnswer(by, subscription, error)
  }
  // In the order of the call.
  if (results.size === known.size)
    answer.resolve([...known.keys()].map((filter) => results.get(filter) as UnsubscribeResult))
}

function handleAnswer(
  { host, membership }: Unsubscriber,
  subscription: BrokerSubscription,
  error: MqttError | undefined,
): void {
  const { filter, grouped, lingers, takers } = subscription
  subscription.openUnsubscribes -= 1
  // Servers may send queued messages behind UNSUBACK: a member that leaves its group still handles
  // those.
  if (lingers || (host.states.stopping && grouped && takers.size > 0)) return
  // Granted, or replaced by a subscription made since.
  if (error === undefined || membership.byFilter.get(filter) !== subscription)
    membership.forget(subscription)
  // Refused. Without a consumer it counts as gone all the same: what arrives is acknowledged and
  // dropped.
  else if (takers.size > 0)
    subscription.state = subscription.openUnsubscribes > 0 ? 'leaving' : 'active'
  else host.router.handleForgotten(subscription)
}
