/**
 * What publishing needs of the other rooms. Types only; `lifecycle/` implements the owner, `connection/` the writer.
 */
import type { MqttError } from '../../errors.js'
import type { ClientContext } from '../lifecycle/context.js'
import type { Sending } from '../options/check-calls.js'
import type { ClientState } from '../options/index.js'

/** What writes packets on the connection that is up. */
export interface PublishWriter {
  /** False while the transport asks for patience. */
  readonly writable: boolean
  /** Writes a PUBLISH at QoS 0. @throws WireError, MqttError ERR_PACKET_TOO_LARGE; nothing was written then */
  post(topic: string, payload: Uint8Array | string, how: Sending): void
  /** Writes a PUBLISH at QoS 1 or 2, and gives its size in bytes; `again` with DUP. @throws as `post` */
  publish(
    topic: string,
    payload: Uint8Array,
    how: Sending,
    packetId: number,
    again?: boolean,
  ): number
  /** @throws MqttError ERR_PACKET_TOO_LARGE */
  assertFits(size: number): void
  /** Writes what is queued before this turn's synchronous code has ended, once. */
  queueFlush(): void
  /** Calls back when everything that was queued so far has left, or never will. */
  onWritten(callback: (error?: unknown) => void): void
  /** The payload in the middle of being handed over, whose place a copy may take. */
  source: Uint8Array | undefined
}

/** How far the writing has come. */
export interface WriteProgress {
  /** Bytes that have left. */
  readonly left: number
  /** The payload in the middle of being handed over. */
  readonly source: Uint8Array | undefined
  /** Where what was written so far ends: bytes since the connection began. */
  readonly end: number
}

/** The client that publishes. */
export interface PublishingOwner {
  readonly links: {
    /** The connection, while it takes packets of the application. */
    readonly connection: { readonly writer: PublishWriter & WriteProgress } | undefined
    /** Does what the session asks for, after a command given to it. */
    pump(): void
    /** Ends the connection, without a further byte. */
    cut(error: MqttError): void
  }
  readonly states: {
    readonly current: ClientState
    /** True once `disconnect()` began. */
    readonly stopping: boolean
    /** True when the client is closed. */
    readonly ended: boolean
    /** Why it is closed, in words. */
    readonly why: string
  }
  /** Sends what waits, as far as it may. */
  flush(): void
}

/** All of it. */
export type PublishingHost = ClientContext &
  PublishingOwner & { readonly publishQueue: { readonly inFlight: number } }
