/**
 * The connection that a client has: how it is opened, handed to what needs it, replaced and cut.
 *
 * There is at most one at a time. What its end means for the client is not decided here: see `transitions.ts`.
 */
import { type Deferred, deferred, onAbort } from '../../common/abort.js'
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

/** The client that has connections. */
export type HolderHost = ConnectionHost & {
  /** Undefined until the first publish. */
  readonly publishQueueIfUsed:
    | { readonly sent: { readonly counting: Promise<void> | undefined } }
    | undefined
  readonly extras: readonly Extra[]
  /** A connection that was up is over. Undefined: orderly, after our DISCONNECT. */
  handleLost(error: MqttError | undefined): void
}

/** The connections of one client, one after the other. */
export class ConnectionHolder {
  /** A scanner that finds frames faster; undefined without one, or before it is loaded. */
  scanner: FrameScanner | undefined
  /** Where messages come in: the router, unless something has to be done first. */
  declare inbox: MessageTaker
  /** What was dialled last. */
  dialled: Pick<ClientEvents['connect'], 'endpoint' | 'dropped'> = { endpoint: '', dropped: [] }
  /** In every state. */
  current: Connection | undefined
  /** True from a `connect` event to its `disconnect` event. */
  up = false
  /** The connection is being replaced, by our own choice, because of this. */
  replacing: MqttError | undefined
  /** True from the end of a connection that we replace until the next one is up. */
  replaced = false
  /** Until the session ends on the server, while there is no connection. */
  expiry: CancelTimer | undefined
  /** Milliseconds that the latest connection was up which is over; 0 before the first. */
  lifetime = 0
  #handshake: Deferred<void> | undefined
  readonly #host: HolderHost

  constructor(host: HolderHost) {
    this.#host = host
  }

  /** While it takes packets of the application. */
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

  /** Does what the session asks for, after a command given to it. */
  pump(): void {
    this.current?.pump()
  }

  /** Ends the connection, without a further byte. */
  cut(error: MqttError): void {
    this.current?.destroy(error)
  }

  useScanner(scanner: FrameScanner): void {
    this.scanner = scanner
    this.current?.reader.useScanner(scanner)
  }

  /** A connection that we give up ourselves ends with DISCONNECT, so that no will is published. */
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

  /** Right before the transport is opened; `dropped` are the options that the connection goes without. */
  handleDial(endpoint: string, attempt: number, dropped: readonly string[]): void {
    this.dialled = { endpoint, dropped }
    this.#host.log('debug', `attempt ${attempt} at ${endpoint}`)
    this.#host.events.emit('dial', { attempt, endpoint })
  }

  /** Runs the handshake on an open transport; fulfils at CONNACK, rejects otherwise and when the signal aborts. */
  async handshake(transport: Transport, packet: ConnectPacket, signal: AbortSignal): Promise<void> {
    const done = deferred<void>()
    this.#handshake = done
    const link = new Connection(transport, this.#host, packet)
    this.current = link
    const stop = onAbort(signal, () => link.destroy(signal.reason))
    try {
      this.#host.session.open()
      const waits = this.#host.extras.flatMap((extra) => extra.open?.(done.promise) ?? [])
      const counting = this.#host.publishQueueIfUsed?.sent.counting
      if (counting !== undefined) waits.push(counting)
      if (waits.length > 0) await Promise.race([Promise.all(waits), done.promise])
      // It may have ended meanwhile.
      if (this.current === link) {
        this.#host.session.connect(packet)
        link.pump()
      }
      await done.promise
    } catch (error) {
      // One that is saying goodbye is left to it.
      if (!link.over) link.destroy()
      throw error
    } finally {
      stop()
      if (this.#handshake === done) this.#handshake = undefined
    }
  }

  /** CONNACK said yes. */
  handleAccepted(): void {
    this.replaced = false
    this.#handshake?.resolve()
    this.#handshake = undefined
  }

  /** What a CONNACK has to wait for before it counts; rejects when it is not to be believed. */
  verify(packet: ConnackPacket): Promise<unknown> | undefined {
    const waits = this.#host.extras.flatMap((extra) => extra.verify?.(packet) ?? [])
    return waits.length > 0 ? Promise.all(waits) : undefined
  }

  /** The end of a connection, exactly once. Undefined: orderly, after our DISCONNECT. */
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

  // A server may refuse our certificate as late as this.
  #beforeConnack(cause: unknown): MqttError {
    return broken(
      this.#host.platform.isTlsError(cause) ? 'ERR_TLS' : 'ERR_CONNECT_FAILED',
      closedEarly,
      cause,
    )
  }
}

/** A copy without credentials and authentication data. */
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
