/**
 * `request`: publishes a message with a response topic, and returns the answer with the same
 * correlation data (section 4.10).
 *
 * One response subscription serves all requests of a client. The client must restore subscriptions
 * after a reconnect. Every request settles exactly once: by its answer, timeout, signal, a failure,
 * or the end of the client.
 */
import {
  aborted,
  assertNotAborted,
  type Deferred,
  deferred,
  onAbort,
  rejected,
} from '../../common/abort.js'
import { closedError, withOutcome } from '../../common/outcome.js'
import { ownListener } from '../../common/own-listener.js'
import {
  assertLast,
  duration,
  object,
  optional,
  optionError,
  type Parsed,
  signal,
  withDefault,
} from '../../common/schema.js'
import { MqttError, type Outcome } from '../../errors.js'
import { isShared, validateTopicName } from '../../wire/topics.js'
import {
  assertTopicName,
  checkedTopic,
  isVersion4,
  payloadBytes,
  type Spoken,
} from '../options/check-calls.js'
import { leftOut, propertiesWith, qos } from '../options/check-options.js'
import type {
  ClientEvents,
  ClientState,
  Filters,
  Handler,
  Handling,
  ListenOptions,
  Message,
  Negotiated,
  Payload,
  PublishOptions,
  RequestOptions,
} from '../options/index.js'
import type { Platform } from '../platform.js'
import { remoteError } from './remote.js'

/** Length of Correlation Data in bytes. */
const correlationLength = 12
/** Bytes counted per request besides its payload and topic. */
const overhead = 256

/** Limits of pending requests. */
export interface RequestLimits {
  /**
   * Requests waiting for their answer; the same number again may wait to be sent. Default 65,535.
   */
  readonly requests: number
  /** Bytes of requests waiting to be sent. Default 16 MiB. */
  readonly bytes: number
}

const defaultLimits: RequestLimits = { requests: 65_535, bytes: 16 * 1024 * 1024 }

const requestSchema = {
  timeout: withDefault(duration, 30_000),
  qos: withDefault(qos, 0),
  properties: withDefault(propertiesWith({ responseTopic: leftOut, correlationData: leftOut }), {}),
  signal: optional(signal),
}
const requestOptions = object<Parsed<typeof requestSchema>>(requestSchema)

/** A response subscription. */
interface Route {
  readonly topic: string
  /** Number of requests that expect their answer here. */
  calls: number
  /** Set once the subscription is granted. */
  handling: Handling | undefined
  /** Ends the wait for the grant. */
  readonly abort: AbortController
}

interface Call {
  readonly topic: string
  payload: Uint8Array
  readonly options: Parsed<typeof requestSchema>
  readonly size: number
  readonly done: Deferred<Message>
  /** Withdraws the request if it was not sent. */
  readonly abort: AbortController
  /** Releases timer and signal. */
  readonly stop: () => void
  /** Correlation data as a map key, and the response subscription; set when it is published. */
  sent?: { readonly key: string; readonly route: Route } | undefined
  /** Outcome of the publish. */
  sending?: Promise<Outcome>
}

const none = new Uint8Array(0)

/**
 * The requests of one client. The response topic is unique to this instance, because a persistent
 * session may still deliver answers for filters of earlier ones.
 */
export class Requests {
  /**
   * Answers without a request: correlation data unknown, missing, or already answered (or too
   * late).
   */
  ignored = 0
  readonly #host: RequestHost
  readonly #client: RequestClient
  readonly #limits: RequestLimits
  readonly #id: string
  /** Not published yet, oldest first. */
  readonly #waiting = new Set<Call>()
  #waitingBytes = 0
  /** Published, by correlation data. */
  readonly #open = new Map<string, Call>()
  #route: Route | undefined
  #counter = 0

