/**
 * Prints how the rooms of `src` hang together: circles of imports, ports, classes, long files, and how often two walks through the client go from
 * one room to another.
 *
 *     npm run house
 *
 * Exits with 1 when one of them is over its limit. Writes below node_modules/.cache only.
 */
import { mkdirSync, readFileSync, rmSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import * as esbuild from 'esbuild'
import { argumentsOf } from '../examples/arguments.js'

const root = fileURLToPath(new URL('..', import.meta.url))
const cache = path.join(root, 'node_modules', '.cache', 'mqwire-house', String(process.pid))
argumentsOf({
  usage: 'npm run house',
  about: 'Prints how the rooms of src hang together: circles of imports, ports, classes, files, and two walks. Exits with 1 over a limit.',
})

const settings = { absWorkingDir: root, bundle: true, packages: 'external', platform: 'node', format: 'esm', target: 'node20', logLevel: 'silent' }

async function built(entry, plugins = []) {
  const outfile = path.join(cache, `${path.basename(entry, '.ts')}.mjs`)
  await esbuild.build({ ...settings, entryPoints: [entry], outfile, plugins })
  return import(pathToFileURL(outfile).href)
}

/** Every function of `src` says which room it is in. */
function tracing(traced) {
  const sources = path.join(root, 'src')
  return {
    name: 'traced',
    setup({ onLoad }) {
      onLoad({ filter: /\.ts$/ }, ({ path: file }) => {
        if (!file.startsWith(sources + path.sep)) return undefined
        const room = path.relative(sources, path.dirname(file)).split(path.sep).join('/') || 'src'
        return { contents: traced(readFileSync(file, 'utf8'), file, 'traceEnter', room), loader: 'ts' }
      })
    },
  }
}

mkdirSync(cache, { recursive: true })
try {
  const { report } = await built('test/architecture/report.ts')
  const { traced } = await built('test/architecture/trace.ts')
  const { inbound, outbound } = await built('test/architecture/walks.ts', [tracing(traced)])
  const { lines, over } = report(root, await inbound(), await outbound())
  console.log(lines.join('\n'))
  process.exitCode = over.length > 0 ? 1 : 0
} finally {
  rmSync(cache, { recursive: true, force: true })
}
