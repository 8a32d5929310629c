/**
 * A subscription as the application sees it: reads from a consumer, and leaves it.
 *
 * Own enumerable fields are those that a console should print; all others are private or on the
 * prototype.
 */
import { assertNotAborted, silent } from '../../common/abort.js'
import { asyncDisposeSymbol } from '../../common/dispose.js'
import { invalid } from '../../common/schema.js'
import { MqttError, programFault } from '../../errors.js'
import { Printed } from '../../printing.js'
import { access, type SubscriptionAccess } from '../access.js'
import { nextOptions } from '../options/check-calls.js'
import type { Grant, Message, NextOptions, Subscription } from '../options/index.js'
import type { Consumer } from './consumer.js'
import type { DeliverHost } from './ports.js'

const noOptions: NextOptions = Object.freeze({})

/** The implementation of {@link Subscription}. */
export class SubscriptionHandle extends Printed implements Subscription {
  static override readonly name = 'Subscription'
  granted: readonly Grant[] = []
  dropped = 0
  readonly #consumer: Consumer
  readonly #subscriptions: DeliverHost<Consumer>['subscriptions']
  #leaving: Promise<void> | undefined

  constructor(consumer: Consumer, subscriptions: DeliverHost<Consumer>['subscriptions']) {
    super()
    this.#consumer = consumer
    this.#subscriptions = subscriptions
  }

  get ready(): Promise<Subscription> {
    return this.#consumer.ready
  }

  get size(): number {
    return this.#consumer.size
  }

  override toJSON(): object {
    const { granted, size, dropped } = this
    return { granted, size, dropped, ended: this.#consumer.ended }
  }

  next(given?: NextOptions): Promise<Message | undefined> {
    try {
      const options = given === undefined ? noOptions : nextOptions(given, '')
      assertNotAborted(options.signal)
      const message = this.read()
      return message === undefined ? this.#consumer.readers.wait(options) : Promise.resolve(message)
    } catch (error) {
      return Promise.reject(error)
    }
  }

  read(): Message | undefined {
    const { readers, config, unacknowledged } = this.#consumer
    if (readers.calls.length > 0 && config.ack === 'auto') throw concurrent()
    unacknowledged.endTurn()
    return unacknowledged.next()
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
        const message = this.#consumer.unacknowledged.next()
        if (message === undefined) break
        batch.push(message)
      }
      return batch
    }
    return this.#iterate(
      () => this.next().then(rest),
      () => rest(this.#buffered()),
    )
  }

  readable(): ReadableStream<Message> {
    if (this.#consumer.config.ack === 'auto')
      invalid('ack', "'manual' or 'on-receive' for a stream")
    return streamOf(this[Symbol.asyncIterator]())
  }

  unsubscribe(): Promise<void> {
    this.#leaving ??= silent(
      this.#subscriptions.leave(this.#consumer).finally(() => {
        this.#leaving = undefined
      }),
    )
    return this.#leaving
  }

  detach(): void {
    this.#consumer.leave('detach')
  }

  [asyncDisposeSymbol](): Promise<void> {
    this.#consumer.leave()
    return Promise.resolve()
  }

  [access](): SubscriptionAccess {
    return this.#consumer
  }

  // What `next()` would return without waiting; otherwise undefined.
  #buffered(): Message | undefined {
    return this.#consumer.size === 0 ? undefined : this.read()
  }

  #iterate<T>(
    pull: () => Promise<T | undefined>,
    buffered: () => T | undefined,
  ): AsyncIterableIterator<T> {
    const { readers, config } = this.#consumer
    if (readers.iterating && config.ack === 'auto') throw concurrent()
    readers.iterating = true
    return iteration(pull, buffered, (left) => {
      readers.iterating = false
      if (left) this.#consumer.leave()
    })
  }
}

const concurrentText =
  "concurrent next: with ack 'auto' a subscription has one reader, as its next call acknowledges; await it, subscribe again, or use ack 'manual'"

function concurrent(): MqttError {
  return programFault(new MqttError('ERR_CONCURRENT_NEXT', concurrentText))
}

/**
 * An async iterator. `over` is called with true when the loop was left, with false at the end or
 * after an error.
 */
export function iteration<T>(
  pull: () => Promise<T | undefined>,
  buffered: () => T | undefined,
  over: (left: boolean) => void,
): AsyncIterableIterator<T> {
  const resultOf = (value: T | undefined): IteratorResult<T> => {
    if (value !== undefined) return { done: false, value }
    over(false)
    return { done: true, value: undefined }
  }
  const failed = (error: unknown): never => {
    over(false)
    throw error
  }
  return {
    next: () => {
      try {
        const value = buffered()
        return value === undefined
          ? pull().then(resultOf, failed)
          : Promise.resolve<IteratorResult<T>>({ done: false, value })
      } catch (error) {
        over(false)
        return Promise.reject(error)
      }
    },
    return: async (value?: unknown) => {
      over(true)
      return { done: true, value }
    },
    throw: async (error: unknown) => {
      over(true)
      throw error
    },
    [Symbol.asyncIterator]() {
      return this
    },
  } as AsyncIterableIterator<T>
}

/** An iterator as a web stream that reads nothing ahead; cancelling it ends the iterator. */
export function streamOf<T>(messages: AsyncIterableIterator<T>): ReadableStream<T> {
  return new ReadableStream<T>(
    {
      pull: async (controller) => {
        const { value, done } = await messages.next()
        if (done === true) controller.close()
        else controller.enqueue(value)
      },
      cancel: async () => {
        await messages.return?.()
      },
    },
    { highWaterMark: 0 },
  )
}
