/**
 * The span of one operation: its failures, and its single end.
 *
 * Nothing after the end changes the span. By default only the kind of an error is recorded, because
 * messages may contain parts of payloads.
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

  /** Calls a handler, possibly again: the last call counts. */
  run<T>(handler: () => T): T {
    this.#failure = undefined
    try {
      const result = handler()
      if (typeof (result as PromiseLike<unknown> | undefined)?.then !== 'function') return result
      // A thenable may run again with each `then`, so it is converted once.
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

// Low cardinality: the error code, or the name of the class.
function kindOf(error: unknown): string {
  if (MqttError.is(error)) return error.code
  const name: unknown = error instanceof Error ? error.constructor.name || error.name : typeof error
  return typeof name === 'string' ? name.slice(0, 64) : 'Error'
}
