/** What `npm run interop` runs: the features on the brokers of `npm test`, and with MQWIRE_INTEROP=all on HiveMQ CE too, which takes longer. */
import { defineConfig } from 'vitest/config'

const files = [
  'aedes.test.ts',
  'mosquitto.test.ts',
  'mosquitto-transports.test.ts',
  'mochi.test.ts',
  ...(process.env['MQWIRE_INTEROP'] === 'all' ? ['hivemq.suite.ts', 'shares.suite.ts'] : []),
]

export default defineConfig({
  test: {
    root: '.',
    // Without the lines at the end of the screen that one of them draws: the last one has a line of its own, with the time left.
    reporters: [['default', { summary: false }], 'json', ['./.ci/progress-reporter.mjs', { name: 'interop' }]],
    include: files.map((name) => `test/interop/${name}`),
    setupFiles: ['test/secrets-setup.ts'],
    // One broker at a time: what is slow is then the broker. A Java process takes its time on a busy machine.
    fileParallelism: false,
    maxConcurrency: 3,
    env: { MQWIRE_PATIENCE: '40000' },
    testTimeout: 90_000,
    hookTimeout: 120_000,
  },
})
