/**
 * QoS 1 and 2 publishes that were sent and lack their last acknowledgement. They are resent first
 * on the next connection [MQTT-4.4.0-1].
 *
 * The caller must check `admits` before each sending. A message is never resent on the connection
 * that carried it.
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
import type { StoringPublishHost } from './keeper.js'
import type { Backlog, RateLimit } from './outbound-queue.js'
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
/** A larger table is freed when it becomes empty. */
const mostKept = 4096

/**
 * Messages in flight by packet identifier, in one array indexed by the low bits of the identifier:
 * a lookup is one read.
 *
 * Identifiers are assigned consecutively, so they rarely collide; on a collision the array doubles,
 * up to one slot for each identifier.
 */
export class PublishTable {
  size = 0
  #slots: (QueuedPublish | undefined)[] = []

  get(packetId: number): QueuedPublish | undefined {
    const item = this.#slots[packetId & (this.#slots.length - 1)]
    return item?.packetId === packetId ? item : undefined
  }

  /** Adds an item under its packet identifier, which must be free. */
  add(item: QueuedPublish): void {
    while (
      this.#slots.length === 0 ||
      (this.get(item.packetId) === undefined && this.#isTaken(item.packetId))
    )
      this.#double()
    this.#slots[item.packetId & (this.#slots.length - 1)] = item
    this.size += 1
  }

  /** Removes the item with this identifier, which must be present. */
  delete(packetId: number): void {
    this.#slots[packetId & (this.#slots.length - 1)] = undefined
    this.size -= 1
    if (this.size === 0 && this.#slots.length > mostKept) this.#slots = []
  }

  clear(): void {
    this.#slots = []
    this.size = 0
  }

  /** All items, in the order of sending. */
  all(): QueuedPublish[] {
    return this.#slots
      .filter((item) => item !== undefined)
      .sort((first, second) => first.order - second.order)
  }

  /** Items without PUBREC, in the order of sending. */
  unreleased(): QueuedPublish[] {
    return this.all().filter((item) => item.released === 0)
  }

  /** Items with PUBREC, in the order of the PUBRECs. */
  released(): QueuedPublish[] {
    const items = this.all().filter((item) => item.released > 0)
    return items.sort((first, second) => first.released - second.released)
  }

  #isTaken(packetId: number): boolean {
    return this.#slots[packetId & (this.#slots.length - 1)] !== undefined
  }

  // Items in different slots stay in different slots.
  #double(): void {
    const items = this.all()
    this.#slots = new Array<QueuedPublish | undefined>(
      Math.max(least, this.#slots.length * 2),
    ).fill(undefined)
    for (const item of items) this.#slots[item.packetId & (this.#slots.length - 1)] = item
  }
}

/**
 * Most milliseconds that CONNECT waits for a count to be stored. A working store needs less, and
 * servers wait much longer for CONNECT.
 */
const longestCount = 1000

/** Number of times that a publish is retried under another identifier. */
const mostRetries = 16

/** The publishes in flight of one client. */
export class SentPublishes extends PublishTable {
  /** Number of PUBRECs so far. */
  releases = 0
  readonly #host: StoringPublishHost
  readonly #backlog: Backlog
  readonly settlement: Settlement
  /**
   * Pending write of how often connections ended on a message. CONNECT waits for it, up to
   * `longestCount` after the connection ended.
   */
  counting: Promise<void> | undefined
  #stopCounting: (() => void) | undefined
  /** Still to be resent on this connection. */
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

  /** True while something is still to be resent. */
  get waiting(): boolean {
    return this.#replays.length > 0
  }

  /** True when a new message may be sent: nothing is left to resend, and quota allows it. */
  admits(item: QueuedPublish): boolean {
    const { sendWindow } = this.#host.session
    return (
      this.#replays.length === 0 &&
      sendWindow.mayPublish &&
      sendWindow.admits(item.options.qos) &&
      this.#poison.admits(item)
    )
  }

