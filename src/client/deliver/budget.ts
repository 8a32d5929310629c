/**
 * The memory budget for messages that wait to be read: what fits, and what happens when more
 * arrives.
 *
 * QoS 1 and 2 messages are not lost by it, except one that alone exceeds the budget, which is
 * refused. Where the transport can be paused, reading stops until a reader has made room. This is
 * preferred on 5.0 too: some brokers forget retained messages that were in flight when a connection
 * ended, others resend the whole session. Otherwise, messages without room stay unacknowledged and
 * are redelivered on the next connection. The answer that a program waits for is let in beyond the
 * budget, up to the size of one more message.
 */

import { MqttError } from '../../errors.js'
import type { QoS } from '../../wire/packets.js'
import type { PacketReader } from '../connection/packet-reader.js'
import type { CancelTimer } from '../platform.js'
import { noTicket } from '../session/receive-window.js'
import { nameOf } from '../session/refusal.js'
import type { Consumer } from './consumer.js'
import type { DropReport } from './drop-report.js'
import type { DeliverHost } from './ports.js'

/**
 * While over budget: how often progress is checked, in milliseconds, and after how many checks
 * without progress the wait ends.
 */
const lookAgain = 100
const mostIdleLooks = 10
/** The same while reading is paused: a handler may take ten seconds for one message. */
const mostIdleHolds = 100

/** The memory budget of one client. */
export class Budget {
  /** Bytes of messages that are buffered or held. */
  bytes = 0
  /** A message had no room: this connection delivers no more QoS 1 and 2 messages. */
  overdrawn = false
  /** Bytes of the largest message so far that fits the budget, including all its copies. */
  largest = 0
  /** The same, also for messages whose copies together exceed the budget. */
  widest = 0
  /** What comes in now was already counted. */
  granted = false
  readonly #host: DeliverHost<Consumer>
  readonly #drops: DropReport
  /** Bytes of the budget left after what the connection itself holds. */
  #room = 0
  #stopLook: CancelTimer | undefined
  /** Number of messages that had no room. */
  #refused = 0
  /** The reader that is paused until the application makes room. */
  #holds: PacketReader | undefined

  constructor(host: DeliverHost<Consumer>, drops: DropReport) {
    this.#host = host
    this.#drops = drops
  }

  /** A read begins. */
  handleRead(): void {
    this.#room = this.#host.options.memoryBudget - this.#host.connections.held
  }

  /** Adds or subtracts held bytes. */
  add(change: number): void {
    this.bytes += change
  }

  /**
   * True when a message of this size may be held in so many copies. Otherwise the message has been
   * dropped, refused or left to redelivery.
   */
  affords(size: number, topic: string, ticket: number, qos: QoS, copies = 1): boolean {
    const all = size * copies
    const { memoryBudget } = this.#host.options
    if (size <= memoryBudget) this.widest = Math.max(this.widest, all)
    if (all <= memoryBudget) this.largest = Math.max(this.largest, all)
    const fits = this.bytes + all <= this.#room
    return (
      (fits && !this.overdrawn) ||
      this.granted ||
      this.#answers(topic) ||
      this.#exceeds(size, all, topic, ticket, qos)
    )
  }

  /** The client is over. */
  stop(): void {
    this.#stopLook?.()
  }

