/**
 * The members of a group by name.
 */
import type { Subscriber } from '../client/options/index.js'
import { invalid } from '../common/schema.js'
import { MqttError } from '../errors.js'
import type { Member, MemberClient } from '../members/member.js'
import { storyOf } from '../members/standing.js'
import { type Time, timeOf } from '../members/time.js'

/** A client that subscribes. */
export type ReadingClient = MemberClient & Subscriber

/** True for a member that subscribes, too. */
export function subscribes(member: Member): member is Member<ReadingClient> {
  return 'subscription' in member.client
}

/** Members by name, in the order in which they came. */
export class Roster {
  /** Those that go, and have not ended. */
  readonly leaving = new Set<Member>()
  readonly #members = new Map<string, Member>()

  /** All of them. */
  get all(): readonly Member[] {
    return [...this.#members.values()]
  }

  /** The time of the group: that of its first member. */
  get time(): Time {
    const [first] = this.#members.values()
    return first?.time ?? timeOf(undefined)
  }

  get(name: string): Member | undefined {
    return this.#members.get(name)
  }

  /** What a call gets where every member has ended. */
  get ended(): MqttError {
    return new MqttError('ERR_CLOSED', `every member has ended; add() one:\n${storyOf(this.all)}`)
  }

  /** @throws MqttError ERR_INVALID_OPTION, about this option */
  find(name: string, option: string): Member {
    return (
      this.#members.get(name) ??
      invalid(
        option,
        `names of members: ${[...this.#members.keys()].join(', ') || 'there are none'}`,
      )
    )
  }

  put(member: Member): void {
    this.#members.set(member.name, member)
  }

  /** A member goes; it is `leaving` until this has settled. */
  remove(member: Member, gone: Promise<void>): void {
    this.#members.delete(member.name)
    this.leaving.add(member)
    const over = (): void => void this.leaving.delete(member)
    gone.then(over, over)
  }

  /** Those that are named, or all that subscribe and have not ended. @throws MqttError ERR_INVALID_OPTION, ERR_CLOSED */
  readers(names: readonly string[] | undefined): readonly Member<ReadingClient>[] {
    if (names === undefined) {
      const all = this.all.filter(subscribes)
      if (all.length === 0) return invalid('members', 'at least one member that subscribes')
      const left = all.filter(({ over }) => !over)
      if (left.length === 0) throw this.ended
      return left
    }
    return names.map((name) => {
      const member = this.find(name, 'members')
      return subscribes(member)
        ? member
        : invalid('members', `members that subscribe; '${name}' only publishes`)
    })
  }
}
