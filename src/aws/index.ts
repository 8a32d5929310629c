/**
 * `mqwire/aws`: connections to AWS IoT Core over WebSocket, with a new signature for each attempt. Nothing here is loaded by a client that does not pass it in.
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
