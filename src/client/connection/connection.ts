/**
 * One connection, from the open transport to the end of the stream: its two halves, what the session asks for, and how it ends.
 *
 * It knows no subscriptions and no promises of the application; the host and its parts get what concerns them. It never throws into the
 * transport, and after `handleClosed` it does nothing any more.
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

/** Milliseconds that a peer gets to end its side of the stream once all that we had to say has left. */
const closePatience = 1000

/** One connection. */
export class Connection implements ReaderOwner, WriterOwner {
  /** Where packets leave. */
  readonly writer: PacketWriter
  /** Nothing more comes in or goes out, but for a goodbye that was handed over. */
  over = false
  /** When CONNACK counted, in monotonic milliseconds, and where what was written before ends; undefined and 0 until then. */
  acceptedAt: number | undefined
  acceptedEnd = 0
  readonly #host: ConnectionHost
  readonly #transport: Transport
  readonly reader: PacketReader
  #cancel: CancelTimer | undefined
  /** When the timer fires. */
  #timerAt = Number.POSITIVE_INFINITY

  constructor(transport: Transport, host: ConnectionHost, connect: ConnectPacket) {
    this.#transport = transport
    this.#host = host
    this.writer = new PacketWriter(transport, host, connect.protocolVersion, this)
    this.reader = new PacketReader(transport, host, connect, this)
    transport.open(this.reader)
  }

  /** Bytes held for this connection: what was not read to its end, topics, and output that has not left. */
  get held(): number {
    return this.reader.held + this.writer.piled
  }

  /** CONNACK counts. */
  handleAccepted(): void {
    this.acceptedAt = this.#host.platform.now()
    this.acceptedEnd = this.writer.end
  }

  /** Does what the session asks for. To be called after every command given to it. */
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

  /** DISCONNECT is queued or not sent at all: flush, and end the stream. What is queued gets so many milliseconds to leave. */
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

  /** Cuts the connection. `handleClosed` is called before this returns. */
  destroy(error?: MqttError): void {
    this.#transport.destroy(error)
    this.#finish(error)
  }

  handleEnd(cause: unknown): void {
    const host = this.#host
    this.#stopTimer()
    if (host.session.state === 'closed') return this.#finish(undefined)
    // A transport that holds whole messages has a limit of its own: that is no loss of the network.
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
    // Timers of a hidden page come up to a minute late: incoming bytes are an occasion to do what is due.
    if (now >= session.deadline) session.handleTimeout(now)
    this.act()
    this.writer.flush()
    this.arm()
  }

  giveUp(error: MqttError): void {
    this.#host.session.close(error, undefined)
    this.pump()
  }

  /** Sees to the timer, one for all deadlines. It is moved only when a deadline comes nearer: those that move away are looked up when it fires. */
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

  // The server gives us up after one and a half keep-alives: a connection that ends may have waited for its timer until now.
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
      // A server whose Maximum Packet Size leaves no room for a ping cannot be kept.
      session.close(error as MqttError, undefined)
    }
  }

  #close(error: MqttError, reasonCode: number | undefined): void {
    if (this.over) return
    // Acknowledgements that are queued may answer what is now known to be wrong: they stay behind. Over our own limits they leave, or nothing moves on.
    if (error.fault === 'remote') this.#host.session.acks.clear()
    // No packet goes into the middle of another.
    if (reasonCode === undefined || this.writer.source !== undefined) return this.destroy(error)
    this.writer.sendDisconnect({ type: 'disconnect', reasonCode, properties: {} })
    this.writer.flushNow()
    this.#finish(error)
    this.#cutAfter(closePatience)
    this.#transport.close()
  }

  // A link over which nothing leaves is cut off, and a peer that does not end its side.
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
