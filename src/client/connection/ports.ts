/**
 * What a connection needs from its client. Types only; `lifecycle/core.ts` implements it.
 */

import type { Piece } from '../../common/message-memory.js'
import type { MqttError } from '../../errors.js'
import type { FrameScanner } from '../../wire/frames.js'
import type { ConnackPacket, Packet, Properties } from '../../wire/packets.js'
import type { PublishView } from '../../wire/publish.js'
import type { TopicRecord } from '../../wire/topic-table.js'
import type { ClientContext } from '../context.js'
import type { Action } from '../session/actions.js'

/** The client that a connection belongs to. */
export interface ConnectionHost extends ClientContext {
  /** Number of subscribed filters. */
  readonly subscriptions: { readonly filters: number }
  readonly connections: {
    /** A faster frame scanner; undefined without one, or before it is loaded. */
    readonly scanner: FrameScanner | undefined
    /** Receives incoming messages. */
    readonly inbox: MessageTaker
    /** Undefined unless packets are watched. */
    readonly watch: ((direction: 'in' | 'out', packet: Packet) => void) | undefined
    /** Checks a CONNACK before it is accepted; rejects when it must not be. */
    verify(packet: ConnackPacket): Promise<unknown> | undefined
    /** Called exactly once when the connection ends; without an error after our DISCONNECT. */
    handleClosed(error: MqttError | undefined): void
  }
  /** Outgoing publishes, for their acknowledgements. */
  readonly publishing: {
    readonly sent: {
      /** The last acknowledgement of a publish, in a packet of this type. */
      handleAcknowledged(
        packetType: number,
        packetId: number,
        reasonCode: number,
        properties: Properties | undefined,
      ): void
      /** PUBREC: the server now owns the message. */
      handleReleased(packetId: number, reasonCode: number): void
    }
    /** An identifier has become free. */
    flush(): void
  }
  /** Actions of the session that the connection does not run itself. */
  handleAction(action: Exclude<Action, { type: 'send' | 'close' }>): void
  /** True when something waits to be sent. */
  readonly waiting: boolean
  /** Sends what waits, as far as allowed. */
  flush(): void
}

/** Receives incoming messages: the router, or the inbox of a stored session. */
export interface MessageTaker {
  /** Consumers that borrow messages from read buffers. */
  readonly borrowers: { readonly size: number }
  /**
   * Copies waiting messages out of memory that they alone would keep alive; out of read windows
   * only with `must`.
   */
  moveOut(must: boolean): void
  /** The messages of a read begin. `window` is its buffer, when it may be lent. */
  handleRead(window: Piece | undefined): void
  /** The messages of this read were taken; its buffer belongs to its owner again. */
  handleReadEnd(): void
  /** A message came in; `limit` is where the received bytes end in the `bytes` of the view. */
  handleMessage(view: PublishView, record: TopicRecord, ticket: number, limit: number): void
  /** A message was too large: the view shows only the part before its payload. */
  handleTooLarge(view: PublishView, topic: string, size: number): void
  /** A message came in again that is being handled or was already received. */
  handleRepeat(): void
}
