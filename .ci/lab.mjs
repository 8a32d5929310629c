/**
 * The lab: everything that is random, long, measures time, or needs a toolchain, and so has no place in the gate. Each part is a file of `test/lab`.
 *
 *     npm run lab                                  all parts at their defaults, within an hour on two cores
 *     npm run lab -- NAME [WORD ...]               one part; `npm run lab -- --help` lists them
 *     npm run lab -- NAME --minutes N --seed N     longer, or at random in another way
 *
 * Prints each finding with the command that repeats it, a line for each part, and a line for all. Exits with 1 when something was found.
 */
import { execFileSync, spawn } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import * as esbuild from 'esbuild'
import { argumentsOf } from '../examples/arguments.js'

const root = fileURLToPath(new URL('..', import.meta.url))
const cache = path.join(root, 'node_modules', '.cache', 'mqwire-lab', String(process.pid))
/** In this order when all run: what finds most comes first. */
const names = [
  'world',
  'fuzz',
  'corpus',
  'differential',
  'mutants',
  'coverage',
  'brokers',
  'browsers',
  'docs',
  'runtimes',
  'budgets',
  'cost',
  'endurance',
]

/** In one file, each module still finds what lies beside its source. */
const places = {
  name: 'places',
  setup(build) {
    build.onLoad({ filter: /[\\/]test[\\/].*\.ts$/ }, ({ path: file }) => ({
      contents: readFileSync(file, 'utf8').replaceAll(
        'import.meta.url',
        JSON.stringify(pathToFileURL(file).href),
      ),
      loader: 'ts',
    }))
  },
}

async function bundle(entry, { plugins = [], name = entry.replace(/\W+/g, '-') } = {}) {
  const outfile = path.join(cache, `${name}.mjs`)
  await esbuild.build({
    absWorkingDir: root,
    entryPoints: [entry],
    outfile,
    bundle: true,
    packages: 'external',
    platform: 'node',
    format: 'esm',
    target: 'node20',
    sourcemap: 'inline',
    logLevel: 'silent',
    plugins: [...plugins, places],
  })
  return outfile
}

/** The counts of a report of vitest, and what failed, each with the command that runs it again. */
function resultOf(report, code, { env, args }) {
  const variables = Object.entries(env).map(([key, value]) => `${key}=${value} `)
  const again = (file, title) =>
    `${variables.join('')}npx vitest run ${args.join(' ')} ${file}${title === undefined ? '' : ` -t ${JSON.stringify(title)}`}`
  const findings = []
  for (const { name, status, message, assertionResults } of report.testResults) {
    const file = path.relative(root, name)
    const failed = assertionResults.filter((test) => test.status === 'failed')
    for (const test of failed)
      findings.push({
        what: `${file}: ${test.fullName}: ${test.failureMessages.join(' ').slice(0, 600)}`,
        command: again(file, test.fullName),
      })
    if (status === 'failed' && failed.length === 0)
      findings.push({ what: `${file}: ${message}`, command: again(file) })
  }
  if (findings.length === 0 && (code !== 0 || report.numPassedTests === 0))
    findings.push({ what: `the tests ended with ${code}`, command: again('') })
  const skipped = report.numPendingTests + report.numTodoTests
  return {
    did: `${report.numPassedTests} tests`,
    findings,
    ...(skipped > 0 && { skipped: `${skipped} tests` }),
  }
}

let reports = 0
/** Files of tests that ran. */
const ran = new Set()
async function vitest(
  files,
  { args = ['--config', 'test/vitest.config.ts', '--project', 'lab'], ...given } = {},
) {
  const { report = path.join(cache, `report-${reports++}.json`) } = given
  const env = { MQWIRE_SEED: String(values.seed), ...given.env }
  const program = path.join(root, 'node_modules', 'vitest', 'vitest.mjs')
  const reporting = ['--reporter=default', '--reporter=json', `--outputFile.json=${report}`]
  const running = spawn(process.execPath, [program, 'run', ...args, ...reporting, ...files], {
    cwd: root,
    env: { ...process.env, ...env },
    stdio: 'inherit',
  })
  const code = await new Promise((resolve) => running.on('exit', resolve))
  const result = JSON.parse(readFileSync(report, 'utf8'))
  for (const { name } of result.testResults) ran.add(path.relative(root, name))
  return resultOf(result, code, { env, args })
}

