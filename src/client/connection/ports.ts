/**
 * What a connection needs of its client. Types only; `lifecycle/core.ts` implements it.
 */
import type { MqttError } from '../../errors.js'
import type { FrameScanner } from '../../wire/frames.js'
import type { ConnackPacket, Packet, Properties } from '../../wire/packets.js'
import type { ClientContext } from '../context.js'
import type { Action } from '../session/actions.js'
import type { MessageTaker } from './message-taker.js'

/** The client that a connection belongs to. */
export interface ConnectionHost extends ClientContext {
  /** How many filters are subscribed to. */
  readonly registry: { readonly filters: number }
  readonly links: {
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
    readonly unacknowledged: {
      /** What CONNECT waits for. */
      readonly counting: Promise<void> | undefined
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
