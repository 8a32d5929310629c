/**
 * The command line of the ordinary programs: which cells are run, and the lines and tables that come of them.
 *
 * `.ci/programs.mjs` makes one file of it and runs that in the checkout.
 */
import { appendFileSync, existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import type { TransportName } from '../../interop/brokers.js'
import { bundleCell } from './bundle.js'
import { verdictOf } from './expectations.js'
import { programs } from './programs.js'
import { type Cell, type Result, Runner } from './run.js'
import { commonSites, type SiteName, site, siteNames } from './sites.js'
import { lineOf, table } from './table.js'
import type { Party } from './world.js'

const help = `node .ci/programs.mjs [options]
  --all                 every broker, window and transport, MQTT.js with its own defaults; writes test/programs/MATRIX.md
  --program=TEXT        programs whose name has this in it (may be repeated)
  --broker=NAME         mosquitto, mochi, aedes, MemoryBroker, HiveMQ CE, Artemis (may be repeated)
  --transport=NAME      TCP, WebSocket (may be repeated)
  --window=N            Receive Maximum that receivers announce; 0 is the default (may be repeated)
  --party=NAME          mqwire, MQTT.js (may be repeated)
  --scale=N             so much of the work (default 1)
  --seconds=N           how long random uploads go on (default 20)
  --seed=N              what they are (default: by the clock, and printed)
  --lines=FILE          appends a line of JSON for each cell; one that has its line there already is not run again`

const { values } = parseArgs({
  options: {
    all: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
    program: { type: 'string', multiple: true },
    broker: { type: 'string', multiple: true },
    transport: { type: 'string', multiple: true },
    window: { type: 'string', multiple: true },
    party: { type: 'string', multiple: true },
    scale: { type: 'string', default: '1' },
    seconds: { type: 'string', default: '20' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    lines: { type: 'string' },
  },
})

const windows: readonly (number | undefined)[] = [undefined, 1, 3, 10, 65_535]

/** The cells that the options ask for. */
function cells(): Cell[] {
  const brokers = (values.broker ?? (values.all ? siteNames : commonSites)) as SiteName[]
  const transports = (values.transport ?? (values.all ? ['TCP', 'WebSocket'] : ['TCP'])) as TransportName[]
  const parties = (values.party ?? (values.all ? ['mqwire', 'MQTT.js'] : ['mqwire'])) as Party[]
  const asked = values.window?.map(Number).map((each) => (each === 0 ? undefined : each)) ?? (values.all ? windows : [undefined])
  const chosen = programs.filter(({ name }) => values.program?.some((part) => name.includes(part)) ?? true)
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
                  scale: Number(values.scale),
                  seconds: Number(values.seconds),
                  seed: Number(values.seed),
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
  if (values.help) {
    console.log(help)
    return 0
  }
  const wanted = cells()
  console.log(`seed ${values.seed}`)
  const names = [...new Set(wanted.map(({ broker }) => broker))]
  const sites = await Promise.all(names.map((name) => site(name)))
  for (const each of sites) if ('missing' in each) console.log(`${each.name} is not run: ${each.missing}`)
  const file = await bundleCell()
  const runner = new Runner(file, sites)
  const results: Result[] = []
  const known = earlier()
  try {
    for (const cell of wanted) {
      const before = known.get(keyOf(cell.program.name, cell))
      const result = before ?? (await runner.run(cell))
      if (result === undefined) continue
      results.push(result)
      console.log(lineOf(result))
      if (before === undefined && values.lines !== undefined) appendFileSync(values.lines, `${JSON.stringify(result)}\n`)
    }
  } finally {
    await runner.stop()
    rmSync(file, { force: true })
  }
  if (values.all) writeFileSync('test/programs/MATRIX.md', table(programs, results, sites))
  const failed = results.filter((result) => result.party === 'mqwire' && verdictOf(result).word === 'fails').length
  console.log(`${results.length - failed} passed, ${failed} failed`)
  return failed === 0 ? 0 : 1
}

process.exitCode = await main()
