/**
 * The server side of a `client` run: it takes what the client writes, answers when it is told to, and sends whatever bytes it is given.
 *
 * It keeps to the contract of a transport and to nothing else. Everything that it delivers arrives in a task of its own; pieces of one delivery
 * follow each other without a pause. What the client writes is judged by `Outlet`.
 */
import type { Sink, Transport } from '../../src/transport/transport.js'
import { property, type Seen } from '../world/reader.js'
import { acknowledge, answer, auth, connack, join, type Pairs, pingresp } from './build.js'
import type { FuzzClock } from './clock.js'
import { check } from './oracle.js'
import { Outlet } from './outlet.js'
import { pieces } from './tape.js'

/** What the peer is like. */
export interface Manner {
  answers: boolean
  readonly connack: Pairs
  readonly keepsSession: boolean
  readonly buffered: boolean
  /** Cuts each delivery into pieces; undefined delivers it whole. */
  readonly seed: number | undefined
}

/** What the run wants to know. */
export interface Around {
  readonly clock: FuzzClock
  /** Runs client code; what it throws is a finding. */
  guard(where: string, callback: () => void): void
  /** A packet left the client. */
  handlePacket(seen: Seen): void
  /** From here on it matters how the bytes were cut. */
  endComparison(): void
}

/** Answers that wait, sorted so that their order does not depend on how the client mixed its packets. */
const ranks: Readonly<Record<string, number>> = { connect: 0, auth: 0, publish: 1, pubrel: 2, subscribe: 3, unsubscribe: 3, pubrec: 4, pingreq: 5 }

/** What memory is full of that was given back. */
export const stale = 0xee

/** One connection. */
export class HostilePeer implements Transport {
  readonly outlet: Outlet
  /** Client packets that have no answer yet. */
  waiting: Seen[] = []
  over = false
  /** Bytes were sent that look like memory which is not in use any more. */
  sentStale = false
  /** Bytes that the transport took and did not report as written. */
  unwritten = 0
  readonly #around: Around
  readonly #manner: Manner
  readonly #present: boolean
  #sink: Sink | undefined
  #stalled = false
  #closing = false
  /** The client wants nothing more of it. */
  #ended = false
  #blocked = false
  #reading = false
  /** Pieces of the delivery that the client has yet to see. */
  #toCome: Uint8Array[] = []
  readonly #written: (() => void)[] = []
  /** How much a delivery that is under way has grown to. */
  #outgoing: Uint8Array[] = []
  #delivering = false
  #answering = false

  /** @param present whether an answer to CONNECT says that there is a session, if the client allows for one */
  constructor(around: Around, manner: Manner, version: 4 | 5, present: boolean) {
    this.#around = around
    this.#manner = manner
    this.#present = present
    this.outlet = new Outlet(version)
  }

  get version(): 4 | 5 {
    return this.outlet.version
  }

  /** The client has ended its side. */
  get closing(): boolean {
    return this.#closing
  }

  // The transport

  open(sink: Sink): void {
    this.#sink = sink
  }

