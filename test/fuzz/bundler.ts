/**
 * Builds the fuzz targets with everything they test into one file, with counters in `src`.
 *
 * Used by the runner and by the tests.
 */
import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { build, type Plugin } from 'esbuild'
import { nodeBundle } from '../support/node-bundle.js'
import { instrument } from './instrument.js'

const hits = '__mqwireHits'

/** Where counters are put, in this order: the codec first, so that its counters can be looked at alone. */
const folders = [
  'src/wire',
  'src/client/session',
  'src/client',
  'src/errors.ts',
  'src/wasm',
] as const

/** Bundles `entry` (below the project's root) to `outfile`, whose name it gives. */
export async function bundle(root: string, entry: string, outfile: string): Promise<string> {
  const sources = new Map<string, string>()
  let count = 0
  let wire = 0
  const files = new Set(folders.flatMap((folder) => filesIn(root, folder)))
  for (const file of files) {
    const made = instrument(readFileSync(file, 'utf8'), file, hits, count)
    sources.set(file, made.code)
    count += made.count
    if (file.startsWith(path.join(root, folders[0]))) wire = count
  }
  const counting: Plugin = {
    name: 'counters',
    setup({ onLoad }) {
      onLoad({ filter: /\.ts$/ }, ({ path: file }) => {
        const contents = sources.get(file)
        return contents === undefined ? undefined : { contents, loader: 'ts' }
      })
    },
  }
  const js = `const ${hits} = (globalThis.mqwireHits ??= new Uint32Array(${count})); globalThis.mqwireWire = ${wire};`
  await build({ ...nodeBundle, entryPoints: [entry], outfile, banner: { js }, plugins: [counting] })
  return outfile
}

// Sorted, so that a counter has the same number in every build of the same sources.
function filesIn(root: string, folder: string): string[] {
  const full = path.join(root, folder)
  if (folder.endsWith('.ts')) return [full]
  return readdirSync(full, { recursive: true })
    .map(String)
    .filter((name) => name.endsWith('.ts'))
    .sort()
    .map((name) => path.join(full, name))
}
