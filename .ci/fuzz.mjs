/**
 * Runs the coverage-guided fuzzer: bundles test/fuzz with counters in src, searches in workers, prints findings and a line for each target.
 *
 *     node .ci/fuzz.mjs --target wire|session|client|all [--inputs N] [--seconds S] [--jobs N] [--seed N]
 *     node .ci/fuzz.mjs --target T --replay HEX     one input, with the program that it stands for
 *     node .ci/fuzz.mjs --defects [NAME]            with each planted defect in turn, which must be found
 *     node .ci/fuzz.mjs --keep                      test/fuzz/seeds.txt gets the fewest inputs that reach what the corpus of all runs reaches
 *
 * Inputs and seconds are for each target. What was found to reach something new is kept in node_modules/.cache/mqwire-fuzz and used the next time.
 * Exits with 1 when something was found.
 */
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { Worker } from 'node:worker_threads'
import * as esbuild from 'esbuild'
import { argumentsOf } from '../examples/arguments.js'
import { Progress } from './progress.mjs'

const root = fileURLToPath(new URL('..', import.meta.url))
const store = path.join(root, 'node_modules', '.cache', 'mqwire-fuzz')
const own = path.join(store, String(process.pid))
const seedFile = path.join(root, 'test', 'fuzz', 'seeds.txt')
const mark = '# the fewest inputs that reach what longer runs reached (npm run fuzz -- --keep)'
const names = ['wire', 'session', 'client']
/** Bytes of hexadecimal text for each target in the file that is committed. */
const mostKept = 60_000
/** Milliseconds for one input: a hundred thousand times what one takes, because the machine may be busy. */
const patience = 120_000

const whole = { value: 'N', number: [0], whole: true }
const { values, operand } = argumentsOf({
  usage: 'npm run fuzz -- [options] [DEFECT]',
  about: 'Searches for inputs that break a rule, guided by coverage. Exits with 1 when something was found.',
  operand: { value: 'DEFECT', text: 'with --defects: only those whose name contains this' },
  options: {
    target: { value: 'NAME', initial: 'all', text: `what is searched: ${names.join(', ')} or all` },
    inputs: { ...whole, text: 'inputs for each target (default: as many as the seconds allow)' },
    seconds: { value: 'S', number: [0], text: 'seconds for each target (default 60, or no limit where --inputs is given)' },
    jobs: { ...whole, number: [1], initial: 1, text: 'workers for each target' },
    seed: { ...whole, text: 'of the random choices (default: by the clock, and printed)' },
    replay: { value: 'HEX', text: 'runs one input of the target, and prints the program that it stands for' },
    defects: { text: 'with each planted defect in turn, which must be found' },
    keep: { text: 'writes the fewest inputs that reach what all runs reached to test/fuzz/seeds.txt' },
  },
})
const option = (name, otherwise) => values[name] ?? otherwise
const read = (file) => (existsSync(file) ? readFileSync(file, 'utf8') : '')
const corpusFile = (target) => path.join(store, `${target}.txt`)

async function build() {
  const bundler = path.join(own, 'bundler.mjs')
  await esbuild.build({
    absWorkingDir: root,
    entryPoints: ['test/fuzz/tools.ts'],
    outfile: bundler,
    bundle: true,
    platform: 'node',
    format: 'esm',
    external: ['esbuild', 'typescript-5.2'],
    logLevel: 'silent',
  })
  const { bundle, defects } = await import(pathToFileURL(bundler).href)
  let number = 0
  const make = async (defect) => (await bundle(root, 'test/fuzz/main.ts', path.join(own, `main-${number++}.mjs`), defect)).file
  return { make, defects }
}

/** One worker to its end. One that says nothing for long is stopped, and its input is the finding. */
function work(file, given) {
  const running = new SharedArrayBuffer(8 + 4096)
  const [length, count] = [new Int32Array(running, 0, 1), new Int32Array(running, 4, 1)]
  return new Promise((resolve, reject) => {
    const worker = new Worker(file, {
      workerData: { ...given, tell: undefined, running },
      resourceLimits: { maxOldGenerationSizeMb: 1024, maxYoungGenerationSizeMb: 96 },
    })
    let last = { inputs: 0, edges: 0 }
    let seen = 0
    let since = performance.now()
    const bytes = () => Buffer.from(running, 8, length[0]).toString('hex')
    const stuck = (rule, detail) => {
      const finding = { rule, detail, bytes: bytes(), program: '' }
      resolve({ target: given.target, ...last, seconds: 0, counters: 0, kept: [], findings: [finding], text: '' })
    }
    const watch = setInterval(() => {
      if (count[0] !== seen) {
        seen = count[0]
        since = performance.now()
      }
      if (given.minimise || performance.now() - since < patience) return
      stuck('hang', `no end within ${patience / 1000} s`)
      worker.terminate()
    }, 1000)
    worker.on('message', (message) => {
      if (message.done) resolve(message.done)
      else {
        last = message
        given.tell?.(message)
      }
    })
    worker.on('error', (error) => (error.code === 'ERR_WORKER_OUT_OF_MEMORY' ? stuck('memory', error.message) : reject(error)))
    worker.on('exit', () => {
      clearInterval(watch)
    })
  })
}

