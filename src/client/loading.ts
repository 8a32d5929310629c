/**
 * Code that is loaded when it is first used. In a page that takes as long as the network likes: whoever asked may give up, and the client may end,
 * before it is there.
 */
import { MqttError } from '../errors.js'
import { deferred, within } from './abort.js'
import { closedError } from './outcome.js'
import type { RequestClient } from './request.js'
import { duration, optional, signal, withDefault } from './schema.js'

const patience = withDefault(duration, 30_000)
const maybeSignal = optional(signal)

/**
 * The module, or what came before it: the end of the client, the `signal` or the `timeout` (default 30 s) among the options of the call.
 * @throws MqttError ERR_NOT_CONNECTED where it cannot be loaded, ERR_TIMEOUT, ERR_ABORTED, ERR_CLOSED, ERR_INVALID_OPTION
 */
export async function loaded<T>(module: Promise<T>, { closed, on, setTimer }: RequestClient, options: unknown): Promise<T> {
  const given = (options ?? {}) as { readonly timeout?: unknown; readonly signal?: unknown }
  const ended = deferred<never>()
  const cancel = setTimer(() => ended.reject(new MqttError('ERR_TIMEOUT')), patience(given.timeout, 'timeout'))
  // Nothing of a call that ended stays with a promise that may never settle.
  const stop = on('state', ({ state }) => {
    if (state === 'closed') closed.then((error) => ended.reject(error ?? closedError()))
  })
  const code = module.catch((cause) => {
    throw new MqttError('ERR_NOT_CONNECTED', 'its code cannot be loaded', { cause })
  })
  try {
    return await within(Promise.race([code, ended.promise]), maybeSignal(given.signal, 'signal'))
  } finally {
    cancel()
    stop()
  }
}
