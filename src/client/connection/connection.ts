/**
 * One connection, from the open transport to the end of the stream: its reader and writer, the
 * session's actions, and how it ends.
 *
 * It knows no subscriptions and no promises of the application. It never throws into the transport,
 * and does nothing after `handleClosed`.
 */

import { tally } from '../../common/counters.js'
import { MqttError } from '../../errors.js'
import type { Transport } from '../../transport/transport.js'
import type { ClientPacket, ConnectPacket } from '../../wire/packets.js'
import type { CancelTimer } from '../platform.js'
import { broken } from '../session/refusal.js'
import { PacketReader, type ReaderOwner } from './packet-reader.js'
import { PacketWriter } from './packet-writer.js'
import type { ConnectionHost } from './ports.js'
import type { WriterOwner } from './stream-writer.js'

/** Milliseconds that the peer has to close its side after everything was sent. */
const closePatience = 1000

/** One connection. */
export class Connection implements ReaderOwner, WriterOwner {
  /** Where packets leave. */
  readonly writer: PacketWriter
  /** Nothing more comes in or goes out, except a DISCONNECT that was already handed over. */
  over = false
  /**
   * Monotonic milliseconds of CONNACK, and the end of the output written before it; undefined and 0
   * until then.
   */
  acceptedAt: number | undefined
  acceptedEnd = 0
  readonly #host: ConnectionHost
  readonly #transport: Transport
  readonly reader: PacketReader
  #cancel: CancelTimer | undefined
  /** The time for which the timer is set. */
  #timerAt = Number.POSITIVE_INFINITY

  constructor(transport: Transport, host: ConnectionHost, connect: ConnectPacket) {
    this.#transport = transport
    this.#host = host
    this.writer = new PacketWriter(transport, host, connect.protocolVersion, this)
    this.reader = new PacketReader(transport, host, connect, this)
    transport.open(this.reader)
  }

  /** Bytes held for this connection: unread input, topics, and output that has not left. */
  get held(): number {
    return this.reader.held + this.writer.piled
  }

  /** CONNACK was accepted. */
  handleAccepted(): void {
    this.acceptedAt = this.#host.platform.now()
    this.acceptedEnd = this.writer.end
  }

  /** Runs the session's actions. Call it after every command to the session. */
  pump(): void {
    this.act()
    this.writer.queueFlush()
    this.arm()
  }

  act(): void {
    const host = this.#host
    const { actions } = host.session
    for (let action = actions.shift(); action !== undefined; action = actions.shift()) {
      if (action.type === 'send') this.#send(action.packet)
      else if (action.type === 'close') this.#close(action.error, action.reasonCode)
      else if (action.type === 'exceeded') host.log('warn', 'the server exceeds Receive Maximum')
      else host.handleAction(action)
    }
  }

  /**
   * Flushes and closes the stream, after DISCONNECT was queued (or is not sent). Queued output has
   * `patience` milliseconds to leave.
   */
  end(patience = closePatience): void {
    if (this.over) return
    this.#cutAfter(patience)
    this.writer.flushNow()
    this.writer.silence(() => {
      this.#transport.close()
      this.writer.onWritten((error) => {
        if (error === undefined && !this.over) this.#cutAfter(closePatience)
      })
    })
  }

  /** Closes the connection immediately. `handleClosed` is called before this returns. */
  destroy(error?: MqttError): void {
    this.#transport.destroy(error)
    this.#finish(error)
  }

  handleEnd(cause: unknown): void {
    const host = this.#host
    this.#stopTimer()
    if (host.session.state === 'closed') return this.#finish(undefined)
    // A transport that holds whole messages has its own size limit; exceeding it is no network
    // failure.
    const isTooLarge = MqttError.is(cause) && cause.code === 'ERR_PACKET_TOO_LARGE'
    if (isTooLarge) {
      tally(host, 'tooLarge')
      host.log('warn', 'the connection ended: ', cause.message)
    }
    this.#finish(isTooLarge ? cause : broken('ERR_CONNECTION_LOST', undefined, cause))
  }

  handleSlice(now: number): void {
    const { session } = this.#host
    if (session.state === 'connected' && this.#host.waiting) this.#host.flush()
    // In a hidden page, timers run up to a minute late, so incoming bytes also trigger what is due.
    if (now >= session.deadline) session.handleTimeout(now)
    this.act()
    this.writer.flush()
    this.arm()
  }

  giveUp(error: MqttError): void {
    this.#host.session.close(error, undefined)
    this.pump()
  }

  /**
   * Sets the single timer to the next deadline. It is reset only for an earlier deadline; later
   * ones are looked up when it fires.
   */
  arm(): void {
    const { platform, session } = this.#host
    const at = session.deadline
    if (this.over || at >= this.#timerAt) return
    const due = (): void => {
      this.#stopTimer()
      session.handleTimeout(platform.now())
      this.pump()
    }
    this.#setTimer(at, due, Math.max(0, at - platform.now()))
  }

  #setTimer(at: number, callback: () => void, delay: number): void {
    this.#cancel?.()
    this.#timerAt = at
    this.#cancel = this.#host.platform.setTimer(callback, delay)
  }

  // The server gives up after one and a half keep-alives, so a late timer may be why the connection
  // ended.
  #stopTimer(): void {
    const { events, platform, session } = this.#host
    const lateness = platform.now() - this.#timerAt
    const keepAlive = session.negotiated?.keepAlive ?? 0
    this.#cancel?.()
    this.#timerAt = Number.POSITIVE_INFINITY
    if (keepAlive > 0 && lateness >= keepAlive * 500 && lateness < Number.POSITIVE_INFINITY)
      events.emit('late', { lateness, keepAlive })
  }

  #send(packet: ClientPacket): void {
    const { counters, platform, session } = this.#host
    if (packet.type === 'disconnect') return this.writer.sendDisconnect(packet)
    if (packet.type === 'pingreq') counters?.handlePing(platform.now())
    try {
      this.writer.send(packet)
    } catch (error) {
      // If Maximum Packet Size does not even allow PINGREQ, the connection cannot be kept.
      session.close(error as MqttError, undefined)
    }
  }

  #close(error: MqttError, reasonCode: number | undefined): void {
    if (this.over) return
    // After a fault of the peer, queued acknowledgements may answer invalid packets and are
    // dropped. After a local limit they are sent, otherwise redelivery would repeat.
    if (error.fault === 'remote') this.#host.session.acks.clear()
    // DISCONNECT must not be sent in the middle of another packet.
    if (reasonCode === undefined || this.writer.source !== undefined) return this.destroy(error)
    this.writer.sendDisconnect({ type: 'disconnect', reasonCode, properties: {} })
    this.writer.flushNow()
    this.#finish(error)
    this.#cutAfter(closePatience)
    this.#transport.close()
  }

  // Destroys the transport after a delay, in case nothing leaves or the peer does not close its
  // side.
  #cutAfter(delay: number): void {
    this.#setTimer(Number.NEGATIVE_INFINITY, () => this.#transport.destroy(), delay)
  }

  #finish(error: MqttError | undefined): void {
    if (this.over) return
    this.over = true
    this.#host.events.transition(() => {
      this.#stopTimer()
      this.writer.stop()
      this.reader.stop()
      this.writer.abandon(error ?? broken('ERR_CONNECTION_LOST'))
      this.#host.connections.handleClosed(error)
    })
  }
}
