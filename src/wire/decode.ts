/**
 * The public decoders: `decode` for one packet, `Decoder` for a stream.
 *
 * Both sides of the protocol, strict: whatever the standard forbids and a single packet can show is
 * an error. Results contain copies; nothing of a chunk is held after the call except the beginning
 * of an incomplete packet.
 */
import { MqttError } from '../errors.js'
import { MAXIMUM_PACKET_SIZE, PUBLISH, type Sender } from './constants.js'
import { decodeClientPacket } from './decode-client.js'
import { decodeServerPacket } from './decode-server.js'
import { malformed, WireError } from './error.js'
import { nothing, plainView } from './fields.js'
import { Framer } from './framer.js'
import type { FrameSource } from './frames.js'
import { givenOptions } from './given-fields.js'
import type { Bytes, Packet, ProtocolVersion } from './packets.js'
import { PublishView, packetWith } from './publish.js'
import { TopicTable } from './topic-table.js'
import { isObject } from './writer.js'

/**
 * Payloads in a stream of up to `largestShared` bytes share memory, `slabSize` bytes at a time: one
 * allocation for many packets.
 */
const slabSize = 65_536
const largestShared = 8192
/** Shorter payloads are copied in a loop. */
const shortCopy = 64
let slab = nothing
let used = 0

/** Approximate bytes of topics that a decoder remembers. */
const topicBudget = 65_536

/** Options of decoding. */
export interface DecodeOptions {
  /** 5 (default), or 4 for 3.1.1. A CONNECT is decoded with its own version. */
  protocolVersion?: ProtocolVersion | undefined
  /** Who sent the bytes. */
  from: Sender
  /**
   * Largest packet accepted in bytes, including the fixed header; 268,435,460 by default, the limit
   * of the format.
   */
  maximumPacketSize?: number | undefined
}

/** Creates a framer from options. @throws MqttError ERR_INVALID_OPTION */
export function createFramer(given: DecodeOptions, splits = false): Framer {
  if (!isObject(given)) throw invalid('options', 'must be an object')
  const { protocolVersion = 5, from, maximumPacketSize = MAXIMUM_PACKET_SIZE } = givenOptions(given)
  if (from !== 'server' && from !== 'client') throw invalid('from', "must be 'server' or 'client'")
  if (protocolVersion !== 4 && protocolVersion !== 5)
    throw invalid('protocolVersion', 'must be 4 or 5')
  if (!Number.isInteger(maximumPacketSize) || maximumPacketSize < 1)
    throw invalid('maximumPacketSize', 'must be a positive integer')
  return new Framer({ from, protocolVersion, maximumPacketSize, splits })
}

function invalid(option: string, message: string): MqttError {
  return new MqttError('ERR_INVALID_OPTION', `${option}: ${message}`, { option })
}

/** A caller's bytes as a plain array. @throws MqttError ERR_INVALID_OPTION */
export function givenBytes(bytes: Uint8Array): Uint8Array {
  const view = plainView(bytes)
  if (view === undefined) throw invalid('bytes', 'must be a Uint8Array')
  return view
}

/** Decodes the current frame. @throws WireError */
export function decodeFrame(frames: FrameSource, from: Sender): Packet {
  const { bytes, start, body, end, protocolVersion } = frames
  if ((bytes[start] as number) >> 4 === PUBLISH) {
    const view = new PublishView()
    view.read(bytes, start, body, end, protocolVersion, from)
    return view.packet()
  }
  return from === 'server'
    ? decodeServerPacket(bytes, start, body, end, protocolVersion)
    : decodeClientPacket(bytes, start, body, end, protocolVersion)
}

/**
 * Decodes exactly one control packet.
 *
 * @throws WireError `'incomplete'` when bytes are missing, `'malformed'` also when bytes are left
 * over
 */
export function decode(bytes: Uint8Array, options: DecodeOptions): Packet {
  const given = givenBytes(bytes)
  const framer = createFramer(options)
  framer.push(given)
  if (!framer.next()) throw new WireError('incomplete', 'packet is incomplete', given.length)
  if (framer.end < given.length) throw malformed('bytes after the packet', framer.end)
  return decodeFrame(framer, framer.from)
}

/**
 * Decodes a stream of control packets that arrives in chunks of any size.
 *
 * Payloads of up to 8 KiB share an ArrayBuffer of 64 KiB with others. Copy one that you keep for
 * long, give to a worker, or whose `buffer` you pass on.
 */
export class Decoder {
  readonly #framer: Framer
  // Created by the first PUBLISH.
  #view: PublishView | undefined
  #topics: TopicTable | undefined
  #error: WireError | undefined

  /** @throws MqttError `ERR_INVALID_OPTION` */
  constructor(options: DecodeOptions) {
    this.#framer = createFramer(options, true)
  }

  /** The version in use: the option's, or that of the last CONNECT. */
  get protocolVersion(): ProtocolVersion {
    return this.#framer.protocolVersion
  }

  /** Bytes held of an incomplete packet. */
  get pending(): number {
    return this.#framer.pending
  }

  /**
   * Reads a whole chunk at once; the caller may reuse its memory afterwards.
   *
   * @returns the packets that it completed; iterating throws the WireError at the place where the
   * stream became invalid
   * @throws WireError the same one at each later call
   */
  push(chunk: Uint8Array): Iterable<Packet> {
    if (this.#error !== undefined) throw this.#error
    const given = givenBytes(chunk)
    const packets: Packet[] = []
    try {
      this.#framer.push(given)
      while (this.#framer.next()) packets.push(this.#decodeOne())
    } catch (error) {
      if (!(error instanceof WireError)) throw error
      this.#error = error
      this.#framer.clear()
      return { [Symbol.iterator]: () => failing(packets, error) }
    }
    return packets
  }

  #decodeOne(): Packet {
    const framer = this.#framer
    if ((framer.bytes[framer.start] as number) >> 4 === PUBLISH) return this.#decodePublish(framer)
    const packet = decodeFrame(framer, framer.from)
    if (packet.type === 'connect') framer.protocolVersion = packet.protocolVersion
    return packet
  }

  // Topics of a stream repeat.
  #decodePublish(framer: Framer): Packet {
    this.#view ??= new PublishView()
    this.#topics ??= new TopicTable(topicBudget)
    const view = this.#view
    try {
      framer.read(view, this.#topics)
      // A payload that came in several chunks already has an array of its own.
      return packetWith(view, (view.apart as Bytes | undefined) ?? copyOf(view))
    } finally {
      view.release()
    }
  }
}

/** A copy of the payload. */
function copyOf({ bytes, payloadStart, payloadEnd }: PublishView): Bytes {
  const size = payloadEnd - payloadStart
  // An empty one must not be a view of memory that all have in common.
  if (size === 0 || size > largestShared)
    return new Uint8Array(bytes.subarray(payloadStart, payloadEnd))
  if (size > slab.length - used) {
    slab = new Uint8Array(slabSize)
    used = 0
  }
  const from = used
  used += size
  if (size >= shortCopy) slab.set(bytes.subarray(payloadStart, payloadEnd), from)
  else for (let at = 0; at < size; at++) slab[from + at] = bytes[payloadStart + at] as number
  return slab.subarray(from, used) as Bytes
}

function* failing(packets: Packet[], error: WireError): Generator<Packet, never> {
  yield* packets
  throw error
}
