/**
 * The writing half of a connection: packets of the application and the session, acknowledgements
 * and replays, and when they are flushed.
 *
 * The connection must call `pump` after every command to the session. After `stop` there is no
 * timer.
 */

import { largePayload } from '../../common/outcome.js'
import { encoder } from '../../common/schema.js'
import { MqttError } from '../../errors.js'
import type { Transport } from '../../transport/transport.js'
import { PUBREL } from '../../wire/constants.js'
import { writePackedAck } from '../../wire/encode-client.js'
import { headRoom, writeMessage } from '../../wire/encode-publish.js'
import type { ClientPacket, DisconnectPacket, ProtocolVersion } from '../../wire/packets.js'
import type { Sending } from '../options/check-calls.js'
import type { CancelTimer } from '../platform.js'
import { broken, tooLarge } from '../session/refusal.js'
import { acknowledgement, goodbyes, publishPacket, writeControl } from './control.js'
import { largeBuffer, sliceBuffer } from './outgoing-bytes.js'
import type { ConnectionHost } from './ports.js'
import { Pace, StreamWriter, TurnEnd, type WriterOwner } from './stream-writer.js'

/** An empty acknowledgement queue keeps its array up to this length. */
const mostIdleAcks = 4096
/** Buffer space needed for an acknowledgement, with a margin. */
const ackRoom = 8
/** With more writes than this under way, small writes wait while the transport asks to. */
export const mostWrites = 64
/** ASCII text up to this length is encoded in JavaScript, which is faster than a platform call. */
const shortText = 256

/** The writing half of a connection. */
export class PacketWriter extends StreamWriter {
  /**
   * True when packets are watched. A cached value, updated now and then, because it is read for
   * each packet.
   */
  watched = false
  readonly #host: ConnectionHost
  readonly #version: ProtocolVersion
  /** Maximum Packet Size of the server [MQTT-3.2.2-15]. */
  #packetLimit = Number.POSITIVE_INFINITY
  readonly #pace = new Pace()
  /** Timer for acknowledgements that a careful start holds back. */
  #wake: CancelTimer | undefined
  #turnEnd: TurnEnd | undefined

  constructor(
    transport: Transport,
    host: ConnectionHost,
    version: ProtocolVersion,
    owner: WriterOwner,
  ) {
    super(transport, host, owner)
    this.#host = host
    this.#version = version
    this.lookForWatchers()
  }

  /**
   * Updates `watched`. Call it at the beginning of a read or turn, and when a listener is added.
   */
  lookForWatchers(): void {
    this.watched = this.#host.connections.watch !== undefined
  }

  /**
   * Writes a PUBLISH at QoS 0, with a topic alias if the server accepts them. Text is sent as
   * UTF-8.
   * @throws as `publish`
   */
  post(topic: string, payload: Uint8Array | string, how: Sending): void {
    const { topics } = this.#host.session
    // An empty topic gets no alias; with one, it would mean the alias's topic.
    const alias = topic === '' ? 0 : topics.use(topic)
    try {
      this.publish(alias > 0 ? '' : topic, payload, how, 0, false, Math.abs(alias))
    } catch (error) {
      if (alias < 0) topics.forget(topic)
      if (alias === 0 || !isTooLarge(error)) throw error
      // Without the alias, the packet may fit.
      this.publish(topic, payload, how, 0)
    }
  }

