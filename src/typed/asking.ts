/**
 * Streams of answers, the asking end: what one client has asked for.
 */
import type { Handling, Message, PublishProperties } from '../client/api/index.js'
import { remoteError } from '../client/common/remote.js'
import { MqttError } from '../errors.js'
import { keyOf, longestWait, ownTopic, ownTopicOptions, propertyOf, random, type StreamClient, type StreamOptions, within } from './answers.js'

/** The streams of one client. */
export class AnswerStreams {
  readonly #client: StreamClient
  readonly #open = new Map<string, AnswerStream>()
  #route: Promise<{ readonly topic: string; readonly handling: Handling }> | undefined

  constructor(client: StreamClient) {
    this.#client = client
  }

  /** Asks. @throws MqttError as `publish` and `listen` */
  async open(
    topic: string,
    payload: Uint8Array | string,
    properties: PublishProperties | undefined,
    options: StreamOptions = {},
  ): Promise<AnswerStream> {
    const window = within('window', options.window, 16, 65_535)
    const timeout = within('timeout', options.timeout, 30_000, longestWait)
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
        this.#route ??= this.#listen()
        const { topic: responseTopic } = await this.#route
        if (stream.over) return
        const all = { ...properties, responseTopic, correlationData, userProperties: [['stream', String(window)] as [string, string]] }
        await this.#client.publish(topic, payload, { qos: 1, signal, ttl: timeout, properties: all })
      })
      return stream
    } catch (error) {
      stream.leave()
      throw error
    }
  }

  async #listen(): Promise<{ readonly topic: string; readonly handling: Handling }> {
    const topic = ownTopic(this.#client)
    try {
      const handling = await this.#client.listen(
        topic,
        (message) => this.#open.get(keyOf(message.properties.correlationData))?.add(message),
        ownTopicOptions,
      )
      const end = (error?: unknown): void => {
        this.#route = undefined
        for (const stream of this.#open.values()) stream.fail(error ?? new MqttError('ERR_CLOSED'))
      }
      handling.done.then(() => this.#open.size > 0 && end(), end)
      return { topic, handling }
    } catch (error) {
      this.#route = undefined
      throw error
    }
  }

  #say(control: string, correlationData: Uint8Array, word: string, value: string): void {
    this.#client.publish(control, '', { qos: 1, properties: { correlationData, userProperties: [[word, value]] } }).catch(() => undefined)
  }

  // The last one takes the subscription with it.
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
  /** Answers in order, not read yet. */
  readonly #messages: Message[] = []
  #expected = 0
  #read = 0
  #control: string | undefined
  #ended = false
  #failure: unknown
  #failed = false
  #wake: (() => void) | undefined

  constructor(window: number, timeout: number, signal: AbortSignal | undefined, host: StreamHost) {
    this.#window = window
    this.#timeout = timeout
    this.#host = host
    const abort = (): void => this.fail(new MqttError('ERR_ABORTED', undefined, { cause: signal?.reason, outcome: 'unknown' }))
    signal?.addEventListener('abort', abort)
    this.#stopAbort = () => signal?.removeEventListener('abort', abort)
  }

  /** Nobody waits for answers any more. */
  get over(): boolean {
    return this.#ended || this.#failed
  }

  /** Waits for the request to leave, no longer than for an answer. */
  async within(asking: () => Promise<void>): Promise<void> {
    let timer: ReturnType<typeof setTimeout> | undefined
    const late = new Promise<never>((_resolve, reject) => {
      timer = setTimeout(() => reject(this.#tooLate()), this.#timeout)
    })
    const asked = asking()
    asked.catch(() => undefined)
    await Promise.race([asked, late]).finally(() => clearTimeout(timer))
    if (this.#failed) throw this.#failure
  }

  #tooLate(): MqttError {
    return new MqttError('ERR_TIMEOUT', `no answer in ${this.#timeout} ms`, { fault: 'remote', outcome: 'unknown' })
  }

  /** An answer came. */
  add(message: Message): void {
    const seq = Number(propertyOf(message, 'seq') ?? 0)
    const { responseTopic } = message.properties
    this.#control ??= responseTopic
    if (this.#ended || this.#failed || seq < this.#expected) return
    if (seq > this.#expected || this.#messages.length >= this.#window) return this.fail(new MqttError('ERR_SESSION_LOST', 'answers are missing'))
    this.#expected += 1
    const problem = propertyOf(message, 'error')
    if (problem !== undefined) this.#end(remoteError(message, problem))
    else if (propertyOf(message, 'end') !== undefined || propertyOf(message, 'seq') === undefined) this.#end(undefined, message)
    else this.#messages.push(message)
    this.#wake?.()
  }

  // One that has no number is the only one: a responder that knows of no streams.
  #end(error: MqttError | undefined, only?: Message): void {
    if (only !== undefined && propertyOf(only, 'seq') === undefined) this.#messages.push(only)
    this.#ended = true
    this.#failure = error
  }

  /** It ends with this, whatever is still to come. */
  fail(error: unknown): void {
    if (this.#ended || this.#failed) return
    this.#failed = true
    this.#failure = error
    this.#wake?.()
  }

  /** The next answer; undefined behind the last one. */
  async next(): Promise<Message | undefined> {
    const until = Date.now() + this.#timeout
    for (;;) {
      if (this.#failed) throw this.#failure
      const message = this.#messages.shift()
      if (message !== undefined) return this.#given(message)
      if (this.#ended && this.#failure !== undefined) throw this.#failure
      if (this.#ended) return undefined
      const left = until - Date.now()
      if (left <= 0) throw this.#tooLate()
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, left)
        this.#wake = () => {
          clearTimeout(timer)
          resolve()
        }
      })
    }
  }

  // Half a window at a time.
  #given(message: Message): Message {
    this.#read += 1
    const half = Math.ceil(this.#window / 2)
    if (this.#read % half === 0 && !this.#ended && this.#control !== undefined)
      this.#host.say(this.#control, 'credit', String(this.#read + this.#window))
    return message
  }

  /** Nobody reads any more. */
  leave(): void {
    this.#stopAbort()
    if (!this.#ended && this.#control !== undefined) this.#host.say(this.#control, 'cancel', '')
    this.#ended = true
    this.#messages.length = 0
    this.#host.left()
  }
}
