/**
 * The command line of the ordinary programs: which cells are run, and the lines and tables that come of them.
 *
 * `.ci/programs.mjs` makes one file of it and runs that in the checkout.
 */
import { appendFileSync, existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import type { TransportName } from '../../interop/brokers.js'
import { bundleCell } from './bundle.js'
import { verdictOf } from './expectations.js'
import { programs } from './programs.js'
import { type Cell, type Result, Runner } from './run.js'
import { commonSites, type SiteName, site, siteNames } from './sites.js'
import { lineOf, table } from './table.js'
import type { Party } from './world.js'

/** What `values` holds. */
interface Values {
  readonly all: boolean
  readonly program: readonly string[]
  readonly broker: readonly string[]
  readonly transport: readonly string[]
  readonly window: readonly number[]
  readonly party: readonly string[]
  readonly scale: number
  readonly seconds: number
  readonly seed: number
  readonly lines: string | undefined
}

interface Arguments {
  argumentsOf(list: object): { readonly values: Values }
}

interface Telling {
  readonly Progress: new (name: string, unit: string) => { at(done: number, total: number): void; end(): void }
}

const load = async <T>(name: string): Promise<T> => (await import(new URL(`../../../${name}`, import.meta.url).href)) as T
const { argumentsOf } = await load<Arguments>('examples/arguments.js')
const { Progress } = await load<Telling>('.ci/progress.mjs')

const { values } = argumentsOf({
  usage: 'npm run programs -- [options]',
  about: 'Runs ordinary programs on real brokers, and says of each what was lost, what came twice and who ended connections.',
  options: {
    all: { text: 'every broker, window and transport, MQTT.js with its own defaults; writes test/programs/MATRIX.md' },
    program: { value: 'TEXT', many: true, text: 'programs whose name has this in it' },
    broker: { value: 'NAME', many: true, text: 'mosquitto, mochi, aedes, MemoryBroker, HiveMQ CE, Artemis' },
    transport: { value: 'NAME', many: true, text: 'TCP, WebSocket' },
    window: {
      value: 'N',
      many: true,
      number: [0, 65_535],
      whole: true,
      text: 'Receive Maximum that receivers announce; 0 is the default of the program',
    },
    party: { value: 'NAME', many: true, text: 'mqwire, MQTT.js' },
    scale: { value: 'N', number: [0], initial: 1, text: 'so much of the work' },
    seconds: { value: 'N', number: [0], initial: 20, text: 'how long random uploads go on' },
    seed: { value: 'N', number: [0], whole: true, initial: Date.now() % 1_000_000, text: 'what they are; by the clock, and printed' },
    lines: { value: 'FILE', text: 'appends a line of JSON for each cell; one that has its line there already is not run again' },
  },
})

const given = <T>(list: readonly T[]): readonly T[] | undefined => (list.length === 0 ? undefined : list)

const windows: readonly (number | undefined)[] = [undefined, 1, 3, 10, 65_535]

/** The cells that the options ask for. */
function cells(): Cell[] {
  const brokers = (given(values.broker) ?? (values.all ? siteNames : commonSites)) as SiteName[]
  const transports = (given(values.transport) ?? (values.all ? ['TCP', 'WebSocket'] : ['TCP'])) as TransportName[]
  const parties = (given(values.party) ?? (values.all ? ['mqwire', 'MQTT.js'] : ['mqwire'])) as Party[]
  const asked = given(values.window)?.map((each) => (each === 0 ? undefined : each)) ?? (values.all ? windows : [undefined])
  const chosen = programs.filter(({ name }) => given(values.program)?.some((part) => name.includes(part)) ?? true)
  return brokers.flatMap((broker) =>
    chosen.flatMap((program) =>
      transports
        .filter((transport) => transport === 'TCP' || program.bare !== true)
        .flatMap((transport) =>
          parties
            .filter((party) => party === 'mqwire' || program.ours === undefined)
            .flatMap((party) =>
              asked
                // A window makes its difference over TCP as over WebSocket, and where a program receives.
                .filter((window) => window === undefined || (program.windowed === true && transport === 'TCP' && (party === 'mqwire' || !values.all)))
                .map((window) => ({
                  program,
                  party,
                  broker,
                  transport,
                  scale: values.scale,
                  seconds: values.seconds,
                  seed: values.seed,
                  ...(window !== undefined && { window }),
                })),
            ),
        ),
    ),
  )
}

/** The results of an earlier run, and of each cell the name that it has in both. */
function earlier(): Map<string, Result> {
  const { lines } = values
  const texts = lines === undefined || !existsSync(lines) ? [] : readFileSync(lines, 'utf8').split('\n')
  const results = texts.filter((text) => text !== '').map((text) => JSON.parse(text) as Result)
  return new Map(results.map((result) => [keyOf(result.program, result), result]))
}

function keyOf(program: string, { party, broker, transport, window }: Cell | Result): string {
  return [program, party, broker, transport, window ?? 'default'].join(' · ')
}

async function main(): Promise<number> {
  const wanted = cells()
  console.log(`seed ${values.seed}`)
  const names = [...new Set(wanted.map(({ broker }) => broker))]
  const sites = await Promise.all(names.map((name) => site(name)))
  for (const each of sites) if ('missing' in each) console.log(`${each.name} is not run: ${each.missing}`)
  const file = await bundleCell()
  const runner = new Runner(file, sites)
  const results: Result[] = []
  const known = earlier()
  const progress = new Progress('programs', 'cells')
  try {
    for (const [done, cell] of wanted.entries()) {
      progress.at(done, wanted.length)
      const before = known.get(keyOf(cell.program.name, cell))
      const result = before ?? (await runner.run(cell))
      if (result === undefined) continue
      results.push(result)
      console.log(lineOf(result))
      if (before === undefined && values.lines !== undefined) appendFileSync(values.lines, `${JSON.stringify(result)}\n`)
    }
  } finally {
    progress.end()
    await runner.stop()
    rmSync(file, { force: true })
  }
  if (values.all) writeFileSync('test/programs/MATRIX.md', table(programs, results, sites))
  const failed = results.filter((result) => result.party === 'mqwire' && verdictOf(result).word === 'fails').length
  console.log(`${results.length - failed} passed, ${failed} failed`)
  return failed === 0 ? 0 : 1
}

process.exitCode = await main()