  /**
   * Writes an item for the first time. @throws WireError, MqttError ERR_PACKET_TOO_LARGE; nothing
   * was written then
   */
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
      // A packet that has not left completely cannot be acknowledged yet.
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

  /** Removes an item whose packet could not be written; none of its bytes left. */
  withdraw(item: QueuedPublish): void {
    if (this.get(item.packetId) !== item) return
    this.delete(item.packetId)
    this.#host.session.sendWindow.withdraw(item.packetId)
  }

  /** PUBREC came in: the server now owns the message. */
  handleReleased(packetId: number, reasonCode: number): void {
    const item = this.get(packetId)
    if (item === undefined || item.released > 0) return
    this.#handleAck(item, false)
    item.released = ++this.releases
    item.received = reasonCode
    if (!republishes(item, this.#host)) item.wire = undefined
  }

  /** The last acknowledgement came in, in a packet of this type. */
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

  /** A connection is up: PUBRELs are resent at once, messages with DUP as quota allows. */
  handleConnected(): void {
    const { sendWindow } = this.#host.session
    this.#poison.handleConnected()
    for (const item of this.released()) sendWindow.replayRelease(item.packetId)
    for (const item of this.unreleased()) this.#replays.push(item)
    if (this.size > 0) this.#awaitAck()
  }

  /** Resends the next item; false when none may be sent now. */
  replay(output: PacketWriter): boolean {
    const item = this.#replays.peek()
    const { sendWindow } = this.#host.session
    if (item === undefined || !sendWindow.mayReplay || !sendWindow.admits(item.options.qos))
      return false
    // Still unanswered since the previous connection.
    const carried = this.get(item.packetId) === item && item.released === 0
    // A message that is still being stored is sent once that is done.
    if (carried && (item.length < 0 || !this.#poison.admits(item))) return false
    this.#replays.shift()
    if (carried && item.wire !== undefined) this.#resend(item, output, item.wire)
    return true
  }

  // Resends the same packet with DUP, unless this server's limits no longer allow it.
  #resend(item: QueuedPublish, output: PacketWriter, wire: Sending): void {
    const { session } = this.#host
    const { packetId, topic, options } = item
    try {
      assertTaken(options, this.#host)
      // The protocol version may have changed.
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

  // Fails an item that is not sent again.
  #giveUp(item: QueuedPublish, error: MqttError): void {
    this.#host.session.sendWindow.abandon(item.packetId)
    this.delete(item.packetId)
    this.settlement.fail(item, error)
  }

  // Puts an item before those that were never sent. Call it from the youngest to the oldest.
  #requeue(item: QueuedPublish): void {
    this.settlement.handleUnsent(item)
    this.#backlog.unshift(item)
  }

  /**
   * The connection is lost. The oldest message is given up if too many connections have ended on
   * it.
   */
  handleLost(error: MqttError): void {
    this.#watch?.stop()
    this.#replays.drain()
    const [oldest] = this.unreleased()
    const poisoned = this.#poison.handleLost(oldest, error)
    for (const item of this.all()) item.end = 0
    if (oldest !== undefined && poisoned !== undefined) this.#giveUp(oldest, poisoned)
    else if (oldest?.suspicion !== undefined) this.#keepCount(oldest, oldest.suspicion.strikes)
  }

  // Stores the count for the next process, in the session's record or in the store of the
  // publisher.
  #keepCount(item: QueuedPublish, strikes: number): void {
    const stored = item.options[isStored]
    const writes = [
      typeof stored === 'object' ? stored.suspect(strikes) : undefined,
      this.#host.publishing.keeper?.suspect(item),
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

  /** The session is lost: each message in flight is sent again or rejected, as its options say. */
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
    const kept = this.#host.publishing.keeper !== undefined
    for (const item of [...this.unreleased(), ...this.released()])
      this.settlement.fail(item, error, kept)
    this.#clear()
  }

  #clear(): void {
    this.#replays.drain()
    this.clear()
  }
}
