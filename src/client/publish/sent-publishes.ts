/**
 * What was sent at QoS 1 and 2 and lacks its last acknowledgement: kept until then, and sent again on the next connection, before anything new
 * [MQTT-4.4.0-1].
 *
 * It may assume that `admits` was asked before each sending. It must never send a message again on the connection that carried it.
 */
import { tally } from '../../common/counters.js'
import { withOutcome } from '../../common/outcome.js'
import { Ring } from '../../common/ring.js'
import { StallWatch, stallAge } from '../../common/stall-watch.js'
import type { MqttError } from '../../errors.js'
import { PUBACK, PUBCOMP } from '../../wire/constants.js'
import type { Properties } from '../../wire/packets.js'
import type { PacketWriter } from '../connection/packet-writer.js'
import type { Sending } from '../options/check-calls.js'
import { isStored } from '../options/hidden.js'
import type { Backlog, RateLimit } from './backlog.js'
import type { StoringPublishHost } from './keeper.js'
import type { PoisonDetector } from './poison-detector.js'
import {
  assertTaken,
  identifierInUse,
  type Losses,
  lossesOf,
  type QueuedPublish,
  receipt,
  refused,
  republishes,
  sessionLost,
  sizeOfMessage,
} from './queued-publish.js'
import type { Settlement } from './settlement.js'

const least = 16
/** A table longer than this is not kept for nothing. */
const mostKept = 4096

/**
 * Messages in flight, by packet identifier: one array, as long as the span of identifiers in use, so that finding one costs a read.
 *
 * Identifiers are given in turn, so neighbours never share a slot; where two would, the array doubles, up to one slot for each identifier.
 */
export class PublishTable {
  size = 0
  #slots: (QueuedPublish | undefined)[] = []

  get(packetId: number): QueuedPublish | undefined {
    const item = this.#slots[packetId & (this.#slots.length - 1)]
    return item?.packetId === packetId ? item : undefined
  }

  /** Puts an item under its packet identifier, which nothing else has. */
  add(item: QueuedPublish): void {
    while (
      this.#slots.length === 0 ||
      (this.get(item.packetId) === undefined && this.#isTaken(item.packetId))
    )
      this.#double()
    this.#slots[item.packetId & (this.#slots.length - 1)] = item
    this.size += 1
  }

  /** Takes out what was found under this identifier. */
  delete(packetId: number): void {
    this.#slots[packetId & (this.#slots.length - 1)] = undefined
    this.size -= 1
    if (this.size === 0 && this.#slots.length > mostKept) this.#slots = []
  }

  clear(): void {
    this.#slots = []
    this.size = 0
  }

  /** All, in the order in which they were sent. */
  all(): QueuedPublish[] {
    return this.#slots
      .filter((item) => item !== undefined)
      .sort((first, second) => first.order - second.order)
  }

  /** Those without PUBREC, in the order in which they were sent. */
  unreleased(): QueuedPublish[] {
    return this.all().filter((item) => item.released === 0)
  }

  /** Those with PUBREC, in the order of that. */
  released(): QueuedPublish[] {
    const items = this.all().filter((item) => item.released > 0)
    return items.sort((first, second) => first.released - second.released)
  }

  #isTaken(packetId: number): boolean {
    return this.#slots[packetId & (this.#slots.length - 1)] !== undefined
  }

  // No two of them meet in the longer one.
  #double(): void {
    const items = this.all()
    this.#slots = new Array<QueuedPublish | undefined>(
      Math.max(least, this.#slots.length * 2),
    ).fill(undefined)
    for (const item of items) this.#slots[item.packetId & (this.#slots.length - 1)] = item
  }
}

/** Milliseconds for which CONNECT waits for a count: what a store that works needs at most, and far less than a server waits for CONNECT. */
const longestCount = 1000

/** Times that a publish is tried under another identifier. */
const mostRetries = 16

/** Publishes in flight of one client. */
export class SentPublishes extends PublishTable {
  /** How many got their PUBREC. */
  releases = 0
  readonly #host: StoringPublishHost
  readonly #backlog: Backlog
  readonly settlement: Settlement
  /** How often connections ended over a message is being written: CONNECT waits until it is, or `longestCount` since the connection ended. */
  counting: Promise<void> | undefined
  #stopCounting: (() => void) | undefined
  /** To be sent again on this connection. */
  readonly #replays = new Ring<QueuedPublish>()
  readonly #poison: PoisonDetector
  readonly #rate: RateLimit | undefined
  #watch: StallWatch | undefined
  #acks = 0

