/**
 * The span of one thing that is under way: its failures, and its one end.
 *
 * Nothing that happens after the end changes the span. Of errors it records the kind, and more only where that is asked for: messages can have parts of
 * payloads in them.
 */
import { type Span, SpanStatusCode } from '@opentelemetry/api'
import { MqttError } from '../errors.js'

/** Attribute: the reason code that ended it. */
const reasonAttribute = 'mqtt.reason_code'
const errorAttribute = 'error.type'

/** A span that ends once. */
export class Turn {
  readonly #span: Span
  readonly #messages: boolean
  #failure: string | undefined
  #ended = false

  /** @param messages whether messages and stacks of errors are recorded */
  constructor(span: Span, messages: boolean) {
    this.#span = span
    this.#messages = messages
  }

  /** Calls a handler, once more perhaps: the last call counts. */
  run<T>(handler: () => T): T {
    this.#failure = undefined
    try {
      const result = handler()
      if (typeof (result as PromiseLike<unknown> | undefined)?.then !== 'function') return result
      // What is like a promise may run again with each `then`.
      const promise = Promise.resolve(result)
      promise.catch((error: unknown) => this.fail(error))
      return promise as T
    } catch (error) {
      this.fail(error)
      throw error
    }
  }

  /** Something failed. */
  fail(error: unknown): void {
    if (this.#ended) return
    const kind = kindOf(error)
    this.#failure = kind
    if (this.#messages && error instanceof Error) this.#span.recordException(error)
    else this.#span.recordException({ name: kind })
  }

  /** It is over. */
  end(reasonCode: number | undefined): void {
    if (this.#ended) return
    this.#ended = true
    const refused = reasonCode !== undefined && reasonCode >= 0x80
    const failure = this.#failure ?? (refused ? String(reasonCode) : undefined)
    if (reasonCode !== undefined) this.#span.setAttribute(reasonAttribute, reasonCode)
    if (failure !== undefined) {
      this.#span.setAttribute(errorAttribute, failure)
      this.#span.setStatus({ code: SpanStatusCode.ERROR })
    }
    this.#span.end()
  }
}

// Of few values: the code, or the name of the class.
function kindOf(error: unknown): string {
  if (MqttError.is(error)) return error.code
  const name: unknown = error instanceof Error ? error.constructor.name || error.name : typeof error
  return typeof name === 'string' ? name.slice(0, 64) : 'Error'
}
