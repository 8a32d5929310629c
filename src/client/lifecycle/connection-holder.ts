/**
 * The current connection of a client: opening, replacing and closing it. There is at most one.
 * `connection-events.ts` decides what its end means for the client.
 */
import { type Abort, type Deferred, deferred } from '../../common/abort.js'
import { closedError } from '../../common/outcome.js'
import { MqttError } from '../../errors.js'
import type { Transport } from '../../transport/transport.js'
import type { FrameScanner } from '../../wire/frames.js'
import type { ConnackPacket, ConnectPacket, Packet, Properties } from '../../wire/packets.js'
import { Connection } from '../connection/connection.js'
import type { ConnectionHost, MessageTaker } from '../connection/ports.js'
import type { Extra } from '../context.js'
import type { ClientEvents } from '../options/index.js'
import type { CancelTimer } from '../platform.js'
import { broken, closedEarly } from '../session/refusal.js'

/** The client as its connections see it. */
export type HolderHost = ConnectionHost & {
  /** Undefined until the first publish. */
  readonly publishingIfUsed:
    | { readonly sent: { readonly counting: Promise<void> | undefined } }
    | undefined
  readonly extras: readonly Extra[]
  /** A connection that was up has ended; without an error after our DISCONNECT. */
  handleLost(error: MqttError | undefined): void
}

/** The connections of one client, one after the other. */
export class ConnectionHolder {
  /** A faster frame scanner; undefined without one, or before it is loaded. */
  scanner: FrameScanner | undefined
  /** Receives incoming messages: the router, unless a stored session has replaced it. */
  declare inbox: MessageTaker
  /** The latest endpoint, and options omitted for it. */
  dialled: Pick<ClientEvents['connect'], 'endpoint' | 'dropped'> = { endpoint: '', dropped: [] }
  /** The connection in any state, including the handshake. */
  current: Connection | undefined
  /** True between a `connect` event and its `disconnect` event. */
  up = false
  /** Set while a connection is being replaced by choice: the reason. */
  replacing: MqttError | undefined
  /** True from the end of a replaced connection until the next one is up. */
  replaced = false
  /** Timer for the expiry of the session on the server, while disconnected. */
  expiry: CancelTimer | undefined
  /** Milliseconds that the previous connection was up; 0 before the first ended. */
  lifetime = 0
  #handshake: Deferred<void> | undefined
  readonly #host: HolderHost

  constructor(host: HolderHost) {
    this.#host = host
  }

  /** The connection, while it accepts packets of the application. */
  get connection(): Connection | undefined {
    return this.#handshake === undefined && this.#host.session.state === 'connected'
      ? this.current
      : undefined
  }

  /** Bytes that the connection itself holds. */
  get held(): number {
    return this.current?.held ?? 0
  }

  /** Undefined unless packets are watched. */
  get watch(): ((direction: 'in' | 'out', packet: Packet) => void) | undefined {
    const { events, platform } = this.#host
    const watched = events.has('packet') || platform.traced?.('packet') === true
    return watched
      ? (direction, packet) => events.emit('packet', { direction, packet: redacted(packet) })
      : undefined
  }

  /** Runs the actions that the session has queued. */
  pump(): void {
    this.current?.pump()
  }

  /** Closes the connection without sending anything more. */
  cut(error: MqttError): void {
    this.current?.destroy(error)
  }

  useScanner(scanner: FrameScanner): void {
    this.scanner = scanner
    this.current?.reader.useScanner(scanner)
  }

  /** Replaces the connection, with DISCONNECT, so that no will is published. */
  replace(reason: string): void {
    const { connection } = this
    if (connection === undefined) return
    this.replaced = true
    this.replacing = new MqttError('ERR_CONNECTION_LOST', reason, { outcome: 'unknown' })
    connection.writer.flush()
    this.#host.session.disconnect(0, {})
    connection.pump()
    connection.end()
  }

  /**
   * Called right before the transport is opened; `dropped` lists options that this attempt omits.
   */
  handleDial(endpoint: string, attempt: number, dropped: readonly string[]): void {
    this.dialled = { endpoint, dropped }
    this.#host.log('debug', `attempt ${attempt} at ${endpoint}`)
    this.#host.events.emit('dial', { attempt, endpoint })
  }

  /**
   * Runs the handshake on an open transport. Resolves at CONNACK; rejects on failure, and when the
   * attempt is aborted.
   */
  async handshake(transport: Transport, packet: ConnectPacket, abort: Abort): Promise<void> {
    const done = deferred<void>()
    this.#handshake = done
    const link = new Connection(transport, this.#host, packet)
    this.current = link
    const stop = (): void => link.destroy(abort.reason)
    if (abort.aborted) stop()
    abort.addEventListener('abort', stop)
    try {
      this.#host.session.open()
      const waits = this.#host.extras.flatMap((extra) => extra.open?.(done.promise) ?? [])
      const counting = this.#host.publishingIfUsed?.sent.counting
      if (counting !== undefined) waits.push(counting)
      if (waits.length > 0) await Promise.race([Promise.all(waits), done.promise])
      // The connection may have ended meanwhile.
      if (this.current === link) {
        this.#host.session.connect(packet)
        link.pump()
      }
      await done.promise
    } catch (error) {
      // A connection that is sending DISCONNECT closes by itself.
      if (!link.over) link.destroy()
      throw error
    } finally {
      abort.removeEventListener('abort', stop)
      if (this.#handshake === done) this.#handshake = undefined
    }
  }

  /** CONNACK was accepted. */
  handleAccepted(): void {
    this.replaced = false
    this.#handshake?.resolve()
    this.#handshake = undefined
  }

  /** Checks a CONNACK before it is accepted; rejects when it must not be. */
  verify(packet: ConnackPacket): Promise<unknown> | undefined {
    const waits = this.#host.extras.flatMap((extra) => extra.verify?.(packet) ?? [])
    return waits.length > 0 ? Promise.all(waits) : undefined
  }

  /** Called exactly once when the connection ends; without an error after our DISCONNECT. */
  handleClosed(error: MqttError | undefined): void {
    const handshake = this.#handshake
    const { acceptedAt } = this.current ?? {}
    if (acceptedAt !== undefined) this.lifetime = this.#host.platform.now() - acceptedAt
    this.current = undefined
    if (handshake === undefined) return this.#host.handleLost(error)
    this.#host.session.suspend()
    handshake.reject(
      error?.code === 'ERR_CONNECTION_LOST'
        ? this.#beforeConnack(error.cause)
        : (error ?? closedError()),
    )
  }

  // A server may refuse the client certificate this late: in TLS 1.3 the handshake of a client is
  // over before the server has checked it.
  #beforeConnack(cause: unknown): MqttError {
    return broken(
      this.#host.platform.isTlsError(cause) ? 'ERR_TLS' : 'ERR_CONNECT_FAILED',
      closedEarly,
      cause,
    )
  }
}

/** A copy of a packet without credentials and authentication data. */
export function redacted(packet: Packet): Packet {
  const { properties } = packet as { readonly properties?: Properties }
  const copy =
    properties?.authenticationData === undefined
      ? { ...packet }
      : ({ ...packet, properties: { ...properties, authenticationData: undefined } } as Packet)
  return copy.type === 'connect'
    ? { ...copy, username: copy.username && '[redacted]', password: undefined }
    : copy
}
