/**
 * Chooses the member for each publish, and passes certainly unsent publishes to another one.
 */

import { checkedTopic } from '../client/options/check-calls.js'
import { tolerant } from '../common/abort.js'
import { MqttError } from '../errors.js'
import type { Asked } from './asked.js'
import type { Member, MemberClient } from './member.js'
import { TopicOwners } from './topic-owners.js'
import type { WaitingRoom } from './waiting.js'

/** How the member for a publish is chosen. */
export type Routing = 'round-robin' | 'hash' | 'least-in-flight'

/**
 * Handling of topics with messages in flight at a member that lost its connection: they wait for
 * it, or move immediately, which gives up their order.
 */
export type OnLost = 'wait' | 'move'

/** How a router works. */
export interface RouterConfig {
  readonly routing: Routing
  readonly onLost: OnLost
  /** Limits publishes that wait for messages in flight at another member. */
  readonly room: WaitingRoom
}

/**
 * Errors caused by the caller, the message or its own limits, which another member would not avoid.
 */
const theirs = [
  'ERR_ABORTED',
  'ERR_EXPIRED',
  'ERR_DROPPED',
  'ERR_QUEUE_FULL',
  'ERR_TIMEOUT',
  'ERR_INVALID_TOPIC',
  'ERR_PACKET_TOO_LARGE',
  'ERR_POISONED',
]

/**
 * True if an ended client has certainly not sent it, for a reason that need not apply to other
 * members.
 */
function isUnsent(error: unknown, member: Member): boolean {
  return (
    member.over &&
    MqttError.is(error) &&
    error.outcome === 'not-sent' &&
    error.option === undefined &&
    !theirs.includes(error.code)
  )
}

/** Chooses members. */
export class Router<C extends MemberClient> {
  /** Publishes moved to another member. */
  moved = 0
  readonly #members: () => Iterable<Member<C>>
  readonly #routing: Routing
  readonly #owners: TopicOwners<Member<C>>
  readonly #names = new Map<string, number>()
  #last: Member<C> | undefined
  #number = 0

  constructor(members: () => Iterable<Member<C>>, { routing, onLost, room }: RouterConfig) {
    this.#members = members
    this.#routing = routing
    const owning = {
      choose: (topic: string) => this.#preferred(topic),
      takes: (member: Member<C>) => !member.over,
      leaves: (member: Member<C>) => onLost === 'move' && !member.up,
    }
    this.#owners = new TopicOwners(owning, room)
  }

  /**
   * The member for a publish of this topic; undefined when none is up.
   * @throws MqttError ERR_INVALID_TOPIC
   */
  choose(topic: string): Member<C> | undefined {
    if (this.#routing === 'hash') return this.#owners.ownerOf(checkedTopic(topic))
    const up = this.#candidates()
    const after = up.indexOf(this.#last as Member<C>) + 1
    let best = up[after % up.length]
    if (this.#routing === 'least-in-flight') {
      for (let step = 1; step < up.length; step++) {
        const other = up[(after + step) % up.length] as Member<C>
        if (other.inFlight < (best as Member<C>).inFlight) best = other
      }
    }
    this.#last = best ?? this.#last
    return best
  }

  /**
   * Publishes to a member, or calls `none` if none is up.
   * @throws the errors of `send` and `none`
   */
  publish<R>(
    asked: Asked,
    send: (member: Member<C>) => Promise<R>,
    none: () => Promise<R>,
  ): Promise<R> {
    const sendTo = (member: Member<C> | undefined): Promise<R> =>
      member === undefined ? none() : send(member)
    if (this.#routing !== 'hash') return this.#sendToAny(asked, sendTo)
    this.#number += 1
    const again = (error: unknown, member: Member<C>): boolean => this.#movesOn(error, member)
    return this.#owners.run(asked.topic, {
      number: this.#number,
      send: sendTo,
      again,
      patience: asked,
    })
  }

  #sendToAny<R>(asked: Asked, sendTo: (member: Member<C> | undefined) => Promise<R>): Promise<R> {
    const member = this.choose(asked.topic)
    const sent = sendTo(member)
    if (member === undefined) return sent
    return tolerant(
      sent.catch((error) => {
        if (asked.signal?.aborted || !this.#movesOn(error, member)) throw error
        return this.#sendToAny(asked, sendTo)
      }),
    )
  }

  #movesOn(error: unknown, member: Member<C>): boolean {
    const moves = isUnsent(error, member)
    if (moves) this.moved += 1
    return moves
  }

  // The healthy members; if there are none, those that are up.
  #candidates(): Member<C>[] {
    const up = [...this.#members()].filter((member) => member.up)
    const healthy = up.filter((member) => member.healthy)
    return healthy.length > 0 ? healthy : up
  }

  #preferred(topic: string): Member<C> | undefined {
    const hash = fnv1a(topic)
    let best: Member<C> | undefined
    let most = -1
    for (const member of this.#candidates()) {
      const wish = weight(this.#hashOf(member.name), hash)
      if (wish > most) {
        most = wish
        best = member
      }
    }
    return best
  }

  // Hashes of names are cached.
  #hashOf(name: string): number {
    const known = this.#names.get(name)
    if (known !== undefined) return known
    const made = fnv1a(name)
    if (this.#names.size < 10_000) this.#names.set(name, made)
    return made
  }
}

/** FNV-1a, 32 bits, over the UTF-8 of ASCII text and the code units of other text. */
export function fnv1a(text: string): number {
  let hash = 0x811c9dc5
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    hash = Math.imul(hash ^ (code & 0xff), 0x01000193)
    if (code > 0xff) hash = Math.imul(hash ^ (code >>> 8), 0x01000193)
  }
  return hash >>> 0
}

// Each input bit changes half of the output bits, so that names that differ only in the last letter
// do not give the same order.
function mixed(hash: number): number {
  let bits = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  bits = Math.imul(bits ^ (bits >>> 13), 0xc2b2ae35)
  return (bits ^ (bits >>> 16)) >>> 0
}

/**
 * The weight of a member for a topic (rendezvous hashing): the highest one gets it. Depends on
 * names only.
 * @param name hash of the member's name
 * @param topic hash of the topic
 */
export function weight(name: number, topic: number): number {
  return mixed(topic ^ mixed(name))
}
