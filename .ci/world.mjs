/**
 * Runs the virtual world: bundles test/world with src, runs it on all cores, prints findings and one summary line.
 *
 *     node .ci/world.mjs --seeds N [--seed FIRST] [--enumerate]   random seeds, and every fault at every step of the base scenarios
 *     node .ci/world.mjs --enumerate [--only NAME]                the scenarios alone, or those whose name contains NAME
 *     node .ci/world.mjs --enumerate --every N                    each Nth of these faults, others each time, and every scenario
 *     node .ci/world.mjs --defect NAME                            with a planted defect, which must be found
 *     node .ci/world.mjs --defects [--only TEXT] [--every N]      each planted defect in turn, those whose name contains TEXT, or each Nth, as a table
 *     node .ci/world.mjs --replay FILE                            a schedule as a finding prints it, packet by packet
 *     --durable with any of these: the world of a device whose process dies and comes back (test/world/durable); --enumerate is every crash there
 *     --many with any of these but --enumerate: the world of a pool or a group over several connections (test/world/many)
 *     --scanner reads packets with WebAssembly, --raw prints schedules as they are, not made smaller
 *     --limit S stops after S seconds, --jobs N sets the number of workers
 *
 * Exits with 1 when something was found (with --defect: when nothing was). Writes below node_modules/.cache only.
 */
import { mkdirSync, readFileSync, rmSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import path from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
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
    only: { value: 'TEXT', initial: '', text: 'only scenarios, or with --defects only defects, with this in their name' },
    defect: { value: 'NAME', text: 'with a planted defect, which must be found' },
    defects: { text: 'with each planted defect in turn, as a table' },
    every: { ...whole, number: [1], initial: 1, text: 'only each Nth defect, or with --enumerate each Nth fault, from one drawn at random' },
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

/** Replaces the text of a defect while its file is loaded. */
function planted(defect) {
  const file = path.join(root, 'src', defect.file)
  return {
    name: 'planted-defect',
    setup(build) {
      build.onLoad({ filter: /\.ts$/ }, (args) => {
        if (args.path !== file) return undefined
        const text = readFileSync(file, 'utf8')
        const times = text.split(defect.find).length - 1
        if (times !== 1) throw new Error(`defect '${defect.name}': its text occurs ${times} times in src/${defect.file}`)
        return { contents: text.replace(defect.find, () => defect.replace), loader: 'ts' }
      })
    },
  }
}

async function bundle(entry, name, defect) {
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
    plugins: defect === undefined ? [] : [planted(defect)],
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

async function tryDefect(defect) {
  const name = `defect-${defect.name.replace(/\W+/g, '-')}`
  const file = await bundle(entry, name, defect).catch((error) => error)
  // The source has moved on: the defect has to follow.
  if (file instanceof Error) return { defect, report: undefined, seconds: file.errors?.[0]?.text ?? file.message }
  const started = performance.now()
  const result = await run(file, {
    first: 1,
    seeds: 1_000_000,
    enumerate: false,
    every: 1,
    offset: 0,
    only: '',
    hasty: true,
    rules: defect.by,
    wide: defect.wide === true,
    limit: option('durable') || option('many') ? 120 : 30,
  })
  const [report] = result.reports
  return { defect, report, seconds: seconds(started) }
}

function row({ defect, report, seconds }) {
  if (report === undefined) return `${defect.name} | NOT CAUGHT | | ${seconds}`
  const where = report.name === 'random' ? `seed ${report.seed}` : `scenario '${report.name}'`
  return `${defect.name} | ${report.rule}: ${report.detail.replace(/\s+/g, ' ').slice(0, 90)} | ${where} | ${seconds}`
}

async function exported(file, name) {
  return import(pathToFileURL(await bundle(file, name)).href)
}

async function allDefects() {
  if (option('durable')) return (await exported('test/world/durable/defects.ts', 'defects')).durableDefects
  if (option('many')) return (await exported('test/world/many/defects.ts', 'defects')).manyDefects
  const { defects: base } = await exported('test/world/defects.ts', 'defects')
  const { outsideDefects } = await exported('test/world/defects-outside.ts', 'defects-outside')
  return [...base, ...outsideDefects.map((defect) => ({ ...defect, wide: true }))]
}

async function tryDefects(name) {
  const defects = await allDefects()
  const chosen =
    name === undefined
      ? defects.filter(({ name: each }, index) => each.includes(option('only')) && index % option('every') === 0)
      : defects.filter((defect) => defect.name === name)
  if (chosen.length === 0) throw new Error(`there is no such defect; there are: ${defects.map((defect) => defect.name).join(', ')}`)
  console.log('defect | caught by | where | seconds')
  const progress = new Progress('world', 'defects')
  let missed = 0
  for (const [done, defect] of chosen.entries()) {
    progress.at(done, chosen.length)
    const result = await tryDefect(defect)
    console.log(row(result))
    if (name !== undefined && result.report !== undefined) print(result.report)
    if (result.report === undefined) missed += 1
  }
  progress.end()
  console.log(`world: ${chosen.length} defects, ${missed} not caught`)
  return missed === 0
}

mkdirSync(cache, { recursive: true })
try {
  const defect = option('defect')
  const recorded = option('replay')
  const good = recorded !== undefined ? await replay(recorded) : flag('defects') || defect !== undefined ? await tryDefects(defect) : await explore()
  // Workers that were still looking are of no use any more.
  process.exitCode = good ? 0 : 1
} finally {
  rmSync(cache, { recursive: true, force: true })
  setTimeout(() => process.exit(), 0)
}
