/**
 * The serving side of answer streams: publishes the values of generators. `answers.ts` describes
 * the protocol.
 *
 * Buffers are bounded by the credit of the caller, and a generator whose caller has gone is ended.
 */
import type { Handling, Message, PublishProperties } from '../client/options/index.js'
import { errorAnswer, unsendable } from '../client/request/remote.js'
import { MqttError } from '../errors.js'
import { keyOf, ownTopic, ownTopicOptions, propertyOf, type StreamClient } from './answers.js'
import type { Codec } from './codec.js'
import { encoded, propertiesOf } from './payload.js'
import { wholeNumber } from './refuse.js'

/** Limit of open streams of one responder. */
const mostStreams = 1000
/** Limit of unacknowledged answers of one stream. */
const mostUnacknowledged = 256

/** True for a generator of answers. */
export function isStreamed(result: unknown): result is AsyncGenerator<unknown> {
  return (
    typeof (result as AsyncGenerator | undefined)?.[Symbol.asyncIterator] === 'function' &&
    typeof (result as AsyncGenerator).next === 'function'
  )
}

/** An open stream. */
interface Giving {
  /** Number of answers that may be sent in total. */
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

/**
 * Returns the answer for a declared error; undefined for any other error. The promise rejects when
 * the data does not fit its codec.
 */
type Declared = (error: unknown) => Promise<ErrorAnswer> | undefined

/** Reports a failed generator to the serving program. */
type Report = (error: unknown) => void

/** Publishes the values of generators as answers. */
export class AnswerSender<Answer> {
  readonly #client: StreamClient
  readonly #codec: Codec<Answer, unknown>
  readonly #patience: number
  readonly #declared: Declared
  readonly #report: Report
  readonly #open = new Map<string, Giving>()
  /** The open streams by control topic. */
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

  /** True when the request asks for a stream rather than for one answer. */
  asks(message: Message): boolean {
    return propertyOf(message, 'stream') !== undefined
  }

  /** Starts to send the values of a generator. */
  begin(message: Message, values: AsyncGenerator<unknown>): null {
    const asked = Number(propertyOf(message, 'stream'))
    const { responseTopic = '', correlationData } = message.properties
    const key = `${responseTopic}\n${keyOf(correlationData)}`
    // A redelivered request: its stream is already open.
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

  /**
   * Ends all streams. The errors are published synchronously, because a closing client may not send
   * later.
   */
  stop(): void {
    this.#over = true
    for (const giving of this.#open.values()) giveUp(giving, ...ended)
  }

  /** As `stop`, and unsubscribes from the control topics: for a client that stays connected. */
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
        // The error takes the number of the unsent answer, because a gap would mean a lost answer.
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
        // Credit limits the answers in flight.
        const sent = send(payload, {
          ...propertiesOf(this.#codec, true),
          responseTopic: seq === 0 ? control : undefined,
        })
        // The number of unacknowledged answers is limited, whatever the credit.
        if (seq % mostUnacknowledged === 0) await sent
      }
    } catch (given) {
      let error = given
      try {
        const answer = await this.#declared(error)
        if (answer !== undefined)
          return void (await last(answer.payload, answer.properties, ...answer.words))
      } catch (unfit) {
        // The error answer is too large, or its data is not valid.
        error = unfit
        isReported = false
      }
      const unsent = unsendable(error)
      // For an undeclared error of the handler, the caller gets only a code; the details are
      // reported to the serving program.
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

  // Waits for credit or a cancellation. Without either in time, the caller counts as gone.
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

/** Ends a stream and sends the reason to its caller. */
function giveUp(giving: Giving, text: string, reasonName: string): void {
  if (giving.failure !== undefined) return
  giving.failure = new MqttError('ERR_REMOTE', text, { reasonName })
  giving.sendError(giving.failure).catch(() => undefined)
  giving.wake?.()
}

function isOver({ cancelled, failure }: Giving): boolean {
  return cancelled || failure !== undefined
}

// Stops waiting when the stream ends, because the generator may never yield again.
function unlessOver<T>(giving: Giving, step: Promise<T>): Promise<T | undefined> {
  return new Promise((resolve, reject) => {
    giving.wake = () => isOver(giving) && resolve(undefined)
    step.then(resolve, reject)
    giving.wake()
  })
}

/** Asks a generator to return; errors are ignored. */
function endOf(values: AsyncGenerator<unknown>): void {
  Promise.resolve()
    .then(() => values.return?.(undefined))
    .catch(() => undefined)
}

/** The first value of a generator, for a caller that requested one answer. */
export async function firstOf(values: AsyncGenerator<unknown>): Promise<unknown> {
  const { value } = await values.next()
  endOf(values)
  return value
}
