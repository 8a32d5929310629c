/**
 * `npm run bench`: every row of the target table, measured against its peer in the same run.
 *
 *     npm run bench                     all rows, as a table with verdicts
 *     npm run bench -- --only receive   one part, or rows whose name contains it; may be given several times
 *     npm run bench -- --quick          the rows that say most, in about a minute
 *     npm run -s bench -- --json        one object on standard output, for machines, and nothing else there
 *     npm run bench -- --write          writes bench/RESULTS.md as well, with profiles of the rows that are missed, and docs/growth.svg
 *     npm run bench -- --list           the parts and their rows
 *
 * Run it on a quiet machine. What a row needs and the machine lacks (mosquitto, Go, Rust, libmosquitto, Maven, Chromium) makes it skipped, with the reason; without a C
 * compiler the peer is written in Node. `BENCH_WITHOUT=mosquitto,go,cargo,cc,mvn,chromium` takes them for missing.
 */
import { writeFileSync } from 'node:fs'
import { argumentsOf } from '../examples/arguments.js'
import { drawing } from './drawing.js'
import { machine } from './measure.js'
import { find, mosquittoVersion, startMosquitto, startPeer, startTlsPeer } from './peers/index.js'
import { startRelay } from './peers/relay.js'
import { Progress } from './progress.js'
import { curvesOf, documentOf, jsonOf, lineOf, rowOf, tableHead } from './report.js'

const { values } = argumentsOf({
  usage: 'npm run bench -- [options]',
  about:
    'Measures every row of the target table against its peer in the same run. Run it on a quiet machine.',
  options: {
    only: { value: 'TEXT', many: true, text: 'one part, or rows whose name contains this' },
    quick: { text: 'the rows that say most, in about a minute' },
    json: { text: 'one object on standard output, and nothing else there' },
    write: {
      text: 'writes bench/RESULTS.md as well, with profiles of the rows that are missed, and docs/growth.svg',
    },
    list: { text: 'the parts and their rows; measures nothing' },
  },
  notes: [
    'BENCH_WITHOUT=mosquitto,go,cargo,cc,mvn,chromium takes these for missing: what needs them is skipped, with the reason.',
  ],
})
const { json, quick } = values
const only = values.only.map((word) => word.toLowerCase())
// All of the benchmark: not for those who only ask for help.
const { measurements } = await import('./parts/index.js')
const say = (text) => (json ? process.stderr : process.stdout).write(`${text}\n`)

const has = Object.fromEntries(
  ['mosquitto', 'cc', 'openssl'].map((name) => [name, find(name) !== undefined]),
)
const started = []

/** Starts something once, when it is first wanted. */
function lazily(start) {
  let running
  return () => {
    running ??= start().then((server) => {
      started.push(server)
      return server
    })
    return running
  }
}

const context = {
  quick,
  has,
  peer: lazily(startPeer),
  tlsPeer: lazily(startTlsPeer),
  mosquitto: lazily(startMosquitto),
  relay: lazily(async () => startRelay((await context.peer()).port)),
  find,
}

const parts = new Set(measurements.map(({ part }) => part))

function wanted({ part, rows, basic }) {
  // A word that is a part means that part; another one is looked for in the names.
  const means = (word) =>
    parts.has(word)
      ? part === word
      : Object.keys(rows).some((name) => name.toLowerCase().includes(word))
  if (only.length > 0) return only.some(means)
  return !quick || basic === true
}

async function measure() {
  const [rows, skipped, failed] = [[], [], []]
  const chosen = measurements.filter(wanted)
  const progress = new Progress('bench', 'measurements')
  for (const [done, measurement] of chosen.entries()) {
    progress.at(done, chosen.length, { note: measurement.part })
    const names = Object.keys(measurement.rows)
    const reason = await measurement.lacks?.(context)
    if (reason !== undefined) {
      for (const name of names) skipped.push({ name, part: measurement.part, reason })
      continue
    }
    try {
      const results = await measurement.run(context)
      for (const name of names) {
        const result = results[name]
        if (result === undefined) continue
        if (result.skipped !== undefined)
          skipped.push({ name, part: measurement.part, reason: result.skipped })
        else {
          const row = rowOf(measurement.part, name, measurement.rows[name], result)
          if (row.verdict === 'missed' && values.write)
            row.profile = await measurement.profile?.(context)
          rows.push(row)
          if (!json) say(lineOf(row))
        }
      }
    } catch (error) {
      for (const name of names)
        failed.push({
          name,
          part: measurement.part,
          reason: error.message.split('\n').slice(0, 6).join(' '),
        })
      say(`failed: ${names.join('; ')}: ${error.message}`)
    }
  }
  progress.end()
  return { rows, skipped, failed }
}

async function peers() {
  const { kind } = await context.peer()
  const version = mosquittoVersion()
  return `Peer: written in ${kind}. ${version === undefined ? 'No mosquitto.' : `mosquitto ${version}.`}`
}

function list() {
  for (const { part, rows, basic } of measurements) {
    for (const [name, { target = '–' }] of Object.entries(rows))
      say(`${part.padEnd(9)} ${basic ? '*' : ' '} ${name}: ${target}`)
  }
}

async function main() {
  if (values.list) return list()
  const about = { machine: machine(), peers: await peers() }
  if (!json) say(`${about.machine}. ${about.peers}\n\n${tableHead}`)
  const result = { ...about, ...(await measure()), date: new Date().toISOString().slice(0, 10) }
  for (const { name, reason } of result.skipped) say(`skipped: ${name}: ${reason}`)
  if (json) process.stdout.write(`${JSON.stringify(jsonOf(result))}\n`)
  if (values.write) {
    writeFileSync(new URL('RESULTS.md', import.meta.url), documentOf(result))
    // A drawing has all curves, or stays as it is.
    if (only.length === 0 || only.includes('growth'))
      writeFileSync(new URL('../docs/growth.svg', import.meta.url), drawing(curvesOf(result.rows)))
  }
  if (result.failed.length > 0) process.exitCode = 1
}

// Servers that it started must not outlive it.
for (const signal of ['SIGINT', 'SIGTERM']) {
  process.once(signal, () => {
    for (const server of started) server.stop()
    process.exit(1)
  })
}

try {
  await main()
} finally {
  for (const server of started) server.stop()
}
