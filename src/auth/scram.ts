/**
 * SCRAM-SHA-256 (RFC 5802, RFC 7677) as a value for the client option `auth`: the password is never
 * sent, and the server proves that it knows it.
 *
 * Without channel binding (`n,,`) and without an authorization identity. Messages of the server are
 * not trusted: iteration count, nonce and size are checked against limits, and a server without a
 * valid proof is refused. Errors and inspection never show user name, password or proof.
 */
import { MqttError } from '../errors.js'
import { saslprep } from './saslprep.js'

type Bytes = ReturnType<Uint8Array['slice']>

/** Options of {@link scramSha256}. */
export interface ScramOptions {
  /** Prepared with SASLprep (RFC 4013). */
  readonly username: string
  /** Prepared with SASLprep. It never leaves this process. */
  readonly password: string
  /**
   * The client's nonce, or a function that creates one for each exchange: printable ASCII without
   * commas. Default: 18 random bytes in base64. Fixed nonces are for tests.
   */
  readonly nonce?: string | (() => string) | undefined
}

/**
 * Identifies an exchange: the signal is the same object during one exchange, and another one in the
 * next.
 */
export interface ScramContext {
  /** Aborts when the exchange is given up; each exchange has its own. */
  readonly signal: AbortSignal
}

/** A value for the client option `auth`. It may serve several clients at a time. */
export interface ScramSha256 {
  /** Authentication Method, as CONNECT names it. */
  readonly method: 'SCRAM-SHA-256'
  /**
   * Begins an exchange, also for re-authentication; returns the client's first message.
   * @throws MqttError ERR_INVALID_OPTION when `nonce` returns no valid nonce
   */
  start(context: ScramContext): Bytes
  /**
   * Returns the answer to a message of the server: the proof for its first message; undefined for
   * its last one, if that comes before the success.
   * @throws MqttError ERR_AUTH_FAILED
   */
  continue(data: Uint8Array | undefined, context: ScramContext): Promise<Bytes | undefined>
  /**
   * Checks the server's signature, unless `continue` did.
   * @throws MqttError ERR_AUTH_FAILED when the server has not proved that it knows the password
   */
  success(data: Uint8Array | undefined, context: ScramContext): void
}

const minIterations = 4096
/** Takes about half a second on one core. */
const maxIterations = 1_000_000
const longestMessage = 4096

const encoder = new TextEncoder()
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/**
 * The gs2-header `n,,`: no channel binding, no authorization identity. In `c=` it is in base64.
 */
const header = 'n,,'
const binding = 'c=biws'

const nonceText = /^[\x21-\x2b\x2d-\x7e]{1,1024}$/

// Characters allowed in the values of the server (RFC 5802, section 7).
const digits = '0123456789'
const lower = 'abcdefghijklmnopqrstuvwxyz'
const letters = lower + lower.toUpperCase()
const base64 = `${letters}${digits}+/`
const longestError = 64

/**
 * Creates the value. User name and password are prepared with SASLprep and stored in private
 * fields, which inspection does not show.
 * @throws MqttError ERR_INVALID_OPTION; ERR_UNSUPPORTED_OPTION where there is no WebCrypto (in
 * browsers: pages that are not secure)
 */
export function scramSha256(options: ScramOptions): ScramSha256 {
  return new Scram(options)
}

class Scram implements ScramSha256 {
  readonly method = 'SCRAM-SHA-256'
  readonly #username: string
  readonly #password: Bytes
  readonly #nonce: () => string
  // Exchanges by signal, because one value may serve several clients, and an aborted exchange must
  // not affect the next one.
  readonly #exchanges = new WeakMap<AbortSignal, Exchange>()

  constructor(options: ScramOptions) {
    const { username, password, nonce = randomNonce } = anObject(options)
    this.#username = escaped(saslprep(text(username, 'username'), 'username'))
    this.#password = encoder.encode(saslprep(text(password, 'password'), 'password'))
    this.#nonce = typeof nonce === 'function' ? nonce : () => nonce
    if (typeof nonce !== 'function') checkedNonce(nonce)
    if (globalThis.crypto?.subtle === undefined)
      throw new MqttError(
        'ERR_UNSUPPORTED_OPTION',
        'SCRAM needs WebCrypto, which browsers offer to secure pages only',
        { option: 'auth' },
      )
  }

