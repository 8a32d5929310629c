/**
 * `mqwire/auth`: mechanisms for the client option `auth`. Nothing here is loaded by a client that does not pass one in.
 *
 * @module
 */
export { type ScramContext, type ScramOptions, type ScramSha256, scramSha256 } from './scram.js'
