/** What `npm run runtimes` runs once it has fetched the tools: the installed package under other runtimes, bundlers and checkers. */
import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    root: '.',
    include: ['test/package/runtimes/*.suite.ts'],
    setupFiles: ['test/secrets-setup.ts'],
    fileParallelism: false,
    testTimeout: 60_000,
    hookTimeout: 60_000,
  },
})
