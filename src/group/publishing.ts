/**
 * Publishing in a group: to whom a message goes.
 */

import { publishCall } from '../client/options/check-calls.js'
import type { Payload } from '../client/options/index.js'
import { invalid } from '../common/schema.js'
import { MqttError } from '../errors.js'
import { Asked, type AskedOf } from '../members/asked.js'
import type { Member, MemberClient } from '../members/member.js'
import { Router } from '../members/router.js'
import { storyOf } from '../members/standing.js'
import { WaitingRoom } from '../members/waiting-room.js'
import { Broadcasts, ownPayload } from './broadcast.js'
import { type GroupConfig, publishingCall } from './options.js'
import type { Roster } from './roster.js'
import type { GroupPublishOptions, GroupReceipt, GroupRouting } from './types.js'

/** Chooses members, and hands them publishes. */
export class GroupPublishing {
  readonly #roster: Roster
  readonly #config: GroupConfig
  readonly #refuse: AskedOf['refuse']
  readonly #broadcasts: Broadcasts
  readonly #routers: Readonly<Record<Exclude<GroupRouting, 'broadcast'>, Router<MemberClient>>>

  /** @param refuse reports a publish that was given to no member */
  constructor(roster: Roster, config: GroupConfig, refuse: AskedOf['refuse']) {
    const { onLost, stalledAfter } = config
    this.#roster = roster
    this.#config = config
    this.#refuse = refuse
    this.#broadcasts = new Broadcasts(stalledAfter, () => roster.time, refuse)
    const all = (): Iterable<Member> => roster.all
    const room = new WaitingRoom(config.shared)
    this.#routers = {
      'round-robin': new Router(all, { routing: 'round-robin', onLost, room }),
      hash: new Router(all, { routing: 'hash', onLost, room }),
    }
  }

  /** True where messages to one topic arrive in the order of the calls, at each member. */
  get ordered(): boolean {
    const { routing, onLost } = this.#config
    return routing === 'broadcast' || (routing === 'hash' && onLost === 'wait')
  }

  /** Publishes that were given to another member. */
  get moved(): number {
    return this.#routers['round-robin'].moved + this.#routers.hash.moved
  }

  /** Fulfils when no publish waits for what a member that goes has in flight; undefined while none does. */
  get settling(): Promise<void> | undefined {
    return this.#routers.hash.settling
  }

  publish(
    topic: string,
    payload: Payload,
    given: GroupPublishOptions | undefined,
  ): Promise<GroupReceipt> {
    const { members: names, routing, options } = publishingCall(given, this.#config.routing)
    if (routing === 'broadcast') {
      // What no member can take is refused here, once.
      publishCall(topic, payload, options)
      const members =
        names === undefined
          ? this.#roster.all
          : names.map((name) => this.#roster.find(name, 'members'))
      return this.#broadcasts.publish(
        members,
        this.#config.offline,
        topic,
        ownPayload(payload),
        options,
      )
    }
    if (names !== undefined) invalid('members', "left out, unless routing is 'broadcast'")
    const asked = new Asked(topic, payload, options, {
      time: this.#roster.time,
      refuse: this.#refuse,
    })
    return this.#routers[routing].publish<GroupReceipt>(
      asked,
      (member) =>
        member
          .publish(topic, payload, asked.options)
          .then((value) => ({ members: { [member.name]: { status: 'fulfilled', value } } })),
      () =>
        this.#refuse(
          topic,
          new MqttError(
            'ERR_NO_HEALTHY_PUBLISHERS',
            `no member is connected:\n${storyOf(this.#roster.all)}`,
          ),
        ),
    )
  }

  post(topic: string, payload: Payload): boolean {
    const { routing } = this.#config
    if (routing !== 'broadcast')
      return this.#routers[routing].choose(topic)?.client.post(topic, payload) ?? false
    let taken = false
    const failures: unknown[] = []
    for (const member of this.#roster.all) {
      try {
        if (member.up && member.client.post(topic, payload)) taken = true
      } catch (error) {
        failures.push(error)
      }
    }
    if (!taken && failures.length > 0) throw failures[0]
    return taken
  }

  /** A member is up, was lost, or has gone. */
  handleChange(): void {
    this.#broadcasts.handleChange()
  }
}
