/**
 * The calling side of answer streams: the streams that one client has requested. `answers.ts`
 * describes the protocol.
 *
 * Whatever a peer sends, a stream ends once, and its reader gets the error.
 */
import type { Handling, Message, PublishProperties } from '../client/options/index.js'
import { remoteError } from '../client/request/remote.js'
import { withOutcome } from '../common/outcome.js'
import { MqttError, type Outcome } from '../errors.js'
import {
  keyOf,
  ownTopic,
  ownTopicOptions,
  propertyOf,
  random,
  type StreamClient,
  type StreamOptions,
} from './answers.js'
import { wholeNumber } from './refuse.js'

/** The topic of the answers and its `listen`. */
interface Route {
  readonly topic: string
  readonly handling: Handling
}

/** The streams that one client has requested. */
export class AnswerStreams {
  readonly #client: StreamClient
  readonly #open = new Map<string, AnswerStream>()
  #route: Promise<Route> | undefined

  constructor(client: StreamClient) {
    this.#client = client
  }

  /** Sends a request for a stream. @throws MqttError as `publish` and `listen` */
  async open(
    topic: string,
    payload: Uint8Array | string,
    properties: PublishProperties | undefined,
    options: StreamOptions = {},
  ): Promise<AnswerStream> {
    const window = wholeNumber('window', options.window, 16, 65_535)
    const timeout = wholeNumber('timeout', options.timeout, 30_000)
    const { signal } = options
    if (signal?.aborted) throw new MqttError('ERR_ABORTED', undefined, { cause: signal.reason })
    const correlationData = random()
    const key = keyOf(correlationData)
    const stream = new AnswerStream(window, timeout, signal, {
      say: (control, word, value) => this.#say(control, correlationData, word, value),
      left: () => this.#left(key),
    })
    this.#open.set(key, stream)
    try {
      await stream.within(async () => {
        const { topic: responseTopic } = await this.#listening()
        if (stream.over) return
        const all = {
          ...properties,
          responseTopic,
          correlationData,
          userProperties: [['stream', String(window)] as [string, string]],
        }
        stream.asked = true
        await this.#client
          .publish(topic, payload, { qos: 1, signal, ttl: timeout, properties: all })
          .catch((error: unknown) => {
            stream.asked = !MqttError.is(error) || error.outcome !== 'not-sent'
            throw error
          })
      })
      return stream
    } catch (error) {
      stream.leave()
      throw error
    }
  }

