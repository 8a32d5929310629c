/**
 * Creates messages from what is read: in memory of their own, or lent from the read buffer.
 *
 * A view must show what was read last. The messages have no consumer yet.
 */

import { type Piece, Pieces } from '../../common/message-memory.js'
import type { PublishView } from '../../wire/publish.js'
import type { Consumer } from './consumer.js'
import { BorrowedMessage, type DeliveredMessage, OwnedMessage } from './message.js'
import type { ReadRoute } from './recipients.js'
import type { Settler } from './shared-outcome.js'

const noSettler: Settler = { settle: () => false, id: undefined }

/** Creates the messages of one client. */
export class MessageFactory {
  /** Kept so that the code compiled for messages stays while there are none. */
  static readonly examples = [
    new OwnedMessage(0, noSettler, false),
    new BorrowedMessage(0, noSettler, true),
  ] as const
  /** Receives the outcomes of the messages. */
  settler: Settler
  readonly #pieces = new Pieces()
  /** The read buffer, while messages may borrow from it. */
  window: Piece | undefined
  /** Where the received bytes end in the `bytes` of the view. */
  limit = 0

  constructor(settler: Settler) {
    this.settler = settler
  }

  /** The read buffer belongs to its owner again. */
  handleReadEnd(): void {
    this.window = undefined
    this.#pieces.forget()
  }

  /**
   * Shows a message in the read buffer, or in a shared piece. Only to a consumer that `mayShow`.
   */
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

  /** A message for one consumer, owned or borrowed as it asked. */
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

  /** A message that has no reader yet. */
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
