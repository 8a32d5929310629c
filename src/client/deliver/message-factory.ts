/**
 * Makes messages of what is read, in memory that they may keep: copied out of the read, or lent where it lies.
 *
 * It may assume that a view shows what was read last. What it makes has no owner yet.
 */

import { type Piece, Pieces } from '../../common/message-memory.js'
import type { PublishView } from '../../wire/publish.js'
import type { Consumer } from './consumer.js'
import { BorrowedMessage, type DeliveredMessage, OwnedMessage } from './message.js'
import type { ReadRoute } from './recipients.js'
import type { Settler } from './settler.js'

/** Makes the messages of one client. */
export class MessageFactory {
  /** Takes the outcomes of what is made. */
  settler: Settler
  readonly #pieces = new Pieces()
  /** What is read from, where messages may be lent in it. */
  window: Piece | undefined
  /** Where what the view's bytes hold of the stream ends. */
  limit = 0

  constructor(settler: Settler) {
    this.settler = settler
  }

  /** What was read belongs to its owner again. */
  handleReadEnd(): void {
    this.window = undefined
    this.#pieces.forget()
  }

  /** Shows a message where it lies, if that can be lent. Only to a consumer that `mayShow`. */
  show(
    view: PublishView,
    topic: string,
    ticket: number,
    entry: ReadRoute,
    consumer: Consumer,
  ): void {
    const window = view.bytes === this.window?.bytes ? this.window : undefined
    const piece = window ?? this.#pieces.lend(view, this.limit)
    consumer.show(view, topic, piece, window === undefined ? this.#pieces.shift : 0, ticket, entry)
  }

  /** A message for one consumer, owned or borrowed as it asks. */
  make(
    view: PublishView,
    topic: string,
    size: number,
    ticket: number,
    entry: ReadRoute,
    consumer: Consumer,
    settler = this.settler,
  ): DeliveredMessage {
    const pieces = this.#pieces
    const borrowed = consumer.config.lifetime === 'borrowed'
    const window =
      borrowed && view.bytes === this.window?.bytes && consumer.config.ack !== 'manual'
        ? this.window
        : undefined
    const piece =
      window ?? (borrowed ? pieces.lend(view, this.limit) : pieces.hold(view, this.limit, false))
    piece.give(consumer.mark, view.payloadEnd - view.propertiesStart)
    const message = new (borrowed ? BorrowedMessage : OwnedMessage)(size, settler, borrowed)
    return message.place(view, topic, piece, window === undefined ? pieces.shift : 0, ticket, entry)
  }

  /** A message without a reader yet. */
  makeUnread(
    view: PublishView,
    topic: string,
    size: number,
    ticket: number,
    entry: ReadRoute | undefined,
  ): DeliveredMessage {
    const piece = this.#pieces.hold(view, view.payloadEnd, false)
    return new OwnedMessage(size, this.settler, false).place(
      view,
      topic,
      piece,
      this.#pieces.shift,
      ticket,
      entry,
    )
  }
}
