/**
 * When to send PINGREQ, and when to give a connection up (sections 3.1.2.10, 3.12).
 *
 * A PINGREQ is due one keep-alive after the last packet that we sent or the last bytes that we got, whichever is older: so one-way traffic in
 * either direction never hides a dead link. Any received byte is a sign of life. Times are milliseconds of the caller's monotonic clock.
 */

/** What `handleTimeout` asks for. */
export type KeepAliveVerdict = 'idle' | 'ping' | 'dead' | 'blocked' | 'slow'

/** Milliseconds for any byte after a wake-up: a link that slept is trusted only when it answers. */
const probePatience = 1500

/** Milliseconds: more than timers of a hidden page are late. */
const hiddenLateness = 90_000

/** A packet that came in part must be complete after this time, or twice the keep-alive, unless it keeps this rate. */
const patience = 60_000
const leastRate = 1024 / 1000

/** Keep-alive of one connection. */
export class KeepAlive {
  /** Milliseconds; 0 is off. */
  #interval = 0
  readonly #pingTimeout: number
  #sentAt = 0
  #receivedAt = 0
  #pingedAt = -1
  #blockedAt = -1
  #partialAt = -1
  #partialBase = 0
  #partialBytes = 0
  #probedAt = -1
  #wokeAt = Number.NEGATIVE_INFINITY

  constructor(pingTimeout: number) {
    this.#pingTimeout = pingTimeout
  }

  /** A connection is up. `seconds` is Server Keep Alive where the server gave one [MQTT-3.1.2-21]. */
  start(seconds: number, now: number): void {
    this.#interval = seconds * 1000
    this.#sentAt = now
    this.#receivedAt = now
    this.#pingedAt = -1
    this.#blockedAt = -1
    this.#partialAt = -1
    this.#probedAt = -1
    this.#wokeAt = Number.NEGATIVE_INFINITY
  }

  /** True from a wake-up to the first byte after it. */
  get probing(): boolean {
    return this.#probedAt >= 0
  }

  /** True for a moment after a wake-up, also when the server answered: browsers end connections of frozen pages only then. */
  woken(now: number): boolean {
    return this.probing || now - this.#wokeAt <= probePatience
  }

  /** The machine may have slept: a PINGREQ is sent now, and any byte is expected soon. */
  probe(now: number): void {
    this.#probedAt = now
    this.#wokeAt = now
    this.#pingedAt = now
    this.#sentAt = now
  }

  /** A whole control packet was handed to the transport [MQTT-3.1.2-20]. */
  sent(now: number): void {
    this.#sentAt = now
  }

  /** Bytes came in, of whatever packet. */
  received(now: number): void {
    this.#receivedAt = now
    this.#probedAt = -1
  }

  pong(): void {
    this.#pingedAt = -1
  }

  /** The transport stopped (true) or resumed (false) taking bytes. */
  blocked(state: boolean, now: number): void {
    if (!state) this.#blockedAt = -1
    else if (this.#blockedAt < 0) this.#blockedAt = now
  }

  /** After a read: how many bytes of an incomplete packet are held, and whether a packet was completed. */
  partial(bytes: number, completed: boolean, now: number): void {
    if (bytes === 0) this.#partialAt = -1
    else if (completed || this.#partialAt < 0) {
      this.#partialAt = now
      this.#partialBase = bytes
    }
    this.#partialBytes = bytes
  }

  /** When `handleTimeout` wants to be called; Infinity when never. */
  get deadline(): number {
    return Math.min(this.#pingDeadline, this.#deadDeadline, this.#blockedDeadline, this.#partialDeadline)
  }

  handleTimeout(now: number): KeepAliveVerdict {
    // So late that timers must have stood still: what was due meanwhile says nothing about the peer. Once it was asked, its silence counts also
    // where every timer is late, as in a page that nobody sees.
    const usual = this.probing ? Math.max(this.#interval, hiddenLateness) : this.#interval
    if (this.#interval > 0 && now - this.deadline > usual) {
      // What stood still with us begins anew.
      if (this.#blockedAt >= 0) this.#blockedAt = now
      if (this.#partialAt >= 0) this.#partialAt = now
      this.probe(now)
      return 'ping'
    }
    if (now >= this.#blockedDeadline) return 'blocked'
    if (now >= this.#deadDeadline) return 'dead'
    if (now >= this.#partialDeadline && !this.#keepsRate(now)) return 'slow'
    if (now < this.#pingDeadline) return 'idle'
    if (this.#pingedAt < 0) this.#pingedAt = now
    this.#sentAt = now
    return 'ping'
  }

  get #pingDeadline(): number {
    if (this.#interval === 0) return Number.POSITIVE_INFINITY
    // While an answer is outstanding (a large packet may be on its way) the server still has to hear from us once per interval.
    return (this.#pingedAt < 0 ? Math.min(this.#sentAt, this.#receivedAt) : this.#sentAt) + this.#interval
  }

  get #deadDeadline(): number {
    if (this.#probedAt >= 0) return this.#probedAt + probePatience
    if (this.#pingedAt < 0) return Number.POSITIVE_INFINITY
    return Math.max(this.#pingedAt, this.#receivedAt) + this.#pingTimeout
  }

  get #partialDeadline(): number {
    return this.#partialAt < 0 ? Number.POSITIVE_INFINITY : this.#partialAt + Math.max(patience, 2 * this.#interval)
  }

  // A large packet over a slow line is given the same time again.
  #keepsRate(now: number): boolean {
    const fast = this.#partialBytes - this.#partialBase >= (now - this.#partialAt) * leastRate
    this.#partialAt = now
    this.#partialBase = this.#partialBytes
    return fast
  }

  // A peer that reads nothing for this long will not answer either, even if it still sends.
  get #blockedDeadline(): number {
    if (this.#blockedAt < 0 || this.#interval === 0) return Number.POSITIVE_INFINITY
    return this.#blockedAt + this.#interval + this.#pingTimeout
  }
}
