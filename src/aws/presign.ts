/**
 * AWS Signature Version 4 in a query: canonical request, string to sign, signature. Uses only
 * WebCrypto.
 *
 * It may assume checked arguments, and reads no clock. The result must never contain the secret
 * key, only the signature made with it.
 */

/** A request without a body, signed for its `Host` header only. */
export interface PresignInput {
  /** As in the `Host` header: with the port, unless it is the default of the scheme. */
  readonly host: string
  /** The path as it is sent. For signing it is encoded once more. */
  readonly path: string
  /** Names and values, not encoded. */
  readonly query: readonly (readonly [name: string, value: string])[]
  readonly accessKeyId: string
  readonly secretAccessKey: string
  readonly sessionToken: string | undefined
  /** True when the session token is signed; otherwise it is appended after the signature. */
  readonly signsToken: boolean
  readonly region: string
  readonly service: string
  /** Validity in seconds. */
  readonly expires: number
  /** Time of the signature in epoch milliseconds. */
  readonly date: number
  /** Default `GET`. */
  readonly method?: string | undefined
}

/** The result; the first two fields are for debugging. */
export interface Presigned {
  readonly canonicalRequest: string
  readonly stringToSign: string
  /** Hexadecimal. */
  readonly signature: string
  /** The query of the signed URL, without `?`. */
  readonly query: string
}

const algorithm = 'AWS4-HMAC-SHA256'
const tokenName = 'X-Amz-Security-Token'
const encoder = /* @__PURE__ */ new TextEncoder()

export async function presign(input: PresignInput): Promise<Presigned> {
  const {
    host,
    path,
    accessKeyId,
    sessionToken,
    signsToken,
    region,
    service,
    expires,
    date,
    method = 'GET',
  } = input
  const time = stamp(date)
  const day = time.slice(0, 8)
  const scope = `${day}/${region}/${service}/aws4_request`
  const added: [string, string][] = [
    ['X-Amz-Algorithm', algorithm],
    ['X-Amz-Credential', `${accessKeyId}/${scope}`],
    ['X-Amz-Date', time],
    ['X-Amz-Expires', `${expires}`],
    ['X-Amz-SignedHeaders', 'host'],
  ]
  if (sessionToken !== undefined && signsToken) added.push([tokenName, sessionToken])
  // An earlier signature is replaced.
  const own = input.query.filter(
    ([name]) =>
      name !== 'X-Amz-Signature' && name !== tokenName && !added.some(([other]) => other === name),
  )
  const query = canonicalQuery([...own, ...added])
  const canonicalPath = path.split('/').map(encoded).join('/')
  const canonicalRequest = [
    method,
    canonicalPath,
    query,
    `host:${host}`,
    '',
    'host',
    hex(await digest('')),
  ].join('\n')
  const stringToSign = [algorithm, time, scope, hex(await digest(canonicalRequest))].join('\n')
  let key: Uint8Array<ArrayBuffer> = encoder.encode(`AWS4${input.secretAccessKey}`)
  for (const part of [day, region, service, 'aws4_request']) key = await hmac(key, part)
  const signature = hex(await hmac(key, stringToSign))
  const token =
    sessionToken === undefined || signsToken ? '' : `&${tokenName}=${encoded(sessionToken)}`
  return {
    canonicalRequest,
    stringToSign,
    signature,
    query: `${query}&X-Amz-Signature=${signature}${token}`,
  }
}

/** Names and values of a query, decoded. Invalid percent-encoding is kept as it is. */
export function pairsOf(search: string): [string, string][] {
  const parts = search.replace('?', '').split('&').filter(Boolean)
  return parts.map((part) => {
    const at = part.indexOf('=')
    return at < 0 ? [decoded(part), ''] : [decoded(part.slice(0, at)), decoded(part.slice(at + 1))]
  })
}

function canonicalQuery(pairs: readonly (readonly [string, string])[]): string {
  const rows = pairs.map(([name, value]) => [encoded(name), encoded(value)] as const)
  rows.sort(
    ([name, value], [otherName, otherValue]) => order(name, otherName) || order(value, otherValue),
  )
  return rows.map(([name, value]) => `${name}=${value}`).join('&')
}

// By code units, independent of the locale.
function order(one: string, other: string): number {
  return one < other ? -1 : one > other ? 1 : 0
}

// Percent-encodes everything except letters, digits, and `-._~`.
function encoded(text: string): string {
  const left = [...`!'()*`]
  return left.reduce(
    (done, character) =>
      done.replaceAll(character, `%${character.charCodeAt(0).toString(16).toUpperCase()}`),
    encodeURIComponent(text),
  )
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** `20150830T123600Z` */
function stamp(date: number): string {
  const [day = '', time = ''] = new Date(date).toISOString().split('T')
  return `${day.replaceAll('-', '')}T${time.slice(0, 8).replaceAll(':', '')}Z`
}

async function digest(text: string): Promise<Uint8Array<ArrayBuffer>> {
  return new Uint8Array(await crypto.subtle.digest('SHA-256', encoder.encode(text)))
}

async function hmac(
  secret: Uint8Array<ArrayBuffer>,
  text: string,
): Promise<Uint8Array<ArrayBuffer>> {
  const key = await crypto.subtle.importKey(
    'raw',
    secret,
    { name: 'HMAC', hash: 'SHA-256' },
    false,
    ['sign'],
  )
  return new Uint8Array(await crypto.subtle.sign('HMAC', key, encoder.encode(text)))
}

function hex(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')
}
