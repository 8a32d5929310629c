/** Judges mutants: plants each on its way to the tests that can notice it, then to the virtual world. A test judges only if it passes without. */
import { rmSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import path from 'node:path'
import { Worker } from 'node:worker_threads'
import type { Plugin } from 'esbuild'
import type { Done, Task as WorldTask } from '../../world/runner.js'
import { type Lab, within } from '../lab.js'
import { type Mutant, planted, type Sources } from './draw.js'
import { type Judge, Reach } from './reach.js'
import type { Answer, Task } from './worker.js'
import { Hand } from './worker-process.js'

/** What came of a mutant. */
export interface Verdict {
  readonly mutant: Mutant
  /** The test or the rule of the world that noticed it; undefined when nothing did. */
  readonly by: string | undefined
  /** How many tests were to run with it. */
  readonly tests: number
  /** Of the processor, without the world. */
  readonly seconds: number
}

/** Milliseconds of processor time for starting a round of tests. */
const patience = 20_000
const jobs = availableParallelism()
/** Seconds of each world. */
const worldLimit = 8
const worlds = ['world', 'durable', 'many'] as const

/** The first alone, then more and more at a time, as most mutants die soon; no file is in one round twice. */
function rounds(judges: readonly Judge[]): Judge[][] {
  const made: Judge[][] = []
  let round: Judge[] = []
  for (const judge of judges) {
    if (
      round.length >= 4 ** made.length ||
      (round.length > 0 && (judge.isAlone || round[0]?.isAlone)) ||
      round.some(({ file }) => file === judge.file)
    ) {
      made.push(round)
      round = []
    }
    round.push(judge)
  }
  return round.length > 0 ? [...made, round] : made
}

const plain = (text: string): string => text.trim().replace(/\s+/g, ' ').slice(0, 200)

/** What a round of tests noticed. */
function noticedIn(
  answer: Awaited<ReturnType<Hand<Task, Answer>['run']>>,
): { file: string; by: string } | undefined {
  if ('broken' in answer)
    return {
      file: '',
      by: answer.broken === 'silent' ? 'time limit' : plain(`crash: ${answer.detail}`),
    }
  for (const { file, tests } of answer.files) {
    const failed = tests.find(({ passed }) => !passed)
    if (failed !== undefined)
      return { file, by: `${file} › ${failed.title}${failed.late ? ' (time limit)' : ''}` }
  }
  const wrong = answer.files.find(({ errors }) => errors.length > 0)
  return (
    wrong && { file: wrong.file, by: plain(`${wrong.file} cannot be loaded: ${wrong.errors[0]}`) }
  )
}

/** What the worlds find with the mutant; undefined when nothing, or when they do not load the source. */
async function askWorlds(
  lab: Lab,
  name: string,
  target: string,
  contents: string,
): Promise<string | undefined> {
  let loaded = false
  const plant: Plugin = {
    name: 'mutant',
    setup: (build) => {
      build.onLoad({ filter: /\.ts$/ }, ({ path: file }) => {
        if (file !== target) return undefined
        loaded = true
        return { contents, loader: 'ts' }
      })
    },
  }
  const file = await lab.bundle('test/world/main.ts', { name, plugins: [plant] })
  try {
    let found: string | undefined
    for (const kind of loaded ? worlds : []) found ??= await play(file, kind)
    return found
  } finally {
    rmSync(file)
  }
}

function play(file: string, kind: WorldTask['kind']): Promise<string | undefined> {
  return new Promise((resolve) => {
    const task: WorldTask = {
      kind,
      part: 0,
      parts: 1,
      first: 1,
      seeds: 1e9,
      every: 1,
      offset: 0,
      hasty: true,
      limit: worldLimit,
    }
    const worker = new Worker(file, { workerData: task, stdout: true, stderr: true })
    const end = (found: string | undefined): void => {
      clearTimeout(timer)
      void worker.terminate()
      resolve(found)
    }
    const timer = setTimeout(() => end('time limit'), worldLimit * 1000 + 300_000)
    worker.on('message', ({ failed, reports: [report] }: Done) => {
      end(
        failed === 0
          ? undefined
          : plain(
              `world: ${report?.rule ?? 'a finding'}: ${report?.detail ?? ''}, seed ${report?.seed ?? ''}`,
            ),
      )
    })
    worker.on('error', (error: Error) => end(plain(`world: error: ${error.message}`)))
    worker.on('exit', (code) => end(`world: ended with ${code}`))
  })
}

/** Judges these in turn within the minutes of the lab, and gives each verdict to `tell`. */
export async function judgeAll(
  lab: Lab,
  sources: Sources,
  mutants: readonly Mutant[],
  tell: (verdict: Verdict) => void,
): Promise<void> {
  const program = await lab.bundle('test/lab/mutants/worker.ts')
  const reach = new Reach(sources)
  const cache = path.join(lab.root, 'node_modules', '.cache', 'mqwire-mutants')
  await reach.measure(
    lab.root,
    cache,
    (marked) => new Hand(program, lab.root, [marked]),
    jobs,
    lab.say,
  )
  /** Test files by how often they noticed a mutant of a source file. */
  const noticed = new Map<string, number>()

  async function judge(hand: Hand<Task, Answer>, job: number, mutant: Mutant): Promise<void> {
    const { file } = mutant
    const text = planted(sources.get(file) ?? '', mutant)
    const judges = reach.judgesOf(mutant, (test) => noticed.get(`${file} ${test}`) ?? 0)
    const tests = judges.reduce((sum, { ids }) => sum + ids.length, 0)
    let by: string | undefined
    let seconds = 0
    for (const round of rounds(judges)) {
      const expected = round.reduce((sum, { milliseconds }) => sum + milliseconds, 0)
      const most = patience + 1000 * round.length + 3 * expected
      const answer = await hand.run({ most, source: { file, text }, files: round })
      seconds += 'broken' in answer ? most / 1000 : answer.seconds
      const found = noticedIn(answer)
      if (found !== undefined)
        noticed.set(`${file} ${found.file}`, (noticed.get(`${file} ${found.file}`) ?? 0) + 1)
      by = found?.by
      if (by !== undefined) break
    }
    by ??= await askWorlds(lab, `mutant-${job}`, path.join(lab.root, file), text)
    tell({ mutant, by, tests, seconds: Math.round(10 * seconds) / 10 })
  }

  const waiting = [...mutants]
  const more = within(lab)
  const work = async (job: number): Promise<void> => {
    const hand = new Hand<Task, Answer>(program, lab.root)
    for (let mutant = waiting.shift(); mutant !== undefined && more(); mutant = waiting.shift())
      await judge(hand, job, mutant)
    await hand.close()
  }
  await Promise.all(Array.from({ length: Math.min(jobs, mutants.length) }, (_, job) => work(job)))
}
