/** What `npm run screenshots` runs: it writes the pictures of the examples, and is no part of `npm test`. */
import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    root: '.',
    include: ['test/browser/*.shots.ts'],
    setupFiles: ['test/secrets-setup.ts'],
    fileParallelism: false,
    testTimeout: 60_000,
    hookTimeout: 60_000,
  },
})
