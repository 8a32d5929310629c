/** Makes a failing schedule smaller while it goes on failing in the same way: without operations, without faults, without settings. */
import type { Finding } from './play.js'
import type { Schedule, ScheduleOf } from './schedule.js'

export type Shrinkable = ScheduleOf<object, object, object>

/** Runs a schedule and gives what was found. */
export type Try<S extends Shrinkable = Schedule> = (schedule: S) => Promise<readonly Finding[]>

/** The smallest schedule that was found to break the same rule. */
export async function shrink<S extends Shrinkable>(
  schedule: S,
  rule: string,
  attempt: Try<S>,
  most = 400,
): Promise<S> {
  let best = schedule
  let left = most
  const fails = async (candidate: S): Promise<boolean> => {
    if (left <= 0) return false
    left -= 1
    const found = await attempt(candidate)
    if (!found.some((finding) => finding.rule === rule)) return false
    best = candidate
    return true
  }
  for (let again = true; again && left > 0; ) {
    again = false
    for (const candidate of smaller(best)) {
      if (await fails(candidate)) {
        again = true
        break
      }
    }
  }
  return best
}

function* smaller<S extends Shrinkable>(schedule: S): Generator<S> {
  yield* withoutSome(schedule, 'ops')
  yield* withoutSome(schedule, 'faults')
  for (const key of Object.keys(schedule.setup)) {
    const { [key]: _gone, ...setup } = schedule.setup as Record<string, unknown>
    yield { ...schedule, setup }
  }
}

// Halves first, then quarters, down to one at a time.
function* withoutSome<S extends Shrinkable>(schedule: S, key: 'ops' | 'faults'): Generator<S> {
  const list: readonly unknown[] = schedule[key]
  for (
    let size = Math.ceil(list.length / 2);
    size >= 1;
    size = size === 1 ? 0 : Math.ceil(size / 2)
  ) {
    for (let at = 0; at < list.length; at += size)
      yield { ...schedule, [key]: [...list.slice(0, at), ...list.slice(at + size)] }
  }
}

/** A schedule as text that can be run again. */
export function shown(schedule: Shrinkable): string {
  const lines = [
    `name: ${schedule.name}, seed: ${schedule.seed}, span: ${schedule.span} ms`,
    `setup: ${JSON.stringify(schedule.setup)}`,
    ...schedule.ops.map((op) => `op    ${JSON.stringify(op)}`),
    ...schedule.faults.map((fault) => `fault ${JSON.stringify(fault)}`),
  ]
  return lines.map((line) => `    ${line}`).join('\n')
}

export function parsed<S extends Shrinkable = Schedule>(text: string): S {
  const lines = text.split('\n').map((line) => line.trim())
  const head = /^name: (.*), seed: (\d+), span: (\d+) ms$/.exec(
    lines.find((line) => line.startsWith('name: ')) ?? '',
  )
  if (head === null) throw new Error('there is no line that begins with name:')
  const all = <T>(prefix: string): T[] =>
    lines
      .filter((line) => line.startsWith(prefix))
      .map((line) => JSON.parse(line.slice(prefix.length)) as T)
  const [setup = {}] = all<object>('setup: ')
  return {
    name: head[1] as string,
    seed: Number(head[2]),
    span: Number(head[3]),
    setup,
    ops: all<object>('op '),
    faults: all<object>('fault '),
  } as unknown as S
}
