/**
 * Publishes the entries of a queue while there is a connection: reads ahead within bounds, keeps the order of each topic, tries again, gives up.
 *
 * An entry is deleted only once its publish is acknowledged, or can never be; whatever happens before that, it is published again. It holds at most
 * `mostAhead` entries, and those under way, in memory.
 */
import type { Publisher, Receipt } from '../client/api/index.js'
import { within } from '../client/common/abort.js'
import { type Inside, inside } from '../client/common/inside.js'
import { MqttError } from '../errors.js'
import type { StoreOperation } from '../store/store.js'
import type { EntryLog, StoredEntry } from './entry-log.js'
import { Lines } from './lines.js'
import type { QueueConfig } from './options.js'
import { verdictOf } from './verdict.js'

/** Entries that are read ahead of those under way, and bytes. */
const mostAhead = 1024
const mostBytesAhead = 4 * 1024 * 1024
/** Entries whose deletion is under way; then no more are published. */
const mostSettling = 1024
/** Milliseconds after which a store that failed is asked again. */
const storePatience = 1000
const longestExpiry = 0xffff_ffff

/** What the queue does with what came of its entries. */
export interface DrainOwner {
  /** An entry was acknowledged. */
  handleDelivered(stored: StoredEntry, receipt: Receipt): void
  /** An entry was given up. */
  handleLost(stored: StoredEntry, error: MqttError): void
  /** An entry can never be delivered: gives what is to be written together with its deletion. */
  handleDead(stored: StoredEntry, error: MqttError): Promise<readonly StoreOperation[]>
  /** Something has changed. */
  handleProgress(): void
  /** Something failed that will be tried again. */
  handleError(error: unknown): void
}

/** One publish of an entry. */
interface Attempt {
  readonly stored: StoredEntry
  readonly controller: AbortController
  timer: ReturnType<typeof setTimeout> | undefined
  /** It counts no more. */
  over: boolean
}

/** Publishes entries. */
export class Drain {
  readonly #publisher: Publisher<unknown>
  readonly #log: EntryLog
  readonly #config: QueueConfig
  readonly #owner: DrainOwner
  readonly #lines: Lines
  readonly #underWay = new Map<number, Attempt>()
  /** How often entries were tried that were refused. */
  readonly #tries = new Map<number, number>()
  readonly #holds = new Set<ReturnType<typeof setTimeout>>()
  readonly #stop = new AbortController()
  /** The last entry that was read, and whether no other is stored behind it. */
  #read = 0
  #complete = false
  #filling: Promise<void> | undefined
  #clearing = false
  #settling = 0
  #wake: (() => void) | undefined
  #watching = false

  constructor(publisher: Publisher<unknown>, log: EntryLog, config: QueueConfig, owner: DrainOwner) {
    this.#publisher = publisher
    this.#log = log
    this.#config = config
    this.#owner = owner
    this.#lines = new Lines(publisher.ordered === true)
  }

  /** Entries under way. */
  get inFlight(): number {
    return this.#underWay.size
  }

