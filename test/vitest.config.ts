/**
 * What the tests are, in five projects. `npm test` runs the first three, `npm run test:all` all of them; no file is in two.
 *
 * - `counted` and `pure` depend on nothing but the processor. They share their modules, file after file: nothing is loaded twice. `counted` are those
 *   whose branches are counted: no test of random inputs is among them, for a branch that is reached by chance is not covered.
 * - `quick` is a small run of each real thing: the package and its types, one broker, one page, sockets.
 * - `rest` are the long random runs, the other brokers, pages and programs. Much of it waits, so that it takes more workers than there are cores.
 * - `alone` measures time and memory, or stops what the whole machine shares: one file at a time, when nothing else runs.
 */
import { defineConfig } from 'vitest/config'

const counted = ['test/wire/**/*.test.ts', 'test/client/session/**/*.test.ts']
const random = ['test/wire/fuzz.test.ts', 'test/client/session/model.test.ts', 'test/**/*-property.test.ts']

const folders = ['architecture', 'auth', 'client', 'conformance', 'corpus', 'fuzz', 'testing', 'typed', 'wasm', 'wire', 'world']
const models = ['examples/checker', 'examples/dashboard-model', 'examples/dashboard-text', 'examples/stats', 'bench/pure', 'transcript/rules'].map(
  (name) => `test/${name}.test.ts`,
)
const pure = [...folders.map((name) => `test/${name}/**/*.test.ts`), ...models]

/** Of the pure ones, what runs for a time, or runs the same cases once more another way. */
const long = [
  'test/client/reconnect-fleet.test.ts',
  'test/corpus/memory-pieces.test.ts',
  'test/corpus/tcp.test.ts',
  'test/corpus/websocket.test.ts',
  'test/fuzz/client.test.ts',
  'test/fuzz/session.test.ts',
  'test/fuzz/wire.test.ts',
  'test/testing/broker/outside-*.test.ts',
  'test/typed/operation.test.ts',
  'test/wasm/fuzz.test.ts',
  'test/wasm/interleaved.test.ts',
  'test/world/world.test.ts',
]

const quick = [
  'test/browser/everything.test.ts',
  'test/examples/demo-broker.test.ts',
  'test/interop/matrix.test.ts',
  'test/interop/mosquitto.test.ts',
  'test/package/*.test.ts',
  ...['offline', 'request', 'service', 'unsent', 'ordinary/tap'].map((name) => `test/programs/${name}.test.ts`),
  'test/transport/*.test.ts',
]
const slow = [...['from-mqttjs', 'help', 'runs', 'testing'].map((name) => `test/package/${name}.test.ts`), 'test/transport/rows-transport.test.ts']

const rest = ['browser', 'differential', 'examples', 'finder', 'interop', 'mutants', 'programs', 'transcript'].map((name) => `test/${name}/*.test.ts`)

const alone = [
  'test/bench/command.test.ts',
  'test/bench/smoke.test.ts',
  'test/browser/hidden.test.ts',
  'test/browser/life.test.ts',
  'test/budgets/budgets.test.ts',
  'test/interop/handles.test.ts',
  'test/programs/leaks.test.ts',
  'test/programs/shaped-link.test.ts',
]

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
          exclude: random,
          env: { MQWIRE_COUNTED: 'yes' },
          isolate: false,
          maxWorkers: 2,
          sequence: { groupOrder: 0 },
        },
      },
      {
        test: {
          ...common,
          name: 'pure',
          include: [...pure, ...random],
          exclude: [...counted, ...long],
          isolate: false,
          maxWorkers: 2,
          sequence: { groupOrder: 1 },
        },
      },
      { test: { ...real, name: 'quick', include: quick, exclude: slow, maxWorkers: 3, sequence: { groupOrder: 2 } } },
      {
        test: {
          ...real,
          name: 'rest',
          include: [...rest, ...long, ...slow],
          exclude: [...models, ...quick.filter((name) => !name.includes('*')), ...alone],
          maxWorkers: 3,
          sequence: { groupOrder: 3 },
        },
      },
      { test: { ...common, name: 'alone', include: alone, fileParallelism: false, sequence: { groupOrder: 4 } } },
    ],
  },
})
