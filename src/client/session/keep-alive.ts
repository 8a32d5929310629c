/**
 * Decides when to send PINGREQ and when a connection counts as dead (sections 3.1.2.10, 3.12).
 *
 * PINGREQ is due one keep-alive interval after the last packet sent or the last bytes received,
 * whichever is older: traffic in one direction never hides a dead link. Any received byte proves
 * that the peer is alive. Times are milliseconds of the caller's monotonic clock.
 */

/** Result of `handleTimeout`. */
export type KeepAliveVerdict = 'idle' | 'ping' | 'dead' | 'blocked' | 'slow'

/** Milliseconds in which any byte must come after a wake-up. */
const probePatience = 1500

/**
 * A transport that took bytes only after this many milliseconds really sent some; sooner, they may
 * just have filled a free buffer.
 */
const leastWait = 100

/** Milliseconds by which timers of a hidden page can be late, with a margin. */
const hiddenLateness = 90_000

/**
 * A partly received packet must be complete after this time, or after twice the keep-alive, unless
 * it keeps this rate.
 */
const patience = 60_000
const leastRate = 1024 / 1000

/** As a time: has not happened, or is not due. */
const never = Number.POSITIVE_INFINITY

/** The keep-alive of one connection. */
export class KeepAlive {
  /** Milliseconds; 0 disables keep-alive. */
  readonly #interval: number
  /** Bytes have been received on this connection since CONNACK. */
  heard = false
  /** Milliseconds without any byte after PINGREQ until the connection counts as dead. */
  readonly #pingTimeout: number
  /** When a complete control packet was last given to the transport [MQTT-3.1.2-20]. */
  sentAt: number
  /** When bytes last came in, or reading was last paused by this client. */
  receivedAt: number
  #pingedAt = never
  /** PINGREQs without a PINGRESP. */
  #unanswered = 0
  #blockedAt = never
  /** When the transport last took bytes that it could not take at once. */
  #tookAt = -never
  #partialAt = never
  #partialBase = 0
  #partialBytes = 0
  #probedAt = never
  #wokeAt = -never

  /** A connection is up. `seconds` is Server Keep Alive if the server sent one [MQTT-3.1.2-21]. */
  constructor(pingTimeout: number, seconds: number, now: number) {
    this.#pingTimeout = pingTimeout
    this.#interval = seconds * 1000
    this.sentAt = now
    this.receivedAt = now
  }

  /** True from a wake-up until the next byte. */
  get probing(): boolean {
    return this.#probedAt < never
  }

  /**
   * True for a moment after a wake-up, even if the server has answered: browsers close connections
   * of frozen pages only then.
   */
  woken(now: number): boolean {
    return this.probing || now - this.#wokeAt <= probePatience
  }

  /** The machine may have slept: sends PINGREQ and expects a byte soon. */
  probe(now: number): void {
    this.#probedAt = now
    this.#wokeAt = now
    this.ask(now)
  }

  /** A PINGREQ is sent now, due or not. */
  ask(now: number): void {
    this.#unanswered += 1
    this.#pingedAt = now
    this.sentAt = now
  }

  /**
   * True while a PINGREQ is unanswered. Once false, the server has read everything written before
   * the last one.
   */
  get asked(): boolean {
    return this.#unanswered > 0
  }

  /** Bytes came in, from any packet. */
  received(now: number): void {
    this.heard = true
    this.receivedAt = now
    this.#probedAt = never
  }

  /** This client paused reading, so silence proves nothing. */
  handleUnread(now: number): void {
    this.received(now)
    if (this.#partialAt < never) this.#partialAt = now
  }

  pong(): void {
    this.#unanswered = Math.max(0, this.#unanswered - 1)
    // The server is alive, even if it answers several PINGREQs with one PINGRESP.
    this.#pingedAt = never
  }

  /** The transport stopped (true) or resumed (false) accepting bytes. */
  blocked(state: boolean, now: number): void {
    if (!state) {
      this.took(now)
      this.#blockedAt = never
    } else this.#blockedAt = Math.min(this.#blockedAt, now)
  }

  /**
   * The transport took bytes. While it is blocked, this proves that the peer reads; bytes that a
   * free buffer takes at once prove nothing.
   */
  took(now: number): void {
    if (now - this.#blockedAt < leastWait) return
    this.#tookAt = now
    this.#probedAt = never
  }

  /**
   * Called after a read with the number of bytes held of an incomplete packet, and whether a packet
   * was completed.
   */
  partial(bytes: number, completed: boolean, now: number): void {
    if (bytes === 0) this.#partialAt = never
    else if (completed || this.#partialAt === never) {
      this.#partialAt = now
      this.#partialBase = bytes
    }
    this.#partialBytes = bytes
  }

  /** When to call `handleTimeout`; Infinity for never. */
  get deadline(): number {
    return Math.min(
      this.#pingDeadline,
      this.#deadDeadline,
      this.#blockedDeadline,
      this.#partialDeadline,
    )
  }

  handleTimeout(now: number): KeepAliveVerdict {
    // This late, timers must have been suspended, so expired deadlines say nothing about the peer.
    // After a probe, its silence does count, even if all timers run late as in a hidden page.
    const usual = this.probing ? Math.max(this.#interval, hiddenLateness) : this.#interval
    if (this.#interval > 0 && now - this.deadline > usual) {
      // Deadlines of this side restart.
      if (this.#blockedAt < never) this.#blockedAt = now
      if (this.#partialAt < never) this.#partialAt = now
      this.probe(now)
      return 'ping'
    }
    if (now >= this.#blockedDeadline) return 'blocked'
    if (now >= this.#deadDeadline) return 'dead'
    if (now >= this.#partialDeadline && !this.#keepsRate(now)) return 'slow'
    if (now < this.#pingDeadline) return 'idle'
    this.#unanswered += 1
    this.#pingedAt = Math.min(this.#pingedAt, now)
    this.sentAt = now
    return 'ping'
  }

  get #pingDeadline(): number {
    if (this.#interval === 0) return never
    // While an answer is outstanding (it may be behind a large packet), the server must still hear
    // from this client once per interval.
    return (
      (this.#pingedAt < never ? this.sentAt : Math.min(this.sentAt, this.receivedAt)) +
      this.#interval
    )
  }

  get #deadDeadline(): number {
    // With bytes waiting in front of it, PINGREQ cannot be answered within `probePatience`.
    if (this.probing)
      return this.#probedAt + (this.#blockedAt < never ? this.#pingTimeout : probePatience)
    // Bytes taken before PINGREQ may still be in buffers that cannot be inspected.
    return (
      Math.max(this.#pingedAt, this.receivedAt, this.#tookAt + this.#interval) + this.#pingTimeout
    )
  }

  get #partialDeadline(): number {
    return this.#partialAt + Math.max(patience, 2 * this.#interval)
  }

  // A large packet on a slow line gets the same time again while it keeps the rate.
  #keepsRate(now: number): boolean {
    const fast = this.#partialBytes - this.#partialBase >= (now - this.#partialAt) * leastRate
    this.#partialAt = now
    this.#partialBase = this.#partialBytes
    return fast
  }

  // A peer that reads nothing for this long will not answer, even if it still sends.
  get #blockedDeadline(): number {
    return this.#interval === 0
      ? never
      : Math.max(this.#blockedAt, this.#tookAt) + this.#interval + this.#pingTimeout
  }
}
