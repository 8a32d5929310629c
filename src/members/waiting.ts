/**
 * Publishes that wait outside of the clients, within the queue limits of one client in messages and
 * bytes.
 */
import type { ClientOptions } from '../client/options/index.js'
import { type Deferred, deferred, tolerant } from '../common/abort.js'
import { optionError } from '../common/schema.js'
import type { MqttError } from '../errors.js'
import { attempt } from './failure.js'

/** How long a publish may wait. */
export interface Patience {
  /** Bytes of its payload. */
  readonly size: number
  /**
   * Calls back when the caller aborts or the time has passed; returns a function that stops this.
   */
  watch(end: (error: MqttError) => void): () => void
  /** Reports that no client gets it. */
  refuse?(error: unknown): void
}

/** Counts waiting publishes. */
export class WaitingRoom {
  readonly #messages: number
  readonly #bytes: number
  #waiting = 0
  #waitingBytes = 0
  #empty: Deferred<void> | undefined

  /** @param options those of the clients, which also check them */
  constructor({ outbound }: ClientOptions = {}) {
    this.#messages = outbound?.maxQueuedMessages ?? 10_000
    this.#bytes = outbound?.maxQueuedBytes ?? 16 * 1024 * 1024
  }

  /** Number of waiting messages. */
  get size(): number {
    return this.#waiting
  }

  /** Fulfils when no message waits any more; undefined if none waits now. */
  get settling(): Promise<void> | undefined {
    if (this.#waiting === 0) return undefined
    this.#empty ??= deferred()
    // Messages that have left may wait again, for another member.
    return this.#empty.promise.then(() => this.settling)
  }

  /**
   * Adds a waiting message; returns a function that ends the wait, which returns true if it was
   * still waiting. Calls `gaveUp` with the error if the caller aborts or the time passes first.
   * @throws MqttError ERR_QUEUE_FULL, or ERR_DROPPED under an overflow policy that drops
   */
  enter(patience: Patience, gaveUp: (error: MqttError) => void, overflow?: string): () => boolean {
    const { size } = patience
    const error = this.refusal(size, overflow)
    if (error !== undefined) throw error
    this.#waiting += 1
    this.#waitingBytes += size
    let waits = true
    const leave = (): boolean => {
      if (!waits) return false
      waits = false
      this.#leave(size)
      return true
    }
    const unwatch = patience.watch((reason) => {
      if (leave()) gaveUp(reason)
    })
    return () => {
      unwatch()
      return leave()
    }
  }

  /** The error if there is no room for one more; otherwise undefined. */
  refusal(bytes: number, overflow = ''): MqttError | undefined {
    // A message larger than the limit may wait alone, as in a client.
    if (
      this.#waiting + 1 <= this.#messages &&
      (this.#waiting === 0 || this.#waitingBytes + bytes <= this.#bytes)
    )
      return undefined
    const why = `${this.#waiting} messages wait (outbound.maxQueuedMessages ${this.#messages}), ${this.#waitingBytes} bytes (outbound.maxQueuedBytes ${this.#bytes})`
    return overflow.startsWith('drop')
      ? optionError('ERR_DROPPED', 'outbound', `dropped by outbound.overflow '${overflow}': ${why}`)
      : optionError(
          'ERR_QUEUE_FULL',
          'outbound',
          `queue full: ${why}; await writable between publishes`,
        )
  }

  #leave(bytes: number): void {
    this.#waiting -= 1
    this.#waitingBytes -= bytes
    if (this.#waiting > 0) return
    this.#empty?.resolve()
    this.#empty = undefined
  }
}

interface Held {
  readonly go: () => void
  readonly giveUp: (error: MqttError) => void
  /** Ends the wait; true if it was still waiting. */
  leave: () => boolean
}

/** Holds publishes while no member can accept them, and releases them in order. */
export class Gate {
  readonly #held = new Set<Held>()
  readonly #room: WaitingRoom

  constructor(room: WaitingRoom) {
    this.#room = room
  }

  /**
   * Calls `call` when the gate opens. Rejects with ERR_ABORTED, ERR_EXPIRED, ERR_DROPPED, or the
   * error of the call.
   * @throws MqttError as `enter` of the room
   */
  run<R>(call: () => Promise<R>, patience: Patience, overflow?: string): Promise<R> {
    if (overflow === 'drop-oldest') this.#makeRoom(patience.size, overflow)
    const { promise, resolve, reject } = deferred<R>()
    const giveUp = (error: unknown): void => {
      this.#held.delete(held)
      reject(error)
    }
    const held: Held = {
      go: () => {
        this.#held.delete(held)
        if (held.leave()) attempt(call).then(resolve, reject)
      },
      giveUp: (error) => {
        if (!held.leave()) return
        patience.refuse?.(error)
        giveUp(error)
      },
      leave: () => false,
    }
    this.#held.add(held)
    try {
      held.leave = this.#room.enter(patience, giveUp, overflow)
    } catch (error) {
      this.#held.delete(held)
      throw error
    }
    return tolerant(promise)
  }

  /** Releases all, in the order of their calls. */
  open(): void {
    for (const { go } of [...this.#held]) go()
  }

  #makeRoom(size: number, overflow: string): void {
    for (const oldest of this.#held) {
      const full = this.#room.refusal(size, overflow)
      if (full === undefined) return
      oldest.giveUp(full)
    }
  }
}