  /** When the oldest entry was taken, as far as it is known. */
  get oldest(): number | undefined {
    const all = [...this.#underWay.values()].map(({ stored }) => stored)
    const first = this.#lines.oldest
    const [oldest] = (first === undefined ? all : [...all, first]).sort((one, other) => one.entry.id - other.entry.id)
    return oldest?.entry.at
  }

  /** True while this entry is being published. */
  sends(id: number): boolean {
    return this.#underWay.has(id)
  }

  /** Reads the first entries, and begins. @throws MqttError ERR_STORE */
  async start(): Promise<void> {
    await this.#fill()
    void this.#run()
  }

  /** Publishes nothing more. */
  stop(): void {
    this.#stop.abort()
    for (const timer of this.#holds) clearTimeout(timer)
    this.#rouse()
  }

  /** Waits until nothing is under way, and what was acknowledged is deleted. */
  async idle(): Promise<void> {
    while (this.#underWay.size > 0 || this.#settling > 0) await this.#change()
  }

  /** Gives up waiting for what is under way: its outcome stays unknown. */
  abandon(): void {
    for (const attempt of this.#underWay.values()) {
      this.#end(attempt)
      attempt.controller.abort()
    }
    this.#rouse()
  }

  /** An entry is safe. */
  handleAdded(stored: StoredEntry): void {
    if (this.#complete && this.#hasRoom && !this.#clearing && this.#filling === undefined) {
      this.#lines.add(stored)
      this.#read = stored.entry.id
    } else this.#complete = false
    this.#rouse()
  }

  /** Takes the oldest entry that is not under way out, for the caller to delete; undefined when there is none. @throws MqttError ERR_STORE */
  async takeOldest(): Promise<StoredEntry | undefined> {
    if (this.#lines.length === 0) await this.#fill()
    const { oldest } = this.#lines
    if (oldest !== undefined) this.#lines.remove(oldest)
    return oldest
  }

  /** An entry that was taken out was not deleted. */
  giveBack(stored: StoredEntry): void {
    this.#lines.add(stored)
    this.#rouse()
  }

  /** Deletes all entries up to this number that are not under way; gives how many. @throws MqttError ERR_STORE */
  async clear(last: number, gone: (stored: StoredEntry) => void): Promise<number> {
    this.#clearing = true
    let count = 0
    const drop = async (chunk: StoredEntry[]): Promise<void> => {
      const all = chunk.splice(0)
      if (all.length > 0) await this.#log.remove(all)
      count += all.length
      for (const stored of all) gone(stored)
    }
    try {
      await this.#filling
      const chunk = this.#lines.clear()
      await drop(chunk)
      for await (const stored of this.#log.entries(this.#read)) {
        if (stored.entry.id > last) break
        chunk.push(stored)
        if (chunk.length >= mostSettling) await drop(chunk)
      }
      await drop(chunk)
      this.#read = Math.max(this.#read, last)
      return count
    } finally {
      this.#clearing = false
      this.#complete = false
      this.#rouse()
    }
  }

  get #stopped(): boolean {
    return this.#stop.signal.aborted
  }

  get #hasRoom(): boolean {
    return this.#lines.length < mostAhead && this.#lines.bytes < mostBytesAhead
  }

  async #run(): Promise<void> {
    while (!this.#stopped) {
      try {
        if (!this.#clearing && this.#hasRoom && !this.#complete) await this.#fill()
        else if (!this.#mayPublish) await this.#change()
        else {
          await within(Promise.resolve(this.#publisher.writable), this.#stop.signal)
          if (this.#mayPublish && !this.#stopped) this.#publishNext()
        }
      } catch (error) {
        if (this.#stopped) return
        if (verdictOf(error) === 'over') return this.stop()
        this.#owner.handleError(error)
        await this.#pause(storePatience)
      }
    }
  }

  // As far as it is not up to the publisher.
  get #mayPublish(): boolean {
    return this.#underWay.size < this.#config.concurrency && this.#settling < mostSettling && this.#lines.ready
  }

  #publishNext(): void {
    const stored = this.#lines.take()
    if (stored === undefined) return
    const { expires } = stored.entry
    if (expires !== undefined && expires <= Date.now()) {
      this.#lines.handleDone(stored)
      this.#giveUp(stored, new MqttError('ERR_EXPIRED'))
    } else this.#publish(stored)
  }

  #publish(stored: StoredEntry): void {
    const { topic, payload, qos, retain } = stored.entry
    const attempt: Attempt = { stored, controller: new AbortController(), timer: undefined, over: false }
    this.#underWay.set(stored.entry.id, attempt)
    this.#arm(attempt)
    const options = { qos, retain, properties: this.#propertiesOf(stored), signal: attempt.controller.signal }
    // A publisher that throws rejects, and one that gives no promise has taken it.
    const sent = new Promise<unknown>((resolve) => resolve(this.#publisher.publish(topic, payload, options)))
    sent.then(
      (receipt) => this.#handleReceipt(attempt, receipt as Receipt),
      (error: unknown) => this.#handleFailure(attempt, error),
    )
    this.#owner.handleProgress()
  }

  // What is left of its time goes along (section 3.3.2.3.3), where the version has it.
  #propertiesOf({ entry: { properties, expires } }: StoredEntry): StoredEntry['entry']['properties'] {
    if (expires === undefined) return properties
    const { modern } = (this.#publisher as { [inside]?(): Inside })[inside]?.() ?? { modern: true }
    const seconds = Math.min(longestExpiry, Math.max(1, Math.ceil((expires - Date.now()) / 1000)))
    return modern ? { ...properties, messageExpiryInterval: seconds } : properties
  }

  #arm(attempt: Attempt): void {
    attempt.timer = setTimeout(() => this.#handleTimeout(attempt), this.#config.publishTimeout)
  }

  // Time without a connection does not count.
  #handleTimeout(attempt: Attempt): void {
    this.#watch()
    attempt.timer = setTimeout(() => {
      if (attempt.over) return
      if (this.#watching) return this.#arm(attempt)
      this.#handleFailure(attempt, new MqttError('ERR_TIMEOUT', undefined, { outcome: 'unknown' }))
      attempt.controller.abort()
    }, 0)
  }

  // One look at the publisher at a time, however many ask.
  #watch(): void {
    if (this.#watching) return
    this.#watching = true
    const seen = (): void => {
      this.#watching = false
    }
    Promise.resolve(this.#publisher.writable).then(seen, seen)
  }

  #end(attempt: Attempt): void {
    attempt.over = true
    clearTimeout(attempt.timer)
    this.#underWay.delete(attempt.stored.entry.id)
  }

  #handleReceipt(attempt: Attempt, receipt: Receipt): void {
    const { stored } = attempt
    // It took its time, and another attempt is under way, or waits: the message has arrived.
    if (attempt.over) return this.#handleLate(stored, receipt)
    this.#end(attempt)
    this.#lines.handleDone(stored)
    this.#finish(stored, receipt)
  }

  #handleLate(stored: StoredEntry, receipt: Receipt): void {
    const other = this.#underWay.get(stored.entry.id)
    if (other !== undefined) return this.#handleReceipt(other, receipt)
    if (this.#lines.remove(stored)) this.#finish(stored, receipt)
  }

  #finish(stored: StoredEntry, receipt: Receipt): void {
    void this.#remove(stored, []).finally(() => this.#owner.handleDelivered(stored, receipt))
  }

  #handleFailure(attempt: Attempt, error: unknown): void {
    if (attempt.over) return
    const { stored } = attempt
    this.#end(attempt)
    const verdict = verdictOf(error)
    if (verdict === 'dead' || verdict === 'expired') {
      this.#lines.handleDone(stored)
      if (verdict === 'dead') void this.#bury(stored, error as MqttError)
      else this.#giveUp(stored, error as MqttError)
    } else {
      this.#lines.hold(stored)
      if (verdict === 'over') this.stop()
      else this.#tryLater(stored, error)
    }
    this.#owner.handleProgress()
  }

  #tryLater({ entry: { id, topic } }: StoredEntry, error: unknown): void {
    const tries = (this.#tries.get(id) ?? 0) + 1
    this.#tries.set(id, tries)
    const delay = this.#config.backoff(tries, MqttError.is(error) ? error : undefined)
    const timer = setTimeout(
      () => {
        this.#holds.delete(timer)
        this.#lines.release(topic)
        this.#rouse()
      },
      Number.isFinite(delay) ? delay : 0,
    )
    this.#holds.add(timer)
    this.#rouse()
  }

  #giveUp(stored: StoredEntry, error: MqttError): void {
    void this.#remove(stored, []).finally(() => this.#owner.handleLost(stored, error))
  }

  async #bury(stored: StoredEntry, error: MqttError): Promise<void> {
    this.#settling += 1
    const also = await this.#insist(() => this.#owner.handleDead(stored, error))
    this.#settling -= 1
    await this.#remove(stored, also ?? [])
    this.#owner.handleLost(stored, error)
  }

  // It is done with: its record goes, as soon as the store lets it.
  async #remove(stored: StoredEntry, also: readonly StoreOperation[]): Promise<void> {
    this.#settling += 1
    this.#tries.delete(stored.entry.id)
    this.#rouse()
    await this.#insist(() => this.#log.remove([stored], also))
    this.#settling -= 1
    this.#rouse()
  }

  // Until it works, or the queue is closed.
  async #insist<T>(write: () => Promise<T>): Promise<T | undefined> {
    for (;;) {
      try {
        return await write()
      } catch (error) {
        this.#owner.handleError(error)
        if (this.#stopped) return undefined
        await this.#pause(storePatience)
      }
    }
  }

  #fill(): Promise<void> {
    this.#filling ??= this.#load()
    return this.#filling
  }

  async #load(): Promise<void> {
    // Whoever asks shares it, from the first step on.
    await undefined
    try {
      while (this.#hasRoom && !this.#complete && !this.#clearing) await this.#readOn()
    } finally {
      this.#filling = undefined
    }
  }

  async #readOn(): Promise<void> {
    // What is added meanwhile may be seen or not.
    this.#complete = true
    try {
      const { entries, last, more } = await this.#log.read(this.#read, this.#config.batchSize)
      for (const stored of entries) this.#lines.add(stored)
      this.#read = last
      if (more) this.#complete = false
    } catch (error) {
      this.#complete = false
      throw error
    }
  }

  // Resolves with the next change.
  #change(): Promise<void> {
    return new Promise((resolve) => {
      const before = this.#wake
      this.#wake = () => {
        before?.()
        resolve()
      }
    })
  }

  #rouse(): void {
    const wake = this.#wake
    this.#wake = undefined
    wake?.()
  }

  async #pause(delay: number): Promise<void> {
    await within(new Promise((resolve) => setTimeout(resolve, delay)), this.#stop.signal).catch(() => undefined)
  }
}
