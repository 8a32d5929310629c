/**
 * The one error class of the package, and the escape that makes a peer's text safe to print.
 *
 * Sits at the bottom of the tree: it imports nothing and every other module may import it. Its first line says it all; of the stack, what is ours is left
 * out, for the caller's line is what helps.
 * It must never carry a payload, a password or a URL with credentials: messages name things, `cause` holds what went wrong below.
 */

/** Every value that {@link MqttError.code} can take. Stable: programs may compare against it. */
export type MqttErrorCode =
  | 'ERR_ABORTED'
  | 'ERR_ALREADY_CONNECTED'
  | 'ERR_AUTH_FAILED'
  | 'ERR_CLOSED'
  | 'ERR_CONCURRENT_NEXT'
  | 'ERR_CONNECTION_LOST'
  | 'ERR_CONNECT_FAILED'
  | 'ERR_CONNECT_REFUSED'
  | 'ERR_CONNECT_TIMEOUT'
  | 'ERR_DROPPED'
  | 'ERR_EVICTION_NOT_SUPPORTED'
  | 'ERR_EXPIRED'
  | 'ERR_HANDLER_FAILED'
  | 'ERR_INVALID_BROKER_URL'
  | 'ERR_INVALID_HANDLER'
  | 'ERR_INVALID_OPTION'
  | 'ERR_INVALID_PAYLOAD'
  | 'ERR_INVALID_TOPIC'
  | 'ERR_KEEPALIVE_TIMEOUT'
  | 'ERR_MALFORMED_PACKET'
  | 'ERR_MESSAGE_RELEASED'
  | 'ERR_MISSING_BROKER'
  | 'ERR_NO_HEALTHY_PUBLISHERS'
  | 'ERR_NOT_CONNECTED'
  | 'ERR_PACKET_TOO_LARGE'
  | 'ERR_POISONED'
  | 'ERR_PROTOCOL_ERROR'
  | 'ERR_PUBLISH_REFUSED'
  | 'ERR_QOS0_NOT_QUEUEABLE'
  | 'ERR_QOS_UNSUPPORTED'
  | 'ERR_QUEUE_CLOSED'
  | 'ERR_QUEUE_FULL'
  | 'ERR_REMOTE'
  | 'ERR_RETAIN_UNSUPPORTED'
  | 'ERR_RETRIES_EXHAUSTED'
  | 'ERR_SERVER_DISCONNECT'
  | 'ERR_SESSION_LOST'
  | 'ERR_SESSION_TAKEN_OVER'
  | 'ERR_SHARED_SUBS_UNSUPPORTED'
  | 'ERR_STORE'
  | 'ERR_STORE_LOCKED'
  | 'ERR_SUBSCRIBE_REFUSED'
  | 'ERR_SUBSCRIPTION_CONFLICT'
  | 'ERR_SUBSCRIPTION_IDS_UNSUPPORTED'
  | 'ERR_TIMEOUT'
  | 'ERR_TLS'
  | 'ERR_UNEXPECTED_PACKET'
  | 'ERR_UNSUBSCRIBE_REFUSED'
  | 'ERR_UNSUPPORTED_OPTION'
  | 'ERR_WILDCARD_SUBS_UNSUPPORTED'

/**
 * What is known about the operation's effect on the broker: `'not-sent'`: none of it left;
 * `'refused'`: the broker refused it; `'unknown'`: it may have arrived.
 */
export type Outcome = 'not-sent' | 'refused' | 'unknown'

/** Details of an error besides code and message. */
export interface MqttErrorDetails {
  /** Whether the operation may have reached the broker. Default `'not-sent'`. */
  readonly outcome?: Outcome | undefined
  /** Which side is at fault. Default `'local'`. */
  readonly fault?: 'local' | 'remote' | undefined
  /** MQTT reason code (section 2.4). Default: none. */
  readonly reasonCode?: number | undefined
  /** The standard's name of the reason code. Default: none. */
  readonly reasonName?: string | undefined
  /** The peer's Reason String. Default: none. */
  readonly reasonString?: string | undefined
  /** The option or field at fault. Default: none. */
  readonly option?: string | undefined
  /** What is wrong with a payload. Default: none. */
  readonly issues?: readonly PayloadIssue[] | undefined
  /** The underlying error. Default: none. */
  readonly cause?: unknown
}

/** One problem of a payload, as in Standard Schema. */
export interface PayloadIssue {
  /** A description. */
  readonly message: string
  /** Path to the value: keys, or objects with a key. Undefined or empty: the value itself. */
  readonly path?: readonly (PropertyKey | PayloadPathStep)[] | undefined
}

/** One step of a path. */
export interface PayloadPathStep {
  /** Name or index. */
  readonly key: PropertyKey
}

