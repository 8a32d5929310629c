/**
 * The interface of a stored session, as publishing sees it. Types only; `durable/` implements it.
 */

import type { EntryPublisher } from '../access.js'
import type { PacketWriter } from '../connection/packet-writer.js'
import type { Receipt, Recovered } from '../options/index.js'
import type { PublishHost } from './ports.js'
import type { QueuedPublish } from './queued-publish.js'

/** Keeps publishes in flight in a store, so that they survive the process. */
export interface Keeper extends EntryPublisher {
  /**
   * Stores a message under its packet identifier, then writes it. @throws MqttError
   * ERR_PACKET_TOO_LARGE, as the writer would
   */
  keep(item: QueuedPublish, output: PacketWriter): void
  /** The exchange ended with a receipt or an error; unknown items are ignored. */
  forget(item: QueuedPublish, error: unknown, receipt: Receipt | undefined): void
  /**
   * A connection ended while this message was unanswered: stores how often. Resolves when that is
   * written or given up; undefined when there is nothing to write.
   */
  suspect(item: QueuedPublish): Promise<void> | undefined
  /** A connection is up. The first call returns what an earlier process left. */
  handleConnected(): Recovered | undefined
  /** Resolves when all pending writes are done or given up. */
  idle(): Promise<void>
  /** The client has ended: what is stored stays. */
  stop(): void
}

/** A client whose publishes may be stored. */
export type StoringPublishHost = PublishHost & {
  readonly publishing: {
    /** Undefined without the `store` option, and until the store has been read. */
    readonly keeper: Keeper | undefined
  }
}
