/**
 * Publishes the entries of a queue while there is a connection: keeps the order of each topic,
 * retries, and gives up.
 *
 * An entry is deleted only when its publish is acknowledged or can never succeed; until then it is
 * published again.
 */
import type { Publisher, Receipt } from '../client/options/index.js'
import { within } from '../common/abort.js'
import { MqttError } from '../errors.js'
import type { StoreOperation } from '../store/base/store.js'
import { type AttemptOwner, Attempts, type Changes as StoreChanges } from './attempts.js'
import { BackgroundReader } from './background-reader.js'
import { Changes } from './changes.js'
import type { EntryLog, StoredEntry } from './entry-log.js'
import { Lines } from './lines.js'
import { Lookahead } from './lookahead.js'
import type { QueueConfig } from './options.js'
import { Removals } from './removals.js'
import { Retries } from './retries.js'
import { endsEntry, verdictOf } from './verdict.js'

/** With this many deletions under way, publishing pauses. */
const mostRemovals = 1024
/** Entries published before the publisher is asked again whether it accepts more. */
const burst = 16

/** Receives the outcomes of entries. */
export interface DrainOwner {
  /** An entry was acknowledged. */
  handleDelivered(stored: StoredEntry, receipt: Receipt): void
  /** An entry was given up. */
  handleLost(stored: StoredEntry, error: MqttError): void
  /** An entry can never be delivered. Returns the changes to write together with its deletion. */
  handleDead(stored: StoredEntry, error: MqttError): Promise<readonly StoreOperation[]>
  /** Something has changed. */
  handleProgress(): void
  /** Something failed and will be retried. */
  handleError(error: unknown): void
}

/** Publishes entries. */
export class Drain implements AttemptOwner {
  readonly ahead: Lookahead
  readonly removals: Removals
  readonly #publisher: Publisher<unknown>
  readonly #concurrency: number
  readonly #maxRefusals: number
  /** QoS 2 is not published again while its outcome is unknown. */
  readonly #once: boolean
  readonly #owner: DrainOwner
  readonly #lines: Lines
  readonly #attempts: Attempts
  readonly #retries: Retries
  readonly #reader: BackgroundReader
  readonly #changes = new Changes()
  readonly #stop = new AbortController()

