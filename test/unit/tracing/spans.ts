/**
 * Spans in memory, and who is whose child.
 */
import { context, propagation, type Tracer } from '@opentelemetry/api'
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks'
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base'
import { afterAll, beforeAll } from 'vitest'

/** Contexts go along with promises in all tests of the file. */
export function withContexts(): void {
  beforeAll(
    () => void context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable()),
  )
  afterAll(() => {
    context.disable()
    propagation.disable()
  })
}

/** A tracer, with the spans of it that have ended. */
export class Recorder {
  readonly tracer: Tracer
  readonly #exporter = new InMemorySpanExporter()

  constructor() {
    this.tracer = new BasicTracerProvider({
      spanProcessors: [new SimpleSpanProcessor(this.#exporter)],
    }).getTracer('test')
  }

  /** In the order in which they ended. */
  get all(): readonly ReadableSpan[] {
    return this.#exporter.getFinishedSpans()
  }

  get names(): string[] {
    return this.all.map(({ name }) => name)
  }

  /** The one of this name. */
  one(name: string): ReadableSpan {
    const found = this.all.filter((span) => span.name === name)
    if (found.length !== 1)
      throw new Error(`${found.length} spans are named ${name}: ${this.names}`)
    return found[0] as ReadableSpan
  }

  /** Each with its ancestors, the root first. */
  get paths(): string[] {
    return this.all.map((span) => this.#pathOf(span)).sort()
  }

  reset(): void {
    this.#exporter.reset()
  }

  #pathOf(span: ReadableSpan): string {
    const parent = this.all.find(
      (each) => each.spanContext().spanId === span.parentSpanContext?.spanId,
    )
    if (parent === undefined && span.parentSpanContext !== undefined) return `? > ${span.name}`
    return parent === undefined ? span.name : `${this.#pathOf(parent)} > ${span.name}`
  }
}

/** The traces that spans belong to. */
export function tracesOf(spans: readonly ReadableSpan[]): Set<string> {
  return new Set(spans.map((span) => span.spanContext().traceId))
}
