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
