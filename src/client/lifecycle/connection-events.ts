/**
 * What happens to a client on its connection: CONNACK, refusal, DISCONNECT, and the end of the
 * connection. Each is one transition of all parts.
 *
 * Listeners are called when a transition is complete. Two events come before it, because calls of
 * `setBrokers()` and `reconnect()` in their listeners affect it: `serverdisconnect` and
 * `connecterror`.
 */

import { tally } from '../../common/counters.js'
import type { MqttError } from '../../errors.js'
import { DISCONNECT } from '../../wire/constants.js'
import type { ConnackPacket, DisconnectPacket, Properties } from '../../wire/packets.js'
import { whenPassed } from '../platform.js'
import { lossesOf } from '../publish/queued-publish.js'
import type { Action } from '../session/actions.js'
import { refusal, version5Code } from '../session/refusal.js'
import { end, finish, reportDown } from './closing.js'
import { redacted } from './connection-holder.js'
import type { ClientInternals } from './internals.js'

/** Session Expiry Interval of a session that never expires (section 3.1.2.11.2). */
const forEver = 4_294_967_295
/** Seconds below which a keep-alive is logged as unusual. */
const hastyKeepAlive = 5
/** Reason codes "Use another server" and "Server moved". */
const departures: readonly (number | undefined)[] = [0x9c, 0x9d]

/** Runs the session's actions that the connection does not run itself. */
export function handleAction(
  parts: ClientInternals,
  action: Exclude<Action, { type: 'send' | 'close' }>,
): void {
  if (action.type === 'connected') parts.events.transition(() => handleConnected(parts, action))
  else if (action.type === 'refused') handleRefused(parts, action.connack)
  else if (action.type === 'answered') parts.subscriptions.handleAnswer(action.packet)
  else if (action.type === 'auth')
    for (const extra of parts.extras) extra.handleAuth?.(action.packet)
  else if (action.type === 'server-disconnect') handleServerDisconnect(parts, action.packet)
}

function handleConnected(
  parts: ClientInternals,
  { connack, lost, stale }: Action & { type: 'connected' },
): void {
  const { reconnector, router, connections, subscriptions, session, states } = parts
  const { negotiated } = session
  const link = connections.current
  if (negotiated === undefined || link === undefined) return
  const { sessionPresent } = connack
  const first = !reconnector.connectedOnce
  parts.clientId = negotiated.clientId
  const recovered = parts.publishingIfUsed?.keeper?.handleConnected()
  router.handleConnected(sessionPresent && first)
  connections.handleAccepted()
  connections.expiry?.()
  link.writer.handleConnected(negotiated.maximumPacketSize, reconnector.handleConnected())
  tally(parts, 'connects')
  const reportLoss = lost ? accountForLoss(parts, 'absent', stale) : undefined
  if (!states.stopping) subscriptions.handleConnected(!sessionPresent && !first)
  link.handleAccepted()
  parts.publishingIfUsed?.sent.handleConnected()
  // Resent packets leave before anything new. If the link is dead, writing has ended the connection
  // by now.
  link.writer.flush()
  if (connections.current === link) {
    states.enter('connected')
    reportUp(parts, negotiated, sessionPresent, first)
    if (!states.stopping) {
      connections.up = true
      parts.events.emit('connect', {
        connack: redacted(connack) as ConnackPacket,
        negotiated,
        sessionPresent,
        recovered,
        ...connections.dialled,
      })
    }
    states.arrive()?.resolve()
    flush(parts)
  }
  reportLoss?.()
}

function reportUp(
  parts: ClientInternals,
  { keepAlive, pingTimeout }: { keepAlive: number; pingTimeout: number },
  resumed: boolean,
  first: boolean,
): void {
  parts.log('info', resumed ? 'connected, session resumed' : 'connected')
  if (keepAlive > 0 && keepAlive < hastyKeepAlive)
    parts.log('warn', `the keep-alive is ${keepAlive} s`)
  if (first && (parts.options.set.pingTimeout ?? 0) > pingTimeout)
    parts.log('warn', `pingTimeout is ${pingTimeout} ms, half the keep-alive`)
}

/** Sends what waits, as far as allowed. */
export function flush(parts: ClientInternals): void {
  parts.subscriptions.senderIfUsed?.flush()
  parts.publishingIfUsed?.flush()
}

