/**
 * Subscribing in a group: what reads on which members, those that come later too.
 */
import type { Filters, ListenOptions, SubscribeOptions } from '../client/options/index.js'
import { silent } from '../common/abort.js'
import { assertHandler } from '../common/schema.js'
import type { Member } from '../members/member.js'
import type { GroupCommon } from './duplicates.js'
import type { Departure } from './merge.js'
import { MergedHandling } from './merged-handling.js'
import { MergedSubscription } from './merged-subscription.js'
import { readingCall } from './options.js'
import { type ReadingClient, type Roster, subscribes } from './roster.js'
import type {
  GroupHandling,
  GroupListenOptions,
  GroupMessage,
  GroupSubscribeOptions,
  GroupSubscription,
} from './types.js'

/** Subscriptions and handlers of a group. */
export class GroupReading {
  /** Messages that were left out, in all. */
  readonly total = { duplicates: 0 }
  readonly #common: GroupCommon
  readonly #roster: Roster
  readonly #open = new Set<MergedSubscription | MergedHandling>()

  constructor(roster: Roster, standing: GroupCommon['standing']) {
    this.#roster = roster
    this.#common = { total: this.total, time: () => roster.time, standing }
  }

  subscription(filters: Filters, options: GroupSubscribeOptions | undefined): GroupSubscription {
    const reading = readingCall<SubscribeOptions>(options)
    const members = this.#roster.readers(reading.members)
    const merged = new MergedSubscription(filters, reading, this.#common, () =>
      this.#open.delete(merged),
    )
    try {
      for (const member of members) merged.add(member)
    } catch (error) {
      void silent(merged.unsubscribe())
      throw error
    }
    this.#open.add(merged)
    return merged
  }

  listen(
    filters: Filters,
    handler: (message: GroupMessage) => unknown,
    options: GroupListenOptions | undefined,
  ): Promise<GroupHandling> {
    assertHandler(handler, 'handler')
    const reading = readingCall<ListenOptions>(options)
    const members = this.#roster.readers(reading.members)
    const merged = new MergedHandling(filters, handler, reading, this.#common, () =>
      this.#open.delete(merged),
    )
    for (const member of members) merged.add(member)
    this.#open.add(merged)
    return merged.granting()
  }

  /** A member is to come: what reads on all reads on it, or nothing does. @throws MqttError as `subscription` of the client */
  handleAdded(member: Member): void {
    if (!subscribes(member)) return
    const all = [...this.#open].filter((merged) => merged.all)
    try {
      for (const merged of all) merged.add(member)
    } catch (error) {
      for (const merged of all) merged.remove(member, 'refused')
      throw error
    }
  }

  /** A member goes. */
  handleRemoved(member: Member, how: Departure): void {
    for (const merged of this.#open) merged.remove(member as Member<ReadingClient>, how)
  }

  /** All members have ended, and none comes any more. */
  handleEnd(): void {
    for (const merged of this.#open) merged.handleEnd()
  }
}
