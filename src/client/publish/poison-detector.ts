/**
 * Finds a publish on which the server ends every connection (a poisoned message), so that it does
 * not block the messages behind it.
 *
 * Messages are sent in order, so the suspect is the oldest unanswered one. After two connections
 * have ended on it, it is sent alone: behind a PINGREQ, and with nothing after it. From then on a
 * lost connection counts only if the server ended it, the PINGREQ was answered, and the whole
 * packet had left. The next attempt waits until a connection has answered and has lived longer than
 * the one before. If that connection ends during the wait, the link is at fault and counting
 * restarts. A suspect that is answered after all also points at the link; until a connection lasts,
 * each such message raises the number of connections that the next suspect needs. A DISCONNECT that
 * blames a packet settles it at once if the message was the only unanswered one; otherwise the
 * message is sent alone once more.
 *
 * Never blames a message for a connection that this client ended, nor for one that could not carry
 * the whole packet.
 */

import { quoted } from '../../common/schema.js'
import type { MqttError } from '../../errors.js'
import { DISCONNECT } from '../../wire/constants.js'
import type { PacketWriter } from '../connection/packet-writer.js'
import type { CancelTimer } from '../platform.js'
import { broken, refusal } from '../session/refusal.js'
import type { PublishHost } from './ports.js'
import type { QueuedPublish, Suspicion } from './queued-publish.js'

/** Number of connections lost on a message before it is sent alone. */
const suspicious = 2
/**
 * After `patient` connections that ended on the message in silence, it waits for the answer to
 * PINGREQ, up to `longestDoubt` milliseconds.
 */
const patient = 3
const longestDoubt = 250
/** A connection must live at most this many milliseconds before it carries such a message. */
const longestTrial = 30_000
/** Most milliseconds for which a busy connection may delay the answer to PINGREQ. */
const longestBusy = 120_000
/** Upper limit of `#doubt`. */
const mostDoubt = 15
/** Milliseconds for which nothing is sent behind the suspect. */
const longestSilence = 5000

/** DISCONNECT reason codes that blame this client. */
const complaints: readonly number[] = [0x81, 0x82, 0x90, 0x93, 0x94, 0x95, 0x99, 0x9a, 0x9b]
/**
 * Those that blame a packet: Malformed Packet, Protocol Error, Topic Name invalid, Payload format
 * invalid.
 */
const naming: readonly number[] = [0x81, 0x82, 0x90, 0x99]
/** DISCONNECT reason codes that name no cause: Unspecified error, Implementation specific error. */
const vague: readonly number[] = [0x80, 0x83]

/** Suspects of one client and how they are tried. */
export class PoisonDetector {
  readonly #host: PublishHost
  /**
   * Messages that were answered although connections had ended on them: signs of an unreliable
   * link.
   */
  #doubt = 0
  // valid for the connection
  #output: PacketWriter | undefined
  #since = 0
  /**
   * Positions in the output stream. The server has read up to `#read`, and up to `#asked` once
   * PINGREQ is answered.
   */
  #read = 0
  #asked = 0
  /** The suspect that waits until the connection has proved to be alive. */
  #held: QueuedPublish | undefined
  /** The suspect that was sent alone. */
  #alone: QueuedPublish | undefined
  /** True when a PINGREQ before the suspect was still unanswered when it was sent. */
  #early = false
  #cancel: CancelTimer | undefined

  constructor(host: PublishHost) {
    this.#host = host
  }

  /** True while nothing may be sent behind the suspect. */
  get silent(): boolean {
    return this.#alone !== undefined
  }

  /** True while a suspect is sent alone or waits for it. */
  get trying(): boolean {
    return this.silent || this.#held?.suspicion !== undefined
  }

  /** A connection is up. */
  handleConnected(): void {
    const { connection } = this.#host.connections
    this.#since = connection?.acceptedAt ?? 0
    this.#output = connection?.writer
    this.#read = connection?.acceptedEnd ?? 0
  }

