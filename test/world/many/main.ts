/**
 * One worker of the runner for the world of many connections: runs its part of the schedules and posts what it found.
 *
 * It must never print: the runner collects the parts and says what came of them.
 */
import { parentPort, workerData } from 'node:worker_threads'
import type { Task } from '../main.js'
import { Runner } from '../runner.js'
import { parsed } from '../shrink.js'
import { generate } from './generate.js'
import type { Schedule } from './schedule.js'
import { catchStrays, ManyWorld } from './world.js'

const task = workerData as Task

async function replay(text: string): Promise<string[]> {
  const lines: string[] = []
  const world = new ManyWorld(parsed<Schedule>(text), (line) => lines.push(line))
  await world.run()
  for (const { name, end, ends } of world.history.published.values()) {
    const parts = [...ends].map(([member, each]) => `${member}: ${each.status} ${each.code ?? ''}`)
    lines.push(`${name}: ${end.status} ${end.code ?? ''} ${end.outcome ?? ''} ${parts.join(', ')}`)
  }
  for (const { name, memory } of world.brokers) lines.push(`${name} took ${memory.accepted.length} messages`)
  for (const { rule, detail } of world.history.findings) lines.push(`FINDING ${rule}: ${detail}`)
  return lines
}

// Nobody looks at them, and they cost a tenth of the time.
Error.stackTraceLimit = 0
catchStrays()
const runner = new Runner<Schedule>(task, (schedule) => new ManyWorld(schedule).run())
await runner.runSeeds(generate)
const trace = task.replay === undefined ? [] : await replay(task.replay)
parentPort?.postMessage(runner.done(trace))