  constructor(
    publisher: Publisher<unknown>,
    log: EntryLog,
    config: QueueConfig,
    owner: DrainOwner,
  ) {
    this.#publisher = publisher
    this.#concurrency = config.concurrency
    this.#maxRefusals = config.maxRefusals
    this.#owner = owner
    this.#lines = new Lines(publisher.ordered === true)
    const { publishTimeout, shared } = config
    this.#once = shared
    const ofLog = { keyOf: log.keyOf.bind(log), countOf: log.countOf.bind(log) }
    this.#attempts = new Attempts(publisher, { publishTimeout, shared, ...ofLog }, this)
    this.ahead = new Lookahead(this.#lines, log, config.batchSize, this.#changes, (stored) =>
      this.#attempts.isKept(stored),
    )
    this.#retries = new Retries(config.backoff, (error) => owner.handleError(error))
    this.removals = new Removals(log, this.#changes, this.#stop.signal, {
      handleError: (error) => owner.handleError(error),
      handleGone: (stored) => this.#attempts.forget(stored),
    })
    this.#reader = new BackgroundReader(
      this.ahead,
      this.removals,
      (error) => !this.#stopped && owner.handleError(error),
    )
  }

  /** Entries under way. */
  get inFlight(): number {
    return this.#attempts.size
  }

  /** When the oldest known entry was added. */
  get oldest(): number | undefined {
    const all = this.#attempts.entries
    const first = this.#lines.oldest
    const [oldest] = (first === undefined ? all : [...all, first]).sort(
      (one, other) => one.entry.id - other.entry.id,
    )
    return oldest?.entry.at
  }

  /** True while this entry is being published, or is done and not deleted yet. */
  sends(id: number): boolean {
    return this.#attempts.has(id) || this.removals.has(id)
  }

  /** Reads the first entries and starts publishing. @throws MqttError ERR_STORE */
  async start(): Promise<void> {
    await this.ahead.fill()
    void this.#run()
  }

  /** Stops publishing. */
  stop(): void {
    this.#stop.abort()
    this.#retries.stop()
    this.#changes.notify()
  }

  /**
   * Waits until nothing is under way, acknowledged entries are deleted, and nothing is being read.
   */
  async idle(): Promise<void> {
    while (this.#attempts.size > 0 || this.removals.size > 0) await this.#changes.next
    await this.#reader.done
  }

  /** Stops waiting for entries under way: their outcome stays unknown. */
  abandon(): void {
    this.#attempts.abandon()
    this.#changes.notify()
  }

  handleReceipt(stored: StoredEntry, receipt: Receipt, also: StoreChanges): void {
    this.#lines.handleDone(stored)
    this.#finish(stored, receipt, also)
  }

  handleLateReceipt(stored: StoredEntry, receipt: Receipt): void {
    if (this.#lines.remove(stored)) this.#finish(stored, receipt, [])
  }

  handleFailure(stored: StoredEntry, error: unknown, also: StoreChanges): void {
    const given = verdictOf(error, this.#once && stored.entry.qos === 2)
    const isRefused =
      given === 'retry' && MqttError.is(error) && error.code === 'ERR_PUBLISH_REFUSED'
    const verdict =
      isRefused && this.#retries.refusal(stored.entry.id) >= this.#maxRefusals ? 'dead' : given
    if (endsEntry(verdict)) {
      this.#lines.handleDone(stored)
      this.#giveUp(stored, error as MqttError, verdict === 'dead', also)
    } else {
      this.#lines.hold(stored)
      if (verdict === 'over') void this.#handleClosed(stored, error as MqttError)
      else this.#tryLater(stored, error)
    }
    this.#owner.handleProgress()
  }

  get #stopped(): boolean {
    return this.#stop.signal.aborted
  }

  async #run(): Promise<void> {
    while (!this.#stopped) {
      try {
        this.#reader.readOn()
        if (!this.#mayPublish) await this.#changes.next
        else {
          await within(Promise.resolve(this.#publisher.writable), this.#stop.signal)
          for (let left = burst; left > 0 && this.#mayPublish && !this.#stopped; left--)
            this.#publishNext()
        }
      } catch (error) {
        if (this.#stopped) return
        if (verdictOf(error) === 'over') return this.stop()
        this.#owner.handleError(error)
        await this.removals.pause()
      }
    }
  }

  // True when nothing but the publisher can prevent publishing.
  get #mayPublish(): boolean {
    return (
      this.#attempts.size < this.#concurrency &&
      this.removals.size < mostRemovals &&
      this.#lines.ready
    )
  }

  #publishNext(): void {
    const stored = this.#lines.take()
    if (stored === undefined) return
    const { expires } = stored.entry
    if (expires !== undefined && expires <= Date.now() && !this.#attempts.isKept(stored)) {
      this.#lines.handleDone(stored)
      return this.#giveUp(stored, new MqttError('ERR_EXPIRED'), false, [])
    }
    this.#attempts.begin(stored)
    this.#owner.handleProgress()
  }

  // If one connection of a group or pool ended, its entries are retried on others. A closed
  // publisher rejects again.
  async #handleClosed(stored: StoredEntry, error: MqttError): Promise<void> {
    if (this.#once || error.outcome !== 'unknown') return this.stop()
    try {
      await within(Promise.resolve(this.#publisher.writable), this.#stop.signal)
    } catch (reason) {
      if (verdictOf(reason) === 'over') return this.stop()
    }
    this.#tryLater(stored, error)
  }

  #tryLater(stored: StoredEntry, error: unknown): void {
    this.#retries.schedule(stored, error, () => {
      this.#lines.release(stored.entry.topic)
      this.#changes.notify()
    })
    this.#changes.notify()
  }

  #finish(stored: StoredEntry, receipt: Receipt, also: StoreChanges): void {
    this.#retries.forget(stored.entry.id)
    void this.removals.remove(stored, also).then(() => this.#owner.handleDelivered(stored, receipt))
  }

  #giveUp(stored: StoredEntry, error: MqttError, dead: boolean, also: StoreChanges): void {
    this.#retries.forget(stored.entry.id)
    const letter = dead ? () => this.#owner.handleDead(stored, error) : undefined
    void this.removals
      .remove(stored, also, letter)
      .then((gone) => gone && this.#owner.handleLost(stored, error))
  }
}
