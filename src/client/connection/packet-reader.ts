/**
 * The reading half of a connection: frames from the transport are decoded and passed to the
 * session, the publishes or the router.
 *
 * It never throws into the transport, and reads nothing once the connection is over.
 */
import { tally } from '../../common/counters.js'
import type { Piece } from '../../common/message-memory.js'
import { withOutcome } from '../../common/outcome.js'
import { windowSize } from '../../common/read-windows.js'
import type { Reads, ReadTaker } from '../../common/reads.js'
import { quoted } from '../../common/schema.js'
import { MqttError } from '../../errors.js'
import type { Sink, Transport } from '../../transport/transport.js'
import { AUTH, CONNACK, PUBACK, PUBCOMP, PUBLISH, PUBREL } from '../../wire/constants.js'
import { WireError } from '../../wire/error.js'
import type { FrameOptions, FrameScanner } from '../../wire/frames.js'
import type {
  ConnectPacket,
  Properties,
  ProtocolVersion,
  PubackPacket,
  QoS,
  ServerPacket,
} from '../../wire/packets.js'
import { PublishView } from '../../wire/publish.js'
import { isReasonCode } from '../../wire/reason-codes.js'
import { type TopicRecord, TopicTable } from '../../wire/topic-table.js'
import { noTicket, REPEAT } from '../session/receive-window.js'
import { broken, mostFaultyEnds, nameOf, unknownAlias } from '../session/refusal.js'
import { CLEARED, DONE, RELEASED } from '../session/send-window.js'
import type { Session } from '../session/session.js'
import {
  type FaultyPublish,
  faultyPublish,
  holdsTooMuch,
  isUnowned,
  readControl,
  sizeLimit,
  userPropertyLimit,
} from './control.js'
import type { PacketWriter } from './packet-writer.js'
import type { ConnectionHost, MessageTaker } from './ports.js'
import { StreamReader } from './stream-reader.js'

/** Share of the memory budget for topics with incoming aliases; at least 64 KiB. */
const aliasShare = 0.25
const leastAliasBytes = 65_536
/** Share of the memory budget for the cache of recurring topics. */
const topicShare = 0.125

/** The connection as its reader sees it. */
export interface ReaderOwner {
  readonly writer: PacketWriter
  /** True when nothing more comes in. */
  readonly over: boolean
  /**
   * `pump` runs the session's actions and everything that is due; `act`, enough within a slice,
   * only the actions.
   */
  pump(): void
  act(): void
  /**
   * `giveUp` ends the connection with an error; `destroy` does so immediately and sends nothing
   * more.
   */
  giveUp(error: MqttError): void
  destroy(error: MqttError): void
  /** A slice of input was read. */
  handleSlice(now: number): void
  /** The stream is over. */
  handleEnd(cause: unknown): void
}

/** Decodes the packets of one connection. */
export class PacketReader extends StreamReader implements Sink, ReadTaker {
  /**
   * Engines discard the code compiled for a kind of object when none is left, as between two
   * connections.
   */
  static readonly examples = [new PublishView(true), new TopicTable(0)] as const
  readonly #host: ConnectionHost
  readonly #owner: ReaderOwner
  readonly #session: Session
  readonly #inbox: MessageTaker
  readonly #version: ProtocolVersion
  // Created by the first PUBLISH.
  #topics: TopicTable | undefined
  #view: PublishView | undefined
  /** Shared read buffers, on platforms with sockets; otherwise `#buffer` of this connection. */
  readonly #reads: Reads | undefined
  #buffer: Uint8Array | undefined
  /** The read window in use, if it may be lent. */
  #window: Piece | undefined
  /** This slice contained a PUBLISH. */
  #taken = false
  /** Bytes of an incomplete packet after the previous slice. */
  #pending = 0
  /** Set when an acknowledgement of identifier 0 was logged; once per connection. */
  #reportedUnowned = false
  /** The same for an unrequested Reason String. */
  #reportedProblems = false

