/**
 * What one connection writes: packets, acknowledgements and replays, gathered in the thread's output buffers and handed to the transport in one
 * write per flush.
 *
 * It may assume that the connection calls `pump` after every command to the session. It reads nothing, holds no buffer while there is nothing to
 * write, and never throws into the transport; after `stop` it hands nothing over any more, and has no timer.
 */

import { MqttError } from '../../errors.js'
import type { Transport } from '../../transport/transport.js'
import { PUBREL } from '../../wire/constants.js'
import { writeAck } from '../../wire/encode-client.js'
import { nothing } from '../../wire/fields.js'
import type { ClientPacket, DisconnectPacket, ProtocolVersion } from '../../wire/packets.js'
import { Writer } from '../../wire/writer.js'
import type { Sending } from '../api/parse-calls.js'
import { largePayload } from '../common/bounds.js'
import { encoder } from '../common/schema.js'
import { giveBuffer, largeBuffer, sliceBuffer, smallBuffer, takeBuffer } from '../memory/write-buffers.js'
import type { CancelTimer } from '../platform/platform.js'
import { ackId, ackReason, ackType } from '../session/ack-queue.js'
import { broken, tooLarge } from '../session/refusal.js'
import { ackRoom, headRoom, mostUnderWay, mostWrites, shortText } from './bounds.js'
import { acknowledgement, goodbyes, publishPacket, writeControl, writePublishStart } from './control.js'
import { Pace } from './pace.js'
import type { ConnectionHost } from './ports.js'
import { Watching } from './watching.js'
import { Written, type WrittenCallback } from './written.js'

/** The connection, as its writer sees it. */
export interface WriterOwner {
  /** Does what the session asks for. */
  pump(): void
  /** A deadline of the session may have come nearer. */
  arm(): void
}

/** The writing half of a connection. */
export class PacketWriter {
  /** Those who watch packets, of either direction. */
  readonly watching: Watching
  /** Largest packet that the server takes [MQTT-3.2.2-15]. */
  #packetLimit = Number.POSITIVE_INFINITY
  readonly #pace = new Pace()
  /** The payload in the middle of being handed over; a copy may take its place. Nothing else is handed over before its last byte. */
  #sending: Uint8Array | undefined
  readonly #transport: Transport
  readonly #host: ConnectionHost
  readonly #version: ProtocolVersion
  readonly #owner: WriterOwner
  readonly #writer: Writer
  /** The write before was no small one: this will hardly be. */
  #busy = false
  /** Bytes handed to the transport. */
  #handed = 0
  /** Writes under way. */
  #writes = 0
  /** Bytes of large payloads among them, and in the writer. */
  #exempt = 0
  #exemptHere = 0
  /** Bytes of `sending` that were handed over, and those that its packet's head names. */
  #at = 0
  #size = 0
  /** What is handed over may be taken back: no packet but one is in it. */
  #alone = false
  readonly #written = new Written()
  /** The transport asks for patience. */
  #blocked = false
  /** Too much is under way. */
  #full = false
  #flushQueued = false
  /** For acknowledgements that a careful start keeps back. */
  #wake: CancelTimer | undefined
  #stopped = false
  /** Nothing follows what is queued, for DISCONNECT is the last of it [MQTT-3.14.4-1]; called when all of it was handed over. */
  #silent: (() => void) | undefined
  readonly #endTurn = (): void => {
    if (!this.#flushQueued) return
    this.#host.flush()
    this.flush()
  }

