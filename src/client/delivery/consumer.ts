/**
 * One consumer: a bounded buffer between the connection and whoever reads, and the turns that acknowledge what was read.
 *
 * Under automatic acks a turn runs from handing a message out to asking for the next one (or leaving); under `'manual'` to `ack()`. It never
 * acknowledges a message that nobody was given, but for those that its overflow policy drops, or is about to.
 */
import { MqttError } from '../../errors.js'
import { Printed } from '../../printing.js'
import type { PublishView } from '../../wire/publish.js'
import type { Grant, Message, NextOptions, Subscription } from '../api/index.js'
import { type ConsumerConfig, nextOptions } from '../api/parse-calls.js'
import { assertNotAborted, silent } from '../common/abort.js'
import { asyncDisposeSymbol } from '../common/dispose.js'
import { invalid } from '../common/schema.js'
import type { Piece } from '../memory/message-memory.js'
import { internalFields } from './config.js'
import { Hands } from './hands.js'
import { iteration, streamOf } from './iteration.js'
import { BorrowedMessage, type DeliveredMessage } from './message.js'
import { isOwed, Overflow } from './overflow.js'
import type { ConsumerHost, Origin } from './ports.js'
import { Readers } from './readers.js'
import { Waiting } from './waiting.js'

const noOptions: NextOptions = Object.freeze({})

/** The implementation of {@link Subscription}. */
export class Consumer extends Printed implements Subscription {
  static override readonly name = 'Subscription'
  declare ready: Promise<Subscription>
  granted: readonly Grant[] = []
  dropped = 0
  /** Called once per delivery burst, instead of waiting `next()` calls: for `listen`. */
  declare onReadable: (() => void) | undefined
  /** Called with a message while it is read: true when it is done with it already. For handlers of borrowed messages. */
  declare onRead: ((message: DeliveredMessage) => boolean) | undefined
  /** Called when nothing more is handed out. */
  declare onClosing: (() => void) | undefined
  /** Called when no message will ever come again. */
  declare onEnd: ((error: MqttError | undefined) => void) | undefined
  /** Called once when it ends, to let go of what waits for that. */
  declare onLeave: (() => void) | undefined
  declare readonly config: ConsumerConfig
  /** Tells its messages from those of others. */
  declare readonly mark: symbol
  readonly #host: ConsumerHost<Consumer>
  readonly #waiting: Waiting
  readonly #overflow: Overflow
  /** Shown to `onRead` again and again. */
  #shown: BorrowedMessage | undefined
  readonly #readers: Readers
  readonly #hands = new Hands()
  #leaving: Promise<void> | undefined
  #iterating = false
  #closing = false
  #staying = false
  #detached = false
  #ended = false
  #error: MqttError | undefined

  constructor(host: ConsumerHost<Consumer>, config: ConsumerConfig) {
    super()
    Object.defineProperties(this, internalFields)
    this.#host = host
    this.config = config
    this.mark = Symbol()
    const { keyOf } = config
    this.#waiting = new Waiting(config, host.router.budget, keyOf && ((message) => this.#key(message, keyOf)))
    this.#overflow = new Overflow(host, this, this.#waiting)
    this.#readers = new Readers(host.platform)
    this.ready = Promise.resolve(this)
  }

  get size(): number {
    return this.#waiting.messages.length
  }

  get ended(): boolean {
    return this.#ended
  }

  override toJSON(): object {
    const { granted, size, dropped, ended } = this
    return { granted, size, dropped, ended }
  }

