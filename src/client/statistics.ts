/**
 * Counters for every fact in the life of a client. They exist only when the `stats` option is on: without it nothing is counted and nothing is paid.
 */
import type { Host } from './host.js'

/** Facts that are counted where they happen. */
export class Counters {
  connects = 0
  disconnects = 0
  /** Attempts that failed, and connections that were lost, by error code. */
  readonly failures = new Map<string, number>()
  reconnectAttempts = 0
  subscribes = 0
  unsubscribes = 0
  /** Filters, publishes and connections that the server refused. */
  refusals = 0
  publishesSent = 0
  publishesAcked = 0
  publishesReplayed = 0
  publishesDropped = 0
  received = 0
  delivered = 0
  dropped = 0
  duplicates = 0
  unclaimed = 0
  /** Subscription Identifiers of messages that no matching subscription here has. */
  unknownIdentifiers = 0
  /** Messages that a handler gave up on. */
  handlerFailures = 0
  sessionsLost = 0
  bytesSent = 0
  bytesReceived = 0
  packetsSent = 0
  packetsReceived = 0
  pings = 0
  pingTimeouts = 0
  /** Milliseconds from the latest PINGREQ to its answer; undefined before the first. */
  pingRoundTrip: number | undefined

  #pingedAt = -1

  handlePing(now: number): void {
    this.#pingedAt = now
    this.pings += 1
  }

  /** One that nobody asked for says nothing about the way. */
  handlePong(now: number): void {
    if (this.#pingedAt >= 0) this.pingRoundTrip = now - this.#pingedAt
    this.#pingedAt = -1
  }

  /** One more failure of a kind. */
  fail(code: string): void {
    this.failures.set(code, (this.failures.get(code) ?? 0) + 1)
  }
}

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

/** A frozen copy, with what only the moment can tell. */
export function snapshot({ counters, outbox, registry, session }: Host): Stats {
  const { failures, ...rest } = counters ?? new Counters()
  // Nothing that is counted stays zero where nothing is counted.
  const gauge = (value: number): number => (counters === undefined ? 0 : value)
  return Object.freeze({
    ...rest,
    publishesInFlight: gauge(outbox.inFlight),
    publishesQueued: gauge(outbox.size),
    unread: gauge([...registry.consumers].reduce((sum, consumer) => sum + consumer.size, 0)),
    unsolicitedAcks: gauge(session.outbound.unsolicited),
    receiveMaximumExceeded: gauge(session.inbound.excess),
    failures: Object.freeze(Object.assign(Object.create(null), Object.fromEntries(failures)) as Record<string, number>),
  })
}
