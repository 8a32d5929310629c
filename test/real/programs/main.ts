/**
 * `npm run lab -- brokers programs`: ordinary programs, broker by broker.
 *
 * A word names a broker or a transport, or is part of the name of a program; `all` takes every broker, transport and window, and writes the matrix: an
 * hour of work. `all` with names of brokers keeps what those show in `node_modules/.cache`; `write` makes the table of what was kept.
 */
import { appendFileSync, existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs'
import path from 'node:path'
import type { Result as Came, Lab } from '../../lab/lab.js'
import type { TransportName } from '../brokers.js'
import { commonSites, type SiteName, site, siteNames } from '../sites.js'
import { verdictOf } from './expectations.js'
import { lineOf } from './figures.js'
import { programs } from './programs.js'
import { type Cell, type Result, Runner } from './run.js'

const windows: readonly (number | undefined)[] = [undefined, 1, 3, 10, 65_535]
const transportNames: readonly TransportName[] = ['TCP', 'WebSocket']

function cells(words: readonly string[]): Cell[] {
  const all = words.includes('all')
  const known: readonly string[] = ['all', ...siteNames, ...transportNames]
  const parts = words.filter((word) => !known.includes(word))
  const among = <T extends string>(names: readonly T[], otherwise: readonly T[]): readonly T[] => {
    const named = names.filter((name) => words.includes(name))
    return named.length > 0 ? named : all ? names : otherwise
  }
  const chosen = programs.filter(
    ({ name }) => parts.length === 0 || parts.some((part) => name.includes(part)),
  )
  const found: Cell[] = []
  for (const broker of among(siteNames, commonSites))
    for (const program of chosen)
      for (const transport of among(transportNames, ['TCP']))
        for (const window of all ? windows : [undefined]) {
          if (transport !== 'TCP' && program.bare === true) continue
          const cell = { program, broker, transport }
          if (window === undefined) found.push(cell)
          // A window makes its difference over TCP as over WebSocket, and where a program receives.
          else if (program.windowed === true && transport === 'TCP') found.push({ ...cell, window })
        }
  return found
}

/** Where the results of a broker are kept, one on a line. */
function keptFile(broker: SiteName): string {
  const folder = path.resolve('node_modules/.cache/mqwire/programs')
  mkdirSync(folder, { recursive: true })
  return path.join(folder, `${broker}.jsonl`)
}

/** Writes the table of the results that were kept, as they are judged now. */
async function write(): Promise<Came> {
  const { writePrograms } = await import('../matrix.js')
  const results = siteNames
    .map(keptFile)
    .filter(existsSync)
    .flatMap((file) => readFileSync(file, 'utf8').trim().split('\n'))
    .map((line): Result => JSON.parse(line))
  writePrograms(results, await Promise.all(siteNames.map(site)))
  return { did: `a table of ${results.length} runs`, findings: [] }
}

/** Runs the cells that the words ask for; without words those of the brokers that are quick to be had, as long as there is time. */
export async function ordinary(lab: Lab, words: readonly string[]): Promise<Came> {
  if (words.length === 1 && words[0] === 'write') return write()
  const wanted = cells(words)
  const known: readonly string[] = ['all', ...siteNames]
  const whole = words.includes('all') && words.every((word) => known.includes(word))
  const sites = await Promise.all([...new Set(wanted.map(({ broker }) => broker))].map(site))
  const skipped = sites.flatMap((each) =>
    'missing' in each ? `${each.name}: ${each.missing}` : [],
  )
  const runner = await Runner.start(sites)
  const results: Result[] = []
  if (whole) for (const { name } of sites) rmSync(keptFile(name), { force: true })
  const end = words.length > 0 ? Number.POSITIVE_INFINITY : performance.now() + lab.minutes * 60_000
  try {
    for (const cell of wanted) {
      if (performance.now() > end) break
      const result = await runner.run(cell)
      if (result === undefined) continue
      results.push(result)
      if (whole) appendFileSync(keptFile(result.broker), `${JSON.stringify(result)}\n`)
      lab.say(lineOf(result))
    }
  } finally {
    await runner.stop()
  }
  if (whole && words.length === 1) await write()
  if (performance.now() > end) skipped.push('the time was over before all were run')
  const failed = results.filter((result) => verdictOf(result).word === 'fails')
  return {
    did: `${results.length} runs of programs`,
    findings: failed.map((result) => ({
      what: lineOf(result),
      command: `npm run lab -- brokers programs "${result.broker}" ${result.transport} "${result.program}"`,
    })),
    ...(skipped.length > 0 && { skipped: skipped.join('; ') }),
  }
}
