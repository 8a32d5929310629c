/**
 * What the tests take from a build of the targets: everything in one file has one set of counters.
 */
export * as counters from './counters.js'
export * as search from './search.js'
export * as targets from './targets.js'
