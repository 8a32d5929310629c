/**
 * Drives one connection: bytes from the transport through framer and session, packets and acknowledgements out in one write per flush.
 *
 * It knows no subscriptions and no promises of the application; the host and its parts get what concerns them. It never throws into the
 * transport, and after `handleClosed` it does nothing any more.
 */
import type { MqttError } from '../../errors.js'
import type { Sink, Transport } from '../../transport/transport.js'
import { AUTH, CONNACK, PUBACK, PUBCOMP, PUBLISH } from '../../wire/constants.js'
import type { WireError } from '../../wire/error.js'
import type { FrameScanner } from '../../wire/frames.js'
import type { ClientPacket, ConnectPacket, ProtocolVersion, PubackPacket, ServerPacket } from '../../wire/packets.js'
import { PublishView } from '../../wire/publish.js'
import { type TopicRecord, TopicTable } from '../../wire/topic-table.js'
import type { Counters } from '../common/counters.js'
import { withOutcome } from '../common/outcome.js'
import { SparseMap } from '../common/sparse.js'
import { windowSize } from '../memory/bounds.js'
import type { Piece } from '../memory/message-memory.js'
import type { Reads, TakeRead } from '../memory/reads.js'
import type { CancelTimer, Platform } from '../platform/platform.js'
import { noTicket, REPEAT } from '../session/numbers.js'
import { broken } from '../session/refusal.js'
import type { Session } from '../session/session.js'
import { handleAck, takeAck } from './ack-reader.js'
import { aliasShare, closePatience, leastAliasBytes, topicShare, userPropertyLimit } from './bounds.js'
import { holdsTooMuch, readControl } from './control.js'
import { PacketWriter, type WriterOwner } from './packet-writer.js'
import type { ConnectionHost } from './ports.js'
import { type FrameHandler, frameOptions, StreamReader } from './stream-reader.js'

/** One connection. */
export class Connection implements Sink, FrameHandler, WriterOwner {
  /** Where packets leave. */
  readonly writer: PacketWriter
  readonly #host: ConnectionHost
  readonly #transport: Transport
  readonly #session: Session
  readonly #platform: Platform
  readonly #reader: StreamReader
  readonly #view = new PublishView()
  /** Where reads go on a platform that has sockets; on others into an array of this connection. */
  readonly #reads: Reads | undefined
  #buffer: Uint8Array | undefined
  readonly #maximumPacketSize: number
  /** The window that is read from, where it may be lent. */
  #window: Piece | undefined
  readonly #topics: TopicTable
  readonly #aliased = new SparseMap<number, TopicRecord>()
  readonly #version: ProtocolVersion
  readonly #counters: Counters | undefined
  #ended = false
  #timer: CancelTimer | undefined
  #timerAt = Number.POSITIVE_INFINITY

  constructor(transport: Transport, host: ConnectionHost, connect: ConnectPacket) {
    const { maximumPacketSize = host.options.maximumPacketSize } = connect.properties
    this.#version = connect.protocolVersion
    this.#counters = host.counters
    this.#transport = transport
    this.#host = host
    this.#session = host.session
    this.#platform = host.platform
    this.#reader = new StreamReader(host.platform, transport, this, this.#version, maximumPacketSize)
    const take: TakeRead = (bytes, length, data, window) => this.#receive(bytes, length, data, window as Piece | undefined)
    this.#reads = host.platform.reads?.(host.router, this.#reader, take)
    this.#maximumPacketSize = maximumPacketSize
    this.#topics = new TopicTable(host.options.memoryBudget * topicShare)
    if (host.links.scanner !== undefined) this.useScanner(host.links.scanner)
    this.writer = new PacketWriter(transport, host, this.#version, this)
    transport.open(this)
  }

  /** Reads with this scanner, from the end of the packet on that is coming in. */
  useScanner(scanner: FrameScanner): void {
    this.#reads?.useWindow(scanner.window)
    this.#reader.better = scanner.frames(frameOptions(this.#platform, this.#version, this.#maximumPacketSize))
  }

  /** Nothing more comes in or goes out, but for a goodbye that was handed over. */
  get over(): boolean {
    return this.#ended
  }

  /** Bytes held for this connection: what was not read to its end, topics of aliases, and output that has not left. */
  get held(): number {
    return this.#reader.held + this.#session.aliases.bytes + this.#topics.bytes + this.writer.piled
  }

  /** Does what the session asks for. To be called after every command given to it. */
  pump(): void {
    this.#act()
    this.writer.queueFlush()
    this.arm()
  }

  #act(): void {
    for (let action = this.#session.poll(); action !== undefined; action = this.#session.poll()) {
      if (action.type === 'send') this.#sendControl(action.packet)
      else if (action.type === 'close') this.#close(action.error, action.reasonCode)
      else if (action.type === 'exceeded') this.#host.log('warn', 'the server exceeds Receive Maximum')
      else this.#host.handleAction(action)
    }
  }

