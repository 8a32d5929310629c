/**
 * What publishing, and the rest of the client, see of a session that is kept in a store. Types only; `durable/` implements it.
 */

import type { EntryPublisher } from '../access.js'
import type { PacketWriter } from '../connection/packet-writer.js'
import type { Receipt, Recovered } from '../options/index.js'
import type { PublishHost } from './ports.js'
import type { QueuedPublish } from './queued-publish.js'

/** Keeps what is in flight where it survives the process. */
export interface Keeper extends EntryPublisher {
  /** Stores a message under its identifier, and then writes it. @throws MqttError ERR_PACKET_TOO_LARGE, as the writer would */
  keep(item: QueuedPublish, output: PacketWriter): void
  /** Its exchange is over, with an error or a receipt. What is not known here is ignored. */
  forget(item: QueuedPublish, error: unknown, receipt: Receipt | undefined): void
  /** The connection ended over it: how often it did is kept. Fulfils when that is safe, or was given up; undefined where there is nothing to write. */
  suspect(item: QueuedPublish): Promise<void> | undefined
  /** A connection is up. Gives what an earlier process had left, at the first. */
  handleConnected(): Recovered | undefined
  /** Fulfils when everything asked for is safe, or was given up. */
  idle(): Promise<void>
  /** The client is over: what is stored stays. */
  stop(): void
}

/** A client whose publishes may be kept. */
export type StoringPublishHost = PublishHost & {
  readonly publishQueue: {
    /** Undefined without the `store` option, and until the store was read. */
    readonly keeper: Keeper | undefined
  }
}
