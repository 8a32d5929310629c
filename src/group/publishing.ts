/**
 * Publishing in a group: chooses members, and collects the results of a broadcast.
 *
 * All members get the same copy of the payload, because a member that lost its connection may send
 * it long after the call has settled.
 */
import { publishCall } from '../client/options/check-calls.js'
import type { Payload, PublishOptions, Receipt } from '../client/options/index.js'
import { type Deferred, deferred } from '../common/abort.js'
import { givenBytes, invalid } from '../common/schema.js'
import { MqttError } from '../errors.js'
import { Asked } from '../members/asked.js'
import { asMqttError, membersError } from '../members/failure.js'
import type { Member, MemberClient } from '../members/member.js'
import type { Members } from '../members/members.js'
import { Router } from '../members/router.js'
import { WaitingRoom } from '../members/waiting.js'
import { type GroupConfig, publishingCall } from './options.js'
import type { GroupPublishOptions, GroupReceipt, GroupRouting, MemberResult } from './types.js'

/** Chooses members and passes publishes to them. */
export class GroupPublishing {
  readonly #members: Members
  readonly #config: GroupConfig
  readonly #room: WaitingRoom
  readonly #broadcasts: Broadcasts
  readonly #routers: Readonly<Record<Exclude<GroupRouting, 'broadcast'>, Router<MemberClient>>>

  constructor(members: Members, config: GroupConfig) {
    const { onLost, stalledAfter, shared } = config
    this.#members = members
    this.#config = config
    this.#broadcasts = new Broadcasts(members, stalledAfter)
    const all = (): Iterable<Member> => members.all
    const room = new WaitingRoom(shared)
    this.#room = room
    this.#routers = {
      'round-robin': new Router(all, { routing: 'round-robin', onLost, room }),
      hash: new Router(all, { routing: 'hash', onLost, room }),
    }
  }

  /** True if messages to one topic reach each broker in the order of the calls. */
  get ordered(): boolean {
    const { routing, onLost } = this.#config
    return routing === 'broadcast' || (routing === 'hash' && onLost === 'wait')
  }

  /** Publishes that were moved to another member. */
  get moved(): number {
    return this.#routers['round-robin'].moved + this.#routers.hash.moved
  }

  /**
   * Fulfils when no publish waits for another member's messages in flight; undefined if none waits.
   */
  get settling(): Promise<void> | undefined {
    return this.#room.settling
  }

  publish(
    topic: string,
    payload: Payload,
    given: GroupPublishOptions | undefined,
  ): Promise<GroupReceipt> {
    const { members: names, routing, options } = publishingCall(given, this.#config.routing)
    if (routing === 'broadcast') {
      // Checked here once, so that an invalid publish does not fail at every member.
      publishCall(topic, payload, options)
      const members = names?.map((name) => this.#members.find(name, 'members'))
      return this.#broadcasts.publish(
        members ?? this.#members.all,
        this.#config.offline,
        topic,
        ownPayload(payload),
        options,
      )
    }
    if (names !== undefined) invalid('members', "left out, unless routing is 'broadcast'")
    const { time, access } = this.#members
    const asked = new Asked(topic, payload, options, { time, refuse: access.refuse })
    return this.#routers[routing].publish<GroupReceipt>(
      asked,
      (member) =>
        member
          .publish(topic, payload, asked.options)
          .then((value) => ({ members: { [member.name]: { status: 'fulfilled', value } } })),
      () => {
        const story = `no member is connected:\n${this.#members.story()}`
        return access.refuse(topic, new MqttError('ERR_NO_HEALTHY_PUBLISHERS', story))
      },
    )
  }

  post(topic: string, payload: Payload): boolean {
    const { routing } = this.#config
    if (routing !== 'broadcast')
      return this.#routers[routing].choose(topic)?.client.post(topic, payload) ?? false
    let taken = false
    const failures: unknown[] = []
    for (const member of this.#members.all) {
      try {
        if (member.up && member.client.post(topic, payload)) taken = true
      } catch (error) {
        failures.push(error)
      }
    }
    if (!taken && failures.length > 0) throw failures[0]
    return taken
  }

  /** A member has connected, lost its connection, or was removed. */
  handleChange(): void {
    this.#broadcasts.handleChange()
  }
}

/** A copy of the payload, because the caller may change its bytes. */
function ownPayload(payload: Payload): Payload {
  return typeof payload === 'string' ? payload : (givenBytes(payload, 'payload').slice() as Payload)
}

