/**
 * One attempt to connect to one endpoint: credentials, dial, CONNECT, CONNACK, all within `connectTimeout`.
 *
 * It gives an established connection or throws a typed error, and leaves no socket, timer or listener behind.
 */
import { MqttError, type MqttErrorCode } from '../errors.js'
import type { Transport } from '../transport/transport.js'
import type { ConnectPacket } from '../wire/packets.js'
import { deferred, onAbort } from './abort.js'
import { type Login, login, type ParsedEndpoint, redirected } from './endpoint.js'
import { type Config, checkConnect, connectPacket } from './options.js'
import type { Platform } from './platform.js'

/** What an attempt starts from. */
export interface AttemptInput {
  readonly config: Config
  readonly platform: Platform
  readonly endpoint: ParsedEndpoint
  readonly clientId: string
  readonly cleanStart: boolean
  readonly attempt: number
  readonly lastError: MqttError | undefined
  readonly signal: AbortSignal
  /** Told right before the transport is opened. */
  onDial(url: string): void
  /** Runs the handshake on an open transport; fulfils at CONNACK, rejects otherwise. Must end when the signal aborts. */
  handshake(transport: Transport, packet: ConnectPacket, signal: AbortSignal): Promise<void>
}

/** Connects, or throws an MqttError. */
export async function attempt(input: AttemptInput): Promise<void> {
  const { config, platform, signal } = input
  const abort = new AbortController()
  const stop = onAbort(signal, () => abort.abort(signal.reason))
  const late = new MqttError('ERR_CONNECT_TIMEOUT', `no connection within ${config.connectTimeout} ms`, { outcome: 'unknown', fault: 'remote' })
  const cancel = platform.setTimer(() => abort.abort(late), config.connectTimeout)
  try {
    await connect(input, abort.signal)
  } catch (error) {
    throw asMqttError(abort.signal.aborted ? abort.signal.reason : error, platform)
  } finally {
    cancel()
    stop()
  }
}

async function connect(input: AttemptInput, signal: AbortSignal): Promise<void> {
  const { config, platform, clientId, cleanStart } = input
  const given = await credentials(input, signal)
  const endpoint = redirected(input.endpoint, given, platform)
  const login = {
    username: given?.username ?? config.username ?? endpoint.username,
    password: given?.password ?? config.password ?? endpoint.password,
  }
  const packet = connectPacket(config, clientId, cleanStart, login)
  checkConnect(packet)
  const transport = await dial(input, endpoint, signal)
  await input.handshake(transport, packet, signal)
}

async function credentials({ config, endpoint, attempt: number, lastError }: AttemptInput, signal: AbortSignal): Promise<Login | undefined> {
  if (config.credentials === undefined) return undefined
  try {
    const answer = config.credentials({ attempt: number, endpoint: endpoint.target.url.href, lastError, signal })
    return login((await within(Promise.resolve(answer), signal)) ?? {}, 'credentials')
  } catch (cause) {
    if (signal.aborted || MqttError.is(cause)) throw cause
    throw new MqttError('ERR_CONNECT_FAILED', 'credentials() failed', { cause })
  }
}

async function dial({ platform, config, onDial }: AttemptInput, endpoint: ParsedEndpoint, signal: AbortSignal): Promise<Transport> {
  const { target, transport: custom, source } = endpoint
  onDial(target.url.href)
  const dialler = platform.dialler(target.url.protocol.slice(0, -1))
  const opening =
    custom !== undefined ? Promise.resolve(custom(source, { signal })) : dialler?.(target, { signal, maximumPacketSize: config.maximumPacketSize })
  if (opening === undefined) throw new MqttError('ERR_INVALID_BROKER_URL', 'no transport for this scheme on this platform', { option: 'url' })
  try {
    return await within(opening, signal)
  } catch (error) {
    // One that opens too late has no owner.
    opening.then(
      (transport) => transport.destroy(),
      () => undefined,
    )
    throw error
  }
}

/** The promise, unless the signal aborts first: then its reason. */
export async function within<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  const gone = deferred<never>()
  const stop = onAbort(signal, () => gone.reject(signal.reason))
  try {
    return await Promise.race([promise, gone.promise])
  } finally {
    stop()
  }
}

// Platform errors are wrapped here and nowhere else.
function asMqttError(error: unknown, platform: Platform): MqttError {
  if (MqttError.is(error)) return error
  const code: MqttErrorCode = platform.isTlsError(error) ? 'ERR_TLS' : 'ERR_CONNECT_FAILED'
  const detail = error instanceof Error ? platform.describe(error) : ''
  return new MqttError(code, `the connection could not be opened${detail === '' ? '' : `: ${detail}`}`, { fault: 'remote', cause: error })
}
