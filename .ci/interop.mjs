/**
 * Runs the features of `test/interop` on the brokers that are here, and writes what the run showed to `test/interop/MATRIX.md`.
 *
 *     npm run interop        aedes, mosquitto and mochi, each where it can be had
 *     npm run interop:all    HiveMQ CE too (Java 17 and Maven)
 *     --table                does not run anything: makes the table of the report of the last run
 *
 * Exits with 1 when a feature failed. A broker that was not run is said to be not run. Writes the table, and else below node_modules/.cache only.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import * as esbuild from 'esbuild'
import { argumentsOf } from '../examples/arguments.js'

const root = fileURLToPath(new URL('..', import.meta.url))
const cache = path.join(root, 'node_modules', '.cache', 'mqwire')
const reportFile = path.join(cache, 'interop.json')
const tableFile = path.join(root, 'test', 'interop', 'MATRIX.md')

function run(all) {
  const vitest = path.join(root, 'node_modules', 'vitest', 'vitest.mjs')
  const options = ['--config', 'test/interop/vitest.config.ts', `--outputFile.json=${reportFile}`]
  rmSync(reportFile, { force: true })
  const env = { ...process.env, MQWIRE_INTEROP: all ? 'all' : '' }
  return spawnSync(process.execPath, [vitest, 'run', ...options], { cwd: root, env, stdio: 'inherit' }).status ?? 1
}

/** The module that makes the table, and the names of the features, from their TypeScript. */
async function table() {
  const outfile = path.join(cache, 'interop-matrix.mjs')
  await esbuild.build({
    absWorkingDir: root,
    entryPoints: ['test/interop/table.ts'],
    outfile,
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node20',
    packages: 'external',
    logLevel: 'silent',
  })
  return import(pathToFileURL(outfile).href)
}

const { values } = argumentsOf({
  usage: 'npm run interop -- [options]',
  about: 'Runs the features of test/interop on the brokers that are here, and writes test/interop/MATRIX.md. Exits with 1 when a feature failed.',
  options: {
    all: { text: 'HiveMQ CE too, which takes Java 17 and Maven (npm run interop:all)' },
    table: { text: 'runs nothing: makes the table of the report of the last run' },
  },
})
mkdirSync(cache, { recursive: true })
const status = values.table ? 0 : run(values.all)
if (existsSync(reportFile)) {
  const { failures, tableOf } = await table()
  const report = JSON.parse(readFileSync(reportFile, 'utf8'))
  writeFileSync(tableFile, tableOf(report))
  for (const line of failures(report)) console.error(line)
  console.log(`written: ${path.relative(root, tableFile)}`)
} else console.error('there is no report')
process.exitCode = existsSync(reportFile) ? status : 1
