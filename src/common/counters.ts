/**
 * The counters of a client. They exist only with the `stats` option, so counting costs nothing
 * without it.
 */

/** Counters, increased where things happen. */
export class Counters {
  connects = 0
  disconnects = 0
  /** Failed attempts and lost connections, by error code. */
  readonly failures = new Map<string, number>()
  reconnectAttempts = 0
  subscribes = 0
  unsubscribes = 0
  /** Filters, publishes and connections refused by the server. */
  refusals = 0
  publishesSent = 0
  publishesAcked = 0
  publishesReplayed = 0
  publishesDropped = 0
  received = 0
  delivered = 0
  dropped = 0
  /** Messages that were too large to be read. */
  tooLarge = 0
  duplicates = 0
  unclaimed = 0
  /** Subscription Identifiers in messages that no matching subscription has. */
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

  /** An unexpected PINGRESP says nothing about the round trip. */
  handlePong(now: number): void {
    if (this.#pingedAt >= 0) this.pingRoundTrip = now - this.#pingedAt
    this.#pingedAt = -1
  }

  /** Counts a failure by its code. */
  fail(code: string): void {
    this.failures.set(code, (this.failures.get(code) ?? 0) + 1)
  }
}

/** Names of the numeric counters. */
type Fact = { [K in keyof Counters]: Counters[K] extends number ? K : never }[keyof Counters]

/**
 * Increases a counter, if there are counters. Events of every packet are counted in place instead.
 */
export function tally({ counters }: { readonly counters: Counters | undefined }, fact: Fact): void {
  if (counters !== undefined) counters[fact] += 1
}
