/**
 * The events of a client, by name. Types only.
 */
import type { MqttError } from '../errors.js'
import type { ConnackPacket, DisconnectPacket, Packet } from '../wire/packets.js'
import type { ClientState, Subscription } from './api.js'
import type { Message } from './message.js'
import type { Negotiated } from './session/limits.js'

/** Event name to event object. */
export interface ClientEvents {
  /** Each transition, exactly once. */
  state: { readonly state: ClientState; readonly previous: ClientState }
  /** Right before a transport is opened. */
  dial: { readonly attempt: number; readonly endpoint: string }
  connect: { readonly connack: ConnackPacket; readonly negotiated: Negotiated; readonly sessionPresent: boolean; readonly endpoint: string }
  /** One attempt failed. */
  connecterror: { readonly error: MqttError; readonly endpoint: string; readonly attempt: number }
  /** The connection is over; one for each `connect`. `cause` is undefined after our own `disconnect()`. */
  disconnect: { readonly cause: MqttError | undefined }
  /** The server said goodbye; comes before `disconnect`. */
  serverdisconnect: { readonly packet: DisconnectPacket; readonly error: MqttError }
  /** Messages that were dropped unread (in, counted together for a second), or a publish that failed (out). */
  drop: { readonly direction: 'in' | 'out'; readonly topic: string; readonly count: number; readonly error: MqttError | undefined }
  /** Acknowledgements make no progress because of the oldest message of this subscription; undefined when nobody here holds it. */
  stalled: { readonly subscription: Subscription | undefined; readonly age: number }
  /** A message that no subscription here was made for; it was acknowledged. */
  unclaimed: { readonly message: Message }
  /** A handler gave up on a message. */
  error: { readonly error: MqttError }
  /** Every packet; CONNECT and AUTH without their secrets. Costs nothing unless listened to. */
  packet: { readonly direction: 'in' | 'out'; readonly packet: Packet }
}
