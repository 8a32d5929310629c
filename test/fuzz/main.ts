/**
 * One worker of the runner: searches one target until its seconds are used up, and posts what it found.
 *
 * The input that runs lies in shared memory, so that the runner knows which one never came back. It must never print.
 */
import { parentPort, workerData } from 'node:worker_threads'
import { fromHex, hex } from './build.js'
import { countCopies } from './counters.js'
import { OracleError } from './oracle.js'
import { minimised, Search } from './search.js'
import { builtSeeds, readSeeds } from './seeds.js'
import { targetOf } from './targets.js'

/** What a worker is to do. */
export interface Task {
  readonly target: string
  readonly seed: number
  readonly seconds: number
  /** Text in the form of `seeds.txt`. */
  readonly corpus: string
  /** Of the input that runs: its length, its number, its bytes. Every worker has its own. */
  readonly running: SharedArrayBuffer
  /** Run only this one. */
  readonly replay?: string
  /** Give only the fewest inputs that do what the corpus does. */
  readonly minimise?: boolean
}

/** What a worker did. */
export interface Done {
  readonly inputs: number
  readonly edges: number
  readonly kept: readonly string[]
  readonly findings: readonly { readonly detail: string; readonly bytes: string }[]
}

const task = workerData as Task
const target = targetOf(task.target)
const corpus = readSeeds(task.corpus).flatMap((seed) =>
  seed.target === target.name ? [seed.bytes] : [],
)
const room = new Uint8Array(task.running, 8)
const [length, count] = [new Int32Array(task.running, 0, 1), new Int32Array(task.running, 4, 1)]

function note(bytes: Uint8Array): void {
  room.set(bytes.subarray(0, room.length))
  length[0] = Math.min(bytes.length, room.length)
  count[0] = (count[0] as number) + 1
}

async function explore(): Promise<Done> {
  const end = performance.now() + task.seconds * 1000
  // An error costs most of its time for its stack, which only a report needs.
  Error.stackTraceLimit = 0
  const search = new Search(target, task.seed, note)
  search.start([...builtSeeds(target.name), ...corpus])
  for (let steps = 1; steps % 64 !== 0 || performance.now() < end; steps++) {
    search.step()
    if (steps % 1024 !== 0) continue
    parentPort?.postMessage({ inputs: search.inputs, edges: search.edges })
    // Messages leave between tasks.
    await new Promise((resolve) => setImmediate(resolve))
  }
  Error.stackTraceLimit = 10
  const findings = search.findings.map(({ detail, bytes }) => ({
    detail: fault(bytes) ?? detail,
    bytes: hex(bytes),
  }))
  return {
    inputs: search.inputs,
    edges: search.edges,
    kept: search.kept.map(({ bytes }) => hex(bytes)),
    findings,
  }
}

/** What is wrong with an input, with where. */
function fault(bytes: Uint8Array): string | undefined {
  try {
    target.run(bytes.slice())
    return undefined
  } catch (error) {
    return error instanceof OracleError ? error.message : String((error as Error).stack)
  }
}

function replay(given: string): Done {
  const detail = fault(fromHex(given))
  return {
    inputs: 1,
    edges: 0,
    kept: [],
    findings: detail === undefined ? [] : [{ detail, bytes: given }],
  }
}

countCopies()
const made = {
  inputs: 0,
  edges: 0,
  kept: task.minimise ? minimised(target, corpus, builtSeeds(target.name)).map(hex) : [],
  findings: [],
}
const done = task.minimise
  ? made
  : task.replay === undefined
    ? await explore()
    : replay(task.replay)
parentPort?.postMessage({ done })
