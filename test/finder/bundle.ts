/**
 * Makes one file of the finder's worker and the client, as they are or with a defect planted in the source.
 *
 * Writes below node_modules/.cache only. A defect replaces a piece of source text that has to occur exactly once.
 */
import { mkdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import * as esbuild from 'esbuild'
import { nodeBundle, root } from '../node-bundle.js'
import type { PlantedDefect } from './defects.js'

const cache = path.join(root, 'node_modules', '.cache', 'mqwire-finder', String(process.pid))

/** Bundles the worker; gives the file. Rejects where the text of the defect does not occur once. */
export async function bundle(defect?: PlantedDefect): Promise<string> {
  mkdirSync(cache, { recursive: true })
  const outfile = path.join(cache, `${defect?.name.replaceAll(/\W+/g, '-') ?? 'worker'}.mjs`)
  await esbuild.build({
    ...nodeBundle,
    entryPoints: ['test/finder/worker.ts'],
    outfile,
    sourcemap: 'inline',
    plugins: [sources(defect)],
  })
  return outfile
}

/** Where bundles lie, to be removed in the end. */
export const bundles = cache

// Modules find what lies beside their source, and one of them has the defect.
function sources(defect: PlantedDefect | undefined): esbuild.Plugin {
  const planted = defect === undefined ? undefined : path.join(root, 'src', defect.file)
  return {
    name: 'finder-sources',
    setup(build) {
      build.onLoad({ filter: /[\\/](test|src)[\\/].*\.ts$/ }, ({ path: file }) => {
        const text = readFileSync(file, 'utf8').replaceAll('import.meta.url', JSON.stringify(pathToFileURL(file).href))
        return { contents: file === planted && defect !== undefined ? replaced(text, defect) : text, loader: 'ts' }
      })
    },
  }
}

function replaced(text: string, { name, file, find, replace }: PlantedDefect): string {
  const times = text.split(find).length - 1
  if (times !== 1) throw new Error(`defect '${name}': its text occurs ${times} times in src/${file}`)
  return text.replace(find, () => replace)
}