  /** DISCONNECT is queued or not sent at all: flush, and end the stream. What is queued gets so many milliseconds to leave. */
  end(patience = closePatience): void {
    if (this.#ended) return
    this.#cutAfter(patience)
    this.writer.silence(() => {
      this.#transport.close()
      this.writer.onWritten((error) => {
        if (error === undefined && !this.#ended) this.#cutAfter(closePatience)
      })
    })
  }

  /** Cuts the connection. `handleClosed` is called before this returns. */
  destroy(error?: MqttError): void {
    this.#transport.destroy(error)
    this.#finish(error)
  }

  // Input: the Sink

  buffer(): Uint8Array {
    if (this.#reads !== undefined) return this.#reads.buffer()
    this.#buffer ??= new Uint8Array(windowSize)
    return this.#buffer
  }

  read(length: number): void {
    if (this.#reads === undefined) this.#receive(this.buffer(), length, undefined, undefined)
    else this.#reads.read(length)
  }

  chunk(given: Uint8Array): void {
    // A Node Buffer becomes a plain view: its own `slice` would not copy what is kept.
    const bytes = given.constructor === Uint8Array ? given : new Uint8Array(given.buffer, given.byteOffset, given.length)
    this.#receive(bytes, bytes.length, undefined, undefined)
  }

  // Without bytes: they are in the room that was given.
  #receive(bytes: Uint8Array | undefined, length: number, data: DataView | undefined, window: Piece | undefined): void {
    if (this.#ended || length === 0) return
    const now = this.#platform.now()
    this.#session.keepAlive.received(now)
    if (this.#counters !== undefined) this.#counters.bytesReceived += length
    this.#window = window
    if (this.#reader.take(bytes, length, data, now, () => this.#host.options.memoryBudget - this.held)) return
    this.#giveUp(broken('ERR_CONNECTION_LOST', 'more came during authentication'))
  }

  handleSliceStart(): void {
    this.writer.watching.refresh()
    this.#host.router.handleRead(this.#window)
  }

  /** True while packets are to be handled. */
  get reading(): boolean {
    return this.#session.state !== 'closed'
  }

  handleSlice(complete: boolean, fault: WireError | undefined, now: number): void {
    const { keepAlive } = this.#session
    this.#view.release()
    this.#host.router.handleReadEnd()
    keepAlive.partial(this.#reader.framer.pending, complete, now)
    if (fault !== undefined) this.#session.close(withOutcome(fault, 'unknown'), fault.reasonCode)
    if (this.#session.state === 'connected') this.#host.flush()
    // Timers of a page that nobody sees come up to a minute late: who is woken by what comes in sees to what is due.
    if (now >= this.#session.nextTimeout()) this.#session.handleTimeout(now)
    this.pump()
    this.writer.flush()
  }

  drain(): void {
    if (this.#ended) return
    this.writer.handleDrain()
    this.#host.flush()
  }

  closed(cause: unknown): void {
    this.#reader.finish()
    this.#timer?.()
    this.#finish(this.#session.state === 'closed' ? undefined : broken('ERR_CONNECTION_LOST', undefined, cause))
  }

  handleFrame(now: number): void {
    const { bytes, start, body, end } = this.#reader.framer
    const type = (bytes[start] as number) >> 4
    if (this.#counters !== undefined) this.#counters.packetsReceived += 1
    if (type === PUBLISH) return this.#handlePublish()
    const acks = type >= PUBACK && type <= PUBCOMP
    if (acks && !this.writer.watching.on && takeAck(this.#host, type, bytes, body, end, this.#version)) return
    const packet = readControl(bytes, start, body, end, this.#version)
    this.#host.links.watch?.('in', packet)
    if (type !== CONNACK && type !== AUTH && !this.#session.expectConnected()) return
    if ('properties' in packet && (packet.properties.userProperties?.length ?? 0) > userPropertyLimit) return this.#session.fail(0x97)
    if (acks) handleAck(this.#host, type, (packet as PubackPacket).packetId, (packet as PubackPacket).reasonCode, (packet as PubackPacket).properties)
    else this.#handlePacket(packet, now)
  }

  #handlePacket(packet: ServerPacket, now: number): void {
    if (packet.type === 'pingresp') this.#counters?.handlePong(now)
    const verified = packet.type === 'connack' ? this.#host.links.verify(packet) : undefined
    if (verified !== undefined) return this.#await(verified, packet)
    this.#session.handlePacket(packet, now)
    this.pump()
  }

  // Nothing more is read before it is known whether this packet counts.
  #await(verified: Promise<unknown>, packet: ServerPacket): void {
    this.#reader.hold()
    verified.then(
      () => {
        if (this.#ended) return
        this.#session.handlePacket(packet, this.#platform.now())
        this.pump()
        this.#reader.release()
      },
      (error: MqttError) => this.destroy(error),
    )
  }

  #handlePublish(): void {
    const view = this.#view
    const { framer } = this.#reader
    framer.read(view, this.#topics)
    if (!this.#session.expectConnected()) return
    const { userPropertyCount, subscriptionIdentifierCount } = view
    if (userPropertyCount + subscriptionIdentifierCount > 0 && holdsTooMuch(view, this.#host.registry.filters)) return this.#session.fail(0x97)
    const record = view.topicAlias === 0 ? view.record : this.#resolve(view)
    if (record === undefined) return
    if (this.writer.watching.on) {
      this.#host.links.watch?.('in', view.packet())
      if (this.#ended) return
    }
    const ticket = view.qos === 0 ? noTicket : this.#session.receiveWindow.handlePublish(view.packetId, view.qos, view.dup)
    if (ticket >= 0 || view.qos === 0) this.#host.router.handleMessage(view, record, ticket, framer.limit)
    else if (ticket === REPEAT) this.#host.router.handleRepeat()
  }

  // What an alias stands for, with what is known about that topic [MQTT-3.3.2-12].
  #resolve({ topicAlias, record }: PublishView): TopicRecord | undefined {
    const mostBytes = Math.max(leastAliasBytes, this.#host.options.memoryBudget * aliasShare)
    const topic = this.#session.resolve(topicAlias, record?.name, mostBytes)
    if (topic === undefined) return undefined
    if (record !== undefined) this.#aliased.set(topicAlias, record)
    return record ?? this.#aliased.get(topicAlias)
  }

  #giveUp(error: MqttError): void {
    this.#session.close(error, undefined)
    this.pump()
  }

  #sendControl(packet: ClientPacket): void {
    if (packet.type === 'disconnect') return this.writer.sendDisconnect(packet)
    if (packet.type === 'pingreq') this.#counters?.handlePing(this.#platform.now())
    try {
      this.writer.send(packet)
    } catch (error) {
      // A server whose Maximum Packet Size leaves no room for a ping cannot be kept.
      this.#session.close(error as MqttError, undefined)
    }
  }

  #close(error: MqttError, reasonCode: number | undefined): void {
    if (this.#ended) return
    // Acknowledgements that are queued may answer what is now known to be wrong: they stay behind. Over our own limits they leave, or nothing moves on.
    if (error.fault === 'remote') this.#session.acks.clear()
    // No packet goes into the middle of another.
    if (reasonCode === undefined || this.writer.midway) return this.destroy(error)
    this.writer.sendDisconnect({ type: 'disconnect', reasonCode, properties: {} })
    this.writer.flushNow()
    this.#finish(error)
    this.#cutAfter(closePatience)
    this.#transport.close()
  }

  // A link over which nothing leaves is cut off, and a peer that does not end its side.
  #cutAfter(delay: number): void {
    this.#timer?.()
    this.#timerAt = Number.NEGATIVE_INFINITY
    this.#timer = this.#platform.setTimer(() => this.#transport.destroy(), delay)
  }

  #finish(error: MqttError | undefined): void {
    if (this.#ended) return
    this.#ended = true
    this.#host.events.transition(() => {
      this.#tellLateness()
      this.writer.stop()
      this.#reader.stop()
      this.#timer?.()
      this.#timer = undefined
      this.writer.abandon(error ?? broken('ERR_CONNECTION_LOST'))
      this.#host.links.handleClosed(error)
    })
  }

  /** Sees to the timer, one for all deadlines. It is moved only when a deadline comes nearer: those that move away are looked up when it fires. */
  arm(): void {
    const at = this.#session.nextTimeout()
    if (this.#ended || at >= this.#timerAt) return
    this.#timer?.()
    this.#timerAt = at
    this.#timer = this.#platform.setTimer(() => this.#handleTimer(), Math.max(0, at - this.#platform.now()))
  }

  #handleTimer(): void {
    this.#tellLateness()
    this.#session.handleTimeout(this.#platform.now())
    this.pump()
  }

  // The server gives us up after one and a half keep-alives: a connection that ends may have waited for its timer until now.
  #tellLateness(): void {
    const lateness = this.#platform.now() - this.#timerAt
    const keepAlive = this.#session.negotiated?.keepAlive ?? 0
    this.#timerAt = Number.POSITIVE_INFINITY
    if (keepAlive > 0 && lateness >= keepAlive * 500 && lateness < Number.POSITIVE_INFINITY) this.#host.events.emit('late', { lateness, keepAlive })
  }
}
