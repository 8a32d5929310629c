/**
 * The end of a client: everything that is pending settles, each with what is known about it, and no timer is left.
 */

import type { MqttError } from '../../errors.js'
import { tally } from '../common/counters.js'
import { closedError } from '../common/outcome.js'
import type { Parts } from './parts.js'

/** Cuts the connection without DISCONNECT: the server publishes the will. */
export function destroy(parts: Parts, error?: MqttError): void {
  const { states, links } = parts
  if (states.ended) return
  const link = links.current
  link?.writer.stop()
  end(parts, error)
  link?.destroy(error)
}

/** No connection will come, because of this: what waits for one is over. Turns that run while the client ends go on. */
export function finish(parts: Parts, error: MqttError | undefined): void {
  const { states } = parts
  if (states.current !== 'disconnecting') return end(parts, error)
  const reason = error ?? closedError()
  states.failure = error
  parts.dialling.stop(reason)
  parts.publishQueue.end(reason)
  parts.registry.sender.end(reason)
}

/** The end of everything. */
export function end(parts: Parts, error: MqttError | undefined): void {
  const { events, links, publishQueue, registry, session, states } = parts
  if (states.ended) return
  const reason = error ?? closedError()
  const link = links.current
  events.transition(() => {
    states.enter('closed')
    session.suspend()
    session.reset()
    links.expiry?.()
    if (error === undefined) registry.membership.letGo()
    parts.router.stop()
    parts.dialling.stop(reason)
    registry.end(error, reason)
    link?.writer.abandon(reason)
    publishQueue.end(reason)
    for (const extra of parts.extras) extra.handleLost?.(reason)
    tellDown(parts, error)
    states.arrive()?.reject(reason)
    parts.log('info', error === undefined ? 'closed' : `closed: ${error.message}`)
    states.closed.resolve(error)
    events.clear()
  })
}

/** The connection is over, where `connect` told of it. */
export function tellDown(parts: Parts, error: MqttError | undefined, reason?: string): void {
  const { events, links } = parts
  if (!links.up) return
  links.up = false
  tally(parts, 'disconnects')
  events.emit('disconnect', { error, cause: error, reason })
}
