/**
 * One worker of the runner: searches one target until its share of inputs or seconds is used up, and posts what it found.
 *
 * The input that runs lies in shared memory, so that the runner can tell which one never came back. It must never print.
 */
import { parentPort, workerData } from 'node:worker_threads'
import { fromHex, hex } from './build.js'
import { describeProgram } from './client.js'
import { countCopies, counters } from './counters.js'
import { OracleError } from './oracle.js'
import { minimised, Search } from './search.js'
import { builtSeeds, readSeeds } from './seeds.js'
import { targetOf } from './targets.js'

/** What a worker is told. */
export interface Task {
  readonly target: string
  readonly seed: number
  readonly inputs: number
  readonly seconds: number
  /** Text in the form of `seeds.txt`. */
  readonly corpus: string
  /** Stop at the first finding that breaks one of these rules. */
  readonly rules?: readonly string[] | undefined
  /** Of the input that runs: its length, its number, its bytes. Every worker has its own. */
  readonly running: SharedArrayBuffer
  /** Only run this one, and tell about it. */
  readonly replay?: string | undefined
  /** Only give the fewest inputs that do what the corpus does. */
  readonly minimise?: boolean | undefined
}

/** What a worker did. */
export interface Done {
  readonly target: string
  readonly inputs: number
  readonly seconds: number
  readonly edges: number
  readonly counters: number
  readonly kept: readonly string[]
  readonly findings: readonly { readonly rule: string; readonly detail: string; readonly bytes: string; readonly program: string }[]
  readonly text: string
}

const task = workerData as Task
const target = targetOf(task.target)
const started = performance.now()
const room = new Uint8Array(task.running, 8)
const [length, count] = [new Int32Array(task.running, 0, 1), new Int32Array(task.running, 4, 1)]

function note(bytes: Uint8Array): void {
  room.set(bytes.subarray(0, room.length))
  length[0] = Math.min(bytes.length, room.length)
  count[0] = (count[0] as number) + 1
}

function corpus(): Uint8Array[] {
  return readSeeds(task.corpus).flatMap((seed) => (seed.target === target.name ? [seed.bytes] : []))
}

const seconds = (): number => (performance.now() - started) / 1000

async function explore(): Promise<Done> {
  // An error costs most of its time for its stack, which only a report needs.
  Error.stackTraceLimit = 0
  const search = new Search(target, task.seed, note)
  await search.start([...builtSeeds(target.name), ...corpus()])
  let posted = 0
  const wanted = (): boolean => search.findings.some(({ rule }) => task.rules?.includes(rule) === true)
  while (search.inputs < task.inputs && (search.inputs % 64 !== 0 || seconds() < task.seconds) && !wanted()) {
    await search.step()
    if (search.inputs < posted + (target.name === 'client' ? 64 : 1024)) continue
    posted = search.inputs
    parentPort?.postMessage({ inputs: search.inputs, edges: search.edges, findings: search.findings.length })
    // Also for a target that never waits: messages leave between tasks.
    await new Promise((resolve) => setImmediate(resolve))
  }
  Error.stackTraceLimit = 10
  const findings = []
  for (const { rule, detail, bytes } of search.findings) {
    const program = target.name === 'client' ? await describeProgram(bytes) : ''
    findings.push({ rule, detail: await withStack(bytes, detail), bytes: hex(bytes), program })
  }
  const kept = search.kept.map(({ bytes }) => hex(bytes))
  return {
    target: target.name,
    inputs: search.inputs,
    seconds: seconds(),
    edges: search.edges,
    counters: counters().length,
    kept,
    findings,
    text: '',
  }
}

async function withStack(bytes: Uint8Array, detail: string): Promise<string> {
  try {
    await target.run(bytes)
    return detail
  } catch (error) {
    return error instanceof OracleError ? error.message : detail
  }
}

async function replay(given: string): Promise<Done> {
  const bytes = fromHex(given)
  let text = 'nothing is wrong with it'
  try {
    await target.run(bytes.slice())
  } catch (error) {
    text = error instanceof Error ? (error.stack ?? error.message) : String(error)
  }
  if (target.name === 'client') text += `\n${await describeProgram(bytes)}`
  return { target: target.name, inputs: 1, seconds: seconds(), edges: 0, counters: 0, kept: [], findings: [], text }
}

async function smallest(): Promise<Done> {
  const kept = (await minimised(target, corpus())).map(hex)
  return { target: target.name, inputs: 0, seconds: seconds(), edges: 0, counters: 0, kept, findings: [], text: '' }
}

countCopies()
const done = task.replay !== undefined ? replay(task.replay) : task.minimise === true ? smallest() : explore()
done.then((result) => parentPort?.postMessage({ done: result }))
