/**
 * What `npm test` runs. Tests that depend on nothing but the processor share it; those with brokers, processes, clocks or browsers come after them,
 * one file at a time, so that what they measure or wait for is theirs.
 */
import { defineConfig } from 'vitest/config'

const pure = ['architecture', 'auth', 'client', 'conformance', 'corpus', 'fuzz', 'testing', 'wasm', 'wire'].map((name) => `test/${name}/**/*.test.ts`)

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
      {
        test: { ...common, name: 'alone', include: ['test/**/*.test.ts'], exclude: pure, fileParallelism: false, sequence: { groupOrder: 1 } },
      },
    ],
  },
})
