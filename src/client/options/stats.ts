/**
 * The counters of a client. Types only.
 */
/**
 * Result of `client.stats()`, counted since the client was created; all zero without the `stats`
 * option.
 */
export interface Stats {
  /** Connections that came up. */
  readonly connects: number
  /** Connections that ended. */
  readonly disconnects: number
  /** Failed attempts and lost connections, by error code. */
  readonly failures: Readonly<Record<string, number>>
  /** Attempts to connect since the first connection. */
  readonly reconnectAttempts: number
  /** SUBSCRIBE packets sent. */
  readonly subscribes: number
  /** UNSUBSCRIBE packets sent. */
  readonly unsubscribes: number
  /** Filters, publishes and connections refused by the server. */
  readonly refusals: number
  /** Publishes sent, without repeats. */
  readonly publishesSent: number
  /** QoS 1 and 2 publishes acknowledged by the server. */
  readonly publishesAcked: number
  /** Publishes sent again after a reconnect. */
  readonly publishesReplayed: number
  /** Publishes given up. */
  readonly publishesDropped: number
  /** QoS 1 and 2 publishes that were sent and lack their last acknowledgement. */
  readonly publishesInFlight: number
  /** Publishes waiting to be sent. */
  readonly publishesQueued: number
  /** Messages that came in. */
  readonly received: number
  /** Messages handed to the application. */
  readonly delivered: number
  /** Messages dropped unread. */
  readonly dropped: number
  /** Dropped messages that were too large to be read. */
  readonly tooLarge: number
  /** Repeats of messages that were already received. */
  readonly duplicates: number
  /** Messages without a matching subscription. */
  readonly unclaimed: number
  /** Incoming messages waiting for a reader. */
  readonly unread: number
  /** Subscription Identifiers in messages that no matching subscription has. */
  readonly unknownIdentifiers: number
  /** Messages that a handler gave up on. */
  readonly handlerFailures: number
  /** Acknowledgements for unknown exchanges. */
  readonly unsolicitedAcks: number
  /** QoS 1 and 2 messages that the server sent beyond our Receive Maximum. */
  readonly receiveMaximumExceeded: number
  /** Sessions lost by the server. */
  readonly sessionsLost: number
  /** Bytes handed to transports. */
  readonly bytesSent: number
  /** Bytes received from transports. */
  readonly bytesReceived: number
  /** Packets sent. */
  readonly packetsSent: number
  /** Packets that came in. */
  readonly packetsReceived: number
  /** PINGREQ packets sent. */
  readonly pings: number
  /** PINGREQ packets after which no byte came in time. */
  readonly pingTimeouts: number
  /** Milliseconds from the latest PINGREQ to its answer; undefined before the first. */
  readonly pingRoundTrip: number | undefined
}
