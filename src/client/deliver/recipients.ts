/**
 * Finds the recipients of a message where the topic alone does not decide: overlapping filters,
 * filters that were left, retained messages.
 */

import type { Counters } from '../../common/counters.js'
import { SparseSet } from '../../common/sparse.js'
import { MOST_NOTED } from '../../wire/properties.js'
import type { PublishView } from '../../wire/publish.js'
import type { Consumer } from './consumer.js'
import type { Route } from './ports.js'

/** Most filters remembered after they were left. */
const mostLeft = 1024

/** A filter with those who read it. */
export type ReadRoute = Route<Consumer>

/** A consumer that gets a copy. */
export interface Recipient {
  readonly consumer: Consumer
  readonly entry: ReadRoute
  /** True when its acknowledgement is waited for. */
  readonly owing: boolean
}

/** What is known about the filters of one client and the habits of its server. */
export class Recipients {
  #identified: ReadRoute[] | undefined
  /** Filters left most recently: copies for them may still be on their way. */
  readonly #left = new SparseSet<ReadRoute>()
  /** Whether retained messages came before or behind a SUBACK on this connection. */
  #habits = 0

  /** A connection is up: what was learnt on the previous one is discarded. */
  handleConnected(): void {
    this.#habits = 0
  }

  /** A subscription was left or replaced: copies for it may still come. */
  handleLeft(entry: ReadRoute): void {
    const left = this.#left
    if (entry.identifier > 0) left.add(entry)
    if (left.size > mostLeft) left.delete(left.keys().next().value as ReadRoute)
  }

  /** The left filters that this copy names. */
  leftBy({ subscriptionIdentifiers, subscriptionIdentifierCount }: PublishView): ReadRoute[] {
    const named = subscriptionIdentifiers.slice(0, subscriptionIdentifierCount)
    return [...this.#left].filter(({ identifier }) => named.includes(identifier))
  }

  /**
   * False for a copy of a left filter, which an overlapping filter would otherwise take for its
   * own.
   */
  isOwn(view: PublishView, entry: ReadRoute): boolean {
    return (
      this.#left.size === 0 ||
      view.subscriptionIdentifierCount === 0 ||
      view.subscriptionIdentifiers[0] === entry.identifier
    )
  }

  /**
   * Of the matching filters, those that a copy is for: the Subscription Identifiers decide; without
   * a known one, the topic.
   */
  identify(
    view: PublishView,
    matched: readonly ReadRoute[],
    counters: Counters | undefined,
  ): readonly ReadRoute[] {
    if (view.subscriptionIdentifierCount === 0) return matched
    if (counters !== undefined) countUnknown(view, matched, counters)
    const [only] = matched
    if (matched.length < 2 && (only === undefined || this.isOwn(view, only))) return matched
    // The view notes only the first identifiers; beyond those, the copy may be for any filter.
    if (view.subscriptionIdentifierCount > MOST_NOTED) return matched
    this.#identified ??= []
    const identified = this.#identified
    identified.length = 0
    view.forEachSubscriptionIdentifier((identifier) => {
      for (const entry of matched)
        if (entry.identifier === identifier && !identified.includes(entry)) identified.push(entry)
    })
    if (identified.length > 0) {
      // A subscription made without an identifier is never named by a copy.
      for (const entry of matched)
        if (entry.identifier === 0 && entry.state !== 'new') identified.push(entry)
      return identified
    }
    // A copy for a left filter goes only to readers that subscribed to that filter again; the
    // others get their own copies.
    const gone = this.leftBy(view)
    return gone.length > 0
      ? matched.filter(({ filter }) => gone.some((one) => one.filter === filter))
      : matched
  }

  /**
   * Each consumer (or group) once, however many of its filters match. `retain`: RETAIN 1 and not a
   * redelivery, which may be for any consumer.
   */
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

  // A server with both habits leaves the question open.
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
