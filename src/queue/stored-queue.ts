/**
 * The queue: implements the public interface and connects the parts.
 *
 * `publish` fulfils once the entry is stored. The entry is then published until it is acknowledged,
 * expires, or can never be delivered. Every promise settles. The store belongs to the caller and is
 * not closed.
 */
import type {
  ListenerOptions,
  Payload,
  Publisher,
  Receipt,
  Unlisten,
} from '../client/options/index.js'
import { assertNotAborted, deferred, onAbort, silent } from '../common/abort.js'
import { asyncDisposeSymbol } from '../common/dispose.js'
import { Emitter } from '../common/emitter.js'
import { unknown } from '../common/schema.js'
import { MqttError } from '../errors.js'
import type { Store } from '../store/base/store.js'
import { DeadLetters } from './dead-letters.js'
import { Drain } from './drain.js'
import { type Addition, additionOf, EntryLog } from './entry-log.js'
import { closeCall, type QueueConfig, queueCall, queueConfig } from './options.js'
import { Outcomes } from './outcomes.js'
import { Progress } from './progress.js'
import { QueueRoom } from './room.js'
import type {
  Queue,
  Queued,
  QueueEntry,
  QueueEvents,
  QueueOptions,
  QueuePublishOptions,
  QueueStatus,
} from './types.js'

const eventNames: readonly (keyof QueueEvents)[] = [
  'status',
  'deadletter',
  'drop',
  'storecorrupt',
  'error',
]

/** Names of open queues in this process, by store. */
const opened = new WeakMap<Store, Set<string>>()

/** Opens the queue. @throws MqttError as `openQueue` */
export async function openStoredQueue(
  publisher: Publisher<unknown>,
  options: QueueOptions,
): Promise<Queue> {
  if (typeof publisher?.publish !== 'function') {
    const wayOut =
      typeof (publisher as unknown as PromiseLike<unknown>)?.then === 'function'
        ? ': await the promise of connect()'
        : ''
    throw new MqttError('ERR_INVALID_OPTION', `publisher must have publish()${wayOut}`, {
      option: 'publisher',
    })
  }
  const config = queueConfig(options, publisher)
  const names = opened.get(config.store) ?? new Set()
  opened.set(config.store, names)
  if (names.has(config.name))
    throw new MqttError(
      'ERR_STORE_LOCKED',
      `queue '${config.name}' of this store is open already`,
      { option: 'name' },
    )
  names.add(config.name)
  const queue = new StoredQueue(publisher, config, () => names.delete(config.name))
  try {
    await queue.open()
    return queue
  } catch (error) {
    names.delete(config.name)
    throw error
  }
}

/** Most milliseconds that `close()` waits for the store in addition to its `timeout`. */
const longestWrite = 5000

class StoredQueue implements Queue {
  readonly ordered = true
  readonly deadLetters: DeadLetters | undefined
  readonly #config: QueueConfig
  readonly #outcomes: Outcomes
  readonly #release: () => void
  readonly #log: EntryLog
  readonly #drain: Drain
  readonly #room: QueueRoom
  readonly #progress: Progress
  readonly #events: Emitter<QueueEvents>
  #isOpen = false
  #closing: Promise<void> | undefined

