/**
 * Operations: a request with one answer or a stream of answers, as typed values (section 4.10).
 *
 * One answer uses `request` and `respond`. Several are a stream: `answers.ts` describes the
 * protocol. Every call settles.
 */

import type {
  Message,
  Publisher,
  PublishProperties,
  Reply,
  Requester,
  RequestOptions,
  Responder,
  RespondOptions,
  Subscriber,
} from '../client/options/index.js'
import { answers } from '../client/request/remote.js'
import { onAbort, tolerant, within } from '../common/abort.js'
import { withOutcome } from '../common/outcome.js'
import { ownListener } from '../common/own-listener.js'
import { MqttError, printable, put } from '../errors.js'
import { AnswerSender, type ErrorAnswer, firstOf, isStreamed } from './answering.js'
import { propertyOf, type StreamOptions } from './answers.js'
import { type AnswerStream, AnswerStreams } from './asking.js'
import { checkedArguments, merged, nameOf, oncePerClient, templateOf } from './call.js'
import { type Codec, isPromise } from './codec.js'
import { Incoming, type Received } from './incoming.js'
import { accessOf, decoded, encoded, propertiesOf } from './payload.js'
import {
  assertAble,
  assertCodec,
  assertHandler,
  assertOptions,
  refuse,
  wholeNumber,
} from './refuse.js'
import type { Checked, GivenParams, Params, ParamsFirst, TopicTemplate } from './template.js'

/** Options of `call`. */
export type CallOptions = Pick<RequestOptions, 'timeout' | 'signal' | 'qos'>

/** Options of `serve`. */
export interface ServeOptions extends RespondOptions {
  /**
   * Name of a shared subscription (section 4.8.2), so that several responders share the requests.
   * Default: not shared.
   */
  readonly share?: string | undefined
  /**
   * Milliseconds after which a stream that waits for credit from its caller is ended, 1 to
   * 2,147,483,647. Default 60,000.
   */
  readonly streamTimeout?: number | undefined
}

/** Defaults of an operation, for both ends. */
export interface OperationDefaults<Errors extends OperationErrors = OperationErrors> {
  /**
   * Errors that handlers throw and callers recognise: the codec of their data by code; undefined
   * for an error without data. Default: none.
   */
  readonly errors?: Errors | undefined
  /**
   * QoS of requests, and of the subscription that serves them: 1 for requests that arrive at least
   * once. Default 0.
   */
  readonly qos?: CallOptions['qos']
  /**
   * Milliseconds to wait for the answer, or for each one of a stream, 1 to 2,147,483,647. Default
   * 30,000.
   */
  readonly timeout?: number | undefined
  /** Options of `serve`; override `qos`. Default: none. */
  readonly serve?: ServeOptions | undefined
}

/**
 * Errors of an operation, by code: the codec of their data, or undefined for those without data.
 */
export type OperationErrors = Readonly<Record<string, Codec<never, unknown> | undefined>>

/** Declared errors by their code as text; a code may be declared as a number. */
export type ErrorsByCode<Errors extends OperationErrors> = {
  readonly [Code in `${Exclude<keyof Errors, symbol>}`]: Code extends keyof Errors
    ? Errors[Code]
    : Code extends `${infer Numeric extends number}`
      ? Errors[Extract<keyof Errors, Numeric>]
      : never
}

/** A declared error, as the caller gets it: `reasonName` is its code. */
export type DeclaredError<
  Errors extends OperationErrors,
  Code extends keyof Errors & string = keyof Errors & string,
> = {
  readonly [Each in Code]: MqttError & {
    /** The same code as for every error of the other side. */
    readonly code: 'ERR_REMOTE'
    /** The code under which it is declared. */
    readonly reasonName: Each
    /** The decoded data. */
    readonly data: Errors[Each] extends Codec<never, infer Out> ? Out : undefined
  }
}[Code]

/** Arguments after the code of an error: its data, if any, and a text. */
export type ErrorArguments<Data> =
  Data extends Codec<infer In, unknown> ? [data: In, message?: string] : [message?: string]

/** Arguments with the value first, if the operation takes one. */
export type ValueFirst<In, Rest extends unknown[]> = unknown extends In
  ? [value: In, ...Rest]
  : [Promise<In>, Promise<void>] extends [Promise<void>, Promise<In>]
    ? Rest
    : [value: In, ...Rest]

