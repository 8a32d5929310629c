/**
 * `listen`: calls a handler with each message in order, acknowledges when it is done, and retries
 * when it fails.
 *
 * A message is settled exactly once, or left unsettled (stop, detach, or a failure after
 * `disconnect()` began). Handlers of owned messages run after the read that brought the message,
 * never inside it. What handlers throw never escapes.
 */

import { type Deferred, deferred } from '../../common/abort.js'
import { tally } from '../../common/counters.js'
import { asyncDisposeSymbol } from '../../common/dispose.js'
import { Ring } from '../../common/ring.js'
import { SparseSet } from '../../common/sparse.js'
import { MqttError, printable } from '../../errors.js'
import { Printed } from '../../printing.js'
import type { CheckedListen } from '../options/check-calls.js'
import type { Grant, Handler, HandlerFailure, Handling } from '../options/index.js'
import type { Consumer, PublicFace } from './consumer.js'
import type { DeliveredMessage } from './message.js'
import type { DeliverHost, MessageHandler } from './ports.js'

/** Number of retries of a failed handler. */
const retries = 5
/** Milliseconds before the first retry. */
const firstRetryDelay = 100
/** Longest delay before a retry, in milliseconds. */
const longestRetryDelay = 5000

/** The implementation of {@link Handling}. */
export class ListenHandle extends Printed implements Handling {
  static override readonly name = 'Handling'
  readonly #subscription: PublicFace
  readonly #loop: HandlerLoop

  constructor(subscription: PublicFace, loop: HandlerLoop) {
    super()
    this.#subscription = subscription
    this.#loop = loop
  }

  get granted(): readonly Grant[] {
    return this.#subscription.granted
  }

  override toJSON(): object {
    return this.#subscription.toJSON()
  }

  get done(): Promise<void> {
    return this.#loop.done.promise
  }

  unsubscribe(): Promise<void> {
    return this.#subscription.unsubscribe()
  }

  detach(): void {
    this.#loop.stop()
  }

  [asyncDisposeSymbol](): PromiseLike<void> {
    return this.#subscription[asyncDisposeSymbol]()
  }
}

/** Runs a handler over a consumer. */
export class HandlerLoop implements MessageHandler {
  readonly done: Deferred<void> = deferred()
  readonly takesShown: boolean
  readonly #host: DeliverHost<Consumer>
  readonly #consumer: Consumer
  readonly #handler: Handler
  readonly #options: CheckedListen
  readonly #acknowledge: boolean
  /** Functions that give up the messages waiting for a retry, unacknowledged. */
  readonly #retrying = new SparseSet<() => void>()
  /** Memory cost of those messages. */
  #retryingBytes = 0
  /** Retries that are due; with keys, they wait for a free place. */
  readonly #due = new Ring<() => void>()
  /** With keys, a message that waits for its retry holds up only its key, and takes no place. */
  readonly #keyed: boolean
  #running = 0
  #queued = false
  /**
   * True while the loop runs: a handler that is done at once returns here, instead of nesting
   * calls.
   */
  #looping = false
  #over: { readonly error: MqttError | undefined } | undefined
  #stopped = false

  constructor(
    consumer: Consumer,
    handler: Handler,
    options: CheckedListen,
    host: DeliverHost<Consumer>,
  ) {
    const { lifetime, keyOf } = consumer.config
    this.#consumer = consumer
    this.#host = host
    this.#handler = handler
    this.#options = options
    this.#acknowledge = options.ack !== 'on-receive'
    this.#keyed = keyOf !== undefined
    this.takesShown = lifetime === 'borrowed' && options.concurrency === 1 && !this.#keyed
    consumer.readers.handler = this
    // A signal may have ended the consumer before this handler was attached.
    if (consumer.ended) this.handleEnd(undefined)
    this.handleReadable()
  }

  /** Stops handing out; messages in hand are left to the next subscription. */
  stop(): void {
    this.#stopped = true
    this.#consumer.leave('detach')
  }

  /** Called again without an error when the client has ended. */
  readonly handleEnd = (error?: MqttError): void => {
    this.#over ??= { error }
    if (this.#host.states.ended) this.handleClosing()
    this.#finish()
  }

  // Runs once per burst, after the read that brought it.
  handleReadable(): void {
    if (this.#queued) return
    this.#queued = true
    this.#host.platform.microtask(() => {
      this.#queued = false
      this.#run()
    })
  }

