/**
 * `mqwire/tracing`: OpenTelemetry spans, trace context in User Properties, and metrics, over the
 * hooks of a client.
 *
 * Everything here is a function that takes the client, so unused parts are not bundled. It needs
 * the optional peer `@opentelemetry/api`, and must never put a payload into an attribute.
 *
 * @module
 */
export { type MeasuredClient, type MeasuredOptions, measured } from './measured.js'
export type { TracingClient, TracingOptions } from './options.js'
export { tracedRequest, tracing, withContext } from './start.js'
export { traceContext } from './trace-context.js'
