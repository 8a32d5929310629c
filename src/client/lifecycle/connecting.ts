/**
 * What the application may ask of the connection: that there be one, another one, at other endpoints, or authenticated again.
 */

import { aborted, assertNotAborted, onAbort, within } from '../../common/abort.js'
import { closedError } from '../../common/outcome.js'
import { unsupported } from '../../common/schema.js'
import { MqttError } from '../../errors.js'
import { keeperOf } from '../access.js'
import type { ParsedEndpoint } from '../options/check-endpoint.js'
import { findScanner } from '../options/check-options.js'
import { destroy } from './closing.js'
import type { ClientInternals } from './internals.js'

/** Seconds: who asks for more may have meant milliseconds. */
const lazyKeepAlive = 3600

/** Reads the session and begins to dial, or ends the client. */
type OpenKeeper = (parts: ClientInternals) => Promise<void>

/** A store that brings what keeps a session in it. */
interface Keeping {
  readonly [keeperOf]?: OpenKeeper
}

/** Joins whatever is under way to connect, or begins. */
export async function connect(parts: ClientInternals, signal?: AbortSignal): Promise<void> {
  const { states, options } = parts
  assertGoing(parts)
  if (states.current === 'connected')
    throw new MqttError(
      'ERR_ALREADY_CONNECTED',
      'already connected: reconnect() makes a new connection',
    )
  assertNotAborted(signal)
  const arrival = states.awaited()
  if (states.current === 'idle') {
    // The signal of the call that begins it ends the attempt; those of joiners drop only the joiner.
    const stop = onAbort(signal, () => destroy(parts, aborted(signal)))
    arrival.then(stop, stop)
    findScanner(options.scanner, parts.platform, (scanner) => parts.connections.useScanner(scanner))
    const { keepAlive = 0 } = options
    if (keepAlive > lazyKeepAlive)
      parts.log('warn', `keepAlive: ${Math.round(keepAlive / 3600)} hours`)
    parts.events.transition(() => {
      states.enter('connecting')
      if (options.store === undefined) parts.reconnector.begin()
      else recover(parts, options.store as object)
    })
  }
  return within(arrival, signal)
}

/** What an earlier process left is part of the session: it is read before anything is dialled. */
function recover(parts: ClientInternals, given: Keeping & { readonly store?: Keeping }): void {
  const open =
    (given.store ?? given)[keeperOf] ?? (parts.platform.loadKeeper as OpenKeeper | undefined)
  if (open === undefined) destroy(parts, unsupported('store', 'needs sessionStore()'))
  else void open(parts)
}

/** Dials now instead of after the delay; replaces a connection that is up only with `force`. */
export async function reconnect(
  parts: ClientInternals,
  force: boolean,
  reason = 'replaced by reconnect()',
): Promise<void> {
  const { states, connections } = parts
  assertGoing(parts)
  if (states.current === 'idle') return connect(parts)
  const connected = states.current === 'connected'
  if (connected && !force) return
  const arrival = states.awaited()
  if (connected) connections.replace(reason)
  else parts.reconnector.hurry()
  return arrival
}

/** The endpoints from now on. */
export function setBrokers(parts: ClientInternals, endpoints: readonly ParsedEndpoint[]): void {
  assertGoing(parts)
  parts.reconnector.setBrokers(endpoints)
}

/** Authenticates again on the open connection (section 4.12.1). */
export async function reauthenticate(parts: ClientInternals, signal?: AbortSignal): Promise<void> {
  const { authentication, connections } = parts
  assertGoing(parts)
  if (authentication === undefined) throw unsupported('auth', 'is not set')
  if (connections.connection === undefined) throw new MqttError('ERR_NOT_CONNECTED')
  assertNotAborted(signal)
  return within(authentication.renew(connections.dialled.endpoint), signal, 'unknown')
}

function assertGoing({ states }: ClientInternals): void {
  if (states.stopping) throw closedError(states)
}
