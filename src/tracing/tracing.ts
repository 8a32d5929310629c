/**
 * The spans of one client: one for each publish, each turn of a message, and each traced request.
 *
 * Tracing never makes a publish fail and never holds a payload. Data about messages is released
 * with them; spans that nothing ends are ended with the client.
 */
import {
  type Attributes,
  type Context,
  context,
  propagation,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  type TextMapPropagator,
  type Tracer,
  trace,
} from '@opentelemetry/api'
import { access } from '../client/access.js'
import type {
  HandlerRunner,
  Hooks,
  Message,
  Payload,
  PublishCall,
  PublishOptions,
  Receipt,
  RequestOptions,
  Settled,
} from '../client/options/index.js'
import { getter, type Pairs, setter } from './carrier.js'
import type { TracingClient, TracingConfig } from './options.js'
import { traceContext } from './trace-context.js'
import { Turn } from './turn.js'

/** Most characters of a topic in names and attributes. */
const mostCharacters = 1024
/** Most open spans of messages. */
const mostOpen = 10_000

const operations = {
  publish: { kind: SpanKind.PRODUCER, type: 'send' },
  process: { kind: SpanKind.CONSUMER, type: 'process' },
  request: { kind: SpanKind.CLIENT, type: 'send' },
} as const

/** The context of each message delivered by a traced client. */
const contexts = new WeakMap<object, Context>()

/** Runs a function in the context of a message, or in the active context if it has none. */
export function within<T>(message: object, run: () => T): T {
  return context.with(contexts.get(message) ?? context.active(), run)
}

/** Traces one client. */
export class Tracing implements Hooks {
  readonly #client: TracingClient
  readonly #config: TracingConfig
  readonly #tracer: Tracer
  /** Messages being handled. */
  readonly #open = new Set<Turn>()
  /** Pending requests, by the span written to their User Properties. */
  readonly #asking = new Map<string, Context>()
  /**
   * Contexts of incoming requests, by their correlation data: the same array that their answers
   * carry.
   */
  readonly #asked = new WeakMap<object, Context>()

