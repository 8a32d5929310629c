/**
 * A load over one thread or several. Every thread runs the same file, and gets its part.
 */
import { once, setMaxListeners } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { isMainThread, type MessagePort, parentPort, Worker, workerData } from 'node:worker_threads'
import { Ending, endOf } from '../common/ending.js'
import { Fleet } from './devices.js'
import { addTotals, noTotals, type Totals } from './ledger.js'
import { type Dial, Load } from './load.js'
import { type DevicePlan, hasDevices, type Plan } from './plan.js'

/** What a thread begins with. */
interface Task {
  readonly plan: Plan
  readonly part: number
  readonly parts: number
  readonly dial: Dial
}

/** How far a thread is. */
interface Report {
  readonly state: 'open' | 'running' | 'published' | 'failed'
  readonly sums: Totals
  /** Why it ended, and what that means for the exit code. */
  readonly failure: ReturnType<typeof endOf> | undefined
  /** The first error of a publish. */
  readonly problem: ReturnType<typeof endOf> | undefined
}

/** Ends a thread, in place of a start. */
const over = -1

/** Milliseconds for the clients of a thread to disconnect; one more for each session to end. */
const patience = 2000

/** Milliseconds between two reports: fewer than between two samples, which else beat with them. */
const reporting = 100

/** True in a thread that this file has started. */
export const isPart = !isMainThread && (workerData as Partial<Task> | null)?.parts !== undefined

/** Runs the part of this thread, until the main thread ends it. */
export async function runPart(port = parentPort as MessagePort): Promise<void> {
  const { plan, part, parts, dial } = workerData as Task
  const end = new AbortController()
  // Each client that connects listens.
  setMaxListeners(0, end.signal)
  const Role = hasDevices(plan) ? Fleet : Load
  const load = new Role(plan as DevicePlan, part, parts, dial, end.signal)
  const { sums } = load
  let state: Report['state'] = 'open'
  const report = (failure: unknown = load.failure): void =>
    port.postMessage({
      state,
      sums,
      failure: failure === undefined ? undefined : endOf(failure),
      problem: load.problem === undefined ? undefined : endOf(load.problem),
    } satisfies Report)
  const enter = (next: Report['state']): void => {
    state = next
    report()
  }
  port.on('message', (value: number) => {
    if (value !== over) return
    end.abort()
    load.close().finally(() => process.exit())
  })
  try {
    await load.open()
    enter('open')
    const [start] = (await once(port, 'message')) as [number]
    if (start === over) return
    enter('running')
    setInterval(() => report(), reporting)
    await load.publish(start)
    enter('published')
  } catch (error) {
    state = 'failed'
    report(error)
  }
}

/** The parts of a load. */
export class Threads {
  readonly #workers: Worker[] = []
  readonly #reports: Report[] = []
  #failed: Report['failure']
  readonly #changed = new EventTarget()
  readonly #storms: number
  readonly #patience: number

  constructor(plan: Plan, parts: number, dial: Dial) {
    this.#storms = hasDevices(plan) ? plan.storms : 0
    this.#patience = hasDevices(plan) ? patience + plan.publishers : patience
    for (let part = 0; part < parts; part++) {
      const worker = new Worker(new URL(import.meta.url), {
        workerData: { plan, part, parts, dial } satisfies Task,
        argv: [],
      })
      worker.on('message', (report: Report) => {
        this.#reports[part] = report
        if (report.failure !== undefined) this.#fail(report.failure)
        this.#changed.dispatchEvent(new Event('change'))
      })
      worker.on('error', (error) => this.#fail(endOf(error)))
      worker.on('exit', () => this.#fail({ end: 'lost', text: 'a thread has ended' }))
      this.#workers.push(worker)
    }
  }

  #fail(failure: Report['failure']): void {
    this.#failed ??= failure
    this.#changed.dispatchEvent(new Event('change'))
  }

  /** Resolves when all threads are in this state. @throws Ending when one has failed */
  async all(state: Report['state'], signal: AbortSignal): Promise<void> {
    for (;;) {
      if (this.#failed !== undefined) throw new Ending(this.#failed.end, this.#failed.text)
      signal.throwIfAborted()
      if (this.#workers.every((_, part) => this.#reports[part]?.state === state)) return
      await once(this.#changed, 'change', { signal })
    }
  }

  /** Says something to all threads. */
  post(value: number): void {
    for (const worker of this.#workers) worker.postMessage(value)
  }

  /** The sums of all threads. */
  get sums(): Totals {
    const all = noTotals(this.#storms)
    for (const report of this.#reports) if (report !== undefined) addTotals(all, report.sums)
    return all
  }

  /** The first error of a publish. */
  get problem(): ReturnType<typeof endOf> | undefined {
    return this.#reports.find((report) => report?.problem !== undefined)?.problem
  }

  async end(): Promise<void> {
    const ended = Promise.all(this.#workers.map((worker) => once(worker, 'exit')))
    this.post(over)
    const enough = new AbortController()
    await Promise.race([ended, sleep(this.#patience, undefined, enough).catch(() => undefined)])
    enough.abort()
    await Promise.all(this.#workers.map((worker) => worker.terminate()))
  }
}
