/**
 * A byte stream between client and broker under the world's clock, with everything a network may do to it: latency, pieces of any size, a cut by
 * reset or end at any byte, silence in one direction or both, a peer that takes nothing, and a broker that loses or repeats a packet.
 */
import type { Sink, Transport } from '../../src/transport/transport.js'
import type { WorldClock } from './clock.js'
import type { Random } from './random.js'
import { joined, Splitter } from './reader.js'

type Written = ((error?: unknown) => void) | undefined

export interface PipeOptions {
  /** Milliseconds from write to delivery, each way. */
  readonly latency: number
  /** How deliveries are cut: as written, into random pieces, byte by byte, or all that has arrived in one. */
  readonly pieces: 'whole' | 'random' | 'bytes' | 'joined'
  /** Undelivered bytes above which `write()` returns false. */
  readonly highWaterMark: number
  /** Through `Sink.buffer()` and `read()` like a socket, or handed over. */
  readonly delivery: 'buffer' | 'chunk'
  /** Bytes that a millisecond takes from the client, and to it. Default: any number. */
  readonly rateUp?: number
  readonly rateDown?: number
}

/** What a broker makes of a packet before it leaves: `pass` sends one, at once or later, none or several. */
export type Habit = (packet: Uint8Array, pass: (packet: Uint8Array) => void) => void

/** Milliseconds of a slow link that arrive in one piece. */
const slice = 20

export type Way = 'up' | 'down'

/** What the world listens to. `up` is from the client to the broker. */
export interface Tap {
  sent(bytes: Uint8Array): void
  /** These bytes are about to be given to the client. */
  arriving(bytes: Uint8Array): void
  /** The client ended or cut the stream, or was told of its end. */
  over(how: 'closed' | 'destroyed' | 'ended'): void
  answered(packet: Uint8Array): void
  /** Something that no transport may see, for example memory reused before it was written. */
  fault(what: string): void
}

interface Item {
  readonly bytes: Uint8Array | undefined
  readonly copy: Uint8Array | undefined
  written: Written
}

/** What happens to one packet on its way down. */
export type PacketFault = 'drop' | 'twice' | 'delay'

export class Pipe {
  readonly client: End
  readonly server: End
  readonly up: Direction
  readonly down: Direction
  over = false
  /** The client's next write throws, and nothing of it leaves. */
  throwing = false
  habit: Habit | undefined
  /** Packets were lost or doubled: those behind them are not joined to them, because nobody could say how far the client reads. */
  tampered = false
  readonly clock: WorldClock
  readonly tap: Tap

  constructor(clock: WorldClock, random: Random, options: PipeOptions, tap: Tap) {
    this.clock = clock
    this.tap = tap
    this.up = new Direction(this, 'up', options, random)
    this.down = new Direction(this, 'down', options, random)
    this.client = new End(this, this.up, this.down, 'client')
    this.server = new End(this, this.down, this.up, 'server')
  }

  /** Both ends see the stream break; what is under way is lost. */
  reset(): void {
    this.over = true
    this.client.break(new Error('ECONNRESET'))
    this.server.break(new Error('ECONNRESET'))
  }

  /** The broker's side ends in order: what it wrote arrives, then the end. */
  finish(): void {
    this.server.close()
  }

  /** True while bytes flow both ways as they should. */
  get healthy(): boolean {
    return !this.over && !this.up.stalled && !this.down.stalled
  }
}

export class Direction {
  stalled = false
  /** Cuts the stream when so many more bytes were delivered. */
  cutAfter = Number.POSITIVE_INFINITY
  /** Applied to the next packet of the writer. */
  packetFault: { readonly kind: PacketFault; readonly skip: number } | undefined
  /** Set by its reader. */
  target: End | undefined
  queued = 0
  /** Its writer is gone, and the last thing to arrive is a reset. */
  ending = false
  readonly #pipe: Pipe
  readonly #way: Way
  readonly #options: PipeOptions
  readonly #random: Random
  readonly #splitter = new Splitter()
  /** Bytes that a millisecond takes. */
  readonly #rate: number
  #items: Item[] = []
  #offset = 0
  #arrived = 0
  #scheduled = false
  #extra = 0

  constructor(pipe: Pipe, way: Way, options: PipeOptions, random: Random) {
    this.#pipe = pipe
    this.#way = way
    this.#options = options
    this.#random = random
    this.#rate = (way === 'up' ? options.rateUp : options.rateDown) ?? Number.POSITIVE_INFINITY
  }

  get idle(): boolean {
    return this.#items.length === 0
  }

  get full(): boolean {
    return this.queued > this.#options.highWaterMark
  }

