/**
 * A value for the client option `credentials` that signs the URL of AWS IoT Core for each attempt
 * to connect (Signature Version 4).
 *
 * It needs WebCrypto, and checks for it. Errors, events and inspection never show a secret key or a
 * session token. The signed URL contains the token and is used only for dialling.
 */
import {
  callable,
  integer,
  object,
  optional,
  type Parser,
  that,
  withDefault,
} from '../common/schema.js'
import { MqttError } from '../errors.js'
import { pairsOf, presign } from './presign.js'

/**
 * AWS credentials, in the form of its SDKs: of a user, or temporary ones with a session token.
 * Other fields are ignored.
 */
export interface AwsCredentials {
  /** Access key ID. */
  readonly accessKeyId: string
  /** Secret access key. It never leaves this process. */
  readonly secretAccessKey: string
  /** Session token of temporary keys. Default: none. */
  readonly sessionToken?: string | undefined
}

/** Options of {@link sigv4}. */
export interface SigV4Options {
  /** Region of the endpoint, such as `eu-west-1`. */
  readonly region: string
  /**
   * The credentials, or a function that returns them, called for each attempt to connect, such as a
   * credential provider of the AWS SDK.
   */
  readonly credentials:
    | AwsCredentials
    | ((context: { readonly signal: AbortSignal }) => AwsCredentials | Promise<AwsCredentials>)
  /**
   * Name of the service in the signature. Default `'iotdevicegateway'`: AWS IoT Core, for which the
   * session token is appended after the signature. For other services the token is signed too.
   */
  readonly service?: string | undefined
  /**
   * Seconds for which the URL may be used to connect, 1 to 604,800; an open connection may last
   * longer. Default 300.
   */
  readonly expires?: number | undefined
  /**
   * Returns the time, as a Date or in epoch milliseconds, for devices whose clock is wrong: AWS
   * refuses signatures whose time is off by more than a few minutes. Default: `Date.now`.
   */
  readonly now?: (() => number | Date) | undefined
}

/** The part of the `credentials` context that is used. */
export interface SigV4Context {
  /** URL of the endpoint: `wss:`, or `ws:`. */
  readonly endpoint: string
  /** Passed to the function that returns the credentials. */
  readonly signal: AbortSignal
}

/** The result for the `credentials` option. */
export interface SignedUrl {
  /** The URL to dial in place of the endpoint's. */
  readonly url: URL
}

/**
 * A value for the client option `credentials`. It rejects with `ERR_INVALID_BROKER_URL` for an
 * endpoint without WebSocket, with `ERR_INVALID_OPTION` for invalid keys or an invalid time, and
 * with the error that `credentials` throws.
 */
export type SigV4 = (context: SigV4Context) => Promise<SignedUrl>

const word: Parser<string> = that(
  (value) => typeof value === 'string' && value !== '',
  'text that is not empty',
)
const keys: Parser<SigV4Options['credentials']> = that(
  (value) => (typeof value === 'object' && value !== null) || typeof value === 'function',
  'keys, or a function that gives them',
)
const time: Parser<number> = that(
  (value) => Number.isFinite(value) && Math.abs(value as number) < 8.64e15,
  'a Date, or epoch milliseconds',
)

const parse = /* @__PURE__ */ object<{
  readonly [K in keyof SigV4Options]-?: Exclude<SigV4Options[K], undefined>
}>({
  region: word,
  credentials: keys,
  service: withDefault(word, 'iotdevicegateway'),
  expires: withDefault(integer(1, 604_800, ' seconds'), 300),
  now: withDefault<() => number | Date>(callable, Date.now),
})

/**
 * Signs the URL of each attempt to connect to AWS IoT Core over WebSocket, in Node and in browsers:
 * a value for the client option `credentials`.
 *
 * Each attempt, including those of a reconnect, gets a new signature; a `credentials` function is
 * called again for it.
 * @throws MqttError `ERR_INVALID_OPTION`; `ERR_UNSUPPORTED_OPTION` where there is no WebCrypto (in
 * browsers: pages that are not secure)
 */
export function sigv4(options: SigV4Options): SigV4 {
  const { region, credentials, service, expires, now } = parse(options, 'sigv4')
  if (typeof credentials !== 'function') checkKeys(credentials)
  if (globalThis.crypto?.subtle === undefined)
    throw new MqttError(
      'ERR_UNSUPPORTED_OPTION',
      'sigv4 needs WebCrypto, which browsers offer to secure pages only',
      { option: 'credentials' },
    )
  return async ({ endpoint, signal }) => {
    const url = new URL(endpoint)
    if (url.protocol !== 'wss:' && url.protocol !== 'ws:')
      throw new MqttError(
        'ERR_INVALID_BROKER_URL',
        `sigv4 signs URLs of WebSocket (wss:), not ${url.protocol}`,
        { option: 'url' },
      )
    const given = checkKeys(
      typeof credentials === 'function' ? await credentials({ signal }) : credentials,
    )
    const moment = now()
    const signed = await presign({
      ...given,
      host: url.host,
      path: url.pathname,
      query: pairsOf(url.search),
      signsToken: service !== 'iotdevicegateway',
      region,
      service,
      expires,
      date: time(moment instanceof Date ? moment.getTime() : moment, 'sigv4.now()'),
    })
    url.search = signed.query
    return { url }
  }
}

// Picks the known fields, because providers return more.
function checkKeys(given: unknown) {
  const { accessKeyId, secretAccessKey, sessionToken } = Object(given) as Record<string, unknown>
  return {
    accessKeyId: word(accessKeyId, 'credentials.accessKeyId'),
    secretAccessKey: word(secretAccessKey, 'credentials.secretAccessKey'),
    sessionToken: optional(word)(sessionToken, 'credentials.sessionToken'),
  }
}
