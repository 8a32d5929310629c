/**
 * `respond`: a handler whose result is published to the response topic of the message it was given (section 4.10).
 *
 * It answers only where it is allowed to: a requester chooses the response topic, and must not make this client publish wherever it likes. What it
 * does not answer is counted, and the handler is not called for it.
 */
import { MqttError } from '../../errors.js'
import type { QoS } from '../../wire/packets.js'
import { hasWildcard } from '../../wire/topics.js'
import type { Filters, Grant, Handling, ListenOptions, Payload, PublishProperties } from '../api.js'
import { asyncDisposeSymbol } from '../common/dispose.js'
import { anyObject, invalid, object, optional, type Parsed, type Parser, string, viewBytes, withDefault } from '../common/schema.js'
import type { Message } from '../delivery/message.js'
import { publishProperties, qos } from '../parsing/options.js'
import { payloadBytes } from '../parsing/requests.js'
import { assertVersion, type RequestClient } from './request.js'

/** An answer with properties of its own. */
export interface Reply {
  /** Default empty. */
  readonly payload?: Payload | undefined
  /** The correlation data is the request's and may not be given. */
  readonly properties?: Omit<PublishProperties, 'correlationData'> | undefined
  /** Default: that of the request, as it arrived. */
  readonly qos?: QoS | undefined
}

/** What is answered: undefined is an empty answer, `null` is none at all. */
export type Answer = Payload | Reply | null | undefined

/** Answers one request. A throw is no answer and goes the way of `onError`. */
export type Responding = ((message: Message) => Answer | Promise<Answer>) | ((message: Message) => void | Promise<void>)

/** Options of `respond`: those of `listen`, and where answers may go. */
export interface RespondOptions extends ListenOptions {
  /**
   * Which response topics are answered: prefixes of whole levels (`'tenant-1/replies'` allows it and everything below it), or a function.
   * Default: all but those that begin with `$`. Topics with wildcards never are.
   */
  readonly allow?: string | readonly string[] | ((responseTopic: string, message: Message) => boolean) | undefined
}

/** A running `respond`. */
export interface Responder extends Handling {
  /** Messages that were not answered because they had no response topic, or none that is allowed. */
  readonly ignored: number
  /** Answers that could not be published; each shows as a `drop` event. */
  readonly failed: number
}

type Allow = (responseTopic: string, message: Message) => boolean

const replyProperties: Parser<ReturnType<typeof publishProperties>> = (value, path) => {
  const parsed = publishProperties(value, path)
  if (parsed.correlationData !== undefined) invalid(`${path}.correlationData`, 'left out')
  return parsed
}

const replySchema = {
  payload: withDefault(payloadBytes as Parser<Uint8Array>, new Uint8Array(0)),
  properties: withDefault(replyProperties, {}),
  qos: optional(qos),
}
const replyOf = object<Parsed<typeof replySchema>>(replySchema)

const allowOf: Parser<Allow> = (value, path) => {
  if (value === undefined) return (topic) => !topic.startsWith('$')
  if (typeof value === 'function') return value as Allow
  const list: readonly unknown[] = Array.isArray(value) ? value : [value]
  const prefixes = list.map((item) => {
    const prefix = string(item, path)
    if (prefix === '' || hasWildcard(prefix)) invalid(path, 'a function, or prefixes without wildcards')
    return prefix.endsWith('/') ? prefix : `${prefix}/`
  })
  return (topic) => prefixes.some((prefix) => `${topic}/`.startsWith(prefix))
}

/**
 * Subscribes and answers requests, in order, `concurrency` at a time; a request is acknowledged when its answer is published.
 * @throws MqttError as `listen`, and ERR_UNSUPPORTED_OPTION on 3.1.1
 */
export async function respond(client: RequestClient, filters: Filters, handler: Responding, options: RespondOptions = {}): Promise<Responder> {
  assertVersion(client)
  if (typeof handler !== 'function') throw new MqttError('ERR_INVALID_HANDLER', undefined, { option: 'handler' })
  const { allow, ...rest } = anyObject(options, 'options') as RespondOptions
  const answers = new Answers(client, handler, allowOf(allow, 'allow'))
  return answers.over(await client.listen(filters, (message) => answers.handle(message), rest))
}

class Answers {
  ignored = 0
  failed = 0
  readonly #client: RequestClient
  readonly #handler: Responding
  readonly #allow: Allow

  constructor(client: RequestClient, handler: Responding, allow: Allow) {
    this.#client = client
    this.#handler = handler
    this.#allow = allow
  }

  async handle(message: Message): Promise<void> {
    const { responseTopic, correlationData } = message.properties
    if (responseTopic === undefined || hasWildcard(responseTopic) || (await this.#allow(responseTopic, message)) !== true) {
      this.ignored += 1
      return
    }
    // Before the handler runs: it may release the message.
    const requested = message.qos
    const result = (await this.#handler(message)) as Answer
    if (result === null) return
    const { payload, properties, qos: own = requested } = parseReply(result)
    try {
      await this.#client.publish(responseTopic, payload, { qos: own, properties: { ...properties, correlationData } })
    } catch (error) {
      // The handler has done its work: it does not run again for this.
      if (MqttError.is(error) && error.code === 'ERR_INVALID_OPTION') throw error
      this.failed += 1
    }
  }

  over(handling: Handling): Responder {
    const answers = this
    return {
      get granted(): readonly Grant[] {
        return handling.granted
      },
      get ignored(): number {
        return answers.ignored
      },
      get failed(): number {
        return answers.failed
      },
      done: handling.done,
      unsubscribe: () => handling.unsubscribe(),
      detach: () => handling.detach(),
      [asyncDisposeSymbol]: async () => handling[asyncDisposeSymbol](),
    }
  }
}

function parseReply(result: Payload | Reply | undefined): Parsed<typeof replySchema> {
  if (typeof result === 'string' || viewBytes(result) !== undefined) return replyOf({ payload: result }, 'reply')
  return replyOf(result, 'reply')
}
