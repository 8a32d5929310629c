/**
 * TCP over Node's `net`: dialling and listening. The URL of a target must have been checked.
 * Dialling never uses TLS, nor falls back from it: `mqtts` is in tls.ts.
 *
 * @module
 */

import { createServer, connect as netConnect } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'
import { openTunnel } from './agent.js'
import { duplexTransport } from './duplex.js'
import { checkNames } from './names.js'
import { authorityOf, dialSocket, listenSocket } from './socket.js'
import { socketOptionsOf } from './socket-options.js'
import { serverContext } from './tls-context.js'
import type { Accept, Dial, Listener, TlsOptions } from './transport.js'

/**
 * Dials `mqtt:` and `tcp:` targets. Rejects with the socket's error (`ECONNREFUSED`, `ENOTFOUND`,
 * …) or the agent's.
 */
export const dialTcp: Dial = async (target, { signal }) => {
  const { agent } = target.socket
  if (agent) return duplexTransport(await openTunnel(target, agent, signal))
  return dialSocket(
    (onread) => netConnect({ ...socketOptionsOf(target), onread }),
    'connect',
    signal,
  )
}

/** Options of {@link listenTcp}. */
export interface ListenTcpOptions {
  /** Address to bind. Default 127.0.0.1. */
  readonly host?: string | undefined
  /** Port to bind. Default 0: any free one, shown in `Listener.url`. */
  readonly port?: number | undefined
  /**
   * Use TLS with this certificate and key. With `ca`, clients must have a certificate signed by it.
   * Default: no TLS.
   */
  readonly tls?: TlsOptions | undefined
}

/**
 * Accepts TCP streams, or TLS streams when `tls` is given. Rejects with the platform's error when
 * it cannot listen, with `ERR_INVALID_OPTION` for an unknown option.
 */
export async function listenTcp(options: ListenTcpOptions, accept: Accept): Promise<Listener> {
  checkNames('listenTcp', options, ['host', 'port', 'tls'])
  const { host = '127.0.0.1', port = 0, tls } = options
  const where = { host, port }
  if (!tls) {
    const server = createServer({ noDelay: true })
    return listenSocket(server, 'connection', where, () => `mqtt://${authorityOf(server)}`, accept)
  }
  const server = createTlsServer({ ...serverContext(tls), noDelay: true })
  return listenSocket(
    server,
    'secureConnection',
    where,
    () => `mqtts://${authorityOf(server)}`,
    accept,
  )
}
