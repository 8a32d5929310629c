/**
 * Routes messages to sessions (sections 4.5, 4.7 and 4.8): subscriptions by topic filter, shares,
 * one copy per session.
 *
 * A session gets one copy for all its matching non-shared subscriptions, and one more for each
 * share that chooses it.
 */
import type { QoS, SubscriptionRequest } from '../../../wire/packets.js'
import { parseShare, TopicTrie } from '../../../wire/topics.js'
import type { BrokerMessage } from '../common/message.js'
import type { Delivery, DeliveryGroup } from './message-queue.js'
import type { SessionState, StoredSubscription } from './session-state.js'

/** The members of `$share/{name}/{filter}`; each message goes to one, in turn. */
export class ShareGroup implements DeliveryGroup {
  readonly members = new Map<SessionState, StoredSubscription>()

  /**
   * Delivers the message to the next member that is connected and has room. Without such a member,
   * QoS 1 and 2 messages go to the next one.
   */
  deliver(message: BrokerMessage): boolean {
    const chosen =
      this.#find(
        (member) =>
          member.session.deliveries.attached &&
          member.session.deliveries.hasRoom(this.#delivery(message, member)),
      ) ??
      this.#find(
        (member) =>
          lower(message.qos, member.qos) > 0 &&
          member.session.deliveries.hasRoom(this.#delivery(message, member)),
      ) ??
      this.#find(() => true)
    if (chosen === undefined) return false
    // The chosen member moves to the end of the order.
    this.members.delete(chosen.session)
    this.members.set(chosen.session, chosen)
    chosen.session.deliveries.offer(this.#delivery(message, chosen))
    return true
  }

  #find(test: (member: StoredSubscription) => boolean): StoredSubscription | undefined {
    for (const member of this.members.values()) if (test(member)) return member
    return undefined
  }

  // [MQTT-4.8.2-3]
  #delivery(
    message: BrokerMessage,
    { qos, retainAsPublished, identifier }: StoredSubscription,
  ): Delivery {
    return {
      message,
      qos: lower(message.qos, qos),
      retain: retainAsPublished && message.retain,
      identifiers: identifier === undefined ? [] : [identifier],
      group: this,
    }
  }
}

interface Copy {
  qos: QoS
  retainAsPublished: boolean
  readonly identifiers: number[]
}

function lower(one: QoS, other: QoS): QoS {
  return one < other ? one : other
}

/** See the file's comment. */
export class SubscriptionTree {
  readonly #trie = new TopicTrie<StoredSubscription | ShareGroup>()
  readonly #groups = new Map<string, ShareGroup>()

  /** Adds or replaces a subscription; true when it is new. */
  add(
    session: SessionState,
    request: SubscriptionRequest,
    identifier: number | undefined,
  ): boolean {
    const known = session.subscriptions.get(request.filter)
    if (known !== undefined) {
      Object.assign(known, request, { identifier })
      return false
    }
    const subscription: StoredSubscription = { ...request, session, identifier }
    session.subscriptions.set(request.filter, subscription)
    if (parseShare(request.filter) === undefined) this.#trie.add(request.filter, subscription)
    else this.#join(subscription)
    return true
  }

  /** Removes a subscription; false when there was none [MQTT-3.10.4-1]. */
  remove(session: SessionState, filter: string): boolean {
    const subscription = session.subscriptions.get(filter)
    if (subscription === undefined) return false
    session.subscriptions.delete(filter)
    if (parseShare(filter) === undefined) this.#trie.remove(filter, subscription)
    else this.#leave(subscription)
    return true
  }

  /** Removes all subscriptions of a session. */
  removeAll(session: SessionState): void {
    for (const filter of [...session.subscriptions.keys()]) this.remove(session, filter)
  }

  /** Delivers the message to each subscriber; false without a subscriber. */
  route(message: BrokerMessage): boolean {
    const copies = new Map<SessionState, Copy>()
    const groups: ShareGroup[] = []
    this.#trie.match(message.topic, (found) => {
      if (found instanceof ShareGroup) groups.push(found)
      else collect(copies, found, message)
    })
    for (const [session, { qos, retainAsPublished, identifiers }] of copies) {
      session.deliveries.offer({
        message,
        qos: lower(message.qos, qos),
        retain: retainAsPublished && message.retain,
        identifiers,
        group: undefined,
      })
    }
    let delivered = copies.size > 0
    for (const group of groups) delivered = group.deliver(message) || delivered
    return delivered
  }

  #join(subscription: StoredSubscription): void {
    const { filter, session } = subscription
    let group = this.#groups.get(filter)
    if (group === undefined) {
      group = new ShareGroup()
      this.#groups.set(filter, group)
      this.#trie.add(filter, group)
    }
    group.members.set(session, subscription)
  }

  #leave({ filter, session }: StoredSubscription): void {
    const group = this.#groups.get(filter)
    group?.members.delete(session)
    if (group === undefined || group.members.size > 0) return
    this.#groups.delete(filter)
    this.#trie.remove(filter, group)
  }
}

/** One copy at the highest QoS, with all identifiers [MQTT-3.3.4-2] [MQTT-3.3.4-4]. */
function collect(
  copies: Map<SessionState, Copy>,
  subscription: StoredSubscription,
  message: BrokerMessage,
): void {
  const { session, qos, noLocal, retainAsPublished, identifier } = subscription
  // [MQTT-3.8.3-3]
  if (noLocal && message.from === session.clientId) return
  const copy = copies.get(session) ?? { qos: 0, retainAsPublished: false, identifiers: [] }
  if (qos > copy.qos) copy.qos = qos
  copy.retainAsPublished ||= retainAsPublished
  if (identifier !== undefined && !copy.identifiers.includes(identifier))
    copy.identifiers.push(identifier)
  copies.set(session, copy)
}
