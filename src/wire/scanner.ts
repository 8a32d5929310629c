/**
 * A public cursor over a stream of packets that allocates nothing for a PUBLISH.
 *
 * As strict as `Decoder`. The data of a PUBLISH is in the chunk and valid until the next call;
 * every other packet is an object.
 */
import { MqttError } from '../errors.js'
import type { Sender } from './constants.js'
import { PUBLISH } from './constants.js'
import { createFramer, type DecodeOptions, decodeFrame, givenBytes } from './decode.js'
import { WireError } from './error.js'
import type { FrameScanner, FrameSource } from './frames.js'
import { givenOptions } from './given-fields.js'
import type { Packet } from './packets.js'
import { PublishView } from './publish.js'
import { TopicTable } from './topic-table.js'

/** Options of scanning. */
export interface ScanOptions extends DecodeOptions {
  /**
   * Finds packets with WebAssembly: the result of `loadScanner()` of `mqwire/wasm`. Only for
   * packets of servers.
   */
  readonly scanner?: FrameScanner | undefined
}

/** Reads a stream of control packets that arrives in chunks of any size, one packet at a time. */
export class Scanner {
  /** The current packet when `type` is `'publish'`: offsets, flags and topic, in place. */
  readonly publish = new PublishView()
  readonly #frames: FrameSource
  readonly #from: Sender
  readonly #topics = new TopicTable()
  #packet: Packet | undefined
  #error: WireError | undefined

  /** @throws MqttError ERR_INVALID_OPTION */
  constructor(options: ScanOptions) {
    const framer = createFramer(options, true)
    const { scanner } = givenOptions(options)
    const { from } = framer
    if (scanner !== undefined && (from !== 'server' || typeof scanner.frames !== 'function')) {
      throw new MqttError(
        'ERR_INVALID_OPTION',
        "scanner: must be what loadScanner() gives, with from: 'server'",
        { option: 'scanner' },
      )
    }
    this.#from = from
    const { protocolVersion, maximumPacketSize } = framer
    this.#frames =
      scanner === undefined
        ? framer
        : scanner.frames({ protocolVersion, maximumPacketSize, splits: true })
  }

  /** The type of the current packet. */
  get type(): Packet['type'] {
    return this.#packet === undefined ? 'publish' : this.#packet.type
  }

  /** Bytes held of an incomplete packet; valid after `next` returned false. */
  get pending(): number {
    return this.#frames.pending
  }

  /**
   * Sets the chunk to read, or its first `length` bytes. It must not change until `next` has
   * returned false; then the caller may reuse it.
   *
   * @throws WireError the same one again, once the stream is invalid; MqttError ERR_INVALID_OPTION
   */
  push(chunk: Uint8Array, length?: number): void {
    if (this.#error !== undefined) throw this.#error
    const given = givenBytes(chunk)
    const size = length ?? given.length
    if (!(Number.isInteger(size) && size >= 0 && size <= given.length)) {
      throw new MqttError(
        'ERR_INVALID_OPTION',
        'length: must be an integer of at most the length of the chunk',
        { option: 'length' },
      )
    }
    this.#frames.push(given, size)
  }

  /**
   * True: a packet is current and completely checked. False: the chunk is read, and the beginning
   * of an incomplete packet was copied.
   *
   * @throws WireError when the stream becomes invalid here, and the same one from then on
   */
  next(): boolean {
    if (this.#error !== undefined) throw this.#error
    try {
      return this.#next()
    } catch (error) {
      if (error instanceof WireError) this.#error = error
      this.#frames.clear()
      this.#release()
      throw error
    }
  }

  /**
   * The current packet as an object with copies of everything.
   *
   * @throws WireError that of `next`, once the stream is invalid
   */
  packet(): Packet {
    if (this.#error !== undefined) throw this.#error
    return this.#packet ?? this.publish.packet()
  }

  // No packet is current: releases the last one and the chunk.
  #release(): void {
    const { publish } = this
    publish.release()
    publish.topicStart =
      publish.topicEnd =
      publish.propertiesStart =
      publish.propertiesEnd =
      publish.payloadStart =
      publish.payloadEnd =
        0
    this.#packet = undefined
  }

  #next(): boolean {
    const frames = this.#frames
    if (!frames.next()) {
      this.#release()
      return false
    }
    if ((frames.bytes[frames.start] as number) >> 4 === PUBLISH) {
      frames.read(this.publish, this.#topics)
      this.#packet = undefined
      return true
    }
    const packet = decodeFrame(frames, this.#from)
    if (packet.type === 'connect') frames.protocolVersion = packet.protocolVersion
    this.#packet = packet
    return true
  }
}
