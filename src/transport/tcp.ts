/**
 * TCP over Node's `net`: dialling and listening.
 *
 * It may assume a target whose URL was checked. It must never start TLS or fall back from it by itself: `mqtts` goes to tls.ts.
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

/** Dials `mqtt:` and `tcp:` targets. Rejects with the socket's error (`ECONNREFUSED`, `ENOTFOUND`, …), or with what their agent says. */
export const dialTcp: Dial = async (target, { signal }) => {
  const { agent } = target.socket
  if (agent) return duplexTransport(await openTunnel(target, agent, signal))
  return dialSocket(
    (onread) => netConnect({ ...socketOptionsOf(target), onread }),
    'connect',
    signal,
  )
}

/** Where and how {@link listenTcp} listens. */
export interface ListenTcpOptions {
  /** Address to bind. Default 127.0.0.1. */
  readonly host?: string | undefined
  /** Port to bind. Default 0: a free one, to be read from `Listener.url`. */
  readonly port?: number | undefined
  /** Speaks TLS with this certificate and key. With `ca`, clients must have a certificate of it. Default: no TLS. */
  readonly tls?: TlsOptions | undefined
}

/**
 * Accepts TCP streams, or TLS streams when `tls` is given. Rejects with the platform's error when it cannot listen, with `ERR_INVALID_OPTION` for an
 * option that there is not.
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