  constructor(publisher: Publisher<unknown>, config: QueueConfig, release: () => void) {
    this.#config = config
    this.#release = release
    this.#events = new Emitter({
      handleListenerFailed: (error, type) => {
        if (type !== 'error') this.#events.emit('error', { error })
      },
    })
    // There are no listeners before the queue is open, so events are delayed.
    const corrupt = (key: string): void => {
      if (this.#isOpen) this.#events.emit('storecorrupt', { key })
      else setTimeout(() => this.#events.emit('storecorrupt', { key }), 0)
    }
    const { store, name, deadLetterStore } = config
    this.#log = new EntryLog(store, name, corrupt, () => this.#room.handleRoom())
    this.deadLetters =
      deadLetterStore &&
      new DeadLetters(
        deadLetterStore,
        deadLetterStore === store,
        name,
        (...given) => this.#add(additionOf(...given), undefined),
        corrupt,
      )
    const counted = (): { pending: number; inFlight: number; bytes: number } => ({
      pending: this.size,
      inFlight: this.#drain.inFlight,
      bytes: this.bytes,
    })
    this.#progress = new Progress(
      counted,
      (status) => this.#events.emit('status', status),
      () => this.#events.has('status'),
    )
    this.#outcomes = new Outcomes(config, this.#events, this.deadLetters, this.#progress, () =>
      this.#room.handleRoom(),
    )
    this.#drain = new Drain(publisher, this.#log, config, this.#outcomes)
    this.#room = new QueueRoom(this.#log, config, this.#drain.ahead)
  }

  /** Reads the stored entries and starts publishing. @throws MqttError ERR_STORE */
  async open(): Promise<void> {
    await this.#log.open()
    await this.#drain.start()
    this.#isOpen = true
  }

  get size(): number {
    return this.#log.count
  }

  get bytes(): number {
    return this.#log.bytes
  }

  get oldest(): number | undefined {
    return this.#drain.oldest
  }

  get writable(): Promise<void> {
    return this.#closing === undefined ? this.#room.writable : silent(Promise.reject(closed()))
  }

  publish(topic: string, payload: Payload, options?: QueuePublishOptions): Promise<Queued> {
    try {
      this.#assertOpen()
      const { entry, signal } = queueCall(this.#config, topic, payload, options, Date.now())
      assertNotAborted(signal)
      return this.#add(additionOf(entry), signal)
    } catch (error) {
      return Promise.reject(error)
    }
  }

  async *entries(): AsyncIterableIterator<QueueEntry> {
    this.#assertOpen()
    for await (const { entry } of this.#log.entries()) yield entry
  }

  async clear(): Promise<number> {
    this.#assertOpen()
    const error = new MqttError('ERR_DROPPED', 'the queue was cleared')
    const count = await this.#drain.ahead.clear(this.#log.next - 1, (stored) =>
      this.#outcomes.handleLost(stored, error),
    )
    this.#room.handleRoom()
    return count
  }

  async remove(id: number): Promise<boolean> {
    this.#assertOpen()
    if (!Number.isSafeInteger(id) || id < 1)
      throw new MqttError(
        'ERR_INVALID_OPTION',
        `id must be the number of an entry, not ${String(id)}`,
        { option: 'id' },
      )
    const stored = await this.#drain.ahead.remove(id)
    if (stored === undefined) return false
    this.#outcomes.handleLost(stored, new MqttError('ERR_DROPPED', 'the entry was removed'))
    return true
  }

  status(): AsyncIterableIterator<QueueStatus> {
    return this.#progress.watch()
  }

  on<K extends keyof QueueEvents>(
    type: K,
    listener: (event: QueueEvents[K]) => void,
    options?: ListenerOptions,
  ): Unlisten {
    if (!eventNames.includes(type)) unknown('type', 'event', String(type), eventNames)
    return this.#events.on(type, listener, options)
  }

  close(given?: {
    readonly signal?: AbortSignal | undefined
    readonly timeout?: number | undefined
  }): Promise<void> {
    try {
      const { timeout, signal } = closeCall(given)
      this.#closing ??= silent(this.#close(timeout, signal))
    } catch (error) {
      return Promise.reject(error)
    }
    return this.#closing
  }

  [asyncDisposeSymbol](): Promise<void> {
    return this.close()
  }

  async #add(addition: Addition, signal: AbortSignal | undefined): Promise<Queued> {
    this.#assertOpen()
    const added = this.#room.add(addition, signal)
    const { stored, instead, done } = added instanceof Promise ? await added : added
    try {
      await done
    } catch (error) {
      for (const other of instead) this.#drain.ahead.giveBack(other)
      void this.#drain.removals.clean()
      // The reserved room is free for others.
      this.#room.handleRoom()
      throw error
    }
    for (const other of instead)
      this.#outcomes.handleLost(
        other,
        new MqttError('ERR_DROPPED', 'the queue was full, and this its oldest entry'),
      )
    const { id } = stored.entry
    const delivered =
      this.#closing === undefined
        ? this.#outcomes.of(id)
        : silent(Promise.reject<Receipt>(closed()))
    this.#drain.ahead.handleAdded(stored)
    this.#progress.handleChange()
    return { id, delivered }
  }

  async #close(timeout: number, signal: AbortSignal | undefined): Promise<void> {
    // Deferred, so that `closing` is set before anything else happens.
    await undefined
    this.#drain.stop()
    this.#room.close(closed())
    const idle = this.#drain.idle()
    if (timeout > 0 && !signal?.aborted) await this.#patience(idle, timeout, signal)
    // Two shared errors, because creating one takes longer than storing an entry.
    const [sent, kept] = [closed('unknown'), closed()]
    this.#outcomes.close((id) => (this.#drain.sends(id) ? sent : kept))
    this.#drain.abandon()
    let isOver = false
    const finished = this.#finish().then(() => {
      isOver = true
    })
    await this.#patience(finished, longestWrite, undefined)
    if (!isOver)
      this.#outcomes.handleError(
        new MqttError('ERR_STORE', 'the store did not answer before the queue ended', {
          outcome: 'unknown',
        }),
      )
  }

  // Writing must have ended before another queue opens this name.
  async #finish(): Promise<void> {
    await this.#drain.idle()
    await this.#log.stop()
    await this.#drain.removals.cleaned
    this.#progress.end()
    this.deadLetters?.forget()
    this.#release()
    this.#events.clear()
  }

  async #patience(
    idle: Promise<void>,
    timeout: number,
    signal: AbortSignal | undefined,
  ): Promise<void> {
    const over = deferred<void>()
    const timer = setTimeout(over.resolve, timeout)
    const stop = onAbort(signal, () => over.resolve())
    await Promise.race([idle, over.promise])
    clearTimeout(timer)
    stop()
  }

  #assertOpen(): void {
    if (this.#closing !== undefined) throw closed()
  }
}

function closed(outcome: 'not-sent' | 'unknown' = 'not-sent'): MqttError {
  return new MqttError('ERR_QUEUE_CLOSED', undefined, { outcome })
}