/** Identifies errors for {@link MqttError.is}; the same in every copy of the package. */
export const brand: unique symbol = Symbol.for('mqwire.MqttError') as never
const fault = Symbol.for('mqwire.fault')

/**
 * The class of every error that mqwire throws or rejects with.
 *
 * Compare `code`, never the message. `MqttError.is(value)` also recognises errors of another copy
 * of the package.
 */
export class MqttError extends Error {
  /** True: stacks include the lines of this package. Default false: only the application's. */
  static wholeStacks = false
  /** The stable code, for example `ERR_CONNECT_REFUSED`. */
  declare readonly code: MqttErrorCode
  /** Whether the operation may have reached the broker. */
  declare readonly outcome: Outcome
  /** Which side is at fault: `'local'` includes the caller, `'remote'` the peer and the network. */
  declare readonly fault: 'local' | 'remote'
  /**
   * The MQTT reason code in a received packet, or the one sent because of this error (section 2.4).
   */
  declare readonly reasonCode: number | undefined
  /** The standard's name of {@link reasonCode}. */
  declare readonly reasonName: string | undefined
  /** The peer's Reason String, as received: escape it before printing (`printable`). */
  declare readonly reasonString: string | undefined
  /** The option or field at fault, as a path such as `will.topic`. */
  declare readonly option: string | undefined

  /** The problems of a payload, with `ERR_INVALID_PAYLOAD`. */
  declare readonly issues: readonly PayloadIssue[] | undefined

  /** @param message by default that of the code, with the option or the name of the reason code */
  constructor(code: MqttErrorCode, message?: string, details: MqttErrorDetails = {}) {
    const {
      outcome = 'not-sent',
      fault = 'local',
      reasonCode,
      reasonName,
      reasonString,
      option,
      issues,
      cause,
    } = details
    // Errors from the network, or shared by many calls, have no application line on the stack.
    const blind =
      !MqttError.wholeStacks &&
      (fault === 'remote' ||
        outcome !== 'not-sent' ||
        ['ERR_ABORTED', 'ERR_DROPPED', 'ERR_EXPIRED'].includes(code))
    const text = textOf(message ?? describe(code, option ?? reasonName))
    const { stackTraceLimit } = Error as { stackTraceLimit?: number }
    // The first lines are those of this package, which are removed.
    const enough = stackTraceLimit && stackTraceLimit + 20
    const isLate = !blind && !MqttError.wholeStacks && capturesLate()
    Reflect.set(Error, 'stackTraceLimit', isLate ? undefined : blind ? 0 : enough)
    super(text, cause === undefined ? cause : { cause })
    Reflect.set(Error, 'stackTraceLimit', enough)
    if (isLate) stackOf(this, new Error())
    Reflect.set(Error, 'stackTraceLimit', stackTraceLimit)
    tidy(cause)
    if (!blind && !isLate) tidy(this)
    put(this, brand, true)
    // Enumerable, so that consoles show them.
    for (const [name, value] of Object.entries({
      code,
      outcome,
      fault,
      reasonCode,
      reasonName,
      reasonString,
      option,
      issues,
    }))
      put(this, name, value, value !== undefined)
  }

  /** `MqttError`; `AbortError` for aborts. */
  override get name(): string {
    return this.code === 'ERR_ABORTED' ? 'AbortError' : 'MqttError'
  }

  /** An application may assign another name. */
  override set name(name: string) {
    put(this, 'name', name)
  }

  /** For `JSON.stringify`: name, message and fields; the cause as text. */
  toJSON(): object {
    const { name, message, cause } = this
    return {
      name,
      message,
      ...(this as object),
      cause: cause === undefined ? undefined : textOf(cause),
    }
  }

  /** True for every error of this class, including those of another copy of the package. */
  static is(value: unknown): value is MqttError {
    return (
      typeof value === 'object' &&
      value !== null &&
      (value as Record<symbol, unknown>)[brand] === true
    )
  }
}

/**
 * Marks an error as caused by the program rather than its data: a wrong type or number of
 * arguments, an unknown name. Returns it.
 */
export function programFault(error: MqttError): MqttError {
  put(error, fault, true)
  return error
}

/** True for an error marked by {@link programFault}: its rejections are never silenced. */
export function isProgramFault(error: unknown): boolean {
  return MqttError.is(error) && (error as unknown as Record<symbol, unknown>)[fault] === true
}

/**
 * Gives an error without a stack, such as one from the network, the stack of `site`, the place of
 * the call.
 */
