/**
 * What the runner takes from here before a target is built.
 */
export { bundle } from './bundler.js'
