/**
 * Streams of answers: the convention, and both ends of it.
 *
 * A request for a stream has the User Property `stream` with how many answers may come unasked, and, as any request, Response Topic and Correlation Data.
 * Each answer has the Correlation Data and the User Property `seq`, counted from 0; the first one a Response Topic of this stream alone, where the caller
 * sends credit (User Property `credit`: how many answers may come in all) or `cancel`. The last one has `end` and no value; `error` (a code; the payload is a
 * text) ends it too. At QoS 1 everything may come twice: an answer that was counted is passed over, and credit that is no more than before changes nothing.
 */

import type { Handling, Message, Publisher, PublishProperties, Subscriber } from '../client/api/index.js'
import { MqttError, printable } from '../errors.js'
import type { Codec } from './codec.js'
import { encoded, propertiesOf } from './payload.js'

/** Options of `stream`. */
export interface StreamOptions {
  /** Milliseconds to wait for each answer, 1 to 2,147,483,647. Default 30,000. */
  readonly timeout?: number | undefined
  /** Ends the stream, and its generator. Default: none. */
  readonly signal?: AbortSignal | undefined
  /** Answers that may be under way, 1 to 65,535. Default 16. */
  readonly window?: number | undefined
}

type Client = Publisher<unknown> & Subscriber

/** Streams that one responder may have open. */
const mostStreams = 1000
/** Answers of one stream whose acknowledgement is not there yet. */
const mostUnacknowledged = 256
const longest = 2_147_483_647

/** True for a generator of answers. */
export function isStreamed(result: unknown): result is AsyncGenerator<unknown> {
  return typeof (result as AsyncGenerator | undefined)?.[Symbol.asyncIterator] === 'function' && typeof (result as AsyncGenerator).next === 'function'
}

function within(name: string, value: number | undefined, usual: number, most: number): number {
  if (value === undefined) return usual
  if (!Number.isInteger(value) || value < 1 || value > most)
    throw new MqttError('ERR_INVALID_OPTION', `${name} must be an integer from 1 to ${most}`, { option: name })
  return value
}

function random(): Uint8Array<ArrayBuffer> {
  return crypto.getRandomValues(new Uint8Array(16))
}

function keyOf(bytes: Uint8Array | undefined): string {
  return bytes === undefined ? '' : String.fromCharCode(...bytes.subarray(0, 64))
}

/** A topic of our own: below what the server proposes (section 3.2.2.3.15), where it does. */
function ownTopic(client: object): string {
  const { negotiated } = client as { readonly negotiated?: { readonly responseInformation?: string } }
  const base = negotiated?.responseInformation || 'mqwire'
  return `${base.endsWith('/') ? base.slice(0, -1) : base}/${Array.from(random(), (byte) => byte.toString(16).padStart(2, '0')).join('')}`
}

function propertyOf(message: Message, name: string): string | undefined {
  return message.properties.userProperties?.find(([given]) => given === name)?.[1]
}

/** Where answers come. */
interface Route {
  readonly topic: string
  readonly handling: Handling
}

/** The asking end: what one client has asked for. */
export class AnswerStreams {
  readonly #client: Client
  readonly #open = new Map<string, AnswerStream>()
  #route: Promise<Route> | undefined

