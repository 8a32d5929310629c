/**
 * The corpus of byte sequences that a server may send: how it is balanced, what is in it, and what a client makes of it.
 *
 *     node .ci/corpus.mjs                      the states, and the number of cases by packet type, state and end
 *     node .ci/corpus.mjs --json               every case as one line of JSON: name, version, packet, hex, and what is expected in each state
 *     node .ci/corpus.mjs --all [--only TEXT]  every case (or those with TEXT in their name) in every state: core, memory, TCP and WebSocket
 *
 * Exits with 1 when something was not as expected. Writes below node_modules/.cache only.
 */
import { mkdirSync, rmSync, writeSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import * as esbuild from 'esbuild'
import { argumentsOf } from '../examples/arguments.js'

const root = fileURLToPath(new URL('..', import.meta.url))
const cache = path.join(root, 'node_modules', '.cache', 'mqwire-corpus', String(process.pid))
const { values } = argumentsOf({
  usage: 'npm run corpus -- [options]',
  about: 'Counts the byte sequences that a server may send, by packet type, state and end; or lists them, or tries them.',
  options: {
    json: { text: 'every case as one line of JSON' },
    all: { text: 'every case in every state: core, memory, TCP and WebSocket; exits with 1 when something was not as expected' },
    only: { value: 'TEXT', initial: '', text: 'with --all: those cases with this in their name' },
  },
})

async function load() {
  const outfile = path.join(cache, 'corpus.mjs')
  await esbuild.build({
    absWorkingDir: root,
    entryPoints: ['test/corpus/main.ts'],
    outfile,
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node20',
    external: ['ws'],
    sourcemap: 'inline',
    logLevel: 'silent',
  })
  return import(pathToFileURL(outfile).href)
}

// All of it, also into a pipe that is slow.
function print(text) {
  const bytes = Buffer.from(`${text}\n`)
  for (let at = 0; at < bytes.length; ) {
    try {
      at += writeSync(1, bytes, at)
    } catch (error) {
      if (error.code !== 'EAGAIN') throw error
    }
  }
}

mkdirSync(cache, { recursive: true })
let good = true
try {
  const { table, lines, runAll } = await load()
  if (values.json) for (const line of lines()) print(line)
  else if (values.all) good = await runAll(values.only, print)
  else for (const line of table()) print(line)
} catch (error) {
  // Whoever reads the lines may have seen enough.
  if (error.code !== 'EPIPE') throw error
} finally {
  rmSync(cache, { recursive: true, force: true })
}
process.exitCode = good ? 0 : 1
