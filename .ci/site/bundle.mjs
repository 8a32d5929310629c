/**
 * Builds what a page loads at the first Run or Edit: the modules that programs import, the worker that runs them, the editor, and what strips types.
 *
 * The modules are those of `dist/`, with two exceptions: `mqwire` dials a broker in memory, and `mqwire/store/level` keeps its stores in memory. All of
 * them share their chunks, so there is one client and one class of errors.
 */
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { build } from 'esbuild'
import { root } from '../fetch.mjs'
import { fileOf, modules } from './kinds.mjs'

const own = (name) => path.join(root, '.ci', 'site', 'run', name)
const replaced = new Map([
  ['mqwire', own('mqwire.js')],
  ['mqwire/store/level', own('level.js')],
])
const { exports: entries } = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8'))

const inPage = {
  name: 'in-page',
  setup(build) {
    build.onResolve({ filter: /^mqwire(?:\/|$)/ }, ({ path: name }) => {
      const entry = entries[name.replace('mqwire', '.')]
      return { path: replaced.get(name) ?? path.join(root, entry.default), sideEffects: false }
    })
  },
}

/** Builds into this folder. `packages` is the node_modules folder of the editor and of what strips types. */
export async function bundlePrograms(outdir, packages) {
  const options = {
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'browser',
    target: 'es2022',
    minify: true,
    legalComments: 'none',
    logLevel: 'error',
    absWorkingDir: root,
    nodePaths: [packages, path.join(root, 'node_modules')],
    plugins: [inPage],
    outdir,
  }
  const named = modules.map((name) => [fileOf(name).slice(0, -'.js'.length), name])
  await build({
    ...options,
    entryPoints: { ...Object.fromEntries(named), worker: own('worker.js') },
    inject: [own('timers.js')],
    // Programs print the names of classes.
    keepNames: true,
    chunkNames: 'shared/[hash]',
  })
  await build({
    ...options,
    entryPoints: { editor: own('editor.js'), strip: own('strip.js') },
    // Another version may lie in the checkout itself, which comes before `nodePaths`.
    alias: { 'es-module-lexer': path.join(packages, 'es-module-lexer') },
    chunkNames: 'shared/[hash]',
  })
}
