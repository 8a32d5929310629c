/**
 * Parses endpoints into URL, credentials and settings, and checks them against the platform.
 *
 * A URL with credentials is never kept, shown or put into an error.
 */
import {
  anyObject,
  bytes,
  callable,
  object,
  optional,
  optionError,
  type Parser,
  quoted,
  text,
  that,
  unsupported,
} from '../../common/schema.js'
import { MqttError, textOf } from '../../errors.js'
import type { Target } from '../../transport/transport.js'
import type { Bytes } from '../../wire/packets.js'
import type { Platform } from '../platform.js'
import { type ConnectOverrides, overrides } from './check-options.js'
import type { CustomTransport, Endpoint, EndpointOptions } from './index.js'

/** Most servers taken from one Server Reference. */
const mostReferences = 8

export { hasSettings } from '../../common/schema.js'

/** One endpoint, ready to dial. */
export interface ParsedEndpoint {
  readonly target: Target
  /** The URL as events show it: its query may be a signature. */
  readonly name: string
  readonly username: string | undefined
  readonly password: Bytes | undefined
  readonly transport: CustomTransport | undefined
  /** The endpoint as the caller gave it, for `transport`. */
  readonly source: Endpoint
}

const headers: Parser<Readonly<Record<string, string>>> = that(
  (value) =>
    typeof value === 'object' &&
    value !== null &&
    Object.values(value).every((item) => typeof item === 'string'),
  'an object of strings',
)

