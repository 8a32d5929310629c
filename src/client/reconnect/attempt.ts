/**
 * One attempt to connect to one endpoint: credentials within `credentialsTimeout`, then transport,
 * CONNECT and CONNACK within `connectTimeout`.
 *
 * It results in a connection or a typed error, and leaves no socket, timer or listener behind.
 */

import { type Abort, silent, within } from '../../common/abort.js'
import { assertNone, optionError } from '../../common/schema.js'
import { MqttError, type MqttErrorCode } from '../../errors.js'
import type { Transport } from '../../transport/transport.js'
import type { ProtocolVersion } from '../../wire/packets.js'
import { type Login, login, type ParsedEndpoint, redirected } from '../options/check-endpoint.js'
import {
  type ConnectInput,
  checkConnect,
  connectPacket,
  unspoken,
} from '../options/check-options.js'
import type { CredentialsContext } from '../options/index.js'
import type { CancelTimer, Platform } from '../platform.js'
import { broken, closedEarly, speaksHttp, speaksTls } from '../session/refusal.js'
import type { ReconnectHost } from './ports.js'

const nothingDropped: readonly string[] = Object.freeze([])

/** The plan of one attempt. */
export interface AttemptPlan {
  readonly endpoint: ParsedEndpoint
  /** Number of the attempt since a connection was stable, from 1. */
  readonly number: number
  readonly lastError: MqttError | undefined
  readonly version: ProtocolVersion
  readonly cleanStart: boolean
  readonly limits: ConnectInput['limits']
}

/**
 * Connects and returns the credentials used, or throws an MqttError. `abort` ends the attempt, also
 * on timeout.
 */
export async function attempt(
  host: ReconnectHost,
  plan: AttemptPlan,
  abort: Abort,
): Promise<Login | undefined> {
  const { options, platform } = host
  const { endpoint, number, lastError } = plan
  const late = (): void =>
    abort.abort(broken('ERR_CONNECT_TIMEOUT', `no CONNACK in ${options.connectTimeout} ms`))
  const { renewed } = host
  host.renewed = undefined
  let cancel: CancelTimer | undefined
  try {
    const { href } = endpoint.target.url
    const given =
      renewed?.endpoint === endpoint
        ? renewed.login
        : await credentials(host, { attempt: number, endpoint: href, lastError }, abort)
    abort.throwIfAborted()
    cancel = platform.setTimer(late, options.connectTimeout)
    await connect(host, { ...plan, endpoint: redirected(endpoint, given, platform) }, given, abort)
    return given
  } catch (error) {
    throw asMqttError(abort.aborted ? abort.reason : error, platform, endpoint.target.url)
  } finally {
    cancel?.()
  }
}

async function connect(
  host: ReconnectHost,
  plan: AttemptPlan,
  given: Login | undefined,
  abort: Abort,
): Promise<void> {
  const { options } = host
  const { endpoint, number, cleanStart, limits } = plan
  const url = endpoint.name
  const overrides = given?.connect
  // With user properties, 'auto' does not fall back to 3.1.1, wherever they come from.
  const hasProperties = (overrides?.userProperties ?? options.userProperties) !== undefined
  const version = options.protocolVersion === 'auto' && hasProperties ? 5 : plan.version
  const dropped = version === 4 ? unspoken({ ...options.set, ...overrides }) : nothingDropped
  if (options.protocolVersion === 4) assertNone(dropped)
  const auth = await host.begin(() => ({
    attempt: number,
    endpoint: url,
    signal: abort.signal,
    reauthentication: false,
  }))
  // A 3.1.1 server assigns no identifier, so one is generated from characters that every server
  // accepts [MQTT-3.1.3-5].
  const character = (): string => Math.floor(host.platform.random() * 36).toString(36)
  if (version === 4) host.clientId ||= `mqwire${Array.from({ length: 16 }, character).join('')}`
  const packet = connectPacket(options, {
    version,
    cleanStart,
    limits,
    clientId: host.clientId,
    username: given?.username ?? options.username ?? endpoint.username,
    password: given?.password ?? options.password ?? endpoint.password,
    overrides,
    hidden: host.platform.hidden?.() === true,
    auth,
  })
  // Values from the options alone were checked when the client was made.
  const asChecked =
    version === 5 && (given ?? options.auth ?? endpoint.username ?? endpoint.password) === undefined
  if (!asChecked) checkConnect(packet)
  abort.throwIfAborted()
  host.connections.handleDial(url, number, dropped)
  // A `dial` listener may have aborted the attempt.
  abort.throwIfAborted()
  const transport = await dial(host, endpoint, abort)
  try {
    await host.connections.handshake(transport, packet, abort)
  } catch (error) {
    throw hinted(error, endpoint)
  }
}

