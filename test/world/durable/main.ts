/**
 * One worker of the runner for the durable world: runs its part of the schedules and posts what it found.
 *
 * It must never print: the runner collects the parts and says what came of them.
 */
import { parentPort, workerData } from 'node:worker_threads'
import type { Task } from '../main.js'
import { Runner } from '../runner.js'
import { parsed } from '../shrink.js'
import { generate } from './generate.js'
import { crashes, scenarios } from './scenarios.js'
import type { Schedule } from './schedule.js'
import { catchStrays, DurableWorld } from './world.js'

const task = workerData as Task

async function enumerate(runner: Runner<Schedule>): Promise<void> {
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
const runner = new Runner<Schedule>(task, (schedule) => new DurableWorld(schedule).run())
await runner.runSeeds(generate)
if (task.enumerate) await enumerate(runner)
const trace = task.replay === undefined ? [] : await replay(task.replay)
parentPort?.postMessage(runner.done(trace))
