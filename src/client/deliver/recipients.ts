/**
 * Who a message is for, where the topic alone does not decide: overlapping filters, copies for filters that were left, retained messages.
 */

import type { Counters } from '../../common/counters.js'
import { SparseSet } from '../../common/sparse.js'
import { MOST_NOTED } from '../../wire/properties.js'
import type { PublishView } from '../../wire/publish.js'
import type { Consumer } from './consumer.js'
import type { Route } from './ports.js'

/** Filters that were left and are still known, at most. */
const mostLeft = 1024

/** A filter with those who read it. */
export type ReadRoute = Route<Consumer>

/** One who gets a copy. */
export interface Recipient {
  readonly consumer: Consumer
  readonly entry: ReadRoute
  /** True when the acknowledgement waits for it. */
  readonly owing: boolean
}

/** What is known of the filters of one client and of its server. */
export class Recipients {
  readonly #identified: ReadRoute[] = []
  /** Filters that were left last: copies for them may still be under way. */
  readonly #left = new SparseSet<ReadRoute>()
  /** Where retained messages came in: `before` a SUBACK, or `behind` it. */
  #habits = 0

  /** A connection is up: what was learnt of the one before says nothing about it. */
  handleConnected(): void {
    this.#habits = 0
  }

  /** A subscription was left, or another one takes its place: copies for it may still come. */
  handleLeft(entry: ReadRoute): void {
    const left = this.#left
    if (entry.identifier > 0) left.add(entry)
    if (left.size > mostLeft) left.delete(left.keys().next().value as ReadRoute)
  }

  /** Filters that were left and that this copy names. */
  leftBy({ subscriptionIdentifiers, subscriptionIdentifierCount }: PublishView): ReadRoute[] {
    const named = subscriptionIdentifiers.slice(0, subscriptionIdentifierCount)
    return [...this.#left].filter(({ identifier }) => named.includes(identifier))
  }

  /** False for a copy for a filter that was left, which one of overlapping filters would take for another copy of its own. */
  isOwn(view: PublishView, entry: ReadRoute): boolean {
    return (
      this.#left.size === 0 ||
      view.subscriptionIdentifierCount === 0 ||
      view.subscriptionIdentifiers[0] === entry.identifier
    )
  }

  /** The filters that a copy is for, of those that match: Subscription Identifiers decide; without a known one, the topic. */
  identify(
    view: PublishView,
    matched: readonly ReadRoute[],
    counters: Counters | undefined,
  ): readonly ReadRoute[] {
    if (view.subscriptionIdentifierCount === 0) return matched
    if (counters !== undefined) countUnknown(view, matched, counters)
    const [only] = matched
    if (matched.length < 2 && (only === undefined || this.isOwn(view, only))) return matched
    // Those that were not noted may be for any of them.
    if (view.subscriptionIdentifierCount > MOST_NOTED) return matched
    const identified = this.#identified
    identified.length = 0
    view.forEachSubscriptionIdentifier((identifier) => {
      for (const entry of matched)
        if (entry.identifier === identifier && !identified.includes(entry)) identified.push(entry)
    })
    if (identified.length > 0) {
      // No copy names a subscription that was made where the server had no identifiers.
      for (const entry of matched)
        if (entry.identifier === 0 && entry.state !== 'new') identified.push(entry)
      return identified
    }
    // A copy for a filter that was left goes only to readers that subscribed to it again: the others get their own copies.
    const gone = this.leftBy(view)
    return gone.length > 0
      ? matched.filter(({ filter }) => gone.some((one) => one.filter === filter))
      : matched
  }

  /** Each consumer once, however many of its filters match. A retained copy that is sent again may be for anybody. */
  recipientsOf(entries: readonly ReadRoute[], retain: boolean): Recipient[] {
    const recipients = new Map<unknown, Recipient>()
    for (const entry of entries) {
      const audiences = retain ? this.#audiencesOf(entry) : [undefined]
      for (const [consumer, qos] of entry.takers) {
        if (audiences.every((audience) => audience?.has(consumer) === false)) continue
        const { group = consumer } = consumer.config
        if (qos > 0 || !recipients.has(group))
          recipients.set(group, { consumer, entry, owing: qos > 0 })
      }
    }
    return [...recipients.values()]
  }

  // A server that does both leaves it open.
  #audiencesOf(entry: ReadRoute): ReturnType<ReadRoute['audiencesOf']> {
    const sure = entry.retainHabit
    this.#habits |= sure
    return entry.audiencesOf(sure || this.#habits)
  }
}

function countUnknown(view: PublishView, matched: readonly ReadRoute[], counters: Counters): void {
  view.forEachSubscriptionIdentifier((identifier) => {
    if (!matched.some((entry) => entry.identifier === identifier)) counters.unknownIdentifiers += 1
  })
}