/** One answer, or a generator of answers. */
export type Answers<Value> = Value | Promise<Value> | AsyncGenerator<Value, unknown, unknown>

/** An operation bound to a client that calls and serves. */
export interface BoundOperation<Template extends string, In, Request, Answer, Out> {
  /**
   * Sends a request and resolves with the answer.
   * @throws MqttError ERR_INVALID_PAYLOAD for a value, or an answer, that does not fit; ERR_REMOTE
   * when the responder fails; as `request` of the client
   */
  call(...call: ParamsFirst<Template, ValueFirst<In, [options?: CallOptions]>>): Promise<Out>
  /**
   * Sends a request and iterates over the answers. Leaving the loop ends the responder's generator.
   * @throws MqttError ERR_REMOTE when the generator fails, ERR_TIMEOUT, ERR_SESSION_LOST when
   * answers are missing, ERR_ABORTED, ERR_CLOSED
   */
  stream(
    ...call: ParamsFirst<Template, ValueFirst<In, [options?: StreamOptions]>>
  ): AsyncIterableIterator<Out>
  /**
   * Answers requests with the handler's result. Failures reach the caller as `ERR_REMOTE`.
   * @throws MqttError as `respond` of the client
   */
  serve(
    handler: (received: Received<Params<Template>, Request>) => Answers<Answer>,
    options?: ServeOptions,
  ): Promise<TypedResponder>
  /** As above, with some of the parameters. */
  serve(
    params: Partial<GivenParams<Template>> | undefined,
    handler: (received: Received<Params<Template>, Request>) => Answers<Answer>,
    options?: ServeOptions,
  ): Promise<TypedResponder>
}

/** A running `serve`. */
export interface TypedResponder extends Responder {
  /** Requests whose payload or topic did not fit this operation. */
  readonly invalid: number
}

/** A topic with the types of its requests and answers. */
export class Operation<
  Template extends string,
  In,
  Request,
  Answer,
  Out,
  Errors extends OperationErrors = OperationErrors,
> {
  /** Distinguishes operations from channels. */
  readonly kind = 'operation'
  /** The topic of requests. */
  readonly topic: TopicTemplate<Template>
  /** Codec of requests; for an operation without input, one that writes empty payloads. */
  readonly request: Codec<In, Request>
  /** Codec of answers; for an operation without output, one that writes empty payloads. */
  readonly answer: Codec<Answer, Out>
  /** The declared errors. */
  readonly errors: Errors
  /** Defaults for each call and each `serve`. */
  readonly defaults: OperationDefaults<Errors>
  /** Number of arguments of a call before its options: parameters and value, if it has them. */
  readonly takes: number
  readonly #bound = oncePerClient(
    (client: OperationClient) =>
      new OperationOnClient(this, client) as unknown as BoundOperation<
        Template,
        In,
        Request,
        Answer,
        Out
      >,
  )

  constructor(
    topic: TopicTemplate<Template>,
    request: Codec<In, Request> | undefined,
    answer: Codec<Answer, Out> | undefined,
    defaults: OperationDefaults<Errors> = {},
  ) {
    this.topic = topic
    this.errors = defaults.errors ?? ({} as Errors)
    this.request = request ?? (nothing as Codec<never>)
    this.answer = answer ?? (nothing as Codec<never>)
    this.defaults = defaults
    this.takes = (topic.parameters.length > 0 ? 1 : 0) + (request === undefined ? 0 : 1)
  }

  /** Binds the operation to a client. */
  on(client: OperationClient): BoundOperation<Template, In, Request, Answer, Out> {
    return this.#bound(client)
  }

  /**
   * Creates a declared error for a handler to throw: the caller gets the code, the data and the
   * text immediately, without retries of the handler. The text is cut off after 256 characters.
   * @throws MqttError ERR_INVALID_OPTION for a code that is not declared
   */
  error<Code extends keyof Errors & string>(
    code: Code,
    ...rest: ErrorArguments<Errors[Code]>
  ): MqttError
  error(code: string, ...rest: unknown[]): MqttError {
    if (!Object.hasOwn(this.errors, code))
      refuse(
        'code',
        `must be one of ${Object.keys(this.errors).join(', ') || 'the declared ones: there are none'}`,
      )
    const [data, message] = this.errors[code] === undefined ? [undefined, ...rest] : rest
    return declare(
      this,
      new MqttError('ERR_REMOTE', message as string | undefined, { reasonName: code }),
      data,
    )
  }

  /**
   * True for a declared error of this operation whose data fits its codec; with `code`, only for
   * that one. Recognises errors of calls and of {@link Operation.error}. Other errors are not
   * changed by the declarations.
   */
  isError<Code extends keyof Errors & string = keyof Errors & string>(
    error: unknown,
    code?: Code,
  ): error is DeclaredError<Errors, Code> {
    return (
      declaring.get(error as object) === this &&
      (code === undefined || (error as MqttError).reasonName === code)
    )
  }
}

