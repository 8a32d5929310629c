/**
 * One worker of the runner for the durable world: runs its part of the schedules and posts what it found.
 *
 * It must never print: the runner collects the parts and says what came of them.
 */
import { parentPort, workerData } from 'node:worker_threads'
import type { Done, Report, Task } from '../main.js'
import { parsed, shown, shrink } from '../shrink.js'
import { generate } from './generate.js'
import type { Finding } from './history.js'
import { crashes, scenarios } from './scenarios.js'
import type { Schedule } from './schedule.js'
import { catchStrays, DurableWorld } from './world.js'

const started = performance.now()
const mostShrunk = 8
const task = workerData as Task

class Runner {
  schedules = 0
  seeds = 0
  failed = 0
  events = 0
  readonly reports: Report[] = []
  readonly #known = new Set<string>()

  get over(): boolean {
    return (task.hasty && this.failed > 0) || performance.now() - started > task.limit * 1000
  }

  async run(schedule: Schedule): Promise<readonly string[]> {
    const { findings, moments, events } = await new DurableWorld(schedule).run()
    this.schedules += 1
    if (task.counter !== undefined) Atomics.add(task.counter, 0, 1)
    this.events += events
    const counted = findings.filter(({ rule }) => task.rules?.includes(rule) ?? true)
    if (counted.length > 0) await this.#report(schedule, counted)
    return moments
  }

  async #report(schedule: Schedule, findings: readonly Finding[]): Promise<void> {
    this.failed += 1
    const after = (performance.now() - started) / 1000
    for (const { rule, detail } of findings) {
      const kind = `${rule} ${detail.replace(/\d+/g, '#')}`
      if (this.#known.has(kind)) continue
      this.#known.add(kind)
      const small =
        this.#known.size > mostShrunk || task.hasty || task.raw === true
          ? schedule
          : await shrink(schedule, rule, async (candidate) => (await new DurableWorld(candidate).run()).findings)
      this.reports.push({ rule, detail, name: schedule.name, seed: schedule.seed, schedule: shown(small), after })
    }
  }
}

async function enumerate(runner: Runner): Promise<void> {
  let index = 0
  for (const scenario of scenarios) {
    if (!scenario.name.includes(task.only)) continue
    for (const schedule of crashes(scenario, await runner.run(scenario))) {
      if (runner.over) return
      const number = index++
      if (number % task.parts === task.part && Math.floor(number / task.parts) % task.every === task.offset) await runner.run(schedule)
    }
  }
}

async function random(runner: Runner): Promise<void> {
  for (let seed = task.first; seed < task.first + task.seeds && !runner.over; seed++) {
    if (seed % task.parts !== task.part) continue
    await runner.run(generate(seed))
    runner.seeds += 1
  }
}

async function replay(text: string): Promise<string[]> {
  const lines: string[] = []
  const world = new DurableWorld(parsed<Schedule>(text))
  world.history.trace = (line) => lines.push(line)
  await world.run()
  for (const { name, state, error, told } of world.history.outgoing.values())
    lines.push(`${name}: ${state} ${error === undefined ? '' : `${error}, ${error.outcome}`} ${told ?? ''}`)
  for (const { name, handled, ids } of world.history.fed.values()) lines.push(`${name}: handled ${handled} times, as ${[...ids].join(' and ')}`)
  lines.push(`the broker took: ${world.accepted.join(' ')}`)
  for (const { rule, detail } of world.history.findings) lines.push(`FINDING ${rule}: ${detail}`)
  return lines
}

// Nobody looks at them, and they cost a tenth of the time.
Error.stackTraceLimit = 0
catchStrays()
const runner = new Runner()
await random(runner)
if (task.enumerate) await enumerate(runner)
const trace = task.replay === undefined ? [] : await replay(task.replay)
const { schedules, seeds, failed, reports, events } = runner
parentPort?.postMessage({ schedules, seeds, failed, reports, events, trace } satisfies Done)
