/**
 * The events of a client, by name. Types only.
 */
import type { MqttError } from '../../errors.js'
import type { Bytes, ConnackPacket, DisconnectPacket, Packet, QoS } from '../../wire/packets.js'
import type { Message } from './message.js'
import type { Negotiated } from './negotiated.js'
import type { Receipt } from './publish.js'
import type { Subscription } from './subscribe.js'

/** A publish that was sent and not acknowledged. */
export interface InFlight {
  /** The topic it was published to. */
  readonly topic: string
  /** 1 or 2; QoS 0 is never in flight. */
  readonly qos: QoS
  /** Its packet identifier. */
  readonly packetId: number
}

/** A publish in flight that was given up. */
export interface RejectedInFlight extends InFlight {
  /** The error its promise rejected with. */
  readonly error: MqttError
}

/** What an earlier process left in the store. */
export interface Recovered {
  /**
   * Publishes that were sent or about to be sent, and lack their last acknowledgement. Each ends in
   * a `recovered` event.
   */
  readonly outbound: number
  /** Incoming messages with a stored identifier, so that repeats are recognised. */
  readonly inbound: number
}

/** Listeners by event name. */
export type ClientListeners = {
  readonly [K in keyof ClientEvents]?: ((event: ClientEvents[K]) => void) | undefined
}

