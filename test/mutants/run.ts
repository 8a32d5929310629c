/**
 * Runs mutants: hands them to workers, first their test files without any mutant, and says of each who caught it.
 *
 * A mutant is caught only by a test that passes without it and had it loaded when it failed. It may assume that the workers keep mutants apart; one that
 * gives no answer is killed and started anew, and its mutant counts as broken, not as caught.
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import { Hand } from './hand.js'
import { type Mutant, objections, readMutants, readStatements } from './list.js'
import { caughtBy, markdown, readCaught, staleCaught, writeCaught } from './table.js'
import type { Outcome, Task } from './worker.js'

/** What to run. */
export interface Options {
  readonly root: string
  /** The worker program. */
  readonly worker: string
  /** A list file or a folder of them. */
  readonly list: string
  /** These alone; empty for all. */
  readonly only: readonly string[]
  readonly area: string | undefined
  readonly jobs: number
  /** Only looks at the list. */
  readonly check: boolean
  /** Keeps what was caught; all mutants have to run then. */
  readonly write: boolean
  /** Runs nothing, and writes the table to this file. */
  readonly table: string | undefined
  /** Hears how many of all runs are done. */
  readonly tell?: (done: number, total: number) => void
}

/** Milliseconds for one task: a mutant that loops without a pause never answers. */
const patience = 120_000

function chosen(mutants: readonly Mutant[], { only, area }: Options): Mutant[] {
  const ids = new Set(mutants.map(({ id }) => id))
  const missing = only.filter((id) => !ids.has(id))
  if (missing.length > 0) throw new Error(`there is no mutant ${missing.join(', ')}`)
  return mutants.filter((mutant) => (only.length === 0 || only.includes(mutant.id)) && (area === undefined || mutant.area === area))
}

/** Runs tasks on so many workers; `tell` hears of each as it ends. */
async function runAll<T extends Task>(options: Options, tasks: readonly T[], tell: (task: T, outcome: Outcome) => void): Promise<Map<T, Outcome>> {
  const outcomes = new Map<T, Outcome>()
  const waiting = [...tasks]
  const hands = Array.from({ length: Math.min(options.jobs, tasks.length) }, () => new Hand<Task, Outcome>(options.worker, options.root))
  await Promise.all(
    hands.map(async (hand) => {
      for (let task = waiting.shift(); task !== undefined; task = waiting.shift()) {
        const answer = await hand.run(task, patience)
        const outcome: Outcome = 'broken' in answer ? { verdict: 'broken', detail: answer.detail, milliseconds: patience } : answer
        outcomes.set(task, outcome)
        options.tell?.(outcomes.size, tasks.length)
        tell(task, outcome)
      }
      await hand.close()
    }),
  )
  return outcomes
}

/** One line without colours. */
function plain(detail = ''): string {
  return stripVTControlCharacters(detail).replace(/\s+/g, ' ').slice(0, 400)
}

function line(id: string, { verdict, by, detail }: Outcome): string {
  if (by !== undefined) return `${id} | caught by ${caughtBy(by)}`
  return verdict === 'survived' ? `${id} | SURVIVED` : `${id} | BROKEN: ${plain(detail)}`
}

/** What caught each, without what was caught by a test that fails on its own as well. */
function caughtIn(outcomes: ReadonlyMap<Task, Outcome>): Map<string, string> {
  const caught = new Map<string, string>()
  for (const [{ mutant }, { by }] of outcomes) if (mutant !== undefined && by !== undefined) caught.set(mutant.id, caughtBy(by))
  return caught
}

async function runMutants(options: Options, mutants: readonly Mutant[]): Promise<boolean> {
  const started = performance.now()
  // A test that fails anyway catches nothing: the files run without a mutant too.
  const controls: Task[] = [...new Set(mutants.flatMap(({ tests }) => tests))].map((name) => ({ mutant: undefined, tests: [name] }))
  const tasks: Task[] = [...controls, ...mutants.map((mutant) => ({ mutant, tests: mutant.tests }))]
  const outcomes = await runAll(options, tasks, ({ mutant, tests }, outcome) => {
    if (mutant !== undefined) console.log(line(mutant.id, outcome))
    else if (outcome.verdict !== 'passed') console.log(`control | ${tests.join(', ')} | BROKEN: ${plain(outcome.detail)}`)
  })
  const count = (verdict: Outcome['verdict']): number => [...outcomes.values()].filter((outcome) => outcome.verdict === verdict).length
  const seconds = Math.round((performance.now() - started) / 1000)
  console.log(
    `mutants: ${mutants.length} run, ${count('caught')} caught, ${count('survived')} survived, ${count('broken')} broken; ` +
      `control: ${count('passed')} of ${controls.length} test files pass; ${seconds} s`,
  )
  const good = count('caught') === mutants.length && count('passed') === controls.length
  if (options.write && good) writeFileSync(resultsOf(options.list), writeCaught(caughtIn(outcomes)))
  return good && mutants.length > 0
}

const resultsOf = (list: string): string => path.join(list, 'results', 'caught.json')
const caughtOf = (list: string): Map<string, string> => readCaught(existsSync(resultsOf(list)) ? readFileSync(resultsOf(list), 'utf8') : '{}')

function writeTable({ root, list }: Options, mutants: readonly Mutant[], table: string): void {
  mkdirSync(path.dirname(table), { recursive: true })
  writeFileSync(table, markdown(mutants, readStatements(root), caughtOf(list)))
}

/** What is wrong with the list and with what is kept of its last run. */
function inspect({ root, list }: Options, mutants: readonly Mutant[]): string[] {
  const statements = readStatements(root)
  const found = objections(root, mutants, statements)
  if (list.endsWith('.json')) return found
  const stale = staleCaught(mutants, caughtOf(list))
  return stale.length === 0 ? found : [...found, `results/caught.json is stale (${stale.join(', ')}): npm run mutants -- --write`]
}

/** True when all is well: every mutant that was to run was caught. */
export async function main(options: Options): Promise<boolean> {
  const mutants = readMutants(options.list)
  const { only, area, write, check, table } = options
  if (write && (only.length > 0 || area !== undefined || options.list.endsWith('.json'))) throw new Error('--write takes all mutants')
  const found = inspect(options, mutants)
  for (const objection of found) console.error(objection)
  if (check) console.log(`mutants: ${mutants.length} listed, ${found.length} objections`)
  if (table !== undefined) writeTable(options, mutants, table)
  if (check || table !== undefined) return found.length === 0
  return runMutants(options, chosen(mutants, options))
}
