/**
 * Which branches of the pure parts the tests reach: runs the project `counted` of `test/vitest.config.ts` with coverage, one row per source file.
 *
 *     npm run coverage             prints statements, branches and functions; fails when a file, or all of them together, are under 98 % of branches
 *     npm run coverage -- --write  writes the table of branches to coverage/branches.md, which is not kept
 *     npm run coverage -- --missed names each branch that no test reaches
 *     npm run coverage -- --report FOLDER  takes what `npm test -- --coverage` wrote to FOLDER, and runs nothing
 *
 * Tests of random inputs are left out: a branch that is reached by chance is not covered. So the counts depend on the sources and the tests alone.
 * Writes below node_modules/.cache otherwise.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { argumentsOf } from '../examples/arguments.js'

const root = fileURLToPath(new URL('..', import.meta.url))
const cache = path.join(root, 'node_modules', '.cache', 'mqwire-coverage', String(process.pid))
const tableFile = path.join(root, 'coverage', 'branches.md')

/** Percent of branches that each file needs. */
export const least = 98
const folders = ['src/wire', 'src/client/session']

/** The source files that must have a row, sorted. */
export function sourceFiles() {
  const files = folders.flatMap((folder) => readdirSync(path.join(root, folder), { recursive: true }).map((name) => `${folder}/${name}`))
  return files.filter((name) => name.endsWith('.ts')).sort()
}

/** What vitest writes, in the form of Istanbul: counts by statement, function and branch of each file. */
const reportName = 'coverage-final.json'

function reportIn(folder) {
  const file = path.join(folder, reportName)
  if (!existsSync(file)) throw new Error(`there is no report of coverage in ${folder}`)
  const byName = Object.entries(JSON.parse(readFileSync(file, 'utf8')))
  return new Map(byName.map(([name, counts]) => [path.relative(root, name).split(path.sep).join('/'), counts]))
}

// Runs the project of vitest that is counted; gives the report, and the titles of tests that failed.
function measure() {
  const vitest = [path.join(root, 'node_modules', 'vitest', 'vitest.mjs'), 'run', '--config', 'test/vitest.config.ts', '--project=counted']
  const results = path.join(cache, 'tests.json')
  const options = ['--reporter=json', `--outputFile=${results}`, '--coverage', `--coverage.reportsDirectory=${path.relative(root, cache)}/report`]
  const run = spawnSync(process.execPath, [...vitest, ...options], { cwd: root, encoding: 'utf8' })
  if (!existsSync(results)) throw new Error(`the tests could not be run:\n${run.stdout}${run.stderr}`)
  return { report: reportIn(path.join(cache, 'report')), failed: failures(JSON.parse(readFileSync(results, 'utf8'))) }
}

function failures({ testResults, numTotalTests }) {
  const failed = testResults.filter(({ status }) => status === 'failed')
  const titles = failed.flatMap(({ name, assertionResults }) => {
    const tests = assertionResults.filter(({ status }) => status === 'failed').map(({ fullName }) => `failed: ${fullName}`)
    return tests.length > 0 ? tests : [`failed: ${path.relative(root, name)}`]
  })
  return numTotalTests > 0 ? titles : [...titles, 'there was no test']
}

const tally = (counts) => ({ covered: counts.filter((count) => count > 0).length, all: counts.length })

function add(parts) {
  return { covered: parts.reduce((sum, { covered }) => sum + covered, 0), all: parts.reduce((sum, { all }) => sum + all, 0) }
}

/** One row per file: statements, branches and functions as `{ covered, all }`. A file that was not measured has no counts. */
export function rowsOf(report) {
  return sourceFiles().map((file) => {
    const { s, b, f } = report.get(file) ?? { s: {}, b: {}, f: {} }
    return { file, statements: tally(Object.values(s)), branches: tally(Object.values(b).flat()), functions: tally(Object.values(f)) }
  })
}

/** The sum of rows. */
export function totalOf(rows) {
  const sum = (kind) => add(rows.map((row) => row[kind]))
  return { file: 'all', statements: sum('statements'), branches: sum('branches'), functions: sum('functions') }
}