/** Event name to event object. */
export interface ClientEvents {
  /** The client's state changed; emitted once for each transition. */
  state: {
    /** The new state. */
    readonly state: ClientState
    /** The previous state. */
    readonly previous: ClientState
  }
  /** An attempt will be made, `delay` milliseconds from now. */
  reconnecting: {
    /** Number of the attempt since a connection was stable, from 1. */
    readonly attempt: number
    /** Milliseconds. */
    readonly delay: number
    /** URL of the endpoint, without user-info and query. */
    readonly endpoint: string
  }
  /** A transport is about to be opened. */
  dial: {
    /** Number of the attempt since a connection was stable, from 1. */
    readonly attempt: number
    /** URL of the endpoint, without user-info and query. */
    readonly endpoint: string
  }
  /** A connection is up: CONNACK accepted it. */
  connect: {
    /** The packet (section 3.2). */
    readonly connack: ConnackPacket
    /** The values in effect for this connection. */
    readonly negotiated: Negotiated
    /** The server resumed an existing session. */
    readonly sessionPresent: boolean
    /** URL of the endpoint, without user-info and query. */
    readonly endpoint: string
    /** With a `store`, on the first connection: what an earlier process left. */
    readonly recovered: Recovered | undefined
    /**
     * With `protocolVersion: 'auto'` on MQTT 3.1.1: names of given options that it does not have.
     * Otherwise empty.
     */
    readonly dropped: readonly string[]
  }
  /** One attempt failed. */
  connecterror: {
    /** The reason. */
    readonly error: MqttError
    /** URL of the endpoint, without user-info and query. */
    readonly endpoint: string
    /** Number of the attempt since a connection was stable, from 1. */
    readonly attempt: number
  }
  /** The connection ended; once for each `connect`. */
  disconnect: {
    /**
     * The reason; undefined after our own `disconnect()`, and when the client replaces the
     * connection.
     */
    readonly error: MqttError | undefined
    /**
     * @deprecated The same object as `error`, under its former name; it will be removed in the next
     * version.
     */
    readonly cause: MqttError | undefined
    /**
     * Why the client replaces the connection: the `reason` of `reconnect()`, or expiring
     * credentials. Otherwise undefined.
     */
    readonly reason: string | undefined
  }
  /** The server sent DISCONNECT; emitted before `disconnect`. */
  serverdisconnect: {
    /** The packet (section 3.14). */
    readonly packet: DisconnectPacket
    /** The same as an error, with the reason code. */
    readonly error: MqttError
  }
  /**
   * The server no longer has the session. Publishes in flight are published again or rejected, as
   * `onSessionLost` says.
   */
  sessionlost: {
    /** The server did not have it (`'absent'`), or it has expired there (`'expired'`). */
    readonly cause: 'absent' | 'expired'
    /** Publishes that are sent again. */
    readonly republished: readonly InFlight[]
    /** Publishes that were rejected. */
    readonly rejected: readonly RejectedInFlight[]
    /** Number of incoming messages not yet acknowledged; their `ack()` returns false. */
    readonly stale: number
  }
  /**
   * Messages were dropped unread (in, counted together for up to a second), one was too large to be
   * read (in), or a publish failed (out).
   */
  drop: {
    /** `'in'` for messages from the server, `'out'` for publishes. */
    readonly direction: 'in' | 'out'
    /** The topic of one of them. */
    readonly topic: string
    /** How many. */
    readonly count: number
    /** Why a publish failed; undefined for incoming messages. */
    readonly error: MqttError | undefined
    /**
     * `'too-large'`: an incoming message exceeded `maximumPacketSize` or `memoryBudget`; each one
     * gets its own event. Otherwise undefined.
     */
    readonly reason?: 'too-large' | undefined
    /** QoS of a message that was too large; otherwise undefined. */
    readonly qos?: QoS | undefined
    /** Bytes of a packet that was too large; otherwise undefined. */
    readonly size?: number | undefined
  }
  /** Acknowledgements make no progress. */
  stalled: {
    /**
     * `'in'`: the application does not acknowledge the server's messages. `'out'`: the server does
     * not acknowledge ours.
     */
    readonly direction: 'in' | 'out'
    /** The subscription that holds the oldest message; undefined if none does, and for `'out'`. */
    readonly subscription: Subscription | undefined
    /** Milliseconds without progress. */
    readonly age: number
    /** Unacknowledged messages. */
    readonly inFlight: number
  }
  /**
   * A timer of the connection is late by half of the keep-alive or more: the page is hidden, the
   * machine slept, or the program blocked the event loop. A server ends a connection after such a
   * silence. Emitted when the timer runs, or when the connection ends before that.
   */
  late: {
    /** Milliseconds. */
    readonly lateness: number
    /** Keep-alive in seconds, as negotiated with the server (section 3.1.2.10). */
    readonly keepAlive: number
  }
  /**
   * A publish of an earlier process, kept in the store, has ended: one event for each that
   * `connect` counted.
   */
  recovered: {
    /** The topic it was published to. */
    readonly topic: string
    /** 1 or 2; QoS 0 is never in flight. */
    readonly qos: QoS
    /** Its packet identifier. */
    readonly packetId: number
    /** The acknowledgement; undefined when it failed. */
    readonly receipt: Receipt | undefined
    /** Why it failed; `outcome: 'unknown'` if it may have arrived. Otherwise undefined. */
    readonly error: MqttError | undefined
  }
  /**
   * A record of the session in the store was damaged. It was set aside, and the session continues
   * without it.
   */
  storecorrupt: {
    /** Its key in the store before it was set aside. */
    readonly key: string
  }
  /** A message without a matching subscription; it was acknowledged. */
  unclaimed: {
    /** The message. */
    readonly message: Message
  }
  /** A payload on a typed topic could not be decoded. */
  invalid: {
    /** The topic of the message. */
    readonly topic: string
    /** `ERR_INVALID_PAYLOAD` with `issues`. */
    readonly error: MqttError
    /** The first 256 bytes of the payload. */
    readonly start: Bytes
  }
  /**
   * A handler gave up on a message; a subscription could not be restored, or not be unsubscribed
   * when its reader left; or an incoming message that breaks a rule was skipped after it had ended
   * three connections.
   */
  error: {
    /** The error, with its cause. */
    readonly error: MqttError
  }
  /** Every packet; CONNECT and AUTH without their secrets. No cost without a listener. */
  packet: {
    /** From the server, or to it. */
    readonly direction: 'in' | 'out'
    /** The packet, decoded. */
    readonly packet: Packet
  }
}

/** The state of a client. */
export type ClientState =
  | 'idle'
  | 'connecting'
  | 'connected'
  | 'reconnecting'
  | 'disconnecting'
  | 'closed'

/** Removes a listener; also works as a disposable. */
export interface Unlisten extends Disposable {
  (): void
}

/** Options of `on`. */
export interface ListenerOptions {
  /** Remove it after the first event. */
  readonly once?: boolean | undefined
  /** Remove it when this signal aborts. */
  readonly signal?: AbortSignal | undefined
}