  constructor(
    transport: Transport,
    host: ConnectionHost,
    { protocolVersion, properties }: ConnectPacket,
    owner: ReaderOwner,
  ) {
    const { connections, options, platform } = host
    const { inbox } = connections
    const { maximumPacketSize = options.maximumPacketSize } = properties
    const skips = options.oversized === 'skip'
    const found: FrameOptions = {
      protocolVersion,
      maximumPacketSize,
      sizeLimit,
      splits: true,
      skips,
      allocate: platform.allocate,
    }
    super(host, transport, found)
    this.#host = host
    this.#owner = owner
    this.#session = host.session
    this.#inbox = inbox
    this.#version = protocolVersion
    this.#reads = platform.reads?.(inbox, this)
    if (connections.scanner !== undefined) this.useScanner(connections.scanner)
  }

  /** Uses this scanner after the packet that is being received. */
  useScanner(scanner: FrameScanner): void {
    this.#reads?.useWindow(scanner.window)
    this.scanner = scanner
  }

  override get held(): number {
    return super.held + this.#session.aliases.bytes + (this.#topics?.bytes ?? 0)
  }

  // The Sink

  buffer(): Uint8Array {
    if (this.#reads !== undefined) return this.#reads.buffer()
    this.#buffer ??= new Uint8Array(windowSize)
    return this.#buffer
  }

  read(length: number): void {
    if (this.#reads === undefined) this.receive(this.buffer(), length, undefined, undefined)
    else this.#reads.read(length)
  }

  chunk(given: Uint8Array): void {
    // Converts a Node Buffer, whose `slice` does not copy, to a plain Uint8Array.
    const bytes =
      given.constructor === Uint8Array
        ? given
        : new Uint8Array(given.buffer, given.byteOffset, given.length)
    this.receive(bytes, bytes.length, undefined, undefined)
  }

  drain(): void {
    this.#owner.writer.handleDrain()
  }

  closed(cause: unknown): void {
    this.finish()
    this.#owner.handleEnd(cause)
  }

  // Without `bytes`, they were read into `room`.
  receive(
    bytes: Uint8Array | undefined,
    length: number,
    data: DataView | undefined,
    window: Piece | undefined,
  ): void {
    const { counters, platform } = this.#host
    if (this.#owner.over || length === 0) return
    const now = platform.now()
    this.#session.keepAlive.received(now)
    if (counters !== undefined) counters.bytesReceived += length
    this.#window = window
    this.#owner.writer.lookForWatchers()
    if (this.take(bytes, length, data, now)) return
    this.#owner.giveUp(broken('ERR_CONNECTION_LOST', 'more came during authentication'))
  }

  protected override handleSlice(
    complete: boolean,
    fault: WireError | undefined,
    now: number,
  ): void {
    const session = this.#session
    if (this.#taken) {
      this.#view?.release()
      this.#inbox.handleReadEnd()
      this.#taken = false
    }
    const { pending } = this.framer
    if (pending + this.#pending > 0) session.keepAlive.partial(pending, complete, now)
    this.#pending = pending
    if (fault !== undefined) session.close(withOutcome(fault, 'unknown'), fault.reasonCode)
    this.#owner.handleSlice(now)
  }

  protected override handleFrame(now: number): void {
    const { counters } = this.#host
    const { bytes, start, body, end } = this.framer
    const type = (bytes[start] as number) >> 4
    if (counters !== undefined) counters.packetsReceived += 1
    if (type === PUBLISH) return this.#handlePublish()
    const acks = type >= PUBACK && type <= PUBCOMP
    if (
      acks &&
      !this.#owner.writer.watched &&
      takeAck(this.#host, type, bytes, body, end, this.#version)
    )
      return
    if (isUnowned(type, bytes, body, end)) return this.#handleUnowned()
    const packet = readControl(bytes, start, body, end, this.#version)
    if (!acks) return this.#take(packet, type, now)
    // A listener that ends the connection sees an acknowledgement that has taken effect.
    this.#host.events.transition(() => this.#take(packet, type, now))
  }

  #take(packet: ServerPacket, type: number, now: number): void {
    this.#host.connections.watch?.('in', packet)
    if (type !== CONNACK && type !== AUTH && !this.#session.expectConnected()) return
    if (
      'properties' in packet &&
      (packet.properties.userProperties?.length ?? 0) > userPropertyLimit
    )
      return this.#session.fail(0x97)
    if (this.#host.options.requestProblemInformation === false) this.#lookForProblems(packet)
    if (type >= PUBACK && type <= PUBCOMP)
      handleAck(
        this.#host,
        type,
        (packet as PubackPacket).packetId,
        (packet as PubackPacket).reasonCode,
        (packet as PubackPacket).properties,
      )
    else this.#handleControl(packet, now)
  }

  // The server was asked to omit it [MQTT-3.1.2-29]; harmless.
  #lookForProblems(packet: ServerPacket): void {
    if (
      this.#reportedProblems ||
      packet.type === 'connack' ||
      packet.type === 'disconnect' ||
      !('properties' in packet)
    )
      return
    const { reasonString, userProperties = [] } = packet.properties
    if (reasonString === undefined && userProperties.length === 0) return
    this.#reportedProblems = true
    this.#host.log(
      'warn',
      `${packet.type.toUpperCase()} explains itself, though requestProblemInformation is false`,
    )
  }

  // Identifier 0 is never used, so nothing can be settled; the stream is intact, so the packet is
  // ignored.
  #handleUnowned(): void {
    if (!this.#session.expectConnected()) return
    this.#session.sendWindow.unsolicited += 1
    if (!this.#reportedUnowned)
      this.#host.log('warn', 'the server acknowledges packet identifier 0, which is ignored')
    this.#reportedUnowned = true
  }

  #handleControl(packet: ServerPacket, now: number): void {
    const { counters, connections, platform } = this.#host
    if (packet.type === 'pingresp') counters?.handlePong(now)
    const take = (at: number): void => {
      this.#session.handlePacket(packet, at)
      this.#owner.act()
    }
    const verified = packet.type === 'connack' ? connections.verify(packet) : undefined
    if (verified === undefined) return take(now)
    // Reading stops until it is known whether this CONNACK is accepted.
    this.hold()
    verified.then(
      () => {
        if (this.#owner.over) return
        take(platform.now())
        this.#owner.pump()
        this.release()
      },
      (error: MqttError) => this.#owner.destroy(error),
    )
  }

  #handlePublish(): void {
    this.#view ??= new PublishView(true)
    this.#topics ??= new TopicTable(this.#host.options.memoryBudget * topicShare)
    const view = this.#view
    const session = this.#session
    const inbox = this.#inbox
    const { framer } = this
    if (!this.#taken) inbox.handleRead(this.#window)
    this.#taken = true
    try {
      framer.read(view, this.#topics)
    } catch (error) {
      if (
        !(error instanceof WireError) ||
        session.state !== 'connected' ||
        !this.#passes(error.reasonCode, error)
      )
        throw error
      return
    }
    if (!session.expectConnected()) return
    if (view.willDelay) this.#handleWillDelay(view)
    // A topic alias is defined even if the message that carries it is skipped.
    const record = view.topicAlias === 0 ? view.record : this.#resolve(view)
    if (record === undefined) return
    const { userPropertyCount, subscriptionIdentifierCount } = view
    if (
      userPropertyCount + subscriptionIdentifierCount > 0 &&
      holdsTooMuch(view, this.#host.subscriptions.filters)
    )
      return this.#refuse(0x97)
    if (this.#owner.writer.watched) {
      this.#host.connections.watch?.('in', view.packet())
      if (this.#owner.over) return
    }
    if (framer.size > framer.maximumPacketSize) {
      if (this.#skip(view.packetId, view.qos, view.dup))
        inbox.handleTooLarge(view, record.name, framer.size)
      return
    }
    const ticket =
      view.qos === 0
        ? noTicket
        : session.receiveWindow.handlePublish(view.packetId, view.qos, view.dup)
    if (ticket >= 0 || view.qos === 0) inbox.handleMessage(view, record, ticket, framer.limit)
    else if (ticket === REPEAT) inbox.handleRepeat()
  }

  // The topic record of an alias.
  #resolve({ topicAlias, record }: PublishView): TopicRecord | undefined {
    const mostBytes = Math.max(leastAliasBytes, this.#host.options.memoryBudget * aliasShare)
    const found = this.#session.aliases.resolve(topicAlias, record, mostBytes)
    if (typeof found !== 'number') return found
    this.#refuse(found, found === 0x82 ? unknownAlias : undefined)
    return undefined
  }

  // Acknowledges a message that is not handed out. False for a repeat, and when no acknowledgement
  // is due.
  #skip(packetId: number, qos: QoS, dup: boolean): boolean {
    const { receiveWindow, version } = this.#session
    if (qos === 0) return true
    const ticket = receiveWindow.handlePublish(packetId, qos, dup)
    if (ticket === REPEAT) this.#inbox.handleRepeat()
    // 3.1.1 has no negative acknowledgement.
    return ticket >= 0 && receiveWindow.settle(ticket, version === 5 ? 0x97 : 0)
  }

  // Ends the connection because of the content of this PUBLISH, unless the message is to be
  // skipped.
  #refuse(reasonCode: number, message?: string): void {
    if (!this.#passes(reasonCode, message)) this.#session.fail(reasonCode, message)
  }

  // True when this PUBLISH is skipped: it has ended several connections in a row and would end
  // every later one [MQTT-4.13.1-1].
  #passes(reasonCode: number | undefined, why: WireError | string | undefined): boolean {
    const { faulty } = this.#session
    const found = faultyPublish(this.framer, this.#version)
    if (!faulty.isPassed(found.key)) {
      faulty.note(found.key)
      return false
    }
    if ((found.qos === 0 || found.packetId > 0) && this.#skip(found.packetId, found.qos, found.dup))
      this.#reportPassed(found, reasonCode, why)
    return true
  }

  #reportPassed(
    { topic }: FaultyPublish,
    reasonCode: number | undefined,
    why: WireError | string | undefined,
  ): void {
    const host = this.#host
    const { code = 'ERR_PROTOCOL_ERROR', message = why } = why instanceof WireError ? why : {}
    const reasonName = reasonCode === undefined ? undefined : nameOf(reasonCode)
    const text = `a message on ${quoted(topic)} was read past, as it ended ${mostFaultyEnds} connections: ${message ?? reasonName}`
    tally(host, 'received')
    tally(host, 'dropped')
    host.log('warn', text)
    host.events.emit('error', {
      error: new MqttError(code, text, { fault: 'remote', reasonCode, reasonName, cause: why }),
    })
  }

  // Some servers leave it in the PUBLISH that they make of a will.
  #handleWillDelay(view: PublishView): void {
    const { faulty } = this.#session
    view.willDelay = false
    if (!faulty.willDelay)
      this.#host.log('warn', 'the server sends a Will Delay Interval in PUBLISH, which is ignored')
    faulty.willDelay = true
  }
}

/**
 * Fast path for an acknowledgement in `bytes[body..end)`. False if it contains more than an
 * identifier and a reason code, or is invalid: then `decodeServerPacket`, which applies the same
 * rules, decodes it.
 */
export function takeAck(
  host: ConnectionHost,
  packetType: number,
  bytes: Uint8Array,
  body: number,
  end: number,
  version: ProtocolVersion,
): boolean {
  const size = end - body
  if (size !== 2 && (size !== 3 || version === 4)) return false
  const packetId = ((bytes[body] as number) << 8) | (bytes[body + 1] as number)
  const reasonCode = size === 2 ? 0 : (bytes[body + 2] as number)
  if (packetId === 0 || (reasonCode !== 0 && !isReasonCode(packetType, reasonCode, 'server')))
    return false
  const { session } = host
  if (session.expectConnected()) handleAck(host, packetType, packetId, reasonCode, undefined)
  return true
}

/** Applies a decoded acknowledgement. */
export function handleAck(
  host: ConnectionHost,
  packetType: number,
  packetId: number,
  reasonCode: number,
  properties: Properties | undefined,
): void {
  const { publishing, session } = host
  if (packetType === PUBREL) return session.receiveWindow.handlePubrel(packetId)
  const verdict = session.sendWindow.handleAck(packetType, packetId, reasonCode)
  if (verdict === DONE)
    publishing.sent.handleAcknowledged(packetType, packetId, reasonCode, properties)
  else if (verdict === RELEASED) publishing.sent.handleReleased(packetId, reasonCode)
  else if (verdict === CLEARED) publishing.flush()
}