  write(bytes: Uint8Array, written?: (error?: unknown) => void): boolean {
    check(!this.#ended, 'output', () => 'a write after the end of the stream')
    if (this.over) {
      this.#later('written', () => written?.(new Error('the stream is over')))
      return false
    }
    for (const seen of this.outlet.take(bytes)) {
      this.#around.handlePacket(seen)
      // Bytes that lay there before the packet was sent are an answer to it only where they come in a later piece.
      if (this.#mentionsToCome(seen.id)) this.#around.endComparison()
      if (seen.kind in ranks && (seen.kind !== 'publish' || seen.qos > 0)) this.waiting.push(seen)
    }
    this.waiting.splice(0, Math.max(0, this.waiting.length - 64))
    this.unwritten += bytes.length
    const done = (): void => {
      this.unwritten -= bytes.length
      written?.(this.over ? new Error('the stream is over') : undefined)
    }
    if (this.#stalled) this.#written.push(done)
    else this.#later('written', done)
    if (this.#manner.answers) this.#answerSoon()
    if (this.#stalled) this.#blocked = true
    return !this.#stalled
  }

  close(): void {
    this.#ended = true
    if (this.over || this.#closing) return
    this.#closing = true
    if (this.#reading) this.#around.endComparison()
    // A peer that stalls does not end its side either.
    if (!this.#stalled) this.#around.clock.setTimer(() => this.end(undefined), 2)
  }

  destroy(cause?: unknown): void {
    this.#ended = true
    if (this.#reading) this.#around.endComparison()
    this.end(cause)
  }

  pause(): void {
    // What is on its way arrives all the same.
  }

  resume(): void {
    // Nothing was held back.
  }

  // The peer

  /** Ends the stream. */
  end(cause: unknown): void {
    if (this.over) return
    this.over = true
    this.waiting = []
    for (const done of this.#written.splice(0)) this.#later('written', done)
    this.#later('closed', () => this.#sink?.closed(cause))
  }

  /** Stops taking bytes, or goes on. */
  stall(stalled: boolean): void {
    this.#stalled = stalled
    if (stalled) return
    for (const done of this.#written.splice(0)) this.#later('written', done)
    if (this.#closing) this.#around.clock.setTimer(() => this.end(undefined), 2)
    if (!this.#blocked) return
    this.#blocked = false
    this.#later('drain', () => {
      if (!this.over) this.#sink?.drain()
    })
  }

  /** Sends bytes: what is sent in one turn arrives as one read. */
  send(bytes: Uint8Array): void {
    if (this.over || bytes.length === 0) return
    this.sentStale ||= bytes.includes(stale)
    this.#outgoing.push(bytes)
    if (this.#delivering) return
    this.#delivering = true
    this.#around.clock.setTimer(() => this.#deliver(), 0)
  }

  /** Valid answers to what waits: all, or the first. `change` makes other bytes of them. */
  answer(all: boolean, code = 0, change: (bytes: Uint8Array) => Uint8Array = (bytes) => bytes): void {
    this.waiting.sort((first, second) => (ranks[first.kind] as number) - (ranks[second.kind] as number))
    for (const seen of this.waiting.splice(0, all ? this.waiting.length : 1)) this.send(change(this.#answerTo(seen, code)))
  }

  #answerTo(seen: Seen, code: number): Uint8Array {
    const speaker = { version: this.version }
    const { kind, id, qos, filters } = seen
    if (kind === 'connect') return this.#connack(seen, code)
    if (kind === 'auth')
      return auth(code === 0 ? 0 : 0x18, [
        [21, 'm'],
        [22, Uint8Array.of(code & 3)],
      ])
    if (kind === 'publish') return acknowledge(speaker, qos === 1 ? 4 : 5, id, code)
    if (kind === 'pubrel') return acknowledge(speaker, 7, id, code)
    if (kind === 'pubrec') return acknowledge(speaker, 6, id, code)
    if (kind === 'subscribe')
      return answer(
        speaker,
        9,
        id,
        filters.map(({ options }) => (code === 0 ? options & 3 : code)),
      )
    if (kind === 'unsubscribe')
      return answer(
        speaker,
        11,
        id,
        filters.map(() => code),
      )
    return pingresp
  }

  #connack(seen: Seen, code: number): Uint8Array {
    const speaker = { version: this.version }
    const pairs = [...this.#manner.connack]
    if (seen.properties.has(property.authenticationMethod)) pairs.push([21, 'm'])
    const present = code === 0 && this.#present && this.#manner.keepsSession && !seen.cleanStart
    return connack(speaker, present ? 1 : 0, this.version === 4 ? code % 6 : code, pairs)
  }

  #answerSoon(): void {
    if (this.#answering) return
    this.#answering = true
    this.#around.clock.setTimer(() => {
      this.#answering = false
      if (!this.over) this.answer(true)
    }, 0)
  }

  #deliver(): void {
    this.#delivering = false
    const bytes = join(...this.#outgoing.splice(0))
    const sink = this.#sink
    if (this.over || sink === undefined) return
    this.outlet.answered = true
    const { seed } = this.#manner
    this.#reading = true
    this.#toCome = seed === undefined ? [bytes] : [...pieces(bytes, seed)]
    for (let piece = this.#toCome.shift(); piece !== undefined; piece = this.#toCome.shift()) {
      const given = piece
      if (!this.over) this.#around.guard('a read', () => this.#give(sink, given))
    }
    this.#reading = false
  }

  #mentionsToCome(id: number): boolean {
    if (id === 0 || this.#toCome.length === 0) return false
    return Buffer.concat(this.#toCome).includes(Buffer.of(id >> 8, id & 0xff))
  }

  // The memory is ours again afterwards.
  #give(sink: Sink, piece: Uint8Array): void {
    if (!this.#manner.buffered) {
      const lent = piece.slice()
      sink.chunk(lent)
      lent.fill(stale)
      return
    }
    for (let at = 0; at < piece.length && !this.over; ) {
      const window = sink.buffer()
      const part = piece.subarray(at, at + window.length)
      window.set(part)
      sink.read(part.length)
      at += part.length
      if (this.over) return
      // As a socket does, which asks at once. What is given back may be overwritten at any time.
      sink.buffer().fill(stale)
    }
  }

  #later(where: string, callback: () => void): void {
    this.#around.clock.setTimer(() => this.#around.guard(where, callback), 0)
  }
}
