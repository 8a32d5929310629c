/**
 * Runs workers of the finder: one to its end, or several that share the seeds.
 *
 * It may assume a bundle of the worker. It prints nothing.
 */
import { Worker } from 'node:worker_threads'
import type { Done, Task } from './worker.js'

/** Runs one worker to its end. */
export function work(file: string, task: Task): Promise<Done> {
  return new Promise((resolve, reject) => {
    const worker = new Worker(file, { workerData: task, execArgv: ['--enable-source-maps'] })
    let done: Done | undefined
    worker.on('message', (message: Done) => {
      done = message
    })
    worker.on('error', reject)
    worker.on('exit', (code) => (done === undefined ? reject(new Error(`a worker ended with ${code} and said nothing`)) : resolve(done)))
  })
}

/** Runs so many workers, and adds up what they did. */
export async function workAll(file: string, task: Task, parts: number): Promise<Done> {
  const all = await Promise.all(Array.from({ length: parts }, (_, part) => work(file, { ...task, part, parts })))
  return {
    programs: all.reduce((sum, { programs }) => sum + programs, 0),
    failed: all.reduce((sum, { failed }) => sum + failed, 0),
    told: all.flatMap(({ told }) => told),
    trace: all.flatMap(({ trace }) => trace),
  }
}
