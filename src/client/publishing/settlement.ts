/**
 * How publishes end: the promise of each settles once, the memory of the caller is his again, and what failed unseen is told.
 *
 * An exchange may go on after its promise has settled; its bytes count until it is over.
 */
import type { Receipt } from '../api/index.js'
import { Failures } from './failures.js'
import { LentBytes } from './lent-bytes.js'
import type { PublishingHost } from './ports.js'
import type { QueuedPublish } from './queued-publish.js'

/** Ends of the publishes of one client. */
export class Settlement {
  /** Bytes of publishes that are sent and not over. */
  sentBytes = 0
  readonly lent: LentBytes
  readonly failures: Failures
  readonly #handleRoom: () => void
  #sends = 0

  /** @param handleRoom called when one is over, and others may have its place */
  constructor(host: PublishingHost, handleRoom: () => void) {
    this.lent = new LentBytes(host)
    this.failures = new Failures(host)
    this.#handleRoom = handleRoom
  }

  /** It is sent, in this order among all. */
  handleSent(item: QueuedPublish): void {
    item.sent = true
    item.order = ++this.#sends
    this.sentBytes += item.size
  }

  /** It was sent, and goes back to the queue. */
  handleUnsent(item: QueuedPublish): void {
    this.sentBytes -= item.size
    item.sent = false
    item.again = true
    item.released = 0
    item.wire = undefined
    item.packetId = 0
  }

  /** It is over. */
  succeed(item: QueuedPublish, done: Receipt): void {
    this.#release(item)
    item.resolve(done)
  }

  /** It is over, and the caller hears why. */
  fail(item: QueuedPublish, error: unknown): void {
    this.#release(item)
    this.tell(item, error)
  }

  /** The caller hears of it; the exchange goes on without him. */
  tell(item: QueuedPublish, error: unknown): void {
    if (item.settled) return
    item.reject(error)
    this.lent.giveBack(item, item.again || (item.sent && item.wire !== undefined))
    // A failure that nobody awaits shows as an event.
    this.failures.add(item.call.topic, error)
  }

  #release(item: QueuedPublish): void {
    if (item.sent) this.sentBytes -= item.size
    item.sent = false
    this.lent.giveBack(item, false)
    item.stop?.()
    item.cancel?.()
    item.late?.()
    this.#handleRoom()
  }
}
