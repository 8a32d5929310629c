/**
 * How publishes end: the promise of each settles once, the caller may use its memory again, and unseen failures are reported.
 *
 * An exchange may go on after its promise has settled; its bytes count until it is over. It may assume that the writer hands no memory of callers to a
 * transport, so that only what it has not handed over yet is read later. It must never copy more than `maxQueuedBytes` for one message.
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

/** Ends of the publishes of one client. */
export class Settlement {
  /** Bytes of publishes that are sent and not over. */
  sentBytes = 0
  readonly failures: Failures
  readonly #host: StoringPublishHost
  readonly #handleRoom: () => void
  #sends = 0
  /** The latest message, and what it was written to: its bytes are the caller's. */
  #latest: QueuedPublish | undefined
  #output: PacketWriter | undefined

  /** @param handleRoom called when one is over, and others may have its place */
  constructor(host: StoringPublishHost, handleRoom: () => void) {
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
    this.report(item, error, kept)
  }

  /** The caller hears of it; the exchange goes on without him. */
  report(item: QueuedPublish, error: unknown, kept = false): void {
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
    if (output !== undefined)
      this.#host.connections.cut(broken('ERR_CONNECTION_LOST', 'given up midway'))
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

/** Events that one turn emits one by one; failures beyond that are counted with the last of them. */
const mostReported = 256
/** Milliseconds until the next ones, after so many. */
const pause = 1000

/**
 * Emits `drop` events for publishes that failed, after the call in which they did. Without a listener it reports the first of a turn, with the
 * count of the others.
 *
 * A listener may publish again, and fail again: events come in later turns of the event loop, and above a number of them at most once a second,
 * counted together.
 */
export class Failures {
  /** The client ends because the program wants it to: what fails now is its own doing. */
  quiet = false
  readonly #host: PublishHost
  #events: ClientEvents['drop'][] = []
  /** Those of them that were not the program's own doing: the first, and how many. */
  #unheard: { readonly topic: string; readonly error: MqttError; count: number } | undefined
  #queued = false
  /** Undefined until the client is over; then what silences reports. */
  #over: { readonly heard: boolean } | undefined

  constructor(host: PublishHost) {
    this.#host = host
  }

  /** A publish failed. `kept`: its caller has it still. */
  add(topic: string, error: unknown, kept = false): void {
    if (!MqttError.is(error) || error.code === 'ERR_ABORTED') return
    tally(this.#host, 'publishesDropped')
    // What rejects loudly, and what the program ended itself, need no report.
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

  /** The client is over: events that are due are emitted now; after that there are only reports. */
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
