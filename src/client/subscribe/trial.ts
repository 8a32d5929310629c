/**
 * Tries filters at which a connection ended, one at a time: one that the server does not bear must not stop everything else.
 *
 * A suspect is sent alone: behind the answers to all other requests and to a PINGREQ, so that the connection is known to work, and in a moment at which
 * no message is on its way, if there is one. When the peer ends the connection then, that filter is to blame. The next trial waits until a connection has
 * lived twice as long as the one before. Strikes count only in a row: a connection that the peer ends at any other time shows that connections end by
 * themselves, as they do where a server is overloaded, and counting starts again for all. A filter that was granted before needs twice as many. It
 * must never blame a filter for a connection that we ended.
 */
import type { MqttError } from '../../errors.js'
import { type Blame, isEndedByPeer } from '../session/refusal.js'
import type { Suspicion } from './broker-subscription.js'
import type { PendingPacket } from './pending-packets.js'
import type { SubscribeHost } from './ports.js'

/** Milliseconds to wait for an answer that does not come; to PINGREQ, for twice as long as the connection before lived. */
const longestSilence = 5000
const leastSilence = 1000
/** Milliseconds to wait for a moment at which no message is on its way. */
const patience = 1000
/** Milliseconds that a connection lives at least, and has to live at most, before the next trial. */
const shortestLife = 250
const longestLife = 30_000
/** Milliseconds for which a connection at most carries messages before the answer to PINGREQ is given up. */
const longestBusy = 120_000

/** The trials of one client's filters. */
export class Trial {
  /** It ended while a filter waited for a moment without messages: the application may hold one for longer than any connection lives. */
  #hurried = false
  // valid for the connection
  #waits = false
  /** Sent with nothing before or after it that lacks an answer. */
  alone: PendingPacket | undefined
  /** When something was answered or sent alone. */
  #changedAt = 0
  /** When PINGREQ was sent, and when its answer was seen. */
  #askedAt: number | undefined
  #answeredAt: number | undefined
  #cancel: (() => void) | undefined
  readonly #host: SubscribeHost

  constructor(host: SubscribeHost) {
    this.#host = host
  }

  /** True while nothing may follow the request that was sent alone. */
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

  /** May a suspect be sent now, while so many requests have no answer? What is held back goes with a later `flush()`. */
  admits(suspicion: Suspicion, unanswered: number): boolean {
    const now = this.#host.platform.now()
    const due = this.#dueAt(suspicion, unanswered, now)
    if (due > now) this.#wait(due - now)
    return due <= now
  }

  #dueAt(suspicion: Suspicion, unanswered: number, now: number): number {
    const { connections, options, publishQueueIfUsed, session } = this.#host
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
      // Where PINGREQ has no answer it goes all the same, but is not to blame then.
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
    // A message that is tried alone waits as long as a filter, and has its silence: an end is to blame one of them.
    const isolatedUntil = this.#answeredAt + longestLife + longestSilence
    if (publishQueueIfUsed?.isolating && now < isolatedUntil) return isolatedUntil
    const { strikes } = suspicion
    // The first trial decides nothing, unless it is the last.
    const first = strikes === 0 && options.subscriptions.poisonAfter > 1
    const idle =
      (publishQueueIfUsed?.inFlight ?? 0) + (first && this.#hurried ? 0 : receiveWindow.open) === 0
    this.#waits = !idle && now < this.#answeredAt + patience
    const lived = first ? 0 : upAt + Math.min(longestLife, Math.max(shortestLife, 2 * lifetime))
    return Math.max(lived, idle ? 0 : this.#answeredAt + patience)
  }

  // When the answer to PINGREQ is so late that none will come. On a slow line it is behind all messages that are on their way, which a connection that
  // ends too early carries again and again.
  #silentAt(delay: number): number {
    const { connections, session } = this.#host
    const { receivedAt } = session.keepAlive
    const busyUntil =
      (this.#upAt ?? 0) + Math.max(longestLife, Math.min(longestBusy, 2 * connections.lifetime))
    return Math.max((this.#askedAt ?? 0) + delay, Math.min(receivedAt + delay, busyUntil))
  }

  /** It is sent alone now. */
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

  /** What the end of the connection says, which leaves so many requests without an answer. */
  blame(error: MqttError, unanswered: number): Blame {
    if (unanswered === 0 || !this.isPeers(error)) return undefined
    return this.alone !== undefined && this.#answeredAt !== undefined ? 'blamed' : 'suspected'
  }

  /** The connection is over. */
  handleLost(): void {
    this.#askedAt = undefined
    this.#answeredAt = undefined
    this.#hurried = this.#waits
    this.#waits = false
    this.stop()
  }

  /** Nothing is tried any more. */
  stop(): void {
    this.#cancel?.()
    this.#cancel = undefined
    this.alone = undefined
  }

  /** Did the peer end the connection? After a wake-up that cannot be known. */
  isPeers(error: MqttError): boolean {
    const { platform, session } = this.#host
    return isEndedByPeer(error) && !session.keepAlive.woken(platform.now())
  }

  #wait(delay: number): void {
    this.#cancel?.()
    this.#cancel = this.#host.platform.setTimer(() => this.#host.flush(), delay)
  }
}
