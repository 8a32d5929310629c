/**
 * How publishes end: each promise settles once, the caller's memory is released, and unhandled
 * failures are reported.
 *
 * An exchange may continue after its promise has settled; its bytes count until it is over. The
 * writer must not pass callers' memory to a transport, so only bytes that it has not written yet
 * are read later. At most `maxQueuedBytes` are copied for one message.
 */

import { tally } from '../../common/counters.js'
import { quoted } from '../../common/schema.js'
import { isProgramFault, MqttError } from '../../errors.js'
import type { PacketWriter } from '../connection/packet-writer.js'
import type { ClientEvents, Receipt } from '../options/index.js'
import { broken } from '../session/refusal.js'
import type { StoringPublishHost } from './keeper.js'
import type { PublishHost } from './ports.js'
import { isKept, type QueuedPublish } from './queued-publish.js'

/** Settles the publishes of one client. */
export class Settlement {
  /** Bytes of publishes that are sent and not over. */
  sentBytes = 0
  readonly failures: Failures
  readonly #host: StoringPublishHost
  readonly #handleRoom: () => void
  #sends = 0
  /** The message written last and its writer, which may still read the caller's bytes. */
  #latest: QueuedPublish | undefined
  #output: PacketWriter | undefined

  /** @param handleRoom called when a publish is over and leaves room for others */
  constructor(host: StoringPublishHost, handleRoom: () => void) {
    this.#host = host
    this.failures = new Failures(host)
    this.#handleRoom = handleRoom
  }

  /** A message is being written. */
  handleWriting(item: QueuedPublish, output: PacketWriter): void {
    this.#latest = item
    this.#output = output
  }

  /** Counts a message as sent, and records the order. */
  handleSent(item: QueuedPublish): void {
    item.sent = true
    item.order = ++this.#sends
    this.sentBytes += item.size
  }

  /** A sent message goes back to the queue. */
  handleUnsent(item: QueuedPublish): void {
    this.sentBytes -= item.size
    item.sent = false
    item.again = true
    item.released = 0
    item.wire = undefined
    item.packetId = 0
  }

  /** Resolves a publish and releases what it held. */
  succeed(item: QueuedPublish, done: Receipt): void {
    this.#release(item, undefined, done)
    item.resolve(done)
  }

  /**
   * Rejects a publish and releases what it held. `kept`: a store still has the message, so it is
   * not lost.
   */
  fail(item: QueuedPublish, error: unknown, kept = false): void {
    this.#release(item, error)
    this.report(item, error, kept)
  }

  /** Rejects the promise; the exchange itself continues. */
  report(item: QueuedPublish, error: unknown, kept = false): void {
    if (item.settled) return
    item.reject(error)
    this.#giveBack(item, item.again || (item.sent && item.wire !== undefined))
    // Failures also become `drop` events.
    if (!kept) this.failures.add(item.topic, error, isKept(item))
  }

  // Releases the caller's bytes: what is still to be sent, now or `again`, is copied. A message
  // over the limit is not copied; it is not resent, and if it is half written, the connection is
  // closed.
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
    // Exceeds every packet size limit, so it is never resent.
    item.length = Number.POSITIVE_INFINITY
    if (output !== undefined)
      this.#host.connections.cut(broken('ERR_CONNECTION_LOST', 'given up midway'))
  }

  #release(item: QueuedPublish, error: unknown, done?: Receipt): void {
    this.#host.publishing.keeper?.forget(item, error, done)
    if (item.sent) this.sentBytes -= item.size
    item.sent = false
    this.#giveBack(item, false)
    item.stop?.()
    item.cancel?.()
    item.late?.()
    this.#handleRoom()
  }
}

/**
 * Number of `drop` events emitted singly in one turn; the last one carries the count of the rest.
 */
const mostReported = 256
/** Milliseconds until the next events, after that many in one turn. */
const pause = 1000

/**
 * Emits `drop` events for failed publishes, after the call that failed. Without a listener, reports
 * the first failure of a turn and the number of the others.
 *
 * A listener may publish again and fail again. Events are therefore emitted in later turns, and
 * beyond `mostReported` at most once a second, with a count.
 */
export class Failures {
  /** Set when the program ends the client: the failures it causes are not reported. */
  quiet = false
  readonly #host: PublishHost
  #events: ClientEvents['drop'][] = []
  /** Failures to report if no listener takes them: the first, and the number. */
  #unheard: { readonly topic: string; readonly error: MqttError; count: number } | undefined
  #queued = false
  /** Set once the client has ended: whether a listener had heard of the failures. */
  #over: { readonly heard: boolean } | undefined

  constructor(host: PublishHost) {
    this.#host = host
  }

  /** A publish failed. `kept`: its publisher still has it. */
  add(topic: string, error: unknown, kept = false): void {
    if (!MqttError.is(error) || error.code === 'ERR_ABORTED') return
    tally(this.#host, 'publishesDropped')
    // Program faults reject loudly, and a program that ends the client expects failures: neither is
    // reported.
    if (!this.quiet && !kept && !isProgramFault(error)) {
      this.#unheard ??= { topic, error, count: 0 }
      this.#unheard.count += 1
    }
    if (this.#over !== undefined) return this.#report()
    const events = this.#events
    const count = events.length < mostReported ? 1 : (events.pop()?.count ?? 0) + 1
    events.push({ direction: 'out', topic, count, error })
    if (!this.#queued && !this.#host.states.ended) this.#queue(0)
  }

  /** The client has ended: pending events are emitted now; later failures are only reported. */
  end(): void {
    const heard = this.#host.events.has('drop')
    this.#emit()
    this.quiet = false
    this.#over = { heard }
  }

  #emit(): void {
    const events = this.#events
    this.#events = []
    for (const event of events) this.#host.events.emit('drop', event)
    this.#report()
  }

  #report(): void {
    const unheard = this.#unheard
    this.#unheard = undefined
    if (unheard === undefined || this.#over?.heard) return
    const { topic, error, count } = unheard
    this.#host.report(
      'MQWIRE_PUBLISH_REFUSED',
      () => `publish to ${quoted(topic)} failed`,
      error,
      'drop',
      count,
    )
  }

  #queue(delay: number): void {
    const { platform } = this.#host
    const emit = (): void => {
      const delay = this.#events.length < mostReported ? 0 : pause
      this.#emit()
      this.#queued = false
      if (this.#events.length > 0) this.#queue(delay)
    }
    this.#queued = true
    if (delay > 0) platform.setTimer(emit, delay)
    else platform.nextTurn(emit)
  }
}
