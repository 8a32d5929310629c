/** What the bundles of programs that tests run in Node have in common: sources of the checkout in one module, and the packages beside it. */
import { fileURLToPath } from 'node:url'
import type { BuildOptions } from 'esbuild'

export const root: string = fileURLToPath(new URL('../..', import.meta.url))

export const nodeBundle = {
  absWorkingDir: root,
  bundle: true,
  platform: 'node',
  format: 'esm',
  target: 'node20',
  packages: 'external',
  logLevel: 'silent',
} as const satisfies BuildOptions
