/** What one worker has run: schedules one by one, each kind of finding told once and made smaller, until the time is over. */
import type { KindName } from './kinds.js'
import type { Finding, Outcome } from './play.js'
import { type Shrinkable, shown, shrink } from './shrink.js'

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
export interface Report extends Finding {
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
