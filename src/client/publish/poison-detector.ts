/**
 * Finds the publish at which a server ends the connection each time, so that it does not block those behind it.
 *
 * Messages go in order, so it is the oldest without an answer. One that two connections ended over is sent alone: behind a PINGREQ, with nothing after
 * it. Only an end by the server's side counts then, when the PINGREQ was answered and the whole packet had left. After that it is held back until a
 * connection has answered and has lived longer than the one before: an end meanwhile shows that the link is at fault, and counting restarts. One
 * that is answered although a connection ended over it shows the same: until a connection lasts, each such one asks for one more connection of the
 * next. A DISCONNECT that names a packet as its reason needs no more connections, where that message was all that lacked an answer: else it is sent
 * alone once more. It must never blame a message for a connection that we ended ourselves, nor for one that could not carry it whole.
 */

import { quoted } from '../../common/schema.js'
import type { MqttError } from '../../errors.js'
import { DISCONNECT } from '../../wire/constants.js'
import type { PacketWriter } from '../connection/packet-writer.js'
import type { CancelTimer } from '../platform.js'
import { broken, refusal } from '../session/refusal.js'
import type { PublishHost } from './ports.js'
import type { QueuedPublish, Suspicion } from './queued-publish.js'

/** After so many connections a message is sent alone. */
const suspicious = 2
/** Connections that ended over it without another word, before the message waits for an answer to PINGREQ; and how many milliseconds at most. */
const patient = 3
const longestDoubt = 250
/** Milliseconds that a connection has to live at most before it carries such a message. */
const longestTrial = 30_000
/** Milliseconds for which a connection at most carries messages before the answer to PINGREQ is given up. */
const longestBusy = 120_000
/** Suspects that were answered count as so many at most. */
const mostDoubt = 15
/** Milliseconds for which nothing follows it. */
const longestSilence = 5000

/** DISCONNECT reason codes that say we sent something wrong. */
const complaints: readonly number[] = [0x81, 0x82, 0x90, 0x93, 0x94, 0x95, 0x99, 0x9a, 0x9b]
/** Those of them that say it of a packet: Malformed Packet, Protocol Error, Topic Name invalid, Payload format invalid. */
const naming: readonly number[] = [0x81, 0x82, 0x90, 0x99]
/** DISCONNECT reason codes that say nothing: Unspecified error, Implementation specific error. */
const vague: readonly number[] = [0x80, 0x83]

/** The trials of one client's messages. */
export class PoisonDetector {
  readonly #host: PublishHost
  /** Messages that were answered although connections had ended over them: the link breaks by itself. */
  #doubt = 0
  // valid for the connection
  #output: PacketWriter | undefined
  #since = 0
  /** What was written up to here the server has read: bytes since the connection began. And up to PINGREQ, once that is answered. */
  #read = 0
  #asked = 0
  /** Held back until the connection has shown that it lives. */
  #held: QueuedPublish | undefined
  /** Sent, with nothing behind it. */
  #alone: QueuedPublish | undefined
  /** A PINGREQ that went before it was not answered by then. */
  #early = false
  #cancel: CancelTimer | undefined

  constructor(host: PublishHost) {
    this.#host = host
  }

  /** True while nothing may follow the message that was sent. */
  get silent(): boolean {
    return this.#alone !== undefined
  }

  /** True while a message is sent alone, or held back for that. */
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

  /** May this message be sent now? What is held back goes with a later `flush()`. */
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
    // On a slow line the answer is behind all messages that are on their way.
    const busy = answered ? 0 : this.#busyUntil - platform.now()
    if (busy > 0 && this.#cancel === undefined) this.#wait(busy)
    const waited = this.#cancel === undefined
    return sure
      ? answered && waited
      : answered || waited || (suspicion.unheard < patient && !suspicion.named)
  }

  // Until then the answer to PINGREQ may come: bytes came in lately.
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

  /** The server answered a message; `last`: with the end of its exchange. One whose session is lost before that would start over. */
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

  /** The connection is over: was it because of the oldest of the messages that it carried? Gives that one when it is given up. */
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
    // After a wake-up it is unknown which side ended it.
    const cut = said
      ? vague.includes(reasonCode)
      : error.code === 'ERR_CONNECTION_LOST' &&
        error.fault === 'remote' &&
        !session.keepAlive.woken(platform.now())
    if (item.end === 0 || !(complained || (cut && item.end <= left))) return undefined
    item.suspicion ??= { strikes: 0, complained: false, named: false, unheard: 0 }
    const { suspicion } = item
    // A PINGREQ of keep-alive that went behind it says nothing.
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

  // Once, until it is answered.
  #report({ topic }: QueuedPublish): void {
    const why = `connections end at a publish to ${quoted(topic)} before PINGREQ is answered`
    this.#host.log(
      'warn',
      `${why}: the server or the message? It is sent again and again; outbound.ackTimeout bounds the wait`,
    )
  }

  // Undefined where it is sent as any other. Where nothing but CONNACK was ever heard before it, some more connections pass.
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