/** Rounded down, so that 100 means all. */
export const percent = ({ covered, all }) => (all === 0 ? 100 : Math.floor((covered / all) * 1000) / 10)

/** Source files of which there is no measurement: their row would be empty, and pass. */
export function unmeasured(report) {
  return sourceFiles()
    .filter((file) => !report.has(file))
    .map((file) => `${file} was not measured`)
}

/** What is under the limit. */
export function tooLow(rows) {
  return [...rows, totalOf(rows)]
    .filter(({ branches }) => percent(branches) < least)
    .map(({ file, branches }) => `${file}: ${percent(branches).toFixed(1)} % of branches, needed are ${least} %`)
}

const share = (counts) => (counts.all === 0 ? '–' : `${percent(counts).toFixed(1)} %`)
const fraction = ({ covered, all }) => (all === 0 ? '–' : `${covered}/${all}`)

function line({ file, branches }) {
  return `| ${file === 'all' ? '**all**' : `\`${file}\``} | ${fraction(branches)} | ${share(branches)} |`
}

/** The table, as Markdown. */
export function markdown(rows) {
  return [
    '# Branches of the pure parts that the tests reach',
    '',
    'Written by `npm run coverage -- --write`. Branches covered and all, as V8 counts and Istanbul names them. Tests of',
    `random inputs do not count. CI fails when a file, or all of them together, are under ${least} %. Files without branches hold types and constants.`,
    '',
    '| file | branches | |',
    '| --- | ---: | ---: |',
    ...rows.map(line),
    line(totalOf(rows)),
    '',
  ].join('\n')
}

function print(rows) {
  const kinds = ['statements', 'branches', 'functions']
  console.log(`${''.padEnd(40)}${kinds.map((kind) => kind.padEnd(19)).join('  ')}`)
  for (const row of [...rows, totalOf(rows)]) {
    const cells = kinds.map((kind) => `${share(row[kind]).padStart(7)} ${`(${fraction(row[kind])})`.padEnd(11)}`)
    console.log(`${row.file.padEnd(40)}${cells.join('  ')}`)
  }
}

function missed(report) {
  return sourceFiles().flatMap((file) => {
    const { b, branchMap } = report.get(file) ?? { b: {}, branchMap: {} }
    const arms = Object.entries(b).flatMap(([id, counts]) => counts.map((count, arm) => ({ branch: branchMap[id], count, arm })))
    return arms
      .filter(({ count }) => count === 0)
      .map(({ branch, arm }) => `${file}:${branch.locations[arm].start.line ?? branch.loc.start.line} ${branch.type} ${arm + 1}`)
  })
}

const list = {
  usage: 'npm run coverage -- [options]',
  about: `Prints which branches of the pure parts the tests reach. Exits with 1 when a file, or all of them together, are under ${least} %.`,
  options: {
    write: { text: 'writes the table of branches to coverage/branches.md' },
    missed: { text: 'names each branch that no test reaches' },
    report: { value: 'FOLDER', text: 'takes the report of a run that was made with --coverage, and runs nothing' },
  },
}

function main(given) {
  mkdirSync(cache, { recursive: true })
  const { report, failed } = given.report === undefined ? measure() : { report: reportIn(path.resolve(root, given.report)), failed: [] }
  const rows = rowsOf(report)
  const found = [...failed, ...unmeasured(report), ...tooLow(rows)]
  if (given.write) {
    mkdirSync(path.dirname(tableFile), { recursive: true })
    writeFileSync(tableFile, markdown(rows))
  }
  print(rows)
  if (given.missed) for (const branch of missed(report)) console.log(branch)
  for (const objection of found) console.error(objection)
  process.exitCode = found.length > 0 ? 1 : 0
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  try {
    main(argumentsOf(list).values)
  } catch (error) {
    console.error(error.message)
    process.exitCode = 1
  } finally {
    rmSync(cache, { recursive: true, force: true })
  }
}
