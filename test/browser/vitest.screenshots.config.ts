/** What `npm run lab -- browsers screenshots` runs: it writes the pictures of `examples/screenshots` anew, and so is no part of `npm test`. */
import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    root: '.',
    include: ['test/browser/*.shots.ts'],
    setupFiles: ['test/support/secrets-setup.ts'],
    fileParallelism: false,
    testTimeout: 180_000,
    hookTimeout: 60_000,
  },
})