  constructor(host: RequestHost, limits: RequestLimits = defaultLimits) {
    const { client } = host
    this.#host = host
    this.#client = client
    this.#limits = limits
    this.#id = Array.from(this.#random(20), (byte) => (byte & 15).toString(16)).join('')
    client.on('connect', () => this.#pump())
    // A disconnecting client delivers no more answers.
    client.on(
      'state',
      ownListener(
        ({ state }) => state === 'disconnecting' && this.#failAll(),
        () => this.#open.size + this.#waiting.size > 0,
      ),
    )
    client.closed.then((error) => this.#failAll(error))
  }

  /**
   * Publishes a request and returns its answer. Without a connection, waits for one. The payload
   * must not change until it settles.
   * @throws MqttError ERR_REMOTE when the responder answers with an error, ERR_TIMEOUT,
   * ERR_ABORTED, ERR_CLOSED, ERR_QUEUE_FULL, ERR_UNSUPPORTED_OPTION on 3.1.1, ERR_INVALID_OPTION,
   * ERR_INVALID_TOPIC, and all errors of `listen` and `publish`; `outcome` says whether the request
   * may have arrived
   */
  request(
    topic: string,
    payload: Payload,
    options?: RequestOptions,
    more?: unknown,
  ): Promise<Message> {
    try {
      assertLast(more)
      const { promise } = this.#add(topic, payload, options).done
      this.#pump()
      return promise
    } catch (error) {
      return this.#host.publishing?.refuse(topic, error) ?? rejected(error)
    }
  }

  #add(asked: unknown, payload: unknown, given: unknown): Call {
    assertVersion(this.#host)
    if (isStopping(this.#client)) throw closedError()
    const topic = checkedTopic(asked)
    assertTopicName(topic)
    const options = requestOptions(given)
    const bytes = payloadBytes(payload)
    assertNotAborted(options.signal)
    const size = bytes.length + topic.length + overhead
    const { requests, bytes: mostBytes } = this.#limits
    if (
      this.#waiting.size + this.#open.size >= requests * 2 ||
      (this.#waiting.size > 0 && this.#waitingBytes + size > mostBytes)
    )
      throw new MqttError('ERR_QUEUE_FULL', 'too many requests wait')
    const call: Call = {
      topic,
      payload: bytes,
      options,
      size,
      done: deferred(),
      abort: new AbortController(),
      stop: () => {
        cancel()
        stop()
      },
    }
    this.#waiting.add(call)
    this.#waitingBytes += size
    this.#host.session.sendWindow.asking += 1
    const cancel = this.#host.platform.setTimer(() => {
      const offline =
        this.#client.state === 'connected'
          ? ''
          : `: the client is ${this.#client.state}; await client.connect() first`
      this.#giveUp(
        call,
        new MqttError('ERR_TIMEOUT', `no answer in ${options.timeout} ms${offline}`, {
          fault: 'remote',
        }),
      )
    }, options.timeout)
    const stop = onAbort(options.signal, () => this.#giveUp(call, aborted(options.signal)))
    return call
  }

  // Publishes waiting requests in order, as connection, response subscription and limits allow.
  #pump(): void {
    if (this.#waiting.size === 0 || this.#client.state !== 'connected') return
    try {
      assertVersion(this.#host)
      const route = this.#currentRoute()
      if (route.handling === undefined) return
      for (const call of this.#waiting) {
        if (this.#open.size >= this.#limits.requests) return
        this.#send(call, route)
      }
    } catch (error) {
      this.#failAll(error, ({ sent }) => sent === undefined)
    }
  }

  #send(call: Call, route: Route): void {
    const correlationData = this.#correlation()
    const key = keyOf(correlationData)
    this.#leaveQueue(call)
    call.sent = { key, route }
    this.#open.set(key, call)
    route.calls += 1
    const { topic, payload, options, abort } = call
    call.payload = none
    const published = this.#client.publish(topic, payload, {
      qos: options.qos,
      // Queued even if offline: the request has its own timeout.
      offline: 'queue',
      signal: abort.signal,
      properties: { ...options.properties, responseTopic: route.topic, correlationData },
    })
    call.sending = published.then(
      () => 'unknown',
      (error: unknown) => {
        this.#giveUp(call, error)
        return MqttError.is(error) ? error.outcome : 'unknown'
      },
    )
  }

  #handleAnswer(message: Message, route: Route): void {
    const { correlationData } = message.properties
    const call =
      correlationData?.length === correlationLength
        ? this.#open.get(keyOf(correlationData))
        : undefined
    if (call?.sent?.route !== route) {
      this.ignored += 1
      return
    }
    this.#remove(call)
    const problem = message.properties.userProperties?.find(([name]) => name === 'error')
    if (problem === undefined) call.done.resolve(message)
    else call.done.reject(remoteError(message, problem[1]))
    this.#pump()
  }

  // The response subscription

  // Response Information may differ on every connection.
  #currentRoute(): Route {
    const topic = responseTopic(this.#client.negotiated?.responseInformation, this.#id)
    const old = this.#route
    if (old?.topic === topic) return old
    const route: Route = { topic, calls: 0, handling: undefined, abort: new AbortController() }
    this.#route = route
    this.#host.session.sendWindow.answersOn = topic
    if (old !== undefined) this.#retire(old)
    this.#subscribe(route)
    return route
  }

  async #subscribe(route: Route): Promise<void> {
    const options: ListenOptions = {
      qos: 1,
      retainHandling: 2,
      onExit: 'unsubscribe',
      signal: route.abort.signal,
    }
    try {
      route.handling = await this.#client.listen(
        route.topic,
        (message) => this.#handleAnswer(message, route),
        options,
      )
      this.#retire(route)
      this.#pump()
      await route.handling.done
      throw new MqttError('ERR_ABORTED', 'no response subscription')
    } catch (error) {
      this.#handleEnd(route, error)
    }
  }

  // Unsubscribes an old response topic once its last answer has come.
  #retire(route: Route): void {
    if (route === this.#route || route.calls > 0) return
    route.abort.abort()
    route.handling?.unsubscribe().catch(() => undefined)
  }

  // The response subscription was refused, or ended by the application: its requests fail; the next
  // request subscribes again.
  #handleEnd(route: Route, error: unknown): void {
    // When the client ends, its own error is more precise.
    if (isStopping(this.#client)) return
    const current = this.#route === route
    if (current) this.#route = undefined
    this.#failAll(error, ({ sent }) => (sent === undefined ? current : sent.route === route))
  }

  // Settling

  // Removes a request; false when it is already settled.
  #remove(call: Call): boolean {
    const { sent } = call
    if (sent === undefined ? !this.#leaveQueue(call) : !this.#open.delete(sent.key)) return false
    this.#host.session.sendWindow.asking -= 1
    if (sent !== undefined) {
      sent.route.calls -= 1
      this.#retire(sent.route)
    }
    call.stop()
    return true
  }

  #leaveQueue(call: Call): boolean {
    if (!this.#waiting.delete(call)) return false
    this.#waitingBytes -= call.size
    return true
  }

  // The outcome is known only when the publish has settled, which the abort causes.
  #fail(call: Call, error: unknown): void {
    if (!this.#remove(call)) return
    call.abort.abort()
    Promise.resolve()
      .then(() => call.sending ?? 'not-sent')
      .then((outcome) => call.done.reject(withOutcome(error, outcome)))
  }

  // Fails a request, which makes room for another.
  #giveUp(call: Call, error: unknown): void {
    this.#fail(call, error)
    this.#pump()
  }

  #failAll(error: unknown = closedError(), fits = (_call: Call): boolean => true): void {
    for (const call of [...this.#open.values(), ...this.#waiting])
      if (fits(call)) this.#fail(call, error)
  }

  // Identifiers

  #correlation(): ReturnType<Uint8Array['slice']> {
    this.#counter += 1
    return this.#random(correlationLength).map((byte, index) =>
      index < 4 ? this.#counter >>> (8 * index) : byte,
    )
  }

  #random(length: number): ReturnType<Uint8Array['slice']> {
    return Uint8Array.from({ length }, () => Math.floor(this.#host.platform.random() * 256))
  }
}

