/**
 * What the client counts. Types only.
 */
/** What `client.stats()` gives, counted since the client was made: all zero while the `stats` option is off. */
export interface Stats {
  /** Connections that came up. */
  readonly connects: number
  /** Connections that were over. */
  readonly disconnects: number
  /** Attempts that failed, and connections that were lost, by error code. */
  readonly failures: Readonly<Record<string, number>>
  /** Attempts to connect since the first connection. */
  readonly reconnectAttempts: number
  /** SUBSCRIBE packets sent. */
  readonly subscribes: number
  /** UNSUBSCRIBE packets sent. */
  readonly unsubscribes: number
  /** Filters, publishes and connections that the server refused. */
  readonly refusals: number
  /** Publishes sent, repeats left out. */
  readonly publishesSent: number
  /** QoS 1 and 2 publishes that the server has. */
  readonly publishesAcked: number
  /** Publishes sent again after a reconnect. */
  readonly publishesReplayed: number
  /** Publishes given up. */
  readonly publishesDropped: number
  /** QoS 1 and 2 publishes that were sent and lack their last acknowledgement. */
  readonly publishesInFlight: number
  /** Publishes that were not sent. */
  readonly publishesQueued: number
  /** Messages that came in. */
  readonly received: number
  /** Messages handed to the application. */
  readonly delivered: number
  /** Messages dropped unread. */
  readonly dropped: number
  /** Those of them that were too large to be read. */
  readonly tooLarge: number
  /** Repeats of messages that were here already. */
  readonly duplicates: number
  /** Messages that no subscription here was made for. */
  readonly unclaimed: number
  /** Incoming messages that wait for a reader. */
  readonly unread: number
  /** Subscription Identifiers of messages that no matching subscription here has. */
  readonly unknownIdentifiers: number
  /** Messages that a handler gave up on. */
  readonly handlerFailures: number
  /** Acknowledgements for exchanges that do not exist. */
  readonly unsolicitedAcks: number
  /** QoS 1 and 2 messages that the server sent beyond our Receive Maximum. */
  readonly receiveMaximumExceeded: number
  /** Sessions that the server did not have any more. */
  readonly sessionsLost: number
  /** Bytes handed to transports. */
  readonly bytesSent: number
  /** Bytes that transports gave. */
  readonly bytesReceived: number
  /** Packets sent. */
  readonly packetsSent: number
  /** Packets that came in. */
  readonly packetsReceived: number
  /** PINGREQ packets sent. */
  readonly pings: number
  /** PINGREQ packets that nothing followed in time. */
  readonly pingTimeouts: number
  /** Milliseconds from the latest PINGREQ to its answer; undefined before the first. */
  readonly pingRoundTrip: number | undefined
}
