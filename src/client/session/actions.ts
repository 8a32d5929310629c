/**
 * What the session asks its driver to do: the control plane's output, taken out of `Session.actions`.
 *
 * Types only. Actions are queued in the order in which they must take effect.
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
  /** The connection is up. `lost`: the server has forgotten a session that we knew; `stale` incoming messages of it were in hand. */
  | {
      readonly type: 'connected'
      readonly connack: ConnackPacket
      readonly lost: boolean
      readonly stale: number
    }
  /** The server said no; close the transport, nothing is sent any more. */
  | { readonly type: 'refused'; readonly connack: ConnackPacket }
  /** The server goes on with, or ends, an authentication exchange. */
  | { readonly type: 'auth'; readonly packet: AuthPacket }
  /** The answer to a SUBSCRIBE or UNSUBSCRIBE that is in flight; its identifier is free again. */
  | { readonly type: 'answered'; readonly packet: SubackPacket | UnsubackPacket }
  /** The server ended the connection. */
  | { readonly type: 'server-disconnect'; readonly packet: DisconnectPacket }
  /** End the connection because of `error`; a DISCONNECT with `reasonCode` goes first where it is given. */
  | { readonly type: 'close'; readonly error: MqttError; readonly reasonCode: number | undefined }
  /** The server exceeded our Receive Maximum, for the first time on this connection; it is borne with. */
  | { readonly type: 'exceeded' }

/**
 * A change to the persistent session state (section 4.1): `put-release` our PUBREL, `put-inbound` the identifier of an incoming QoS 2 message that was
 * taken, `delete-inbound` after its PUBREL.
 */
export type PersistOperation = 'put-release' | 'put-inbound' | 'delete-inbound'

/**
 * What must be safe before it is acknowledged or sent [MQTT-4.1.0-1]: the session's side of a store. `forgetful` stands here without one.
 */
export interface PersistPort {
  /** False where nothing has to be asked for. */
  readonly durable: boolean
  /** True where repeats of what was received on earlier connections are found by their content: they get tickets as messages do. */
  readonly recognises?: boolean
  /** Asks for a write; `granted` is called once it is safe, unless the session is reset before. Only where `durable`. */
  request(operation: PersistOperation, id: number, granted: () => void): void
  /** PINGRESP came: the server has read what was sent before PINGREQ. */
  confirm(): void
  /** The session is gone: what is kept of it is void. */
  reset(): void
}

const nothing = (): undefined => undefined

/** Keeps nothing. */
export const forgetful: PersistPort = {
  durable: false,
  request: nothing,
  confirm: nothing,
  reset: nothing,
}

/**
 * Acknowledgement packets that wait to be written, packed as `writePackedAck` takes them. It is drained after each read, so the packets of one read bound
 * it; its array is kept, so a turn of acknowledgements allocates nothing.
 */
export class AckQueue {
  /** Those from `head` to `tail` wait: taking the oldest raises `head`. */
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

  /** Forgets all of them, and the array. */
  clear(): void {
    this.entries.length = this.head = this.tail = 0
  }
}
