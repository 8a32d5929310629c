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
  /** Topic Name that it was published to. */
  readonly topic: string
  /** 1 or 2: nothing else is in flight. */
  readonly qos: QoS
  /** The identifier that it had. */
  readonly packetId: number
}

/** A publish in flight that was given up. */
export interface RejectedInFlight extends InFlight {
  /** What its promise rejected with. */
  readonly error: MqttError
}

/** What an earlier process had left in the store. */
export interface Recovered {
  /** Publishes that were sent, or about to be, and lack their last acknowledgement. Each ends in a `recovered` event. */
  readonly outbound: number
  /** Incoming messages whose identifiers are known, so that they are recognised when the server sends them again. */
  readonly inbound: number
}

/** Event name to listener; those that are left out or undefined are not there. */
export type ClientListeners = {
  readonly [K in keyof ClientEvents]?: ((event: ClientEvents[K]) => void) | undefined
}

/** Event name to event object. */
export interface ClientEvents {
  /** Each transition, exactly once. */
  state: {
    /** Where the client stands now. */
    readonly state: ClientState
    /** Where it stood before. */
    readonly previous: ClientState
  }
  /** An attempt will be made, `delay` milliseconds from now. */
  reconnecting: {
    /** Counts the attempts since a connection was stable, from 1. */
    readonly attempt: number
    /** Milliseconds. */
    readonly delay: number
    /** URL of the endpoint, without user-info and query. */
    readonly endpoint: string
  }
  /** Right before a transport is opened. */
  dial: {
    /** Counts the attempts since a connection was stable, from 1. */
    readonly attempt: number
    /** URL of the endpoint, without user-info and query. */
    readonly endpoint: string
  }
  /** A connection is up: CONNACK said yes. */
  connect: {
    /** The packet (section 3.2). */
    readonly connack: ConnackPacket
    /** What holds for this connection. */
    readonly negotiated: Negotiated
    /** The server goes on with a session that it had. */
    readonly sessionPresent: boolean
    /** URL of the endpoint, without user-info and query. */
    readonly endpoint: string
    /** With a `store`, on the first connection: what an earlier process had left. */
    readonly recovered: Recovered | undefined
    /** Under `protocolVersion: 'auto'` on MQTT 3.1.1: names of the options that are set and that it does not have. Else empty. */
    readonly dropped: readonly string[]
  }
  /** One attempt failed. */
  connecterror: {
    /** Why. */
    readonly error: MqttError
    /** URL of the endpoint, without user-info and query. */
    readonly endpoint: string
    /** Counts the attempts since a connection was stable, from 1. */
    readonly attempt: number
  }
  /** The connection is over; one for each `connect`. */
  disconnect: {
    /** Why; undefined after our own `disconnect()`, and where we replace the connection. */
    readonly error: MqttError | undefined
    /** @deprecated The same object as `error`, under its former name; it goes with the next version. */
    readonly cause: MqttError | undefined
    /** Why we replace it: the `reason` of `reconnect()`, or that credentials expire. Undefined where we do not. */
    readonly reason: string | undefined
  }
  /** The server said goodbye; comes before `disconnect`. */
  serverdisconnect: {
    /** The packet (section 3.14). */
    readonly packet: DisconnectPacket
    /** The same as an error, with the reason code. */
    readonly error: MqttError
  }
  /** The server has no session for us any more. What was in flight was published again or rejected, as `onSessionLost` says. */
  sessionlost: {
    /** The server did not have it (`'absent'`), or cannot have it any more (`'expired'`). */
    readonly cause: 'absent' | 'expired'
    /** Publishes that are sent again. */
    readonly republished: readonly InFlight[]
    /** Publishes that were given up. */
    readonly rejected: readonly RejectedInFlight[]
    /** Incoming messages that were in hand: their `ack()` gives false. */
    readonly stale: number
  }
  /** Messages that were dropped unread (in, counted together for a second), one that was too large to be read (in), or a publish that failed (out). */
  drop: {
    /** Whether they came from the server or were to go there. */
    readonly direction: 'in' | 'out'
    /** Topic Name of one of them. */
    readonly topic: string
    /** How many. */
    readonly count: number
    /** Why a publish failed; undefined for incoming messages. */
    readonly error: MqttError | undefined
    /** `'too-large'`: an incoming message above `maximumPacketSize` or `memoryBudget`; each has an event of its own. Undefined for all others. */
    readonly reason?: 'too-large' | undefined
    /** Of a message that was too large; undefined for all others. */
    readonly qos?: QoS | undefined
    /** Bytes of a packet that was too large; undefined for all others. */
    readonly size?: number | undefined
  }
  /** Acknowledgements make no progress. */
  stalled: {
    /** `'in'`: ours, for the server's messages. `'out'`: the server's, for ours. */
    readonly direction: 'in' | 'out'
    /** The subscription that holds the oldest message; undefined where no subscription here holds it, and for `'out'`. */
    readonly subscription: Subscription | undefined
    /** Milliseconds without progress. */
    readonly age: number
    /** Messages that wait. */
    readonly inFlight: number
  }
  /**
   * A timer of the connection is late by half of the keep-alive or more: the page is hidden, the machine slept, or the program left no time. A server
   * ends a connection that is silent for so long. Emitted when the timer runs, or when the connection ends before.
   */
  late: {
    /** Milliseconds. */
    readonly lateness: number
    /** Seconds, as agreed with the server (section 3.1.2.10). */
    readonly keepAlive: number
  }
  /** A publish of an earlier process, which the store had kept, has ended: one for each that `connect` counted. */
  recovered: {
    /** Topic Name that it was published to. */
    readonly topic: string
    /** 1 or 2: nothing else is in flight. */
    readonly qos: QoS
    /** The identifier that it had. */
    readonly packetId: number
    /** What it was acknowledged with; undefined where it failed. */
    readonly receipt: Receipt | undefined
    /** Why it failed; `outcome: 'unknown'` where it may have arrived. Undefined where it did not. */
    readonly error: MqttError | undefined
  }
  /** A record of the session in the store was damaged; it was put aside, and the session goes on without it. */
  storecorrupt: {
    /** Its key in the store, before it was put aside. */
    readonly key: string
  }
  /** A message that no subscription here was made for; it was acknowledged. */
  unclaimed: {
    /** The message. */
    readonly message: Message
  }
  /** A payload on a typed topic could not be decoded. */
  invalid: {
    /** Topic Name that it came to. */
    readonly topic: string
    /** What is wrong with it: `ERR_INVALID_PAYLOAD` with `issues`. */
    readonly error: MqttError
    /** Its first 256 bytes. */
    readonly start: Bytes
  }
  /**
   * A handler gave up on a message, or a subscription could not be brought back, or not be ended on the server when its reader left; or a message of the
   * server whose contents break a rule was read past, after it had ended three connections.
   */
  error: {
    /** What happened, with its cause. */
    readonly error: MqttError
  }
  /** Every packet; CONNECT and AUTH without their secrets. Costs nothing unless listened to. */
  packet: {
    /** From the server, or to it. */
    readonly direction: 'in' | 'out'
    /** The packet, decoded. */
    readonly packet: Packet
  }
}

/** Where the client stands. */
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

/** How a listener is added. */
export interface ListenerOptions {
  /** Remove it after the first event. */
  readonly once?: boolean | undefined
  /** Remove it when this signal aborts. */
  readonly signal?: AbortSignal | undefined
}
