/**
 * Sums up vitest's JSON reports: prints the slowest files to standard error, and to standard output `passed failed skipped` and what failed, a line each.
 *
 *     node .ci/report.mjs --run FILE=EXIT_CODE ...
 *
 * A file that could not be run is a failure; so is a run that broke, that had no test, or whose report is missing.
 */
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { argumentsOf } from '../examples/arguments.js'

const { values } = argumentsOf({
  usage: 'node .ci/report.mjs --run FILE=EXIT_CODE',
  about: 'Sums up JSON reports of vitest: counts, what failed, and the slowest files.',
  options: { run: { value: 'FILE=EXIT_CODE', many: true, text: 'a report, and what the run ended with' } },
})

const slowest = 20
const sum = { passed: 0, failed: 0, skipped: 0 }
const failures = []
const times = []
const lineOf = (...parts) => parts.join(' > ').replace(/\s+/g, ' ').slice(0, 500)

function fail(...parts) {
  sum.failed += 1
  failures.push(lineOf(...parts))
}

function addFile({ name, status, message, assertionResults, startTime, endTime }) {
  times.push([(endTime - startTime) / 1000, path.relative(process.cwd(), name)])
  const broken = assertionResults.filter((test) => test.status === 'failed')
  for (const test of broken) fail(name, test.fullName, ...test.failureMessages)
  if (status === 'failed' && broken.length === 0) fail(name, message)
}

function add(file, exitCode) {
  const before = sum.failed
  const run = JSON.parse(readFileSync(file, 'utf8'))
  sum.passed += run.numPassedTests
  sum.skipped += run.numPendingTests + run.numTodoTests
  for (const each of run.testResults) addFile(each)
  if (sum.failed > before) return
  if (run.numPassedTests === 0) fail(file, 'no test passed')
  else if (exitCode !== '0') fail(file, `the run ended with ${exitCode}`)
}

for (const run of values.run) {
  const [file, exitCode] = run.split('=')
  try {
    add(file, exitCode)
  } catch (error) {
    fail(file, `no test report: ${error.message}`)
  }
}
if (times.length > 0) console.error(`the ${slowest} slowest files, seconds:`)
for (const [seconds, name] of times.sort(([one], [other]) => other - one).slice(0, slowest))
  console.error(`${seconds.toFixed(1).padStart(7)}  ${name}`)
console.log([`${sum.passed} ${sum.failed} ${sum.skipped}`, ...failures].join('\n'))