// Adds a hint about the port or URL to an error. With a custom transport, the caller knows what the
// endpoint is.
function hinted(error: unknown, { target, transport }: ParsedEndpoint): unknown {
  if (!MqttError.is(error) || transport !== undefined) return error
  const { protocol, host } = target.url
  const secure = ['mqtts:', 'ssl:', 'tls:', 'wss:'].includes(protocol)
  const hint =
    error.message === speaksHttp
      ? `${host} speaks HTTP: is it a port for WebSocket? Its URL is ${secure ? 'wss' : 'ws'}://${host}/, and the path`
      : error.message === speaksTls
        ? `${host} speaks TLS: its URL is mqtts://${host}`
        : error.message !== closedEarly
          ? undefined
          : secure
            ? `${closedEarly}: a client certificate, or another port?`
            : `${closedEarly}: TLS (${protocol.startsWith('ws') ? 'wss' : 'mqtts'}://${host}), or another port?`
  return hint === undefined
    ? error
    : new MqttError(error.code, hint, { ...error, cause: error.cause })
}

/**
 * Calls the application's `credentials` function. `abort` ends the wait, also after
 * `credentialsTimeout`. @throws MqttError
 */
export async function credentials(
  { options, platform }: ReconnectHost,
  context: Omit<CredentialsContext, 'signal'>,
  abort: Pick<AbortController, 'abort' | 'signal'>,
): Promise<Login | undefined> {
  const { credentials: ask, credentialsTimeout } = options
  if (ask === undefined) return undefined
  const { signal } = abort
  const late = `credentials() did not settle in ${credentialsTimeout} ms (credentialsTimeout)`
  const cancel = platform.setTimer(
    () => abort.abort(broken('ERR_CONNECT_TIMEOUT', late)),
    credentialsTimeout,
  )
  try {
    return login(
      (await within(Promise.resolve(ask({ ...context, signal })), signal)) ?? {},
      'credentials',
    )
  } catch (cause) {
    if (signal.aborted) throw signal.reason
    if (MqttError.is(cause)) throw cause
    throw new MqttError('ERR_CONNECT_FAILED', 'credentials() failed', { cause })
  } finally {
    cancel()
  }
}

// A platform's dialler rejects when the signal aborts; a custom transport may ignore the signal.
async function dial(
  { platform, options }: ReconnectHost,
  { target, transport, source }: ParsedEndpoint,
  abort: Abort,
): Promise<Transport> {
  const { maximumPacketSize } = options
  const scheme = target.url.protocol.slice(0, -1)
  if (transport === undefined) {
    // The platform's diallers use nothing else of a signal.
    const signal = abort as unknown as AbortSignal
    const opening = platform.dialler(scheme)?.(target, { signal, maximumPacketSize })
    return opening ?? Promise.reject(optionError('ERR_INVALID_BROKER_URL', 'url'))
  }
  const { signal } = abort
  const opening = Promise.resolve(transport(source, { signal }))
  try {
    return await within(opening, signal)
  } catch (error) {
    // A transport that opens too late is destroyed. By now an error of it, or a result that is no
    // transport, concerns no call.
    silent(opening.then((late) => late.destroy()))
    throw error
  }
}

// The only place where platform errors are wrapped.
function asMqttError(error: unknown, platform: Platform, url: URL): MqttError {
  if (MqttError.is(error)) return error
  const code: MqttErrorCode = platform.isTlsError(error) ? 'ERR_TLS' : 'ERR_CONNECT_FAILED'
  const detail = error instanceof Error ? platform.describe(error, url) : ''
  return new MqttError(code, detail === '' ? undefined : `connect failed: ${detail}`, {
    fault: 'remote',
    cause: error,
  })
}
