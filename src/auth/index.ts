/**
 * `mqwire/auth`: mechanisms for the client option `auth`. Clients that do not use one do not load
 * this module.
 *
 * @module
 */
export { type ScramContext, type ScramOptions, type ScramSha256, scramSha256 } from './scram.js'
