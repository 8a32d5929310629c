/**
 * Packets of one client that wait, in order and limited, while a hook decides about an earlier one.
 *
 * While much waits, the transport is asked to pause.
 */
import type { Transport } from '../../../transport/transport.js'
import type { ConnectionLife } from './ports.js'

/** Packets that wait for a hook before CONNACK. */
const mostEarly = 1000

/** Size counted for a waiting packet besides its payload. */
const packetCost = 100

/** Bytes that wait for a hook before the transport is asked for a pause. */
const pauseAt = 65_536

/** A packet or its replacement. */
interface Deferred {
  readonly run: () => void
  readonly bytes: number
}

/** See the file's comment. */
export class HookBacklog {
  /** Hooks that think about a packet of this client. */
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

  /** Lets something wait; false when more waits than may. */
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

  /** Handles waiting packets until a hook must decide again or the connection ends. */
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