/** A token as defined by HTTP. */
const token = /^[!#-'*+.^-z|~\w-]+$/

// The WebSocket class throws for other texts, and for duplicates.
const subProtocols: Parser<readonly string[]> = that((value) => {
  if (!Array.isArray(value) || value.length === 0) return false
  return (
    new Set(value.filter((name) => typeof name === 'string' && token.test(name))).size ===
    value.length
  )
}, 'different tokens')

function isUrl(value: unknown): value is string | URL {
  return typeof value === 'string' || value instanceof URL
}

const urlLike: Parser<string | URL> = that(isUrl, 'a string or a URL')

/**
 * Parses one endpoint or a list. @throws MqttError ERR_MISSING_BROKER, ERR_INVALID_BROKER_URL,
 * ERR_INVALID_OPTION, ERR_UNSUPPORTED_OPTION
 */
export function parseEndpoints(
  endpoints: Endpoint | readonly Endpoint[],
  platform: Platform,
): readonly ParsedEndpoint[] {
  const list = [endpoints ?? []].flat() as Endpoint[]
  if (list.length === 0) throw new MqttError('ERR_MISSING_BROKER', `missing broker: no URL${form}`)
  return list.map((item, index) =>
    parseEndpoint(item, list.length > 1 ? `endpoints[${index}]` : 'endpoint', platform),
  )
}

let latest: { given: unknown; platform: Platform; parsed: readonly ParsedEndpoint[] } | undefined

/**
 * As `parseEndpoints`, for a new client. Clients that are created one after another with the same
 * URL share its parsed form, unless it contains a password.
 */
export function sharedEndpoints(
  given: Endpoint | readonly Endpoint[],
  platform: Platform,
): readonly ParsedEndpoint[] {
  if (latest !== undefined && latest.given === given && latest.platform === platform)
    return latest.parsed
  const parsed = parseEndpoints(given, platform)
  if (typeof given === 'string' && parsed[0]?.password === undefined)
    latest = { given, platform, parsed }
  return parsed
}

/** The checked result of `credentials()`. */
export interface Login {
  readonly username: string | undefined
  readonly password: Bytes | undefined
  readonly headers: Readonly<Record<string, string>> | undefined
  readonly url: string | URL | undefined
  /** Epoch milliseconds. */
  readonly expiresAt: number | undefined
  readonly connect: Partial<ConnectOverrides> | undefined
}

const instant: Parser<number> = (value, path) =>
  that<number>(Number.isFinite, 'a Date, or epoch milliseconds')(
    value instanceof Date ? value.getTime() : value,
    path,
  )

/** Checks the result of `credentials()`. @throws MqttError ERR_INVALID_OPTION */
export const login: Parser<Login> = object<Login>({
  username: optional(text),
  password: optional(bytes),
  headers: optional(headers),
  url: optional(urlLike),
  expiresAt: optional(instant),
  connect: optional(overrides),
})

/**
 * The endpoint with the URL and headers from `credentials()`. @throws MqttError when the platform
 * cannot honour them
 */
export function redirected(
  base: ParsedEndpoint,
  given: Login | undefined,
  platform: Platform,
): ParsedEndpoint {
  if (given?.url === undefined && given?.headers === undefined) return base
  const { target, transport } = base
  const options = {
    ...target,
    transport,
    url: given.url ?? target.url,
    headers: { ...target.headers, ...given.headers },
  }
  const {
    username = base.username,
    password = base.password,
    ...found
  } = parseEndpoint(options, 'credentials', platform)
  return { ...found, username, password }
}

const endpointOptions = object<EndpointOptions>({
  url: urlLike,
  tls: optional(anyObject),
  headers: optional(headers),
  protocols: optional(subProtocols),
  socket: optional(anyObject),
  transport: optional(callable),
})
/** Shared by endpoints without settings. */
const nothing = Object.freeze({})
const usualProtocols = Object.freeze(['mqtt'])

function parseEndpoint(given: Endpoint, path: string, platform: Platform): ParsedEndpoint {
  const {
    url: source,
    transport,
    ...set
  } = endpointOptions(isUrl(given) ? { url: given } : given, path)
  const tls = set.tls === undefined ? nothing : (platform.tls ?? anyObject)(set.tls, `${path}.tls`)
  const socket =
    set.socket === undefined
      ? nothing
      : (platform.socket ?? anyObject)(set.socket, `${path}.socket`)
  const headers = set.headers === undefined ? nothing : { ...set.headers }
  const protocols = set.protocols === undefined ? usualProtocols : [...set.protocols]
  const url = urlOf(source)
  const username = optional(text)(decoded(url.username), 'url.username')
  const password = optional(bytes)(decoded(url.password), 'url.password')
  url.username = ''
  url.password = ''
  // With a custom transport, any scheme is accepted.
  if (transport === undefined) checkUrl(url, platform, source)
  const target: Target = { url, tls, socket, headers, protocols }
  const refused = transport === undefined ? platform.unsupported(target) : undefined
  if (refused !== undefined) throw unsupported(`${path}.${refused}`, `with ${url.protocol} here`)
  return {
    target,
    name: shown(url),
    username,
    password,
    transport,
    source: transport === undefined ? url : given,
  }
}

function urlOf(source: string | URL): URL {
  try {
    return new URL(source)
  } catch {
    return badUrl(objection(textOf(source)), source)
  }
}

// Why a URL cannot be parsed. Text after the host may belong to an unescaped user name or password,
// so it is not shown.
function objection(source: string): string {
  const start = source.indexOf('://') + 3
  if (start < 3) return `no scheme${form}`
  const [authority = ''] = source.slice(start).split('/', 1)
  if (
    source.lastIndexOf('@') > start &&
    ['#', '?', '/'].some((mark) => source.slice(start, source.lastIndexOf('@')).includes(mark))
  )
    return escaped
  const port = authority.slice(authority.lastIndexOf(':') + 1)
  return Number(port) > 65_535
    ? 'the port must be from 1 to 65535'
    : 'it cannot be parsed; host and port?'
}

const escaped = '# must be %23; escape each part before the @ with encodeURIComponent()'

function checkUrl(
  { protocol, host, hostname, pathname, href }: URL,
  platform: Platform,
  source: string | URL,
): void {
  const scheme = protocol.slice(0, -1)
  // If the scheme was forgotten, its place may hold a user name, which is not shown.
  if (platform.dialler(scheme) === undefined)
    badUrl(
      host === '' ? `no scheme${form}` : `no transport for ${protocol} but ${platform.schemes}`,
      source,
    )
  if ((scheme === 'unix' ? pathname : hostname) === '') badUrl('no host or path')
  // The WebSocket class throws for a fragment; elsewhere, '#' is probably an unescaped part of user
  // name or password.
  if (href.includes('#')) badUrl(escaped)
}

const form = ', as in mqtt://host or wss://host'

// Throws without showing anything that may contain a user name or password.
function badUrl(message: string, source: unknown = '@'): never {
  const given = textOf(source)
  const shownText = given.includes('@') ? '' : ` ${quoted(given.split('?', 1).join())}`
  throw optionError('ERR_INVALID_BROKER_URL', 'url', `invalid broker URL${shownText}: ${message}`)
}

function decoded(text: string): string | undefined {
  try {
    return text === '' ? undefined : decodeURIComponent(text)
  } catch {
    badUrl('bad percent-encoding')
  }
}

/**
 * The endpoints in a Server Reference that `allowed` contains: same scheme and settings, another
 * host (section 4.11). Entries of `allowed` are `host` or `host:port`.
 */
export function referred(
  base: ParsedEndpoint,
  reference: string,
  allowed: readonly string[],
): ParsedEndpoint[] {
  const { protocol } = base.target.url
  const found: ParsedEndpoint[] = []
  for (const name of reference.split(' ').slice(0, mostReferences)) {
    if (!URL.canParse(`${protocol}//${name}`)) continue
    const { hostname, host, port, username } = new URL(`${protocol}//${name}`)
    const url = new URL(base.target.url)
    // An entry without a port does not allow other ports of that host.
    const known =
      allowed.includes(host.toLowerCase()) ||
      (allowed.includes(hostname.toLowerCase()) && (port === '' || port === url.port))
    if (!known || username !== '') continue
    url.hostname = hostname
    url.port = port
    const source = base.transport === undefined ? url : { ...(base.source as EndpointOptions), url }
    found.push({ ...base, target: { ...base.target, url }, name: shown(url), source })
  }
  return found
}

// Without the query, which may contain a signature.
function shown({ protocol, host, pathname }: URL): string {
  return `${protocol}//${host}${pathname}`
}