  /**
   * Writes a PUBLISH and returns its size in bytes. `again` sets DUP, for one of an earlier
   * connection [MQTT-3.3.1-1].
   *
   * @param packetId 0 at QoS 0
   * @param alias 0 for none
   * @throws WireError, MqttError ERR_PACKET_TOO_LARGE; nothing was written then
   */
  publish(
    topic: string,
    given: Uint8Array | string,
    how: Sending,
    packetId: number,
    again = false,
    alias = 0,
  ): number {
    const { writer } = this
    const version = this.#version
    const payload =
      typeof given === 'string' && given.length + topic.length > shortText
        ? encoder.encode(given)
        : given
    const rest = topic.length * 3 + headRoom
    // If it does not fit the buffer, the content so far is sent first.
    if (writer.length > 0 && writer.length + payload.length + rest > largeBuffer) this.flushNow()
    // While a large payload is being sent, later packets wait in the writer.
    const large =
      typeof payload !== 'string' &&
      payload.length + rest > sliceBuffer &&
      this.source === undefined
    const mark = writer.length
    this.queueFlush()
    if (!writeMessage(writer, topic, payload, how, packetId, alias, again, version, large))
      return this.publish(topic, encoder.encode(payload as string), how, packetId, again, alias)
    const size = this.#count(mark, large ? payload.length : 0)
    if (large) this.begin(payload)
    else {
      if (payload.length >= largePayload) this.exemptHere += payload.length
      if (writer.length >= largeBuffer) this.flush()
    }
    if (this.watched)
      this.#host.connections.watch?.(
        'out',
        publishPacket(topic, payload, how, packetId, alias, again),
      )
    return size
  }

  /** Writes any other packet. @throws as `publish` */
  send(packet: ClientPacket): void {
    const mark = this.writer.length
    this.queueFlush()
    writeControl(this.writer, packet, this.#version)
    this.#count(mark, 0)
    this.#host.connections.watch?.('out', packet)
  }

  /**
   * Writes DISCONNECT behind the acknowledgements, in the longest form that the server accepts;
   * nothing follows it [MQTT-3.14.4-1].
   */
  sendDisconnect(packet: DisconnectPacket): void {
    this.writeAcks()
    for (const form of goodbyes(packet)) {
      try {
        return this.send(form)
      } catch (error) {
        if (!isTooLarge(error)) throw error
      }
    }
  }

  /**
   * Schedules one flush for the end of this turn, behind its synchronous code. `patient`: on
   * platforms that do not signal the end of a turn, waits until nothing new was queued for a while.
   */
  queueFlush(patient = false): void {
    this.#turnEnd ??= new TurnEnd(this.#host.platform, this)
    if (!this.stopped && this.#turnEnd.ask(patient)) this.lookForWatchers()
  }

  /** A turn in which `queueFlush` was called has ended. */
  handleTurnEnd(): void {
    if (this.#host.waiting) this.#host.flush()
    this.flush()
  }

  flush(): void {
    this.#turnEnd?.cancel()
    const { platform, session } = this.#host
    const { length } = session.acks
    if (this.source === undefined && (!this.blocked || this.writes < mostWrites))
      this.flushNow(this.#pace.careful && length > 0 ? this.#pace.room(platform.now()) : undefined)
    else if (length * 5 + this.writer.length >= largeBuffer) {
      // Full buffers are sent; the rest waits.
      this.writeAcks()
      if (this.writer.length >= largeBuffer) this.flushNow()
    }
  }

  /**
   * Gives what is queued to the transport, whatever is under way, but nothing between the slices of
   * a large payload. Of acknowledgements, at most `most`; the rest follows on a timer.
   */
  flushNow(most?: number): void {
    if (this.isMute) return
    this.#pace.handleSent(this.writeAcks(most))
    this.handWriter()
    const { platform, session } = this.#host
    if (session.acks.length === 0) return
    this.#wake ??= platform.setTimer(() => {
      this.#wake = undefined
      this.flush()
    }, 1)
  }

  /** CONNACK accepted, with this Maximum Packet Size. `careful`: the previous connection failed. */
  handleConnected(packetLimit: number, careful: boolean): void {
    this.#packetLimit = packetLimit
    this.#pace.careful = careful
  }

  /** @throws MqttError ERR_PACKET_TOO_LARGE */
  assertFits(size: number): void {
    if (this.#packetLimit < size) throw tooLarge(size, this.#packetLimit)
  }

  override stop(): void {
    super.stop()
    this.#wake?.()
    this.#turnEnd?.cancel()
  }

  /**
   * Writes due acknowledgements; at most `most` of those for incoming messages. Returns the number
   * of the latter.
   */
  writeAcks(most = Number.POSITIVE_INFINITY): number {
    let count = 0
    if (this.isMute) return count
    this.lookForWatchers()
    const { writer } = this
    const { session, counters, connections, options } = this.#host
    const { acks } = session
    while (acks.length > 0 && count < most) {
      const ack = acks.entries[acks.head++] as number
      if (ack >>> 24 !== PUBREL) count += 1
      if (writer.length + ackRoom > largeBuffer) this.handWriter()
      const mark = writer.length
      writePackedAck(writer, ack, this.#version)
      if (writer.length - mark > this.#packetLimit) {
        writer.length = mark
        this.owner.giveUp(new MqttError('ERR_PACKET_TOO_LARGE', 'no ack fits'))
        return count
      }
      if (counters !== undefined) counters.packetsSent += 1
      if (this.watched) connections.watch?.('out', acknowledgement(ack))
    }
    if (acks.length === 0 && acks.entries.length > mostIdleAcks) acks.clear()
    if (this.piled > options.memoryBudget)
      this.owner.giveUp(broken('ERR_CONNECTION_LOST', 'the server reads nothing'))
    return count
  }

  // Counts the packet written from `mark` on and returns its size, or removes it if it is too
  // large.
  #count(mark: number, payloadLength: number): number {
    const size = this.writer.length - mark + payloadLength
    if (size > this.#packetLimit) {
      this.writer.length = mark
      throw tooLarge(size, this.#packetLimit)
    }
    const { counters } = this.#host
    if (counters !== undefined) counters.packetsSent += 1
    return size
  }
}

function isTooLarge(error: unknown): boolean {
  return MqttError.is(error) && error.code === 'ERR_PACKET_TOO_LARGE'
}
