/**
 * What `npm test` runs. Tests that depend on nothing but the processor share it; so do, after them, those that build packages, open pages and sockets, or
 * ask one broker after the other. Those that measure, or play with time, memory and processes come last, one file at a time, so that what they wait for
 * is theirs.
 */
import { defineConfig } from 'vitest/config'

const pure = ['architecture', 'auth', 'client', 'conformance', 'corpus', 'fuzz', 'testing', 'wasm', 'wire', 'queue'].map(
  (name) => `test/${name}/**/*.test.ts`,
)

const pages = ['dashboard', 'dashboard-choices', 'everything', 'features', 'inside', 'policies', 'react', 'simulator', 'simulator-real', 'typed'].map(
  (name) => `test/browser/${name}.test.ts`,
)
const programs = ['dashboard*', 'simulator*', 'small*'].map((name) => `test/examples/${name}.test.ts`)
const brokers = ['aedes', 'matrix', 'mochi', 'mosquitto', 'scram-mochi', 'security'].map((name) => `test/interop/${name}.test.ts`)
const folders = ['differential', 'finder', 'mutants', 'package', 'transcript', 'transport', 'typed'].map((name) => `test/${name}/**/*.test.ts`)
const stores = ['contract', 'crashes', 'level-failing', 'record'].map((name) => `test/store/${name}.test.ts`)
const shared = [...pages, ...programs, ...brokers, ...folders, ...stores, 'test/programs/ordinary.test.ts']

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
      { test: { ...common, testTimeout: 60_000, name: 'shared', include: shared, maxWorkers: 2, sequence: { groupOrder: 1 } } },
      {
        test: {
          ...common,
          name: 'alone',
          include: ['test/**/*.test.ts'],
          exclude: [...pure, ...shared],
          fileParallelism: false,
          sequence: { groupOrder: 2 },
        },
      },
    ],
  },
})
