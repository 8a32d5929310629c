/**
 * The public encoder of many packets: one buffer, written again and again, so that a packet costs no memory of its own.
 *
 * By the rules of `encode`, packet by packet. Whatever is refused leaves it as it was. It holds nothing of a packet after the call but its bytes.
 */
import { MqttError } from '../errors.js'
import { versionOf, writePacketInput } from './encode.js'
import type { PacketInput } from './packet-input.js'
import type { Bytes, ProtocolVersion } from './packets.js'
import { Writer } from './writer.js'

const encoderCapacity = 1024

/** Encodes many control packets, one behind the other. */
export class Encoder {
  readonly #writer = new Writer(encoderCapacity, true)
  readonly #version: ProtocolVersion
  /** Bytes of whole packets. */
  #length = 0
  #writing = false

  /**
   * @param options `protocolVersion`: 5 (default) or 4 for 3.1.1; the `protocolVersion` of a CONNECT wins, for that packet
   * @throws WireError with fault `'local'`
   */
  constructor(options: { protocolVersion?: ProtocolVersion | undefined } = {}) {
    this.#version = versionOf(options)
  }

  /** Bytes written so far. */
  get length(): number {
    return this.#length
  }

  /** What was written, as a view: valid until the next `write` or `clear`, and writable memory of the encoder. */
  get bytes(): Bytes {
    return this.#writer.bytes.subarray(0, this.#length) as Bytes
  }

  /**
   * Encodes one packet behind those before it.
   *
   * @throws WireError as `encode`; nothing is written then
   */
  write(packet: PacketInput): void {
    this.#checkIdle()
    this.#writing = true
    try {
      writePacketInput(this.#writer, packet, this.#version)
      this.#length = this.#writer.length
    } finally {
      this.#writer.length = this.#length
      this.#writing = false
    }
  }

  /** Forgets what was written and keeps the memory. */
  clear(): void {
    this.#checkIdle()
    this.#writer.length = this.#length = 0
  }

  /** An exact copy of what was written. */
  take(): Bytes {
    return this.#writer.bytes.slice(0, this.#length)
  }

  // A getter of the packet may come back here.
  #checkIdle(): void {
    if (this.#writing)
      throw new MqttError(
        'ERR_INVALID_OPTION',
        'packet: must leave the encoder alone while it is written',
        { option: 'packet' },
      )
  }
}
