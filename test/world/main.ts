/**
 * One worker of the runner: runs its part of the schedules and posts what it found.
 *
 * It must never print: the runner collects the parts and says what came of them. A finding is shrunk here, where it can be run again.
 */
import { parentPort, workerData } from 'node:worker_threads'
import { eagerScanner } from '../unit/wasm/eager.js'
import { readWith } from './client-options.js'
import { faultPairs, resets, singleFaults } from './faults.js'
import { generate } from './generate.js'
import { type Outcome, Runner } from './runner.js'
import { scenarios } from './scenarios.js'
import type { Schedule } from './schedule.js'
import { parsed } from './shrink.js'
import { wideScenarios } from './wide-scenarios.js'
import { catchStrays, isCareful, World } from './world.js'

/** What a worker is told. */
export interface Task {
  /** This worker takes every `parts`-th schedule, beginning with number `part`. */
  readonly part: number
  readonly parts: number
  readonly first: number
  readonly seeds: number
  /** Every fault at every step of the base scenarios. */
  readonly enumerate: boolean
  /** Of these, each so many-th, beginning with number `offset`. */
  readonly every: number
  readonly offset: number
  /** Only scenarios whose name contains this. */
  readonly only: string
  /** Stop at the first finding. */
  readonly hasty: boolean
  /** Seconds after which no further schedule is begun. */
  readonly limit: number
  /** Schedules are told as they are, not made smaller. */
  readonly raw?: boolean
  /** Packets are read with WebAssembly. */
  readonly scanner?: boolean
  /** A schedule as a finding prints it: run it alone, and give every packet and event. */
  readonly replay?: string | undefined
  /** One number in shared memory: schedules that all workers have run. */
  readonly counter?: Int32Array | undefined
}

/** A finding on its way to the runner. */
export interface Report {
  readonly rule: string
  readonly detail: string
  readonly name: string
  readonly seed: number
  readonly schedule: string
  /** After so many seconds. */
  readonly after: number
}

/** What a worker did. */
export interface Done {
  readonly schedules: number
  readonly seeds: number
  /** Schedules that broke a rule. */
  readonly failed: number
  readonly reports: readonly Report[]
  readonly events: number
  readonly trace: readonly string[]
}

const stackLines = Error.stackTraceLimit
const task = workerData as Task
if (task.scanner === true) readWith(eagerScanner())

async function play(schedule: Schedule): Promise<Outcome> {
  // A third of the time goes into stacks of errors. Worlds that look for secrets have them, as a replay has.
  Error.stackTraceLimit = isCareful(schedule) ? stackLines : 0
  const { findings, steps, events } = await new World(schedule).run()
  return { findings, moments: steps, events }
}

function mine(index: number): boolean {
  return index % task.parts === task.part
}

// Enumerated schedules, of which this worker has its share, and of that each so many-th.
function sampled(index: number): boolean {
  return mine(index) && Math.floor(index / task.parts) % task.every === task.offset
}

async function enumerate(runner: Runner<Schedule>): Promise<void> {
  let index = 0
  for (const scenario of wideScenarios) {
    if (!scenario.name.includes(task.only) || runner.over || !mine(index++)) continue
    const steps = await runner.run(scenario)
    if (scenario.short) for (const schedule of resets(scenario, steps)) await runner.run(schedule)
  }
  for (const scenario of scenarios) {
    if (!scenario.name.includes(task.only)) continue
    const steps = await runner.run(scenario)
    const all = [singleFaults(scenario, steps), ...(scenario.short ? [faultPairs(scenario, steps)] : [])]
    for (const schedules of all) {
      for (const schedule of schedules) {
        if (runner.over) return
        if (sampled(index++)) await runner.run(schedule)
      }
    }
  }
}

// In a hurry: every scenario as it is, then by turns one with a reset at some step, and one from a random seed.
async function skim(runner: Runner<Schedule>): Promise<void> {
  const steps: (readonly string[])[] = []
  for (const scenario of scenarios) steps.push(await runner.run(scenario))
  const all = scenarios.flatMap((scenario, number) => [...resets(scenario, steps[number] ?? [])])
  for (let index = task.part; !runner.over; index += task.parts) {
    const schedule = all[(index * 7919) % all.length]
    if (schedule !== undefined && index < all.length) await runner.run(schedule)
    await runner.run(generate(task.first + index))
  }
}

async function replay(text: string): Promise<string[]> {
  const lines: string[] = []
  const world = new World(parsed(text))
  world.trace = (line) => lines.push(line)
  const { findings } = await world.run()
  for (const call of world.history.calls)
    lines.push(`call ${call.what} of ${call.at} ms: ${call.settled === 0 ? 'pending' : call.error === undefined ? 'fulfilled' : String(call.error)}`)
  for (const { rule, detail } of findings) lines.push(`FINDING ${rule}: ${detail}`)
  return lines
}

catchStrays()
const runner = new Runner<Schedule>(task, play)
if (task.hasty) await skim(runner)
else await runner.runSeeds(generate)
if (task.enumerate) await enumerate(runner)
const trace = task.replay === undefined ? [] : await replay(task.replay)
parentPort?.postMessage(runner.done(trace))
