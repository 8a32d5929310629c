/**
 * What the application can request of the connection: connect, reconnect, change the brokers,
 * authenticate again.
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

/** Seconds above which a warning is logged, because the caller may have meant milliseconds. */
const lazyKeepAlive = 3600

/** Restores the session and starts connecting, or ends the client. */
type OpenKeeper = (parts: ClientInternals) => Promise<void>

/** A store that includes the code of the session keeper. */
interface Keeping {
  readonly [keeperOf]?: OpenKeeper
}

/** Starts connecting, or joins an attempt in progress. */
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
    // The signal of the call that starts connecting ends the client; a joiner's signal rejects only
    // its own call.
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

/** The stored session is restored before connecting. */
function recover(parts: ClientInternals, given: Keeping & { readonly store?: Keeping }): void {
  const open =
    (given.store ?? given)[keeperOf] ?? (parts.platform.loadKeeper as OpenKeeper | undefined)
  if (open === undefined) destroy(parts, unsupported('store', 'needs sessionStore()'))
  else void open(parts)
}

/** Connects now instead of after the delay; replaces an open connection only with `force`. */
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

/** Replaces the list of endpoints. */
export function setBrokers(parts: ClientInternals, endpoints: readonly ParsedEndpoint[]): void {
  assertGoing(parts)
  parts.reconnector.setBrokers(endpoints)
}

/** Re-authenticates on the open connection (section 4.12.1). */
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
