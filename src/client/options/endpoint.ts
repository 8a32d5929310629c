/**
 * Where a broker listens. Types only.
 */
import type { SocketOptions, TlsOptions, Transport } from '../../transport/transport.js'

/** Replaces the built-in dialling of an endpoint. */
export type CustomTransport = (
  endpoint: Endpoint,
  options: { signal: AbortSignal },
) => Promise<Transport> | Transport

/** An endpoint with settings of its own. A setting that the platform cannot honour is refused (`ERR_UNSUPPORTED_OPTION`), never ignored. */
export interface EndpointOptions {
  /** Scheme, host, port and path, such as `wss://broker.example/mqtt`, without a fragment. User-info becomes user name and password (section 3.1.3.5). */
  readonly url: string | URL
  /** Certificates and their verification, for `mqtts:`, `ssl:`, `tls:` and `wss:`. Node only. Default: the platform's authorities. */
  readonly tls?: TlsOptions | undefined
  /** HTTP headers of the WebSocket handshake. Node only, and not in Bun. Default: none. */
  readonly headers?: Readonly<Record<string, string>> | undefined
  /** WebSocket sub-protocols, of which the server has to pick one: different tokens [MQTT-6.0.0-3]. Default `['mqtt']`. */
  readonly protocols?: readonly string[] | undefined
  /** Settings of the TCP socket, not for `unix:`. Node only. Default: the platform's. */
  readonly socket?: SocketOptions | undefined
  /** Opens the stream in place of the built-in transports; the URL may then have any scheme. Default: none. */
  readonly transport?: CustomTransport | undefined
}

/** Where a broker listens. Schemes: `mqtt`, `tcp`, `mqtts`, `ssl`, `tls`, `ws`, `wss`, `unix`. */
export type Endpoint = string | URL | EndpointOptions
