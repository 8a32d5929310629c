/**
 * UNSUBSCRIBE: calls of the application, filters whose last reader has left, and what the broker answers.
 *
 * Every call settles: with its answer, or the end of the client.
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
import type { PendingPacket, PendingUnsubscribe, UnsubscribeCall } from './pending-packets.js'
import type { SubscribeHost } from './ports.js'

/** What it is about. */
export interface Unsubscriber {
  readonly host: SubscribeHost
  readonly membership: Membership
  readonly sender: { push(packet: PendingPacket): void }
  /** UNSUBSCRIBE calls without an answer. */
  openUnsubscribes: number
}

/** For these filters, known here or not; local subscriptions on them end with the answer. */
export function unsubscribe(
  by: Unsubscriber,
  filters: readonly string[],
  userProperties?: UserProperties,
  signal?: AbortSignal,
): Promise<UnsubscribeResult[]> {
  assertNotAborted(signal)
  // Also those that are leaving: that answer may be a refusal.
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
  // Others may wait for the same answer: an abort is only about who asked.
  return within(promise, signal, 'unknown')
}

// A SUBSCRIBE that has not left is not needed any more.
function stop(subscription: BrokerSubscription): void {
  const { state, requests, takers } = subscription
  subscription.state = 'leaving'
  if (state !== 'new') return
  // A call that asked for more filters than this one fails whole.
  for (const call of withdraw([...requests])) call.settle(new MqttError('ERR_ABORTED'))
  for (const consumer of [...takers.keys()]) consumer.leave()
}

/** The same where no caller waits for the answer: a failure becomes an event. */
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

/** It had its effect, though its answer was lost: what was subscribed to after it is granted. It is answered, and not sent again. */
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

/** There is an answer: a code for each filter (no codes on 3.1.1), or the reason why no answer came. */
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
  // In the order asked.
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
  // Servers send what they had for it behind UNSUBACK: a member that leaves its group hands that out too.
  if (lingers || (host.states.stopping && grouped && takers.size > 0)) return
  // Refused or not, a subscription made since has taken its place.
  if (error === undefined || membership.byFilter.get(filter) !== subscription)
    membership.forget(subscription)
  // Without a reader it counts as gone: what arrives is acknowledged and dropped.
  else if (takers.size > 0)
    subscription.state = subscription.openUnsubscribes > 0 ? 'leaving' : 'active'
  else host.router.handleForgotten(subscription)
}
