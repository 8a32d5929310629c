/**
 * A subscription of a channel: like {@link Subscription}, with parameters and values.
 *
 * It reads from one subscription of the client and never delivers a message twice.
 */

import type { Grant, Message, NextOptions, Subscription } from '../client/options/index.js'
import { deferred, rejected, within } from '../common/abort.js'
import { asyncDisposeSymbol } from '../common/dispose.js'
import { MqttError } from '../errors.js'
import { isPromise } from './codec.js'
import type { Incoming, Taken } from './incoming.js'
import type { Params } from './template.js'

/**
 * Messages of a channel: `for await` reads them, `await using` ends the subscription with the
 * block.
 */
export interface TypedSubscription<Delivery> extends AsyncIterable<Delivery>, AsyncDisposable {
  /** Settles with the grant. Never an unhandled rejection. */
  readonly ready: Promise<TypedSubscription<Delivery>>
  /** The grant of each filter, in the order of the request; empty before the grant. */
  readonly granted: readonly Grant[]
  /** Messages waiting to be read. */
  readonly size: number
  /** Messages dropped unread. */
  readonly dropped: number
  /** Messages whose payload or topic did not fit this channel. */
  readonly invalid: number
  /**
   * The next message; undefined at the end. With automatic acks, the call acknowledges the message
   * before.
   * @throws MqttError ERR_INVALID_PAYLOAD under `onInvalid: 'throw'`; as `next` of a subscription
   */
  next(options?: NextOptions): Promise<Delivery | undefined>
  /**
   * The next buffered message, or undefined; never waits.
   * @throws MqttError ERR_UNSUPPORTED_OPTION with an asynchronous schema; as `next`
   */
  read(): Delivery | undefined
  /**
   * Batches of up to `max` messages (default: all buffered ones); requesting the next batch
   * acknowledges this one.
   */
  batches(max?: number): AsyncIterableIterator<Delivery[]>
  [Symbol.asyncIterator](): AsyncIterableIterator<Delivery>
  /**
   * The messages as a web stream, which reads ahead: for `ack: 'manual'` and `'on-receive'` only.
   * Cancelling it leaves the subscription.
   * @throws MqttError ERR_INVALID_OPTION, ERR_CONCURRENT_NEXT
   */
  readable(): ReadableStream<Delivery>
  /** Ends it on the broker too when it is the last on its filters; settles at UNSUBACK. */
  unsubscribe(): Promise<void>
  /**
   * Ends it locally only: the broker's subscription and unacknowledged messages stay for the next
   * subscription on these filters.
   */
  detach(): void
}

type Given<Delivery> = NonNullable<Delivery>

/** A subscription whose messages are decoded by a channel. */
export class ReadSubscription<
  Template extends string,
  Value,
  Delivery extends Taken<Params<Template>, Value>,