  constructor(client: TracingClient, config: TracingConfig) {
    this.#client = client
    this.#config = config
    this.#tracer = config.tracer ?? trace.getTracer('mqwire')
    const { states = client } = (client as Partial<Inner>)[access]?.() ?? {}
    // The getter of the client would take the program for informed of an unexpected end.
    states.closed.then(() => {
      for (const turn of this.#open) turn.end(undefined)
      this.#open.clear()
    })
  }

  readonly publish = (
    call: PublishCall,
    next: (call?: PublishCall) => Promise<Receipt>,
  ): Promise<Receipt> => {
    const { topic, payload, options } = call
    const parent = this.#parentOf(options?.properties)
    const span = this.#start('publish', topic, parent, { ...flagsOf(options), ...sizeOf(payload) })
    const turn = this.#turn(span)
    const given = this.#injected(trace.setSpan(parent, span), options)
    return follow(
      turn,
      () => next(given === options ? call : { ...call, options: given }),
      ({ reasonCode }) => reasonCode,
    )
  }

  readonly deliver = (message: Message, settled: Promise<Settled>): HandlerRunner => {
    const { topic, qos, retain, payloadLength } = message
    const { userProperties = [], correlationData } = message.properties
    // The active context is the program's connect, or another message's, so it is not used.
    const parent = this.#extracted(userProperties)
    const span = this.#start('process', topic, parent, {
      ...flagsOf({ qos, retain }),
      'messaging.message.body.size': payloadLength,
    })
    const own = trace.setSpan(parent, span)
    contexts.set(message, own)
    if (correlationData !== undefined) this.#asked.set(correlationData, own)
    const turn = this.#turn(span)
    this.#keep(turn)
    settled.then(({ reasonCode }) => {
      this.#open.delete(turn)
      turn.end(reasonCode)
    })
    return (handler) => context.with(own, () => turn.run(handler))
  }

  /** Sends a request, in a span that ends with the answer. */
  request(topic: string, payload: Payload, options: RequestOptions | undefined): Promise<Message> {
    const parent = context.active()
    const span = this.#start('request', topic, parent, flagsOf(options))
    const own = trace.setSpan(parent, span)
    const given = this.#injected(own, options)
    const { spanId } = span.spanContext()
    if (given !== options) this.#asking.set(spanId, own)
    const answered = follow(this.#turn(span), () => this.#client.request(topic, payload, given))
    const forget = (): void => void this.#asking.delete(spanId)
    answered.then(forget, forget)
    return answered
  }

  // Spans of messages left to the session end with the client, or when there are too many.
  #keep(turn: Turn): void {
    this.#open.add(turn)
    if (this.#open.size <= mostOpen) return
    const [oldest] = this.#open
    oldest?.end(undefined)
    this.#open.delete(oldest as Turn)
  }

  get #propagator(): TextMapPropagator {
    return this.#config.propagator ?? (propagation.fields().length > 0 ? propagation : traceContext)
  }

  #extracted(pairs: Pairs): Context {
    return attempted(() => this.#propagator.extract(ROOT_CONTEXT, pairs, getter)) ?? ROOT_CONTEXT
  }

  // A request is sent once there is a connection, and an error answer after the handler: no context
  // is active then.
  #parentOf(properties: PublishOptions['properties']): Context {
    const { correlationData, responseTopic, userProperties } = properties ?? {}
    if (correlationData === undefined) return context.active()
    if (responseTopic !== undefined && this.#asking.size > 0 && Array.isArray(userProperties)) {
      const asking = trace.getSpanContext(this.#extracted(userProperties as Pairs))
      const found = asking && this.#asking.get(asking.spanId)
      if (found !== undefined) return found
    }
    return (
      (typeof correlationData === 'object' ? this.#asked.get(correlationData) : undefined) ??
      context.active()
    )
  }

  // Returns the same object if nothing is to be written. Unknown options are left for `publish` to
  // refuse.
  #injected<O extends PublishOptions | RequestOptions>(
    own: Context,
    given: O | undefined,
  ): O | undefined {
    const properties: unknown = given?.properties ?? {}
    const pairs: unknown = (properties as PublishOptions['properties'])?.userProperties ?? []
    const isPlain =
      given !== null &&
      (given === undefined || typeof given === 'object') &&
      typeof properties === 'object' &&
      Array.isArray(pairs)
    if (!isPlain || !this.#isModern()) return given
    const written: [string, string][] = []
    const fields = attempted(() => {
      const propagator = this.#propagator
      propagator.inject(own, written, setter)
      return [...propagator.fields()]
    })
    if (fields === undefined || written.length === 0) return given
    // Trace headers of a forwarded message belong to an earlier hop.
    const former = [...fields, ...written.map(([name]) => name)]
    const kept = (pairs as unknown[]).filter(
      (pair) => !Array.isArray(pair) || !former.includes(pair[0]),
    )
    return { ...given, properties: { ...properties, userProperties: [...kept, ...written] } } as O
  }

  // MQTT 3.1.1 has no properties; with 'auto' the version is known after the first connection.
  #isModern(): boolean {
    const { negotiated } = this.#client
    if (negotiated !== undefined) return negotiated.protocolVersion === 5
    const behind = (this.#client as Partial<Inner>)[access]?.()
    return behind?.options === undefined || behind.options.protocolVersion === 5
  }

  #start(
    operation: keyof typeof operations,
    given: unknown,
    parent: Context,
    more: Attributes,
  ): Span {
    const topic = typeof given === 'string' ? given.slice(0, mostCharacters) : ''
    const template = this.#templateOf(topic)
    const shown = template ?? (this.#config.spanNames === 'topic' ? topic : '')
    const { kind, type } = operations[operation]
    const attributes: Attributes = {
      'messaging.system': 'mqtt',
      'messaging.operation.name': operation,
      'messaging.operation.type': type,
      'messaging.destination.name': topic,
      'messaging.client.id': this.#client.clientId,
      ...(template === undefined ? undefined : { 'messaging.destination.template': template }),
      ...more,
    }
    return this.#tracer.startSpan(
      shown === '' ? operation : `${operation} ${shown}`,
      { kind, attributes },
      parent,
    )
  }

  #templateOf(topic: string): string | undefined {
    const template = attempted(() => this.#config.destination?.(topic))
    return typeof template === 'string' ? template.slice(0, mostCharacters) : undefined
  }

  #turn(span: Span): Turn {
    return new Turn(span, this.#config.errorMessages)
  }
}

/** Internals of a client of the same copy of the package. */
interface Inner {
  [access](): {
    readonly options?: { readonly protocolVersion?: unknown } | undefined
    readonly states?: Pick<TracingClient, 'closed'> | undefined
  }
}

// Undefined when it throws, because that must not affect a publish.
function attempted<T>(run: () => T): T | undefined {
  try {
    return run()
  } catch {
    return undefined
  }
}

// Starts in this call, to keep the order of calls.
function follow<T>(
  turn: Turn,
  begin: () => Promise<T>,
  reasonOf?: (value: T) => number,
): Promise<T> {
  const over = (error: unknown): never => {
    turn.end(undefined)
    throw error
  }
  try {
    return turn.run(begin).then((value) => {
      turn.end(reasonOf?.(value))
      return value
    }, over)
  } catch (error) {
    return over(error)
  }
}

function flagsOf(
  given: { readonly qos?: unknown; readonly retain?: unknown } | undefined,
): Attributes {
  const { qos = 0, retain = false } = given ?? {}
  return {
    ...(typeof qos === 'number' ? { 'mqtt.qos': qos } : undefined),
    ...(retain === true ? { 'mqtt.retain': true } : undefined),
  }
}

// The size of a text is unknown without encoding it.
function sizeOf(payload: unknown): Attributes {
  const { byteLength } = (payload ?? {}) as { readonly byteLength?: unknown }
  return typeof byteLength === 'number' ? { 'messaging.message.body.size': byteLength } : {}
}
