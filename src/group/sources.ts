/**
 * The sources of a merged subscription or handling, one per member: their grants, removals and
 * ends.
 *
 * Members without a connection are awaited only if no other member answers.
 */
import type { Grant, Subscriber } from '../client/options/index.js'
import { type MembersError, membersError } from '../members/failure.js'
import type { Member, MemberClient, Time } from '../members/member.js'
import type { Readiness } from '../members/members.js'
import type { GroupGrant, GroupMessage } from './types.js'

/** State shared by all subscriptions and handlers of a group. */
export interface GroupCommon {
  /** Number of skipped duplicates. */
  readonly total: { duplicates: number }
  readonly time: () => Time
  /** Signals changes of members, such as a lost connection or an end. */
  readonly readiness: Readiness
}

/**
 * How a member is removed: it finishes its current messages (`'leaving'`), it has ended (`'gone'`),
 * or adding it failed (`'refused'`).
 */
export type Departure = 'leaving' | 'gone' | 'refused'

/** A member that can subscribe. */
export type ReadingMember = Member<MemberClient & Subscriber>

/** The subscription or handling on one member. */
export interface Source<From = unknown> {
  readonly member: Member
  /** The subscription, or the handling once it has begun. */
  readonly from: From
  /** Set once it has ended, with an error or undefined. */
  end: { readonly error: unknown } | undefined
  /** True once its member was removed. */
  leaving: boolean
}

interface Answer {
  readonly source: Source
  /**
   * The result; undefined until then. `up`: the member was connected, so the result comes from the
   * broker.
   */
  end: { readonly error: unknown; readonly failed: boolean; readonly up: boolean } | undefined
}

/** Adds the name of the member to a message. */
export function named(message: object, member: string): GroupMessage {
  return Object.assign(message, { member }) as GroupMessage
}

/** The sources of all members. The source of a removed member is deleted once it has ended. */
export class Sources<S extends Source<{ readonly granted: readonly Grant[] } | undefined>> {
  all: readonly S[] = []
  /** True if members may be added: then it is not over while it has no sources. */
  #stays: boolean
  readonly #group: GroupCommon

  constructor(stays: boolean, group: GroupCommon) {
    this.#stays = stays
    this.#group = group
  }

  /** True when all sources have ended and no more can be added. */
  get over(): boolean {
    return (
      this.all.every((source) => this.isOver(source)) && !(this.#stays && this.all.length === 0)
    )
  }

  get granted(): readonly GroupGrant[] {
    return this.all.flatMap(({ member, from }) =>
      (from?.granted ?? []).map((grant) => ({ ...grant, member: member.name })),
    )
  }

  /**
   * The errors that ended all sources; undefined if one has not ended, or has ended without an
   * error.
   */
  get failure(): MembersError | undefined {
    const failures = new Map(
      this.all.flatMap(({ member, end }) =>
        end?.error === undefined ? [] : [[member.name, end.error] as const],
      ),
    )
    return failures.size > 0 && failures.size === this.all.length
      ? membersError('ERR_CLOSED', 'every member has ended', failures)
      : undefined
  }

  put(source: S): void {
    this.all = [...this.all, source]
  }

  /** No more sources will be added. */
  complete(): void {
    this.#stays = false
  }

  /** A member is removed; returns its sources. */
  remove(member: Member, how: Departure): readonly S[] {
    const removed = this.all.filter((source) => source.member === member)
    for (const source of removed) {
      source.leaving = true
      if (how !== 'leaving') source.end ??= { error: undefined }
    }
    return removed
  }

  /** Deletes ended sources of removed members; true if there were any. */
  forget(): boolean {
    const left = this.all.filter((source) => !source.leaving || !this.isOver(source))
    if (left.length === this.all.length) return false
    this.all = left
    return true
  }

  /** Fulfils when the required members have granted it. @throws MembersError if they have not */
  async granting(grantOf: (source: S) => Promise<unknown>, require: 'any' | 'all'): Promise<void> {
    const answers = await this.#answers(grantOf, require === 'all')
    // A member that was removed meanwhile need not grant, unless all were removed.
    const left = answers.filter(({ source }) => !source.leaving)
    const failures = failuresOf(left.length > 0 ? left : answers)
    const isGranted = (some: readonly Answer[]): boolean =>
      some.some(({ end }) => end?.failed === false)
    if (failures.size === 0 || (require === 'any' && isGranted(left))) return
    // All asked members were removed, and others were added meanwhile: those are asked.
    if (left.length === 0 && this.all.some(({ leaving }) => !leaving))
      return this.granting(grantOf, require)
    if (left.length === 0 && require === 'any' && isGranted(answers)) return
    throw membersError('ERR_SUBSCRIBE_REFUSED', 'no grant', failures)
  }

  /**
   * Fulfils when it has ended on the connected members; the others unsubscribe after their next
   * connect.
   * @throws MembersError if it failed
   */
  async leave(leaveOf: (source: S) => Promise<unknown>): Promise<void> {
    const failures = failuresOf(await this.#answers(leaveOf, false))
    if (failures.size > 0)
      throw membersError('ERR_UNSUBSCRIBE_REFUSED', 'unsubscribing failed', failures)
  }

  /** True if the source will deliver nothing more. */
  protected isOver({ end }: S): boolean {
    return end !== undefined
  }

  // Fulfils when all sources have answered. Unless each is needed, one answer is enough if the
  // members of all others have no connection.
  async #answers(
    ask: (source: S) => Promise<unknown>,
    isEach: boolean,
  ): Promise<readonly Answer[]> {
    const open = new Set<Promise<unknown>>()
    const answers = this.all.map((source): Answer => {
      const answer: Answer = { source, end: undefined }
      const end = (failed: boolean, error?: unknown): void => {
        answer.end = { error, failed, up: source.member.up }
        open.delete(settled)
      }
      const settled: Promise<unknown> = ask(source).then(
        () => end(false),
        (error) => end(true, error),
      )
      open.add(settled)
      return answer
    })
    const isEnough = (): boolean =>
      !isEach &&
      answers.some(({ end }) => end !== undefined && (!end.failed || end.up)) &&
      !answers.some(({ end, source }) => end === undefined && source.member.up)
    while (open.size > 0 && !isEnough()) await Promise.race([...open, this.#group.readiness.change])
    return answers
  }
}

function failuresOf(answers: readonly Answer[]): Map<string, unknown> {
  return new Map(
    answers.flatMap(({ source, end }) =>
      end?.failed ? [[source.member.name, end.error] as const] : [],
    ),
  )
}
