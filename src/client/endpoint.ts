/**
 * Endpoints, taken apart: URL without user-info, credentials, settings; and checked against what the platform can honour.
 *
 * A URL with credentials is never kept, shown or put into an error.
 */
import { MqttError } from '../errors.js'
import type { SocketOptions, Target, TlsOptions } from '../transport/transport.js'
import type { Bytes } from '../wire/packets.js'
import type { CustomTransport, Endpoint, EndpointOptions } from './api.js'
import type { Platform } from './platform.js'
import { boolean, bytes, callable, invalid, object, oneOf, optional, type Parser, type Schema, string, text } from './schema.js'

/** One endpoint, ready to dial. */
export interface ParsedEndpoint {
  readonly target: Target
  readonly username: string | undefined
  readonly password: Bytes | undefined
  readonly transport: CustomTransport | undefined
  /** What the caller gave, for `transport`. */
  readonly source: Endpoint
}

const strings: Parser<readonly string[]> = (value, path) =>
  Array.isArray(value) && value.every((item) => typeof item === 'string') ? Object.freeze([...value]) : invalid(path, 'an array of strings')

const pem: Parser<string | Uint8Array> = (value, path) => (typeof value === 'string' ? value : bytes(value, path))
const authorities: Parser<NonNullable<TlsOptions['ca']>> = (value, path) =>
  Array.isArray(value) ? value.map((item) => pem(item, path)) : pem(value, path)

const tlsSchema: Schema<TlsOptions> = {
  ca: optional(authorities),
  cert: optional(pem),
  key: optional(pem),
  passphrase: optional(string),
  servername: optional(string),
  alpn: optional(strings),
  minVersion: optional(oneOf('TLSv1.2', 'TLSv1.3')),
  insecure: optional((value, path) =>
    typeof value === 'string' && value !== '' ? value : invalid(path, 'the reason, as a string that is not empty'),
  ),
}

const socketSchema: Schema<SocketOptions> = {
  noDelay: optional(boolean),
  family: optional(oneOf(4, 6)),
  lookup: optional(callable<NonNullable<SocketOptions['lookup']>>),
  localAddress: optional(string),
}

const headers: Parser<Readonly<Record<string, string>>> = (value, path) => {
  if (typeof value !== 'object' || value === null || !Object.values(value).every((item) => typeof item === 'string'))
    return invalid(path, 'an object of strings')
  return Object.freeze({ ...value })
}

const urlLike: Parser<string | URL> = (value, path) =>
  typeof value === 'string' || value instanceof URL ? value : invalid(path, 'a string or a URL')

const endpoint = object<EndpointOptions>({
  url: urlLike,
  tls: optional(object<TlsOptions>(tlsSchema)),
  headers: optional(headers),
  protocols: optional(strings),
  socket: optional(object<SocketOptions>(socketSchema)),
  transport: optional(callable<CustomTransport>),
})

/** Parses one endpoint or a list. @throws MqttError ERR_MISSING_BROKER, ERR_INVALID_BROKER_URL, ERR_INVALID_OPTION, ERR_UNSUPPORTED_OPTION */
export function parseEndpoints(endpoints: Endpoint | readonly Endpoint[], platform: Platform): readonly ParsedEndpoint[] {
  const list = Array.isArray(endpoints)
    ? (endpoints as readonly Endpoint[])
    : endpoints === undefined || endpoints === null
      ? []
      : [endpoints as Endpoint]
  if (list.length === 0) throw new MqttError('ERR_MISSING_BROKER', 'no endpoint was given')
  return Object.freeze(list.map((item, index) => parseEndpoint(item, list.length > 1 ? `endpoints[${index}]` : 'endpoint', platform)))
}

/** True when at least one setting has a value. */
export function hasSettings(settings: object): boolean {
  return Object.values(settings).some((value) => value !== undefined)
}

/** What `credentials()` gave, checked. */
export interface Login {
  readonly username: string | undefined
  readonly password: Bytes | undefined
  readonly headers: Readonly<Record<string, string>> | undefined
  readonly url: string | URL | undefined
}

/** Checks what `credentials()` gave. @throws MqttError ERR_INVALID_OPTION */
export const login: Parser<Login> = object<Login>({
  username: optional(text),
  password: optional(bytes),
  headers: optional(headers),
  url: optional(urlLike),
})

/** The endpoint with the URL and headers that `credentials()` gave. @throws MqttError when the platform cannot honour them */
export function redirected(base: ParsedEndpoint, given: Login | undefined, platform: Platform): ParsedEndpoint {
  if (given?.url === undefined && given?.headers === undefined) return base
  const { transport } = base
  const { url, login: user } =
    given.url === undefined ? { url: base.target.url, login: undefined } : parseUrl(given.url, transport === undefined ? platform : undefined)
  const target: Target = { ...base.target, url, headers: { ...base.target.headers, ...given.headers } }
  assertSupported(target, transport, 'credentials', platform)
  return { target, transport, username: user?.username ?? base.username, password: user?.password ?? base.password, source: { ...target, transport } }
}

function assertSupported(target: Target, transport: CustomTransport | undefined, path: string, platform: Platform): void {
  const unsupported = transport === undefined ? platform.unsupported(target) : undefined
  if (unsupported === undefined) return
  const option = `${path}.${unsupported}`
  throw new MqttError('ERR_UNSUPPORTED_OPTION', `${option} cannot be honoured for ${target.url.protocol} on this platform`, { option })
}

function parseEndpoint(source: Endpoint, path: string, platform: Platform): ParsedEndpoint {
  const options = typeof source === 'string' || source instanceof URL ? { url: source } : source
  const { url, tls, headers: extra, protocols, socket, transport } = endpoint(options, path)
  const parsed = parseUrl(url, transport === undefined ? platform : undefined)
  const target: Target = { url: parsed.url, tls: tls ?? {}, socket: socket ?? {}, headers: extra ?? {}, protocols: protocols ?? ['mqtt'] }
  assertSupported(target, transport, path, platform)
  return Object.freeze({ target, ...parsed.login, transport, source: transport === undefined ? parsed.url : source })
}

interface ParsedUrl {
  readonly url: URL
  readonly login: { readonly username: string | undefined; readonly password: Bytes | undefined }
}

// Without a platform (a custom transport) any scheme will do.
function parseUrl(source: string | URL, platform: Platform | undefined): ParsedUrl {
  let url: URL
  try {
    url = new URL(source)
  } catch {
    throw badUrl('the broker URL cannot be parsed; it takes the form scheme://host:port')
  }
  const username = decoded(url.username)
  const password = decoded(url.password)
  const user = {
    username: username === undefined ? undefined : text(username, 'url.username'),
    password: password === undefined ? undefined : bytes(password, 'url.password'),
  }
  url.username = ''
  url.password = ''
  if (platform === undefined) return { url, login: user }
  const scheme = url.protocol.slice(0, -1)
  // What stands for the scheme may be a user name, when the scheme was forgotten: it is not shown.
  if (platform.dialler(scheme) === undefined) throw badUrl('there is no transport for the scheme of the broker URL on this platform')
  if (url.hostname === '' && scheme !== 'unix') throw badUrl('the broker URL names no host')
  if (scheme === 'unix' && url.pathname === '') throw badUrl('the broker URL names no socket path')
  return { url, login: user }
}

function badUrl(message: string): MqttError {
  return new MqttError('ERR_INVALID_BROKER_URL', message, { option: 'url' })
}

function decoded(text: string): string | undefined {
  if (text === '') return undefined
  try {
    return decodeURIComponent(text)
  } catch {
    throw badUrl('the user-info of the broker URL is not valid percent-encoding')
  }
}
