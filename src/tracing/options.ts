/**
 * Checks the options of tracing.
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

/** The part of a client that is needed; every client of `mqwire` has it. */
export interface TracingClient {
  /** The client identifier, an attribute of spans. */
  readonly clientId: string
  /** Resolves when the client has ended; open spans end then. */
  readonly closed: Promise<MqttError | undefined>
  /** The protocol version in use; undefined before the first connection. */
  readonly negotiated: Pick<Negotiated, 'protocolVersion'> | undefined
  /** Adds hooks. */
  use(hooks: Hooks): Unlisten
  /** Publishes a request and returns its answer. */
  request(topic: string, payload: Payload, options?: RequestOptions): Promise<Message>
}

/** Options of tracing. */
export interface TracingOptions {
  /** Creates the spans. Default: the tracer `mqwire` of the global tracer provider. */
  readonly tracer?: Tracer | undefined
  /**
   * Writes the context to User Properties and reads it from there. Default: the global propagator,
   * or {@link traceContext} if none is set. A no-op propagator turns propagation off; its errors
   * are ignored.
   */
  readonly propagator?: TextMapPropagator | undefined
  /**
   * Returns a low-cardinality name for a topic, such as its template `plant/{line}/temperature`,
   * for the span's name and the attribute `messaging.destination.template`. Undefined: none. If it
   * throws, that counts as undefined. Default: none.
   */
  readonly destination?: ((topic: string) => string | undefined) | undefined
  /**
   * Names of spans: `'operation'` (default): `publish`, `process`, `request`, with the
   * `destination` if there is one. `'topic'`: with the topic if there is no `destination`; only for
   * few topics.
   */
  readonly spanNames?: 'operation' | 'topic' | undefined
  /**
   * Record messages and stacks of errors. They may contain parts of payloads, as those of
   * `JSON.parse` do. Default false: only the kind of error.
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
