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

/** Milliseconds that a transport had to wait before it took more: what goes faster goes into a buffer that was free. */
const leastWait = 100

/** Milliseconds: more than timers of a hidden page are late. */
const hiddenLateness = 90_000

/** A packet that came in part must be complete after this time, or twice the keep-alive, unless it keeps this rate. */
const patience = 60_000
const leastRate = 1024 / 1000

/** In place of a time: it did not happen, or nothing is due. */
const never = Number.POSITIVE_INFINITY

/** Keep-alive of one connection. */
export class KeepAlive {
  /** Milliseconds; 0 is off. */
  readonly #interval: number
  /** Something came in since the connection is up. */
  heard = false
  /** Milliseconds without any byte after a PINGREQ. */
  readonly #pingTimeout: number
  /** When a whole control packet was handed to the transport last [MQTT-3.1.2-20]. */
  sentAt: number
  /** When bytes came in last, or were left unread by our own choice. */
  receivedAt: number
  #pingedAt = never
  /** PINGREQs that no PINGRESP has come for. */
  #unanswered = 0
  #blockedAt = never
  /** When the transport took bytes that it had not taken at once. */
  #tookAt = -never
  #partialAt = never
  #partialBase = 0
  #partialBytes = 0
  #probedAt = never
  #wokeAt = -never

  /** A connection is up. `seconds` is Server Keep Alive where the server gave one [MQTT-3.1.2-21]. */
  constructor(pingTimeout: number, seconds: number, now: number) {
    this.#pingTimeout = pingTimeout
    this.#interval = seconds * 1000
    this.sentAt = now
    this.receivedAt = now
  }

  /** True from a wake-up to the first byte after it. */
  get probing(): boolean {
    return this.#probedAt < never
  }

  /** True for a moment after a wake-up, also when the server answered: browsers end connections of frozen pages only then. */
  woken(now: number): boolean {
    return this.probing || now - this.#wokeAt <= probePatience
  }

  /** The machine may have slept: a PINGREQ is sent now, and any byte is expected soon. */
  probe(now: number): void {
    this.#probedAt = now
    this.#wokeAt = now
    this.ask(now)
  }

  /** A PINGREQ leaves now, whether or not it is due. */
  ask(now: number): void {
    this.#unanswered += 1
    this.#pingedAt = now
    this.sentAt = now
  }

  /** True until each PINGREQ was answered: then the server has read all that was written before the last of them. */
  get asked(): boolean {
    return this.#unanswered > 0
  }

  /** Bytes came in, of whatever packet. */
  received(now: number): void {
    this.heard = true
    this.receivedAt = now
    this.#probedAt = never
  }

  /** Nothing was read, by our own choice: silence says nothing. */
  handleUnread(now: number): void {
    this.received(now)
    if (this.#partialAt < never) this.#partialAt = now
  }

  pong(): void {
    this.#unanswered = Math.max(0, this.#unanswered - 1)
    // The server is there: one that answers several at once is not waited for.
    this.#pingedAt = never
  }

  /** The transport stopped (true) or resumed (false) taking all bytes. */
  blocked(state: boolean, now: number): void {
    if (!state) {
      this.took(now)
      this.#blockedAt = never
    } else this.#blockedAt = Math.min(this.#blockedAt, now)
  }

  /** The transport took bytes. While it is blocked that is a sign of life; what a free buffer takes at once is not. */
  took(now: number): void {
    if (now - this.#blockedAt < leastWait) return
    this.#tookAt = now
    this.#probedAt = never
  }

  /** After a read: how many bytes of an incomplete packet are held, and whether a packet was completed. */
  partial(bytes: number, completed: boolean, now: number): void {
    if (bytes === 0) this.#partialAt = never
    else if (completed || this.#partialAt === never) {
      this.#partialAt = now
      this.#partialBase = bytes
    }
    this.#partialBytes = bytes
  }

  /** When `handleTimeout` wants to be called; Infinity when never. */
  get deadline(): number {
    return Math.min(
      this.#pingDeadline,
      this.#deadDeadline,
      this.#blockedDeadline,
      this.#partialDeadline,
    )
  }

  handleTimeout(now: number): KeepAliveVerdict {
    // So late that timers must have stood still: what was due meanwhile says nothing about the peer. Once it was asked, its silence counts also
    // where every timer is late, as in a hidden page.
    const usual = this.probing ? Math.max(this.#interval, hiddenLateness) : this.#interval
    if (this.#interval > 0 && now - this.deadline > usual) {
      // What stood still with us restarts.
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
    // While an answer is outstanding (a large packet may be on its way) the server still has to hear from us once per interval.
    return (
      (this.#pingedAt < never ? this.sentAt : Math.min(this.sentAt, this.receivedAt)) +
      this.#interval
    )
  }

  get #deadDeadline(): number {
    // Behind bytes that wait, PINGREQ cannot be answered that soon.
    if (this.probing)
      return this.#probedAt + (this.#blockedAt < never ? this.#pingTimeout : probePatience)
    // What was taken before PINGREQ may lie in buffers that cannot be inspected.
    return (
      Math.max(this.#pingedAt, this.receivedAt, this.#tookAt + this.#interval) + this.#pingTimeout
    )
  }

  get #partialDeadline(): number {
    return this.#partialAt + Math.max(patience, 2 * this.#interval)
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
    return this.#interval === 0
      ? never
      : Math.max(this.#blockedAt, this.#tookAt) + this.#interval + this.#pingTimeout
  }
}
