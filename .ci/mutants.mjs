/**
 * Plants one defect after the other and shows that a test catches each: a mutant that no test notices is a test that is missing.
 *
 *     npm run mutants                 all of test/mutants/*.json, with their test files run without a mutant as well
 *     npm run mutants -- --only ID    one, or several with commas between them
 *     npm run mutants -- --area NAME  those of one list file, as `broker`
 *     npm run mutants -- --check      runs nothing: every text that is replaced occurs once, every file exists, of every mutant it is known what caught it
 *     npm run mutants -- --write      all, and keeps in test/mutants/results what caught each, when every one was caught
 *     npm run mutants -- --table      runs nothing: writes the table to coverage/mutants.md, which is not kept
 *     --jobs N sets the number of workers (2), --list FILE takes another list
 *
 * Exits with 1 when a mutant survives or cannot be judged. The sources stay as they are: what the tests load is replaced on its way. Writes below
 * node_modules/.cache only, but for what is said above.
 */
import { mkdirSync, rmSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import * as esbuild from 'esbuild'
import { argumentsOf } from '../examples/arguments.js'
import { Progress } from './progress.mjs'

const root = fileURLToPath(new URL('..', import.meta.url))
const folder = path.join(root, 'test', 'mutants')
const cache = path.join(root, 'node_modules', '.cache', 'mqwire-mutants', String(process.pid))

const { values } = argumentsOf({
  usage: 'npm run mutants -- [options]',
  about: 'Plants one defect after the other and shows that a test catches each. Exits with 1 when one survives or cannot be judged.',
  options: {
    only: { value: 'ID', initial: '', text: 'one mutant, or several with commas between them' },
    area: { value: 'NAME', text: 'those of one list file, as broker' },
    check: { text: 'runs nothing: looks whether the lists, the sources and what is kept of the last run go together' },
    write: { text: 'keeps what caught each, when every mutant was caught' },
    table: { text: 'runs nothing: writes the table of all mutants to coverage/mutants.md' },
    jobs: { value: 'N', number: [1], whole: true, initial: 2, text: 'workers' },
    list: { value: 'FILE', initial: path.relative(root, folder), text: 'another list, or folder of lists' },
  },
})
const progress = new Progress('mutants', 'runs')

mkdirSync(cache, { recursive: true })
try {
  await esbuild.build({
    absWorkingDir: root,
    entryPoints: ['test/mutants/run.ts', 'test/mutants/worker.ts'],
    outdir: cache,
    outExtension: { '.js': '.mjs' },
    bundle: true,
    packages: 'external',
    platform: 'node',
    format: 'esm',
    target: 'node20',
    logLevel: 'silent',
  })
  const { main } = await import(pathToFileURL(path.join(cache, 'run.mjs')).href)
  const good = await main({
    root,
    worker: path.join(cache, 'worker.mjs'),
    list: path.resolve(root, values.list),
    only: values.only.split(',').filter(Boolean),
    area: values.area,
    jobs: values.jobs,
    check: values.check,
    write: values.write,
    table: values.table ? path.join(root, 'coverage', 'mutants.md') : undefined,
    tell: (done, total) => progress.at(done, total),
  })
  process.exitCode = good ? 0 : 1
} catch (error) {
  console.error(error.message)
  process.exitCode = 1
} finally {
  progress.end()
  rmSync(cache, { recursive: true, force: true })
}
