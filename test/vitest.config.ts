/**
 * What `npm test` runs. Tests that depend on nothing but the processor share it; so do, after them, those that build packages and run small programs to
 * their end. Those with brokers, clocks or browsers come last, one file at a time, so that what they measure or wait for is theirs.
 */
import { defineConfig } from 'vitest/config'

const pure = ['architecture', 'auth', 'client', 'conformance', 'corpus', 'fuzz', 'testing', 'wasm', 'wire'].map((name) => `test/${name}/**/*.test.ts`)

const builds = ['test/package/**/*.test.ts', 'test/examples/small*.test.ts']

const common = {
  setupFiles: ['test/secrets-setup.ts'],
  testTimeout: 20_000,
  hookTimeout: 60_000,
}

export default defineConfig({
  test: {
    root: '.',
    projects: [
      { test: { ...common, name: 'pure', include: pure, maxWorkers: 2, sequence: { groupOrder: 0 } } },
      { test: { ...common, testTimeout: 60_000, name: 'builds', include: builds, maxWorkers: 2, sequence: { groupOrder: 1 } } },
      {
        test: {
          ...common,
          name: 'alone',
          include: ['test/**/*.test.ts'],
          exclude: [...pure, ...builds],
          fileParallelism: false,
          sequence: { groupOrder: 2 },
        },
      },
    ],
  },
})
