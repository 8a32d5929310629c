/**
 * How publishes end: the promise of each settles once, the caller may use its memory again, and unseen failures are reported.
 *
 * An exchange may go on after its promise has settled; its bytes count until it is over. It may assume that the writer hands no memory of callers to a
 * transport, so that only what it has not handed over yet is read later. It must never copy more than `maxQueuedBytes` for one message.
 */
import type { PacketWriter } from '../connection/packet-writer.js'
import type { Receipt } from '../options/index.js'
import { broken } from '../session/refusal.js'
import { Failures } from './failures.js'
import type { KeepingHost } from './keeping.js'
import { isKept, type QueuedPublish } from './queued-publish.js'

/** Ends of the publishes of one client. */
export class Settlement {
  /** Bytes of publishes that are sent and not over. */
  sentBytes = 0
  readonly failures: Failures
  readonly #host: KeepingHost
  readonly #handleRoom: () => void
  #sends = 0
  /** The latest message, and what it was written to: its bytes are the caller's. */
  #latest: QueuedPublish | undefined
  #output: PacketWriter | undefined

  /** @param handleRoom called when one is over, and others may have its place */
  constructor(host: KeepingHost, handleRoom: () => void) {
    this.#host = host
    this.failures = new Failures(host)
    this.#handleRoom = handleRoom
  }

  /** A message is written now. */
  handleWriting(item: QueuedPublish, output: PacketWriter): void {
    this.#latest = item
    this.#output = output
  }

  /** It is sent now, in this order among all. */
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
    this.#release(item, undefined, done)
    item.resolve(done)
  }

  /** It is over, and the caller hears why. `kept`: it goes on from the store, and is not lost. */
  fail(item: QueuedPublish, error: unknown, kept = false): void {
    this.#release(item, error)
    this.tell(item, error, kept)
  }

  /** The caller hears of it; the exchange goes on without him. */
  tell(item: QueuedPublish, error: unknown, kept = false): void {
    if (item.settled) return
    item.reject(error)
    this.#giveBack(item, item.again || (item.sent && item.wire !== undefined))
    // A failure that is not awaited becomes an event.
    if (!kept) this.failures.add(item.topic, error, isKept(item))
  }

  // The caller has the bytes back: what is to be sent of them, now or `again`, is copied. Beyond the limit it is not sent, and the link is cut.
  #giveBack(item: QueuedPublish, again: boolean): void {
    const { size, payload } = item
    const output =
      this.#latest === item && this.#output?.source === payload ? this.#output : undefined
    if (!again && output === undefined) return
    if (size <= this.#host.options.outbound.maxQueuedBytes) {
      item.payload = new Uint8Array(payload)
      if (output !== undefined) output.source = item.payload
      return
    }
    // Longer than any server takes.
    item.length = Number.POSITIVE_INFINITY
    if (output !== undefined) this.#host.links.cut(broken('ERR_CONNECTION_LOST', 'given up midway'))
  }

  #release(item: QueuedPublish, error: unknown, done?: Receipt): void {
    this.#host.publishQueue.keeper?.forget(item, error, done)
    if (item.sent) this.sentBytes -= item.size
    item.sent = false
    this.#giveBack(item, false)
    item.stop?.()
    item.cancel?.()
    item.late?.()
    this.#handleRoom()
  }
}
