/**
 * Drives one connection: bytes from the transport through framer and session, packets and acknowledgements out in one write per flush.
 *
 * It knows no subscriptions and no promises of the application; the host and its parts get what concerns them. It never throws into the
 * transport, and after `handleClosed` it does nothing any more.
 */
import { MqttError } from '../errors.js'
import type { Sink, Transport } from '../transport/transport.js'
import { AUTH, CONNACK, PUBLISH } from '../wire/constants.js'
import { decodeServerPacket } from '../wire/decode-server.js'
import { type PublishInput, writeAck, writePublish, writePublishHead } from '../wire/encode-client.js'
import type { WireError } from '../wire/error.js'
import type { ClientPacket, ConnectPacket, DisconnectPacket, Packet, ProtocolVersion, ServerPacket } from '../wire/packets.js'
import { PublishView } from '../wire/publish.js'
import { Writer } from '../wire/writer.js'
import {
  acknowledgement,
  type Encoded,
  type FinalAck,
  goodbyes,
  holdsTooMuch,
  KeptHeads,
  readControl,
  userPropertyLimit,
  writeControl,
} from './control.js'
import type { Host } from './host.js'
import { type Eater, Intake, readWindow } from './intake.js'
import { noTicket } from './message.js'
import { withOutcome } from './outcome.js'
import type { CancelTimer, Platform } from './platform.js'
import { Ring } from './ring.js'
import { ackId, ackReason, ackType } from './session/ack-queue.js'
import { REPEAT } from './session/inbound.js'
import { CLEARED, DONE, RELEASED } from './session/outbound.js'
import { broken } from './session/refusal.js'
import type { Session } from './session/session.js'
import type { Counters } from './statistics.js'

/** Payloads from this size on are handed to the transport as they are, and belong to it until they are written. */
export const byReference = 32 * 1024
const flushThreshold = 64 * 1024
const dupFlag = 0x08
/** Writes under way, above which small ones wait for a transport that asks for patience. */
const mostWrites = 64
/** Of the memory budget, for topics that the server gives aliases to; 64 KiB at least. */
const aliasShare = 1 / 4
const leastAliasBytes = 64 * 1024
/** Milliseconds that a peer gets to end its side of the stream after we ended ours. */
const closePatience = 1000
const nothing = new Uint8Array(0)

/** One connection. */
export class Connection implements Sink, Eater {
  readonly #transport: Transport
  readonly #session: Session
  readonly #platform: Platform
  readonly #host: Host
  readonly #intake: Intake
  readonly #view = new PublishView()
  readonly #version: ProtocolVersion
  readonly #counters: Counters | undefined
  readonly #writer = new Writer(128, true)
  /** Largest packet that the server takes [MQTT-3.2.2-15]. */
  packetLimit = Number.POSITIVE_INFINITY
  /** Bytes handed to the transport, and those that have left it. */
  #handed = 0
  #left = 0
  /** Writes under way. */
  #writes = 0
  /** Bytes of large payloads among them. */
  #lent = 0
  readonly #waiting = new Ring<{ readonly at: number; readonly callback: (error?: unknown) => void }>()
  #blocked = false
  #flushQueued = false
  #ended = false
  /** DISCONNECT has left: nothing follows it [MQTT-3.14.4-1]. */
  #silent = false
  readonly #kept = new KeptHeads()
  #gone: MqttError | undefined
  #timer: CancelTimer | undefined
  #timerAt = Number.POSITIVE_INFINITY

  constructor(transport: Transport, host: Host, connect: ConnectPacket) {
    const { maximumPacketSize = host.options.maximumPacketSize } = connect.properties
    this.#version = connect.protocolVersion
    this.#counters = host.counters
    this.#transport = transport
    this.#host = host
    this.#session = host.session
    this.#platform = host.platform
    this.#intake = new Intake(host.platform, transport, this, this.#version, maximumPacketSize)
    transport.open(this)
  }

