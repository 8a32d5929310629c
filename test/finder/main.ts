/**
 * The command line of the finder: random programs over the public API, each judged against what the documentation promises.
 *
 * `.ci/programs.mjs` runs it in the checkout. Exits with 1 when something was found, or when a planted defect was not.
 */
import { readFileSync, rmSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { parseArgs } from 'node:util'
import { bundle, bundles } from './bundle.js'
import { type PlantedDefect, plantedDefects } from './defects.js'
import { workAll } from './run.js'
import type { Done, Task, Told } from './worker.js'
import type { WorldName } from './worlds.js'

const { values } = parseArgs({
  options: {
    seeds: { type: 'string', default: '1000' },
    seed: { type: 'string', default: '1' },
    worlds: { type: 'string', default: 'virtual' },
    limit: { type: 'string', default: '3600' },
    jobs: { type: 'string', default: String(availableParallelism()) },
    defect: { type: 'string' },
    defects: { type: 'boolean', default: false },
    replay: { type: 'string' },
  },
})
/** Seconds in which a planted defect has to be found. */
const patience = 60

function taskOf(more: Partial<Task>): Task {
  const worlds = values.worlds.split(',') as WorldName[]
  const numbers = { first: Number(values.seed), seeds: Number(values.seeds), limit: Number(values.limit) }
  return { worlds, ...numbers, part: 0, parts: 1, hasty: false, ...more }
}

function run(file: string, more: Partial<Task>): Promise<Done> {
  return workAll(file, taskOf(more), more.replay === undefined ? Math.max(1, Number(values.jobs)) : 1)
}

function print({ rule, detail, world, seed, program }: Told): void {
  console.log(
    `${rule}: ${detail}\n  in the world ${world}, seed ${seed}${program === '' ? '' : `, made smaller:\n${program.replaceAll(/^/gm, '    ')}`}\n`,
  )
}

async function explore(): Promise<boolean> {
  const started = performance.now()
  const { programs, failed, told } = await run(await bundle(), {})
  for (const each of told) print(each)
  const seconds = ((performance.now() - started) / 1000).toFixed(1)
  console.log(`programs: ${programs} programs, ${taskOf({}).worlds.length} worlds, ${failed} findings, ${seconds} s`)
  return failed === 0 && programs > 0
}

async function replay(name: string): Promise<boolean> {
  const { trace } = await run(await bundle(), { replay: /^\d+$/.test(name) ? name : readFileSync(name, 'utf8') })
  for (const line of trace) console.log(line)
  return !trace.some((line) => line.startsWith('FINDING'))
}

async function tryDefect(defect: PlantedDefect): Promise<boolean> {
  const file = await bundle(defect)
  const started = performance.now()
  const { programs, told } = await run(file, { hasty: true, limit: patience, first: 1, seeds: 1_000_000 })
  const [first] = told
  const seconds = ((performance.now() - started) / 1000).toFixed(1)
  const found = first === undefined ? 'NOT FOUND' : `${first.rule}: ${first.detail.replaceAll(/\s+/g, ' ').slice(0, 100)}`
  console.log(`${defect.name} | ${found} | ${first === undefined ? '' : `seed ${first.seed}`} | ${programs} | ${seconds}`)
  if (values.defect !== undefined && first !== undefined) print(first)
  return first !== undefined
}

async function tryDefects(): Promise<boolean> {
  const chosen = plantedDefects.filter(({ name }) => values.defect === undefined || values.defect === name)
  if (chosen.length === 0) throw new Error(`there is no such defect; there are: ${plantedDefects.map(({ name }) => name).join(', ')}`)
  console.log('defect | found by | where | programs | seconds')
  let missed = 0
  for (const defect of chosen) if (!(await tryDefect(defect))) missed += 1
  console.log(`programs: ${chosen.length} defects, ${missed} not found`)
  return missed === 0
}

try {
  const defects = values.defects || values.defect !== undefined
  const good = values.replay !== undefined ? await replay(values.replay) : defects ? await tryDefects() : await explore()
  process.exitCode = good ? 0 : 1
} finally {
  rmSync(bundles, { recursive: true, force: true })
}
