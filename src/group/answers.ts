/**
 * Waiting for what several brokers answer: members that are down are waited for only where no other one answers.
 */
import { membersError } from '../members/failure.js'
import type { GroupCommon } from './duplicates.js'
import type { MergedMember } from './merge.js'

/** One member that was asked. */
export interface AskedMember {
  readonly member: MergedMember
  /** It was removed. */
  readonly leaving: boolean
}

interface Answer {
  readonly asked: AskedMember
  /** How it ended; undefined until then. `up`: the broker said so. */
  end: { readonly error: unknown; readonly failed: boolean; readonly up: boolean } | undefined
}

// Settles when all have answered, or (unless each is needed) one has, and those that have not are down.
async function answersOf<A extends AskedMember>(
  all: readonly A[],
  ask: (asked: A) => Promise<unknown>,
  isEach: boolean,
  { standing }: GroupCommon,
): Promise<readonly Answer[]> {
  const open = new Set<Promise<unknown>>()
  const answers = all.map((asked): Answer => {
    const answer: Answer = { asked, end: undefined }
    const end = (failed: boolean, error?: unknown): void => {
      answer.end = { error, failed, up: asked.member.up }
      open.delete(settled)
    }
    const settled: Promise<unknown> = ask(asked).then(
      () => end(false),
      (error) => end(true, error),
    )
    open.add(settled)
    return answer
  })
  const isEnough = (): boolean =>
    !isEach &&
    answers.some(({ end }) => end !== undefined && (!end.failed || end.up)) &&
    !answers.some(({ end, asked }) => end === undefined && asked.member.up)
  while (open.size > 0 && !isEnough()) await Promise.race([...open, standing.change])
  return answers
}

function failuresOf(answers: readonly Answer[]): Map<string, unknown> {
  return new Map(
    answers.flatMap(({ asked, end }) =>
      end?.failed ? [[asked.member.name, end.error] as const] : [],
    ),
  )
}

/** Fulfils when as many have granted it as are required. @throws MembersError where they have not */
export async function granting<A extends AskedMember>(
  sources: () => readonly A[],
  grantOf: (asked: A) => Promise<unknown>,
  require: 'any' | 'all',
  group: GroupCommon,
): Promise<void> {
  const answers = await answersOf(sources(), grantOf, require === 'all', group)
  // A member that was removed meanwhile need not grant, unless all were removed.
  const left = answers.filter(({ asked }) => !asked.leaving)
  const failures = failuresOf(left.length > 0 ? left : answers)
  const isGranted = (some: readonly Answer[]): boolean =>
    some.some(({ end }) => end?.failed === false)
  if (failures.size === 0 || (require === 'any' && isGranted(left))) return
  // Others came meanwhile: it is theirs to grant.
  if (left.length === 0 && sources().some(({ leaving }) => !leaving))
    return granting(sources, grantOf, require, group)
  if (left.length === 0 && require === 'any' && isGranted(answers)) return
  throw membersError('ERR_SUBSCRIBE_REFUSED', 'no grant', failures)
}

/** Fulfils when it has ended on the members that are up; the brokers of the others hear of it later. @throws MembersError where it failed */
export async function leaving<A extends AskedMember>(
  sources: readonly A[],
  leave: (asked: A) => Promise<unknown>,
  group: GroupCommon,
): Promise<void> {
  const failures = failuresOf(await answersOf(sources, leave, false, group))
  if (failures.size > 0)
    throw membersError('ERR_UNSUBSCRIBE_REFUSED', 'unsubscribing failed', failures)
}
