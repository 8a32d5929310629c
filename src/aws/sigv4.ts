/**
 * A value for the client option `credentials` that signs the URL of AWS IoT Core for each attempt to connect (Signature Version 4).
 *
 * It may assume WebCrypto, which it looks for. No error, event or inspection shows a secret key or a session token; the signed URL holds the token, and is
 * for dialling only.
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

/** Keys of AWS, as its SDKs give them: of a user, or temporary ones with a session token. Other fields are not looked at. */
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
  /** The keys, or a function that gives them, called for each attempt to connect: a provider of the AWS SDK is one. */
  readonly credentials:
    | AwsCredentials
    | ((context: { readonly signal: AbortSignal }) => AwsCredentials | Promise<AwsCredentials>)
  /**
   * Name of the service that is signed for. Default `'iotdevicegateway'`: AWS IoT Core, which wants the session token behind the signature; for any other
   * service it is signed too.
   */
  readonly service?: string | undefined
  /** Seconds for which the URL may be used to connect, 1 to 604,800; an open connection is not bounded by it. Default 300. */
  readonly expires?: number | undefined
  /**
   * The time, as a Date or in epoch milliseconds, for devices whose clock is wrong: AWS refuses signatures that are more than some minutes off.
   * Default: `Date.now`.
   */
  readonly now?: (() => number | Date) | undefined
}

/** The part of the `credentials` context that is used. */
export interface SigV4Context {
  /** URL of the endpoint: `wss:`, or `ws:`. */
  readonly endpoint: string
  /** Is passed to the function that gives the keys. */
  readonly signal: AbortSignal
}

/** The result for the `credentials` option. */
export interface SignedUrl {
  /** Is dialled in place of the endpoint's. */
  readonly url: URL
}

/**
 * A value for the client option `credentials`. It rejects with `ERR_INVALID_BROKER_URL` for an endpoint without WebSocket, with `ERR_INVALID_OPTION` for
 * keys or a time that are not valid, and with what `credentials` threw.
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
 * Signs the URL of each attempt to connect to AWS IoT Core over WebSocket, in Node and in browsers: a value for the client option `credentials`.
 *
 * A signature is good for one attempt; the next one, also of a reconnect, gets a new signature, with keys that are asked for again.
 * @throws MqttError `ERR_INVALID_OPTION`; `ERR_UNSUPPORTED_OPTION` where there is no WebCrypto (in browsers: pages that are not secure)
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

// Providers give more fields than these.
function checkKeys(given: unknown) {
  const { accessKeyId, secretAccessKey, sessionToken } = Object(given) as Record<string, unknown>
  return {
    accessKeyId: word(accessKeyId, 'credentials.accessKeyId'),
    secretAccessKey: word(secretAccessKey, 'credentials.secretAccessKey'),
    sessionToken: optional(word)(sessionToken, 'credentials.sessionToken'),
  }
}
