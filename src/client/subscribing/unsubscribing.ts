/**
 * UNSUBSCRIBE: calls of the application, filters whose last reader has left, and what the broker answers.
 *
 * Every call settles: with its answer, or the end of the client.
 */
import { MqttError } from '../../errors.js'
import { UNSUBACK } from '../../wire/constants.js'
import type { UserProperties } from '../../wire/packets.js'
import type { UnsubscribeResult } from '../api/index.js'
import { assertNotAborted, deferred, within } from '../common/abort.js'
import { firstError } from '../common/outcome.js'
import { nameOf, refusal } from '../session/refusal.js'
import { type BrokerSubscription, withdraw } from './broker-subscription.js'
import type { Membership } from './membership.js'
import type { PendingUnsubscribe, UnsubscribeCall } from './pending-packets.js'
import type { SubscribingHost } from './ports.js'
import type { SubscribeSender } from './subscribe-sender.js'

/** UNSUBSCRIBE of one client. */
export class Unsubscribing {
  /** Calls without an answer. */
  open = 0
  readonly #host: SubscribingHost
  readonly #membership: Membership
  readonly #sender: SubscribeSender

  constructor(host: SubscribingHost, membership: Membership, sender: SubscribeSender) {
    this.#host = host
    this.#membership = membership
    this.#sender = sender
  }

  /** For these filters, known here or not; local subscriptions on them end with the answer. */
  unsubscribe(filters: readonly string[], userProperties?: UserProperties, signal?: AbortSignal): Promise<UnsubscribeResult[]> {
    assertNotAborted(signal)
    // Also those that are leaving: that answer may be a refusal.
    const known = new Map(filters.map((filter) => [filter, this.#membership.byFilter.get(filter)]))
    const call: UnsubscribeCall = { known, results: new Map(), answer: deferred(), sent: false }
    const packet: PendingUnsubscribe = { type: 'unsubscribe', filters: [...known.keys()], userProperties, call }
    const unsent = [...known.values()].every((subscription) => subscription?.state === 'new')
    const { promise } = call.answer
    for (const subscription of known.values()) {
      if (subscription === undefined) continue
      stop(subscription)
      subscription.leaving = promise
      subscription.openUnsubscribes += 1
    }
    if (unsent) this.answer(packet, [])
    else this.#sender.push(packet)
    const done = (): void => {
      this.open -= 1
      this.#host.handleTurnEnd()
    }
    this.open += 1
    promise.then(done, done)
    // Others may wait for the same answer: an abort is only about who asked.
    return within(promise, signal, 'unknown')
  }

  /** Nobody waits for this answer: of a failure the application is told. */
  depart(subscriptions: readonly BrokerSubscription[]): void {
    this.unsubscribe(subscriptions.map(({ filter }) => filter)).then(
      (results) => {
        const error = firstError(results)
        if (error !== undefined) this.#host.events.emit('error', { error })
      },
      () => undefined,
    )
  }

  isSuperseded({ type, call }: PendingUnsubscribe, filter: string): boolean {
    const current = this.#membership.byFilter.get(filter)
    if (current === undefined || current === call.known.get(filter) || current.state !== 'active') return false
    this.answer({ type, filters: [filter], call }, [])
    return true
  }

  answer({ call, filters }: PendingUnsubscribe, codes: readonly number[], failure?: MqttError): void {
    const { known, results } = call
    for (const [at, filter] of filters.entries()) {
      const subscription = known.get(filter)
      const code = failure === undefined ? (codes[at] ?? 0) : 0x80
      const error = failure ?? (code < 0x80 ? undefined : refusal('ERR_UNSUBSCRIBE_REFUSED', code, undefined, UNSUBACK))
      results.set(filter, Object.freeze({ filter, reasonCode: code, reasonName: nameOf(code, UNSUBACK), error }))
      if (subscription !== undefined) this.#handleAnswer(subscription, error)
    }
    // In the order asked.
    if (results.size === known.size) call.answer.resolve([...known.keys()].map((filter) => results.get(filter) as UnsubscribeResult))
  }

  #handleAnswer(subscription: BrokerSubscription, error: MqttError | undefined): void {
    const { filter, shared, members } = subscription
    subscription.openUnsubscribes -= 1
    // Servers send what they had for it behind UNSUBACK: a member that leaves its group hands that out too.
    if (this.#host.states.stopping && shared && members.size > 0) return
    // Refused or not, a subscription that was made anew meanwhile has taken its place.
    if (error === undefined || this.#membership.byFilter.get(filter) !== subscription) this.#membership.forget(subscription)
    // With nobody left here to read it, it stays as good as gone: what comes is acknowledged and dropped.
    else if (members.size > 0) subscription.state = subscription.openUnsubscribes > 0 ? 'leaving' : 'active'
    else this.#host.router.handleForgotten(subscription)
  }
}

// A SUBSCRIBE that has not left is not needed any more.
function stop(subscription: BrokerSubscription): void {
  const { state, requests, members } = subscription
  subscription.state = 'leaving'
  if (state !== 'new') return
  // Whoever asked for more filters than this one has none of them.
  for (const call of withdraw([...requests])) call.settle(new MqttError('ERR_ABORTED'))
  for (const consumer of [...members.keys()]) consumer.leave()
}
