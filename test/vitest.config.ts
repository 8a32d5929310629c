/**
 * What the tests are, in five projects. `npm test` runs the first three, `npm run test:all` all of them; no file is in two.
 *
 * - `counted` and `pure` depend on nothing but the processor. `counted` are those whose branches are counted: no test of random inputs is among them, for a
 *   branch that is reached by chance is not covered. Each file has modules of its own: with `isolate: false` a third of the processor time
 *   would be saved, but files failed now and then that pass by themselves.
 * - `quick` is a small run of each real thing: the package and its types, one broker, one page, sockets.
 * - `rest` are the long random runs, the other brokers, pages and programs. Much of it waits, so that it takes more workers than there are cores.
 * - `alone` measures time and memory, or stops what the whole machine shares: one file at a time, when nothing else runs.
 */
import { fileURLToPath } from 'node:url'
import { defineConfig, type Plugin } from 'vitest/config'

const counted = ['test/wire/**/*.test.ts', 'test/client/session/**/*.test.ts']
const random = ['test/wire/fuzz.test.ts', 'test/client/session/model.test.ts', 'test/**/*-property.test.ts']

const folders = [
  'architecture',
  'auth',
  'aws',
  'client/common',
  'client/durable',
  'client/fleet',
  'conformance',
  'corpus',
  'fuzz',
  'members',
  'pool',
  'group',
  'queue',
  'tracing',
  'testing',
  'typed',
  'wasm',
  'world',
].map((name) => `test/${name}/**/*.test.ts`)
const models = [
  'test/bench/pure.test.ts',
  'test/compat/listeners.test.ts',
  'test/compat/options.test.ts',
  'test/examples/checker.test.ts',
  'test/examples/dashboard-model.test.ts',
  'test/examples/dashboard-text.test.ts',
  'test/examples/stats.test.ts',
  'test/transcript/rules.test.ts',
]
const pure = ['test/client/*.test.ts', ...folders, ...models, ...random]

/** Of the pure ones, what runs for long: at random, over every byte, or over the same cases once more in another way. */
const long = [
  'test/client/inbound-bytes.test.ts',
  'test/client/large-uploads-sockets.test.ts',
  'test/client/reconnect-fleet.test.ts',
  'test/client/registry-model.test.ts',
  'test/client/replay-bytes.test.ts',
  'test/client/session-lost-bytes.test.ts',
  'test/client/hostile-properties.test.ts',
  'test/client/settle.test.ts',
  'test/conformance/rows.test.ts',
  'test/corpus/core.test.ts',
  'test/corpus/memory-*.test.ts',
  'test/corpus/tcp.test.ts',
  'test/corpus/websocket.test.ts',
  'test/fuzz/client.test.ts',
  'test/fuzz/search.test.ts',
  'test/fuzz/seeds.test.ts',
  'test/fuzz/session.test.ts',
  'test/fuzz/wire.test.ts',
  'test/testing/broker/outside-*.test.ts',
  'test/typed/faults/*.test.ts',
  'test/typed/latest-attacks.test.ts',
  'test/typed/mosquitto.test.ts',
  'test/typed/operation.test.ts',
  'test/typed/python.test.ts',
  'test/wasm/fuzz.test.ts',
  'test/wasm/interleaved.test.ts',
  'test/wasm/text.test.ts',
  'test/wasm/topics.test.ts',
  'test/wasm/vectors.test.ts',
  'test/world/durable/world.test.ts',
  'test/world/many/world.test.ts',
  'test/world/world.test.ts',
]

const quick = [
  'test/browser/everything.test.ts',
  'test/examples/demo-broker.test.ts',
  'test/interop/matrix.test.ts',
  'test/interop/mosquitto.test.ts',
  'test/package/*.test.ts',
  'test/programs/offline.test.ts',
  'test/programs/ordinary/tap.test.ts',
  'test/programs/request.test.ts',
  'test/programs/service.test.ts',
  'test/programs/unsent.test.ts',
  'test/store/*.test.ts',
  'test/transport/*.test.ts',
]
const slow = [
  'test/package/bundle.test.ts',
  'test/package/compat-types.test.ts',
  'test/package/exports.test.ts',
  'test/package/from-mqttjs.test.ts',
  'test/package/help.test.ts',
  'test/package/internal-names.test.ts',
  'test/package/readme.test.ts',
  'test/package/runs.test.ts',
  'test/package/testing.test.ts',
  'test/package/typed-types.test.ts',
  'test/package/types.test.ts',
  'test/store/contract.test.ts',
  'test/store/level.test.ts',
  'test/transport/agents.test.ts',
  'test/transport/unix.test.ts',
  'test/transport/with-client.test.ts',
]

const rest = [
  'test/bench/command.test.ts',
  'test/bench/durable.test.ts',
  'test/bench/smoke.test.ts',
  'test/bench/typed.test.ts',
  ...['browser', 'compat', 'differential', 'examples', 'finder', 'interop', 'mutants', 'programs', 'transcript'].map(
    (name) => `test/${name}/*.test.ts`,
  ),
]

const alone = ['test/browser/hidden.test.ts', 'test/browser/life.test.ts', 'test/budgets/budgets.test.ts', 'test/programs/shaped-link.test.ts']

/** In tests of it, `mqwire/compat` stands on the sources. */
const sources: Plugin = {
  name: 'sources',
  enforce: 'pre',
  resolveId: (name, importer) => (name === 'mqwire' && importer?.includes('/src/compat/') ? entry : undefined),
}
const entry = fileURLToPath(new URL('../src/client/node.ts', import.meta.url))

const common = {
  setupFiles: ['test/secrets-setup.ts'],
  testTimeout: 20_000,
  hookTimeout: 60_000,
}
const real = { ...common, testTimeout: 60_000 }

export default defineConfig({
  test: {
    root: '.',
    // On a terminal the last lines tell what is going on; elsewhere one comes every few seconds.
    reporters: process.stdout.isTTY ? ['default'] : ['default', ['./.ci/progress-reporter.mjs', { name: 'tests', interval: 5000 }]],
    coverage: {
      provider: 'custom',
      customProviderModule: './.ci/coverage-provider.mjs',
      include: ['src/wire/**/*.ts', 'src/client/session/**/*.ts'],
      reporter: ['json'],
      reportOnFailure: true,
    },
    projects: [
      {
        test: {
          ...common,
          // Counting takes its time, too.
          testTimeout: 60_000,
          name: 'counted',
          include: counted,
          exclude: [...random, ...long],
          env: { MQWIRE_COUNTED: 'yes' },
          maxWorkers: 2,
          sequence: { groupOrder: 0 },
        },
      },
      {
        plugins: [sources],
        test: {
          ...common,
          // Under a load that is not theirs, long ones take three times as long.
          testTimeout: 60_000,
          name: 'pure',
          include: pure,
          exclude: long,
          maxWorkers: 2,
          sequence: { groupOrder: 0 },
        },
      },
      { test: { ...real, name: 'quick', include: quick, exclude: slow, maxWorkers: 3, sequence: { groupOrder: 2 } } },
      {
        plugins: [sources],
        test: {
          ...real,
          name: 'rest',
          include: [...rest, ...long, ...slow],
          exclude: [...models, ...quick.filter((name) => !name.includes('*')), ...alone],
          maxWorkers: 4,
          sequence: { groupOrder: 3 },
        },
      },
      { test: { ...common, name: 'alone', include: alone, fileParallelism: false, sequence: { groupOrder: 4 } } },
    ],
  },
})
