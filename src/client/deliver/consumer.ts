/**
 * One consumer, as those see it who route messages to filters and to readers: where messages are pushed in, and how it ends.
 *
 * What waits is in its `ReceiveBuffer`, what was handed out in `Outstanding`; applications read it by a `SubscriptionHandle`, or by the handler of a
 * `listen`. It never acknowledges a message that was not handed out, except those that its overflow policy drops, or is about to.
 */

import { aborted, type Deferred, deferred, onAbort } from '../../common/abort.js'
import type { Piece } from '../../common/message-memory.js'
import { Ring } from '../../common/ring.js'
import { MqttError } from '../../errors.js'
import type { PublishView } from '../../wire/publish.js'
import type { ConsumerConfig } from '../options/check-calls.js'
import type { AckMode, Grant, Message, NextOptions, Subscription } from '../options/index.js'
import type { Platform } from '../platform.js'
import { OverflowPolicy, ReceiveBuffer } from './buffer.js'
import { BorrowedMessage, type DeliveredMessage } from './message.js'
import type { ConsumerHost, MessageHandler, Origin } from './ports.js'
import { isOwed } from './settler.js'

/** What the application sees of a consumer, and hears from it. */
export interface PublicFace extends Subscription {
  granted: readonly Grant[]
  dropped: number
  toJSON(): object
}

/** A bounded buffer between the connection and its reader. */
export class Consumer {
  /** Settles with the grant. */
  declare ready: Promise<Subscription>
  declare subscription: PublicFace
  /** Called once when it ends, to let go of what waits for that. */
  declare onLeave: (() => void) | undefined
  readonly config: ConsumerConfig
  /** Distinguishes its messages from those of others. */
  readonly mark = Symbol()
  readonly buffer: ReceiveBuffer
  readonly readers: Readers
  readonly unacknowledged: Unacknowledged
  readonly #host: ConsumerHost
  readonly #overflow: OverflowPolicy
  /** Shown to the handler again and again. */
  #shown: BorrowedMessage | undefined
  /** The client ends: from now on only messages are delivered that the broker will not redeliver. */
  closing = false
  /** Nothing more comes: what is buffered can still be read. */
  ended = false
  #detached = false

  constructor(host: ConsumerHost, config: ConsumerConfig) {
    this.#host = host
    this.config = config
    const { keyOf } = config
    this.buffer = new ReceiveBuffer(
      config,
      host.router,
      keyOf && ((message) => keyed(host, message, keyOf)),
    )
    this.readers = new Readers(host.platform)
    this.unacknowledged = new Unacknowledged(host, config.ack, this.buffer, this.readers)
    this.#overflow = new OverflowPolicy(host, this)
  }

  /** How many messages wait. */
  get size(): number {
    return this.buffer.messages.length
  }

  /** True while a turn runs that `disconnect()` waits for, or will run. */
  get busy(): boolean {
    const { unacknowledged } = this
    return (
      unacknowledged.busy ||
      (this.closing && this.size > 0 && (this.attended || unacknowledged.messages.length > 0))
    )
  }

  /** True when a read is pending, so that what is buffered will be read. */
  get attended(): boolean {
    return this.readers.attended
  }

  /** True while it takes messages and hands them out. */
  get open(): boolean {
    return !this.ended && !this.closing
  }

  /** True when a message may be shown while it is read, and does not have to wait for its turn. */
  get mayShow(): boolean {
    if (
      this.readers.handler?.takesShown !== true ||
      this.#host.hooks !== undefined ||
      this.size > 0 ||
      this.unacknowledged.messages.length > 0
    )
      return false
    return this.open && this.subscription.granted.length > 0
  }

  /** Shows a message to a handler where it was read. Only while `mayShow`. @param shift how far places in the piece lie before those in the view */
  show(
    view: PublishView,
    topic: string,
    piece: Piece,
    shift: number,
    ticket: number,
    entry: Origin,
  ): void {
    this.#shown ??= new BorrowedMessage(0, this.#host, true)
    const message = this.#shown.place(view, topic, piece, shift, ticket, entry)
    if (!message.settled) this.#receive(message)
    this.unacknowledged.messages.push(message)
    if (this.readers.handler?.handleShown(message) !== true) this.#shown = undefined
  }

