/** Makes one file of the fault world and `src`, as they are or with a defect planted. Writes below node_modules/.cache only. */
import { mkdirSync, readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import * as esbuild from 'esbuild'
import { nodeBundle, root } from '../../node-bundle.js'
import type { PlantedDefect } from './defects.js'

const typed = path.join(root, 'src', 'typed')

/** Where bundles lie, to be removed in the end. */
export const bundles = path.join(root, 'node_modules', '.cache', 'mqwire-faults', String(process.pid))

/** The module of the fault world. Rejects where the text of the defect does not occur exactly once. */
export async function bundled(defect?: PlantedDefect): Promise<typeof import('./world.js')> {
  mkdirSync(bundles, { recursive: true })
  const outfile = path.join(bundles, `${defect?.name.replaceAll(/\W+/g, '-') ?? 'whole'}.mjs`)
  await esbuild.build({
    ...nodeBundle,
    entryPoints: ['test/typed/faults/world.ts'],
    outfile,
    plugins: defect === undefined ? [] : [planted(defect)],
  })
  return import(pathToFileURL(outfile).href)
}

function planted({ name, find, replace }: PlantedDefect): esbuild.Plugin {
  const files = readdirSync(typed).map((file) => path.join(typed, file))
  const texts = files.map((file) => readFileSync(file, 'utf8').split(find))
  const times = texts.reduce((sum, { length }) => sum + length - 1, 0)
  if (times !== 1) throw new Error(`defect '${name}': its text occurs ${times} times in src/typed`)
  const index = texts.findIndex(({ length }) => length === 2)
  return {
    name: 'planted',
    setup(build) {
      build.onLoad({ filter: /[\\/]src[\\/]typed[\\/]/ }, ({ path: file }) =>
        file === files[index] ? { contents: (texts[index] as string[]).join(replace), loader: 'ts' } : undefined,
      )
    },
  }
}
