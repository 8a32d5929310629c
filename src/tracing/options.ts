/**
 * What callers give to trace a client, checked.
 */
import type { TextMapPropagator, Tracer } from '@opentelemetry/api'
import type {
  Hooks,
  Message,
  Negotiated,
  Payload,
  RequestOptions,
  Unlisten,
} from '../client/options/index.js'
import {
  boolean,
  callable,
  invalid,
  object,
  oneOf,
  optional,
  type Parser,
  withDefault,
} from '../common/schema.js'
import type { MqttError } from '../errors.js'

/** What is needed of a client: each of `mqwire` has it. */
export interface TracingClient {
  /** The client identifier, an attribute of spans. */
  readonly clientId: string
  /** Settles when the client has ended: spans that are open end then. */
  readonly closed: Promise<MqttError | undefined>
  /** The version that is spoken; undefined before the first connection. */
  readonly negotiated: Pick<Negotiated, 'protocolVersion'> | undefined
  /** Adds hooks. */
  use(hooks: Hooks): Unlisten
  /** Publishes a request and gives its answer. */
  request(topic: string, payload: Payload, options?: RequestOptions): Promise<Message>
}

/** How a client is traced. */
export interface TracingOptions {
  /** Makes the spans. Default: the tracer `mqwire` of the global tracer provider. */
  readonly tracer?: Tracer | undefined
  /**
   * Writes the context to User Properties, and reads it from there. Default: the global propagator; where none is set, {@link traceContext}. One that does
   * nothing switches propagation off; what it throws counts as nothing.
   */
  readonly propagator?: TextMapPropagator | undefined
  /**
   * A name of few values for a topic, such as its template `plant/{line}/temperature`: it becomes part of the span's name, and the attribute
   * `messaging.destination.template`. Undefined: none. What it throws counts as undefined. Default: none.
   */
  readonly destination?: ((topic: string) => string | undefined) | undefined
  /**
   * Names of spans: `'operation'` (default): `publish`, `process`, `request`, with the `destination` where there is one. `'topic'`: with the topic where
   * there is no `destination`; use it only where there are few topics.
   */
  readonly spanNames?: 'operation' | 'topic' | undefined
  /**
   * True: messages and stacks of errors are recorded. They can have parts of payloads in them, as those of `JSON.parse` do. Default false: only what
   * kind of error it was.
   */
  readonly errorMessages?: boolean | undefined
}

/** An object with these methods. */
function having<T>(expected: string, ...methods: readonly (keyof T & string)[]): Parser<T> {
  return (value, path) => {
    const fits =
      typeof value === 'object' &&
      value !== null &&
      methods.every((name) => typeof (value as Record<string, unknown>)[name] === 'function')
    return fits ? (value as T) : invalid(path, expected)
  }
}

const schema = {
  tracer: /* @__PURE__ */ optional(/* @__PURE__ */ having<Tracer>('a tracer', 'startSpan')),
  propagator: /* @__PURE__ */ optional(
    /* @__PURE__ */ having<TextMapPropagator>('a propagator', 'inject', 'extract', 'fields'),
  ),
  destination: /* @__PURE__ */ optional(callable as Parser<(topic: string) => unknown>),
  spanNames: /* @__PURE__ */ withDefault(/* @__PURE__ */ oneOf('operation', 'topic'), 'operation'),
  errorMessages: /* @__PURE__ */ withDefault(boolean, false),
}

/** Options, checked. */
export interface TracingConfig {
  readonly tracer: Tracer | undefined
  readonly propagator: TextMapPropagator | undefined
  readonly destination: ((topic: string) => unknown) | undefined
  readonly spanNames: 'operation' | 'topic'
  readonly errorMessages: boolean
}

const parse = /* @__PURE__ */ object<TracingConfig>(schema)

/** Checks the options. @throws MqttError ERR_INVALID_OPTION */
export function tracingConfig(given: TracingOptions | undefined): TracingConfig {
  return parse(given)
}
