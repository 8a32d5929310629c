/**
 * The public decoders: `decode` for one packet, `Decoder` for a stream.
 *
 * Both sides of the protocol, strict: what the standard forbids and one packet alone can show is an error. What they hand out holds copies of
 * the bytes, and they hold nothing of a chunk after the call, except the beginning of an incomplete packet.
 */
import { MqttError } from '../errors.js'
import { MAXIMUM_PACKET_SIZE, PUBLISH, type Sender } from './constants.js'
import { decodeClientPacket } from './decode-client.js'
import { decodeServerPacket } from './decode-server.js'
import { malformed, WireError } from './error.js'
import { plainView } from './fields.js'
import { Framer } from './framer.js'
import type { FrameSource } from './frames.js'
import { givenOptions } from './given-fields.js'
import type { Packet, ProtocolVersion } from './packets.js'
import { PublishView } from './publish.js'
import { isObject } from './writer.js'

/** How to read bytes. */
export interface DecodeOptions {
  /** 5 (default) or 4 for 3.1.1. A CONNECT is read by the version in it. */
  protocolVersion?: ProtocolVersion | undefined
  /** Who sent the bytes. */
  from: Sender
  /** Largest packet accepted in bytes, fixed header included; 268,435,460 by default, which is all that the format can express. */
  maximumPacketSize?: number | undefined
}

/** A framer for checked options. @throws MqttError ERR_INVALID_OPTION */
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

/** Bytes of a caller as a plain array. @throws MqttError ERR_INVALID_OPTION */
export function givenBytes(bytes: Uint8Array): Uint8Array {
  const view = plainView(bytes)
  if (view === undefined) throw invalid('bytes', 'must be a Uint8Array')
  return view
}

/** The current frame as an object of its own. @throws WireError */
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
 * @throws WireError `'incomplete'` when bytes are missing, `'malformed'` also when bytes are left over
 */
export function decode(bytes: Uint8Array, options: DecodeOptions): Packet {
  const given = givenBytes(bytes)
  const framer = createFramer(options)
  framer.push(given)
  if (!framer.next()) throw new WireError('incomplete', 'packet is incomplete', given.length)
  if (framer.end < given.length) throw malformed('bytes after the packet', framer.end)
  return decodeFrame(framer, framer.from)
}

/** Decodes a stream of control packets that arrives in chunks of any size. */
export class Decoder {
  readonly #framer: Framer
  #error: WireError | undefined

  /** @throws MqttError `ERR_INVALID_OPTION` */
  constructor(options: DecodeOptions) {
    this.#framer = createFramer(options)
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
   * Reads a chunk, all of it, at once; the chunk is the caller's again when this returns.
   *
   * @returns the packets that it completed; iterating throws the WireError behind them when the stream turned bad there
   * @throws WireError the same one again, at each call after that
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
    const packet = decodeFrame(this.#framer, this.#framer.from)
    if (packet.type === 'connect') this.#framer.protocolVersion = packet.protocolVersion
    return packet
  }
}

function* failing(packets: Packet[], error: WireError): Generator<Packet, never> {
  yield* packets
  throw error
}