  start({ signal }: ScramContext): Bytes {
    const exchange = new Exchange(this.#username, checkedNonce(this.#nonce()))
    this.#exchanges.set(signal, exchange)
    return encoder.encode(exchange.first)
  }

  async continue(
    data: Uint8Array | undefined,
    { signal }: ScramContext,
  ): Promise<Bytes | undefined> {
    const answer = await this.#exchange(signal).answer(data, this.#password)
    return answer === undefined ? undefined : encoder.encode(answer)
  }

  success(data: Uint8Array | undefined, { signal }: ScramContext): void {
    this.#exchange(signal).finish(data)
  }

  toString(): string {
    return `${this.method} [redacted]`
  }

  toJSON(): object {
    return { method: this.method, username: '[redacted]', password: '[redacted]' }
  }

  [Symbol.for('nodejs.util.inspect.custom')](): string {
    return this.toString()
  }

  #exchange(signal: AbortSignal): Exchange {
    return this.#exchanges.get(signal) ?? failed('no exchange was begun')
  }
}

/**
 * One exchange: first message, challenge, proof, the server's signature. A step out of order or a
 * failed one ends it.
 */
class Exchange {
  readonly #bare: string
  readonly #nonce: string
  #expects: 'challenge' | 'signature' | 'success' | 'nothing' = 'challenge'
  #signature: Uint8Array = new Uint8Array(0)

  constructor(username: string, nonce: string) {
    this.#bare = `n=${username},r=${nonce}`
    this.#nonce = nonce
  }

  get first(): string {
    return header + this.#bare
  }

  async answer(data: Uint8Array | undefined, password: Bytes): Promise<string | undefined> {
    const expected = this.#expects
    this.#expects = 'nothing'
    if (expected === 'challenge') return this.#prove(message(data), password)
    if (expected !== 'signature') return failed('one message too many')
    this.#verify(message(data))
    this.#expects = 'success'
    return undefined
  }

  finish(data: Uint8Array = new Uint8Array(0)): void {
    const expected = this.#expects
    this.#expects = 'nothing'
    if (expected === 'success' && data.length === 0) return
    if (expected !== 'signature' && expected !== 'success')
      failed('the server did not prove that it knows the password')
    this.#verify(message(data))
  }

