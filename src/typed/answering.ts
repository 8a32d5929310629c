/**
 * The serving end of streams of answers: generators whose values are published. For the convention see `answers.ts`.
 *
 * No caller makes it keep more than it asked for, nor keeps a generator running without a reader.
 */
import type { Handling, Message, PublishProperties } from '../client/options/index.js'
import { errorAnswer, unsendable } from '../client/request/remote.js'
import { MqttError } from '../errors.js'
import { keyOf, ownTopic, ownTopicOptions, propertyOf, type StreamClient } from './answers.js'
import type { Codec } from './codec.js'
import { encoded, propertiesOf } from './payload.js'
import { wholeNumber } from './refuse.js'

/** Streams that one responder may have open. */
const mostStreams = 1000
/** Answers of one stream whose acknowledgement is not there yet. */
const mostUnacknowledged = 256

/** True for a generator of answers. */
export function isStreamed(result: unknown): result is AsyncGenerator<unknown> {
  return (
    typeof (result as AsyncGenerator | undefined)?.[Symbol.asyncIterator] === 'function' &&
    typeof (result as AsyncGenerator).next === 'function'
  )
}

/** A stream that is being given. */
interface Giving {
  /** How many answers may be sent in all. */
  credit: number
  cancelled: boolean
  /** The error of a publish, or the reason why the server ends the stream. */
  failure: unknown
  wake: (() => void) | undefined
  /** Publishes the last message, with an error. */
  sendError(error: unknown): Promise<unknown>
}

/** An answer that is a declared error. */
export interface ErrorAnswer {
  readonly payload: string | Uint8Array
  readonly properties: PublishProperties | undefined
  /** Its User Properties. */
  readonly words: [string, string][]
}

/** The answer that an error is; undefined for an error that is not declared. It rejects where the data does not fit. */
type Declared = (error: unknown) => Promise<ErrorAnswer> | undefined

/** Reports a generator that failed to the serving program. */
type Report = (error: unknown) => void

/** The answering end: generators whose values are published as answers. */
export class AnswerSender<Answer> {
  readonly #client: StreamClient
  readonly #codec: Codec<Answer, unknown>
  readonly #patience: number
  readonly #declared: Declared
  readonly #report: Report
  readonly #open = new Map<string, Giving>()
  /** The same streams by the topics on which their callers control them. */
  readonly #controlled = new Map<string, Giving>()
  #topics = 0
  #control: Promise<string> | undefined
  #handling: Handling | undefined
  #over = false

  constructor(
    client: StreamClient,
    codec: Codec<Answer, unknown>,
    patience: number | undefined,
    declared: Declared,
    report: Report,
  ) {
    this.#client = client
    this.#declared = declared
    this.#report = report
    this.#codec = codec
    this.#patience = wholeNumber('streamTimeout', patience, 60_000)
  }

  /** True where a stream was asked for, and not one answer. */
  asks(message: Message): boolean {
    return propertyOf(message, 'stream') !== undefined
  }

  /** Starts to send the values of a generator. */
  begin(message: Message, values: AsyncGenerator<unknown>): null {
    const asked = Number(propertyOf(message, 'stream'))
    const { responseTopic = '', correlationData } = message.properties
    const key = `${responseTopic}\n${keyOf(correlationData)}`
    // A request that came again: its answers are under way.
    if (this.#open.has(key)) {
      endOf(values)
      return null
    }
    if (this.#open.size >= mostStreams) {
      endOf(values)
      throw new MqttError('ERR_REMOTE', 'too many streams', { reasonName: 'ERR_QUEUE_FULL' })
    }
    const giving: Giving = {
      credit: Math.min(65_535, Math.max(1, asked || 1)),
      cancelled: false,
      failure: undefined,
      wake: undefined,
      sendError: async () => undefined,
    }
    this.#open.set(key, giving)
    this.#give(giving, values, responseTopic, correlationData).finally(() => this.#open.delete(key))
    if (this.#over) giveUp(giving, ...ended)
    return null
  }

  /** Ends all streams. Callers get the error in this turn, because a client that ends may have no later one. */
  stop(): void {
    this.#over = true
    for (const giving of this.#open.values()) giveUp(giving, ...ended)
  }

  /** The same, where the client may go on. */
  readonly end = (): void => {
    this.stop()
    this.#handling?.unsubscribe().catch(() => undefined)
  }

  async #give(
    giving: Giving,
    values: AsyncGenerator<unknown>,
    topic: string,
    correlationData: Uint8Array | undefined,
  ): Promise<void> {
    let seq = 0
    let isReported = false
    let control = ''
    const send = (
      payload: string | Uint8Array,
      own: PublishProperties | undefined,
      ...more: [string, string][]
    ): Promise<unknown> => {
      const number = seq++
      const properties = {
        ...own,
        correlationData,
        userProperties: [['seq', String(number)] as [string, string], ...more],
      }
      const sent = this.#client.publish(topic, payload, { qos: 1, properties })
      sent.catch((error: unknown) => {
        // What says why comes in its place: a gap would say that something was lost.
        if (MqttError.is(error) && error.outcome === 'not-sent') seq = Math.min(seq, number)
        giving.failure ??= error
        giving.wake?.()
      })
      return sent
    }
    const last = async (
      payload: string | Uint8Array,
      own: PublishProperties | undefined,
      ...more: [string, string][]
    ): Promise<unknown> => {
      if (isReported || (this.#client as { readonly state?: string }).state === 'closed')
        return undefined
      isReported = true
      return send(payload, own, ...more)
    }
    giving.sendError = (error) => {
      const [code, text] = errorAnswer(error)
      return last(text, undefined, ['error', code])
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
          await last('', undefined, ['end', ''])
          return
        }
        const payload = await encoded(this.#codec, value as Answer)
        if (isOver(giving)) continue
        // As many as the caller has room for are under way at a time.
        const sent = send(payload, {
          ...propertiesOf(this.#codec, true),
          responseTopic: seq === 0 ? control : undefined,
        })
        // However much credit there is, no more wait for their acknowledgement.
        if (seq % mostUnacknowledged === 0) await sent
      }
    } catch (given) {
      let error = given
      try {
        const answer = await this.#declared(error)
        if (answer !== undefined)
          return void (await last(answer.payload, answer.properties, ...answer.words))
      } catch (unfit) {
        // It is too large, or its data is not valid.
        error = unfit
        isReported = false
      }
      const unsent = unsendable(error)
      // The caller gets only a code of an error of the server's own: the details stay with the serving program.
      if (
        unsent !== undefined ||
        (giving.failure === undefined && errorAnswer(error)[0] === 'ERR_HANDLER_FAILED')
      )
        this.#report(error)
      await giving.sendError(unsent ?? error).catch(() => undefined)
    } finally {
      this.#controlled.delete(control)
      endOf(values)
    }
  }

  // Waits until the caller sends something; a caller that stays silent has left.
  async #credited(giving: Giving): Promise<void> {
    await new Promise<void>((resolve) => {
      const timer = setTimeout(
        () => giveUp(giving, 'no credit came in time', 'ERR_TIMEOUT'),
        this.#patience,
      )
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
    const handling = await this.#client.listen(`${topic}/+`, handle, ownTopicOptions)
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

const ended = ['the responder has ended', 'ERR_CLOSED'] as const

/** Ends a stream that its caller may still read, and sends the reason at once. */
function giveUp(giving: Giving, text: string, reasonName: string): void {
  if (giving.failure !== undefined) return
  giving.failure = new MqttError('ERR_REMOTE', text, { reasonName })
  giving.sendError(giving.failure).catch(() => undefined)
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
