/**
 * Runs the virtual world: bundles test/world with src, runs it on all cores, prints findings and one summary line.
 *
 *     node .ci/world.mjs --seeds N [--seed FIRST] [--enumerate]   random seeds, and every fault at every step of the base scenarios
 *     node .ci/world.mjs --enumerate [--only NAME]                the scenarios alone, or those whose name contains NAME
 *     node .ci/world.mjs --enumerate --every N                    each Nth of these faults, others each time, and every scenario
 *     node .ci/world.mjs --replay FILE                            a schedule as a finding prints it, packet by packet
 *     --durable with any of these: the world of a device whose process dies and comes back (test/world/durable); --enumerate is every crash there
 *     --many with any of these but --enumerate: the world of a pool or a group over several connections (test/world/many)
 *     --scanner reads packets with WebAssembly, --raw prints schedules as they are, not made smaller
 *     --limit S stops after S seconds, --jobs N sets the number of workers
 *
 * Exits with 1 when something was found. Writes below node_modules/.cache only.
 */
import { mkdirSync, readFileSync, rmSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { Worker } from 'node:worker_threads'
import * as esbuild from 'esbuild'
import { argumentsOf } from '../examples/arguments.js'
import { Progress } from './progress.mjs'

const root = fileURLToPath(new URL('..', import.meta.url))
const cache = path.join(root, 'node_modules', '.cache', 'mqwire-world', String(process.pid))

const whole = { value: 'N', number: [0], whole: true }
const { values } = argumentsOf({
  usage: 'npm run world -- [options]',
  about: 'Runs the virtual world: clients, brokers and networks with every fault, under rules that must hold. Exits with 1 when one was broken.',
  options: {
    seeds: { ...whole, initial: 0, text: 'random schedules' },
    seed: { ...whole, initial: 1, text: 'the first of them' },
    enumerate: { text: 'every fault at every step of the base scenarios' },
    only: { value: 'TEXT', initial: '', text: 'only scenarios with this in their name' },
    every: { ...whole, number: [1], initial: 1, text: 'with --enumerate only each Nth fault, from one drawn at random' },
    replay: { value: 'FILE', text: 'a schedule as a finding prints it, packet by packet' },
    durable: { text: 'a device with a store, whose process dies and comes back; with --enumerate at every moment of its scenarios' },
    many: { text: 'a pool or a group over several connections and brokers' },
    scanner: { text: 'reads packets with WebAssembly' },
    raw: { text: 'prints schedules as they are, not made smaller' },
    limit: { value: 'S', number: [0], initial: 3600, text: 'begins nothing after so many seconds' },
    jobs: { ...whole, number: [1], initial: availableParallelism(), text: 'workers' },
  },
})
const option = (name) => values[name]
const entry = values.durable ? 'test/world/durable/main.ts' : values.many ? 'test/world/many/main.ts' : 'test/world/main.ts'
const flag = option
/** Schedules that --enumerate makes, roughly: enough to tell the time left. */
const enumerated = 40_000

async function bundle(entry, name) {
  const outfile = path.join(cache, `${name}.mjs`)
  await esbuild.build({
    absWorkingDir: root,
    entryPoints: [entry],
    outfile,
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node20',
    external: ['ws'],
    sourcemap: 'inline',
    logLevel: 'silent',
  })
  return outfile
}

/** Runs one worker to its end; gives what it did. */
function work(file, workerData) {
  return new Promise((resolve, reject) => {
    const worker = new Worker(file, { workerData, execArgv: workerData.replay === undefined ? [] : ['--enable-source-maps'] })
    let done
    worker.on('message', (message) => {
      done = message
    })
    worker.on('error', reject)
    worker.on('exit', (code) => (done === undefined ? reject(new Error(`a worker ended with ${code} and said nothing`)) : resolve(done)))
  })
}

async function run(file, task) {
  const parts = option('jobs')
  const counter = new Int32Array(new SharedArrayBuffer(4))
  const tasks = Array.from({ length: parts }, (_, part) => work(file, { ...task, part, parts, counter }))
  const telling = task.hasty ? undefined : tell(task, counter)
  const found = task.hasty ? Promise.race(tasks.map(async (each) => firstToFind(await each, tasks))).then((one) => [one]) : Promise.all(tasks)
  const all = await found.finally(() => telling?.end())
  return {
    schedules: sum(all, 'schedules'),
    seeds: sum(all, 'seeds'),
    failed: sum(all, 'failed'),
    events: sum(all, 'events'),
    reports: all.flatMap((each) => each.reports),
  }
}

/** Shows how far the workers are. A run is over when its time is. */
function tell({ seeds, enumerate, every, only, limit }, counter) {
  const progress = new Progress('world', 'schedules')
  const total = only === '' ? seeds + (enumerate ? Math.ceil(enumerated / every) : 0) : undefined
  const started = performance.now()
  const look = () => {
    const done = Atomics.load(counter, 0)
    const [gone, most] = [performance.now() - started, limit * 1000]
    const left = total === undefined || done === 0 ? undefined : Math.min((gone * Math.max(0, total - done)) / done, most - gone)
    progress.at(done, total, { left })
  }
  const timer = setInterval(look, 250)
  return {
    end() {
      clearInterval(timer)
      progress.end()
    },
  }
}

// One that found nothing waits for the others.
async function firstToFind(done, tasks) {
  if (done.failed > 0) return done
  const all = await Promise.all(tasks)
  return all.find((each) => each.failed > 0) ?? done
}

function sum(all, key) {
  return all.reduce((total, each) => total + each[key], 0)
}

function print({ rule, detail, name, seed, schedule }) {
  console.log(`${rule}: ${detail}\n  ${name === 'random' ? `seed ${seed}` : `scenario '${name}'`}, made smaller:\n${schedule}\n`)
}

const seconds = (since) => ((performance.now() - since) / 1000).toFixed(1)

async function replay(name) {
  const file = await bundle(entry, 'world')
  const task = {
    part: 0,
    parts: 1,
    first: 1,
    seeds: 0,
    enumerate: false,
    every: 1,
    offset: 0,
    only: '',
    hasty: false,
    limit: 3600,
    replay: readFileSync(name, 'utf8'),
  }
  const { trace } = await work(file, task)
  for (const line of trace) console.log(line)
  return !trace.some((line) => line.startsWith('FINDING'))
}

async function explore() {
  const started = performance.now()
  const seeds = option('seeds')
  const file = await bundle(entry, 'world')
  const result = await run(file, {
    first: option('seed'),
    seeds,
    enumerate: flag('enumerate'),
    every: option('every'),
    offset: Math.floor(Math.random() * option('every')),
    only: option('only'),
    hasty: false,
    scanner: flag('scanner'),
    raw: flag('raw'),
    limit: option('limit'),
  })
  const kinds = new Map(result.reports.map((report) => [`${report.rule} ${report.detail.replace(/\d+/g, '#')}`, report]))
  for (const report of kinds.values()) print(report)
  console.log(`world: ${result.schedules} schedules, ${result.seeds} seeds, ${result.failed} findings, ${seconds(started)} s`)
  return result.failed === 0 && result.schedules > 0
}

mkdirSync(cache, { recursive: true })
try {
  const recorded = option('replay')
  const good = recorded !== undefined ? await replay(recorded) : await explore()
  // Workers that were still looking are of no use any more.
  process.exitCode = good ? 0 : 1
} finally {
  rmSync(cache, { recursive: true, force: true })
  setTimeout(() => process.exit(), 0)
}
