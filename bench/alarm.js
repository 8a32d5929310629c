/**
 * A short run of the steadiest rows, against the committed ratios of `baseline.json`: an alarm for regressions, not a timed test.
 *
 * Fails when a ratio to the peer, both measured here and now in turns, falls under 60 % of its committed value. What falls is measured once more,
 * longer, before it counts. All by processor time, so that a busy machine raises no alarm. `npm run lab -- cost` runs it, and builds `dist/` first.
 *
 *     node bench/alarm.js            compares
 *     node bench/alarm.js --write    commits what is measured now as the new ratios
 *     node bench/alarm.js --baseline FILE   compares the rows of another file, and no others
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { argumentsOf } from '../examples/arguments.js'
import { leastShare, regressions } from './baseline.js'
import { runProgram } from './child.js'
import { machine } from './measure.js'
import { median } from './statistics.js'

const { baseline, write } = argumentsOf({
  usage: 'node bench/alarm.js [options]',
  about:
    'A short run of the steadiest rows of the benchmark. Exits with 1 when a ratio falls under 60 % of its committed value.',
  options: {
    write: { text: 'commits what is measured now as the new ratios' },
    baseline: {
      value: 'FILE',
      text: 'the rows of another file, and no others (default: all rows, with bench/baseline.json)',
    },
  },
}).values
const file = baseline ?? new URL('./baseline.json', import.meta.url)

async function codec(settings, candidate, longer) {
  const { nanoseconds } = await runProgram('codec.js', {
    processor: true,
    rounds: longer ? 15 : 9,
    roundTime: longer ? 40 : 20,
    ...settings,
  })
  return nanoseconds['mqtt-packet'] / nanoseconds[candidate]
}

async function delivery(mode, longer) {
  const { results } = await runProgram('in-process.js', {
    mode,
    rounds: longer ? 9 : 5,
    seconds: longer ? 0.4 : 0.2,
  })
  const processor = (name) => median(results[name].map(({ user, system }) => user + system))
  return processor('MQTT.js') / processor('mqwire')
}

/** Kept in LevelDB until it is acknowledged: MQTT.js with mqtt-level-store beside mqwire. */
async function durable(longer) {
  const results = await runProgram('durable/publish.js', {
    atOnce: 100,
    rounds: longer ? 9 : 5,
    seconds: longer ? 0.4 : 0.2,
  })
  const processor = (name) => median(results[name].map(({ user, system }) => user + system))
  return processor('MQTT.js') / processor('os')
}

const decoding = (name, candidate) => (longer) =>
  codec({ what: 'decode', name, only: [candidate, 'mqtt-packet'] }, candidate, longer)

const rows = {
  'decode 256 B': decoding('plain', 'TypeScript'),
  'decode 256 B, 5 user properties, lazily': decoding('properties', 'TypeScript'),
  'decode 256 B, WebAssembly': decoding('plain', 'WebAssembly, in place'),
  'decode 256 B, an object for each packet': decoding('plain', 'objects'),
  'encode PUBLISH': (longer) => codec({ what: 'encode', name: 'PUBLISH' }, 'mqwire', longer),
  'encode SUBSCRIBE': (longer) => codec({ what: 'encode', name: 'SUBSCRIBE' }, 'mqwire', longer),
  'encode CONNECT': (longer) => codec({ what: 'encode', name: 'CONNECT' }, 'mqwire', longer),
  'encode AUTH': (longer) => codec({ what: 'encode', name: 'AUTH' }, 'mqwire', longer),
  'over memory, for await, owned': (longer) => delivery('owned', longer),
  'over memory, for await, borrowed': (longer) => delivery('borrowed', longer),
  'over memory, listen, borrowed': (longer) => delivery('listen', longer),
  'durable publish, 100 at once': durable,
}

const tell = (name, ratio, committed) =>
  console.log(
    `${name.padEnd(42)} ${ratio.toFixed(1).padStart(7)}×  committed ${committed === undefined ? '–' : `${committed}×`}`,
  )

async function main() {
  const committed = write ? {} : JSON.parse(readFileSync(file, 'utf8')).ratios
  const measured = {}
  console.log(machine())
  const lacking = Object.keys(rows).find(
    (name) => !write && baseline === undefined && committed[name] === undefined,
  )
  if (lacking !== undefined)
    throw new Error(`bench/baseline.json lacks ${lacking}: node bench/alarm.js --write`)
  for (const [name, run] of Object.entries(rows)) {
    if (baseline !== undefined && committed[name] === undefined) continue
    measured[name] = await run(write)
    const [again] = regressions(
      committed[name] === undefined ? {} : { [name]: committed[name] },
      measured,
    )
    if (again !== undefined) measured[name] = Math.max(measured[name], await run(true))
    tell(name, measured[name], committed[name])
  }
  if (write) {
    const ratios = Object.fromEntries(
      Object.entries(measured).map(([name, ratio]) => [name, Number(ratio.toFixed(1))]),
    )
    writeFileSync(file, `${JSON.stringify({ machine: machine(), ratios }, undefined, 2)}\n`)
    return
  }
  const fallen = regressions(committed, measured)
  for (const { name, committed: was } of fallen)
    console.error(`${name}: under ${leastShare * 100} % of the committed ${was}×`)
  if (fallen.length > 0) process.exitCode = 1
}

main().catch((error) => {
  console.error(error.message)
  process.exitCode = 1
})