/** True once no answer can be sent or received any more. */
export function isStopping({ state }: RequestClient): boolean {
  return state === 'closed' || state === 'disconnecting'
}

/**
 * 3.1.1 has neither response topics nor correlation data. @throws MqttError ERR_UNSUPPORTED_OPTION
 */
export function assertVersion(host: RequestHost): void {
  if (isVersion4(host))
    throw optionError(
      'ERR_UNSUPPORTED_OPTION',
      'protocolVersion',
      'request and response need MQTT 5.0',
    )
}

// The response topic; the server may choose its first part (section 3.2.2.3.15).
function responseTopic(information: string | undefined, id: string): string {
  const base = information || 'mqwire'
  const topic = base.endsWith('/') ? base + id : `${base}/${id}`
  if (validateTopicName(topic) === undefined && !isShared(topic)) return topic
  throw new MqttError('ERR_INVALID_TOPIC', 'response information is no topic', {
    fault: 'remote',
    option: 'responseInformation',
  })
}

function keyOf(correlationData: Uint8Array): string {
  return String.fromCharCode(...correlationData)
}

/** A client as requests and responders use it. */
export interface RequestClient {
  readonly state: ClientState
  /** Resolves at the end of the client with the error that ended it; never rejects. */
  readonly closed: Promise<MqttError | undefined>
  /** Undefined before the first CONNACK. */
  readonly negotiated: Pick<Negotiated, 'responseInformation'> | undefined
  publish(topic: string, payload: Payload, options: PublishOptions): Promise<unknown>
  listen(filters: Filters, handler: Handler, options: ListenOptions): Promise<Handling>
  on<K extends 'state' | 'connect'>(type: K, listener: (event: ClientEvents[K]) => void): () => void
}

/** What requests and responders need. */
export interface RequestHost extends Spoken {
  readonly session: Spoken['session'] & {
    readonly sendWindow: { asking: number; answersOn: string | undefined }
  }
  readonly client: RequestClient
  readonly platform: Pick<Platform, 'random' | 'setTimer'>
  /** Reports a request that failed its checks, and returns the rejection. */
  readonly publishing?: { refuse(topic: unknown, error: unknown): Promise<never> }
}