  /** Takes a message, or drops one, as the overflow policy says. */
  push(message: DeliveredMessage): void {
    if (this.ended || (this.closing && !isLast(message))) return this.#decline(message)
    if (!message.settled && this.subscription.granted.length > 0 && !this.closing)
      this.#receive(message)
    const call = this.size === 0 ? this.readers.calls.shift() : undefined
    if (call !== undefined) return call.resolve(this.unacknowledged.handOut(message))
    if (!this.#overflow.makeRoom(message)) return
    // `onDrop` may have ended it.
    if (this.ended) return this.#decline(message)
    this.buffer.push(message)
    if (!message.settled && this.config.overflow !== 'backpressure')
      this.#host.router.sweep.add(this.#overflow)
    this.readers.handler?.handleReadable()
  }

  /** Granted: what waited meanwhile is received now, and not given back any more. */
  handleGranted(): void {
    for (const message of this.unacknowledged.messages) this.#receive(message)
    this.buffer.messages.youngest(this.size, (message) => this.#receive(message))
  }

  // Who asked for QoS 0 never delays an acknowledgement.
  #receive(message: DeliveredMessage): void {
    if (this.config.ack === 'on-receive' || (message.origin as Origin).qosOf(this) === 0)
      message.settle(0)
  }

  // Too late: kept for the next subscription on its filter, or dropped, as this one was left.
  #decline(message: DeliveredMessage): void {
    if (this.#detached && !message.settled) this.#host.router.requeue([message])
    else this.#overflow.drop(message)
  }

  /** Nothing more will come: what is buffered can still be read, then the end or the error shows. */
  end(error: MqttError | undefined): void {
    if (this.ended) return
    this.ended = true
    this.#host.router.borrowers.delete(this)
    this.readers.end(error)
    this.onLeave?.()
    this.readers.handler?.handleEnd(error)
  }

  /**
   * The client ends: what is buffered is let go, and running turns go on. But for the `last` time, what would not come again is handed out still;
   * `staying`: more of that may come.
   */
  close(staying: boolean, last = false): void {
    this.closing = true
    while (this.#overflow.dropOldest((message) => last || !isLast(message)));
    // After the buffer: a handler that gives a message up takes the next one.
    this.readers.handler?.handleClosing()
    if (!staying) this.readers.end(undefined)
  }

  /** Ends it in the given way: acknowledges or keeps what was not read, and informs the owner. */
  leave(how: 'unsubscribe' | 'detach' = this.config.onExit): void {
    const { subscriptions, router } = this.#host
    if (this.closing) {
      if (how === 'detach') this.unacknowledged.messages.length = 0
      this.unacknowledged.endTurn()
      this.close(false, true)
      return this.#host.handleTurnEnd()
    }
    // Its filter is gone: what was not read has nowhere to go back to.
    if (this.ended) return router.requeue(this.discard(how === 'unsubscribe'))
    this.#detached = how === 'detach'
    const kept = this.discard(!this.#detached)
    this.end(undefined)
    subscriptions.drop(this, how)
    router.requeue(kept)
  }

  /** Empties the buffer and the hands: acknowledges (counted as dropped), or gives back what is owed in the order of arrival. */
  discard(acknowledge: boolean): DeliveredMessage[] {
    if (!acknowledge)
      return [...this.unacknowledged.messages.splice(0), ...this.buffer.drain()].filter(isOwed)
    this.unacknowledged.endTurn()
    // What is buffered will not be read. What is in hand stays there.
    for (const message of this.buffer.drain()) this.#overflow.drop(message)
    return []
  }
}

// Its filter is being left, so that this is the last chance; or it is a share that no other member of the group will get.
function isLast({ origin, settled }: DeliveredMessage): boolean {
  const { state, grouped } = origin as Origin
  return state === 'leaving' || (grouped && settled)
}

// A message whose key function fails keeps the order of its topic.
function keyed(
  host: ConsumerHost,
  message: DeliveredMessage,
  keyOf: (message: Message) => unknown,
): unknown {
  try {
    return keyOf(message)
  } catch (error) {
    host.report('MQWIRE_HANDLER_FAILED', 'order threw', error)
    return message.topic
  }
}

/** The readers of a consumer. */
export class Readers {
  /** Of `listen`. */
  handler: MessageHandler | undefined
  /** A loop runs. */
  iterating = false
  readonly #platform: Platform
  /** Calls that wait. */
  readonly calls = new Ring<Deferred<Message | undefined>>()
  /** No message will come. */
  #over: { readonly error: MqttError | undefined } | undefined

  constructor(platform: Platform) {
    this.#platform = platform
  }

  /** True when a read is pending, so that what is buffered will be read. */
  get attended(): boolean {
    return this.iterating || this.calls.length > 0 || this.handler !== undefined
  }

  /** A call waits for a message that is not there. @throws MqttError what ended the reading */
  wait({ signal, timeout }: NextOptions): Promise<Message | undefined> {
    if (this.#over?.error !== undefined) throw this.#over.error
    if (this.#over !== undefined) return Promise.resolve(undefined)
    const call = deferred<Message | undefined>()
    const give = (error: MqttError): void =>
      this.calls.take((other) => other === call)?.reject(error)
    const stop = onAbort(signal, () => give(aborted(signal)))
    const late = (): void => give(new MqttError('ERR_TIMEOUT', `no message in ${timeout} ms`))
    const cancel = timeout === undefined ? undefined : this.#platform.setTimer(late, timeout)
    this.calls.push(call)
    if (signal === undefined && cancel === undefined) return call.promise
    return call.promise.finally(() => {
      stop()
      cancel?.()
    })
  }

  /** No message will come any more: with an error, or in order. What was said first holds. */
  end(error: MqttError | undefined): void {
    this.#over ??= { error }
    for (const call of this.calls.drain()) {
      if (error === undefined) call.resolve(undefined)
      else call.reject(error)
    }
  }
}

/** Messages in hand that are not looked through. */
const leastSweep = 64

/**
 * The messages of one consumer that were handed out and are not done with.
 *
 * With automatic acknowledgement a turn runs from handing a message out to asking for the next one; with `'manual'` to `ack()`; a handler says when it is
 * done. A message that was not handed out is never acknowledged.
 */
export class Unacknowledged {
  messages: DeliveredMessage[] = []
  #sweepAt = leastSweep
  readonly #host: ConsumerHost
  readonly #ack: AckMode
  readonly #buffer: ReceiveBuffer
  readonly #readers: Readers

  constructor(host: ConsumerHost, ack: AckMode, buffer: ReceiveBuffer, readers: Readers) {
    this.#host = host
    this.#ack = ack
    this.#buffer = buffer
    this.#readers = readers
  }

  /** True while a turn runs that `disconnect()` waits for: a loop body, a handler, or a message whose acknowledgement is still owed. */
  get busy(): boolean {
    const { handler, iterating } = this.#readers
    const ends = handler !== undefined || (iterating && this.#ack !== 'manual')
    return ends ? this.messages.length > 0 : this.messages.some((message) => !message.settled)
  }

  /** Hands out the next message that waits. */
  next(): DeliveredMessage | undefined {
    const host = this.#host
    const message = this.#buffer.shift()
    if (message !== undefined) this.handOut(message)
    // A turn ended before, or it may have been the last that `disconnect()` waits for.
    host.handleTurnEnd()
    return message
  }

  /** Hands one out. */
  handOut(message: DeliveredMessage): DeliveredMessage {
    const { counters } = this.#host
    const ack = this.#ack
    if (counters !== undefined) counters.delivered += 1
    if (ack === 'on-receive') message.settle(0)
    // What the application has settled is forgotten, not at each message, or many would cost a walk each. Handlers give back what they have.
    if (
      ack === 'manual' &&
      this.messages.length >= this.#sweepAt &&
      this.#readers.handler === undefined
    ) {
      this.messages = this.messages.filter(({ settled }) => !settled)
      this.#sweepAt = Math.max(leastSweep, this.messages.length * 2)
    }
    this.messages.push(message)
    this.#host.hooks?.deliver(message, this.#host)
    return message
  }

  /** The reader asks for more, or leaves. Under 'manual' the application ends turns with `ack()`; borrowed messages end with the turn in every mode. */
  endTurn(): void {
    if (this.#ack === 'manual') return
    const { messages } = this
    if (messages.length === 0) return
    // One is what nearly every turn has.
    if (messages.length === 1) this.#endOne(messages.pop() as DeliveredMessage)
    else for (const message of messages.splice(0)) this.#endOne(message)
  }

  #endOne(message: DeliveredMessage): void {
    if (this.#ack === 'auto') message.settle(0)
    message.release()
  }

  /** A handler is done with one. */
  release(message: DeliveredMessage): void {
    const { messages } = this
    // What came last goes fastest.
    if (messages.at(-1) === message) messages.pop()
    else if (messages.includes(message)) messages.splice(messages.indexOf(message), 1)
    message.release()
    this.#buffer.messages.free?.(message)
    this.#host.handleTurnEnd()
  }
}
