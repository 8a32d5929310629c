/** Coverage by V8 in the project that is counted, and in no other: what vitest calls a custom provider. */
import v8 from '@vitest/coverage-v8'

const counts = () => process.env.MQWIRE_COUNTED !== undefined

export default {
  getProvider: v8.getProvider,
  startCoverage: (options) => (counts() ? v8.startCoverage(options) : undefined),
  takeCoverage: (options) => (counts() ? v8.takeCoverage(options) : undefined),
  stopCoverage: (options) => (counts() ? v8.stopCoverage(options) : undefined),
}
