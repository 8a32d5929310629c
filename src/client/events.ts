/**
 * The events of a client, by name. Types only.
 */
import type { MqttError } from '../errors.js'
import type { ConnackPacket, DisconnectPacket, Packet, QoS } from '../wire/packets.js'
import type { ClientState, Subscription } from './api.js'
import type { Message } from './message.js'
import type { Negotiated } from './session/limits.js'

/** A publish that was sent and not acknowledged. */
export interface InFlight {
  readonly topic: string
  readonly qos: QoS
  /** The identifier that it had. */
  readonly packetId: number
}

/** Event name to event object. */
export interface ClientEvents {
  /** Each transition, exactly once. */
  state: { readonly state: ClientState; readonly previous: ClientState }
  /** An attempt will be made, `delay` milliseconds from now. */
  reconnecting: { readonly attempt: number; readonly delay: number; readonly endpoint: string }
  /** Right before a transport is opened. */
  dial: { readonly attempt: number; readonly endpoint: string }
  connect: { readonly connack: ConnackPacket; readonly negotiated: Negotiated; readonly sessionPresent: boolean; readonly endpoint: string }
  /** One attempt failed. */
  connecterror: { readonly error: MqttError; readonly endpoint: string; readonly attempt: number }
  /** The connection is over; one for each `connect`. `cause` is undefined after our own `disconnect()`. */
  disconnect: { readonly cause: MqttError | undefined }
  /** The server said goodbye; comes before `disconnect`. */
  serverdisconnect: { readonly packet: DisconnectPacket; readonly error: MqttError }
  /**
   * The server has no session for us any more (`'absent'`), or cannot have one (`'expired'`). What was in flight was published anew or rejected, as
   * `onSessionLost` says; `stale` incoming messages were in hand: their `ack()` gives false.
   */
  sessionlost: {
    readonly cause: 'absent' | 'expired'
    readonly republished: readonly InFlight[]
    readonly rejected: readonly (InFlight & { readonly error: MqttError })[]
    readonly stale: number
  }
  /** Messages that were dropped unread (in, counted together for a second), or a publish that failed (out). */
  drop: { readonly direction: 'in' | 'out'; readonly topic: string; readonly count: number; readonly error: MqttError | undefined }
  /**
   * Acknowledgements make no progress since `age` milliseconds. `'in'`: ours, because of the oldest message of this subscription; undefined when
   * nobody here holds it. `'out'`: the server's, for messages of ours. `inFlight` messages wait.
   */
  stalled: { readonly direction: 'in' | 'out'; readonly subscription: Subscription | undefined; readonly age: number; readonly inFlight: number }
  /**
   * A timer of the connection is `lateness` milliseconds late, half of `keepAlive` (seconds) or more: the page is hidden, the machine slept, or the
   * program left no time. A server ends a connection that is silent for so long. Told when the timer runs, or when the connection ends before.
   */
  late: { readonly lateness: number; readonly keepAlive: number }
  /** A message that no subscription here was made for; it was acknowledged. */
  unclaimed: { readonly message: Message }
  /** A handler gave up on a message, or a subscription could not be brought back. */
  error: { readonly error: MqttError }
  /** Every packet; CONNECT and AUTH without their secrets. Costs nothing unless listened to. */
  packet: { readonly direction: 'in' | 'out'; readonly packet: Packet }
}
