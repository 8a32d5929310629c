/**
 * The memory of callers: once a publish has settled, nothing reads it again.
 *
 * It may assume that the writer hands no memory of callers to a transport, so that only what it has not handed over yet is read later. It must
 * never copy more than `maxQueuedBytes` for one message.
 */

import { broken } from '../session/refusal.js'
import type { PublishingHost, PublishWriter } from './ports.js'
import type { QueuedPublish } from './queued-publish.js'

/** Payloads that belong to callers. */
export class LentBytes {
  /** The latest message, and what it was written to. */
  #item: QueuedPublish | undefined
  #output: PublishWriter | undefined
  readonly #host: PublishingHost

  constructor(host: PublishingHost) {
    this.#host = host
  }

  /** A message is written now. */
  handleSent(item: QueuedPublish, output: PublishWriter): void {
    this.#item = item
    this.#output = output
  }

  /** The caller has the bytes back: what is to be sent of them, now or `again`, is copied. Beyond the limit it is not sent, and the link is cut. */
  giveBack(item: QueuedPublish, again: boolean): void {
    const { size, payload } = item
    const output = this.#item === item && this.#output?.source === payload ? this.#output : undefined
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
}
