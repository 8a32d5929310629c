/**
 * One consumer as the router sees it: messages are pushed in, and it ends in one of several ways.
 *
 * Waiting messages are in its `ReceiveBuffer`, messages handed out in `Unacknowledged`.
 * Applications read it through a `SubscriptionHandle` or the handler of a `listen`. A message that
 * was not handed out is never acknowledged, except with `ack: 'on-receive'`, at QoS 0, and when the
 * overflow policy drops it or a reader leaves.
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
import { isOwed } from './shared-outcome.js'

/** The consumer as the application sees it. */
export interface PublicFace extends Subscription {
  granted: readonly Grant[]
  dropped: number
  toJSON(): object
}

/** A bounded buffer between the connection and its reader. */
export class Consumer {
  /** Resolves when the subscription is granted. */
  declare ready: Promise<Subscription>
  declare subscription: PublicFace
  /** Called once at its end, to release what waits for it. */
  declare onLeave: (() => void) | undefined
  readonly config: ConsumerConfig
  /** Identifies this consumer's messages in shared memory. */
  readonly mark = Symbol()
  readonly buffer: ReceiveBuffer
  readonly readers: Readers
  readonly unacknowledged: Unacknowledged
  readonly #host: ConsumerHost
  readonly #overflow: OverflowPolicy
  /** The message object reused for a handler of borrowed messages. */
  #shown: BorrowedMessage | undefined
  /** The client ends: only messages that the broker will not redeliver are still delivered. */
  closing = false
  /** Nothing more comes in; what is buffered can still be read. */
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

  /** Number of buffered messages. */
  get size(): number {
    return this.buffer.messages.length
  }

  /** True while `disconnect()` has to wait for a turn that runs or will run. */
  get busy(): boolean {
    const { unacknowledged } = this
    return (
      unacknowledged.busy ||
      (this.closing && this.size > 0 && (this.attended || unacknowledged.messages.length > 0))
    )
  }

  /** True when a reader is waiting, so that what is buffered will be read. */
  get attended(): boolean {
    return this.readers.attended
  }

  /** True while messages are taken in and handed out. */
  get open(): boolean {
    return !this.ended && !this.closing
  }

  /**
   * True when a message may be shown to the handler while it is being read, without waiting behind
   * others.
   */
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

  /**
   * Shows a message to a handler in the memory it was read into. Only while `mayShow`. @param shift
   * subtracted from positions in the view to give positions in the piece
   */
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

  /** Takes a message in, or drops one, as the overflow policy says. */
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

  /**
   * The subscription is granted: what came before the SUBACK is now received as well, which
   * acknowledges it at QoS 0 and with `'on-receive'`.
   */
  handleGranted(): void {
    for (const message of this.unacknowledged.messages) this.#receive(message)
    this.buffer.messages.youngest(this.size, (message) => this.#receive(message))
  }

  // A reader that asked for QoS 0 never delays an acknowledgement.
  #receive(message: DeliveredMessage): void {
    if (this.config.ack === 'on-receive' || (message.origin as Origin).qosOf(this) === 0)
      message.settle(0)
  }

  // The consumer has ended: the message is kept for the next subscription on its filter after
  // `detach`, otherwise dropped.
  #decline(message: DeliveredMessage): void {
    if (this.#detached && !message.settled) this.#host.router.requeue([message])
    else this.#overflow.drop(message)
  }

  /**
   * Nothing more comes in: what is buffered can still be read, then the reader sees the end or the
   * error.
   */
  end(error: MqttError | undefined): void {
    if (this.ended) return
    this.ended = true
    this.#host.router.borrowers.delete(this)
    this.readers.end(error)
    this.onLeave?.()
    this.readers.handler?.handleEnd(error)
  }

