/**
 * Subscriptions and handlers of a group, on existing members and members added later.
 */
import type { Filters, ListenOptions, SubscribeOptions } from '../client/options/index.js'
import { silent } from '../common/abort.js'
import { assertHandler, invalid } from '../common/schema.js'
import type { Member } from '../members/member.js'
import type { Members, Readiness } from '../members/members.js'
import { MergedHandling } from './handling.js'
import { readingCall } from './options.js'
import type { Departure, GroupCommon, ReadingMember } from './sources.js'
import { MergedSubscription } from './subscription.js'
import type {
  GroupHandling,
  GroupListenOptions,
  GroupMessage,
  GroupSubscribeOptions,
  GroupSubscription,
} from './types.js'

/** True for a member that can subscribe. */
function subscribes(member: Member): member is ReadingMember {
  return 'subscription' in member.client
}

/** Subscriptions and handlers of a group. */
export class GroupReading {
  /** Number of skipped duplicates of all subscriptions and handlers. */
  readonly total = { duplicates: 0 }
  readonly #common: GroupCommon
  readonly #members: Members
  readonly #open = new Set<MergedSubscription | MergedHandling>()

  constructor(members: Members, readiness: Readiness) {
    this.#members = members
    this.#common = { total: this.total, time: () => members.time, readiness }
  }

  subscription(filters: Filters, options: GroupSubscribeOptions | undefined): GroupSubscription {
    const reading = readingCall<SubscribeOptions>(options)
    const members = this.#readers(reading.members)
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
    const members = this.#readers(reading.members)
    const merged = new MergedHandling(filters, handler, reading, this.#common, () =>
      this.#open.delete(merged),
    )
    for (const member of members) merged.add(member)
    this.#open.add(merged)
    return merged.granting()
  }

  /**
   * A member is being added: subscriptions and handlers on all members include it; if one of them
   * throws, none does.
   * @throws MqttError as `subscription` of the client
   */
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

  /** A member is removed. */
  handleRemoved(member: Member, how: Departure): void {
    for (const merged of this.#open) merged.remove(member, how)
  }

  /** All members have ended, and none is added. */
  handleEnd(): void {
    for (const merged of this.#open) merged.handleEnd()
  }

  // The named members, or all that can subscribe and have not ended.
  #readers(names: readonly string[] | undefined): readonly ReadingMember[] {
    if (names === undefined) {
      const all = this.#members.all.filter(subscribes)
      if (all.length === 0) return invalid('members', 'at least one member that subscribes')
      const left = all.filter(({ over }) => !over)
      if (left.length === 0) throw this.#members.ended
      return left
    }
    return names.map((name) => {
      const member = this.#members.find(name, 'members')
      return subscribes(member)
        ? member
        : invalid('members', `members that subscribe; '${name}' only publishes`)
    })
  }
}
