/**
 * Publishes that cannot leave at once: taken in within the limits, dropped by the overflow policy or when their time is over.
 *
 * A caller that is not taken in gets the reason. It must never let more wait than the limits say.
 */

import { aborted, onAbort } from '../../common/abort.js'
import { longestTimer, optionError } from '../../common/schema.js'
import type { MqttError } from '../../errors.js'
import type { Backlog } from './backlog.js'
import type { PublishHost } from './ports.js'
import {
  assertSendable,
  expiryOption,
  notConnected,
  offlinePolicy,
  type QueuedPublish,
} from './queued-publish.js'
import type { Settlement } from './settlement.js'

/** Who gets into the backlog of one client, and out of it unsent. */
export class Admission {
  /** Why nothing is taken in any more. */
  ended: MqttError | undefined
  readonly #host: PublishHost
  readonly #backlog: Backlog
  readonly #ends: Settlement

  constructor(host: PublishHost, backlog: Backlog, ends: Settlement) {
    this.#host = host
    this.#backlog = backlog
    this.#ends = ends
  }

  /** It waits to be sent, or its caller hears why not. */
  enqueue(item: QueuedPublish): void {
    const { signal } = item.options
    try {
      assertSendable(item.topic, item.payload.length, item.options, this.#host)
      if (
        this.#host.links.connection === undefined &&
        offlinePolicy(item, this.#host.options.outbound) === 'reject'
      )
        throw notConnected(this.#host)
      if (this.ended !== undefined) throw this.ended
      this.#makeRoom(item)
    } catch (error) {
      return this.#ends.tell(item, error)
    }
    this.#backlog.push(item)
    if (signal !== undefined) item.stop = onAbort(signal, () => this.abort(item))
    this.#age(item)
  }

  // It is dropped when its time to live, or its message expiry interval, is over before it was sent.
  #age(item: QueuedPublish): void {
    const { options, platform } = this.#host
    const { ttl = options.outbound.ttl ?? Number.POSITIVE_INFINITY, properties } = item.options
    const expiry = (properties?.messageExpiryInterval ?? Number.POSITIVE_INFINITY) * 1000
    const left = Math.min(ttl, expiry)
    if (left > longestTimer) return
    item.cancel = platform.setTimer(
      () => this.#drop(item, optionError('ERR_EXPIRED', ttl <= expiry ? 'ttl' : expiryOption)),
      left,
    )
  }

  // Under 'wait' those who wait have the same limits once more.
  #makeRoom(item: QueuedPublish): void {
    const { maxQueuedMessages, maxQueuedBytes, overflow: usual } = this.#host.options.outbound
    const overflow = item.options.overflow ?? usual
    const drops = overflow === 'drop-oldest' && this.#ends.sentBytes + item.size <= maxQueuedBytes
    const waits = overflow === 'wait'
    // One that is larger than the limit waits, and lets others wait, as if it were not.
    const counted = (size: number): number => (waits ? Math.min(size, maxQueuedBytes) : size)
    const bytes = counted(this.#ends.sentBytes) + counted(item.size)
    while (this.#backlog.exceeds(this.#host.options.outbound, bytes, waits ? 2 : 1)) {
      const oldest = drops ? this.#backlog.oldest : undefined
      const why = `${this.#backlog.size} messages wait (outbound.maxQueuedMessages ${maxQueuedMessages}), ${this.#backlog.bytes + this.#ends.sentBytes} bytes (outbound.maxQueuedBytes ${maxQueuedBytes})`
      const error = overflow.startsWith('drop')
        ? optionError(
            'ERR_DROPPED',
            'outbound',
            `dropped by outbound.overflow '${overflow}': ${why}`,
          )
        : optionError(
            'ERR_QUEUE_FULL',
            'outbound',
            `queue full: ${why}; await client.writable between publishes`,
          )
      if (oldest === undefined) throw error
      this.#drop(oldest, error)
    }
  }

  /** Gives up what waits. */
  giveUp(error: MqttError, wanted: (item: QueuedPublish) => boolean = () => true): void {
    for (const item of this.#backlog.select(wanted)) this.#drop(item, error)
  }

  /** The caller wants it no more: what was sent goes on without him. */
  abort(item: QueuedPublish): void {
    const { signal } = item.options
    if (item.sent) return this.#ends.tell(item, aborted(signal, 'unknown'))
    this.#drop(item, aborted(signal, item.again ? 'unknown' : 'not-sent'))
  }

  #drop(item: QueuedPublish, error: MqttError): void {
    this.#backlog.remove(item)
    this.#ends.fail(item, error)
  }
}
