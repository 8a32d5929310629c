/** Makes one file of the finder's worker and the client. Writes below node_modules/.cache only. */
import { mkdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import * as esbuild from 'esbuild'
import { nodeBundle, root } from '../../support/node-bundle.js'

/** Where bundles lie, to be removed in the end. */
export const bundles = path.join(root, 'node_modules', '.cache', 'mqwire-finder', String(process.pid))

/** Modules find what lies beside their source. */
const places: esbuild.Plugin = {
  name: 'finder-sources',
  setup(build) {
    build.onLoad({ filter: /[\\/](test|src)[\\/].*\.ts$/ }, ({ path: file }) => ({
      contents: readFileSync(file, 'utf8').replaceAll('import.meta.url', JSON.stringify(pathToFileURL(file).href)),
      loader: 'ts',
    }))
  },
}

/** Bundles the worker; gives the file. */
export async function bundle(): Promise<string> {
  mkdirSync(bundles, { recursive: true })
  const outfile = path.join(bundles, 'worker.mjs')
  await esbuild.build({ ...nodeBundle, entryPoints: ['test/world/finder/worker.ts'], outfile, sourcemap: 'inline', plugins: [places] })
  return outfile
}
