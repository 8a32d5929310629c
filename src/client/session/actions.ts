/**
 * Control-plane output of the session: what its driver must do. Taken from `Session.actions`, in
 * the order in which it must take effect.
 */
import type { MqttError } from '../../errors.js'
import type {
  AuthPacket,
  ClientPacket,
  ConnackPacket,
  DisconnectPacket,
  SubackPacket,
  UnsubackPacket,
} from '../../wire/packets.js'

export type Action =
  /** Encode and send. */
  | { readonly type: 'send'; readonly packet: ClientPacket }
  /**
   * The connection is up. `lost`: the server has no session although this client had one; `stale`:
   * number of its incoming messages that were not acknowledged yet.
   */
  | {
      readonly type: 'connected'
      readonly connack: ConnackPacket
      readonly lost: boolean
      readonly stale: number
    }
  /** The server refused the connection: close the transport without sending anything. */
  | { readonly type: 'refused'; readonly connack: ConnackPacket }
  /** The server continues or ends an authentication exchange. */
  | { readonly type: 'auth'; readonly packet: AuthPacket }
  /** The answer to a SUBSCRIBE or UNSUBSCRIBE in flight; its identifier is free again. */
  | { readonly type: 'answered'; readonly packet: SubackPacket | UnsubackPacket }
  /** The server ended the connection. */
  | { readonly type: 'server-disconnect'; readonly packet: DisconnectPacket }
  /**
   * End the connection because of `error`, after a DISCONNECT with `reasonCode` if there is one.
   */
  | { readonly type: 'close'; readonly error: MqttError; readonly reasonCode: number | undefined }
  /** The server exceeded our Receive Maximum for the first time on this connection; tolerated. */
  | { readonly type: 'exceeded' }

/**
 * A change to the persistent session state (section 4.1). `put-release`: our PUBREL; `put-inbound`:
 * the identifier of a received QoS 2 message; `delete-inbound`: removed after its PUBREL.
 */
export type PersistOperation = 'put-release' | 'put-inbound' | 'delete-inbound'

/**
 * The store as the session sees it: what must be stored before it is acknowledged or sent
 * [MQTT-4.1.0-1]. `forgetful` is used without a store.
 */
export interface PersistPort {
  /** False when no write has to be requested. */
  readonly durable: boolean
  /**
   * True when repeats of messages from earlier connections are recognised by content; those then
   * get tickets like new messages.
   */
  readonly recognises?: boolean
  /**
   * Requests a write. `granted` is called once it is stored, unless the session is reset before.
   * Only when `durable`.
   */
  request(operation: PersistOperation, id: number, granted: () => void): void
  /** PINGRESP came: the server has read everything sent before the PINGREQ. */
  confirm(): void
  /** The session is gone: its stored state is void. */
  reset(): void
}

const nothing = (): undefined => undefined

/** Stores nothing. */
export const forgetful: PersistPort = {
  durable: false,
  request: nothing,
  confirm: nothing,
  reset: nothing,
}

/**
 * Acknowledgements to be written, packed as for `writePackedAck`. The queue is drained after each
 * read, which bounds it. Its array is reused, so acknowledging allocates nothing.
 */
export class AckQueue {
  /** The entries from `head` to `tail` wait. */
  readonly entries: number[] = []
  head = 0
  tail = 0

  get length(): number {
    return this.tail - this.head
  }

  push(packetType: number, id: number, reasonCode: number): void {
    if (this.head === this.tail) this.head = this.tail = 0
    this.entries[this.tail++] = (packetType << 24) | (reasonCode << 16) | id
  }

  /** Removes all entries and frees the array. */
  clear(): void {
    this.entries.length = this.head = this.tail = 0
  }
}