  push(bytes: Uint8Array | undefined, written: Written): void {
    if (this.#way === 'up' || bytes === undefined) return this.#enqueue(bytes, written)
    // The broker's packets travel one by one, so that a fault can strike between any two of them.
    const packets = this.#splitter.push(bytes)
    const { habit } = this.#pipe
    for (const packet of packets) {
      if (habit === undefined) this.#pushPacket(packet.slice())
      else habit(packet.slice(), (passed) => this.#pushPacket(passed))
    }
    if (written !== undefined) queueMicrotask(written)
  }

  resume(): void {
    this.stalled = false
    this.#schedule(0)
  }

  start(target: End): void {
    this.target = target
    this.#schedule(0)
  }

  /** Its writer is gone: what is on its way arrives, and a reset behind it. */
  end(error: unknown): void {
    this.ending = true
    for (const item of this.#items) {
      const { written } = item
      item.written = undefined
      if (written !== undefined) queueMicrotask(() => written(error))
    }
    this.#enqueue(undefined, undefined)
  }

  /** Its writer's process is gone, and its memory with it: what is on its way arrives as it was written, and a reset behind it. */
  abandon(): void {
    this.#items = this.#items.map(({ bytes, copy }) => ({
      bytes: copy ?? bytes,
      copy: undefined,
      written: undefined,
    }))
    this.end(undefined)
  }

  drop(error: unknown): void {
    const lost = this.#items
    this.#items = []
    this.#arrived = 0
    this.queued = 0
    for (const { written } of lost) if (written !== undefined) queueMicrotask(() => written(error))
  }

  #pushPacket(packet: Uint8Array): void {
    this.#pipe.tap.answered(packet)
    const fault = this.packetFault
    if (fault === undefined) return this.#enqueue(packet, undefined)
    this.packetFault = fault.skip === 0 ? undefined : { kind: fault.kind, skip: fault.skip - 1 }
    if (fault.skip > 0) return this.#enqueue(packet, undefined)
    if (fault.kind === 'drop') return
    if (fault.kind === 'delay') this.#extra += 3000
    this.#enqueue(packet, undefined)
    if (fault.kind === 'twice') this.#enqueue(packet.slice(), undefined)
  }

  #enqueue(bytes: Uint8Array | undefined, written: Written): void {
    this.queued += bytes?.length ?? 0
    this.#items.push({ bytes, copy: this.#way === 'up' ? bytes?.slice() : undefined, written })
    this.#pipe.clock.setTimer(() => {
      // What was dropped meanwhile never arrives.
      if (this.#arrived < this.#items.length) this.#arrived += 1
      this.#schedule(0)
    }, this.#options.latency + this.#extra)
  }

  #schedule(delay: number): void {
    if (this.#scheduled || this.#arrived === 0 || this.stalled || this.target === undefined) return
    this.#scheduled = true
    this.#pipe.clock.setTimer(
      () => {
        this.#scheduled = false
        const length = this.#deliver()
        this.#schedule(length / this.#rate)
      },
      delay,
      this.#way,
    )
  }

  // Gives how many bytes that were.
  #deliver(): number {
    const item = this.#items[0]
    const target = this.target
    if (item === undefined || target === undefined || this.stalled || this.#arrived === 0) return 0
    if (item.bytes === undefined) {
      this.#items.shift()
      this.#arrived -= 1
      if (this.ending && this.#items.length === 0) target.break(new Error('ECONNRESET'))
      else target.handleEnd()
      return 0
    }
    this.#compare(item)
    const end = Math.min(this.#pieceEnd(item.bytes.length), this.#offset + this.cutAfter)
    const piece = item.bytes.subarray(this.#offset, end)
    this.cutAfter -= piece.length
    this.queued -= piece.length
    this.#offset = end
    if (end === item.bytes.length) this.#shift(item)
    if (piece.length > 0)
      target.handleBytes(this.#joined(piece), this.#options.delivery === 'buffer')
    if (this.cutAfter <= 0) this.#pipe.reset()
    else target.other.handleRoom()
    return piece.length
  }

  #pieceEnd(length: number): number {
    const { pieces } = this.#options
    if (this.#rate < Number.POSITIVE_INFINITY)
      return Math.min(length, this.#offset + Math.max(1, Math.floor(this.#rate * slice)))
    if (pieces === 'bytes') return Math.min(length, this.#offset + (length > 1000 ? 997 : 1))
    if (pieces === 'random') return Math.min(length, this.#offset + 1 + this.#random.below(length))
    return length
  }

  #shift(item: Item): void {
    this.#items.shift()
    this.#arrived -= 1
    this.#offset = 0
    if (item.written !== undefined) queueMicrotask(item.written)
  }

  // Everything that has arrived, as one piece.
  #joined(piece: Uint8Array): Uint8Array {
    if (
      this.#options.pieces !== 'joined' ||
      this.#rate < Number.POSITIVE_INFINITY ||
      this.#offset !== 0 ||
      this.#pipe.tampered
    )
      return piece
    const all = [piece]
    for (
      let next = this.#items[0];
      this.#arrived > 0 && next?.bytes !== undefined;
      next = this.#items[0]
    ) {
      if (next.bytes.length > this.cutAfter) break
      this.#compare(next)
      this.cutAfter -= next.bytes.length
      this.queued -= next.bytes.length
      all.push(next.bytes)
      this.#shift(next)
    }
    return all.length === 1 ? piece : joined(...all)
  }

  #compare({ bytes, copy }: Item): void {
    if (bytes === undefined || copy === undefined) return
    for (let index = 0; index < copy.length; index++) {
      if (copy[index] !== bytes[index])
        return this.#pipe.tap.fault(
          'bytes handed to the transport were changed before they were written',
        )
    }
  }
}

function isShared({ buffer }: Uint8Array): boolean {
  return (
    buffer instanceof SharedArrayBuffer ||
    (buffer as { readonly resizable?: boolean }).resizable === true
  )
}

/** One end of a pipe, as its owner sees it. */
export class End implements Transport {
  readonly #pipe: Pipe
  readonly #out: Direction
  readonly #in: Direction
  readonly #name: 'client' | 'server'
  #sink: Sink | undefined
  #opened = false
  #full = false
  #ended = false
  #peerEnded = false
  #closed = false
  #told = false
  #left = false
  #cause: { readonly cause: unknown } | undefined

  constructor(pipe: Pipe, out: Direction, into: Direction, name: 'client' | 'server') {
    this.#pipe = pipe
    this.#out = out
    this.#in = into
    this.#name = name
  }

  get other(): End {
    return this.#name === 'client' ? this.#pipe.server : this.#pipe.client
  }

  open(sink: Sink): void {
    if (this.#opened) return this.#pipe.tap.fault('a transport was opened twice')
    this.#opened = true
    this.#sink = sink
    queueMicrotask(() => {
      if (this.#cause !== undefined) this.#tellClosed(this.#cause.cause)
      else this.#in.start(this)
    })
  }

  write(bytes: Uint8Array, written?: (error?: unknown) => void): boolean {
    if (this.#ended || this.#closed) {
      // Broken, and the client does not know yet: for its part it sends.
      if (this.#name === 'client' && !this.#left && !this.#told) this.#pipe.tap.sent(bytes)
      if (this.#name === 'server') this.#pipe.tap.answered(bytes)
      if (written !== undefined) queueMicrotask(() => written(new Error('the stream is over')))
      return false
    }
    // As browsers do: nothing of it leaves.
    if (this.#name === 'client' && isShared(bytes))
      throw new TypeError('The provided ArrayBufferView value must not be shared.')
    if (this.#name === 'client' && this.#pipe.throwing) {
      this.#pipe.throwing = false
      throw new Error('the transport takes nothing')
    }
    if (this.#name === 'client') this.#pipe.tap.sent(bytes)
    // Its process died over it.
    if (this.#closed) return false
    this.#out.push(bytes, written)
    if (this.#out.full) this.#full = true
    return !this.#full
  }

  close(): void {
    if (this.#ended || this.#closed) return
    this.#left = true
    if (this.#name === 'client') this.#pipe.tap.over('closed')
    this.#finish()
  }

  destroy(cause?: unknown): void {
    if (this.#closed) return
    this.#told = true
    if (this.#name === 'client') this.#pipe.tap.over('destroyed')
    // What was handed over is on its way and still arrives, and the reset behind it; on a dead link neither does.
    this.#out.end(cause ?? new Error('the stream is over'))
    this.break(cause)
    this.#pipe.over = true
  }

  break(cause: unknown): void {
    if (this.#closed) return
    this.#closed = true
    this.#cause = { cause }
    this.#in.target = undefined
    if (!this.#out.ending) this.#out.drop(cause ?? new Error('the stream is over'))
    if (this.#opened) queueMicrotask(() => this.#tellClosed(cause))
  }

  /** Its owner is gone without a word: it is told nothing any more. What it wrote is lost, or arrives and a reset behind it. */
  abandon(arrives = false): void {
    if (this.#closed) return
    this.#pipe.tap.over('ended')
    this.#closed = true
    this.#told = true
    this.#sink = undefined
    this.#in.target = undefined
    if (arrives) this.#out.abandon()
    else this.#out.drop(undefined)
  }

  handleBytes(bytes: Uint8Array, inPlace: boolean): void {
    const sink = this.#sink
    if (sink === undefined || this.#closed) return
    if (this.#name === 'client') this.#pipe.tap.arriving(bytes)
    if (this.#closed) return
    if (!inPlace) return sink.chunk(bytes)
    for (let at = 0; at < bytes.length && !this.#closed; ) {
      const array = sink.buffer()
      const part = bytes.subarray(at, at + array.length)
      array.set(part)
      at += part.length
      sink.read(part.length)
    }
  }

  handleEnd(): void {
    this.#peerEnded = true
    // Like a socket that allows no half-open streams.
    if (!this.#ended) this.#finish()
    this.#finishIfDone()
    this.other.#finishIfDone()
  }

  handleRoom(): void {
    if (!this.#full || this.#out.full || this.#closed || this.#ended) return
    this.#full = false
    const sink = this.#sink
    queueMicrotask(() => {
      if (!this.#closed) sink?.drain()
    })
  }

  #finish(): void {
    this.#ended = true
    this.#out.push(undefined, undefined)
  }

  #finishIfDone(): void {
    if (!this.#peerEnded || !this.other.#peerEnded) return
    this.#pipe.over = true
    this.break(undefined)
  }

  #tellClosed(cause: unknown): void {
    this.#told = true
    if (this.#name === 'client') this.#pipe.tap.over('ended')
    this.#sink?.closed(cause)
  }
}
