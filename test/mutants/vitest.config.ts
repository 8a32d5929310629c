/** One test file at a time, in this process: what the runner of mutants starts from. */
import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    root: '.',
    include: ['test/**/*.test.ts'],
    setupFiles: ['test/secrets-setup.ts'],
    testTimeout: 20_000,
    hookTimeout: 60_000,
  },
})