const lines = (target, inputs) => inputs.map((bytes) => `${target} ${bytes}\n`).join('')
const sum = (all, key) => all.reduce((total, each) => total + each[key], 0)

/** Shows how far the jobs of a target are, and when all targets will be done; whichever limit comes first ends it. */
function teller(target, { jobs, inputs, seconds }) {
  const last = Array.from({ length: jobs }, () => ({ inputs: 0, edges: 0, findings: 0 }))
  const started = performance.now()
  const after = wanted.length - 1 - wanted.indexOf(target)
  return (job, message) => {
    last[job] = message
    const done = sum(last, 'inputs')
    const gone = performance.now() - started
    const whole = Math.min(seconds * 1000, (gone * inputs * jobs) / Math.max(1, done))
    const note = `${target}, ${Math.max(...last.map(({ edges }) => edges))} edges, ${sum(last, 'findings')} findings`
    progress.at(done, inputs < 1e11 ? inputs * jobs : undefined, { left: Math.max(0, whole - gone) + after * whole, note })
  }
}

async function search(file, target) {
  const jobs = option('jobs', 1)
  const first = option('seed', Date.now() % 1_000_000_000)
  const corpus = read(seedFile) + read(corpusFile(target))
  const inputs = Math.ceil(option('inputs', 1e12) / jobs)
  const seconds = option('seconds', option('inputs') === undefined ? 60 : 1e9)
  const tell = teller(target, { jobs, inputs, seconds })
  const given = (job) => ({ target, seed: first + job, inputs, seconds, corpus, tell: (message) => tell(job, message) })
  const all = await Promise.all(Array.from({ length: jobs }, (_, job) => work(file, given(job))))
  const kept = new Set(all.flatMap((each) => each.kept))
  if (kept.size > 0) writeFileSync(corpusFile(target), lines(target, [...kept]))
  const findings = new Map(all.flatMap((each) => each.findings).map((finding) => [finding.detail.replace(/\d+/g, '#').slice(0, 120), finding]))
  for (const { detail, bytes, program } of findings.values())
    console.log(`FINDING ${target} ${detail}\n  ${bytes}\n${program ? `  ${program}\n` : ''}`)
  const most = Math.max(...all.map((each) => each.edges))
  const longest = Math.max(...all.map((each) => each.seconds))
  const rate = Math.round(sum(all, 'inputs') / longest)
  console.log(
    `fuzz: ${target}: ${sum(all, 'inputs')} inputs, ${longest.toFixed(0)} s (${rate} a second), seed ${first}, ${most} edges covered, ${Math.max(...all.map((each) => each.kept.length))} kept, ${findings.size} findings`,
  )
  return findings.size === 0
}

async function tryDefects(make, defects, name) {
  let missed = 0
  console.log('defect | target | found as | inputs | seconds')
  for (const defect of defects.filter((each) => name === undefined || each.name.includes(name))) {
    const { target, by } = defect
    const corpus = read(seedFile)
    const limits = { inputs: option('inputs', 200_000), seconds: option('seconds', 60) }
    const done = await make(defect).then(
      (file) => work(file, { target, seed: 1, ...limits, corpus, rules: by }),
      (error) => ({ findings: [], inputs: 0, seconds: 0, text: error.message }),
    )
    const found = done.findings.find(({ rule }) => by.includes(rule))
    if (found === undefined) missed += 1
    const others = done.findings.map(({ detail }) => detail.slice(0, 200)).join(' ')
    console.log(
      `${defect.name} | ${target} | ${found === undefined ? `NOT FOUND ${done.text}${others}` : found.detail.slice(0, 110)} | ${done.inputs} | ${done.seconds.toFixed(1)}`,
    )
  }
  console.log(`fuzz: ${defects.length} defects, ${missed} not found`)
  return missed === 0
}

async function keep(file) {
  const regressions = `${read(seedFile).split(mark)[0].trimEnd()}\n`
  const parts = []
  for (const target of names) {
    const { kept } = await work(file, { target, seed: 1, inputs: 0, seconds: 0, corpus: read(corpusFile(target)), minimise: true })
    let room = mostKept
    const few = kept.filter((bytes) => {
      if (regressions.includes(`${target} ${bytes}\n`)) return false
      room -= bytes.length
      return room >= 0
    })
    parts.push(lines(target, few))
    console.log(`fuzz: ${target}: ${few.length} inputs of ${kept.length}`)
  }
  writeFileSync(seedFile, `${regressions}\n${mark}\n${parts.join('')}`)
}

const chosen = option('target', 'all')
const wanted = chosen === 'all' ? names : [chosen]
const progress = new Progress('fuzz', 'inputs')
mkdirSync(own, { recursive: true })
try {
  const { make, defects } = await build()
  const given = option('replay')
  const file = values.defects ? undefined : await make()
  if (values.defects) process.exitCode = (await tryDefects(make, defects, operand)) ? 0 : 1
  else if (values.keep) await keep(file)
  else if (given !== undefined) console.log((await work(file, { target: chosen, seed: 1, inputs: 0, seconds: 0, corpus: '', replay: given })).text)
  else for (const target of wanted) if (!(await search(file, target))) process.exitCode = 1
} finally {
  progress.end()
  rmSync(own, { recursive: true, force: true })
  setTimeout(() => process.exit(), 0)
}
