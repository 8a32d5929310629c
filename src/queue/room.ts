/**
 * Room in a queue: who gets it, in the order of the calls, and who waits for it.
 *
 * It never lets more wait than the queue itself may hold. A caller that is admitted adds its entry in the same turn.
 */
import { aborted, type Deferred, deferred, onAbort, silent } from '../common/abort.js'
import { MqttError } from '../errors.js'
import type { Addition, EntryLog, StoredEntry } from './entry-log.js'
import type { QueueConfig } from './options.js'

/** A publish that waits. */
interface Waiter {
  readonly addition: Addition
  readonly admitted: Deferred<Added>
  readonly stop: () => void
}

/** An entry that was let in. */
export interface Added {
  readonly stored: StoredEntry
  /** Those that made room. */
  readonly instead: readonly StoredEntry[]
  /** Fulfils when it is safe. */
  readonly done: Promise<void>
}

/** Where room is made from. */
export interface Evictable {
  takeOldest(): Promise<StoredEntry | undefined>
  giveBack(stored: StoredEntry): void
}

/** Who may add. */
export class QueueRoom {
  readonly #log: EntryLog
  readonly #config: QueueConfig
  readonly #entries: Evictable
  readonly #waiters = new Set<Waiter>()
  #waitingBytes = 0
  /** Those that make room by giving up others, one after the other. */
  #evicting: Promise<unknown> | undefined
  #writable: Deferred<void> | undefined
  /** What everybody hears who asks for room after the end. */
  #closed: MqttError | undefined

  constructor(log: EntryLog, config: QueueConfig, entries: Evictable) {
    this.#log = log
    this.#config = config
    this.#entries = entries
  }

  /** Adds an entry, now or when there is room. @throws MqttError ERR_QUEUE_FULL, ERR_DROPPED, ERR_ABORTED, ERR_STORE */
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

  /** Fulfils when there is room for another entry. */
  get writable(): Promise<void> {
    if (
      this.#waiters.size === 0 &&
      this.#log.fits(0, this.#config.maxEntries, this.#config.maxBytes)
    )
      return Promise.resolve()
    this.#writable ??= deferred()
    return this.#writable.promise
  }

  /** Entries have gone. */
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

  /** No caller is admitted any more. */
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
        // Those that are being stored were before it: the oldest of them goes.
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