  /** Ticket of the oldest message here that is not settled; Infinity when there is none. */
  get oldestTicket(): number {
    const oldest = [this.#hands.messages.find(isOwed), this.#waiting.messages.find(isOwed)]
    return Math.min(...oldest.map((message) => message?.ticket ?? Number.POSITIVE_INFINITY))
  }

  /** True while a turn runs that `disconnect()` waits for (a loop body, a handler, or a message whose acknowledgement is still owed), or will run. */
  get busy(): boolean {
    if (this.#closing && this.#waiting.messages.length > 0 && (this.attended || this.#hands.messages.length > 0)) return true
    const loops = this.onReadable !== undefined || (this.#iterating && this.config.ack !== 'manual')
    return loops ? this.#hands.messages.length > 0 : this.#hands.messages.some((message) => !message.settled)
  }

  /** True when somebody reads from it, so that what is buffered will be read. */
  get attended(): boolean {
    return this.#iterating || this.#readers.length > 0 || this.onReadable !== undefined
  }

  // One whose key cannot be told keeps the order of its topic.
  #key(message: DeliveredMessage, keyOf: (message: Message) => unknown): unknown {
    try {
      return keyOf(message)
    } catch (error) {
      this.#host.log('error', 'order threw: ', error)
      return message.topic
    }
  }

  // Delivery

  /** The reader had a turn: what is too much goes. False when there is nothing to look after. */
  relieve(): boolean {
    return this.#overflow.relieve()
  }

  /** Takes a message, or drops one, as the overflow policy says. */
  push(message: DeliveredMessage): void {
    if (this.#ended || (this.#closing && !isLast(message))) return this.#decline(message)
    if (!message.settled && this.granted.length > 0 && !this.#closing) this.#receive(message)
    const waiter = this.#waiting.messages.length === 0 ? this.#readers.shift() : undefined
    if (waiter !== undefined) return waiter.resolve(this.#handOut(message))
    if (!this.#overflow.makeRoom(message)) return
    // `onDrop` may have ended it.
    if (this.#ended) return this.#decline(message)
    if (this.#waiting.loose === 0) this.#host.router.loosened.add(this)
    this.#waiting.push(message)
    if (!message.settled && this.config.overflow !== 'backpressure') this.#host.router.relief.add(this)
    this.onReadable?.()
  }

  /** True when a message may be shown while it is read, and does not have to wait for its turn. */
  get mayShow(): boolean {
    if (this.onRead === undefined || this.#waiting.messages.length > 0 || this.#hands.messages.length > 0) return false
    return !this.#closing && !this.#ended && this.granted.length > 0
  }

  /** Shows a message to a handler where it was read. Only while `mayShow`. @param shift how far places in the piece lie before those in the view */
  show(view: PublishView, topic: string, piece: Piece, shift: number, ticket: number, entry: Origin): void {
    const message: BorrowedMessage = this.#shown ?? new BorrowedMessage(view, topic, piece, shift, 0, this.#host, ticket)
    if (this.#shown !== undefined) message.show(view, topic, piece, shift, ticket)
    this.#shown = undefined
    message.origin = entry
    if (!message.settled) this.#receive(message)
    this.#handOut(message)
    if (this.onRead?.(message) === true) this.#shown = message
  }

  /** What waits moves out of memory that it may keep alive by itself; out of read windows only when it must. */
  moveOut(must: boolean): void {
    this.#waiting.moveOut(must)
  }

  /** Granted: what waited meanwhile is received now, and not given back any more. */
  handleGranted(): void {
    for (const message of this.#hands.messages) this.#receive(message)
    this.#waiting.messages.find((message) => {
      this.#receive(message)
      return false
    })
  }

  // Who asked for QoS 0 never delays an acknowledgement.
  #receive(message: DeliveredMessage): void {
    if (this.config.ack === 'on-receive' || (message.origin as Origin).qosOf(this) === 0) message.settle(0)
  }

  /** Nothing more will come: what is buffered can still be read, then the end or the error shows. */
  end(error: MqttError | undefined): void {
    if (this.#ended) return
    this.#ended = true
    this.#error = error
    this.#host.router.borrowers.delete(this)
    this.#readers.end(error)
    this.onLeave?.()
    this.onEnd?.(error)
  }

  /**
   * The client ends: what is buffered is let go, and running turns go on. But for the `last` time, what would not come again is handed out still;
   * `staying`: more of that may come.
   */
  close(staying: boolean, last = false): void {
    this.#closing = true
    this.#staying = staying
    this.onClosing?.()
    while (this.#overflow.dropOldest((message) => last || !isLast(message)));
    if (!staying) this.#readers.end(undefined)
  }

  // Reading

  next(given?: NextOptions): Promise<Message | undefined> {
    try {
      const options = given === undefined ? noOptions : nextOptions(given, '')
      assertNotAborted(options.signal)
      const message = this.read()
      if (message === undefined && (!this.#closing || this.#staying) && !this.#ended) return this.#readers.wait(options)
      if (message === undefined && !this.#closing && this.#error !== undefined) throw this.#error
      return Promise.resolve(message)
    } catch (error) {
      return Promise.reject(error)
    }
  }

  read(): Message | undefined {
    if (this.#readers.length > 0 && this.config.ack === 'auto') throw concurrent()
    this.#endTurn()
    const message = this.#shift()
    return message === undefined ? undefined : this.#handOut(message)
  }

  [Symbol.asyncIterator](): AsyncIterableIterator<Message> {
    return this.#iterate(
      () => this.next(),
      () => this.#buffered(),
    )
  }

  batches(max = Number.POSITIVE_INFINITY): AsyncIterableIterator<Message[]> {
    if (!(max >= 1)) invalid('max', 'a number of 1 or more')
    const rest = (first: Message | undefined): Message[] | undefined => {
      if (first === undefined) return undefined
      const batch = [first]
      while (batch.length < max) {
        const message = this.#shift()
        if (message === undefined) break
        batch.push(this.#handOut(message))
      }
      return batch
    }
    return this.#iterate(
      () => this.next().then(rest),
      () => rest(this.#buffered()),
    )
  }

  readable(): ReadableStream<Message> {
    if (this.config.ack === 'auto') invalid('ack', "'manual' or 'on-receive' for a stream")
    return streamOf(this[Symbol.asyncIterator]())
  }

  unsubscribe(): Promise<void> {
    this.#leaving ??= silent(
      this.#host.registry.leave(this).finally(() => {
        this.#leaving = undefined
      }),
    )
    return this.#leaving
  }

  detach(): void {
    this.leave('detach')
  }

  [asyncDisposeSymbol](): Promise<void> {
    this.leave()
    return Promise.resolve()
  }

  /** Ends it as said: acknowledges or keeps what was not read, and tells the owner. */
  leave(how: 'unsubscribe' | 'detach' = this.config.onExit): void {
    if (this.#closing) {
      if (how === 'detach') this.#hands.messages.length = 0
      this.#endTurn()
      this.close(false, true)
      return this.#host.handleTurnEnd()
    }
    if (this.#ended) {
      // Its filter is gone: what was not read has nowhere to go back to.
      return this.#host.router.handleKept(this.discard(how === 'unsubscribe'))
    }
    this.#detached = how === 'detach'
    const kept = this.discard(!this.#detached)
    this.end(undefined)
    this.#host.registry.drop(this, how)
    this.#host.router.handleKept(kept)
  }

  /** Empties the buffer and the hands: acknowledges (counted as dropped), or gives back what is owed in the order of arrival. */
  discard(acknowledge: boolean): DeliveredMessage[] {
    if (acknowledge) {
      this.#endTurn()
      this.dropBuffered()
      return []
    }
    return [...this.#hands.messages.splice(0), ...this.#waiting.drain()].filter((message) => !message.settled)
  }

  /** Nobody will read what is buffered: it is acknowledged and counted as dropped. What is in hand stays there. */
  dropBuffered(): void {
    for (const message of this.#waiting.drain()) this.drop(message)
  }

  /** Hands a buffered message to a handler that settles it by itself. */
  take(): DeliveredMessage | undefined {
    const message = this.#shift()
    return message && this.#handOut(message)
  }

  /** True while a message that `take` gave has not been given back. */
  holds(message: DeliveredMessage): boolean {
    return this.#hands.messages.includes(message)
  }

  /** A handler is done with a message that `take` gave. */
  release(message: DeliveredMessage): void {
    this.#hands.remove(message)
    message.release()
    this.#waiting.messages.free?.(message)
    this.#host.handleTurnEnd()
  }

  #shift(): DeliveredMessage | undefined {
    const message = this.#waiting.shift()
    // It may have been the last that `disconnect()` waits for.
    if (this.#closing) this.#host.handleTurnEnd()
    return message
  }

  #handOut(message: DeliveredMessage): DeliveredMessage {
    const { counters } = this.#host
    if (counters !== undefined) counters.delivered += 1
    if (this.config.ack === 'on-receive') message.settle(0)
    // Handlers give back what they have.
    this.#hands.add(message, this.config.ack === 'manual' && this.onReadable === undefined)
    return message
  }

  // Under 'manual' the application ends turns with `ack()`; borrowed messages end with the turn in every mode.
  #endTurn(): void {
    if (this.config.ack === 'manual') return
    const inHand = this.#hands.messages
    if (inHand.length === 0) return
    // One is what nearly every turn has.
    if (inHand.length === 1) this.#endOne(inHand.pop() as DeliveredMessage)
    else for (const message of inHand.splice(0)) this.#endOne(message)
    this.#host.handleTurnEnd()
  }

  #endOne(message: DeliveredMessage): void {
    if (this.config.ack === 'auto') message.settle(0)
    message.release()
  }

  /** True while it takes messages and hands them out. */
  get reads(): boolean {
    return !this.#ended && !this.#closing
  }

  // Too late: kept for the next subscription on its filter, or dropped, as this one was left.
  #decline(message: DeliveredMessage): void {
    if (this.#detached && !message.settled) this.#host.router.handleKept([message])
    else this.drop(message)
  }

  /** Lets a message go unread. */
  drop(message: DeliveredMessage): false {
    // While the client ends it stays unacknowledged; what the session keeps comes again, and is not lost.
    if (!this.#closing) message.settle(0)
    if (message.settled || this.#host.states.sessionEnds) {
      this.dropped += 1
      this.#host.router.drops.handleDrop(this, message)
    }
    message.release()
    return false
  }

  // What `next()` would give without waiting, where it would.
  #buffered(): Message | undefined {
    return this.#waiting.messages.length === 0 ? undefined : this.read()
  }

  #iterate<T>(pull: () => Promise<T | undefined>, buffered: () => T | undefined): AsyncIterableIterator<T> {
    if (this.#iterating && this.config.ack === 'auto') throw concurrent()
    this.#iterating = true
    return iteration(pull, buffered, (left) => {
      this.#iterating = false
      if (!left) return
      this.#readers.end(undefined)
      this.leave()
    })
  }
}

// Its filter is being left, so that this is the last chance; or it is a share that no other member of the group will get.
function isLast({ origin, settled }: DeliveredMessage): boolean {
  const { state, shared } = origin as Origin
  return state === 'leaving' || (shared && settled)
}

function concurrent(): MqttError {
  return new MqttError('ERR_CONCURRENT_NEXT')
}
