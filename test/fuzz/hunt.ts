/**
 * Runs workers of the fuzzer: searches a target until the time is over, repeats one input, or makes the corpus as small as it can be.
 *
 * What was found to reach something new is kept in node_modules/.cache/mqwire-fuzz and used the next time. It may assume a bundle of `main.ts`.
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { Worker } from 'node:worker_threads'
import { root } from '../support/node-bundle.js'
import { bundle } from './bundler.js'
import type { Done, Task } from './main.js'
import { packed } from './seeds.js'

/** The targets by name. */
export const targetNames = ['wire', 'session'] as const

const store = path.join(root, 'node_modules', '.cache', 'mqwire-fuzz')
const seedFile = path.join(root, 'test', 'fuzz', 'seeds.txt')
const mark = '# few inputs that enter all that longer runs entered (npm run lab -- fuzz keep)'
/** Bytes of hexadecimal text for each target in the file that is committed. */
const mostKept = 60_000
/** Milliseconds for one input: a hundred thousand times what one takes, because the machine may be busy. */
const patience = 120_000

const read = (file: string): string => (existsSync(file) ? readFileSync(file, 'utf8') : '')
const corpusFile = (target: string): string => path.join(store, `${target}.txt`)

/** Builds the targets with counters; gives the file of the worker. */
export async function builtWorker(): Promise<string> {
  mkdirSync(store, { recursive: true })
  return bundle(root, 'test/fuzz/main.ts', path.join(store, `main-${process.pid}.mjs`))
}

/** One worker to its end. One whose input takes too long or too much memory is stopped, and the input is the finding. */
function work(file: string, task: Omit<Task, 'running'>): Promise<Done> {
  const running = new SharedArrayBuffer(8 + 4096)
  const [length, count] = [new Int32Array(running, 0, 1), new Int32Array(running, 4, 1)]
  return new Promise((resolve, reject) => {
    const worker = new Worker(file, {
      workerData: { ...task, running },
      resourceLimits: { maxOldGenerationSizeMb: 1024, maxYoungGenerationSizeMb: 96 },
    })
    let last = { inputs: 0, edges: 0 }
    let seen = 0
    let since = performance.now()
    const stuck = (detail: string): void => {
      const bytes = Buffer.from(running, 8, length[0]).toString('hex')
      resolve({ ...last, kept: [], findings: [{ detail, bytes }] })
    }
    const watch = setInterval(() => {
      if (count[0] !== seen) since = performance.now()
      seen = count[0] as number
      if (task.minimise === true || performance.now() - since < patience) return
      stuck(`hang: no end within ${patience / 1000} s`)
      void worker.terminate()
    }, 1000)
    worker.on('message', (message: { done?: Done; inputs: number; edges: number }) => {
      if (message.done === undefined) last = message
      else resolve(message.done)
    })
    worker.on('error', (error: NodeJS.ErrnoException) =>
      error.code === 'ERR_WORKER_OUT_OF_MEMORY' ? stuck(`memory: ${error.message}`) : reject(error),
    )
    worker.on('exit', () => clearInterval(watch))
  })
}

/** Searches one target for so many seconds with so many workers; the same seeds begin the same searches. Gives findings of one kind once. */
export async function hunt(
  file: string,
  target: string,
  seed: number,
  seconds: number,
  jobs: number,
): Promise<Omit<Done, 'kept'>> {
  const corpus = read(seedFile) + read(corpusFile(target))
  const all = await Promise.all(
    Array.from({ length: jobs }, (_, job) =>
      work(file, { target, seed: seed + job, seconds, corpus }),
    ),
  )
  const kept = new Set(all.flatMap((each) => each.kept))
  if (kept.size > 0) writeFileSync(corpusFile(target), packed(target, [...kept]))
  const findings = new Map(
    all
      .flatMap((each) => each.findings)
      .map((found) => [found.detail.replace(/\d+/g, '#').slice(0, 120), found]),
  )
  const inputs = all.reduce((sum, each) => sum + each.inputs, 0)
  return {
    inputs,
    edges: Math.max(...all.map(({ edges }) => edges)),
    findings: [...findings.values()],
  }
}

/** Runs one input; gives what is wrong with it. */
export async function replayed(
  file: string,
  target: string,
  hex: string,
): Promise<string | undefined> {
  return (await work(file, { target, seed: 1, seconds: 0, corpus: '', replay: hex })).findings[0]
    ?.detail
}

/** `seeds.txt` gets few inputs that enter all that the corpus of all runs enters; gives how many, for each target. */
export async function keep(file: string): Promise<string[]> {
  const before = read(seedFile).split(mark)[0]?.trimEnd() ?? ''
  const parts: string[] = []
  const counts: string[] = []
  for (const target of targetNames) {
    const { kept } = await work(file, {
      target,
      seed: 1,
      seconds: 0,
      corpus: read(corpusFile(target)),
      minimise: true,
    })
    let room = mostKept
    const few = kept.filter((bytes) => {
      room -= bytes.length
      return room >= 0
    })
    parts.push(packed(target, few))
    counts.push(`${target}: ${few.length} inputs of ${kept.length}`)
  }
  writeFileSync(seedFile, `${before}\n\n${mark}\n${parts.join('')}`)
  return counts
}
