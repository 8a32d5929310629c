/**
 * TCP over Node's `net`: dialling and listening.
 *
 * It may assume a target whose URL was checked. It must never start TLS or fall back from it by itself: `mqtts` goes to tls.ts.
 */

import { createServer, type LookupFunction, connect as netConnect } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'
import { authorityOf, dialSocket, highWaterMark, hostOf, listenSocket } from './socket.js'
import { serverContext } from './tls-context.js'
import type { Accept, Dial, Listener, SocketOptions, Target, TlsOptions } from './transport.js'

const defaultPorts: Readonly<Record<string, number>> = { 'mqtt:': 1883, 'tcp:': 1883, 'mqtts:': 8883, 'ssl:': 8883, 'tls:': 8883 }

/** Port of a target: the URL's, else 1883 for `mqtt` and `tcp`, 8883 for `mqtts`, `ssl` and `tls`. */
export function portOf(url: URL): number {
  return url.port === '' ? (defaultPorts[url.protocol] ?? 1883) : Number(url.port)
}

/** What `net.connect` and `tls.connect` take for a target: address and socket settings. */
export function socketOptionsOf(target: Target) {
  return { host: hostOf(target.url), port: portOf(target.url), highWaterMark, ...settingsOf(target.socket) }
}

/** Socket settings in Node's own terms; what was not set is left out. */
export function settingsOf({ noDelay = true, family, lookup, localAddress }: SocketOptions) {
  return {
    noDelay,
    ...(family && { family }),
    ...(lookup && { lookup: lookup as LookupFunction }),
    ...(localAddress !== undefined && { localAddress }),
  }
}

/** Dials `mqtt:` and `tcp:` targets. Rejects with the socket's error (`ECONNREFUSED`, `ENOTFOUND`, …). */
export const dialTcp: Dial = (target, { signal }) => dialSocket((onread) => netConnect({ ...socketOptionsOf(target), onread }), 'connect', signal)

/** Where and how {@link listenTcp} listens. */
export interface ListenTcpOptions {
  /** Address to bind. Default 127.0.0.1. */
  readonly host?: string | undefined
  /** Default 0: any free port, to be read from `Listener.url`. */
  readonly port?: number | undefined
  /** Speaks TLS with this certificate and key. With `ca`, clients must have a certificate of it. */
  readonly tls?: TlsOptions | undefined
}

/** Accepts TCP streams, or TLS streams when `tls` is given. Rejects with the platform's error when it cannot listen. */
export async function listenTcp({ host = '127.0.0.1', port = 0, tls }: ListenTcpOptions, accept: Accept): Promise<Listener> {
  const where = { host, port }
  if (!tls) {
    const server = createServer({ noDelay: true })
    return listenSocket(server, 'connection', where, () => `mqtt://${authorityOf(server)}`, accept)
  }
  const server = createTlsServer({ ...serverContext(tls), noDelay: true })
  return listenSocket(server, 'secureConnection', where, () => `mqtts://${authorityOf(server)}`, accept)
}