/** The operation that declares an error, by the error. */
const declaring = /* @__PURE__ */ new WeakMap<object, object>()

function declare(operation: object, error: MqttError, data: unknown): MqttError {
  declaring.set(error, operation)
  put(error, 'data', data, true)
  return error
}

/** The client that calls and serves. */
export type OperationClient = Requester & Publisher<unknown> & Subscriber

/** Writes an empty payload and ignores the received one. */
const nothing: Codec<void> = { encode: () => '', decode: () => undefined, inPlace: true }

/**
 * Creates an operation: a topic or topic template, with codecs of requests and answers. Without
 * `request` it takes no value, and without `answer` it returns none.
 * @throws MqttError ERR_INVALID_TOPIC, ERR_INVALID_OPTION
 */
export function operation<
  Template extends string,
  In = void,
  Request = In,
  Answer = void,
  Out = Answer,
  Errors extends OperationErrors = Readonly<Record<never, never>>,
>(
  topic: Checked<Template> | TopicTemplate<Template>,
  request?: Codec<In, Request>,
  answer?: Codec<Answer, Out>,
  defaults: OperationDefaults<Errors> = {},
): Operation<Template, In, Request, Answer, Out, ErrorsByCode<Errors>> {
  assertOptions(defaults)
  const { errors = {} as OperationErrors } = defaults
  if (typeof errors !== 'object' || errors === null || Array.isArray(errors))
    refuse('errors', 'must be codecs by the code of an error')
  for (const code of Object.keys(errors))
    if (code === '' || code !== printable(code) || code.startsWith('ERR_'))
      refuse(
        'errors',
        `has a code that must be other text, up to 256 characters, and without ERR_ before it: '${printable(code)}'`,
      )
  for (const given of [request, answer, ...Object.values(errors)])
    if (given !== undefined) assertCodec(given)
  assertOptions(defaults.serve)
  wholeNumber('timeout', defaults.timeout, undefined)
  return new Operation(
    templateOf<Template>(topic),
    request,
    answer,
    defaults as OperationDefaults<never>,
  )
}

class OperationOnClient<Template extends string, In, Request, Answer, Out> {
  readonly #operation: Operation<Template, In, Request, Answer, Out>
  readonly #client: OperationClient
  #streams: AnswerStreams | undefined

  constructor(operation: Operation<Template, In, Request, Answer, Out>, client: OperationClient) {
    this.#operation = operation
    this.#client = client
  }