  /** False while the transport asks for patience: user data waits, acknowledgements and pings do not. */
  get writable(): boolean {
    return !this.#blocked && !this.#ended
  }

  // Large payloads are the application's memory, and bounded by its own limits.
  get #piled(): number {
    return this.#handed - this.#left - this.#lent + this.#writer.length
  }

  /** Nothing more comes in or goes out, but for a goodbye that was handed over. */
  get over(): boolean {
    return this.#ended
  }

  /** Bytes held for this connection: what was not read to its end, topics of aliases, and output that has not left. */
  get held(): number {
    return this.#intake.held + this.#session.aliases.bytes + this.#piled
  }

  // Output

  /** Writes a PUBLISH at QoS 0, under a topic alias where the server takes them. @throws as `publish` */
  post(input: PublishInput & { readonly payload: Uint8Array }): undefined {
    const { topics } = this.#session
    const alias = topics.use(input.topic)
    if (alias === 0) {
      this.#publish(input)
      return
    }
    const { topic, payload, retain, properties: given } = input
    const topicAlias = alias > 0 ? alias : -alias
    try {
      this.#publish({ topic: alias > 0 ? '' : topic, payload, retain, properties: given === undefined ? { topicAlias } : { ...given, topicAlias } })
    } catch (error) {
      if (alias < 0) topics.forget(input.topic)
      if (!(MqttError.is(error) && error.code === 'ERR_PACKET_TOO_LARGE')) throw error
      // What fits without an alias is sent without one.
      this.#publish(input)
    }
  }

  /** Writes a PUBLISH at QoS 1 or 2, and gives what it takes to send it again. @throws WireError, MqttError ERR_PACKET_TOO_LARGE; nothing was written then */
  publish(input: PublishInput & { readonly payload: Uint8Array }): Encoded {
    return { head: this.#publish(input), payload: input.payload, version: this.#version }
  }

  /** Sends a PUBLISH of an earlier connection again, with DUP [MQTT-3.3.1-1]. Its size was checked. */
  replay({ head, payload }: Encoded, packet: () => Packet): void {
    const large = payload.length >= byReference
    head[0] = (head[0] as number) | dupFlag
    if (large) this.#flushNow()
    this.#writer.raw(head)
    if (large) this.#handLarge(payload)
    else this.#writer.raw(payload)
    if (this.#counters !== undefined) this.#counters.packetsSent += 1
    this.queueFlush()
    if (this.#writer.length >= flushThreshold) this.flush()
    this.#host.watch?.('out', packet())
  }

  /** Writes any other packet. @throws as `publish` */
  send(packet: ClientPacket): void {
    this.#write(0, () => writeControl(this.#writer, packet, this.#version))
    this.#host.watch?.('out', packet)
  }

  /** Writes what is queued before this turn's synchronous code has ended, once. */
  queueFlush(): void {
    if (this.#flushQueued || this.#ended) return
    this.#flushQueued = true
    this.#platform.microtask(() => {
      if (!this.#flushQueued) return
      this.#host.registry.flush()
      this.flush()
    })
  }

  /** Hands what is queued to the transport in one write; small ones, which cost far more than their bytes, wait where many are under way. */
  flush(): void {
    this.#flushQueued = false
    const waits = this.#blocked && this.#writes >= mostWrites
    if (!waits || this.#session.acks.length * 5 + this.#writer.length >= flushThreshold) this.#flushNow()
  }

  /** Calls back when everything that was queued so far has left, or never will. */
  onWritten(callback: (error?: unknown) => void): void {
    const at = this.#handed + this.#writer.length
    if (this.#gone !== undefined) return callback(this.#gone)
    if (at === this.#left) return this.#platform.microtask(callback)
    this.#waiting.push({ at, callback })
    this.queueFlush()
  }

  /** Nobody waits any longer for what was handed over and has not left. */
  abandon(error: MqttError): void {
    this.#gone = error
    for (const { callback } of this.#waiting.drain()) callback(error)
  }

  /** Does what the session asks for. To be called after every command given to it. */
  pump(): void {
    for (let action = this.#session.poll(); action !== undefined; action = this.#session.poll()) {
      if (action.type === 'send') this.#sendControl(action.packet)
      else if (action.type === 'close') this.#close(action.error, action.reasonCode)
      else this.#host.handleAction(action)
    }
    this.queueFlush()
    this.#arm()
  }

  /** DISCONNECT is queued or not sent at all: flush, and end the stream. */
  end(): void {
    if (this.#ended) return
    this.#flushNow()
    this.#silent = true
    this.#closeStream()
  }

  /** Cuts the connection. `handleClosed` is called before this returns. */
  destroy(error?: MqttError): void {
    this.#transport.destroy(error)
    this.#finish(error)
  }

  #flushNow(): void {
    if (this.#ended || this.#silent) return
    this.#writeAcks()
    this.#handWriter()
  }

  // Input: the Sink

  buffer(): Uint8Array {
    return readWindow()
  }

  read(length: number): void {
    this.chunk(this.buffer().subarray(0, length))
  }

  chunk(given: Uint8Array): void {
    if (this.#ended || given.length === 0) return
    // A Node Buffer becomes a plain view: its own `slice` would not copy what is kept.
    const bytes = given.constructor === Uint8Array ? given : new Uint8Array(given.buffer, given.byteOffset, given.length)
    this.#session.keepAlive.received(this.#platform.now())
    if (this.#counters !== undefined) this.#counters.bytesReceived += bytes.length
    if (this.#intake.take(bytes, this.#host.options.memoryBudget - this.held)) return
    this.#giveUp(broken('ERR_CONNECTION_LOST', 'the server does not wait for the end of authentication'))
  }

  /** True while packets are to be handled. */
  get reading(): boolean {
    return this.#session.state !== 'closed'
  }

  handleSlice(complete: boolean, fault: WireError | undefined, now: number): void {
    const { keepAlive } = this.#session
    this.#view.release()
    keepAlive.partial(this.#intake.framer.pending, complete, now)
    if (fault !== undefined) this.#session.close(withOutcome(fault, 'unknown'), fault.reasonCode)
    this.#host.handleReadEnd()
    this.pump()
    this.flush()
  }

  drain(): void {
    if (this.#ended) return
    this.#blocked = false
    this.#session.keepAlive.blocked(false, this.#platform.now())
    this.flush()
    this.#host.flush()
  }

  closed(cause: unknown): void {
    this.#intake.finish()
    this.#timer?.()
    this.#finish(this.#session.state === 'closed' ? undefined : broken('ERR_CONNECTION_LOST', undefined, cause))
  }

  handleFrame(now: number): void {
    const { bytes, start, body, end } = this.#intake.framer
    const type = (bytes[start] as number) >> 4
    if (this.#counters !== undefined) this.#counters.packetsReceived += 1
    if (type === PUBLISH) return this.#handlePublish(bytes, start, body, end)
    const packet = readControl(bytes, start, body, end, this.#version)
    this.#host.watch?.('in', packet)
    if (type !== CONNACK && type !== AUTH && !this.#session.expectConnected()) return
    if ('properties' in packet && (packet.properties.userProperties?.length ?? 0) > userPropertyLimit) return this.#session.fail(0x97)
    this.#handlePacket(packet, now)
  }

  #handlePacket(packet: ServerPacket, now: number): void {
    const { inbound, outbound } = this.#session
    if (packet.type === 'pingresp') this.#counters?.handlePong(now)
    if (packet.type === 'puback') this.#settle(outbound.handlePuback(packet.packetId), packet)
    else if (packet.type === 'pubrec') this.#settle(outbound.handlePubrec(packet.packetId, packet.reasonCode), packet)
    else if (packet.type === 'pubcomp') this.#settle(outbound.handlePubcomp(packet.packetId), packet)
    else if (packet.type === 'pubrel') inbound.handlePubrel(packet.packetId)
    else {
      const verified = packet.type === 'connack' ? this.#host.verify(packet) : undefined
      if (verified !== undefined) return this.#await(verified, packet)
      this.#session.handlePacket(packet, now)
      this.pump()
    }
  }

  // Nothing more is read before it is known whether this packet counts.
  #await(verified: Promise<void>, packet: ServerPacket): void {
    this.#intake.hold()
    verified.then(
      () => {
        if (this.#ended) return
        this.#session.handlePacket(packet, this.#platform.now())
        this.pump()
        this.#intake.release()
      },
      (error: MqttError) => this.destroy(error),
    )
  }

  #settle(verdict: number, packet: FinalAck): void {
    if (verdict === DONE) this.#host.outbox.handleAcknowledged(packet)
    else if (verdict === RELEASED) this.#host.outbox.handleReleased(packet)
    else if (verdict === CLEARED) this.#host.outbox.flush()
  }

  #handlePublish(bytes: Uint8Array, start: number, body: number, end: number): void {
    const view = this.#view
    view.read(bytes, start, body, end, this.#version, 'server')
    if (!this.#session.expectConnected()) return
    if (holdsTooMuch(view, this.#host.registry.filters)) return this.#session.fail(0x97)
    const topic = view.topicAlias === 0 ? view.topic() : this.#resolve(view)
    if (topic === undefined) return
    if (this.#host.watch !== undefined) {
      this.#host.watch('in', decodeServerPacket(bytes, start, body, end, this.#version))
      if (this.#ended) return
    }
    const ticket = view.qos === 0 ? noTicket : this.#session.inbound.handlePublish(view.packetId, view.qos, view.dup)
    if (ticket >= 0 || view.qos === 0) this.#host.inbox.handleMessage(view, topic, ticket)
    else if (ticket === REPEAT) this.#host.inbox.handleRepeat()
  }

  #resolve(view: PublishView): string | undefined {
    const topic = view.topicStart === view.topicEnd ? undefined : view.topic()
    return this.#session.resolve(view.topicAlias, topic, Math.max(leastAliasBytes, this.#host.options.memoryBudget * aliasShare))
  }

  // Acks, pings and DISCONNECT go out whatever the transport says; a peer that makes us pile them up loses the connection.
  #hand(bytes: Uint8Array, lent = 0): void {
    // Given up while it was flushed.
    if (this.#ended) return
    const now = this.#platform.now()
    this.#writes += 1
    this.#handed += bytes.length
    if (this.#counters !== undefined) this.#counters.bytesSent += bytes.length
    this.#session.keepAlive.sent(now)
    const took = this.#transport.write(bytes, (error) => {
      this.#writes -= 1
      this.#left += bytes.length
      this.#lent -= lent
      this.#tellWritten(error)
    })
    if (took || this.#blocked) return
    this.#blocked = true
    this.#session.keepAlive.blocked(true, now)
    this.#arm()
  }

  #publish(input: PublishInput & { readonly payload: Uint8Array }): Uint8Array {
    const { payload, qos = 0 } = input
    const large = payload.length >= byReference
    // What is queued leaves first, so that nothing comes between head and payload.
    if (large) this.#flushNow()
    const mark = this.#writer.length
    if (large) this.#write(payload.length, () => writePublishHead(this.#writer, input, payload.length, this.#version))
    else this.#write(0, () => writePublish(this.#writer, input, this.#version))
    const head = qos > 0 ? this.#kept.keep(this.#writer, mark, large ? 0 : payload.length) : nothing
    if (large) this.#handLarge(payload)
    else if (this.#writer.length >= flushThreshold) this.flush()
    this.#host.watch?.('out', { ...input, type: 'publish', properties: input.properties ?? {} } as Packet)
    return head
  }

  #handLarge(payload: Uint8Array): void {
    this.#handWriter()
    this.#lent += payload.length
    this.#hand(payload, payload.length)
  }

  #handWriter(): void {
    if (this.#writer.length === 0) return
    const bytes = this.#writer.take()
    this.#writer.reset()
    this.#hand(bytes)
  }

  #tellWritten(error: unknown): void {
    for (let next = this.#waiting.peek(); next !== undefined && next.at <= this.#left; next = this.#waiting.peek()) {
      this.#waiting.shift()
      next.callback(error)
    }
  }

  #write(payloadLength: number, encode: () => void): void {
    const mark = this.#writer.length
    encode()
    if (this.#writer.length - mark + payloadLength > this.packetLimit) {
      this.#writer.length = mark
      throw new MqttError('ERR_PACKET_TOO_LARGE')
    }
    if (this.#counters !== undefined) this.#counters.packetsSent += 1
    this.queueFlush()
  }

  #writeAcks(): void {
    const { acks } = this.#session
    while (acks.length > 0) {
      const entry = acks.shift()
      const reasonCode = this.#version === 5 ? ackReason(entry) : 0
      if ((reasonCode === 0 ? 4 : 5) > this.packetLimit) return this.#giveUp(new MqttError('ERR_PACKET_TOO_LARGE', 'no acknowledgement fits'))
      writeAck(this.#writer, ackType(entry) as 4 | 5 | 6 | 7, ackId(entry), reasonCode, undefined, this.#version)
      if (this.#counters !== undefined) this.#counters.packetsSent += 1
      this.#host.watch?.('out', acknowledgement(entry))
    }
    if (this.#piled <= this.#host.options.memoryBudget) return
    this.#giveUp(broken('ERR_CONNECTION_LOST', 'the server reads nothing'))
  }

  #giveUp(error: MqttError): void {
    this.#session.close(error, undefined)
    this.pump()
  }

  #sendControl(packet: ClientPacket): void {
    if (packet.type === 'disconnect') return this.#sendDisconnect(packet)
    if (packet.type === 'pingreq') this.#counters?.handlePing(this.#platform.now())
    try {
      this.send(packet)
    } catch (error) {
      // A server whose Maximum Packet Size leaves no room for a ping cannot be kept.
      this.#session.close(error as MqttError, undefined)
    }
  }

  #sendDisconnect(packet: DisconnectPacket): void {
    // Nothing follows it [MQTT-3.14.4-1].
    this.#writeAcks()
    for (const form of goodbyes(packet)) {
      try {
        return this.send(form)
      } catch (error) {
        if (!(MqttError.is(error) && error.code === 'ERR_PACKET_TOO_LARGE')) throw error
      }
    }
  }

  #close(error: MqttError, reasonCode: number | undefined): void {
    if (this.#ended) return
    // Acknowledgements that are queued may answer what is now known to be wrong: they stay behind.
    this.#session.acks.clear()
    if (reasonCode === undefined) return this.destroy(error)
    this.#sendDisconnect({ type: 'disconnect', reasonCode, properties: {} })
    this.#flushNow()
    this.#finish(error)
    this.#closeStream()
  }

  // A peer that does not end its side is cut off.
  #closeStream(): void {
    this.#timer?.()
    this.#timerAt = Number.NEGATIVE_INFINITY
    this.#timer = this.#platform.setTimer(() => this.#transport.destroy(), closePatience)
    this.#transport.close()
  }

  #finish(error: MqttError | undefined): void {
    if (this.#ended) return
    this.#ended = true
    this.#intake.stop()
    this.#timer?.()
    this.#timer = undefined
    this.abandon(error ?? new MqttError('ERR_CLOSED'))
    this.#host.handleClosed(error)
  }

  // One timer for all deadlines. It is moved only when a deadline comes nearer: those that move away are looked up when it fires.
  #arm(): void {
    const at = this.#session.nextTimeout()
    if (this.#ended || at >= this.#timerAt) return
    this.#timer?.()
    this.#timerAt = at
    this.#timer = this.#platform.setTimer(() => this.#handleTimer(), Math.max(0, at - this.#platform.now()))
  }

  #handleTimer(): void {
    this.#timerAt = Number.POSITIVE_INFINITY
    this.#session.handleTimeout(this.#platform.now())
    this.pump()
  }
}