  #listening(): Promise<Route> {
    if (this.#route !== undefined) return this.#route
    const route = this.#listen()
    this.#route = route
    // Checks the route, because a replaced one also ends, when the next one may already exist.
    const end = (error?: unknown): void => {
      if (this.#route !== route) return
      this.#route = undefined
      for (const stream of this.#open.values()) stream.fail(error ?? new MqttError('ERR_CLOSED'))
    }
    route.then(({ handling }) => handling.done).then(() => end(), end)
    return route
  }

  async #listen(): Promise<Route> {
    const topic = ownTopic(this.#client)
    const add = (message: Message): void =>
      this.#open.get(keyOf(message.properties.correlationData))?.add(message)
    return { topic, handling: await this.#client.listen(topic, add, ownTopicOptions) }
  }

  #say(control: string, correlationData: Uint8Array, word: string, value: string): void {
    this.#client
      .publish(control, '', {
        qos: 1,
        properties: { correlationData, userProperties: [[word, value]] },
      })
      .catch(() => undefined)
  }

  // When the last stream ends, the subscription ends too.
  #left(key: string): void {
    if (!this.#open.delete(key) || this.#open.size > 0) return
    const route = this.#route
    this.#route = undefined
    route?.then(({ handling }) => handling.unsubscribe()).catch(() => undefined)
  }
}

interface StreamHost {
  say(control: string, word: 'credit' | 'cancel', value: string): void
  left(): void
}

/** The answers to one request. */
export class AnswerStream {
  readonly #window: number
  readonly #timeout: number
  readonly #host: StreamHost
  readonly #stopAbort: () => void
  /** Unread answers, in order. */
  readonly #messages: Message[] = []
  #expected = 0
  #read = 0
  #control: string | undefined
  #ended = false
  #failure: unknown
  #failed = false
  /** True once the request may have been sent. */
  asked = false
  /**
   * Set while a left stream waits for its first answer, which has the topic to send `cancel` to.
   */
  #leaving: ReturnType<typeof setTimeout> | undefined
  #wake: (() => void) | undefined

  constructor(window: number, timeout: number, signal: AbortSignal | undefined, host: StreamHost) {
    this.#window = window
    this.#timeout = timeout
    this.#host = host
    const abort = (): void => {
      if (!this.#ended) this.#messages.length = 0
      this.fail(
        new MqttError('ERR_ABORTED', undefined, { cause: signal?.reason, outcome: this.#outcome }),
      )
    }
    signal?.addEventListener('abort', abort)
    this.#stopAbort = () => signal?.removeEventListener('abort', abort)
  }

  /** True when no caller waits for answers any more. */
  get over(): boolean {
    return this.#ended || this.#failed
  }

  /** Waits until the request is published, at most as long as for an answer. */
  async within(asking: () => Promise<void>): Promise<void> {
    let timer: ReturnType<typeof setTimeout> | undefined
    const late = new Promise<never>((_resolve, reject) => {
      timer = setTimeout(() => reject(this.#tooLate()), this.#timeout)
    })
    const failed = new Promise<void>((resolve) => {
      this.#wake = resolve
    })
    const asked = asking()
    asked.catch(() => undefined)
    if (!this.over) await Promise.race([asked, late, failed]).finally(() => clearTimeout(timer))
    clearTimeout(timer)
    if (this.#failed && this.#messages.length === 0) throw this.#failure
  }

  get #outcome(): Outcome {
    return this.asked ? 'unknown' : 'not-sent'
  }

  #tooLate(): MqttError {
    return new MqttError('ERR_TIMEOUT', `no answer in ${this.#timeout} ms`, {
      fault: 'remote',
      outcome: this.#outcome,
    })
  }

  /** Handles an answer. */
  add(message: Message): void {
    const given = propertyOf(message, 'seq') ?? '0'
    const seq = Number(given)
    if (!Number.isSafeInteger(seq) || String(seq) !== given) return
    const { responseTopic } = message.properties
    this.#control ??= responseTopic
    if (this.#leaving !== undefined) return this.#gone()
    if (this.#ended || this.#failed) return
    // A second responder answers: its answers could not be distinguished from those of the first.
    if (responseTopic !== undefined && responseTopic !== this.#control) {
      this.#host.say(responseTopic, 'cancel', '')
      return this.fail(
        new MqttError('ERR_SESSION_LOST', 'a second responder answers', {
          fault: 'remote',
          outcome: 'unknown',
        }),
      )
    }
    if (seq < this.#expected) return
    const problem = propertyOf(message, 'error')
    const isLast =
      problem !== undefined ||
      propertyOf(message, 'end') !== undefined ||
      propertyOf(message, 'seq') === undefined
    // The last one needs no credit.
    if (seq > this.#expected || (!isLast && this.#messages.length >= this.#window))
      return this.fail(
        new MqttError('ERR_SESSION_LOST', 'answers are missing', {
          fault: 'remote',
          outcome: 'unknown',
        }),
      )
    this.#expected += 1
    if (problem !== undefined) this.#end(remoteError(message, problem))
    else if (isLast) this.#end(undefined, message)
    else this.#messages.push(message)
    this.#wake?.()
  }

  // An answer without a number is the only one: the responder does not support streams.
  #end(error: MqttError | undefined, only?: Message): void {
    if (only !== undefined && propertyOf(only, 'seq') === undefined) this.#messages.push(only)
    this.#ended = true
    this.#failure = error
  }

  /** Ends with this error, which follows the unread answers; later answers are ignored. */
  fail(error: unknown): void {
    if (this.#leaving !== undefined) return this.#gone()
    if (this.#ended || this.#failed) return
    this.#failed = true
    this.#failure = this.asked ? withOutcome(error, 'unknown') : error
    this.#wake?.()
  }

  /** The next answer; undefined after the last one. */
  async next(): Promise<Message | undefined> {
    let isLate = false
    let timer: ReturnType<typeof setTimeout> | undefined
    try {
      for (;;) {
        const message = this.#messages.shift()
        if (message !== undefined) return this.#given(message)
        if (this.#failure !== undefined) throw this.#failure
        if (this.#ended) return undefined
        if (isLate) throw this.#tooLate()
        timer ??= setTimeout(() => {
          isLate = true
          this.#wake?.()
        }, this.#timeout)
        await new Promise<void>((resolve) => {
          this.#wake = resolve
        })
      }
    } finally {
      clearTimeout(timer)
    }
  }

  // Credit is sent for half a window at a time.
  #given(message: Message): Message {
    this.#read += 1
    const half = Math.ceil(this.#window / 2)
    if (this.#read % half === 0 && !this.over && this.#control !== undefined)
      this.#host.say(this.#control, 'credit', String(this.#read + this.#window))
    return message
  }

  /** Called when reading has ended: cancels the stream. */
  leave(): void {
    this.#stopAbort()
    this.#messages.length = 0
    if (this.#ended || this.#control !== undefined || !this.asked) this.#gone()
    else this.#leaving ??= setTimeout(() => this.#gone(), this.#timeout)
    this.#wake?.()
  }

  #gone(): void {
    clearTimeout(this.#leaving)
    if (!this.#ended && this.#control !== undefined) this.#host.say(this.#control, 'cancel', '')
    this.#ended = true
    this.#failure = undefined
    this.#host.left()
  }
}
