/**
 * The endurance runs at full size, with figures: `npm run build` first, then
 *
 *     node bench/endurance.js --resets     100,000 messages at each of QoS 1 and 2 through a proxy that resets at random bytes, mosquitto behind it
 *     node bench/endurance.js --crashes    mosquitto killed 20 times under load, for each of three kinds of memory
 *     node bench/endurance.js --leaks      10,000 reconnects: heap, listeners, timers and handles
 *
 * Several may be given; with none, all run. `--messages N`, `--kills N`, `--reconnects N` and `--seed N` change them. The runs are those of the tests
 * (`test/real`, `test/real/programs`), with `dist/` in the place of the sources. Exits with 1 when anything was lost, doubled or untrue.
 */
import { spawnSync } from 'node:child_process'
import { mkdirSync, rmSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import * as esbuild from 'esbuild'
import { argumentsOf } from '../examples/arguments.js'
import { machine } from './measure.js'

const root = fileURLToPath(new URL('..', import.meta.url))
const cache = path.join(root, 'node_modules', '.cache', 'mqwire-endurance', String(process.pid))
const minute = 60_000

const whole = { value: 'N', number: [1], whole: true }
const { values } = argumentsOf({
  usage: 'node bench/endurance.js [options]',
  about:
    'The endurance runs at full size; all of them where none is named. Exits with 1 when anything was lost, doubled or untrue.',
  options: {
    resets: { text: 'messages through a proxy that resets at random bytes, mosquitto behind it' },
    crashes: { text: 'mosquitto killed under load, for each of three kinds of memory' },
    leaks: { text: 'reconnects: heap, listeners, timers and handles' },
    messages: { ...whole, initial: 100_000, text: 'of the resets, at each of QoS 1 and 2' },
    kills: { ...whole, initial: 20, text: 'of each kind of memory' },
    reconnects: { ...whole, initial: 10_000, text: 'over each transport' },
    seed: { ...whole, number: [0], initial: 1, text: 'of the random choices' },
  },
})

/** The built package in the place of the sources, as its users have it. */
const built = {
  name: 'built',
  setup(build) {
    build.onResolve({ filter: /\/src\/.*\.js$/ }, (args) => {
      const file = path.join(args.resolveDir, args.path)
      return {
        path: pathToFileURL(path.join(root, 'dist', path.relative(path.join(root, 'src'), file)))
          .href,
        external: true,
      }
    })
  },
}

async function load(name) {
  const outfile = path.join(cache, `${name}.mjs`)
  const entry = path.join(root, 'test', 'real', `${name}.ts`)
  const options = {
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node20',
    packages: 'external',
    logLevel: 'warning',
    plugins: [built],
  }
  await esbuild.build({ ...options, entryPoints: [entry], outfile })
  return import(pathToFileURL(outfile).href)
}

let failed = false

function report(title, figures, faults) {
  console.log(`\n${title}`)
  for (const [name, figure] of Object.entries(figures))
    console.log(`  ${name.padEnd(44)} ${figure.toLocaleString('en')}`)
  for (const fault of faults.slice(0, 20)) console.log(`  FAULT: ${fault}`)
  if (faults.length > 0) failed = true
  else console.log('  no fault')
}

function faultsOf(messages, qos, { fulfilled, rejected, lost, disordered, again }) {
  const faults = []
  if (fulfilled !== messages)
    faults.push(`QoS ${qos}: ${fulfilled} of ${messages} publishes fulfilled, ${rejected} rejected`)
  if (lost > 0) faults.push(`QoS ${qos}: ${lost} lost`)
  if (disordered > 0) faults.push(`QoS ${qos}: ${disordered} out of order`)
  if (qos === 2 && again !== 0) faults.push(`QoS 2: ${again} delivered again`)
  return faults
}

async function resets() {
  const [{ runResets }, { Restartable }] = [await load('resets'), await load('restartable')]
  const messages = values.messages
  for (const [subscriber, meanBytes] of [
    ['direct', 400],
    ['through the proxy', 3000],
  ]) {
    const broker = await Restartable.start()
    try {
      const result = await runResets(broker, {
        messages,
        seed: values.seed,
        meanBytes,
        subscriber,
        deadline: 30 * minute,
      })
      const { qos1, qos2, contradictions, sessionsLost } = result
      const faults = [
        ...faultsOf(messages, 1, qos1),
        ...faultsOf(messages, 2, qos2),
        ...contradictions,
      ]
      if (sessionsLost > 0) faults.push(`${sessionsLost} sessions lost`)
      if (subscriber === 'direct' && qos2.begunAnew > 0)
        faults.push(`QoS 2: ${qos2.begunAnew} twice at the broker`)
      report(
        `Resets, subscriber ${subscriber}`,
        {
          'messages (QoS 1 + QoS 2)': 2 * messages,
          resets: result.resets,
          'resets before the broker said anything': result.early,
          'MB through the proxy': Math.round(result.bytes / 1e6),
          seconds: result.seconds,
          'lost (QoS 1 / QoS 2)': `${qos1.lost} / ${qos2.lost}`,
          'delivered again, QoS 1': qos1.again,
          'delivered again, QoS 2': qos2.again,
          'begun anew by the broker, QoS 2': qos2.begunAnew,
          'out of order': qos1.disordered + qos2.disordered,
        },
        faults,
      )
    } finally {
      await broker.stop()
    }
  }
}

async function crashes() {
  const { runCrashes } = await load('crashes')
  const kills = values.kills
  for (const memory of ['most of it', 'every second', 'nothing']) {
    const result = await runCrashes({ kills, memory, seed: values.seed })
    report(
      `Crashes, the broker remembers: ${memory}`,
      {
        'kills, and recoveries': result.kills,
        seconds: result.seconds,
        'slowest recovery, ms': Math.round(result.slowestRecovery),
        'sessions lost, and reported': result.sessionsLost,
        'publishes fulfilled': result.fulfilled,
        'publishes rejected, and reported (QoS 2)': result.rejected,
        'published anew, and reported': result.republished,
        'acknowledged and forgotten by the broker': result.forgotten,
      },
      result.contradictions,
    )
  }
}

// Without what V8 compiles along the way.
const flags = ['--expose-gc', '--no-opt', '--no-sparkplug', '--no-flush-bytecode']

function program(name, env) {
  const run = spawnSync(
    process.execPath,
    [...flags, path.join(root, 'test', 'real', 'programs', name)],
    {
      env: { ...process.env, ...env },
      encoding: 'utf8',
    },
  )
  if (run.status !== 0) throw new Error(`${name} ended with ${run.status}: ${run.stderr}`)
  return JSON.parse(run.stdout)
}

function leaks() {
  const reconnects = values.reconnects
  for (const transport of ['tcp', 'websocket']) {
    const { before, after, seconds, faults } = program('reconnects.js', {
      RECONNECTS: String(reconnects),
      TRANSPORT: transport,
    })
    for (const kind of ['resources', 'listeners']) {
      const [was, is] = [before, after].map((rest) => JSON.stringify(rest[kind]))
      if (was !== is) faults.push(`${kind} ${was} became ${is}`)
    }
    if (after.heap > before.heap * 1.02) faults.push('the heap has grown by more than 2 %')
    report(
      `Leaks over ${transport}`,
      {
        reconnects,
        seconds,
        'heap before, bytes': before.heap,
        'heap after, bytes': after.heap,
        'handles and timers': JSON.stringify(after.resources),
      },
      faults,
    )
  }
}

const runs = { resets, crashes, leaks }
const wanted = Object.keys(runs).filter((name) => values[name])

mkdirSync(cache, { recursive: true })
try {
  console.log(machine())
  for (const name of wanted.length > 0 ? wanted : Object.keys(runs)) await runs[name]()
} finally {
  rmSync(cache, { recursive: true, force: true })
}
process.exitCode = failed ? 1 : 0