  // A program that waits for the answer to its request makes no room before it has come. Other
  // messages on that topic are let in, too.
  #answers(topic: string): boolean {
    const { options, session } = this.#host
    const { asking, answersOn } = session.sendWindow
    return asking > 0 && topic === answersOn && this.bytes <= options.memoryBudget + this.largest
  }

  #exceeds(size: number, all: number, topic: string, ticket: number, qos: QoS): boolean {
    const { memoryBudget } = this.#host.options
    if (size > memoryBudget) {
      // Larger than the whole budget, now and on every connection: the message is refused, the
      // connection stays.
      this.#drops.handleTooLarge(topic, qos, size, memoryBudget, 'memoryBudget')
      if (ticket !== noTicket) this.#host.settle(ticket, 0x97)
      return false
    }
    // With nothing held, one message may always come: nothing has to leave first. At QoS 0, only if
    // all its copies fit.
    const isAlone = this.bytes === 0
    const fits =
      this.bytes + all <= this.#room || (isAlone && (ticket !== noTicket || all <= memoryBudget))
    if (ticket === noTicket) {
      if (!fits) this.#drops.add(topic)
      return fits
    }
    // A message whose copies exceed the budget pauses reading until its readers are done.
    if (isAlone && all > memoryBudget) this.#waitsForReaders()
    if ((fits && !this.overdrawn) || this.#waitsForReaders()) return true
    this.#host.session.receiveWindow.takeBack()
    this.#refused += 1
    if (!this.overdrawn) this.#overdraw()
    return false
  }

  // Takes this message and pauses reading until there is room for another.
  #waitsForReaders(): boolean {
    const { connections, options, platform, session, states } = this.#host
    const reader = connections.current?.reader
    if (this.overdrawn || states.stopping || reader?.pausable !== true || !this.#isPassive)
      return false
    if (this.#holds === reader) return true
    // An earlier connection has already exceeded the budget by one message, which is still held.
    if (this.bytes > options.memoryBudget) return false
    // The check of an earlier connection is obsolete.
    this.#stopLook?.()
    let least = Number.POSITIVE_INFINITY
    let idle = 0
    const look = (): void => {
      const isOver =
        connections.current?.reader !== reader || session.state !== 'connected' || states.stopping
      idle = this.bytes < least ? 0 : idle + 1
      least = this.bytes
      if (!isOver) session.keepAlive.handleUnread(platform.now())
      const isRoomy =
        this.bytes === 0 ||
        this.bytes + this.largest <= this.#host.options.memoryBudget - connections.held
      if (!isOver && !isRoomy && this.#isPassive && idle < mostIdleHolds) {
        this.#stopLook = platform.setTimer(look, lookAgain)
        return
      }
      this.#holds = undefined
      if (!isOver && !isRoomy) this.#overdraw()
      reader.release(this)
    }
    this.#holds = reader
    reader.hold(this)
    this.#stopLook = platform.setTimer(look, lookAgain)
    return true
  }

  // True when a reader is active and the application waits for no answer of the server.
  get #isPassive(): boolean {
    return this.#isRead && !this.#host.session.sendWindow.awaits
  }

  get #isRead(): boolean {
    return [...this.#host.subscriptions.consumers].some(
      ({ attended, busy, unacknowledged }) =>
        attended || busy || unacknowledged.messages.length > 0,
    )
  }

  // True when a SUBSCRIBE is unanswered: its reader starts with the SUBACK, which may be behind
  // messages without room.
  get #isAwaited(): boolean {
    return [...this.#host.subscriptions.consumers].some(
      ({ ended, subscription }) => !ended && subscription.granted.length === 0,
    )
  }

  // Closes the connection, so that what had no room is redelivered. Before that, waits until
  // readers have drained the buffers; otherwise those messages would be redelivered too.
  #overdraw(): void {
    const { platform, session } = this.#host
    const { negotiated } = session
    this.overdrawn = true
    let most = Number.POSITIVE_INFINITY
    let refused = 0
    let idle = 0
    const look = (): void => {
      // A client that ends closes its connection in order.
      if (
        session.state !== 'connected' ||
        session.negotiated !== negotiated ||
        this.#host.states.stopping
      )
        return
      const left = session.receiveWindow.unsettled + this.bytes
      const isAwaited = this.#isAwaited
      idle = left < most || (isAwaited && refused < this.#refused) ? 0 : idle + 1
      most = left
      refused = this.#refused
      if ((this.#isRead || isAwaited) && left > 0 && idle < mostIdleLooks) {
        this.#stopLook = platform.setTimer(look, lookAgain)
        return
      }
      session.close(overBudget(), 0x97)
      this.#host.connections.pump()
    }
    look()
  }
}

/** The error with which the budget ends a connection. */
function overBudget(): MqttError {
  return new MqttError('ERR_CONNECTION_LOST', 'memory budget spent', {
    outcome: 'unknown',
    reasonCode: 0x97,
    reasonName: nameOf(0x97),
  })
}
