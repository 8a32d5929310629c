/** Clients, brokers and networks in virtual time with every fault, under rules that must hold (`test/world`). */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import path from 'node:path'
import { Worker } from 'node:worker_threads'
import type { Done, Task } from '../world/runner.js'
import { type Lab, type Result, together } from './lab.js'

export const about =
  'random schedules and faults: `world`, `programs` (any call at any time), `durable`, `many`, `enumerate` (every fault at every step), `scanner`; `defects` (clients with a defect, which have to be found); --replay FILE or SEED shows one'
export const minutes = 5

/** Each variant with its share of the time, and what is special about its task. */
const variants = {
  world: { share: 0.25, task: { kind: 'world' } },
  programs: { share: 0.1, task: { kind: 'programs' } },
  durable: { share: 0.2, task: { kind: 'durable' } },
  many: { share: 0.2, task: { kind: 'many' } },
  enumerate: { share: 0.15, task: { kind: 'world', seeds: 0, enumerate: true } },
  scanner: { share: 0.1, task: { kind: 'world', scanner: true } },
} as const
type Variant = keyof typeof variants
const names = Object.keys(variants) as Variant[]

/** Steps between the faults that `enumerate` tries; with `--minutes` of 20 and more, none is left out. */
const stride = 16

/** Runs one worker to its end; gives what it did. */
function work(file: string, task: Task): Promise<Done> {
  return new Promise((resolve, reject) => {
    const worker = new Worker(file, {
      workerData: task,
      execArgv: task.replay === undefined ? [] : ['--enable-source-maps'],
    })
    worker.on('message', resolve).on('error', reject)
    worker.on('exit', (code) => reject(new Error(`a worker ended with ${code} and gave no result`)))
  })
}

async function play(lab: Lab, name: Variant, share: number): Promise<Result> {
  const file = await lab.bundle('test/world/main.ts', { name: `world-${name}` })
  const parts = availableParallelism()
  const every = lab.minutes >= 20 ? 1 : stride
  const whole = {
    seeds: 1e12,
    every,
    offset: lab.seed % every,
    limit: lab.minutes * 60 * share,
    first: lab.seed,
    ...variants[name].task,
  }
  const all = await Promise.all(
    Array.from({ length: parts }, (_, part) => work(file, { ...whole, part, parts })),
  )
  const sum = (key: 'schedules' | 'seeds'): number =>
    all.reduce((total, each) => total + each[key], 0)
  const kinds = new Map(
    all
      .flatMap(({ reports }) => reports)
      .map((report) => [`${report.rule} ${report.detail.replace(/\d+/g, '#')}`, report]),
  )
  const folder = path.join(lab.root, 'node_modules', '.cache', 'mqwire-findings')
  mkdirSync(folder, { recursive: true })
  const findings = [...kinds.values()].map(
    ({ rule, detail, name: scenario, seed, schedule }, index) => {
      const kept = path.join(folder, `${name}-${seed}-${index}.txt`)
      writeFileSync(kept, schedule)
      const what = `${rule}: ${detail} (${scenario === 'random' ? `seed ${seed}` : scenario})\n${schedule}`
      return {
        what,
        command: `npm run lab -- world ${name} --replay ${path.relative(lab.root, kept)}`,
      }
    },
  )
  lab.say(`${name}: ${sum('schedules')} schedules, ${findings.length} findings`)
  return {
    did: `${name} ${name === 'enumerate' ? `${sum('schedules')} schedules` : `${sum('seeds')} seeds`}`,
    findings,
  }
}

async function replay(lab: Lab, name: Variant, given: string): Promise<Result> {
  const file = await lab.bundle('test/world/main.ts')
  const alone = { part: 0, parts: 1, first: 1, seeds: 0, every: 1, offset: 0, limit: 3600 }
  const { trace } = await work(file, {
    ...alone,
    kind: variants[name].task.kind,
    replay: /^\d+$/.test(given) ? given : readFileSync(given, 'utf8'),
  })
  for (const line of trace) lab.say(line)
  const found = trace.filter((line) => line.startsWith('FINDING'))
  return {
    did: 'one schedule',
    findings: found.map((what) => ({
      what,
      command: `npm run lab -- world ${name} --replay ${given}`,
    })),
  }
}

export async function run(lab: Lab): Promise<Result> {
  if (lab.words.includes('defects'))
    return (await import('../support/checkers.js')).tryDefects(lab, 'world', [
      'world',
      'programs',
      'durable',
      'many',
    ])
  const chosen = lab.words.length === 0 ? names : names.filter((name) => lab.words.includes(name))
  if (lab.replay !== undefined) return replay(lab, chosen[0] ?? 'world', lab.replay)
  const unknown = lab.words.filter((word) => !names.includes(word as Variant))
  if (unknown.length > 0)
    throw new Error(
      `there is no ${unknown.join(', ')} in the world; there are: ${names.join(', ')}`,
    )
  const shares = chosen.reduce((total, name) => total + variants[name].share, 0)
  const results: Result[] = []
  for (const name of chosen) results.push(await play(lab, name, variants[name].share / shares))
  return together(...results)
}