  /**
   * The client ends: buffered messages are released, running turns continue. Unless `last`,
   * messages that the broker will not redeliver are still handed out. `staying`: more of those may
   * come.
   */
  close(staying: boolean, last = false): void {
    this.closing = true
    while (this.#overflow.dropOldest((message) => last || !isLast(message)));
    // After the buffer is emptied, because a handler that gives up a message takes the next one.
    this.readers.handler?.handleClosing()
    if (!staying) this.readers.end(undefined)
  }

  /** Ends it as asked: unread messages are acknowledged or kept, and its filters are released. */
  leave(how: 'unsubscribe' | 'detach' = this.config.onExit): void {
    const { subscriptions, router } = this.#host
    if (this.closing) {
      if (how === 'detach') this.unacknowledged.messages.length = 0
      this.unacknowledged.endTurn()
      this.close(false, true)
      return this.#host.handleTurnEnd()
    }
    // The filter is gone, so there is nothing to put unread messages back to.
    if (this.ended) return router.requeue(this.discard(how === 'unsubscribe'))
    this.#detached = how === 'detach'
    const kept = this.discard(!this.#detached)
    this.end(undefined)
    subscriptions.drop(this, how)
    router.requeue(kept)
  }

  /**
   * Empties the buffer. With `acknowledge`, unread messages are acknowledged and counted as
   * dropped; otherwise, all unacknowledged messages are returned in the order of arrival.
   */
  discard(acknowledge: boolean): DeliveredMessage[] {
    if (!acknowledge)
      return [...this.unacknowledged.messages.splice(0), ...this.buffer.drain()].filter(isOwed)
    this.unacknowledged.endTurn()
    // Messages already handed out stay with the application.
    for (const message of this.buffer.drain()) this.#overflow.drop(message)
    return []
  }
}

// True when the broker will not deliver this message again: its filter is being left, or it is a
// share that no other member of the group gets.
function isLast({ origin, settled }: DeliveredMessage): boolean {
  const { state, grouped } = origin as Origin
  return state === 'leaving' || (grouped && settled)
}

// The key of a message. If the key function throws, the topic is the key.
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
  /** The handler of `listen`. */
  handler: MessageHandler | undefined
  /** True while a `for await` loop runs. */
  iterating = false
  readonly #platform: Platform
  /** Calls of `next()` that wait. */
  readonly calls = new Ring<Deferred<Message | undefined>>()
  /** Set when no message will come any more. */
  #over: { readonly error: MqttError | undefined } | undefined

  constructor(platform: Platform) {
    this.#platform = platform
  }

  /** True when a reader is waiting, so that what is buffered will be read. */
  get attended(): boolean {
    return this.iterating || this.calls.length > 0 || this.handler !== undefined
  }

  /** Waits for the next message. @throws MqttError the reason why reading has ended */
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

  /** No message will come any more, with an error or without. The first call decides. */
  end(error: MqttError | undefined): void {
    this.#over ??= { error }
    for (const call of this.calls.drain()) {
      if (error === undefined) call.resolve(undefined)
      else call.reject(error)
    }
  }
}

/** Below this number, handed-out messages are not searched for settled ones. */
const leastSweep = 64

/**
 * The messages of one consumer that were handed out and are not done.
 *
 * With `ack: 'auto'`, a turn lasts from handing out a message until the reader asks for the next
 * one; with `'manual'`, until `ack()`. A handler's turn ends with the handler.
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

  /**
   * True while a turn runs that `disconnect()` waits for: a loop body, a handler, or an
   * unacknowledged message.
   */
  get busy(): boolean {
    const { handler, iterating } = this.#readers
    const ends = handler !== undefined || (iterating && this.#ack !== 'manual')
    return ends ? this.messages.length > 0 : this.messages.some((message) => !message.settled)
  }

  /** Hands out the next buffered message. */
  next(): DeliveredMessage | undefined {
    const host = this.#host
    const message = this.#buffer.shift()
    if (message !== undefined) this.handOut(message)
    // The previous turn has ended; it may have been the last one that `disconnect()` waits for.
    host.handleTurnEnd()
    return message
  }

  /** Hands out a message. */
  handOut(message: DeliveredMessage): DeliveredMessage {
    const { counters } = this.#host
    const ack = this.#ack
    if (counters !== undefined) counters.delivered += 1
    if (ack === 'on-receive') message.settle(0)
    // Removes messages that the application has settled: only when the list has doubled, because
    // each pass walks all of them. Handlers release theirs one by one.
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

  /** The reader asks for more, or leaves. With 'manual', turns end with `ack()`. */
  endTurn(): void {
    if (this.#ack === 'manual') return
    const { messages } = this
    if (messages.length === 0) return
    // The usual case: one message.
    if (messages.length === 1) this.#endOne(messages.pop() as DeliveredMessage)
    else for (const message of messages.splice(0)) this.#endOne(message)
  }

  #endOne(message: DeliveredMessage): void {
    if (this.#ack === 'auto') message.settle(0)
    message.release()
  }

  /** A handler is done with a message. */
  release(message: DeliveredMessage): void {
    const { messages } = this
    // Usually the last one.
    if (messages.at(-1) === message) messages.pop()
    else if (messages.includes(message)) messages.splice(messages.indexOf(message), 1)
    message.release()
    this.#buffer.messages.free?.(message)
    this.#host.handleTurnEnd()
  }
}
