/**
 * What one worker has run: schedules one by one, each kind of finding told once and made smaller, until the time is over.
 *
 * It knows nothing of a world but that it gives findings for a schedule.
 */
import type { Finding } from './history.js'
import type { Done, Report, Task } from './main.js'
import { type Shrinkable, shown, shrink } from './shrink.js'

const mostShrunk = 8

/** What came of a schedule. */
export interface Outcome {
  readonly findings: readonly Finding[]
  /** Where it could have been interrupted. */
  readonly moments: readonly string[]
  readonly events: number
}

/** Runs schedules of one kind of world. */
export class Runner<S extends Shrinkable> {
  schedules = 0
  seeds = 0
  failed = 0
  events = 0
  readonly reports: Report[] = []
  readonly #task: Task
  readonly #play: (schedule: S) => Promise<Outcome>
  readonly #known = new Set<string>()
  readonly #started = performance.now()

  constructor(task: Task, play: (schedule: S) => Promise<Outcome>) {
    this.#task = task
    this.#play = play
  }

  /** Nothing more is to be begun. */
  get over(): boolean {
    return (this.#task.hasty && this.failed > 0) || performance.now() - this.#started > this.#task.limit * 1000
  }

  /** Runs this worker's share of the seeds. */
  async runSeeds(scheduleOf: (seed: number) => S): Promise<void> {
    const { first, seeds, part, parts } = this.#task
    for (let seed = first; seed < first + seeds && !this.over; seed++) {
      if (seed % parts !== part) continue
      await this.run(scheduleOf(seed))
      this.seeds += 1
    }
  }

  /** What it did, to be posted. */
  done(trace: readonly string[]): Done {
    const { schedules, seeds, failed, reports, events } = this
    return { schedules, seeds, failed, reports, events, trace }
  }

  /** Runs a schedule; gives where it could have been interrupted. */
  async run(schedule: S): Promise<readonly string[]> {
    const { counter } = this.#task
    const { findings, moments, events } = await this.#play(schedule)
    this.schedules += 1
    if (counter !== undefined) Atomics.add(counter, 0, 1)
    this.events += events
    if (findings.length > 0) await this.#report(schedule, findings)
    return moments
  }

  async #report(schedule: S, findings: readonly Finding[]): Promise<void> {
    this.failed += 1
    const { hasty, raw } = this.#task
    const after = (performance.now() - this.#started) / 1000
    for (const { rule, detail } of findings) {
      const kind = `${rule} ${detail.replace(/\d+/g, '#')}`
      if (this.#known.has(kind)) continue
      this.#known.add(kind)
      const whole = this.#known.size > mostShrunk || hasty || raw === true
      const small = whole ? schedule : await shrink(schedule, rule, async (candidate) => (await this.#play(candidate)).findings)
      this.reports.push({ rule, detail, name: schedule.name, seed: schedule.seed, schedule: shown(small), after })
    }
  }
}
