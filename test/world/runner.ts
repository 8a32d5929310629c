/** What one worker has run: schedules one by one, each kind of finding told once and made smaller, until the time is over. */
import type { KindName } from './kinds.js'
import type { Finding, Outcome } from './play.js'
import type { Schedule, ScheduleOf } from './schedule.js'

export type Shrinkable = ScheduleOf<object, object, object>

/** Runs a schedule and gives what was found. */
type Try<S extends Shrinkable = Schedule> = (schedule: S) => Promise<readonly Finding[]>

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

export interface Task {
  readonly kind: KindName
  /** This worker takes every `parts`-th schedule, beginning with number `part`. */
  readonly part: number
  readonly parts: number
  readonly first: number
  readonly seeds: number
  /** Every fault at every step of the base scenarios: of these, each so many-th, beginning with number `offset`. */
  readonly enumerate?: boolean
  readonly every: number
  readonly offset: number
  readonly hasty?: boolean
  /** Seconds after which no further schedule is begun. */
  readonly limit: number
  /** Packets are read with WebAssembly. */
  readonly scanner?: boolean
  /** A schedule as a finding prints it, or a seed: run it alone, and give every packet and event. */
  readonly replay?: string
}

/** A finding on its way to the runner. */
interface Report extends Finding {
  readonly name: string
  readonly seed: number
  readonly schedule: string
}

export interface Done {
  readonly schedules: number
  readonly seeds: number
  readonly failed: number
  readonly reports: readonly Report[]
  readonly trace: readonly string[]
}

const mostShrunk = 8

export class Runner {
  schedules = 0
  seeds = 0
  failed = 0
  readonly reports: Report[] = []
  readonly #task: Task
  readonly #play: (schedule: Shrinkable) => Promise<Outcome>
  readonly #known = new Set<string>()
  readonly #started = performance.now()

  constructor(task: Task, play: (schedule: Shrinkable) => Promise<Outcome>) {
    this.#task = task
    this.#play = play
  }

  get over(): boolean {
    return (
      (this.#task.hasty === true && this.failed > 0) ||
      performance.now() - this.#started > this.#task.limit * 1000
    )
  }

  async runSeeds(scheduleOf: (seed: number) => Shrinkable): Promise<void> {
    const { first, seeds, part, parts } = this.#task
    for (let seed = first; seed < first + seeds && !this.over; seed++) {
      if (seed % parts !== part) continue
      await this.run(scheduleOf(seed))
      this.seeds += 1
    }
  }

  /** Runs a schedule; gives where it could have been interrupted. */
  async run(schedule: Shrinkable): Promise<readonly string[]> {
    const { findings, moments } = await this.#play(schedule)
    this.schedules += 1
    if (findings.length > 0) this.failed += 1
    for (const finding of findings) await this.#report(schedule, finding)
    return moments
  }

  async #report(schedule: Shrinkable, { rule, detail }: Finding): Promise<void> {
    const kind = `${rule} ${detail.replace(/\d+/g, '#')}`
    if (this.#known.has(kind)) return
    this.#known.add(kind)
    const isWhole = this.#known.size > mostShrunk || this.#task.hasty === true
    const small = isWhole
      ? schedule
      : await shrink(schedule, rule, async (candidate) => (await this.#play(candidate)).findings)
    this.reports.push({
      rule,
      detail,
      name: schedule.name,
      seed: schedule.seed,
      schedule: shown(small),
    })
  }
}
