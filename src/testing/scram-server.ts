/**
 * The server side of SCRAM-SHA-256 (RFC 5802, RFC 7677), for the in-memory broker and for tests of
 * clients.
 *
 * It shares no code with the client side, so that the two cannot share a mistake. Refusing an
 * unknown user takes as long as refusing a wrong password. For tests only: passwords are plain
 * text, after SASLprep, and keys are derived for every exchange.
 */
import { MqttError } from '../errors.js'
import type { Bytes } from '../wire/packets.js'
import type { BrokerAuthMethod, BrokerAuthStep } from './broker/common/options.js'

/** Returns the password of a user; undefined if the user does not exist. */
export type ScramLookup = (username: string) => string | undefined | Promise<string | undefined>

/** Options of {@link scramServer}; `salt` and `nonce` make exchanges repeatable. */
export interface ScramServerOptions {
  /** PBKDF2 rounds. Default 4,096. */
  readonly iterations?: number | undefined
  /** Default: 16 random bytes for each exchange. */
  readonly salt?: Uint8Array | undefined
  /** Returns the server's part of the nonce. Default: 18 random bytes in base64. */
  readonly nonce?: (() => string) | undefined
}

interface Exchange {
  readonly header: string
  readonly nonce: string
  /** client-first-message-bare and server-first-message. */
  readonly opening: string
  readonly keys: { readonly stored: Bytes; readonly server: Bytes }
  /** Whether the user exists. */
  readonly known: boolean
}

const utf8 = new TextEncoder()
const strict = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

const note = 'scram-sha-256'

/**
 * Creates the server side, a value for the broker option `auth`: `{ 'SCRAM-SHA-256':
 * scramServer(lookup) }`. Refuses with 0x87.
 */
export function scramServer(
  lookup: ScramLookup,
  options: ScramServerOptions = {},
): BrokerAuthMethod {
  return {
    async start(data, { state }) {
      state[note] = undefined
      const { exchange, challenge } = await begin(textOf(data), lookup, options)
      state[note] = exchange
      return { reasonCode: 0x18, data: utf8.encode(challenge) }
    },
    async continue(data, { state }) {
      const exchange = state[note] as Exchange | undefined
      state[note] = undefined
      return exchange === undefined
        ? refused('there was no first message')
        : conclude(exchange, textOf(data))
    },
  }
}

const firstMessage =
  /^([ny],(?:a=[^,]*)?,)(n=([^,]+),r=([\x21-\x2b\x2d-\x7e]+)(?:,[A-Za-z]=[^,]+)*)$/u

async function begin(
  text: string,
  lookup: ScramLookup,
  options: ScramServerOptions,
): Promise<{ exchange: Exchange; challenge: string }> {
  const [, header, bare, name, clientNonce] = firstMessage.exec(text) ?? []
  const username = unescaped(name)
  if (header === undefined || username === undefined)
    return refused('the first message is malformed, or wants channel binding')
  const {
    iterations = 4096,
    salt = random(16),
    nonce: more = (): string => base64(random(18)),
  } = options
  const nonce = `${clientNonce}${more()}`
  const challenge = `r=${nonce},s=${base64(salt)},i=${iterations}`
  const password = await lookup(username)
  // Derived for unknown users too, so that the time is the same.
  const keys = await derive(password ?? 'nobody', salt, iterations)
  return {
    exchange: {
      header,
      nonce,
      opening: `${bare},${challenge}`,
      keys,
      known: password !== undefined,
    },
    challenge,
  }
}

const lastMessage = /^(c=([^,]+),r=([^,]+)(?:,[A-Za-z]=[^,]+)*),p=([^,]+)$/u

async function conclude(
  { header, nonce, opening, keys, known }: Exchange,
  text: string,
): Promise<BrokerAuthStep> {
  const [, withoutProof, binding, echoed, proof] = lastMessage.exec(text) ?? []
  if (proof === undefined || echoed !== nonce || binding !== base64(utf8.encode(header)))
    return refused('the last message does not fit the first')
  const transcript = utf8.encode(`${opening},${withoutProof}`)
  const signature = await mac(keys.stored, transcript)
  const clientKey = Uint8Array.from(bytesOf(proof), (byte, index) => byte ^ (signature[index] ?? 0))
  if (base64(await digest(clientKey)) !== base64(keys.stored) || !known)
    return refused('no such user, or a wrong password')
  return { reasonCode: 0x00, data: utf8.encode(`v=${base64(await mac(keys.server, transcript))}`) }
}

function refused(why: string): never {
  throw new MqttError('ERR_AUTH_FAILED', `SCRAM-SHA-256: ${why}`, { reasonCode: 0x87 })
}

/** The data as text; empty, which is no valid message, if it is not UTF-8. */
function textOf(data: Uint8Array | undefined): string {
  try {
    return strict.decode(data)
  } catch {
    return ''
  }
}

/** The user name without escapes; undefined when it has a `=` that escapes neither `=` nor `,`. */
function unescaped(name: string | undefined): string | undefined {
  if (name === undefined || /=(?!2C|3D)/u.test(name)) return undefined
  return name.replaceAll('=2C', ',').replaceAll('=3D', '=')
}

function random(length: number): Bytes {
  return globalThis.crypto.getRandomValues(new Uint8Array(length))
}

function base64(bytes: Uint8Array): string {
  return btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(''))
}

function bytesOf(text: string): Uint8Array {
  try {
    return Uint8Array.from(atob(text), (character) => character.charCodeAt(0))
  } catch {
    return new Uint8Array(0)
  }
}

async function derive(
  password: string,
  salt: Uint8Array,
  iterations: number,
): Promise<{ readonly stored: Bytes; readonly server: Bytes }> {
  const { subtle } = globalThis.crypto
  const key = await subtle.importKey('raw', utf8.encode(password), 'PBKDF2', false, ['deriveBits'])
  const salted = new Uint8Array(
    await subtle.deriveBits(
      { name: 'PBKDF2', hash: 'SHA-256', salt: salt.slice(), iterations },
      key,
      256,
    ),
  )
  return {
    stored: await digest(await mac(salted, utf8.encode('Client Key'))),
    server: await mac(salted, utf8.encode('Server Key')),
  }
}

async function mac(key: Bytes, data: Bytes): Promise<Bytes> {
  const { subtle } = globalThis.crypto
  return new Uint8Array(
    await subtle.sign(
      'HMAC',
      await subtle.importKey('raw', key, { name: 'HMAC', hash: 'SHA-256' }, false, ['sign']),
      data,
    ),
  )
}

async function digest(data: Bytes): Promise<Bytes> {
  return new Uint8Array(await globalThis.crypto.subtle.digest('SHA-256', data))
}
