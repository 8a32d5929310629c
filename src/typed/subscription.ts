/**
 * A subscription of a channel: what a {@link Subscription} is, with parameters and values.
 *
 * It reads from one subscription of the client, and never hands out a message twice.
 */

import type { Grant, Message, NextOptions, Subscription } from '../client/api/index.js'
import { asyncDisposeSymbol } from '../client/common/dispose.js'
import { MqttError } from '../errors.js'
import { isPromise } from './codec.js'
import type { Incoming, Taken } from './incoming.js'
import type { Params } from './template.js'

/** Messages of a channel: `for await` reads them, `await using` ends the subscription with the block. */
export interface TypedSubscription<Delivery> extends AsyncIterable<Delivery>, AsyncDisposable {
  /** Settles with the grant. Never an unhandled rejection. */
  readonly ready: Promise<TypedSubscription<Delivery>>
  /** Per filter, in the order asked; empty before the grant. */
  readonly granted: readonly Grant[]
  /** Messages that wait to be read. */
  readonly size: number
  /** Messages dropped unread. */
  readonly dropped: number
  /** Messages whose payload or topic was none of this channel. */
  readonly invalid: number
  /**
   * The next message; undefined at the end. Under automatic acks it acknowledges the one before.
   * @throws MqttError ERR_INVALID_PAYLOAD under `onInvalid: 'throw'`; as `next` of a subscription
   */
  next(options?: NextOptions): Promise<Delivery | undefined>
  /** A message that is there, or undefined; never waits. @throws MqttError ERR_UNSUPPORTED_OPTION with an asynchronous schema; as `next` */
  read(): Delivery | undefined
  /** Up to `max` messages at a time (default: all that are there); asking for the next batch acknowledges this one. */
  batches(max?: number): AsyncIterableIterator<Delivery[]>
  [Symbol.asyncIterator](): AsyncIterableIterator<Delivery>
  /**
   * The messages as a web stream, which reads ahead: for `ack: 'manual'` and `'on-receive'` only. Cancelling it leaves the subscription.
   * @throws MqttError ERR_INVALID_OPTION, ERR_CONCURRENT_NEXT
   */
  readable(): ReadableStream<Delivery>
  /** Ends it on the broker too when it is the last on its filters; settles at UNSUBACK. */
  unsubscribe(): Promise<void>
  /** Ends it here only: the broker's subscription and unacknowledged messages stay for the next one on these filters. */
  detach(): void
}

/** One subscription, read as a channel says. */
export class ReadSubscription<Template extends string, Value, Delivery extends Taken<Params<Template>, Value>>
  implements TypedSubscription<NonNullable<Delivery>>
{
  readonly #from: Subscription
  readonly #incoming: Incoming<Template, Value>
  /** A message that was taken, and whose value is not there yet. */
  #late: Promise<Taken<Params<Template>, Value>> | undefined
  #reading = false

  constructor(from: Subscription, incoming: Incoming<Template, Value>) {
    this.#from = from
    this.#incoming = incoming
  }

  get ready(): Promise<this> {
    const ready = this.#from.ready.then(() => this)
    ready.catch(() => undefined)
    return ready
  }

  get granted(): readonly Grant[] {
    return this.#from.granted
  }

  get size(): number {
    return this.#from.size
  }

  get dropped(): number {
    return this.#from.dropped
  }

  get invalid(): number {
    return this.#incoming.invalid
  }

  async next(options: NextOptions = {}): Promise<NonNullable<Delivery> | undefined> {
    if (this.#reading) throw new MqttError('ERR_CONCURRENT_NEXT')
    this.#reading = true
    const { timeout } = options
    const until = timeout === undefined ? 0 : Date.now() + timeout
    try {
      for (let wait = options; ; wait = timeout === undefined ? options : { ...options, timeout: Math.max(0, until - Date.now()) }) {
        const late = this.#late
        this.#late = undefined
        const message = late === undefined ? await this.#from.next(wait) : undefined
        if (message === undefined && late === undefined) return undefined
        const taken = await (late ?? this.#incoming.take(message as Message))
        if (taken !== undefined) return taken as NonNullable<Delivery>
      }
    } finally {
      this.#reading = false
    }
  }

  read(): NonNullable<Delivery> | undefined {
    for (;;) {
      const message = this.#late === undefined ? this.#from.read() : undefined
      if (message === undefined && this.#late === undefined) return undefined
      const taken = this.#late ?? this.#incoming.take(message as Message)
      if (isPromise(taken)) {
        // It is the next one for whoever can wait.
        this.#late = taken
        taken.catch(() => undefined)
        throw new MqttError('ERR_UNSUPPORTED_OPTION', 'read() cannot wait for an asynchronous schema: use next()', { option: 'schema' })
      }
      if (taken !== undefined) return taken as NonNullable<Delivery>
    }
  }

  [Symbol.asyncIterator](): AsyncIterableIterator<NonNullable<Delivery>> {
    const from = this.#from[Symbol.asyncIterator]()
    type Result = IteratorResult<NonNullable<Delivery>>
    // A loop that ends with an error leaves, as one that is broken out of.
    const leave = async (error?: unknown): Promise<IteratorReturnResult<undefined>> => {
      await from.return?.()
      if (error !== undefined) throw error
      return { value: undefined, done: true }
    }
    const give = (taken: Taken<Params<Template>, Value>): Result | Promise<Result> =>
      taken === undefined ? iterator.next() : { value: taken as NonNullable<Delivery>, done: false }
    // One promise a message: a loop over many spends its time here.
    const handle = (result: IteratorResult<Message>): Result | Promise<Result> => {
      if (result.done === true) return { value: undefined, done: true }
      try {
        const taken = this.#incoming.take(result.value)
        return isPromise(taken) ? taken.then(give, leave) : give(taken)
      } catch (error) {
        return leave(error)
      }
    }
    const iterator: AsyncIterableIterator<NonNullable<Delivery>> = {
      next: () => {
        const late = this.#late
        this.#late = undefined
        return late === undefined ? from.next().then(handle) : late.then(give, leave)
      },
      return: () => leave(),
      throw: leave,
      [Symbol.asyncIterator]: () => iterator,
    }
    return iterator
  }

  async *batches(max?: number): AsyncIterableIterator<NonNullable<Delivery>[]> {
    for await (const messages of this.#from.batches(max)) {
      const batch: NonNullable<Delivery>[] = []
      let failure: unknown
      for (const message of messages) {
        try {
          const taken = await this.#incoming.take(message)
          if (taken !== undefined) batch.push(taken as NonNullable<Delivery>)
        } catch (error) {
          failure = error
          break
        }
      }
      if (batch.length > 0) yield batch
      if (failure !== undefined) throw failure
    }
  }

  readable(): ReadableStream<NonNullable<Delivery>> {
    return this.#from.readable().pipeThrough(
      new TransformStream<Message, NonNullable<Delivery>>({
        transform: async (message, controller) => {
          const taken = await this.#incoming.take(message)
          if (taken !== undefined) controller.enqueue(taken as NonNullable<Delivery>)
        },
      }),
    )
  }

  unsubscribe(): Promise<void> {
    return this.#from.unsubscribe()
  }

  detach(): void {
    this.#from.detach()
  }

  async [asyncDisposeSymbol](): Promise<void> {
    await this.#from[asyncDisposeSymbol]()
  }
}