function handleRefused(parts: ClientInternals, { reasonCode, properties }: ConnackPacket): void {
  const code = parts.session.version === 5 ? reasonCode : version5Code(reasonCode)
  tally(parts, 'refusals')
  handleEnd(parts, refusal('ERR_CONNECT_REFUSED', code, properties.reasonString), properties)
}

function handleServerDisconnect(parts: ClientInternals, packet: DisconnectPacket): void {
  const { reasonCode, properties } = packet
  const code = reasonCode === 0x8e ? 'ERR_SESSION_TAKEN_OVER' : 'ERR_SERVER_DISCONNECT'
  handleEnd(
    parts,
    refusal(code, reasonCode, properties.reasonString, DISCONNECT, 'unknown'),
    properties,
    packet,
  )
}

// The server refused or disconnected, with a reason and perhaps a Server Reference.
function handleEnd(
  { reconnector, events, connections }: ClientInternals,
  error: MqttError,
  { serverReference }: Properties,
  packet?: DisconnectPacket,
): void {
  reconnector.handleAsking()
  if (packet !== undefined) events.emit('serverdisconnect', { packet, error })
  if (departures.includes(error.reasonCode)) reconnector.handleReference(serverReference)
  connections.cut(error)
}

/** A connection that was up has ended; without an error after our DISCONNECT. */
export function handleLost(parts: ClientInternals, given: MqttError | undefined): void {
  parts.events.transition(() => lose(parts, given))
}

function lose(parts: ClientInternals, given: MqttError | undefined): void {
  const { reconnector, router, connections, options, subscriptions, session, states } = parts
  const replaced = connections.replacing
  const error = given ?? replaced
  // The memory budget ended the connection and the buffers are empty: reconnect at once.
  const relieved =
    error?.reasonCode === 0x97 &&
    error.fault === 'local' &&
    router.budget.bytes === 0 &&
    options.reconnect !== false
  const urgent = replaced !== undefined || relieved || session.keepAlive.woken(parts.platform.now())
  connections.replacing = undefined
  // Undefined after our DISCONNECT.
  if (states.ended || error === undefined) return end(parts, undefined)
  for (const extra of parts.extras) extra.handleLost?.(error)
  if (given !== undefined) parts.counters?.fail(error.code)
  if (error.code === 'ERR_KEEPALIVE_TIMEOUT') tally(parts, 'pingTimeouts')
  const blame = subscriptions.senderIfUsed?.blame(error)
  const step = reconnector.handleLost(error, urgent, blame, router.budget.widest)
  // The application's retry function may have ended the client.
  if (states.ended) return
  if (step.type === 'stop' && !states.stopping) return end(parts, step.error)
  subscriptions.handleMismatch(session.sendWindow.mismatched, error)
  session.suspend()
  subscriptions.senderIfUsed?.handleLost(error, blame)
  states.enter('reconnecting')
  parts.publishingIfUsed?.handleLost(error)
  reportDown(parts, replaced ? given : error, replaced?.message)
  if (states.stopping && !states.draining && !connections.replaced) return finish(parts, given)
  watchExpiry(parts)
  reconnector.follow(step)
}

// After the session expiry interval, the server no longer has the session (section 3.1.2.11.2).
function watchExpiry(parts: ClientInternals): void {
  const interval = sessionExpiry(parts)
  if (interval === 0) return expire(parts)
  if (interval < forEver)
    parts.connections.expiry = whenPassed(parts.platform, interval * 1000, () =>
      parts.events.transition(() => expire(parts)),
    )
}

/** Seconds that the server keeps the session after a disconnect. */
export function sessionExpiry({ options, session }: ClientInternals): number {
  const { negotiated, version } = session
  return version === 5 ? (negotiated?.sessionExpiryInterval ?? 0) : options.cleanStart ? 0 : forEver
}

function expire(parts: ClientInternals): void {
  const { session } = parts
  const stale = session.receiveWindow.parked
  session.reset()
  accountForLoss(parts, 'expired', stale)()
}

// Returns a function that announces the loss, to be called once the transition is complete.
function accountForLoss(
  parts: ClientInternals,
  cause: 'absent' | 'expired',
  stale: number,
): () => void {
  tally(parts, 'sessionsLost')
  // Undefined where nothing was ever published.
  const sent = parts.publishingIfUsed?.sent.handleSessionLost()
  return () => {
    parts.log('warn', `session lost: ${cause}`)
    sent?.settle()
    const losses = sent?.losses ?? lossesOf([], [])
    if (!parts.states.ended)
      parts.events.emit('sessionlost', Object.freeze({ cause, stale, ...losses }))
  }
}
