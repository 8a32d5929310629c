/**
 * `mqwire/aws`: connections to AWS IoT Core over WebSocket, with a new signature for each attempt.
 * Clients that do not use it do not load this module.
 *
 * @module
 */
export {
  type AwsCredentials,
  type SignedUrl,
  type SigV4,
  type SigV4Context,
  type SigV4Options,
  sigv4,
} from './sigv4.js'
