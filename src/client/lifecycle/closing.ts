/**
 * The end of a client: everything pending settles with what is known about it, and all timers are
 * stopped.
 */

import { tally } from '../../common/counters.js'
import { closedError } from '../../common/outcome.js'
import type { MqttError } from '../../errors.js'
import type { ClientInternals } from './internals.js'

/** Closes the connection without DISCONNECT, so the server publishes the will. */
export function destroy(parts: ClientInternals, error?: MqttError): void {
  const { states, connections } = parts
  if (states.ended) return
  states.by ||= 'destroy()'
  const link = connections.current
  link?.writer.stop()
  end(parts, error)
  link?.destroy(error)
}

/**
 * No connection will be made any more: everything that waits for one fails. While the client is
 * disconnecting, running turns continue.
 */
export function finish(parts: ClientInternals, error: MqttError | undefined): void {
  const { states } = parts
  if (states.current !== 'disconnecting') return end(parts, error)
  states.failure = error
  const reason = error ?? closedError(states)
  parts.reconnector.stop(reason)
  parts.publishing.end(reason, true)
  parts.subscriptions.senderIfUsed?.end(reason)
}

/** Ends the client and settles everything. */
export function end(parts: ClientInternals, error: MqttError | undefined): void {
  const { events, connections, publishing, subscriptions, session, states } = parts
  if (states.ended) return
  const asked = error === undefined || states.current === 'disconnecting'
  states.failure ??= error
  const reason = error ?? closedError(states)
  const link = connections.current
  events.transition(() => {
    if (!asked) reportEnd(parts, error)
    states.enter('closed')
    session.suspend()
    session.reset()
    connections.expiry?.()
    if (error === undefined) subscriptions.membership.letGo()
    parts.router.stop()
    parts.reconnector.stop(reason)
    subscriptions.end(error, reason)
    link?.writer.abandon(reason)
    publishing.end(reason, asked)
    for (const extra of parts.extras) extra.handleLost?.(reason)
    reportDown(parts, error)
    states.arrive()?.reject(reason)
    parts.log('info', error === undefined ? 'closed' : `closed: ${error.message}`)
    states.close(error)
    events.clear()
  })
}

/** Events that announce the end of a client. */
const endings = ['disconnect', 'state', 'serverdisconnect', 'error'] as const

// Reports an unexpected end, unless the program learns of it from a pending call, a loop, an event
// or `closed`.
function reportEnd(parts: ClientInternals, error: MqttError): void {
  const { states, events, subscriptions } = parts
  const reads = [...subscriptions.consumers].some(
    ({ attended, readers }) => attended && readers.handler === undefined,
  )
  if (states.watched || states.awaits || reads || endings.some((type) => events.isHeard(type)))
    return
  parts.report('MQWIRE_NOT_CONNECTED', 'the client has ended', error)
}

/** Emits `disconnect` if `connect` was emitted for this connection. */
export function reportDown(
  parts: ClientInternals,
  error: MqttError | undefined,
  reason?: string,
): void {
  const { events, connections } = parts
  if (!connections.up) return
  connections.up = false
  tally(parts, 'disconnects')
  events.emit('disconnect', { error, cause: error, reason })
}
