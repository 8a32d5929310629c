/**
 * The public functions of tracing.
 */
import type { Message, Payload, RequestOptions, Unlisten } from '../client/options/index.js'
import { disposeSymbol } from '../common/dispose.js'
import { type TracingClient, type TracingOptions, tracingConfig } from './options.js'
import { Tracing, within } from './tracing.js'

/** The latest tracing of each traced client. */
const tracings = /* @__PURE__ */ new WeakMap<object, Tracing>()

/**
 * Traces a client from now on. Each publish has a span of kind PRODUCER, until its receipt or
 * error. Each delivered message has a span of kind CONSUMER, until its turn ends; its parent is the
 * context that the publisher wrote to the User Properties. Handlers of `listen` and `respond` run
 * in the context of their message; all attempts at a message share its span, and each failure is an
 * event. Returns a function that ends tracing; open spans still end normally.
 * @throws MqttError ERR_INVALID_OPTION
 */
export function tracing(client: TracingClient, options?: TracingOptions): Unlisten {
  const made = new Tracing(client, tracingConfig(options))
  const { publish, deliver } = made
  const remove = client.use({ publish, deliver })
  tracings.set(client, made)
  const stop = (): void => {
    remove()
    if (tracings.get(client) === made) tracings.delete(client)
  }
  return Object.assign(stop, { [disposeSymbol]: stop }) as Unlisten
}

/**
 * As `client.request()`, in a span of kind CLIENT that ends with the answer or the error; the
 * publish is a child of it. For a client that is not traced, it only calls `client.request()`.
 * @throws MqttError as `client.request()`
 */
export function tracedRequest(
  client: TracingClient,
  topic: string,
  payload: Payload,
  options?: RequestOptions,
): Promise<Message> {
  return (
    tracings.get(client)?.request(topic, payload, options) ??
    client.request(topic, payload, options)
  )
}

/**
 * Runs a function in the context of a message from an iterator, `next()` or `batches()`, and
 * returns its result: spans started in it are children of the message's span. For a message that no
 * traced client delivered, and for a copy made by `detach()`, it runs in the active context.
 */
export function withContext<T>(message: Message, run: () => T): T {
  return within(message, run)
}
