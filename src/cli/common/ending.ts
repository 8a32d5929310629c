/**
 * How a command ends: its exit code, and the line on standard error that says why.
 */
import { setMaxListeners } from 'node:events'
import { inspect } from 'node:util'
import { MqttError, type MqttErrorCode, printable, type Subscription } from 'mqwire'

/** Exit codes, as `--help` and docs/cli.md list them. */
export const exitCodes = {
  done: 0,
  usage: 1,
  notConnected: 2,
  refused: 3,
  deadline: 4,
  lost: 5,
  interrupted: 130,
} as const

/** Why a command ends. */
export type End = keyof typeof exitCodes

/** A command ends with a line of its own. */
export class Ending extends Error {
  /** Decides the exit code. */
  readonly end: End

  constructor(end: End, message: string) {
    super(message)
    this.end = end
  }
}

/** A mistake on the command line. */
export function misuse(message: string): Ending {
  return new Ending('usage', message)
}

const ends: Readonly<Partial<Record<MqttErrorCode, End>>> = {
  ERR_ABORTED: 'interrupted',
  ERR_AUTH_FAILED: 'refused',
  ERR_CONNECTION_LOST: 'notConnected',
  ERR_CONNECT_FAILED: 'notConnected',
  ERR_CONNECT_REFUSED: 'refused',
  ERR_CONNECT_TIMEOUT: 'notConnected',
  ERR_DROPPED: 'lost',
  ERR_EXPIRED: 'deadline',
  ERR_KEEPALIVE_TIMEOUT: 'notConnected',
  ERR_MALFORMED_PACKET: 'notConnected',
  ERR_NOT_CONNECTED: 'notConnected',
  ERR_PACKET_TOO_LARGE: 'refused',
  ERR_POISONED: 'refused',
  ERR_PROTOCOL_ERROR: 'notConnected',
  ERR_PUBLISH_REFUSED: 'refused',
  ERR_QOS_UNSUPPORTED: 'refused',
  ERR_QUEUE_FULL: 'lost',
  ERR_REMOTE: 'refused',
  ERR_RETAIN_UNSUPPORTED: 'refused',
  ERR_RETRIES_EXHAUSTED: 'notConnected',
  ERR_SERVER_DISCONNECT: 'refused',
  ERR_SESSION_LOST: 'lost',
  ERR_SESSION_TAKEN_OVER: 'notConnected',
  ERR_SHARED_SUBS_UNSUPPORTED: 'refused',
  ERR_SUBSCRIBE_REFUSED: 'refused',
  ERR_SUBSCRIPTION_IDS_UNSUPPORTED: 'refused',
  ERR_TIMEOUT: 'deadline',
  ERR_TLS: 'notConnected',
  ERR_UNEXPECTED_PACKET: 'notConnected',
  ERR_UNSUBSCRIBE_REFUSED: 'refused',
  ERR_WILDCARD_SUBS_UNSUPPORTED: 'refused',
}

/** What to do about an error, where its own text does not say so. */
const advice: Readonly<Partial<Record<MqttErrorCode, string>>> = {
  ERR_AUTH_FAILED: 'check --username and --password-file',
  ERR_CONNECT_FAILED: 'npx mqwire doctor looks at each layer',
  ERR_CONNECT_TIMEOUT: 'npx mqwire doctor looks at each layer',
  ERR_SESSION_TAKEN_OVER: 'another client has this --client-id; give each its own',
  ERR_TLS: 'npx mqwire doctor looks at the certificate; --ca FILE trusts an authority',
}

/** Options of the library, as the command line has them. */
const flags: Readonly<Record<string, string>> = {
  cleanStart: '--no-clean-start',
  clientId: '--client-id',
  password: '--password-file',
  protocolVersion: '--protocol',
  sessionExpiryInterval: '--session-expiry',
  url: '--url',
  userProperties: '--connect-property',
  'will.topic': '--will-topic',
}

/** The reasons of a refused CONNECT that a person at the command line can act on. */
const refusals: Readonly<Record<number, string>> = {
  4: 'check --username and --password-file',
  5: 'check --username and --password-file, and what the broker allows this user',
  134: 'check --username and --password-file',
  135: 'check --username and --password-file, and what the broker allows this user',
  133: 'another --client-id?',
  132: 'try --protocol 4, without --connect-property',
  1: 'try --protocol 4, without --connect-property',
}

/** Reasons of a DISCONNECT that refuse nothing: busy, shutting down, elsewhere. */
const away = [0x89, 0x8b, 0x8d, 0x8e, 0x9c, 0x9d]

/** What anything thrown says. */
export function reasonOf(thrown: unknown): string {
  const { message } = Object(thrown) as { message?: unknown }
  return thrown instanceof Error && typeof message === 'string' ? message : inspect(thrown)
}

/** The exit code and the line of whatever a command threw. */
export function endOf(thrown: unknown): { readonly end: End; readonly text: string } {
  if (thrown instanceof Ending) return { end: thrown.end, text: thrown.message }
  if (MqttError.is(thrown)) return ofClient(thrown)
  const text = reasonOf(thrown)
  // The reader of a pipe has gone, as `head` does when it has enough.
  const { code, syscall } = Object(thrown) as NodeJS.ErrnoException
  if (code === 'EPIPE') return { end: 'done', text: '' }
  // A file that cannot be opened is named on the command line; one that is full loses messages.
  return { end: syscall === 'write' ? 'lost' : 'usage', text }
}

/** Milliseconds for an answer to a SUBSCRIBE, where no option gives another time. */
const patience = 30_000

/** The work of a SUBSCRIBE, and `more` milliseconds behind it. @throws Ending when it is not answered in time, and the reason of the signal */
export function answered<T>(work: Promise<T>, signal: AbortSignal, more = 0): Promise<T> {
  work.catch(() => undefined)
  // Many clients wait at a time.
  setMaxListeners(0, signal)
  return new Promise((resolve, reject) => {
    const late = (): void =>
      reject(new Ending('deadline', 'the broker did not answer the SUBSCRIBE in time'))
    const stop = (): void => reject(signal.reason)
    const timer = setTimeout(late, patience + more)
    signal.addEventListener('abort', stop)
    if (signal.aborted) stop()
    work.then(resolve, reject).finally(() => {
      clearTimeout(timer)
      signal.removeEventListener('abort', stop)
    })
  })
}

/** @throws Ending that names the first filter that was refused */
export function assertGranted(granted: Subscription['granted']): void {
  for (const { filter, error } of granted) {
    if (error === undefined) continue
    const { end, text } = ofClient(error)
    throw new Ending(end, `${text}: "${printable(filter)}"`)
  }
}

function ofClient(error: MqttError): { readonly end: End; readonly text: string } {
  // What ended the client says more than that it has ended.
  const { cause } = error
  if (
    (error.code === 'ERR_CLOSED' || error.code === 'ERR_RETRIES_EXHAUSTED') &&
    MqttError.is(cause)
  )
    return ofClient(cause)
  const said =
    error.reasonString === undefined ? '' : `, with the reason "${printable(error.reasonString)}"`
  const way =
    (error.code === 'ERR_CONNECT_REFUSED' ? refusals[error.reasonCode ?? 0] : undefined) ??
    advice[error.code] ??
    (error.option === undefined ? undefined : flags[error.option])
  const isAway = error.code === 'ERR_SERVER_DISCONNECT' && away.includes(error.reasonCode ?? 0)
  return {
    end: isAway || error.code === 'ERR_CLOSED' ? 'notConnected' : (ends[error.code] ?? 'usage'),
    text: `${error.message}${said}${way === undefined ? '' : `; ${way}`}`,
  }
}
