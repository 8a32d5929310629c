/** What `npm run lab -- runtimes` runs once it has fetched the tools; frameworks only with the word `all`, which sets MQWIRE_FRAMEWORKS. */
import { configDefaults, defineConfig } from 'vitest/config'

const leftOut = process.env['MQWIRE_FRAMEWORKS'] === undefined ? ['next', 'react-native'] : []

export default defineConfig({
  test: {
    root: '.',
    include: ['test/package/runtimes/*.suite.ts'],
    exclude: [
      ...configDefaults.exclude,
      ...leftOut.map((name) => `test/package/runtimes/${name}.suite.ts`),
    ],
    setupFiles: ['test/support/secrets-setup.ts'],
    fileParallelism: false,
    testTimeout: 60_000,
    hookTimeout: 60_000,
  },
})
