/** What mutants are judged with: one thread, in which test files share their modules. */
import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'

const entry = fileURLToPath(new URL('../../../src/client/node.ts', import.meta.url))

export default defineConfig({
  // `mqwire/compat` stands on the sources.
  plugins: [
    {
      name: 'sources',
      enforce: 'pre',
      resolveId: (name, importer) =>
        name === 'mqwire' && importer?.includes('/src/compat/') ? entry : undefined,
    },
  ],
  test: {
    root: '.',
    include: ['test/**/*.test.ts'],
    setupFiles: [
      'test/lab/mutants/setup.ts',
      'test/support/secrets-setup.ts',
      'test/support/seed-setup.ts',
    ],
    testTimeout: 60_000,
    hookTimeout: 60_000,
    isolate: false,
    pool: 'threads',
    fileParallelism: false,
    maxWorkers: 1,
  },
})
