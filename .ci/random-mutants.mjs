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
import { argumentsOf } from '../examples/arguments.js'
import { Progress } from './progress.mjs'

const root = fileURLToPath(new URL('..', import.meta.url))
const scratch = path.join(root, 'node_modules', '.cache', 'mqwire-mutants', String(process.pid))

const { values } = argumentsOf({
  usage: 'npm run mutants:random -- [options]',
  about: 'Plants defects that a seed draws from all of src, and shows who notices each: a test, the virtual world, or nobody.',
  options: {
    count: { value: 'N', number: [1], whole: true, initial: 400, text: 'how many' },
    seed: { value: 'N', number: [0], whole: true, initial: 1, text: 'the same seed gives the same ones while the sources stay the same' },
    only: { value: 'NUMBER', initial: '', text: 'one, or several with commas between them' },
    part: { value: 'I/N', initial: '1/1', text: 'every Nth, beginning with the Ith' },
    list: { text: 'draws and prints them, and runs nothing' },
    named: { value: 'FILE', text: 'those with the changes that a file lists, as test/mutants/random/explained.json does' },
    tests: { value: 'FILES', initial: '', text: 'these test files judge alone, with commas between them' },
    fresh: { text: 'forgets what earlier runs found' },
    'no-world': { text: 'does without the virtual world' },
  },
})
const progress = new Progress('mutants', 'mutants')

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
  const [part, parts] = values.part.split('/').map(Number)
  const good = await main({
    root: path.resolve(root),
    worker: path.join(scratch, 'worker.mjs'),
    scratch,
    count: values.count,
    seed: values.seed,
    named: values.named,
    tests: values.tests.split(',').filter(Boolean),
    only: values.only.split(',').filter(Boolean).map(Number),
    part: { index: part - 1, of: parts },
    list: values.list,
    fresh: values.fresh,
    world: !values['no-world'],
    tell: (done, total) => progress.at(done, total),
  })
  process.exitCode = good ? 0 : 1
} catch (error) {
  console.error(error.message)
  process.exitCode = 1
} finally {
  progress.end()
  rmSync(scratch, { recursive: true, force: true })
}
