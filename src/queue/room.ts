/**
 * Admission to a queue: admits additions in the order of the calls, or makes them wait.
 *
 * At most as many callers wait as the queue may hold entries. An admitted caller adds its entry in
 * the same turn.
 */
import { aborted, type Deferred, deferred, onAbort, silent } from '../common/abort.js'
import { MqttError } from '../errors.js'
import type { Addition, EntryLog, StoredEntry } from './entry-log.js'
import type { QueueConfig } from './options.js'

/** A waiting publish. */
interface Waiter {
  readonly addition: Addition
  readonly admitted: Deferred<Added>
  readonly stop: () => void
}

/** An admitted entry. */
export interface Added {
  readonly stored: StoredEntry
  /** Entries that were evicted for it. */
  readonly instead: readonly StoredEntry[]
  /** Resolves when it is stored. */
  readonly done: Promise<void>
}

/** Source of entries to evict. */
export interface Evictable {
  takeOldest(): Promise<StoredEntry | undefined>
  giveBack(stored: StoredEntry): void
}

/** Admits entries to one queue. */
export class QueueRoom {
  readonly #log: EntryLog
  readonly #config: QueueConfig
  readonly #entries: Evictable
  readonly #waiters = new Set<Waiter>()
  #waitingBytes = 0
  /** Pending additions that evict others, one after the other. */
  #evicting: Promise<unknown> | undefined
  #writable: Deferred<void> | undefined
  /** The error of all calls after the end. */
  #closed: MqttError | undefined

  constructor(log: EntryLog, config: QueueConfig, entries: Evictable) {
    this.#log = log
    this.#config = config
    this.#entries = entries
  }

  /**
   * Adds an entry, now or when there is room.
   * @throws MqttError ERR_QUEUE_FULL, ERR_DROPPED, ERR_ABORTED, ERR_STORE
   */
  add(addition: Addition, signal: AbortSignal | undefined): Added | Promise<Added> {
    const { overflow, maxBytes } = this.#config
    if (addition.value.length > maxBytes)
      throw full(`an entry of ${addition.value.length} bytes is more than maxBytes, ${maxBytes}`)
    if (this.#evicting === undefined && this.#waiters.size === 0 && this.#fits(addition))
      return this.#admit(addition, [])
    if (overflow === 'reject') throw full()
    if (overflow === 'drop-newest') throw new MqttError('ERR_DROPPED', 'the queue is full')
    return overflow === 'wait' ? this.#wait(addition, signal) : this.#evict(addition)
  }

  /** Resolves when there is room for another entry. */
  get writable(): Promise<void> {
    if (
      this.#waiters.size === 0 &&
      this.#log.fits(0, this.#config.maxEntries, this.#config.maxBytes)
    )
      return Promise.resolve()
    this.#writable ??= deferred()
    return this.#writable.promise
  }

  /** Entries were deleted. */
  handleRoom(): void {
    for (const waiter of this.#waiters) {
      if (!this.#fits(waiter.addition)) return
      this.#leave(waiter)
      waiter.admitted.resolve(this.#admit(waiter.addition, []))
    }
    if (!this.#log.fits(0, this.#config.maxEntries, this.#config.maxBytes)) return
    this.#writable?.resolve()
    this.#writable = undefined
  }

  /** Rejects all waiting and later callers. */
  close(error: MqttError): void {
    this.#closed = error
    for (const waiter of this.#waiters) {
      this.#leave(waiter)
      waiter.admitted.reject(error)
    }
    this.#writable?.reject(error)
    this.#writable = undefined
  }

  #fits({ value }: Addition, freed: readonly StoredEntry[] = []): boolean {
    return this.#log.fits(value.length, this.#config.maxEntries, this.#config.maxBytes, freed)
  }

  #admit(addition: Addition, instead: readonly StoredEntry[]): Added {
    return { ...this.#log.add(addition, instead), instead }
  }

  #wait(addition: Addition, signal: AbortSignal | undefined): Promise<Added> {
    const { maxEntries, maxBytes } = this.#config
    if (this.#waiters.size >= maxEntries || this.#waitingBytes + addition.value.length > maxBytes)
      throw full('as many wait for room already')
    const admitted = deferred<Added>()
    const stop = onAbort(signal, () => {
      this.#leave(waiter)
      admitted.reject(aborted(signal))
      this.handleRoom()
    })
    const waiter: Waiter = { addition, admitted, stop }
    this.#waiters.add(waiter)
    this.#waitingBytes += addition.value.length
    return admitted.promise
  }

  #leave(waiter: Waiter): void {
    if (!this.#waiters.delete(waiter)) return
    this.#waitingBytes -= waiter.addition.value.length
    waiter.stop()
  }

  #evict(addition: Addition): Promise<Added> {
    const turn = (this.#evicting ?? Promise.resolve()).then(() => this.#makeRoom(addition))
    const settled = silent(turn.catch(() => undefined))
    this.#evicting = settled
    void settled.then(() => {
      if (this.#evicting === settled) this.#evicting = undefined
    })
    return turn
  }

  async #makeRoom(addition: Addition): Promise<Added> {
    const instead: StoredEntry[] = []
    try {
      while (this.#closed === undefined) {
        if (this.#fits(addition, instead)) return this.#admit(addition, instead)
        const { adding } = this.#log
        const oldest = await this.#entries.takeOldest()
        // Pending additions were earlier: the oldest of them is evicted once it is stored.
        if (oldest === undefined && adding) {
          await this.#log.idle()
          continue
        }
        if (oldest === undefined)
          throw new MqttError('ERR_DROPPED', 'the queue is full of entries that are being sent')
        instead.push(oldest)
      }
      throw this.#closed
    } catch (error) {
      for (const stored of instead) this.#entries.giveBack(stored)
      throw error
    }
  }
}

function full(why?: string): MqttError {
  return new MqttError('ERR_QUEUE_FULL', why && `queue full: ${why}`)
}
