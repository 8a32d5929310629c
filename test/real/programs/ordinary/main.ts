/**
 * The ordinary programs, broker by broker: which cells are run, and the lines and tables that come of them.
 *
 * `npm run lab -- brokers programs` runs it. A word names a broker, a transport or a party, or is part of the name of a program; `all` takes every broker,
 * transport and window, and MQTT.js beside, and writes test/real/programs/MATRIX.md: an hour and a half of work. `all` with names of brokers keeps what those
 * show in `node_modules/.cache`; `write` makes the table of what was kept.
 */
import { appendFileSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import type { Result as Came, Lab } from '../../../lab/lab.js'
import type { TransportName } from '../../brokers.js'
import { bundleCell } from './bundle.js'
import { verdictOf } from './expectations.js'
import { programs } from './programs.js'
import { type Cell, type Result, Runner } from './run.js'
import { commonSites, type SiteName, site, siteNames } from './sites.js'
import { lineOf, table } from './table.js'
import type { Party } from './world.js'

const windows: readonly (number | undefined)[] = [undefined, 1, 3, 10, 65_535]
const transportNames: readonly TransportName[] = ['TCP', 'WebSocket']
const partyNames: readonly Party[] = ['mqwire', 'MQTT.js']

/** The cells that the words ask for. */
function cells(words: readonly string[], seed: number): Cell[] {
  const all = words.includes('all')
  const left = words.filter(
    (word) =>
      word !== 'all' &&
      ![...siteNames, ...transportNames, ...partyNames].some((name) => name === word),
  )
  const among = <T extends string>(names: readonly T[], otherwise: readonly T[]): readonly T[] => {
    const named = names.filter((name) => words.includes(name))
    return named.length > 0 ? named : all ? names : otherwise
  }
  const brokers = among(siteNames, commonSites)
  const transports = among(transportNames, ['TCP'])
  const parties = among(partyNames, ['mqwire'])
  const chosen = programs.filter(
    ({ name }) => left.length === 0 || left.some((part) => name.includes(part)),
  )
  const every = brokers.flatMap((broker) =>
    chosen.flatMap((program) =>
      transports.flatMap((transport) =>
        parties.flatMap((party) =>
          (all ? windows : [undefined]).map((window) => ({
            program,
            party,
            broker,
            transport,
            window,
            scale: 1,
            seconds: 20,
            seed,
          })),
        ),
      ),
    ),
  )
  return every
    .filter(({ program, party, transport, window }) => {
      if (transport !== 'TCP' && program.bare === true) return false
      if (party !== 'mqwire' && program.ours !== undefined) return false
      // A window makes its difference over TCP as over WebSocket, and where a program receives.
      return (
        window === undefined ||
        (program.windowed === true && transport === 'TCP' && party === 'mqwire')
      )
    })
    .map(({ window, ...cell }) => (window === undefined ? cell : { ...cell, window }))
}

/** Where the results of a broker are kept, one on a line. */
function keptFile(broker: SiteName): string {
  const folder = path.resolve('node_modules/.cache/mqwire/programs')
  mkdirSync(folder, { recursive: true })
  return path.join(folder, `${broker}.jsonl`)
}

/** Writes the table of the results that earlier runs kept, and judges them as they are judged now. */
async function write(): Promise<Came> {
  const sites = await Promise.all(siteNames.map((name) => site(name)))
  const files = siteNames.map(keptFile).filter(existsSync)
  const results = files
    .flatMap((file) => readFileSync(file, 'utf8').trim().split('\n'))
    .map((line): Result => JSON.parse(line))
  writeFileSync('test/real/programs/MATRIX.md', table(programs, results, sites))
  return { did: `a table of ${results.length} runs`, findings: [] }
}

/** Runs the cells that the words ask for; without words those of the brokers that are quick to be had, as long as there is time. */
export async function ordinary(lab: Lab, words: readonly string[]): Promise<Came> {
  if (words.length === 1 && words[0] === 'write') return write()
  const wanted = cells(words, lab.seed)
  const whole =
    words.includes('all') &&
    words.every((word) => word === 'all' || siteNames.some((name) => name === word))
  const sites = await Promise.all(
    [...new Set(wanted.map(({ broker }) => broker))].map((name) => site(name)),
  )
  const missing = sites.flatMap((each) =>
    'missing' in each ? [`${each.name}: ${each.missing}`] : [],
  )
  const file = await bundleCell()
  const runner = new Runner(file, sites)
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
    rmSync(file, { force: true })
  }
  if (words.length === 1 && words[0] === 'all')
    writeFileSync('test/real/programs/MATRIX.md', table(programs, results, sites))
  const failed = results.filter(
    (result) => result.party === 'mqwire' && verdictOf(result).word === 'fails',
  )
  const left = performance.now() > end ? ['the time was over before all were run'] : []
  const skipped = [...missing, ...left].join('; ')
  return {
    did: `${results.length} runs of programs`,
    findings: failed.map((result) => ({
      what: lineOf(result),
      command: `npm run lab -- brokers programs "${result.broker}" ${result.transport} "${result.program}" --seed ${lab.seed}`,
    })),
    ...(skipped !== '' && { skipped }),
  }
}
