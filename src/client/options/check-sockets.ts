/**
 * Checks the settings of TLS and of sockets, on platforms that have them: apart from
 * `check-endpoint.ts`, so that a bundle for browsers does not carry them.
 */
import {
  boolean,
  bytes,
  callable,
  object,
  oneOf,
  optional,
  type Parser,
  string,
  that,
} from '../../common/schema.js'
import type { SocketAgent, SocketOptions, TlsOptions } from '../../transport/transport.js'

const strings: Parser<readonly string[]> = that(
  (value) => Array.isArray(value) && value.every((item) => typeof item === 'string'),
  'an array of strings',
)
const pem: Parser<string | Uint8Array> = (value, path) =>
  typeof value === 'string' ? value : bytes(value, path)
const authorities: Parser<NonNullable<TlsOptions['ca']>> = (value, path) =>
  Array.isArray(value) ? value.map((item) => pem(item, path)) : pem(value, path)

/** Checks TLS settings. @throws MqttError ERR_INVALID_OPTION */
export const tlsSettings: Parser<TlsOptions> = object<TlsOptions>({
  ca: optional(authorities),
  cert: optional(pem),
  key: optional(pem),
  passphrase: optional(string),
  servername: optional(string),
  alpn: optional(strings),
  minVersion: optional(oneOf('TLSv1.2', 'TLSv1.3')),
  insecure: optional(
    that(
      (value) => typeof value === 'string' && value !== '',
      'the reason, as a string that is not empty',
    ),
  ),
})

// Agents are instances of other classes, so only their methods are checked.
const agent: Parser<SocketAgent> = that((value) => {
  const { connect, createConnection } = Object(value) as {
    connect?: unknown
    createConnection?: unknown
  }
  return (
    typeof value !== 'function' &&
    (typeof connect === 'function' || typeof createConnection === 'function')
  )
}, 'an agent with connect() or createConnection()')

/** Checks socket settings. @throws MqttError ERR_INVALID_OPTION */
export const socketSettings: Parser<SocketOptions> = object<SocketOptions>({
  noDelay: optional(boolean),
  family: optional(oneOf(4, 6)),
  lookup: optional(callable),
  localAddress: optional(string),
  agent: optional(agent),
})
