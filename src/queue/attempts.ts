/**
 * Entries under way: each is given to the publisher once, with what is left of its time, and ends with a receipt, an error, or `publishTimeout`.
 *
 * It must never tell the end of an attempt twice.
 */
import type { Publisher, Receipt } from '../client/api/index.js'
import { type Inside, inside } from '../client/common/inside.js'
import { MqttError } from '../errors.js'
import type { StoredEntry } from './entry-log.js'

const longestExpiry = 0xffff_ffff

/** What becomes of entries under way. */
export interface AttemptOwner {
  /** It was acknowledged. */
  handleReceipt(stored: StoredEntry, receipt: Receipt): void
  /** It was acknowledged after its attempt had failed, and is not under way again. */
  handleLateReceipt(stored: StoredEntry, receipt: Receipt): void
  /** It was refused, took too long, or its outcome is unknown. */
  handleFailure(stored: StoredEntry, error: unknown): void
}

/** One publish of an entry. */
interface Attempt {
  readonly stored: StoredEntry
  readonly controller: AbortController
  timer: ReturnType<typeof setTimeout> | undefined
  /** It counts no more. */
  over: boolean
}

/** Publishes of entries that have not ended. */
export class Attempts {
  readonly #publisher: Publisher<unknown>
  readonly #timeout: number
  readonly #owner: AttemptOwner
  readonly #open = new Map<number, Attempt>()
  #watching = false
  #abandoned = false

  constructor(publisher: Publisher<unknown>, timeout: number, owner: AttemptOwner) {
    this.#publisher = publisher
    this.#timeout = timeout
    this.#owner = owner
  }

  get size(): number {
    return this.#open.size
  }

  /** The entries. */
  get entries(): StoredEntry[] {
    return [...this.#open.values()].map(({ stored }) => stored)
  }

  /** True while this entry is under way. */
  has(id: number): boolean {
    return this.#open.has(id)
  }

  /** Publishes an entry. */
  begin(stored: StoredEntry): void {
    const { id, topic, payload, qos, retain } = stored.entry
    const attempt: Attempt = { stored, controller: new AbortController(), timer: undefined, over: false }
    this.#open.set(id, attempt)
    this.#arm(attempt)
    const options = { qos, retain, properties: this.#propertiesOf(stored), signal: attempt.controller.signal }
    // A publisher that throws rejects, and one that gives no promise has taken it.
    const sent = new Promise<unknown>((resolve) => resolve(this.#publisher.publish(topic, payload, options)))
    sent.then(
      (receipt) => this.#handleReceipt(attempt, receipt as Receipt),
      (error: unknown) => this.#handleFailure(attempt, error),
    )
  }

  /** Gives up waiting: the outcome of each stays unknown, and is not told, whenever it comes. */
  abandon(): void {
    this.#abandoned = true
    for (const attempt of this.#open.values()) {
      this.#end(attempt)
      attempt.controller.abort()
    }
  }

  // What is left of its time goes along (section 3.3.2.3.3), where the version has it.
  #propertiesOf({ entry: { properties, expires } }: StoredEntry): StoredEntry['entry']['properties'] {
    if (expires === undefined) return properties
    const { modern } = (this.#publisher as { [inside]?(): Inside })[inside]?.() ?? { modern: true }
    const seconds = Math.min(longestExpiry, Math.max(1, Math.ceil((expires - Date.now()) / 1000)))
    return modern ? { ...properties, messageExpiryInterval: seconds } : properties
  }

  #arm(attempt: Attempt): void {
    attempt.timer = setTimeout(() => this.#handleTimeout(attempt), this.#timeout)
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
    this.#open.delete(attempt.stored.entry.id)
  }

  #handleReceipt(attempt: Attempt, receipt: Receipt): void {
    const { stored, over } = attempt
    if (!over) {
      this.#end(attempt)
      return this.#owner.handleReceipt(stored, receipt)
    }
    if (this.#abandoned) return
    // It took its time, and another attempt is under way, or waits: the message has arrived.
    const other = this.#open.get(stored.entry.id)
    if (other !== undefined) this.#handleReceipt(other, receipt)
    else this.#owner.handleLateReceipt(stored, receipt)
  }

  #handleFailure(attempt: Attempt, error: unknown): void {
    if (attempt.over) return
    this.#end(attempt)
    this.#owner.handleFailure(attempt.stored, error)
  }
}
