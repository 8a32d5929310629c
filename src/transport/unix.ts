/**
 * Unix domain sockets (named pipes on Windows) over Node's `net`: dialling and listening. A socket
 * file created by others is never removed: a path in use is an error.
 *
 * @module
 */

import { createServer, connect as netConnect } from 'node:net'
import { checkNames } from './names.js'
import { dialSocket, highWaterMark, listenSocket } from './socket.js'
import type { Accept, Dial, Listener } from './transport.js'

/**
 * Path of a `unix:` URL, `unix:///path/to/socket` or `unix:/path/to/socket`, with percent escapes
 * decoded.
 */
export function pathOf(url: URL): string {
  return decodeURIComponent(url.pathname)
}

/** Dials `unix:` targets. Rejects with the socket's error (`ENOENT`, `EACCES`, `ECONNREFUSED`). */
export const dialUnix: Dial = (target, { signal }) =>
  dialSocket(
    (onread) => netConnect(Object.assign({ path: pathOf(target.url), highWaterMark }, { onread })),
    'connect',
    signal,
  )

/**
 * Accepts streams at `path`, which must not exist; closing the listener removes it. Rejects with
 * the platform's error when it cannot listen, with `ERR_INVALID_OPTION` for an unknown option.
 */
export async function listenUnix(
  options: { readonly path: string },
  accept: Accept,
): Promise<Listener> {
  checkNames('listenUnix', options, ['path'])
  const { path } = options
  const url = `unix://${path.split('/').map(encodeURIComponent).join('/')}`
  return listenSocket(createServer(), 'connection', { path }, () => url, accept)
}