/** Files of tests that are outside the gate, and that no part has run. */
function forgotten() {
  const program = path.join(root, 'node_modules', 'vitest', 'vitest.mjs')
  const args = [program, 'list', '--filesOnly', '--json', '--config', 'test/vitest.config.ts']
  const listed = JSON.parse(execFileSync(process.execPath, args, { cwd: root, encoding: 'utf8' }))
  const gate = new Set(
    listed.filter(({ projectName }) => projectName !== 'lab').map(({ file }) => file),
  )
  const outside = listed
    .map(({ file }) => file)
    .filter((file) => !gate.has(file) && file.endsWith('.test.ts'))
  return outside.map((file) => path.relative(root, file)).filter((file) => !ran.has(file))
}

/** Runs a program of Node, and shows what it prints. */
function node(args, env = {}) {
  const running = spawn(process.execPath, args, {
    cwd: root,
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let output = ''
  running.stdout.setEncoding('utf8').on('data', (text) => {
    output += text
    process.stdout.write(text)
  })
  return new Promise((resolve) => running.on('close', (code) => resolve({ code, output })))
}

const load = async (name) => import(pathToFileURL(await bundle(`test/lab/${name}.ts`)).href)
const minutesSince = (began) => ((performance.now() - began) / 60_000).toFixed(1)
const known = readdirSync(path.join(root, 'test', 'lab')).map((file) => path.basename(file, '.ts'))

const whole = { value: 'N', number: [0], whole: true }
const given = process.argv.slice(2)
const wanted = given.filter(
  (word, at) => !word.startsWith('--') && !(given[at - 1] ?? '').startsWith('--'),
)
process.once('exit', () => rmSync(cache, { recursive: true, force: true }))
/** For help, what each part does, or the one that is named. */
const told = given.includes('--help')
  ? names.filter((name) => known.includes(name) && (wanted[0] ?? name) === name)
  : []
const notes = await Promise.all(
  told.map(async (name) =>
    load(name).then(({ about, minutes }) => `${name} (${minutes} min): ${about}`),
  ),
)
const { values } = argumentsOf(
  {
    usage: 'npm run lab -- [NAME [WORD ...]] [options]',
    about: `Runs what has no place in the gate: ${names.join(', ')}. Without a name: all of it. Exits with 1 when something was found.`,
    options: {
      minutes: {
        value: 'N',
        number: [0],
        text: 'after so many minutes a part begins nothing new (each part has its default)',
      },
      seed: { ...whole, initial: 20_261_126, text: 'the same seed does the same work' },
      replay: { value: 'TEXT', text: 'repeats a finding, as its command says' },
    },
    notes,
  },
  given.filter((word) => !wanted.includes(word)),
)

/** Runs one part, and prints what came of it; a part that throws is a finding. */
async function run(name, words) {
  const began = performance.now()
  console.log(`== lab ${name}`)
  const result = await load(name)
    .then((part) =>
      part.run({
        root,
        bundle,
        vitest,
        node,
        words,
        seed: values.seed,
        replay: values.replay,
        minutes: values.minutes ?? part.minutes,
        say: console.log,
      }),
    )
    .catch((error) => ({
      did: 'broke',
      findings: [
        {
          what: error?.stack ?? String(error),
          command: `npm run lab -- ${[name, ...words].join(' ')}`,
        },
      ],
    }))
  for (const { what, command } of result.findings) console.log(`FINDING ${what}\n  ${command}`)
  const skipped = result.skipped === undefined ? '' : `, skipped: ${result.skipped}`
  console.log(
    `lab ${name}: ${result.did}, ${result.findings.length} findings${skipped}, ${minutesSince(began)} min`,
  )
  return result.findings.length
}

const [name, ...words] = wanted
const parts = name === undefined ? names : [name]
const missing = parts.filter((part) => !names.includes(part) || !known.includes(part))
if (missing.length > 0) {
  console.error(`there is no ${missing.join(', ')} in the lab; there are: ${names.join(', ')}`)
  process.exit(2)
}
mkdirSync(cache, { recursive: true })
process.chdir(root)
const began = performance.now()
let findings = 0
for (const part of parts) findings += await run(part, words)
for (const file of name === undefined ? forgotten() : []) {
  findings += 1
  console.log(
    `FINDING ${file} is in no part of the lab, and not in the gate\n  npx vitest run --config test/vitest.config.ts --project lab ${file}`,
  )
}
console.log(
  `lab: ${parts.length} of ${names.length}, ${findings} findings, ${minutesSince(began)} min, seed ${values.seed}`,
)
// Workers and servers of a part may still be ending.
process.exit(findings === 0 ? 0 : 1)
