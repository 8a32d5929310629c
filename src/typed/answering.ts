/**
 * Streams of answers, the answering end: generators whose values are published.
 */
import type { Handling, Message, PublishProperties } from '../client/api/index.js'
import { toldOf } from '../client/common/remote.js'
import { MqttError } from '../errors.js'
import { keyOf, longestWait, ownTopic, ownTopicOptions, propertyOf, type StreamClient, within } from './answers.js'
import type { Codec } from './codec.js'
import { encoded, propertiesOf } from './payload.js'

/** Streams that one responder may have open. */
const mostStreams = 1000

/** A stream that is being given. */
interface Giving {
  /** How many answers may be sent in all. */
  credit: number
  cancelled: boolean
  wake: (() => void) | undefined
}

/** The streams of one responder. */
export class AnswerSender<Answer> {
  readonly #client: StreamClient
  readonly #codec: Codec<Answer, unknown>
  readonly #patience: number
  readonly #open = new Map<string, Giving>()
  /** The same streams by the topics on which their callers control them. */
  readonly #controlled = new Map<string, Giving>()
  #topics = 0
  #control: Promise<string> | undefined
  #handling: Handling | undefined
  #over = false

  constructor(client: StreamClient, codec: Codec<Answer, unknown>, patience: number | undefined) {
    this.#client = client
    this.#codec = codec
    this.#patience = within('streamTimeout', patience, 60_000, longestWait)
  }

  /** Begins to give what a generator gives; the one answer of a caller that asked for no stream is its first value. */
  async begin(message: Message, values: AsyncGenerator<unknown>): Promise<{ payload: string | Uint8Array; properties: object | undefined } | null> {
    const asked = propertyOf(message, 'stream')
    const { responseTopic = '', correlationData } = message.properties
    if (asked === undefined) {
      const { value } = await values.next()
      values.return(undefined).catch(() => undefined)
      return { payload: await encoded(this.#codec, value as Answer), properties: propertiesOf(this.#codec, true) }
    }
    const key = `${responseTopic}\n${keyOf(correlationData)}`
    // A request that came again: its answers are under way.
    if (this.#over || this.#open.has(key)) {
      values.return(undefined).catch(() => undefined)
      return null
    }
    if (this.#open.size >= mostStreams) {
      values.return(undefined).catch(() => undefined)
      throw new MqttError('ERR_REMOTE', 'too many streams', { reasonName: 'ERR_QUEUE_FULL' })
    }
    const giving: Giving = { credit: Math.min(65_535, Math.max(1, Number(asked) || 1)), cancelled: false, wake: undefined }
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
    let failure: MqttError | undefined
    const send = (payload: string | Uint8Array, own: PublishProperties | undefined, ...more: [string, string][]): Promise<unknown> => {
      const properties = { ...own, correlationData, userProperties: [['seq', String(seq)] as [string, string], ...more] }
      seq += 1
      return this.#client.publish(topic, payload, { qos: 1, properties })
    }
    const failed = (error: MqttError): void => {
      failure ??= error
      giving.wake?.()
    }
    try {
      control = `${await this.#listening()}/${this.#topics++}`
      this.#controlled.set(control, giving)
      for (;;) {
        while (seq >= giving.credit && !giving.cancelled && failure === undefined) await this.#credited(giving)
        if (failure !== undefined) throw failure
        if (giving.cancelled) return
        const { value, done } = await values.next()
        if (giving.cancelled) return
        if (done === true) {
          await send('', undefined, ['end', ''])
          return
        }
        // As many as the caller has room for are under way at a time.
        const properties = { ...propertiesOf(this.#codec, true), responseTopic: seq === 0 ? control : undefined }
        send(await encoded(this.#codec, value as Answer), properties).catch(failed)
      }
    } catch (error) {
      const [code, text] = toldOf(error)
      await send(text, undefined, ['error', code]).catch(() => undefined)
    } finally {
      this.#controlled.delete(control)
      values.return(undefined).catch(() => undefined)
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
    const handling = await this.#client.listen(`${topic}/+`, handle, ownTopicOptions)
    handling.done.catch(() => undefined)
    this.#handling = handling
    if (this.#over) handling.unsubscribe().catch(() => undefined)
    return topic
  }
}

function cancel(giving: Giving): void {
  giving.cancelled = true
  giving.wake?.()
}
