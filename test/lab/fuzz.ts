/** Inputs at random against codec and session, guided by coverage (`test/fuzz`), and random properties at full length. */
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import path from 'node:path'
import { Worker } from 'node:worker_threads'
import { bundle } from '../fuzz/bundler.js'
import type { Done, Task } from '../fuzz/main.js'
import { packed } from '../fuzz/seeds.js'
import { root } from '../support/node-bundle.js'
import { type Lab, type Result, together } from './lab.js'

/** The targets by name. */
const targetNames = ['wire', 'session'] as const

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
async function builtWorker(): Promise<string> {
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
async function hunt(
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
async function replayed(file: string, target: string, hex: string): Promise<string | undefined> {
  return (await work(file, { target, seed: 1, seconds: 0, corpus: '', replay: hex })).findings[0]
    ?.detail
}

/** `seeds.txt` gets few inputs that enter all that the corpus of all runs enters; gives how many, for each target. */
async function keep(file: string): Promise<string[]> {
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

export const about =
  'a search guided by coverage: `wire`, `session`; `suites` of tests that are random or try each byte; `long`: random properties at full length; `defects`: with a defect, which has to be found; `keep` writes test/fuzz/seeds.txt; --replay "TARGET HEX"'
export const minutes = 3

/** Random properties and faults at each byte or event that are too long for the gate. */
const suites = [
  'test/unit/wasm/',
  'test/fuzz/search',
  'test/unit/client/registry-model.test.ts',
  ...['faults/', 'latest-attacks', 'operation.test.ts'].map((name) => `test/unit/typed/${name}`),
]
/** Suites that have a long form, which takes as long as it takes. */
const longSuites = ['test/unit/client/hostile-mutated.test.ts']

async function search(lab: Lab, file: string, target: string, share: number): Promise<Result> {
  const { inputs, edges, findings } = await hunt(
    file,
    target,
    lab.seed,
    lab.minutes * 60 * share,
    availableParallelism(),
  )
  lab.say(`${target}: ${inputs} inputs, ${edges} edges covered, ${findings.length} findings`)
  return {
    did: `${inputs} inputs of ${target}`,
    findings: findings.map(({ detail, bytes }) => ({
      what: `${target} ${detail}`,
      command: `npm run lab -- fuzz --replay "${target} ${bytes}"`,
    })),
  }
}

export async function run(lab: Lab): Promise<Result> {
  const unknown = lab.words.filter(
    (word) => ![...targetNames, 'suites', 'long', 'keep', 'defects'].includes(word),
  )
  if (unknown.length > 0)
    throw new Error(
      `there is no ${unknown.join(', ')} in fuzz; there are: ${targetNames.join(', ')}, suites, long, keep, defects`,
    )
  if (lab.words.includes('long')) return lab.vitest(longSuites, { env: { MQWIRE_LONG: '1' } })
  if (lab.words.includes('defects'))
    return (await import('../support/checkers.js')).tryDefects(lab, 'fuzz', [
      'fuzz session',
      'fuzz wire',
    ])
  const file = await builtWorker()
  try {
    if (lab.replay !== undefined) {
      const [target = '', hex = ''] = lab.replay.split(' ')
      const what = await replayed(file, target, hex)
      lab.say(what ?? 'nothing is wrong with it')
      const command = `npm run lab -- fuzz --replay "${lab.replay}"`
      return { did: 'one input', findings: what === undefined ? [] : [{ what, command }] }
    }
    if (lab.words.includes('keep')) return { did: (await keep(file)).join('; '), findings: [] }
    const chosen =
      lab.words.length === 0 ? targetNames : targetNames.filter((name) => lab.words.includes(name))
    const results: Result[] = []
    if (lab.words.length === 0 || lab.words.includes('suites'))
      results.push(await lab.vitest(suites))
    for (const target of chosen) results.push(await search(lab, file, target, 1 / chosen.length))
    return together(...results)
  } finally {
    rmSync(file, { force: true })
  }
}