  /** True when this message may be sent now; otherwise a later `flush()` sends it. */
  admits(item: QueuedPublish): boolean {
    const suspicion = this.#suspicionOf(item)
    if (suspicion === undefined || (suspicion.complained && !suspicion.named)) return true
    const { platform, session } = this.#host
    const sure = suspicion.strikes > suspicious
    if (this.#held === undefined) {
      this.#held = item
      session.ask(platform.now())
      this.#host.connections.pump()
      this.#asked = this.#output?.end ?? 0
      this.#wait(sure ? Math.min(longestTrial, 2 * this.#host.connections.lifetime) : longestDoubt)
    }
    const answered = !session.keepAlive.asked
    // On a slow line, the answer to PINGREQ comes after messages that are already on their way.
    const busy = answered ? 0 : this.#busyUntil - platform.now()
    if (busy > 0 && this.#cancel === undefined) this.#wait(busy)
    const waited = this.#cancel === undefined
    return sure
      ? answered && waited
      : answered || waited || (suspicion.unheard < patient && !suspicion.named)
  }

  // Until when the answer to PINGREQ may still come, as bytes came in recently.
  get #busyUntil(): number {
    const { receivedAt } = this.#host.session.keepAlive
    return Math.min(
      receivedAt + longestDoubt,
      this.#since +
        Math.max(longestTrial, Math.min(longestBusy, 2 * this.#host.connections.lifetime)),
    )
  }

  /** A message was written. */
  handleSent(item: QueuedPublish): void {
    const { keepAlive } = this.#host.session
    if (this.#held !== undefined && !keepAlive.asked) this.#handleRead(this.#asked)
    item.end = this.#output?.end ?? 0
    item.lone = item.end - item.length === this.#read
    item.proven ||= keepAlive.heard
    if (this.#suspicionOf(item) === undefined) return
    this.#alone = item
    this.#early = keepAlive.asked
    this.#wait(longestSilence)
  }

  /**
   * The server answered a message; `last` when that completes its exchange. A QoS 2 message stays
   * alone until then: if the session is lost, it starts again.
   */
  handleAnswer(item: QueuedPublish, last: boolean): void {
    if (item.suspicion !== undefined) {
      if (item.suspicion.strikes > 0) this.#doubt = Math.min(this.#doubt + 1, mostDoubt)
      item.suspicion = undefined
    }
    if (last && item === this.#alone) this.#end()
    this.#handleRead(item.end)
  }

  #handleRead(end: number): void {
    this.#read = Math.max(this.#read, end)
  }

  /**
   * The connection ended: was the oldest unanswered message the reason? Returns its error when it
   * is given up.
   */
  handleLost(item: QueuedPublish | undefined, error: MqttError): MqttError | undefined {
    const { connections, options, platform, session } = this.#host
    const alone = this.#alone
    if (this.#held?.suspicion !== undefined && alone === undefined) this.#held.suspicion.strikes = 0
    const { left = 0, end = 0 } = this.#output ?? {}
    if (connections.lifetime > longestTrial) this.#doubt = 0
    this.#end()
    this.#held = undefined
    this.#output = undefined
    if (item === undefined || (item !== alone && this.#suspicionOf(item) !== undefined))
      return undefined
    const { reasonCode = 0 } = error
    const said = error.code === 'ERR_SERVER_DISCONNECT'
    const complained = said && complaints.includes(reasonCode)
    // After a wake-up it is unknown which side ended the connection.
    const cut = said
      ? vague.includes(reasonCode)
      : error.code === 'ERR_CONNECTION_LOST' &&
        error.fault === 'remote' &&
        !session.keepAlive.woken(platform.now())
    if (item.end === 0 || !(complained || (cut && item.end <= left))) return undefined
    item.suspicion ??= { strikes: 0, complained: false, named: false, unheard: 0 }
    const { suspicion } = item
    // A keep-alive PINGREQ that was sent behind the message proves nothing.
    if (
      !complained &&
      (item === alone ? this.#early && session.keepAlive.asked : suspicion.strikes >= suspicious)
    ) {
      suspicion.unheard += 1
      if (suspicion.unheard === patient) this.#report(item)
      return undefined
    }
    suspicion.strikes += 1
    suspicion.complained = complained
    suspicion.named = complained && naming.includes(reasonCode)
    const { poisonAfter } = options.outbound
    const certain =
      suspicion.named && item.lone && item.end === end && poisonAfter < Number.POSITIVE_INFINITY
    if (!certain && suspicion.strikes < poisonAfter + (complained ? 0 : this.#doubt))
      return undefined
    if (complained)
      return refusal('ERR_PUBLISH_REFUSED', reasonCode, error.reasonString, DISCONNECT, 'unknown')
    return broken('ERR_POISONED', undefined, error)
  }

  // Logs once, until the message is answered.
  #report({ topic }: QueuedPublish): void {
    const why = `connections end at a publish to ${quoted(topic)} before PINGREQ is answered`
    this.#host.log(
      'warn',
      `${why}: the server or the message? It is sent again and again; outbound.ackTimeout bounds the wait`,
    )
  }

  // The suspicion that makes the message be sent alone; undefined when it is sent like any other.
  // If the server sent only CONNACK before it, `patient` connections must end first.
  #suspicionOf({ suspicion, proven }: QueuedPublish): Suspicion | undefined {
    if (
      suspicion === undefined ||
      this.#host.options.outbound.poisonAfter === Number.POSITIVE_INFINITY
    )
      return undefined
    const { strikes, complained, named, unheard } = suspicion
    return strikes >= (named ? 1 : suspicious) && (complained || proven || unheard >= patient)
      ? suspicion
      : undefined
  }

  #wait(delay: number): void {
    const { platform } = this.#host
    this.#cancel?.()
    this.#cancel = platform.setTimer(() => {
      this.#end()
      this.#host.flush()
    }, delay)
  }

  #end(): void {
    this.#cancel?.()
    this.#cancel = undefined
    this.#alone = undefined
  }
}
