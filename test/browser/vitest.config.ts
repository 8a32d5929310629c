/** What `npm run lab -- browsers hidden` runs: minutes of real time, and so no part of `npm test`. */
import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    root: '.',
    include: ['test/browser/hidden-tab.suite.ts'],
    setupFiles: ['test/support/secrets-setup.ts'],
    hookTimeout: 60_000,
  },
})
