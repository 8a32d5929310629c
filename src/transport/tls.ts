/**
 * TLS over Node's `tls`.
 *
 * Chain and name of the peer are verified and the version is at least 1.2, whatever the environment says.
 * It must never go on with a stream that failed verification, nor try again with less.
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
 * Dials `mqtts:`, `ssl:` and `tls:` targets. Rejects with `ERR_INVALID_OPTION` before anything is dialled when certificates or keys cannot be used,
 * else with the platform's error, whose `code` says why (`CERT_HAS_EXPIRED`, `ERR_TLS_CERT_ALTNAME_INVALID`, …).
 */
export const dialTls: Dial = async (target, { signal }) => {
  signal.throwIfAborted()
  const context = clientContext(target.tls, hostOf(target.url))
  const { agent } = target.socket
  // Node's declarations lack `onread` and `highWaterMark` here; `tls.connect` hands both to the socket.
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