  constructor(
    host: StoringPublishHost,
    backlog: Backlog,
    settlement: Settlement,
    poison: PoisonDetector,
    rate: RateLimit | undefined,
  ) {
    super()
    this.#host = host
    this.#backlog = backlog
    this.settlement = settlement
    this.#poison = poison
    this.#rate = rate
  }

  /** Something is to be sent again. */
  get waiting(): boolean {
    return this.#replays.length > 0
  }

  /** May a new message be sent now, behind those that go again? */
  admits(item: QueuedPublish): boolean {
    const { sendWindow } = this.#host.session
    return (
      this.#replays.length === 0 &&
      sendWindow.mayPublish &&
      sendWindow.admits(item.options.qos) &&
      this.#poison.admits(item)
    )
  }

  /** Writes it for the first time. @throws WireError, MqttError ERR_PACKET_TOO_LARGE; nothing was written then */
  write(item: QueuedPublish, output: PacketWriter): void {
    const { topic, payload, wire, packetId } = item
    if (wire === undefined) return
    this.settlement.handleWriting(item, output)
    item.length = output.publish(topic, payload, wire, packetId)
    this.#poison.handleSent(item)
    if (!item.settled) this.#awaitAck()
  }

  #awaitAck(): void {
    const host = this.#host
    this.#watch ??= new StallWatch(host.platform, {
      open: () => this.size,
      // What has not left whole cannot be acknowledged.
      progress: () =>
        host.connections.connection?.writer.source === undefined ? this.#acks : Number.NaN,
      patience: () => stallAge,
      report: (age) => {
        host.log('warn', `the server acknowledges nothing since ${Math.round(age)} ms`)
        host.events.emit('stalled', {
          direction: 'out',
          subscription: undefined,
          age,
          inFlight: this.size,
        })
      },
    })
    this.#watch.start()
  }

  /** It could not be written: not a byte of it left. */
  withdraw(item: QueuedPublish): void {
    if (this.get(item.packetId) !== item) return
    this.delete(item.packetId)
    this.#host.session.sendWindow.withdraw(item.packetId)
  }

  /** PUBREC came in: the message is the server's now. */
  handleReleased(packetId: number, reasonCode: number): void {
    const item = this.get(packetId)
    if (item === undefined || item.released > 0) return
    this.#handleAck(item, false)
    item.released = ++this.releases
    item.received = reasonCode
    if (!republishes(item, this.#host)) item.wire = undefined
  }

  /** The last acknowledgement of a publish came in: a packet of this type. */
  handleAcknowledged(
    packetType: number,
    packetId: number,
    reasonCode: number,
    properties: Properties | undefined,
  ): void {
    const item = this.get(packetId)
    if (item === undefined) return
    this.delete(packetId)
    this.#handleAck(item, true)
    const retries =
      reasonCode === identifierInUse &&
      packetType === PUBACK &&
      !item.settled &&
      item.retries++ < mostRetries
    if (retries && this.#host.session.sendWindow.disown(packetId)) return this.#requeue(item)
    if (item.doubt !== undefined) return this.settlement.fail(item, item.doubt)
    tally(this.#host, 'publishesAcked')
    if (reasonCode < 0x80 || packetType === PUBCOMP)
      return this.settlement.succeed(
        item,
        receipt(reasonCode || item.received, packetId, properties),
      )
    tally(this.#host, 'refusals')
    this.settlement.fail(item, refused(item, packetType, reasonCode, properties))
  }

  #handleAck(item: QueuedPublish, last: boolean): void {
    this.#acks += 1
    if (this.size === 0) this.#watch?.stop()
    else this.#watch?.renew()
    this.#poison.handleAnswer(item, last)
  }

  /** A connection is up: PUBREL goes on at once, messages follow with DUP as the quota allows. */
  handleConnected(): void {
    const { sendWindow } = this.#host.session
    this.#poison.handleConnected()
    for (const item of this.released()) sendWindow.replayRelease(item.packetId)
    for (const item of this.unreleased()) this.#replays.push(item)
    if (this.size > 0) this.#awaitAck()
  }

  /** Sends the next one again; false when none may go now. */
  replay(output: PacketWriter): boolean {
    const item = this.#replays.peek()
    const { sendWindow } = this.#host.session
    if (item === undefined || !sendWindow.mayReplay || !sendWindow.admits(item.options.qos))
      return false
    // Still without an answer since the connection before.
    const carried = this.get(item.packetId) === item && item.released === 0
    // What is not stored yet goes when it is.
    if (carried && (item.length < 0 || !this.#poison.admits(item))) return false
    this.#replays.shift()
    if (carried && item.wire !== undefined) this.#resend(item, output, item.wire)
    return true
  }

  // Exactly the packet that was sent, but for DUP; unless this server takes less than the one before.
  #resend(item: QueuedPublish, output: PacketWriter, wire: Sending): void {
    const { session } = this.#host
    const { packetId, topic, options } = item
    try {
      assertTaken(options, this.#host)
      // This server may speak the other version.
      output.assertFits(
        Math.max(item.length, sizeOfMessage(topic, item.payload, wire, session.version)),
      )
    } catch (error) {
      return this.#giveUp(item, withOutcome(error, 'unknown'))
    }
    session.sendWindow.replay(packetId)
    item.repeated = true
    this.settlement.handleWriting(item, output)
    tally(this.#host, 'publishesReplayed')
    this.#rate?.spend(topic, item.payload, wire)
    output.publish(topic, item.payload, wire, packetId, true)
    this.#poison.handleSent(item)
  }

  // It is not sent again.
  #giveUp(item: QueuedPublish, error: MqttError): void {
    this.#host.session.sendWindow.abandon(item.packetId)
    this.delete(item.packetId)
    this.settlement.fail(item, error)
  }

  // In front of what was never sent; to be called from the youngest to the oldest.
  #requeue(item: QueuedPublish): void {
    this.settlement.handleUnsent(item)
    this.#backlog.unshift(item)
  }

  /** The connection is over: a message over which it ended once too often is given up. */
  handleLost(error: MqttError): void {
    this.#watch?.stop()
    this.#replays.drain()
    const [oldest] = this.unreleased()
    const poisoned = this.#poison.handleLost(oldest, error)
    for (const item of this.all()) item.end = 0
    if (oldest !== undefined && poisoned !== undefined) this.#giveUp(oldest, poisoned)
    else if (oldest?.suspicion !== undefined) this.#keepCount(oldest, oldest.suspicion.strikes)
  }

  // For the next process: in the record of the session, or by who keeps the message.
  #keepCount(item: QueuedPublish, strikes: number): void {
    const stored = item.options[isStored]
    const writes = [
      typeof stored === 'object' ? stored.suspect(strikes) : undefined,
      this.#host.publishQueue.keeper?.suspect(item),
    ]
    this.#stopCounting?.()
    if (writes.every((write) => write === undefined)) return
    this.counting = new Promise((resolve) => {
      const stop = (): void => {
        cancel()
        resolve()
        if (this.#stopCounting === stop) this.counting = undefined
      }
      const cancel = this.#host.platform.setTimer(stop, longestCount)
      this.#stopCounting = stop
      void Promise.all(writes).then(stop)
    })
  }

  /** The session is gone: what was in flight is sent again or rejected, as its options say; one by one. */
  handleSessionLost(): { readonly losses: Losses; readonly settle: () => void } {
    const again: QueuedPublish[] = []
    const lost: QueuedPublish[] = []
    for (const item of this.all())
      (!item.settled && republishes(item, this.#host) ? again : lost).push(item)
    this.#clear()
    const losses = lossesOf(again, lost)
    for (const item of again.reverse()) this.#requeue(item)
    const settle = (): void => void lost.map((item) => this.settlement.fail(item, sessionLost()))
    return { losses, settle }
  }

  /** The client is over. */
  end(error: MqttError): void {
    this.#watch?.stop()
    this.#stopCounting?.()
    const kept = this.#host.publishQueue.keeper !== undefined
    for (const item of [...this.unreleased(), ...this.released()])
      this.settlement.fail(item, error, kept)
    this.#clear()
  }

  #clear(): void {
    this.#replays.drain()
    this.clear()
  }
}