  constructor(client: Client) {
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
    const timeout = within('timeout', options.timeout, 30_000, longest)
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
        const all = { ...properties, responseTopic, correlationData, userProperties: [['stream', String(window)] as [string, string]] }
        stream.asked = true
        await this.#client.publish(topic, payload, { qos: 1, signal, ttl: timeout, properties: all }).catch((error: unknown) => {
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
    // One that was let go ends too, when the next one may be there already.
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
    const add = (message: Message): void => this.#open.get(keyOf(message.properties.correlationData))?.add(message)
    return { topic, handling: await this.#client.listen(topic, add, { qos: 1, retainHandling: 2, onExit: 'unsubscribe' }) }
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
  /** True once the request may have left. */
  asked = false
  /** Waits for the first answer, which says where to cancel the others. */
  #leaving: ReturnType<typeof setTimeout> | undefined
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
    const failed = new Promise<void>((resolve) => {
      this.#wake = resolve
    })
    const asked = asking()
    asked.catch(() => undefined)
    if (!this.over) await Promise.race([asked, late, failed]).finally(() => clearTimeout(timer))
    clearTimeout(timer)
    if (this.#failed) throw this.#failure
  }

  #tooLate(): MqttError {
    return new MqttError('ERR_TIMEOUT', `no answer in ${this.#timeout} ms`, { fault: 'remote', outcome: 'unknown' })
  }

  /** An answer came. */
  add(message: Message): void {
    const given = propertyOf(message, 'seq') ?? '0'
    const seq = Number(given)
    if (!Number.isSafeInteger(seq) || String(seq) !== given) return
    this.#control ??= message.properties.responseTopic
    if (this.#leaving !== undefined) return this.#gone()
    if (this.#ended || this.#failed || seq < this.#expected) return
    if (seq > this.#expected || this.#messages.length >= this.#window) return this.fail(new MqttError('ERR_SESSION_LOST', 'answers are missing'))
    this.#expected += 1
    const problem = propertyOf(message, 'error')
    if (problem !== undefined)
      this.#end(
        new MqttError('ERR_REMOTE', printable(message.text()) || undefined, { fault: 'remote', outcome: 'unknown', reasonName: printable(problem) }),
      )
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
    if (this.#leaving !== undefined) return this.#gone()
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

/** A stream that is being given. */
interface Giving {
  /** How many answers may be sent in all. */
  credit: number
  cancelled: boolean
  /** What a publish failed with. */
  failure: unknown
  wake: (() => void) | undefined
}

/** The answering end: generators whose values are published as answers. */
export class AnswerSender<Answer> {
  readonly #client: Client
  readonly #codec: Codec<Answer, unknown>
  readonly #patience: number
  readonly #open = new Map<string, Giving>()
  /** The same streams by the topics on which their callers control them. */
  readonly #controlled = new Map<string, Giving>()
  #topics = 0
  #control: Promise<string> | undefined
  #handling: Handling | undefined
  #over = false

  constructor(client: Client, codec: Codec<Answer, unknown>, patience: number | undefined) {
    this.#client = client
    this.#codec = codec
    this.#patience = within('streamTimeout', patience, 60_000, longest)
  }

  /** True where a stream was asked for, and not one answer. */
  asks(message: Message): boolean {
    return propertyOf(message, 'stream') !== undefined
  }

  /** Begins to give what a generator gives. */
  begin(message: Message, values: AsyncGenerator<unknown>): null {
    const asked = Number(propertyOf(message, 'stream'))
    const { responseTopic = '', correlationData } = message.properties
    const key = `${responseTopic}\n${keyOf(correlationData)}`
    // A request that came again: its answers are under way.
    if (this.#over || this.#open.has(key)) {
      endOf(values)
      return null
    }
    if (this.#open.size >= mostStreams) {
      endOf(values)
      throw new MqttError('ERR_REMOTE', 'too many streams', { reasonName: 'ERR_QUEUE_FULL' })
    }
    const giving: Giving = { credit: Math.min(65_535, Math.max(1, asked || 1)), cancelled: false, failure: undefined, wake: undefined }
    this.#open.set(key, giving)
    this.#give(giving, values, responseTopic, correlationData).finally(() => this.#open.delete(key))
    return null
  }

  /** No stream goes on. */
  readonly end = (): void => {
    this.#over = true
    for (const giving of this.#open.values()) cancel(giving)
    this.#handling?.unsubscribe().catch(() => undefined)
  }

  async #give(giving: Giving, values: AsyncGenerator<unknown>, topic: string, correlationData: Uint8Array | undefined): Promise<void> {
    let seq = 0
    let control = ''
    const send = (payload: string | Uint8Array, own: PublishProperties | undefined, ...more: [string, string][]): Promise<unknown> => {
      const properties = { ...own, correlationData, userProperties: [['seq', String(seq)] as [string, string], ...more] }
      seq += 1
      return this.#client.publish(topic, payload, { qos: 1, properties })
    }
    const failed = (error: unknown): void => {
      giving.failure ??= error
      giving.wake?.()
    }
    try {
      control = `${await this.#listening()}/${this.#topics++}`
      this.#controlled.set(control, giving)
      for (;;) {
        while (seq >= giving.credit && !isOver(giving)) await this.#credited(giving)
        const step = isOver(giving) ? undefined : await unlessOver(giving, values.next())
        if (giving.failure !== undefined) throw giving.failure
        if (step === undefined || giving.cancelled) return
        const { value, done } = step
        if (done === true) {
          await send('', undefined, ['end', ''])
          return
        }
        // As many as the caller has room for are under way at a time.
        const properties = { ...propertiesOf(this.#codec, true), responseTopic: seq === 0 ? control : undefined }
        const sent = send(await encoded(this.#codec, value as Answer), properties)
        sent.catch(failed)
        // However much credit there is, no more wait for their acknowledgement.
        if (seq % mostUnacknowledged === 0) await sent
      }
    } catch (error) {
      const told = MqttError.is(error) && error.code === 'ERR_REMOTE' && error.fault === 'local'
      await send(told ? printable(error.message) : '', undefined, [
        'error',
        told ? printable(error.reasonName ?? error.code) : 'ERR_HANDLER_FAILED',
      ]).catch(() => undefined)
    } finally {
      this.#controlled.delete(control)
      endOf(values)
    }
  }

  // Until its caller says something; one that says nothing any more has left.
  async #credited(giving: Giving): Promise<void> {
    await new Promise<void>((resolve) => {
      const timer = setTimeout(() => cancel(giving), this.#patience)
      giving.wake = () => {
        clearTimeout(timer)
        resolve()
      }
    })
    giving.wake = undefined
  }

  #listening(): Promise<string> {
    this.#control ??= this.#listen().catch((error: unknown) => {
      this.#control = undefined
      throw error
    })
    return this.#control
  }

  async #listen(): Promise<string> {
    const topic = ownTopic(this.#client)
    const handle = (message: Message): void => {
      const giving = this.#controlled.get(message.topic)
      if (giving === undefined) return
      if (propertyOf(message, 'cancel') !== undefined) return cancel(giving)
      const credit = Number(propertyOf(message, 'credit'))
      if (!(Number.isSafeInteger(credit) && credit > giving.credit)) return
      giving.credit = credit
      giving.wake?.()
    }
    const handling = await this.#client.listen(`${topic}/+`, handle, { qos: 1, retainHandling: 2, onExit: 'unsubscribe' })
    const ended = (): void => {
      if (this.#handling === handling) this.#control = undefined
    }
    handling.done.then(ended, ended)
    this.#handling = handling
    if (this.#over) handling.unsubscribe().catch(() => undefined)
    return topic
  }
}

function cancel(giving: Giving): void {
  giving.cancelled = true
  giving.wake?.()
}

function isOver({ cancelled, failure }: Giving): boolean {
  return cancelled || failure !== undefined
}

// A generator may never give another value.
function unlessOver<T>(giving: Giving, step: Promise<T>): Promise<T | undefined> {
  return new Promise((resolve, reject) => {
    giving.wake = () => isOver(giving) && resolve(undefined)
    step.then(resolve, reject)
    giving.wake()
  })
}

/** Ends a generator, as far as it lets itself be ended. */
function endOf(values: AsyncGenerator<unknown>): void {
  Promise.resolve()
    .then(() => values.return?.(undefined))
    .catch(() => undefined)
}

/** The one answer of a generator whose caller asked for no stream: its first value. */
export async function firstOf(values: AsyncGenerator<unknown>): Promise<unknown> {
  const { value } = await values.next()
  endOf(values)
  return value
}
