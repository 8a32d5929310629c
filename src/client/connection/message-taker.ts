/**
 * Where the messages of a connection go: the router, or what stores them first. Types only.
 */

import type { Piece } from '../../common/message-memory.js'
import type { PublishView } from '../../wire/publish.js'
import type { TopicRecord } from '../../wire/topic-table.js'

/** Where messages go. */
export interface MessageTaker {
  /** Who borrows messages: memory that reads go into is lent to them. */
  readonly borrowers: { readonly size: number }
  /** Messages that wait leave memory that they may keep alive by themselves; read windows only when they must. */
  moveOut(must: boolean): void
  /** The messages of a read begin. `window` is what it went into, where that may be lent. */
  handleRead(window: Piece | undefined): void
  /** They were taken, and what was read belongs to its owner again. */
  handleReadEnd(): void
  /** A message came in; `limit` is where what the view's bytes hold of the stream ends. */
  handleMessage(view: PublishView, record: TopicRecord, ticket: number, limit: number): void
  /** One came in that is too large: all that the view shows is what stands before its payload. */
  handleTooLarge(view: PublishView, topic: string, size: number): void
  /** A message came in again that is in hand or was received. */
  handleRepeat(): void
}
