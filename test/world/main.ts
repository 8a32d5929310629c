/** One worker: runs its part of the schedules and posts what it found. */
import { parentPort, workerData } from 'node:worker_threads'
import { eagerScanner } from '../unit/wasm/scanner.js'
import { readWith } from './client-options.js'
import { kinds, traced } from './kinds.js'
import { catchStrays, type Outcome } from './play.js'
import { type Done, parsed, Runner, type Shrinkable, type Task } from './runner.js'
import { faultPairs, resets, scenarios, singleFaults } from './scenarios.js'
import { wideScenarios } from './wide-scenarios.js'
import { isCareful } from './world.js'

const stackLines = Error.stackTraceLimit
const task = workerData as Task
const { generate, make } = kinds[task.kind]
if (task.scanner === true) readWith(eagerScanner())

async function play(schedule: Shrinkable): Promise<Outcome> {
  // A third of the time goes into stacks of errors. Worlds that look for secrets have them, as a replay has.
  Error.stackTraceLimit = isCareful(schedule) ? stackLines : 0
  return make(schedule).run()
}

function mine(index: number): boolean {
  return index % task.parts === task.part
}

async function enumerate(runner: Runner): Promise<void> {
  let index = 0
  for (const scenario of wideScenarios) {
    if (runner.over || !mine(index++)) continue
    const steps = await runner.run(scenario)
    if (scenario.short) for (const schedule of resets(scenario, steps)) await runner.run(schedule)
  }
  for (const scenario of scenarios) {
    const steps = await runner.run(scenario)
    const all = [
      singleFaults(scenario, steps),
      ...(scenario.short ? [faultPairs(scenario, steps)] : []),
    ]
    for (const schedules of all) {
      for (const schedule of schedules) {
        if (runner.over) return
        // This worker's share, and of that each so many-th.
        if (mine(index) && Math.floor(index / task.parts) % task.every === task.offset)
          await runner.run(schedule)
        index += 1
      }
    }
  }
}

// In a hurry: every scenario as it is, then by turns one with a reset at some step, and one from a random seed.
async function skim(runner: Runner): Promise<void> {
  const steps: (readonly string[])[] = []
  for (const scenario of scenarios) steps.push(await runner.run(scenario))
  const all = scenarios.flatMap((scenario, number) => [...resets(scenario, steps[number] ?? [])])
  for (let index = task.part; !runner.over; index += task.parts) {
    const schedule = all[(index * 7919) % all.length]
    if (schedule !== undefined && index < all.length) await runner.run(schedule)
    await runner.run(generate(task.first + index))
  }
}

catchStrays()
const runner = new Runner(task, play)
const { replay } = task
const trace =
  replay === undefined
    ? []
    : await traced(task.kind, /^\d+$/.test(replay) ? generate(Number(replay)) : parsed(replay))
if (task.kind === 'world' && task.hasty === true) await skim(runner)
else if (replay === undefined) await runner.runSeeds(generate)
if (task.enumerate === true) await enumerate(runner)
const { schedules, seeds, failed, reports } = runner
parentPort?.postMessage({ schedules, seeds, failed, reports, trace } satisfies Done)
