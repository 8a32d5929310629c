/**
 * The memory budget for messages that wait to be read: what fits, and the end of a connection that brings more.
 *
 * Readers of QoS 1 and 2 lose nothing by it. Where the transport can be paused, nothing is read while a reader makes room, on 5.0 too: some brokers
 * forget retained messages that were in flight when a connection ended, others send all of a session again. Else what had no room stays unacknowledged,
 * and comes again on the next connection. It must never keep the answer from a program that waits for one.
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
 * Over the budget: how often it is looked whether what is held has been handed out, and how many looks without progress end that wait. Milliseconds.
 */
const lookAgain = 100
const mostIdleLooks = 10
/** The same where nothing is read meanwhile: a handler may take ten seconds for a message. */
const mostIdleHolds = 100

/** What the messages of one client may take. */
export class Budget {
  /** Bytes of messages that are buffered or held. */
  bytes = 0
  /** There was no room for a message: this connection brings no more at QoS 1 and 2. */
  overdrawn = false
  /** Bytes of the largest message so far, of those that fit: with all its copies. */
  largest = 0
  /** The same of all that were taken. */
  widest = 0
  /** What comes now was counted before. */
  granted = false
  readonly #host: DeliverHost<Consumer>
  readonly #drops: DropReport
  /** Bytes that it has left beside what is held elsewhere. */
  #room = 0
  #stopLook: CancelTimer | undefined
  /** Messages that had no room. */
  #refused = 0
  /** Reading of one connection, stopped until the application has made room. */
  #holds: PacketReader | undefined

  constructor(host: DeliverHost<Consumer>, drops: DropReport) {
    this.#host = host
    this.#drops = drops
  }

  /** A read begins. */
  handleRead(): void {
    this.#room = this.#host.options.memoryBudget - this.#host.connections.held
  }

  /** Bytes come in, or go. */
  add(change: number): void {
    this.bytes += change
  }

  /** True when a message of this size may be kept, so often; one that may not is dealt with. */
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

  // A program that waits for the answer to its request makes no room before that has come. Other subscriptions may hold what comes on its topic, too.
  #answers(topic: string): boolean {
    const { options, session } = this.#host
    const { asking, answersOn } = session.sendWindow
    return asking > 0 && topic === answersOn && this.bytes <= options.memoryBudget + this.largest
  }

  #exceeds(size: number, all: number, topic: string, ticket: number, qos: QoS): boolean {
    const { memoryBudget } = this.#host.options
    if (size > memoryBudget) {
      // It alone is too much, and would be again on the next connection: it is refused, not the server.
      this.#drops.handleTooLarge(topic, qos, size, memoryBudget, 'memoryBudget')
      if (ticket !== noTicket) this.#host.settle(ticket, 0x97)
      return false
    }
    // One may always come: what else is held goes by itself. At QoS 0 it comes for few enough readers.
    const isAlone = this.bytes === 0
    const fits =
      this.bytes + all <= this.#room || (isAlone && (ticket !== noTicket || all <= memoryBudget))
    if (ticket === noTicket) {
      if (!fits) this.#drops.add(topic)
      return fits
    }
    // Behind one that is too much for its many readers nothing is read before they are done.
    if (isAlone && all > memoryBudget) this.#waitsForReaders()
    if ((fits && !this.overdrawn) || this.#waitsForReaders()) return true
    this.#host.session.receiveWindow.takeBack()
    this.#refused += 1
    if (!this.overdrawn) this.#overdraw()
    return false
  }

  // The message that had no room is taken; nothing behind it is read before there is room for another.
  #waitsForReaders(): boolean {
    const { connections, options, platform, session, states } = this.#host
    const reader = connections.current?.reader
    if (this.overdrawn || states.stopping || reader?.pausable !== true || !this.#isPassive)
      return false
    if (this.#holds === reader) return true
    // An earlier connection has brought the one message too many, and it is here still.
    if (this.bytes > options.memoryBudget) return false
    // The look of an earlier connection is of no use any more.
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

  // A reader is at work, and waits for no answer of the server.
  get #isPassive(): boolean {
    return this.#isRead && !this.#host.session.sendWindow.awaits
  }

  get #isRead(): boolean {
    return [...this.#host.subscriptions.consumers].some(
      ({ attended, busy, unacknowledged }) =>
        attended || busy || unacknowledged.messages.length > 0,
    )
  }

  // There will be a reader once a SUBSCRIBE is answered, and that answer may come behind everything that has no room.
  get #isAwaited(): boolean {
    return [...this.#host.subscriptions.consumers].some(
      ({ ended, subscription }) => !ended && subscription.granted.length === 0,
    )
  }

  // What had no room is redelivered on the next connection. What is held is handed out before, while there is a reader: otherwise it would be redelivered, too.
  #overdraw(): void {
    const { platform, session } = this.#host
    const { negotiated } = session
    this.overdrawn = true
    let most = Number.POSITIVE_INFINITY
    let refused = 0
    let idle = 0
    const look = (): void => {
      // The end of the client is orderly, and says goodbye by itself.
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

/** Why the budget ends a connection. */
function overBudget(): MqttError {
  return new MqttError('ERR_CONNECTION_LOST', 'memory budget spent', {
    outcome: 'unknown',
    reasonCode: 0x97,
    reasonName: nameOf(0x97),
  })
}
