/**
 * The tests in three projects. `npm test` runs the first two; `npm run lab` runs files of the third by name.
 *
 * - `pure` depends on nothing but the processor, under virtual time and with fixed seeds. Its files share modules (`isolate: false`, a third less
 *   processor time), so a file must leave globals and module state as it found them.
 * - `real` is a small run of each real thing: sockets, the packed package, one mosquitto, one page in Chromium.
 * - `lab` is everything else, with its reasons in `docs/proofs.md`.
 */
import { fileURLToPath } from 'node:url'
import { defineConfig, type Plugin } from 'vitest/config'

const pure = [
  ...['broker', 'fuzz', 'lab/differential', 'rules', 'support', 'unit'].map(
    (name) => `test/${name}/**/*.test.ts`,
  ),
  'test/package/transcript/rules.test.ts',
]

/** Long: at random for many seeds, at every byte, or the same cases once more in another way; or they count work, for which a process has to be fresh. */
const long = [
  'test/unit/client/cost.test.ts',
  'test/unit/client/registry-model.test.ts',
  'test/rules/corpus/memory-client.test.ts',
  'test/fuzz/search.test.ts',
  'test/unit/compat/{calls,events,messages}.test.ts',
  'test/unit/queue/cost.test.ts',
  'test/broker/outside-*.test.ts',
  'test/unit/typed/faults/*.test.ts',
  'test/unit/typed/latest-attacks.test.ts',
  'test/unit/typed/latest-cost.test.ts',
  'test/unit/typed/mosquitto.test.ts',
  'test/unit/typed/operation.test.ts',
  'test/unit/wasm/compared.test.ts',
]

const real = [
  'test/browser/everything.test.ts',
  // What a process does at its end, in one where no other file has left clients.
  'test/unit/client/process-end.test.ts',
  'test/real/mosquitto.test.ts',
  ...['api', 'bundle', 'docs-tables', 'entries', 'tarball'].map(
    (name) => `test/package/${name}.test.ts`,
  ),
  'test/cli/commands.test.ts',
  'test/cli/endings.test.ts',
  'test/cli/loads.test.ts',
  'test/types/types.test.ts',
  'test/unit/store/*.test.ts',
  'test/unit/transport/*.test.ts',
  // Memory that is given away, or held: in a process whose engine has seen no other.
  'test/unit/client/message-memory.test.ts',
  'test/unit/wire/read-once.test.ts',
  // Worlds count every timer of their process.
  'test/support/checkers.test.ts',
  'test/world/*.test.ts',
]

/** In tests of it, `mqwire/compat` stands on the sources. */
const sources: Plugin = {
  name: 'sources',
  enforce: 'pre',
  resolveId: (name, importer) =>
    name === 'mqwire' && importer?.includes('/src/compat/') ? entry : undefined,
}
const entry = fileURLToPath(new URL('../src/client/node.ts', import.meta.url))

const common = {
  globalSetup: ['test/support/temporary.ts'],
  setupFiles: ['test/support/secrets-setup.ts', 'test/support/seed-setup.ts'],
  testTimeout: 60_000,
  hookTimeout: 60_000,
  // What has to come is waited for: a busy machine makes no test fail.
  expect: { poll: { timeout: 30_000 } },
}

export default defineConfig({
  test: {
    root: '.',
    // Of `npm run lab -- coverage` alone.
    coverage: {
      include: ['src/wire/**/*.ts', 'src/client/session/**/*.ts'],
      reporter: ['text'],
      thresholds: {
        'src/wire/**': { statements: 99, branches: 99, functions: 99, lines: 99 },
        'src/client/session/**': { statements: 99, branches: 99, functions: 97, lines: 99 },
      },
    },
    projects: [
      {
        plugins: [sources],
        test: {
          ...common,
          name: 'pure',
          include: pure,
          exclude: [...long, ...real],
          isolate: false,
          maxWorkers: 2,
          sequence: { groupOrder: 0 },
        },
      },
      // Compilers and npm take minutes where another program keeps the processor busy.
      {
        test: {
          ...common,
          testTimeout: 240_000,
          hookTimeout: 240_000,
          name: 'real',
          include: real,
          maxWorkers: 2,
          sequence: { groupOrder: 1 },
        },
      },
      {
        plugins: [sources],
        test: {
          ...common,
          name: 'lab',
          include: ['test/**/*.test.ts', 'test/**/*.suite.ts'],
          exclude: ['test/browser/*.suite.ts'],
          testTimeout: 1_200_000,
          maxWorkers: 2,
          sequence: { groupOrder: 2 },
        },
      },
    ],
  },
})