  async #prove(challenge: string, password: Bytes): Promise<string> {
    const { nonce, salt, iterations } = parseChallenge(challenge)
    // The server must add its own part, because our nonce alone would allow a replay.
    if (!nonce.startsWith(this.#nonce) || nonce.length === this.#nonce.length)
      failed('the nonce of the server does not go on from ours')
    const withoutProof = `${binding},r=${nonce}`
    const transcript = encoder.encode(`${this.#bare},${challenge},${withoutProof}`)
    const salted = await saltedPassword(password, salt, iterations)
    const clientKey = await hmac(salted, encoder.encode('Client Key'))
    const clientSignature = await hmac(await sha256(clientKey), transcript)
    this.#signature = await hmac(await hmac(salted, encoder.encode('Server Key')), transcript)
    this.#expects = 'signature'
    return `${withoutProof},p=${toBase64(clientKey.map((byte, index) => byte ^ (clientSignature[index] as number)))}`
  }

  #verify(text: string): void {
    throwServerError(text)
    const given = fromBase64(attributes(text, 'v')?.[0])
    if (given === undefined || !same(given, this.#signature))
      failed('the server did not prove that it knows the password')
  }
}

interface Challenge {
  readonly nonce: string
  readonly salt: Bytes
  readonly iterations: number
}

function parseChallenge(text: string): Challenge {
  throwServerError(text)
  if (text.startsWith('m=')) failed('the server demands an extension that is not known')
  const [nonce = '', encodedSalt, count = ''] = attributes(text, 'rsi') ?? []
  const salt = fromBase64(encodedSalt)
  if (!isVisible(nonce) || salt === undefined || !isCount(count))
    return failed('malformed challenge')
  const iterations = Number(count)
  if (iterations < minIterations || iterations > maxIterations)
    failed(`the iteration count of the server must be from ${minIterations} to ${maxIterations}`)
  return { nonce, salt, iterations }
}

function throwServerError(text: string): void {
  if (!text.startsWith('e=')) return
  const [error = ''] = text.slice(2).split(',', 1)
  const known =
    error !== '' && error.length <= longestError && consistsOf(error, `${lower}${digits}-`)
  failed(`the server says ${known ? error : 'other-error'}`)
}

/**
 * The values of the attributes that a message must begin with, in this order; what follows them are
 * extensions, which may be ignored.
 */
function attributes(text: string, names: string): string[] | undefined {
  const parts = text.split(',')
  const right = parts.every(
    (part, index) =>
      part.length > 2 && part[1] === '=' && (names[index] ?? letters).includes(part[0] as string),
  )
  return right && parts.length >= names.length
    ? parts.slice(0, names.length).map((part) => part.slice(2))
    : undefined
}

function consistsOf(text: string, characters: string): boolean {
  return [...text].every((character) => characters.includes(character))
}

function isVisible(text: string): boolean {
  return text !== '' && [...text].every((character) => character > ' ' && character <= '~')
}

function isCount(text: string): boolean {
  return text !== '' && text.length <= 10 && text[0] !== '0' && consistsOf(text, digits)
}

function failed(why: string): never {
  throw new MqttError('ERR_AUTH_FAILED', `SCRAM-SHA-256: ${why}`, { fault: 'remote' })
}

function message(data: Uint8Array | undefined): string {
  if (data === undefined || data.length === 0 || data.length > longestMessage)
    return failed('a message is missing or too long')
  try {
    return decoder.decode(data)
  } catch {
    return failed('a message is not UTF-8')
  }
}

// Arguments

function anObject(options: unknown): ScramOptions {
  if (typeof options === 'object' && options !== null) return options as ScramOptions
  throw new MqttError('ERR_INVALID_OPTION', 'options must be an object', { option: 'options' })
}

function text(value: unknown, option: string): string {
  if (typeof value === 'string') return value
  throw new MqttError('ERR_INVALID_OPTION', `${option} must be a string`, { option })
}

function checkedNonce(nonce: unknown): string {
  if (typeof nonce === 'string' && nonceText.test(nonce)) return nonce
  throw new MqttError(
    'ERR_INVALID_OPTION',
    'nonce must be 1 to 1,024 characters of printable ASCII without commas',
    { option: 'nonce' },
  )
}

/** RFC 5802, section 5.1: `=` and `,` are escaped in a user name. */
function escaped(username: string): string {
  return username.replaceAll('=', '=3D').replaceAll(',', '=2C')
}

// Bytes and keys

function randomNonce(): string {
  return toBase64(globalThis.crypto.getRandomValues(new Uint8Array(18)))
}

function toBase64(bytes: Uint8Array): string {
  return btoa(String.fromCharCode(...bytes))
}

function fromBase64(text: string | undefined): Bytes | undefined {
  if (text === undefined || text.length % 4 > 0) return undefined
  const end = text.endsWith('==')
    ? text.length - 2
    : text.endsWith('=')
      ? text.length - 1
      : text.length
  if (!consistsOf(text.slice(0, end), base64)) return undefined
  return Uint8Array.from(atob(text), (character) => character.charCodeAt(0))
}

/** Compares in constant time. */
function same(left: Uint8Array, right: Uint8Array): boolean {
  let difference = left.length ^ right.length
  right.forEach((byte, index) => {
    difference |= byte ^ (left[index] ?? 0)
  })
  return difference === 0
}

async function saltedPassword(password: Bytes, salt: Bytes, iterations: number): Promise<Bytes> {
  const { subtle } = globalThis.crypto
  const key = await subtle.importKey('raw', password, 'PBKDF2', false, ['deriveBits'])
  return new Uint8Array(
    await subtle.deriveBits({ name: 'PBKDF2', hash: 'SHA-256', salt, iterations }, key, 256),
  )
}

async function hmac(key: Bytes, data: Bytes): Promise<Bytes> {
  const { subtle } = globalThis.crypto
  const imported = await subtle.importKey('raw', key, { name: 'HMAC', hash: 'SHA-256' }, false, [
    'sign',
  ])
  return new Uint8Array(await subtle.sign('HMAC', imported, data))
}

async function sha256(data: Bytes): Promise<Bytes> {
  return new Uint8Array(await globalThis.crypto.subtle.digest('SHA-256', data))
}