  call(...call: unknown[]): Promise<Out> {
    return tolerant(this.#ask(...call))
  }

  async #ask(...call: unknown[]): Promise<Out> {
    assertAble(this.#client, 'request')
    const { request, answer, topic, defaults } = this.#operation
    const [params, value, given] = this.#arguments(call) as [object, In, CallOptions?]
    const options = merged<CallOptions>({ qos: defaults.qos, timeout: defaults.timeout }, given)
    const name = nameOf(topic, params)
    const payload = encoded(request, value)
    const properties = propertiesOf(request, true) as RequestOptions['properties']
    const ready = isPromise(payload) ? await within(payload, options.signal) : payload
    const message = await this.#client
      .request(name, ready, { ...options, properties })
      .catch(async (error: unknown) => {
        throw await within(failureOf(this.#operation, error), options.signal, 'unknown')
      })
    const made = answered(answer, message)
    return isPromise(made) ? within(Promise.resolve(made), options.signal, 'unknown') : made
  }

  // The arguments as parameters, value and options, with undefined for those that the operation
  // does not have.
  #arguments(call: unknown[]): unknown[] {
    const { topic, request } = this.#operation
    if ((request as unknown) !== nothing) return checkedArguments(topic, call, 2)
    const [params, options] = checkedArguments(topic, call, 1)
    return [params, undefined, options]
  }

  stream(...call: unknown[]): AsyncIterableIterator<Out> {
    const abort = new AbortController()
    const { answer } = this.#operation
    let opening: Promise<AnswerStream> | undefined
    let isOver = false
    const leave = (): IteratorResult<Out> => {
      if (!isOver) opening?.then((answers) => answers.leave()).catch(() => undefined)
      isOver = true
      abort.abort()
      return { value: undefined, done: true }
    }
    const step = async (): Promise<IteratorResult<Out>> => {
      if (isOver) return leave()
      try {
        opening ??= this.#open(call, abort)
        const message = await (await opening).next()
        if (message === undefined || isOver) return leave()
        const made = answered(answer, message)
        const value = isPromise(made)
          ? await within(Promise.resolve(made), abort.signal, 'unknown')
          : made
        return isOver ? leave() : { value, done: false }
      } catch (error) {
        const failure = answers.has(error as object)
          ? await within(failureOf(this.#operation, error), abort.signal, 'unknown').catch(
              (gone: unknown) => gone,
            )
          : error
        const hasLeft = isOver
        leave()
        if (hasLeft) return leave()
        throw failure
      }
    }
    // Calls of `next()` run one after the other; leaving does not wait for them.
    let last: Promise<unknown> = Promise.resolve()
    const iterator: AsyncIterableIterator<Out> = {
      next: () => {
        const next = last.then(step)
        last = next.catch(() => undefined)
        return next
      },
      return: async () => leave(),
      throw: async (error) => {
        leave()
        throw error
      },
      [Symbol.asyncIterator]: () => iterator,
    }
    return iterator
  }

  // Leaving aborts the request.
  async #open(call: unknown[], abort: AbortController): Promise<AnswerStream> {
    assertAble(this.#client, 'listen')
    const { request, topic, defaults } = this.#operation
    const [params, value, given] = this.#arguments(call) as [object, In, StreamOptions?]
    const options = merged<StreamOptions>({ timeout: defaults.timeout }, given)
    if (!accessOf(this.#client).modern)
      throw new MqttError('ERR_UNSUPPORTED_OPTION', 'request and response need MQTT 5.0', {
        option: 'protocolVersion',
      })
    const { signal } = options
    abort.signal.addEventListener(
      'abort',
      onAbort(signal, () => abort.abort(signal?.reason)),
    )
    const name = nameOf(topic, params)
    const payload = await within(Promise.resolve(encoded(request, value)), abort.signal)
    this.#streams ??= new AnswerStreams(this.#client)
    return this.#streams.open(name, payload, propertiesOf(request, true), {
      ...options,
      signal: abort.signal,
    })
  }

  async serve(...call: unknown[]): Promise<Responder> {
    const [params, handler, given = {}] = (
      typeof call[0] === 'function' ? [undefined, ...call] : call
    ) as [Partial<GivenParams<Template>> | undefined, (received: unknown) => unknown, ServeOptions?]
    assertHandler(handler)
    assertAble(this.#client, 'respond')
    const { topic, request, answer, defaults } = this.#operation
    const { share, streamTimeout, onError, ...options } = merged<ServeOptions>(
      { qos: defaults.qos },
      defaults.serve,
      given,
    )
    const incoming = new Incoming(topic, request, 'deliver', accessOf(this.#client), { invalid: 0 })
    const declared = (error: unknown): Promise<ErrorAnswer> | undefined =>
      declaredAnswer(this.#operation, error)
    const sender = new AnswerSender(this.#client, answer, streamTimeout, declared, (error) =>
      incoming.report(`a generator of answers failed: ${topic.template}: `, error),
    )
    /** Errors that a retry would not change. */
    const hopeless = new WeakSet<object>()
    const final = (error: MqttError): never => {
      hopeless.add(error)
      throw error
    }
    const respond = async (message: Message): Promise<Reply | null> => {
      const taken = await incoming.take(message)
      if (taken === undefined || taken.error !== undefined)
        return final(
          new MqttError('ERR_REMOTE', taken?.error?.message ?? 'invalid payload: it is empty', {
            reasonName: 'ERR_INVALID_PAYLOAD',
          }),
        )
      try {
        const result = await handler(taken)
        if (isStreamed(result) && sender.asks(message)) return sender.begin(message, result)
        return await replyOf(
          answer,
          (isStreamed(result) ? await firstOf(result) : result) as Answer,
        ).catch(final)
      } catch (error) {
        const answer = declared(error)
        if (answer === undefined) throw error
        const { payload, properties, words } = await answer.catch(final)
        return { payload, properties: { ...properties, userProperties: words } }
      }
    }
    const responder = await this.#client.respond(topic.filter(params, { share }), respond, {
      ...options,
      onError: (error, message, attempt) => {
        if (hopeless.has(error as object)) return 'reject'
        if (typeof onError === 'function') return onError(error, message, attempt)
        return attempt > mostRetries
          ? 'reject'
          : (onError ?? (message.qos === 0 ? 'reject' : 'retry'))
      },
    })
    const unlisten = this.#client.on(
      'state',
      ownListener(({ state }) => state === 'disconnecting' && sender.stop()),
    )
    const end = (): void => {
      unlisten()
      sender.end()
    }
    responder.done.then(end, end)
    return Object.defineProperty(responder, 'invalid', {
      get: () => incoming.invalid,
      configurable: true,
    })
  }
}

/**
 * The value of an answer. If it cannot be decoded, the request was still handled, so the error must
 * not lead to a retry.
 */
function answered<Out>(codec: Codec<never, Out>, message: Message): Out | Promise<Out> {
  const fail = (error: unknown): never => {
    throw withOutcome(error, 'unknown')
  }
  try {
    const value = decoded(codec, message)
    return value instanceof Promise ? value.catch(fail) : value
  } catch (error) {
    return fail(error)
  }
}

/** As the client has it. */
const mostRetries = 5

async function replyOf<Answer>(codec: Codec<Answer, unknown>, value: Answer) {
  return {
    payload: await encoded(codec, value),
    properties: propertiesOf(codec, true) as Omit<PublishProperties, 'correlationData'> | undefined,
  }
}

type AnyOperation = Pick<Operation<string, unknown, unknown, unknown, unknown>, 'errors'>

/**
 * The answer for a declared error; undefined for any other error. As an answer, it ends the request
 * without a retry of the handler.
 */
function declaredAnswer(operation: AnyOperation, error: unknown): Promise<ErrorAnswer> | undefined {
  if (declaring.get(error as object) !== operation) return undefined
  const { reasonName: code = '', message, data } = error as MqttError & { readonly data: never }
  const codec = operation.errors[code]
  const text = printable(message)
  const name: [string, string] = ['error', code]
  if (codec === undefined)
    return Promise.resolve({ payload: text, properties: undefined, words: [name] })
  return replyOf(codec, data).then((reply) => ({ ...reply, words: [name, ['message', text]] }))
}

/** The error of a call, with its data if its code is declared and the data fits. */
async function failureOf(operation: AnyOperation, error: unknown): Promise<unknown> {
  const answer = answers.get(error as object)
  if (answer === undefined) return error
  const { reasonName = '', message } = error as MqttError
  const given = propertyOf(answer, 'message')
  const text = given && printable(given)
  const made = (message: string | undefined, cause?: unknown): MqttError =>
    new MqttError('ERR_REMOTE', message, { fault: 'remote', outcome: 'unknown', reasonName, cause })
  const isDeclared = Object.hasOwn(operation.errors, reasonName)
  const codec = isDeclared ? operation.errors[reasonName] : undefined
  if (codec === undefined) {
    const plain = text === undefined ? (error as MqttError) : made(text)
    return isDeclared ? declare(operation, plain, undefined) : plain
  }
  try {
    const data = await decoded(codec, answer)
    return declare(operation, made(text), data)
  } catch (cause) {
    return made(text ?? message, cause)
  }
}
