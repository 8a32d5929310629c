/**
 * Counters for every fact in the life of a client. They exist only when the `stats` option is on: without it nothing is counted and nothing is paid.
 */

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
  /** Messages that were too large to be read. */
  tooLarge = 0
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

  /** One that was not asked for says nothing about the round trip. */
  handlePong(now: number): void {
    if (this.#pingedAt >= 0) this.pingRoundTrip = now - this.#pingedAt
    this.#pingedAt = -1
  }

  /** One more failure of a kind. */
  fail(code: string): void {
    this.failures.set(code, (this.failures.get(code) ?? 0) + 1)
  }
}

/** Facts that are counted one by one. */
type Fact = { [K in keyof Counters]: Counters[K] extends number ? K : never }[keyof Counters]

/** One more of a fact, where anything is counted. What happens with each packet is counted in place. */
export function tally({ counters }: { readonly counters: Counters | undefined }, fact: Fact): void {
  if (counters !== undefined) counters[fact] += 1
}
