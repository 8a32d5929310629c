/**
 * `respond`: calls a handler with each request and publishes its result to the request's response
 * topic (section 4.10).
 *
 * Requesters choose the response topic, so it must be allowed; otherwise they could make this
 * client publish anywhere. Requests without a response topic, or with one that is not allowed, are
 * counted and the handler is not called.
 */

import {
  anyObject,
  assertHandler,
  invalid,
  object,
  optional,
  type Parsed,
  type Parser,
  string,
  viewBytes,
  withDefault,
} from '../../common/schema.js'
import { MqttError } from '../../errors.js'
import type { Bytes } from '../../wire/packets.js'
import { hasWildcard } from '../../wire/topics.js'
import { usual } from '../deliver/handling.js'
import type { DeliveredMessage } from '../deliver/message.js'
import { onFailure, payloadBytes } from '../options/check-calls.js'
import { leftOut, propertiesWith, qos } from '../options/check-options.js'
import type {
  Answer,
  Filters,
  HandlerFailure,
  ListenOptions,
  Message,
  Reply,
  Responder,
  Responding,
  RespondOptions,
} from '../options/index.js'
import { errorAnswer, unsendable } from './remote.js'
import { assertVersion, isStopping, type RequestHost } from './request.js'

type Allow = (responseTopic: string, message: Message) => boolean

const replySchema = {
  payload: withDefault(payloadBytes as Parser<Uint8Array>, new Uint8Array(0)),
  properties: withDefault(propertiesWith({ correlationData: leftOut }), {}),
  qos: optional(qos),
}
const replyOf = object<Parsed<typeof replySchema>>(replySchema)

const allowOf: Parser<Allow> = (value, path) => {
  if (value === undefined) return (topic) => !topic.startsWith('$')
  if (typeof value === 'function') return value as Allow
  const prefixes = [value].flat().map((item) => {
    const prefix = string(item, path)
    if (prefix === '' || hasWildcard(prefix))
      invalid(path, 'a function, or prefixes without wildcards')
    return prefix.endsWith('/') ? prefix : `${prefix}/`
  })
  return (topic) => prefixes.some((prefix) => `${topic}/`.startsWith(prefix))
}

/** The parts of a request that are needed for its answer. */
interface Asked extends Pick<Message, 'qos'> {
  readonly responseTopic: string
  readonly correlationData: Bytes | undefined
}

/**
 * Subscribes and answers requests, in order, `concurrency` at a time; a request is acknowledged
 * when its answer is published.
 * @throws MqttError as `listen`, and ERR_UNSUPPORTED_OPTION on 3.1.1
 */
export async function respond(
  host: RequestHost,
  filters: Filters,
  handler: Responding,
  options: RespondOptions = {},
): Promise<Responder> {
  assertVersion(host)
  assertHandler(handler, 'handler')
  const {
    allow,
    order = 'none',
    onError,
    ...rest
  } = anyObject(options, 'options') as RespondOptions
  const answers = new Answers(
    host.client,
    handler,
    allowOf(allow, 'allow'),
    onFailure(onError, 'onError'),
  )
  const handling = await host.client.listen(filters, answers.handle, {
    ...rest,
    order,
    onError: answers.decide,
  })
  return Object.defineProperties(handling, {
    ignored: { get: () => answers.ignored },
    failed: { get: () => answers.failed },
  }) as Responder
}

class Answers {
  ignored = 0
  failed = 0
  readonly #client: RequestHost['client']
  readonly #handler: Responding
  readonly #allow: Allow
  readonly #onError: ListenOptions['onError']
  /** Answer data per request, available even after the message is released. */
  readonly #asked = new WeakMap<Message, Asked>()

  constructor(
    client: RequestHost['client'],
    handler: Responding,
    allow: Allow,
    onError: ListenOptions['onError'],
  ) {
    this.#client = client
    this.#handler = handler
    this.#allow = allow
    this.#onError = onError
  }

  readonly handle = async (message: Message): Promise<void> => {
    const { responseTopic, correlationData } = message.properties
    if (
      responseTopic === undefined ||
      hasWildcard(responseTopic) ||
      (await this.#allow(responseTopic, message)) !== true
    ) {
      this.ignored += 1
      return
    }
    const asked = { responseTopic, correlationData, qos: message.qos }
    this.#asked.set(message, asked)
    const result = (await this.#handler(message)) as Answer
    if (result === null) return
    await this.#send(
      asked,
      typeof result === 'string' || viewBytes(result) !== undefined ? { payload: result } : result,
    )
  }

  /**
   * The handler failed: decides about the request. The requester gets an error answer once the
   * failure is final.
   */
  readonly decide = async (
    error: unknown,
    message: Message,
    attempt: number,
  ): Promise<HandlerFailure> => {
    const shown = message as DeliveredMessage
    const verdict = await verdictOf(this.#onError, error, shown, attempt)
    const asked = this.#asked.get(message)
    if (
      (verdict === 'retry' && !shown.released) ||
      verdict === 'stop' ||
      asked === undefined ||
      isStopping(this.#client)
    )
      return verdict
    await this.#send(asked, failureOf(error), true)
    return verdict
  }

  async #send(asked: Asked, reply: unknown, isFailure = false): Promise<void> {
    const { responseTopic, correlationData, qos: requested } = asked
    const { payload, properties, qos: own = requested } = replyOf(reply, 'reply')
    try {
      await this.#client.publish(responseTopic, payload, {
        qos: own,
        properties: { ...properties, correlationData },
      })
    } catch (error) {
      // The handler has succeeded, so it does not run again because its answer could not be sent;
      // only an invalid answer counts as its failure.
      if (MqttError.is(error) && error.code === 'ERR_INVALID_OPTION') throw error
      this.failed += 1
      // An error answer may also be too large to send.
      const unsent = isFailure ? undefined : unsendable(error)
      if (unsent !== undefined) await this.#send(asked, failureOf(unsent), true)
    }
  }
}

// The verdict of `onError`; if it throws, the message is rejected.
async function verdictOf(
  onError: ListenOptions['onError'],
  error: unknown,
  message: DeliveredMessage,
  attempt: number,
): Promise<HandlerFailure> {
  try {
    return await (typeof onError === 'function'
      ? onError(error, message, attempt)
      : usual(onError, message, attempt))
  } catch {
    return 'reject'
  }
}

function failureOf(error: unknown): Reply {
  const [code, payload] = errorAnswer(error)
  return { payload, properties: { userProperties: [['error', code]] } }
}
