/**
 * What a connection needs of its client. Types only; `lifecycle/core.ts` implements it.
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
  /** How many filters are subscribed to. */
  readonly subscriptions: { readonly filters: number }
  readonly connections: {
    /** A scanner that finds frames faster; undefined without one, or before it is loaded. */
    readonly scanner: FrameScanner | undefined
    /** Where messages go. */
    readonly inbox: MessageTaker
    /** Undefined unless packets are watched. */
    readonly watch: ((direction: 'in' | 'out', packet: Packet) => void) | undefined
    /** What a CONNACK has to wait for before it counts; rejects when it is not to be believed. */
    verify(packet: ConnackPacket): Promise<unknown> | undefined
    /** The end of the connection, exactly once. Undefined: orderly, after our DISCONNECT. */
    handleClosed(error: MqttError | undefined): void
  }
  /** Where our messages come from, and their acknowledgements go. */
  readonly publishQueue: {
    readonly sent: {
      /** The last one of a publish: a packet of this type. */
      handleAcknowledged(
        packetType: number,
        packetId: number,
        reasonCode: number,
        properties: Properties | undefined,
      ): void
      /** PUBREC: the message is the server's now. */
      handleReleased(packetId: number, reasonCode: number): void
    }
    /** An identifier is free again. */
    flush(): void
  }
  /** What the session's control plane asks for, but for what the connection does itself. */
  handleAction(action: Exclude<Action, { type: 'send' | 'close' }>): void
  /** Something waits to be sent. */
  readonly waiting: boolean
  /** Sends what waits, as far as it may. */
  flush(): void
}

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
