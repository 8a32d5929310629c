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
  ...[
    'architecture',
    'auth',
    'aws',
    'client',
    'conformance',
    'corpus',
    'differential',
    'fuzz',
    'group',
    'members',
    'pool',
    'queue',
    'support',
    'testing',
    'tracing',
    'typed',
    'wasm',
    'wire',
    'world',
  ].map((name) => `test/${name}/**/*.test.ts`),
  'test/bench/pure.test.ts',
  'test/compat/listeners.test.ts',
  'test/compat/options.test.ts',
  'test/examples/checker.test.ts',
  'test/examples/dashboard-model.test.ts',
  'test/examples/dashboard-text.test.ts',
  'test/examples/stats.test.ts',
  'test/transcript/rules.test.ts',
]

/** Long: at random for many seeds, at every byte, or the same cases once more in another way; or they count work, for which a process has to be fresh. */
const long = [
  'test/client/cost*.test.ts',
  'test/client/subscription-cost.test.ts',
  'test/client/inbound-bytes.test.ts',
  'test/client/large-uploads-sockets.test.ts',
  'test/client/reconnect-fleet.test.ts',
  'test/client/registry-model.test.ts',
  'test/client/replay-bytes.test.ts',
  'test/client/session-lost-bytes.test.ts',
  'test/client/hostile-properties.test.ts',
  'test/client/settle.test.ts',
  'test/corpus/core.test.ts',
  'test/corpus/memory-*.test.ts',
  'test/fuzz/search.test.ts',
  'test/queue/cost.test.ts',
  'test/testing/broker/outside-*.test.ts',
  'test/typed/asyncapi-contracts.test.ts',
  'test/typed/faults/*.test.ts',
  'test/typed/latest-attacks.test.ts',
  'test/typed/latest-cost.test.ts',
  'test/typed/mosquitto.test.ts',
  'test/typed/operation.test.ts',
  'test/typed/python.test.ts',
  'test/wasm/fuzz.test.ts',
  'test/wasm/interleaved.test.ts',
  'test/wasm/text.test.ts',
  'test/wasm/topics.test.ts',
  'test/wasm/vectors.test.ts',
]

const real = [
  'test/browser/everything.test.ts',
  // What a process does at its end, in one where no other file has left clients.
  'test/client/process-end.test.ts',
  'test/interop/mosquitto.test.ts',
  ...['api', 'bundle', 'entries', 'errors-table', 'events-table', 'exports', 'lint', 'lock', 'option-docs', 'published', 'types'].map(
    (name) => `test/package/${name}.test.ts`,
  ),
  'test/store/*.test.ts',
  'test/transport/*.test.ts',
  // Memory that is given away, or held: in a process whose engine has seen no other.
  'test/client/message-memory.test.ts',
  'test/wire/read-once.test.ts',
  // Worlds count every timer of their process.
  'test/support/checkers.test.ts',
  'test/world/**/*.test.ts',
]

/** In tests of it, `mqwire/compat` stands on the sources. */
const sources: Plugin = {
  name: 'sources',
  enforce: 'pre',
  resolveId: (name, importer) => (name === 'mqwire' && importer?.includes('/src/compat/') ? entry : undefined),
}
const entry = fileURLToPath(new URL('../src/client/node.ts', import.meta.url))

const common = {
  globalSetup: ['test/temporary.ts'],
  setupFiles: ['test/secrets-setup.ts', 'test/seed-setup.ts'],
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
        test: { ...common, name: 'pure', include: pure, exclude: [...long, ...real], isolate: false, maxWorkers: 2, sequence: { groupOrder: 0 } },
      },
      // Compilers and npm take minutes where another program keeps the processor busy.
      { test: { ...common, testTimeout: 240_000, hookTimeout: 240_000, name: 'real', include: real, maxWorkers: 2, sequence: { groupOrder: 1 } } },
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
