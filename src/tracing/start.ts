/**
 * Tracing, as users see it.
 */
import type { Message, Payload, RequestOptions, Unlisten } from '../client/options/index.js'
import { disposeSymbol } from '../common/dispose.js'
import { type TracingClient, type TracingOptions, tracingConfig } from './options.js'
import { Tracing, within } from './tracing.js'

/** Clients that are traced, with the latest that traces them. */
const tracings = /* @__PURE__ */ new WeakMap<object, Tracing>()

/**
 * Traces a client from now on: a span for each publish (kind PRODUCER, until its receipt or its error), and for each message that is handed out (kind
 * CONSUMER, until its turn is over), whose parent is what its publisher wrote to the User Properties. Handlers of `listen` and `respond` run in the context
 * of their message; all attempts at one message are in its one span, each failure an event. Gives a function that ends it; spans that are open then end
 * in their time.
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
 * As `client.request()`, in a span of kind CLIENT that ends with the answer or the error; the publish is a child of it. Where the client is not traced, it
 * is `client.request()`, and no more.
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
 * Runs a function in the context of a message that an iterator, `next()` or `batches()` gave, and gives what that returns: spans that begin in it are
 * children of the message's. Of a message that no traced client handed out, and of a copy made by `detach()`, it runs in the context that is active.
 */
export function withContext<T>(message: Message, run: () => T): T {
  return within(message, run)
}
