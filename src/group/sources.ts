/**
 * What is read of several members: who granted it, who has left it, and which of them have ended.
 *
 * Members that are down are waited for only where no other one answers.
 */
import type { Grant, Subscriber } from '../client/options/index.js'
import { type MembersError, membersError } from '../members/failure.js'
import type { Member, MemberClient, Time } from '../members/member.js'
import type { Readiness } from '../members/members.js'
import type { GroupGrant, GroupMessage } from './types.js'

/** What all that reads in a group has in common. */
export interface GroupCommon {
  /** Duplicates that all of it left out. */
  readonly total: { duplicates: number }
  readonly time: () => Time
  /** Says when a member was lost or has ended. */
  readonly readiness: Readiness
}

/** How a member goes: its turns end (`'leaving'`), it has ended (`'gone'`), or it was not added after all (`'refused'`). */
export type Departure = 'leaving' | 'gone' | 'refused'

/** A member that subscribes, too. */
export type ReadingMember = Member<MemberClient & Subscriber>

/** What is read of one member. */
export interface Source<From = unknown> {
  readonly member: Member
  /** Its subscription, or its handling once it has begun. */
  readonly from: From
  /** It has ended: with an error, or undefined. */
  end: { readonly error: unknown } | undefined
  /** Its member was removed. */
  leaving: boolean
}

interface Answer {
  readonly source: Source
  /** How it ended; undefined until then. `up`: the broker said so. */
  end: { readonly error: unknown; readonly failed: boolean; readonly up: boolean } | undefined
}

/** The name of its member on a message. */
export function named(message: object, member: string): GroupMessage {
  return Object.assign(message, { member }) as GroupMessage
}

/** What is read of each member. One whose member was removed is forgotten when it has ended. */
export class Sources<S extends Source<{ readonly granted: readonly Grant[] } | undefined>> {
  all: readonly S[] = []
  /** More may be added: without any it waits for them. */
  #stays: boolean
  readonly #group: GroupCommon

  constructor(stays: boolean, group: GroupCommon) {
    this.#stays = stays
    this.#group = group
  }

  /** All have ended, and no more are added. */
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

  /** What ended all of them; undefined where one has not, or has ended without an error. */
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

  /** No more are added. */
  complete(): void {
    this.#stays = false
  }

  /** A member goes; gives what is read of it. */
  remove(member: Member, how: Departure): readonly S[] {
    const removed = this.all.filter((source) => source.member === member)
    for (const source of removed) {
      source.leaving = true
      if (how !== 'leaving') source.end ??= { error: undefined }
    }
    return removed
  }

  /** Leaves out what has ended of members that were removed; true where there was some. */
  forget(): boolean {
    const left = this.all.filter((source) => !source.leaving || !this.isOver(source))
    if (left.length === this.all.length) return false
    this.all = left
    return true
  }

  /** Fulfils when as many have granted it as are required. @throws MembersError where they have not */
  async granting(grantOf: (source: S) => Promise<unknown>, require: 'any' | 'all'): Promise<void> {
    const answers = await this.#answers(grantOf, require === 'all')
    // A member that was removed meanwhile need not grant, unless all were removed.
    const left = answers.filter(({ source }) => !source.leaving)
    const failures = failuresOf(left.length > 0 ? left : answers)
    const isGranted = (some: readonly Answer[]): boolean =>
      some.some(({ end }) => end?.failed === false)
    if (failures.size === 0 || (require === 'any' && isGranted(left))) return
    // Others came meanwhile: it is theirs to grant.
    if (left.length === 0 && this.all.some(({ leaving }) => !leaving))
      return this.granting(grantOf, require)
    if (left.length === 0 && require === 'any' && isGranted(answers)) return
    throw membersError('ERR_SUBSCRIBE_REFUSED', 'no grant', failures)
  }

  /** Fulfils when it has ended on the members that are up; the others unsubscribe when they are connected again. @throws MembersError where it failed */
  async leave(leaveOf: (source: S) => Promise<unknown>): Promise<void> {
    const failures = failuresOf(await this.#answers(leaveOf, false))
    if (failures.size > 0)
      throw membersError('ERR_UNSUBSCRIBE_REFUSED', 'unsubscribing failed', failures)
  }

  /** Nothing more comes of it. */
  protected isOver({ end }: S): boolean {
    return end !== undefined
  }

  // Settles when all have answered, or (unless each is needed) one has, and those that have not are down.
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
