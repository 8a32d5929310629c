/** Makes one JavaScript file of the program of a cell, from the sources: what a cell runs needs no build of the package. */
import { mkdirSync } from 'node:fs'
import path from 'node:path'
import * as esbuild from 'esbuild'
import { nodeBundle } from '../../../support/node-bundle.js'

/** The file. It assumes that the working directory is the checkout. */
export async function bundleCell(entry = 'test/real/programs/ordinary/cell.ts'): Promise<string> {
  const folder = path.resolve('node_modules/.cache/mqwire')
  mkdirSync(folder, { recursive: true })
  const outfile = path.join(folder, `${path.basename(entry, '.ts')}-${process.pid}.mjs`)
  await esbuild.build({
    ...nodeBundle,
    entryPoints: [path.resolve(entry)],
    outfile,
    logLevel: 'warning',
  })
  return outfile
}
