/**
 * The steadiest rows, of two builds in turns: `dist/` beside the commit before. An alarm for what got slower, not a timed test.
 *
 * The benches are those of now for both builds. A row has some pairs of processes, one for each build, which do their rounds in turns on one core. Only
 * processor time counts (and memory, for clients at rest), so that a busy machine raises no alarm. What costs over 10 % more is measured once more, longer,
 * before it counts. Small steps that add up over many commits are found by the targets of `npm run bench`, and by `--against` an older commit.
 *
 *     node bench/alarm.js                   beside the newest commit with another `src`
 *     node bench/alarm.js --against REF     beside this one
 *     node bench/alarm.js --only TEXT       the rows whose name has this in it
 *
 * `npm run lab -- cost` runs it, and builds `dist/` first. Exits with 1 when a row costs more; skipped, with 0, where the clone has no such commit.
 */
import { fileURLToPath } from 'node:url'
import { argumentsOf } from '../examples/arguments.js'
import { benchesOf, commitBefore } from './base.js'
import { runInTurns, runProgram } from './child.js'
import { machine } from './measure.js'
import { startPeer } from './peers/index.js'
import { figure } from './report.js'
import { median, paired } from './statistics.js'

/** A row that costs more than so many times what it did is a finding. */
const atMost = 1.1
const here = fileURLToPath(new URL('.', import.meta.url))

const { against, only, pairs } = argumentsOf({
  usage: 'node bench/alarm.js [options]',
  about:
    'The processor time of the steadiest rows of the benchmark, beside that of an earlier commit. Exits with 1 when one costs over 10 % more.',
  options: {
    against: {
      value: 'REF',
      text: 'the earlier commit (default: the newest with another src)',
    },
    only: { value: 'TEXT', initial: '', text: 'the rows whose name has this in it' },
    pairs: {
      value: 'N',
      number: [1],
      whole: true,
      initial: 5,
      text: 'pairs of processes for each row',
    },
  },
}).values

const codec = (what, name, fixed, candidate = 'mqwire') => ({
  program: 'codec.js',
  settings: { what, name, only: [candidate], processor: true, rounds: 20, fixed },
  costs: ({ times }) => times[candidate],
  unit: 'ns',
})

const alternating = (program, settings, candidate = 'mqwire') => ({
  program,
  settings: { ...settings, only: candidate, rounds: 15, warmUp: 3 },
  costs: (output) =>
    (output.results ?? output)[candidate].map(({ user, system }) => (user + system) * 1000),
  unit: 'ns',
})

const delivery = (mode) => alternating('in-process.js', { mode, count: 60_000 })
const sending = (settings) => alternating('send.js', settings)

const connecting = (costs, unit) => ({
  program: 'idle.js',
  settings: { client: 'mqwire', count: 500, batches: 5, rest: 0 },
  flags: ['--expose-gc'],
  costs,
  unit,
})

const rows = {
  'decode 256 B': codec('decode', 'plain', 100_000, 'TypeScript'),
  'decode 256 B, 5 user properties, lazily': codec('decode', 'properties', 40_000, 'TypeScript'),
  'decode 256 B, WebAssembly': codec('decode', 'plain', 100_000, 'WebAssembly, in place'),
  'decode 256 B, an object for each packet': codec('decode', 'plain', 30_000, 'objects'),
  'encode PUBLISH': codec('encode', 'PUBLISH', 60_000),
  'encode SUBSCRIBE': codec('encode', 'SUBSCRIBE', 15_000),
  'encode CONNECT': codec('encode', 'CONNECT', 20_000),
  'encode AUTH': codec('encode', 'AUTH', 40_000),
  'over memory, for await, owned': delivery('owned'),
  'over memory, for await, borrowed': delivery('borrowed'),
  'over memory, listen, borrowed': delivery('listen'),
  'receive QoS 1, for await, owned': alternating('receive.js', { qos: 1, count: 30_000 }),
  'send QoS 0, flow-controlled': sending({ mode: 'posted', count: 60_000 }),
  'send QoS 0, each awaited': sending({ mode: 'awaited', count: 60_000 }),
  'send QoS 1, 1,000 at a time': sending({ mode: 'window', count: 30_000 }),
  'durable publish, 100 at once': alternating(
    'durable/publish.js',
    { atOnce: 100, count: 2000 },
    'os',
  ),
  'a client connects': connecting(
    ({ batches }) => batches.map((seconds) => (seconds / 100) * 1e6),
    'µs',
  ),
  'an idle client: heap': connecting(({ heap }) => [heap], 'B'),
}

/** What a row costs in each build, and the ratio, over all rounds of all pairs of processes. */
async function measure({ program, settings, flags = [], costs }, { before, port }, wanted) {
  const all = { before: [], now: [] }
  // Compiled and collected by the same thread, so that two processes of one build cost the same.
  const options = { flags: ['--single-threaded', ...flags] }
  for (let pair = 0; pair < wanted; pair++) {
    const folders = pair % 2 === 0 ? [before, here] : [here, before]
    const results = await runInTurns(program, { port, ...settings }, folders, options)
    for (const [index, result] of results.entries())
      all[folders[index] === here ? 'now' : 'before'].push(...costs(result))
  }
  return {
    before: median(all.before),
    now: median(all.now),
    ratio: paired(all.before, all.now),
  }
}

/** One row: prints it, and is true when it costs more. */
async function judge(name, row, context) {
  const tell = (text) => console.log(`${name.padEnd(42)} ${text}`)
  let found
  try {
    found = await measure(row, context, pairs)
    if (!(found.ratio <= atMost)) found = await measure(row, context, 2 * pairs + 1)
  } catch {
    // Throws where it is this build that cannot run it.
    await runProgram(row.program, { port: context.port, ...row.settings }, { flags: row.flags })
    tell('skipped: the earlier build cannot run it')
    return false
  }
  const [was, now] = [found.before, found.now].map((value) => figure(value, row.unit).padStart(9))
  const costsMore = !(found.ratio <= atMost)
  tell(`${was} → ${now} ${found.ratio.toFixed(2).padStart(6)}×${costsMore ? '  costs more' : ''}`)
  return costsMore
}

async function main() {
  const commit = against ?? commitBefore()
  const before = commit && (await benchesOf(commit))
  if (!before) {
    const what = against ?? 'commit with another src'
    return console.log(`skipped: this clone has no ${what} to compare with (git fetch --unshallow)`)
  }
  console.log(`${machine()}, beside ${commit}`)
  const { port, stop } = await startPeer()
  try {
    for (const [name, row] of Object.entries(rows))
      if (name.includes(only) && (await judge(name, row, { before, port }))) process.exitCode = 1
  } finally {
    stop()
  }
}

await main()