/** Fulfils after the rejection of a publish that was refused synchronously. */
async function afterRefusals(): Promise<void> {
  for (let steps = 0; steps < 6; steps++) await undefined
}

/** Broadcasts that have not settled. */
class Broadcasts {
  readonly #open = new Set<Broadcast>()
  readonly #members: Members
  readonly #stalledAfter: number

  constructor(members: Members, stalledAfter: number) {
    this.#members = members
    this.#stalledAfter = stalledAfter
  }

  /** Publishes to these members. @param offline how to treat members that are not connected */
  publish(
    members: Iterable<Member>,
    offline: 'reject' | 'queue',
    topic: string,
    payload: Payload,
    options: PublishOptions | undefined,
  ): Promise<GroupReceipt> {
    const broadcast = new Broadcast(() => {
      this.#open.delete(broadcast)
      cancel?.()
    })
    for (const member of members) broadcast.add(member, offline, topic, payload, options)
    let cancel: (() => void) | undefined
    const { isAsked } = broadcast
    broadcast.look()
    // Refusals by members are reported by the members.
    if (!isAsked)
      return broadcast.promise.catch((error) => this.#members.access.refuse(topic, error))
    if (!broadcast.settled) {
      this.#open.add(broadcast)
      cancel = this.#members.time.setTimer(() => {
        broadcast.handleImpatience()
        // Other broadcasts may wait for the same members.
        this.handleChange()
      }, this.#stalledAfter)
    }
    return broadcast.promise
  }

  /** A member has lost its connection, has connected, or does not answer. */
  handleChange(): void {
    for (const broadcast of [...this.#open]) broadcast.look()
  }
}

class Broadcast {
  settled = false
  readonly #outcome: Deferred<GroupReceipt> = deferred()
  readonly #results = new Map<string, MemberResult>()
  /** Members whose results are awaited. */
  readonly #open = new Set<Member>()
  readonly #over: () => void

  constructor(over: () => void) {
    this.#over = over
  }

  get promise(): Promise<GroupReceipt> {
    return this.#outcome.promise
  }

  /** True while at least one member has the publish pending. */
  get isAsked(): boolean {
    return this.#open.size > 0
  }

  add(
    member: Member,
    offline: 'reject' | 'queue',
    topic: string,
    payload: Payload,
    options: PublishOptions | undefined,
  ): void {
    if (!member.up && (offline === 'reject' || member.over)) {
      const cause = member.error
      this.#results.set(member.name, {
        status: 'rejected',
        reason: new MqttError('ERR_NOT_CONNECTED', cause && `not connected: ${cause.message}`, {
          cause,
        }),
      })
      return
    }
    const delivered = member.publish(
      topic,
      payload,
      member.up ? options : { offline: 'queue', ...options },
    )
    this.#results.set(member.name, { status: 'pending', delivered })
    this.#open.add(member)
    // A queued publish is not awaited, but an immediate refusal is.
    if (!member.up) void afterRefusals().then(() => this.#open.delete(member) && this.look())
    const settle = (result: MemberResult): void => {
      if (!this.settled) this.#results.set(member.name, result)
      this.#open.delete(member)
      this.look()
    }
    delivered.then(
      (value: Receipt) => settle({ status: 'fulfilled', value }),
      (error: unknown) => settle({ status: 'rejected', reason: asMqttError(error) }),
    )
  }

  /**
   * Settles when all connected members have answered; or when one has accepted and each of the
   * others has lost its connection or does not answer.
   */
  look(): void {
    if (this.settled) return
    const results = [...this.#results.values()]
    if (this.#open.size > 0) {
      const taken = results.some(({ status }) => status === 'fulfilled')
      if (!taken || [...this.#open].some((member) => member.healthy)) return
    }
    this.settled = true
    this.#over()
    const failures = new Map(
      [...this.#results].flatMap(([name, result]) =>
        result.status === 'rejected' ? [[name, result.reason] as const] : [],
      ),
    )
    if (failures.size === results.length)
      this.#outcome.reject(membersError('ERR_NO_HEALTHY_PUBLISHERS', 'no member took it', failures))
    else this.#outcome.resolve({ members: Object.fromEntries(this.#results) })
  }

  /** Marks members that have not answered as stalled. */
  handleImpatience(): void {
    for (const member of this.#open) member.stalled = true
  }
}
