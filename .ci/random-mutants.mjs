/**
 * Plants defects that a seed draws from all of `src`, and shows who notices each: a test, the virtual world, or nobody.
 *
 *     npm run mutants:random                            400 mutants of seed 1
 *     npm run mutants:random -- --count N --seed S      others; the same seed gives the same ones while the sources stay the same
 *     npm run mutants:random -- --only NUMBER           one, or several with commas between them
 *     npm run mutants:random -- --part 1/4              every fourth
 *     npm run mutants:random -- --list                  draws and prints them, and runs nothing
 *     npm run mutants:random -- --named FILE            those with the changes that a file lists, as test/mutants/random/explained.json does, reasons included
 *     --tests FILE,FILE lets these test files judge alone,
 *     --fresh forgets what earlier runs found, --no-world does without the virtual world
 *
 * A test file runs once without a mutant to learn which places its tests reach. One that survives is a test that is missing, or has its reason in
 * test/mutants/random/explained.json; any other makes this exit with 1. Writes below node_modules/.cache only.
 */
import { mkdirSync, rmSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import * as esbuild from 'esbuild'

const root = fileURLToPath(new URL('..', import.meta.url))
const scratch = path.join(root, 'node_modules', '.cache', 'mqwire-mutants', String(process.pid))

function option(name, otherwise) {
  const at = process.argv.indexOf(`--${name}`)
  return at < 0 ? otherwise : process.argv[at + 1]
}

const flag = (name) => process.argv.includes(`--${name}`)

mkdirSync(scratch, { recursive: true })
try {
  await esbuild.build({
    absWorkingDir: root,
    entryPoints: ['test/mutants/random/run.ts', 'test/mutants/random/worker.ts'],
    outdir: scratch,
    outExtension: { '.js': '.mjs' },
    bundle: true,
    packages: 'external',
    platform: 'node',
    format: 'esm',
    target: 'node20',
    logLevel: 'silent',
  })
  const { main } = await import(pathToFileURL(path.join(scratch, 'run.mjs')).href)
  const [part, parts] = option('part', '1/1').split('/').map(Number)
  const good = await main({
    root: path.resolve(root),
    worker: path.join(scratch, 'worker.mjs'),
    scratch,
    count: Number(option('count', 400)),
    seed: Number(option('seed', 1)),
    named: option('named', undefined),
    tests: option('tests', '').split(',').filter(Boolean),
    only: option('only', '').split(',').filter(Boolean).map(Number),
    part: { index: part - 1, of: parts },
    list: flag('list'),
    fresh: flag('fresh'),
    world: !flag('no-world'),
  })
  process.exitCode = good ? 0 : 1
} catch (error) {
  console.error(error.message)
  process.exitCode = 1
} finally {
  rmSync(scratch, { recursive: true, force: true })
}