  constructor(transport: Transport, host: ConnectionHost, version: ProtocolVersion, owner: WriterOwner) {
    this.#transport = transport
    this.#host = host
    this.#version = version
    this.#owner = owner
    this.watching = new Watching(host)
    this.#writer = new Writer(0, true, (size, old) => {
      giveBuffer(old)
      return takeBuffer(this.#busy ? Math.max(size, largeBuffer) : size)
    })
  }

  /** Bytes that have left. */
  get left(): number {
    return this.#written.left
  }

  /** False while the transport asks for patience: user data waits, acknowledgements and pings do not. */
  get writable(): boolean {
    return !this.#blocked && !this.#full && !this.#stopped && this.#sending === undefined
  }

  /** Bytes that have not left, but for those of large payloads: these are few at a time, and the peer did not ask for them. */
  get piled(): number {
    return this.#handed - this.left - this.#exempt + this.#writer.length - this.#exemptHere
  }

  /** True while a payload is in the middle of being handed over. */
  get midway(): boolean {
    return this.#sending !== undefined
  }

  /** True while this payload is. */
  isSending(payload: unknown): payload is Uint8Array {
    return this.#sending === payload
  }

  /** A copy takes the place of the payload in the middle of being handed over. */
  goOnWith(copy: Uint8Array): void {
    this.#sending = copy
  }

  /** Where what was written so far ends: bytes since the connection began. */
  get end(): number {
    return this.#handed + this.#writer.length + (this.#sending === undefined ? 0 : this.#size - this.#at)
  }

  // Packets

  /**
   * Writes a PUBLISH at QoS 0, under a topic alias where the server takes them. Text leaves as UTF-8.
   * @throws as `publish`
   */
  post(topic: string, payload: Uint8Array | string, how: Sending): void {
    const { topics } = this.#host.session
    // No alias for what is no topic: with one, it would stand for a topic.
    const alias = topic === '' ? 0 : topics.use(topic)
    try {
      if (alias > 0) this.#publish('', payload, how, 0, alias, false)
      else this.#publish(topic, payload, how, 0, -alias, false)
    } catch (error) {
      if (alias < 0) topics.forget(topic)
      if (alias === 0 || !(MqttError.is(error) && error.code === 'ERR_PACKET_TOO_LARGE')) throw error
      // What fits without an alias is sent without one.
      this.#publish(topic, payload, how, 0, 0, false)
    }
  }

  /**
   * Writes a PUBLISH at QoS 1 or 2, and gives its size in bytes; `again` with DUP, as one of an earlier connection [MQTT-3.3.1-1].
   * @throws WireError, MqttError ERR_PACKET_TOO_LARGE; nothing was written then
   */
  publish(topic: string, payload: Uint8Array, how: Sending, packetId: number, again = false): number {
    return this.#publish(topic, payload, how, packetId, 0, again)
  }

  /** Writes any other packet. @throws as `publish` */
  send(packet: ClientPacket): void {
    const mark = this.#writer.length
    this.queueFlush()
    writeControl(this.#writer, packet, this.#version)
    this.#count(mark, 0)
    this.#host.links.watch?.('out', packet)
  }

  /** Writes DISCONNECT in the longest form that the server takes, behind the acknowledgements: nothing follows it [MQTT-3.14.4-1]. */
  sendDisconnect(packet: DisconnectPacket): void {
    this.writeAcks()
    for (const form of goodbyes(packet)) {
      try {
        return this.send(form)
      } catch (error) {
        if (!(MqttError.is(error) && error.code === 'ERR_PACKET_TOO_LARGE')) throw error
      }
    }
  }

  /** Writes what is queued before this turn's synchronous code has ended, once. */
  queueFlush(): void {
    if (this.#flushQueued || this.#stopped) return
    this.#flushQueued = true
    this.watching.refresh()
    const { turnEnd, microtask } = this.#host.platform
    const later = turnEnd ?? microtask
    later(this.#endTurn)
  }

  /** Hands what is queued to the transport in one write; small ones, which cost far more than their bytes, wait where many are under way. */
  flush(): void {
    this.#flushQueued = false
    const { acks } = this.#host.session
    if (this.#sending === undefined && (!this.#blocked || this.#writes < mostWrites)) {
      if (this.#pace.careful && acks.length > 0) this.#flushSlowly()
      else this.flushNow()
    } else if (acks.length * 5 + this.#writer.length >= largeBuffer) {
      // Full buffers leave; what is left over waits for more.
      this.writeAcks()
      if (this.#writer.length >= largeBuffer) this.flushNow()
    }
  }

  /** Hands over what is queued, whatever is under way. */
  flushNow(): void {
    if (this.#isMute) return
    this.writeAcks()
    this.#handWriter()
  }

  /** Calls back when everything that was queued so far has left, or never will. */
  onWritten(callback: WrittenCallback): void {
    if (this.#written.wait(this.end, callback, this.#host.platform.microtask)) this.queueFlush()
  }

  // What the connection tells

  /** CONNACK said yes, with this Maximum Packet Size. `careful`: the connection before did not hold. */
  handleConnected(packetLimit: number, careful: boolean): void {
    this.#packetLimit = packetLimit
    this.#pace.careful = careful
  }

  /** The transport takes bytes again. */
  handleDrain(): void {
    this.#blocked = false
    this.#goOn()
  }

  /** Hands over what is queued, and nothing after that; calls back when that is done. */
  silence(done: () => void): void {
    this.flushNow()
    this.#silent = done
    if (this.#sending === undefined) done()
  }

  /** Hands nothing over any more. */
  stop(): void {
    this.#stopped = true
    this.#sending = undefined
    this.#wake?.()
    this.#reset()
  }

  /** Nobody waits any longer for what was handed over and has not left. */
  abandon(error: MqttError): void {
    this.#written.abandon(error)
  }

  #publish(topic: string, given: Uint8Array | string, how: Sending, packetId: number, alias: number, dup: boolean): number {
    const writer = this.#writer
    const payload = typeof given === 'string' && given.length + topic.length > shortText ? encoder.encode(given) : given
    const rest = topic.length * 3 + headRoom
    // What would not fit with what is there leaves after it.
    if (writer.length > 0 && writer.length + payload.length + rest > largeBuffer) this.flushNow()
    // Behind a payload that is being sent everything has to wait in the writer.
    const large = payload.length + rest > sliceBuffer && this.#sending === undefined
    const mark = writer.length
    this.queueFlush()
    writer.reserve(large ? rest : payload.length + rest)
    writePublishStart(writer, topic, payload.length, how, packetId, alias, dup, this.#version)
    if (typeof payload === 'string') {
      if (!writer.ascii(payload)) {
        // The head told another length.
        writer.length = mark
        return this.#publish(topic, encoder.encode(payload), how, packetId, alias, dup)
      }
    } else if (!large) writer.raw(payload)
    const size = this.#count(mark, large ? payload.length : 0)
    if (payload.length >= largePayload && !large) this.#exemptHere += payload.length
    if (large) this.#begin(payload as Uint8Array)
    else if (writer.length >= largeBuffer) this.flush()
    if (this.watching.on) this.#host.links.watch?.('out', publishPacket(topic, payload, how, packetId, alias, dup))
    return size
  }

  // A few acknowledgements leave, with what else is queued; the others as time goes by.
  #flushSlowly(): void {
    if (this.#isMute) return
    const { platform, session } = this.#host
    const most = this.#pace.room(platform.now())
    if (!this.#pace.careful) return this.flushNow()
    this.#pace.handleSent(this.writeAcks(most))
    this.#handWriter()
    if (session.acks.length === 0) return
    this.#wake ??= platform.setTimer(() => {
      this.#wake = undefined
      this.flush()
    }, 1)
  }

  // The first slice leaves with the head. A transport that takes neither has taken nothing: that is the caller's matter.
  #begin(payload: Uint8Array): void {
    const first = payload.subarray(0, Math.max(0, sliceBuffer - this.#writer.length))
    this.#writer.raw(first)
    this.#exemptHere = first.length
    this.#alone = true
    this.#handWriter()
    this.#alone = false
    if (this.#stopped || first.length === payload.length) return
    this.#sending = payload
    this.#at = first.length
    this.#size = payload.length
    this.#feed()
  }

  // Hands over slices as the transport takes them. They are copies: it never holds memory that the caller gets back.
  #feed(): void {
    for (let sending = this.#sending; sending !== undefined && !this.#blocked && !this.#full; sending = this.#sending) {
      if (sending.length !== this.#size) return this.#giveUp(broken('ERR_CONNECTION_LOST', 'length changed'))
      const slice = sending.subarray(this.#at, this.#at + sliceBuffer)
      const buffer = takeBuffer(slice.length)
      buffer.set(slice)
      this.#at += slice.length
      if (this.#at === this.#size) this.#sending = undefined
      this.#hand(buffer.subarray(0, slice.length), slice.length, buffer)
    }
    // No PINGREQ finds out now whether the peer is there.
    if (this.#sending !== undefined) this.#hold()
  }

  // The transport takes more: first of what was begun, then what had to wait for its end.
  #goOn(): void {
    const { platform, session } = this.#host
    const begun = this.#sending !== undefined
    this.#feed()
    if (this.writable) session.keepAlive.blocked(false, platform.now())
    if (this.#sending !== undefined) return
    if (!begun || this.#silent === undefined) return this.flush()
    this.#handWriter()
    this.#silent()
  }

  /** @throws MqttError ERR_PACKET_TOO_LARGE */
  assertFits(size: number): void {
    if (this.#packetLimit < size) throw tooLarge(size, this.#packetLimit)
  }

  // A packet was written from `mark` on: it counts, or is taken back. Its size.
  #count(mark: number, payloadLength: number): number {
    const size = this.#writer.length - mark + payloadLength
    if (size > this.#packetLimit) {
      this.#writer.length = mark
      throw tooLarge(size, this.#packetLimit)
    }
    const { counters } = this.#host
    if (counters !== undefined) counters.packetsSent += 1
    return size
  }

  #handWriter(): void {
    const { bytes, length } = this.#writer
    if (this.#sending !== undefined) return
    if (length === 0) return this.#reset()
    this.#writer.bytes = nothing
    this.#writer.length = 0
    this.#busy = length > smallBuffer
    const { platform, session } = this.#host
    session.keepAlive.sent(platform.now())
    const exempt = this.#exemptHere
    this.#exemptHere = 0
    this.#hand(bytes.subarray(0, length), exempt, bytes)
  }

  // A buffer in which nothing was left standing is not held.
  #reset(): void {
    giveBuffer(this.#writer.bytes)
    this.#writer.bytes = nothing
    this.#writer.length = 0
    this.#exemptHere = 0
  }

  // Acks, pings and DISCONNECT go out whatever the transport says; a peer that makes us pile them up loses the connection.
  #hand(bytes: Uint8Array, exempt: number, buffer: Uint8Array): void {
    // Given up while it was flushed.
    if (this.#stopped) return
    const { counters, platform, session } = this.#host
    const { length } = bytes
    this.#writes += 1
    this.#handed += length
    this.#exempt += exempt
    if (counters !== undefined) counters.bytesSent += length
    if (this.#handed - this.left >= mostUnderWay) this.#full = true
    let written = false
    const done = (error?: unknown): void => {
      // A buffer that is given back twice would be written by two.
      if (written) return
      written = true
      // What did not leave may still be on its way somewhere: that memory is let go.
      if (error === undefined) giveBuffer(buffer)
      if (error === undefined && !this.writable) session.keepAlive.took(platform.now())
      this.#writes -= 1
      this.#exempt -= exempt
      this.#written.advance(length, error)
      if (this.#full && this.#handed - this.left <= mostUnderWay / 2) this.#resume()
    }
    try {
      if (this.#transport.write(bytes, done) || this.#blocked) return
    } catch (cause) {
      done(cause)
      const error = broken('ERR_CONNECTION_LOST', 'transport threw', cause)
      if (!this.#alone) return this.#giveUp(error)
      this.#alone = false
      throw error
    }
    this.#blocked = true
    this.#hold()
  }

  // Nothing more leaves until the transport says so: a peer that never lets it is given up.
  #hold(): void {
    const { platform, session } = this.#host
    session.keepAlive.blocked(true, platform.now())
    this.#owner.arm()
  }

  #resume(): void {
    this.#full = false
    if (this.#stopped || this.#blocked) return
    this.#goOn()
    this.#host.flush()
  }

  // The end, or DISCONNECT, was the last word.
  get #isMute(): boolean {
    return this.#stopped || this.#silent !== undefined
  }

  /** Puts the acknowledgements that are due behind what is written; of those for messages from the server so many at most. Gives how many these were. */
  writeAcks(most = Number.POSITIVE_INFINITY): number {
    let count = 0
    if (this.#isMute) return count
    this.watching.refresh()
    const { session, counters, options } = this.#host
    const { acks } = session
    while (acks.length > 0 && count < most) {
      const entry = acks.shift()
      const type = ackType(entry) as 4 | 5 | 6 | 7
      if (type !== PUBREL) count += 1
      const reasonCode = this.#version === 5 ? ackReason(entry) : 0
      if (this.#writer.length + ackRoom > largeBuffer) this.#handWriter()
      if ((reasonCode === 0 ? 4 : 5) > this.#packetLimit) {
        this.#giveUp(new MqttError('ERR_PACKET_TOO_LARGE', 'no ack fits'))
        return count
      }
      writeAck(this.#writer, type, ackId(entry), reasonCode, undefined, this.#version)
      if (counters !== undefined) counters.packetsSent += 1
      if (this.watching.on) this.#host.links.watch?.('out', acknowledgement(entry))
    }
    if (this.piled > options.memoryBudget) this.#giveUp(broken('ERR_CONNECTION_LOST', 'the server reads nothing'))
    return count
  }

  #giveUp(error: MqttError): void {
    this.#host.session.close(error, undefined)
    this.#owner.pump()
  }
}
