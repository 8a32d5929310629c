/**
 * Compares what programs print with the transcripts below test/transcript: broken programs, and `console.log` of what a program gets into its hands, in
 * Node and in Chromium. `npm test` does the same; what Deno and Bun print is compared by `npm run runtimes`.
 *
 *     npm run transcript               compares
 *     npm run transcript -- --update   writes the transcripts anew; each line still has to follow the rules of test/transcript/rules.ts
 */
import { spawnSync } from 'node:child_process'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { argumentsOf } from '../examples/arguments.js'

const root = fileURLToPath(new URL('..', import.meta.url))
const { update } = argumentsOf({
  usage: 'npm run transcript -- [options]',
  about: 'Compares what programs print, in Node and in Chromium, with the transcripts below test/transcript.',
  options: { update: { text: 'writes the transcripts anew' } },
}).values
const vitest = path.join(root, 'node_modules', 'vitest', 'vitest.mjs')
const env = { ...process.env, ...(update && { MQWIRE_TRANSCRIPT: 'update' }) }
const run = spawnSync(process.execPath, [vitest, 'run', '--config', 'test/vitest.config.ts', 'test/transcript'], { cwd: root, env, stdio: 'inherit' })
process.exitCode = run.status ?? 1