> implements TypedSubscription<Given<Delivery>>
{
  readonly #from: Subscription
  readonly #incoming: Incoming<Template, Value>
  /**
   * The pending value of the next message, kept when a wait for it ends: fulfils with a function
   * that returns the value or throws.
   */
  #late: Promise<() => Given<Delivery> | undefined> | undefined
  #reading = false
  /** Ends the wait for a value when the reader has left. */
  #leave: () => void = nothing

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

  async next(options: NextOptions = {}): Promise<Given<Delivery> | undefined> {
    if (this.#reading) throw new MqttError('ERR_CONCURRENT_NEXT')
    this.#reading = true
    const { timeout } = options
    const until = timeout === undefined ? 0 : performance.now() + timeout
    try {
      for (;;) {
        const wait =
          timeout === undefined
            ? options
            : { ...options, timeout: Math.max(0, Math.ceil(until - performance.now())) }
        if (this.#late === undefined) {
          const message = await this.#from.next(wait)
          if (message === undefined) return undefined
          const taken = this.#take(message)
          if (taken !== undefined) return taken
        } else {
          const give = await waited(this.#unlessLeft(this.#late), wait)
          this.#late = undefined
          const taken = give?.()
          if (taken !== undefined) return taken
        }
      }
    } finally {
      this.#reading = false
    }
  }

  read(): Given<Delivery> | undefined {
    while (this.#late === undefined) {
      const message = this.#from.read()
      if (message === undefined) return undefined
      const taken = this.#take(message)
      if (taken !== undefined) return taken
    }
    throw new MqttError(
      'ERR_UNSUPPORTED_OPTION',
      'read() cannot wait for an asynchronous schema: use next()',
      { option: 'schema' },
    )
  }

  // Asynchronous results are kept for readers that can wait.
  #take(message: Message): Given<Delivery> | undefined {
    const taken = this.#made(message)
    if (!isPromise(taken)) return taken
    this.#late = Promise.resolve(taken).then(
      (late) => () => late,
      (error: unknown) => () => {
        throw error
      },
    )
    return undefined
  }

  // Not `Promise.race` with one long-lived promise, which would keep a reference to every race.
  #unlessLeft<T>(late: PromiseLike<T>): Promise<T | undefined> {
    return new Promise((resolve, reject) => {
      this.#leave = () => resolve(undefined)
      late.then(resolve, reject)
    })
  }

  #made(message: Message): Given<Delivery> | undefined | Promise<Given<Delivery> | undefined> {
    return this.#incoming.take(message) as never
  }

  [Symbol.asyncIterator](): AsyncIterableIterator<Given<Delivery>> {
    return this.#iterator(
      this.#from[Symbol.asyncIterator](),
      (message) => this.#made(message),
      (late) => late,
    )
  }

  batches(max?: number): AsyncIterableIterator<Given<Delivery>[]> {
    const from = this.#from.batches(max)
    let failure: Promise<never> | undefined
    const all = async (messages: Message[]): Promise<Given<Delivery>[] | undefined> => {
      const batch: Given<Delivery>[] = []
      try {
        for (const message of messages) {
          const taken = this.#made(message)
          const given = isPromise(taken) ? await taken : taken
          if (given !== undefined) batch.push(given)
        }
      } catch (error) {
        failure = rejected(error)
      }
      return batch.length > 0 ? batch : failure
    }
    const source = {
      next: () => failure ?? from.next(),
      return: () => from.return?.() ?? from.next(),
    }
    return this.#iterator(source, all, (late) => [late])
  }

  // One promise per message, because loops over many messages spend their time here.
  #iterator<Source, Item>(
    from: AsyncIterator<Source>,
    make: (source: Source) => Item | undefined | Promise<Item | undefined>,
    one: (late: Given<Delivery>) => Item,
  ): AsyncIterableIterator<Item> {
    type Result = IteratorResult<Item>
    const leave = async (error?: unknown): Promise<IteratorReturnResult<undefined>> => {
      this.#leave()
      await from.return?.()
      if (error !== undefined) throw error
      return { value: undefined, done: true }
    }
    const handle = (result: IteratorResult<Source>): Result | Promise<Result> => {
      if (result.done === true) return { value: undefined, done: true }
      try {
        const made = make(result.value)
        return made === undefined || isPromise(made) ? slowly(made) : { value: made, done: false }
      } catch (error) {
        return leave(error)
      }
    }
    // A loop, because a chain of promises would keep every skipped message in memory.
    const slowly = async (
      first: Item | undefined | PromiseLike<Item | undefined>,
    ): Promise<Result> => {
      try {
        for (let made = first; ; ) {
          const item = isPromise(made) ? await this.#unlessLeft(made) : made
          if (item !== undefined) return { value: item, done: false }
          const result = await from.next()
          if (result.done === true) return { value: undefined, done: true }
          made = make(result.value)
        }
      } catch (error) {
        return leave(error)
      }
    }
    const iterator: AsyncIterableIterator<Item> = {
      next: () => {
        const late = this.#late
        this.#late = undefined
        if (late === undefined) return from.next().then(handle, leave)
        return slowly(
          late
            .then((give) => give())
            .then((given) => (given === undefined ? undefined : one(given))),
        )
      },
      return: () => leave(),
      throw: leave,
      [Symbol.asyncIterator]: () => iterator,
    }
    return iterator
  }

  readable(): ReadableStream<Given<Delivery>> {
    const from = this.#from.readable()
    const late = this.#late
    this.#late = undefined
    return from.pipeThrough(
      new TransformStream<Message, Given<Delivery>>({
        start: async (controller) => {
          const given = (await late)?.()
          if (given !== undefined) controller.enqueue(given)
        },
        transform: async (message, controller) => {
          const given = await this.#made(message)
          if (given !== undefined) controller.enqueue(given)
        },
      }),
    )
  }

  unsubscribe(): Promise<void> {
    this.#leave()
    return this.#from.unsubscribe()
  }

  detach(): void {
    this.#leave()
    this.#from.detach()
  }

  async [asyncDisposeSymbol](): Promise<void> {
    this.#leave()
    await this.#from[asyncDisposeSymbol]()
  }
}

function nothing(): undefined {
  return undefined
}

/**
 * Waits for the promise, limited by `timeout` and `signal` of a `next()`.
 * @throws MqttError ERR_TIMEOUT, ERR_ABORTED
 */
async function waited<T>(promise: Promise<T>, { timeout, signal }: NextOptions): Promise<T> {
  const gone = deferred<never>()
  const timer =
    timeout === undefined
      ? undefined
      : setTimeout(() => gone.reject(new MqttError('ERR_TIMEOUT')), timeout)
  return within(Promise.race([promise, gone.promise]), signal).finally(() => clearTimeout(timer))
}
