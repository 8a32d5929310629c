/**
 * TLS over Node's `tls`.
 *
 * Certificate chain and name of the peer are verified and the version is at least 1.2, independent
 * of environment variables. A stream that failed verification is never used, and there is no retry
 * with weaker settings.
 *
 * @module
 */

import { connect } from 'node:tls'
import { openTunnel, secureOver } from './agent.js'
import { dialSocket, highWaterMark, hostOf, type MakeSocket } from './socket.js'
import { socketOptionsOf } from './socket-options.js'
import { clientContext } from './tls-context.js'
import type { Dial } from './transport.js'

/**
 * Dials `mqtts:`, `ssl:` and `tls:` targets. Rejects with `ERR_INVALID_OPTION` before dialling when
 * certificates or keys are unusable, otherwise with the platform's error, whose `code` gives the
 * reason (`CERT_HAS_EXPIRED`, `ERR_TLS_CERT_ALTNAME_INVALID`, …).
 */
export const dialTls: Dial = async (target, { signal }) => {
  signal.throwIfAborted()
  const context = clientContext(target.tls, hostOf(target.url))
  const { agent } = target.socket
  // Node's type declarations lack `onread` and `highWaterMark` here; `tls.connect` passes both to
  // the socket.
  if (agent) {
    const stream = await openTunnel(target, agent, signal)
    const make: MakeSocket = (onread) =>
      secureOver(stream, Object.assign({ highWaterMark }, context, { onread }))
    return dialSocket(make, 'secureConnect', signal).catch((error: unknown) => {
      stream.destroy()
      throw error
    })
  }
  const options = { ...socketOptionsOf(target), ...context }
  return dialSocket(
    (onread) => connect(Object.assign(options, { onread })),
    'secureConnect',
    signal,
  )
}
