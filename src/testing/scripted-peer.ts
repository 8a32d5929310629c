/**
 * The other end of a connection, controlled by a test: it shows received data and sends packets or
 * raw bytes.
 *
 * It answers nothing by itself, unless `answer` is set. It decodes with `mqwire/wire`, as a server.
 */
import type { Sink, Transport } from '../transport/transport.js'
import { Decoder } from '../wire/decode.js'
import { encode, type PacketInput } from '../wire/encode.js'
import type { ClientPacket, ProtocolVersion } from '../wire/packets.js'

/** Called with each received packet; its result is sent. */
export type Answer = (packet: ClientPacket) => PacketInput | readonly PacketInput[] | undefined

/** How a stream ended. */
export interface PeerEnd {
  /** Undefined after an orderly end. */
  readonly cause: unknown
}

/** A server controlled by a test. */
export class ScriptedPeer implements Sink {
  /** All received packets, oldest first. */
  readonly received: ClientPacket[] = []
  /** All received bytes. */
  readonly bytes: number[] = []
  /** Set when the stream ended. */
  ended: PeerEnd | undefined
  /** Answers packets received from now on. Default: none. */
  answer: Answer | undefined
  readonly #transport: Transport
  readonly #version: ProtocolVersion
  readonly #decoder: Decoder
  readonly #window = new Uint8Array(65_536)

  constructor(transport: Transport, protocolVersion: ProtocolVersion = 5, answer?: Answer) {
    this.#transport = transport
    this.#version = protocolVersion
    this.#decoder = new Decoder({ protocolVersion, from: 'client' })
    this.answer = answer
    transport.open(this)
  }

  /** Received packets of one type. */
  all<T extends ClientPacket['type']>(type: T): Extract<ClientPacket, { type: T }>[] {
    return this.received.filter(
      (packet): packet is Extract<ClientPacket, { type: T }> => packet.type === type,
    )
  }

  /** The last received packet of this type. @throws Error if none came */
  last<T extends ClientPacket['type']>(type: T): Extract<ClientPacket, { type: T }> {
    const packet = this.all(type).at(-1)
    if (packet === undefined)
      throw new Error(
        `no ${type} came in; there were: ${this.received.map((other) => other.type).join(', ') || 'no packets'}`,
      )
    return packet
  }

  /** Sends packets, in one write. */
  send(...packets: PacketInput[]): void {
    this.sendBytes(...packets.map((packet) => encode(packet, { protocolVersion: this.#version })))
  }

  /** Sends bytes as they are: arrays, or hexadecimal text. */
  sendBytes(...parts: (Uint8Array | readonly number[] | string)[]): void {
    const bytes = parts.flatMap((part) => (typeof part === 'string' ? fromHex(part) : [...part]))
    this.#transport.write(Uint8Array.from(bytes))
  }

  /** Ends the stream in order. */
  end(): void {
    this.#transport.close()
  }

  /** Cuts the stream. */
  cut(cause: unknown = new Error('cut by the peer')): void {
    this.#transport.destroy(cause)
  }

  buffer(): Uint8Array {
    return this.#window
  }

  read(length: number): void {
    this.chunk(this.#window.subarray(0, length))
  }

  chunk(bytes: Uint8Array): void {
    for (const byte of bytes) this.bytes.push(byte)
    for (const packet of this.#decoder.push(bytes)) {
      this.received.push(packet as ClientPacket)
      const answer = this.answer?.(packet as ClientPacket)
      if (answer !== undefined) this.send(...([answer].flat() as PacketInput[]))
    }
  }

  drain(): void {
    // Backpressure is ignored, because tests send little.
  }

  closed(cause: unknown): void {
    this.ended = { cause }
  }
}

function fromHex(text: string): number[] {
  const digits = text.replaceAll(' ', '')
  return Array.from({ length: digits.length / 2 }, (_, index) =>
    Number.parseInt(digits.slice(index * 2, index * 2 + 2), 16),
  )
}
