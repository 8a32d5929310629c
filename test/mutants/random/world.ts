/**
 * Asks the virtual world about mutants that the tests did not notice: a bundle and a thread for each.
 *
 * It may assume that the world finds nothing without a mutant.
 */
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { Worker } from 'node:worker_threads'
import * as esbuild from 'esbuild'

/** Seconds for each: every scenario, resets at their steps, and random seeds until then. */
const limit = 10

/** Bundles the world, with these texts in place of what the files hold. */
export async function bundleWorld(root: string, outfile: string, sources: ReadonlyMap<string, string>): Promise<void> {
  await esbuild.build({
    absWorkingDir: root,
    entryPoints: ['test/world/main.ts'],
    outfile,
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node20',
    external: ['ws'],
    logLevel: 'silent',
    plugins: [
      {
        name: 'random-mutants',
        setup: (build) => {
          build.onLoad({ filter: /\.ts$/ }, ({ path: name }) => {
            const contents = sources.get(path.relative(root, name).split(path.sep).join('/')) ?? readFileSync(name, 'utf8')
            return { contents, loader: 'ts' }
          })
        },
      },
    ],
  })
}

interface Done {
  readonly failed: number
  readonly reports: readonly { readonly rule: string; readonly detail: string; readonly seed: number }[]
}

/** What the world of this bundle finds; undefined when nothing. */
export function askWorld(file: string): Promise<string | undefined> {
  return new Promise((resolve) => {
    const task = { first: 1, seeds: 0, enumerate: false, only: '', hasty: true, scanner: false, limit, part: 0, parts: 1 }
    const worker = new Worker(file, { workerData: task })
    const end = (found: string | undefined): void => {
      clearTimeout(timer)
      void worker.terminate()
      resolve(found)
    }
    const timer = setTimeout(() => end('time limit'), limit * 1000 + 20_000)
    worker.on('message', ({ failed, reports }: Done) => {
      const [report] = reports
      end(failed === 0 ? undefined : `${report?.rule ?? 'a finding'}: ${report?.detail ?? ''}, seed ${report?.seed ?? ''}`)
    })
    worker.on('error', (error: Error) => end(`error: ${error.message}`))
    worker.on('exit', (code) => end(`ended with ${code}`))
  })
}
