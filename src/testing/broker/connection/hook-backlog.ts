/**
 * A bounded queue of one client's packets that wait, in order, while a hook decides on an earlier
 * one.
 *
 * Above `pauseAt` bytes, the transport is asked to pause.
 */
import type { Transport } from '../../../transport/transport.js'
import type { ConnectionLife } from './ports.js'

/** Limit of packets waiting before CONNACK. */
const mostEarly = 1000

/** Size counted for a waiting packet besides its payload. */
const packetCost = 100

/** Waiting bytes above which the transport is asked to pause. */
const pauseAt = 65_536

/** A packet or its replacement. */
interface Deferred {
  readonly run: () => void
  readonly bytes: number
}

/** See the file's comment. */
export class HookBacklog {
  /** Pending hook calls for packets of this client. */
  thinking = 0
  readonly #transport: Transport
  readonly #mostBytes: number
  #waiting: Deferred[] = []
  #bytes = 0
  #paused = false

  constructor(transport: Transport, mostBytes: number) {
    this.#transport = transport
    this.#mostBytes = mostBytes
  }

  get isEmpty(): boolean {
    return this.#waiting.length === 0
  }

  /** Queues a packet; false when the limit is exceeded. */
  add(run: () => void, size: number, isConnected: boolean): boolean {
    const bytes = size + packetCost
    this.#waiting.push({ run, bytes })
    this.#bytes += bytes
    if (this.#bytes > this.#mostBytes || (!isConnected && this.#waiting.length > mostEarly))
      return false
    if (this.#bytes > pauseAt && !this.#paused) {
      this.#paused = true
      this.#transport.pause?.()
    }
    return true
  }

  /** Handles waiting packets until another hook call is pending or the connection ends. */
  goOn(life: Pick<ConnectionLife, 'over'>): void {
    let next = 0
    while (next < this.#waiting.length && this.thinking === 0 && !life.over) {
      const { run, bytes } = this.#waiting[next++] as Deferred
      this.#bytes -= bytes
      run()
    }
    this.#waiting.splice(0, next)
    if (life.over || !this.#paused || this.#bytes >= pauseAt / 2) return
    this.#paused = false
    this.#transport.resume?.()
  }

  clear(): void {
    this.#waiting = []
  }
}
