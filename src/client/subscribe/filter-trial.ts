/**
 * Tries suspected filters one at a time, so that one filter on which the server ends connections
 * does not block everything else.
 *
 * A suspect is sent alone: after all other requests and a PINGREQ were answered, which proves the
 * connection, and if possible while no message is in flight. If the server then ends the
 * connection, the filter is blamed. The next trial waits until a connection has lived twice as long
 * as the previous one. Strikes must be consecutive: if the server ends a connection at any other
 * time, it does so regardless of filters (as overloaded servers do), and all counts restart. A
 * filter that was granted before needs twice as many strikes. A filter is never blamed for a
 * connection that this client ended.
 */
import type { MqttError } from '../../errors.js'
import { type Blame, isEndedByPeer } from '../session/refusal.js'
import type { Suspicion } from './broker-subscription.js'
import type { SubscribeHost } from './ports.js'
import type { PendingPacket } from './subscribe-packets.js'

/**
 * Longest wait for an answer, in milliseconds. For PINGREQ: twice the lifetime of the previous
 * connection, within both limits.
 */
const longestSilence = 5000
const leastSilence = 1000
/** Milliseconds to wait for a moment without messages in flight. */
const patience = 1000
/** Limits, in milliseconds, of how long a connection must live before the next trial. */
const shortestLife = 250
const longestLife = 30_000
/** Most milliseconds for which a busy connection may delay the answer to PINGREQ. */
const longestBusy = 120_000

/** The trials of one client. */
export class Trial {
  /**
   * The previous connection ended while a trial waited for a moment without messages. The
   * application may hold a message for longer than any connection lives.
   */
  #hurried = false
  // valid for the connection
  #waits = false
  /** The request that was sent alone. */
  alone: PendingPacket | undefined
  /** When the last answer came or a suspect was sent. */
  #changedAt = 0
  /** When PINGREQ was sent, and when its answer was noticed. */
  #askedAt: number | undefined
  #answeredAt: number | undefined
  #cancel: (() => void) | undefined
  readonly #host: SubscribeHost

  constructor(host: SubscribeHost) {
    this.#host = host
  }

  /** True while nothing may be sent behind the suspect. */
  get silent(): boolean {
    return (
      this.alone !== undefined &&
      !this.#host.states.stopping &&
      this.#host.platform.now() < this.#changedAt + longestSilence
    )
  }

  get #upAt(): number | undefined {
    return this.#host.connections.current?.acceptedAt
  }

  /**
   * True when a suspect may be sent now, with `unanswered` other requests; otherwise a later
   * `flush()` sends it.
   */
  admits(suspicion: Suspicion, unanswered: number): boolean {
    const now = this.#host.platform.now()
    const due = this.#dueAt(suspicion, unanswered, now)
    if (due > now) this.#wait(due - now)
    return due <= now
  }

  #dueAt(suspicion: Suspicion, unanswered: number, now: number): number {
    const { connections, options, publishingIfUsed, session } = this.#host
    const { keepAlive, negotiated, receiveWindow } = session
    const { lifetime } = connections
    const upAt = this.#upAt ?? now
    const silentUntil = Math.max(this.#changedAt, upAt) + longestSilence
    if (unanswered > 0 && now < silentUntil) return silentUntil
    if (this.#answeredAt === undefined) {
      if (this.#askedAt === undefined) {
        this.#askedAt = now
        if (!keepAlive.asked) session.ask(now)
        connections.pump()
      }
      // Without an answer to PINGREQ the suspect is sent all the same, but is not blamed.
      if (keepAlive.asked)
        return this.#silentAt(
          Math.min(
            longestSilence,
            (negotiated?.pingTimeout ?? 0) / 2,
            Math.max(leastSilence, 2 * lifetime),
          ),
        )
      this.#answeredAt = now
    }
    // A publish that is sent alone gets as much time as a filter, so that the end of the connection
    // blames only one of them.
    const isolatedUntil = this.#answeredAt + longestLife + longestSilence
    if (publishingIfUsed?.isolating && now < isolatedUntil) return isolatedUntil
    const { strikes } = suspicion
    // A first trial does not wait, because its strike alone refuses no filter, unless `poisonAfter`
    // is 1 or DISCONNECT names the reason.
    const first = strikes === 0 && options.subscriptions.poisonAfter > 1
    const idle =
      (publishingIfUsed?.inFlight ?? 0) + (first && this.#hurried ? 0 : receiveWindow.open) === 0
    this.#waits = !idle && now < this.#answeredAt + patience
    const lived = first ? 0 : upAt + Math.min(longestLife, Math.max(shortestLife, 2 * lifetime))
    return Math.max(lived, idle ? 0 : this.#answeredAt + patience)
  }

  // When the wait for PINGRESP ends. On a slow line the answer comes behind all messages on their
  // way; if the connection ended too early, each one would carry those messages again.
  #silentAt(delay: number): number {
    const { connections, session } = this.#host
    const { receivedAt } = session.keepAlive
    const busyUntil =
      (this.#upAt ?? 0) + Math.max(longestLife, Math.min(longestBusy, 2 * connections.lifetime))
    return Math.max((this.#askedAt ?? 0) + delay, Math.min(receivedAt + delay, busyUntil))
  }

  /** A suspect is sent alone. */
  begin(packet: PendingPacket): void {
    this.alone = packet
    this.#changedAt = this.#host.platform.now()
    this.#wait(longestSilence)
  }

  /** A request was answered. */
  handleAnswer(packet: PendingPacket): void {
    if (this.#upAt !== undefined) this.#changedAt = this.#host.platform.now()
    if (packet === this.alone) this.stop()
  }

  /** What the end of the connection says about unanswered requests. */
  blame(error: MqttError, unanswered: number): Blame {
    if (unanswered === 0 || !this.isPeers(error)) return undefined
    return this.alone !== undefined && this.#answeredAt !== undefined ? 'blamed' : 'suspected'
  }

  /** The connection is lost. */
  handleLost(): void {
    this.#askedAt = undefined
    this.#answeredAt = undefined
    this.#hurried = this.#waits
    this.#waits = false
    this.stop()
  }

  /** Ends the current trial. */
  stop(): void {
    this.#cancel?.()
    this.#cancel = undefined
    this.alone = undefined
  }

  /** True when the peer ended the connection; after a wake-up that is unknown, so false. */
  isPeers(error: MqttError): boolean {
    const { platform, session } = this.#host
    return isEndedByPeer(error) && !session.keepAlive.woken(platform.now())
  }

  #wait(delay: number): void {
    this.#cancel?.()
    this.#cancel = this.#host.platform.setTimer(() => this.#host.flush(), delay)
  }
}
