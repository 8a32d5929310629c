/**
 * Writes the bytes of packets to one client's transport, in order; small ones together at the end
 * of a batch.
 *
 * Unread bytes are bounded: beyond the limit the connection is cut. It handles bytes, not packets.
 */
import type { Transport } from '../../../transport/transport.js'
import type { WriteBatch, Writing } from '../common/write-batch.js'
import type { ConnectionLife } from './ports.js'

/** Packets of at least this many bytes are not batched. */
const largePacket = 16_384

/** Largest batch in bytes. */
const mostInBatch = 65_536

/** See the file's comment. */
export class TransportWriter implements Writing {
  readonly #transport: Transport
  readonly #writes: WriteBatch
  readonly #life: Pick<ConnectionLife, 'cut'>
  readonly #maxBacklog: number
  /** A batch of this many bytes is written immediately; far below the limit of unread bytes. */
  readonly #fullBatch: number
  /**
   * Bytes written since the client stopped reading, without the packet at which it stopped, which
   * may be of any size.
   */
  #backlog = 0
  #full = false
  #lost = false
  /** Packets to write together at the end of the batch. */
  #batch: Uint8Array[] = []
  #batchBytes = 0

  constructor(
    transport: Transport,
    writes: WriteBatch,
    life: Pick<ConnectionLife, 'cut'>,
    maxBacklog: number,
  ) {
    this.#transport = transport
    this.#writes = writes
    this.#life = life
    this.#maxBacklog = maxBacklog
    this.#fullBatch = Math.min(mostInBatch, maxBacklog / 4)
  }

  /** Whether the client has stopped reading. */
  get isFull(): boolean {
    return this.#full
  }

  /** Whether the client's stream has ended. */
  get isLost(): boolean {
    return this.#lost
  }

  write(bytes: Uint8Array): void {
    if (this.#writes.isOpen && bytes.length < largePacket) {
      if (this.#batch.push(bytes) === 1) this.#writes.add(this)
      this.#batchBytes += bytes.length
      if (this.#batchBytes >= this.#fullBatch) this.flush()
    } else {
      this.flush()
      this.#hand(bytes)
    }
  }

  /** Writes the current batch. */
  flush(): void {
    const [first, ...more] = this.#batch
    if (first === undefined) return
    const total = this.#batchBytes
    this.#batch = []
    this.#batchBytes = 0
    this.#hand(more.length === 0 ? first : joined([first, ...more], total))
  }

  /** The client reads again. */
  handleDrain(): void {
    this.#full = false
    this.#backlog = 0
  }

  /** The client's stream has ended: nothing more can be written. */
  lose(): void {
    this.#lost = true
    this.#batch = []
  }

  #hand(bytes: Uint8Array): void {
    const wasFull = this.#full
    if (!this.#transport.write(bytes)) this.#full = true
    if (!wasFull) return
    this.#backlog += bytes.length
    if (this.#backlog > this.#maxBacklog + bytes.length) this.#life.cut()
  }
}

function joined(list: readonly Uint8Array[], total: number): Uint8Array {
  const whole = new Uint8Array(total)
  let at = 0
  for (const bytes of list) {
    whole.set(bytes, at)
    at += bytes.length
  }
  return whole
}
