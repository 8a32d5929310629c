/**
 * What a hostile broker can make a client hold: runs the attacks of test/budgets, two at a time, and prints the table.
 *
 *     npm run budgets                            all rows
 *     npm run budgets -- --only 'T01'            those whose row and variant begin with this
 *     npm run budgets -- --write                 all rows, and writes test/budgets/BUDGETS.md
 *
 * Exits with 1 when a row is over its budget, or something was not as it should be.
 */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import * as esbuild from 'esbuild'
import { argumentsOf } from '../examples/arguments.js'

const root = fileURLToPath(new URL('..', import.meta.url))
const cache = path.join(root, 'node_modules', '.cache', 'mqwire-budgets', `run-${process.pid}`)
const table = path.join(root, 'test', 'budgets', 'BUDGETS.md')
const { only, write } = argumentsOf({
  usage: 'npm run budgets -- [options]',
  about: 'Shows what a hostile broker can make a client hold. Exits with 1 when a row is over its budget.',
  options: {
    only: { value: 'TEXT', initial: '', text: 'those rows whose name begins with this, as T01' },
    write: { text: 'all rows, and writes test/budgets/BUDGETS.md' },
  },
}).values

async function load() {
  const outfile = path.join(cache, 'runner.mjs')
  const options = { bundle: true, platform: 'node', format: 'esm', target: 'node20', external: ['esbuild'], logLevel: 'silent' }
  await esbuild.build({ absWorkingDir: root, entryPoints: ['test/budgets/runner.ts'], outfile, ...options })
  return import(pathToFileURL(outfile).href)
}

mkdirSync(cache, { recursive: true })
const { Runner, lineOf, pageOf } = await load()
const runner = new Runner(root)
try {
  const started = performance.now()
  const chosen = runner.list().filter(({ row, variant }) => `${row} ${variant}`.startsWith(only))
  const results = await runner.runAll(chosen, (result) => console.log(lineOf(result)))
  const over = results.filter(({ wrong }) => wrong.length > 0)
  if (write && only === '') writeFileSync(table, pageOf(results))
  console.log(`budgets: ${results.length} attacks, ${over.length} not as they should be, ${((performance.now() - started) / 1000).toFixed(1)} s`)
  process.exitCode = over.length === 0 && results.length > 0 ? 0 : 1
} finally {
  runner.close()
  rmSync(cache, { recursive: true, force: true })
}