export function locate(error: unknown, site: Error): void {
  if (!MqttError.is(error) || MqttError.wholeStacks || error.stack?.includes('\n    at ')) return
  tidy(site)
  const lines = site.stack?.split('\n').filter((line) => line.startsWith('    at ')) ?? []
  put(error, 'stack', [error.stack ?? String(error), ...lines].join('\n'))
}

/**
 * Irrelevant stack lines: installed copies of this package (with source maps, their sources), its
 * dependencies, and the runtime's own.
 */
const foreign = [
  '/mqwire/dist/',
  '/node_modules/mqwire/src/',
  '/node_modules/ws/',
  '(node:',
  ' node:',
  '(<anonymous>)',
]

/**
 * True when the stack can be formatted on first access: in V8, formatting costs ten times as much
 * as the rest of an error. Not in browsers, whose consoles do not read it.
 */
const capturesLate = (): boolean =>
  'captureStackTrace' in Error &&
  !['document', 'WorkerGlobalScope', 'Bun'].some((name) => name in globalThis)

// Formats the stack on first access, because a program that publishes to a closed client may never
// read it.
function stackOf(error: Error, site: Error): void {
  const set = (stack: unknown): void => put(error, 'stack', stack)
  const get = (): unknown => {
    tidy(site)
    const head = textOf(site)
    let stack: unknown = site.stack
    // An application may format stacks differently: with another first line, a colon before no
    // message, or not as text.
    if (typeof stack === 'string' && stack.startsWith(head)) {
      const lines = stack.slice(head.length)
      stack = textOf(error) + (lines.startsWith(': \n') ? lines.slice(2) : lines)
    }
    set(stack)
    return stack
  }
  Reflect.defineProperty(error, 'stack', { get, set, enumerable: false, configurable: true })
}

/**
 * An error that replaces another one and reuses its stack, because capturing a second one is
 * expensive.
 */
export function inPlaceOf(other: MqttError, make: () => MqttError): MqttError {
  if (MqttError.wholeStacks || !capturesLate()) return make()
  const { stackTraceLimit } = Error as { stackTraceLimit?: number }
  Reflect.set(Error, 'stackTraceLimit', 0)
  const error = make()
  Reflect.set(Error, 'stackTraceLimit', stackTraceLimit)
  stackOf(error, other)
  return error
}

/** Removes those lines from an error's stack, unless `MqttError.wholeStacks` is true. */
export function tidy(error: unknown): void {
  try {
    // Errors of this class do this themselves when their stack is read. Reading `stack` here would
    // create it.
    if (!error || MqttError.is(error)) return
    const { stack } = error as { stack: string }
    const kept = stack
      .split('\n')
      .filter((line) => !line.startsWith('    at ') || !foreign.some((part) => line.includes(part)))
    // The cause of many errors may have been tidied before.
    if (!MqttError.wholeStacks && kept.join('\n') !== stack)
      put(error as Error, 'stack', kept.join('\n'))
  } catch {
    // The stack is not text.
  }
}

/** Sets a field, by default not enumerable. Frozen objects stay unchanged. */
export function put(object: object, name: PropertyKey, value: unknown, enumerable = false): void {
  Reflect.defineProperty(object, name, { value, enumerable, writable: true, configurable: true })
}

/** `ERR_QUEUE_FULL` reads "queue full", `ERR_SHARED_SUBS_UNSUPPORTED` "shared subs unsupported by the server". */
export function describe(code: MqttErrorCode, subject: string | undefined): string {
  const text = code
    .slice(4)
    .toLowerCase()
    .replaceAll('_', ' ')
    .replace(' unsupported', ' unsupported by the server')
  return subject === undefined ? text : `${text}: ${subject}`
}

/** Any thrown value as text, even if its conversion fails. */
export function textOf(value: unknown): string {
  try {
    return String(value)
  } catch {
    return 'something that has no text'
  }
}

const printableLimit = 256

/**
 * Control characters, lone surrogates, line breaks, and controls of text direction: pairs of first
 * and last code points.
 */
const unsafe = [
  0, 0x1f, 0x7f, 0x9f, 0x61c, 0x61c, 0x200e, 0x200f, 0x2028, 0x202e, 0x2066, 0x2069, 0xd800, 0xdfff,
  0xfeff, 0xfeff,
]

/**
 * Makes text chosen by a peer safe for a log line or an error message: control characters, line
 * breaks and bidirectional controls become `\u{…}`, and the result is cut to 256 characters.
 */
export function printable(text: string): string {
  let safe = ''
  for (const character of text) {
    const code = character.codePointAt(0) as number
    const next = unsafe.findIndex((bound) => code <= bound)
    const piece = next % 2 === 1 || code === unsafe[next] ? `\\u{${code.toString(16)}}` : character
    if (safe.length + piece.length > printableLimit) return `${safe}…`
    safe += piece
  }
  return safe
}
