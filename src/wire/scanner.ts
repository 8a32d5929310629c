/**
 * The public cursor over a stream of packets, for those to whom an object for each PUBLISH is too much: nothing is allocated for one.
 *
 * As strict as `Decoder`. What it shows of a PUBLISH lies in the chunk and is valid until the next call; every other packet is an object of its own.
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

/** How to scan bytes. */
export interface ScanOptions extends DecodeOptions {
  /** Finds packets with WebAssembly: what `loadScanner()` of `mqwire/wasm` gives. Only for what servers send. */
  readonly scanner?: FrameScanner | undefined
}

/** Reads a stream of control packets that arrives in chunks of any size, one packet at a time. */
export class Scanner {
  /** The current packet where `type` is `'publish'`: offsets, flags and topic, in place. */
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

  /** What kind of packet is current. */
  get type(): Packet['type'] {
    return this.#packet === undefined ? 'publish' : this.#packet.type
  }

  /** Bytes held of an incomplete packet; after `next` returned false. */
  get pending(): number {
    return this.#frames.pending
  }

  /**
   * Sets the chunk to read, or the first `length` bytes of it. It must stay as it is until `next` has returned false, and is the caller's again then.
   *
   * @throws WireError the same one again, once the stream turned bad; MqttError ERR_INVALID_OPTION
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
   * True: a packet is current, checked to its end. False: the chunk is read, and the beginning of an incomplete packet was copied.
   *
   * @throws WireError when the stream turns bad here, and the same one again from then on
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
   * The current packet as an object of its own, with copies of everything.
   *
   * @throws WireError the one of `next`, once the stream turned bad
   */
  packet(): Packet {
    if (this.#error !== undefined) throw this.#error
    return this.#packet ?? this.publish.packet()
  }

  // No packet is current: nothing of the last one is shown, and nothing of the chunk is held.
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
