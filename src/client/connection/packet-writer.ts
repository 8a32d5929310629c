/**
 * What one connection writes, as packets: those of the application and of the session, acknowledgements and replays, and when they leave.
 *
 * It may assume that the connection calls `pump` after every command to the session. It reads nothing; after `stop` it has no timer.
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

/** Acknowledgements for which an empty queue keeps its array. */
const mostIdleAcks = 4096
/** Room that writing an acknowledgement asks for: a few bytes more than it takes. */
const ackRoom = 8
/** Writes under way, above which small ones wait for a transport that asks for patience. */
export const mostWrites = 64
/** Text up to this length is written by hand, if it is ASCII; a call into the platform costs more. */
const shortText = 256

/** The writing half of a connection. */
export class PacketWriter extends StreamWriter {
  /** Packets of either direction are watched: read for each packet, so updated only now and then; nearly always false. */
  watched = false
  readonly #host: ConnectionHost
  readonly #version: ProtocolVersion
  /** Largest packet that the server takes [MQTT-3.2.2-15]. */
  #packetLimit = Number.POSITIVE_INFINITY
  readonly #pace = new Pace()
  /** For acknowledgements that a careful start keeps back. */
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

  /** To be called when a read or a turn begins, and for each new listener. */
  lookForWatchers(): void {
    this.watched = this.#host.connections.watch !== undefined
  }

  /**
   * Writes a PUBLISH at QoS 0, under a topic alias where the server takes them. Text leaves as UTF-8.
   * @throws as `publish`
   */
  post(topic: string, payload: Uint8Array | string, how: Sending): void {
    const { topics } = this.#host.session
    // No alias for what is no topic: with one, it would stand for a topic.
    const alias = topic === '' ? 0 : topics.use(topic)
    try {
      this.publish(alias > 0 ? '' : topic, payload, how, 0, false, Math.abs(alias))
    } catch (error) {
      if (alias < 0) topics.forget(topic)
      if (alias === 0 || !isTooLarge(error)) throw error
      // What fits without an alias is sent without one.
      this.publish(topic, payload, how, 0)
    }
  }

  /**
   * Writes a PUBLISH, and gives its size in bytes; `again` with DUP, as one of an earlier connection [MQTT-3.3.1-1].
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
    // What would not fit with what is there leaves after it.
    if (writer.length > 0 && writer.length + payload.length + rest > largeBuffer) this.flushNow()
    // Behind a payload that is being sent everything has to wait in the writer.
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

  /** Writes DISCONNECT in the longest form that the server takes, behind the acknowledgements: nothing follows it [MQTT-3.14.4-1]. */
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
   * Writes what is queued before this turn's synchronous code has ended, once. `patient`: where the end of a turn is not signalled, once nothing has been
   * queued for a while.
   */
  queueFlush(patient = false): void {
    this.#turnEnd ??= new TurnEnd(this.#host.platform, () => {
      if (this.#host.waiting) this.#host.flush()
      this.flush()
    })
    if (!this.stopped && this.#turnEnd.ask(patient)) this.lookForWatchers()
  }

  flush(): void {
    this.#turnEnd?.cancel()
    const { platform, session } = this.#host
    const { length } = session.acks
    if (this.source === undefined && (!this.blocked || this.writes < mostWrites))
      this.flushNow(this.#pace.careful && length > 0 ? this.#pace.room(platform.now()) : undefined)
    else if (length * 5 + this.writer.length >= largeBuffer) {
      // Full buffers leave; what is left over waits for more.
      this.writeAcks()
      if (this.writer.length >= largeBuffer) this.flushNow()
    }
  }

  /** Hands over what is queued, whatever is under way; of acknowledgements so many at most, and the others as time goes by. */
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

  /** CONNACK said yes, with this Maximum Packet Size. `careful`: the connection before did not hold. */
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

  /** Puts the acknowledgements that are due behind what is written; of those for messages from the server so many at most. Gives how many these were. */
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

  // A packet was written from `mark` on: it counts, or is taken back. Its size.
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