  // Calls the handler at once; used when nothing else is under way.
  handleShown(message: DeliveredMessage): boolean {
    this.#running += 1
    if (!this.#handle(message, 1)) return false
    if (this.#acknowledge && !this.#stopped) message.settle(0)
    this.#running -= 1
    this.#consumer.unacknowledged.release(message)
    if (this.#over !== undefined) this.#finish()
    return true
  }

  handleClosing(): void {
    for (const giveUp of this.#retrying) giveUp()
    this.#retrying.clear()
    this.#retryingBytes = 0
  }

  #run(): void {
    if (this.#looping) return
    this.#looping = true
    // Once the client has ended, nothing can be acknowledged: messages are left to the session.
    while (
      this.#running < this.#options.concurrency &&
      !this.#stopped &&
      !this.#host.states.ended
    ) {
      const again = this.#due.shift()
      const { buffer, bufferBytes } = this.#consumer.config
      const crowded =
        this.#retrying.size >= buffer + this.#options.concurrency ||
        this.#retryingBytes >= bufferBytes
      const message =
        again === undefined && !crowded ? this.#consumer.unacknowledged.next() : undefined
      if (again === undefined && message === undefined) break
      this.#running += 1
      if (message === undefined) again?.()
      else this.#start(message, 1)
    }
    this.#looping = false
    this.#finish()
  }

  #start(message: DeliveredMessage, attempt: number): void {
    if (this.#handle(message, attempt)) this.#settle(message, 0)
  }

  // Calls the handler; true when it has already succeeded.
  #handle(message: DeliveredMessage, attempt: number): boolean {
    try {
      const { hooks } = this.#host
      const outcome = promiseOf(
        hooks === undefined ? this.#handler(message) : hooks.run(message, this.#handler),
      )
      if (outcome === undefined) return true
      outcome.then(
        () => this.#settle(message, 0),
        (error: unknown) => this.#handleFailure(message, attempt, error),
      )
    } catch (error) {
      this.#handleFailure(message, attempt, error)
    }
    return false
  }

  #handleFailure(message: DeliveredMessage, attempt: number, error: unknown): void {
    const decide = this.#options.onError
    if (typeof decide !== 'function')
      return this.#apply(usual(decide, message, attempt), message, attempt, error)
    Promise.resolve()
      .then(() => decide(error, message, attempt))
      .catch((thrown: unknown): HandlerFailure => {
        this.#host.report('MQWIRE_HANDLER_FAILED', 'onError threw', thrown, 'error')
        return 'reject'
      })
      .then((verdict) => this.#apply(verdict, message, attempt, error))
  }

  #apply(
    verdict: HandlerFailure,
    message: DeliveredMessage,
    attempt: number,
    error: unknown,
  ): void {
    if (this.#host.states.stopping) {
      this.#host.report('MQWIRE_HANDLER_FAILED', textFor(message), error, 'error')
      return this.#leave(message)
    }
    if (verdict === 'stop') {
      this.#stopped = true
      this.#running -= 1
      const failure = report(this.#host, error, message)
      this.#over ??= { error: failure }
      return this.stop()
    }
    // A message that was acknowledged and released cannot be shown again.
    if (verdict === 'retry' && !message.released) {
      this.#host.report(
        'MQWIRE_HANDLER_FAILED',
        `${textFor(message)} (attempt ${attempt}, it is called again)`,
        error,
        'error',
      )
      return this.#retry(message, attempt)
    }
    report(this.#host, error, message)
    this.#settle(message, 0x80)
  }

  #retry(message: DeliveredMessage, attempt: number): void {
    const delay = Math.min(longestRetryDelay, firstRetryDelay * 2 ** (attempt - 1))
    const { size } = message
    this.#retryingBytes += size
    const again = (): void => {
      this.#retrying.delete(giveUp)
      this.#retryingBytes -= size
      if (this.#consumer.unacknowledged.messages.includes(message))
        this.#start(message, attempt + 1)
      else this.#leave(message)
    }
    const cancel = this.#host.platform.setTimer(() => {
      if (!this.#keyed) return again()
      this.#due.push(again)
      this.#run()
    }, delay)
    const giveUp = (): void => {
      cancel()
      if (this.#keyed) this.#running += 1
      this.#leave(message)
    }
    this.#retrying.add(giveUp)
    if (!this.#keyed) return
    this.#running -= 1
    this.#run()
  }

  #settle(message: DeliveredMessage, reasonCode: number): void {
    if (this.#acknowledge && !this.#stopped) message.settle(reasonCode)
    this.#leave(message)
  }

  #leave(message: DeliveredMessage): void {
    this.#running -= 1
    this.#consumer.unacknowledged.release(message)
    this.#run()
  }

  #finish(): void {
    if (this.#over === undefined) return
    // Once the client has ended, nothing is waited for, not even a handler that never returns.
    const { states, subscriptions } = this.#host
    const { ended } = states
    const open =
      this.#running + this.#retrying.size > 0 || (this.#consumer.size > 0 && !this.#stopped)
    if (open && !ended) return void subscriptions.unfinished.add(this.handleEnd)
    subscriptions.unfinished.delete(this.handleEnd)
    if (this.#over.error === undefined) this.done.resolve()
    else this.done.reject(this.#over.error)
  }
}

function textFor({ subject }: DeliveredMessage): string {
  return `handler failed: ${printable(subject)}`
}

function report(host: DeliverHost<Consumer>, cause: unknown, message: DeliveredMessage): MqttError {
  const text = textFor(message)
  const error = new MqttError('ERR_HANDLER_FAILED', text, { cause })
  tally(host, 'handlerFailures')
  host.report('MQWIRE_HANDLER_FAILED', text, cause, 'error')
  host.events.emit('error', { error })
  return error
}

/** The default verdict on a failed handler. */
export function usual(
  onError: HandlerFailure | undefined,
  message: DeliveredMessage,
  attempt: number,
): HandlerFailure {
  if (attempt > retries) return 'reject'
  return onError ?? (message.released || message.qos === 0 ? 'reject' : 'retry')
}

/** The handler's result as a native promise; undefined when it is not a promise. */
function promiseOf(value: unknown): Promise<unknown> | undefined {
  return typeof (value as PromiseLike<unknown> | undefined)?.then === 'function'
    ? Promise.resolve(value)
    : undefined
}
