/** A socket over a slow line, under virtual time: as with a real one, an array is read when the kernel takes its bytes, and `written` is called then. */
import type { Answer } from '../../../src/testing/scripted-peer.js'
import type { VirtualClock } from '../../../src/testing/virtual-clock.js'
import type { Sink, Transport } from '../../../src/transport/transport.js'
import { Decoder } from '../../../src/wire/decode.js'
import { encode, type PacketInput } from '../../../src/wire/encode.js'
import type { ClientPacket } from '../../../src/wire/packets.js'

/** How the line is. */
export interface Line {
  /** Bytes a second. */
  rate: number
  /** Bytes that the kernel takes at once. Default 256 KiB. */
  readonly kernel?: number
}

const highWaterMark = 128 * 1024
/** Every so many milliseconds some bytes arrive. */
const tick = 10

/** One end of it, with the peer at the other. */
export class SlowLink implements Transport {
  /** Packets that arrived whole. */
  readonly packets: ClientPacket[] = []
  /** What `destroy` was called with, once it was. */
  destroyed: { readonly cause: unknown; readonly at: number } | undefined
  /** Bytes a second; 0 is a line that is stuck. */
  rate: number
  answer: Answer
  readonly #clock: VirtualClock
  readonly #capacity: number
  readonly #decoder: Decoder
  #sink: Sink | undefined
  readonly #queue: {
    readonly bytes: Uint8Array
    at: number
    readonly written: ((error?: unknown) => void) | undefined
  }[] = []
  readonly #kernel: Uint8Array[] = []
  #held = 0
  #queued = 0
  #full = false
  #ending = false
  #ticking = false
  #over = false

  constructor(clock: VirtualClock, { rate, kernel = 256 * 1024 }: Line, answer: Answer) {
    this.#clock = clock
    this.rate = rate
    this.#capacity = kernel
    this.answer = answer
    this.#decoder = new Decoder({ protocolVersion: 5, from: 'client' })
  }

  /** Bytes that did not arrive yet. */
  get #underWay(): number {
    return this.#queued + this.#held
  }

  open(sink: Sink): void {
    this.#sink = sink
  }

  write(bytes: Uint8Array, written?: (error?: unknown) => void): boolean {
    if (this.#ending || this.destroyed !== undefined) {
      queueMicrotask(() => written?.(new Error('the stream is closed')))
      return false
    }
    this.#queue.push({ bytes, at: 0, written })
    this.#queued += bytes.length
    // As in Node, what the kernel takes at once counts until this turn has ended.
    if (this.#queued > highWaterMark) this.#full = true
    queueMicrotask(() => this.#swallow())
    return !this.#full
  }

  close(): void {
    this.#ending = true
    this.#run()
  }

  destroy(cause?: unknown): void {
    if (this.destroyed !== undefined) return
    this.destroyed = { cause, at: this.#clock.now() }
    queueMicrotask(() => {
      for (const { written } of this.#queue.splice(0)) written?.(cause ?? new Error('cut'))
      this.#sink?.closed(cause)
    })
  }

  /** Packets of the peer come in. */
  feed(...packets: PacketInput[]): void {
    for (const packet of packets) this.#sink?.chunk(encode(packet))
  }

  /** Bytes of the peer come in. */
  feedBytes(bytes: Uint8Array): void {
    this.#sink?.chunk(bytes)
  }

  /** Types of the packets that arrived, in order. */
  get types(): string[] {
    return this.packets.map(({ type }) => type)
  }

  #swallow(): void {
    if (this.destroyed !== undefined) return
    const done: ((error?: unknown) => void)[] = []
    for (
      let item = this.#queue[0];
      item !== undefined && this.#held < this.#capacity;
      item = this.#queue[0]
    ) {
      const part = item.bytes.slice(item.at, item.at + this.#capacity - this.#held)
      item.at += part.length
      this.#held += part.length
      this.#queued -= part.length
      this.#kernel.push(part)
      if (item.at < item.bytes.length) break
      this.#queue.shift()
      if (item.written !== undefined) done.push(item.written)
    }
    this.#run()
    // In this order, as in Node.
    if (this.#full && this.#queued === 0) {
      this.#full = false
      this.#sink?.drain()
    }
    for (const written of done) written()
  }

  #run(): void {
    if (this.#ticking || this.destroyed !== undefined || this.#over) return
    if (this.#underWay === 0 && !this.#ending) return
    this.#ticking = true
    this.#clock.setTimer(() => {
      this.#ticking = false
      this.#move()
    }, tick)
  }

  #move(): void {
    if (this.destroyed !== undefined) return
    for (let left = (this.rate * tick) / 1000; left > 0 && this.#kernel[0] !== undefined; ) {
      const part = this.#kernel[0].subarray(0, left)
      this.#kernel[0] = this.#kernel[0].subarray(part.length)
      if (this.#kernel[0].length === 0) this.#kernel.shift()
      left -= part.length
      this.#held -= part.length
      this.#arrive(part)
    }
    // The peer ends its side when ours has ended.
    this.#over = this.#ending && this.#underWay === 0
    this.#swallow()
    if (this.#over) this.#sink?.closed(undefined)
  }

  #arrive(part: Uint8Array): void {
    for (const packet of this.#decoder.push(part) as Iterable<ClientPacket>) {
      this.packets.push(packet)
      const answer = this.answer(packet)
      const answers =
        answer === undefined ? [] : Array.isArray(answer) ? answer : [answer as PacketInput]
      // In a task of its own, as everything that comes in.
      this.#clock.setTimer(() => this.destroyed ?? this.feed(...answers), 0)
    }
  }
}
