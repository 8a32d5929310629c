/**
 * Reads the current retained messages. MQTT does not mark the last one, so a pause without messages
 * ends the reading.
 */

import type { Filters, Message, SubscribeOptions, Subscriber } from '../client/options/index.js'
import { onAbort } from '../common/abort.js'
import { MqttError } from '../errors.js'
import { wholeNumber } from './refuse.js'

/** Options of {@link retained}. */
export interface RetainedOptions
  extends Pick<SubscribeOptions, 'qos' | 'signal' | 'buffer' | 'bufferBytes'> {
  /**
   * Milliseconds without a retained message after which there are no more, 1 to 2,147,483,647.
   * Default 300.
   */
  readonly quiet?: number | undefined
}

/** Large limits, because servers send QoS 0 messages all at once, however slowly they are read. */
const mostBuffered = 1_000_000
const mostBytes = 32 * 1024 * 1024

/**
 * Subscribes, yields the retained messages of the server, and ends. Live messages are skipped. Most
 * servers send retained messages right after the grant; raise `quiet` for slower ones. When the
 * server refuses one filter of several, the error of that one comes after the messages of the others.
 * @throws MqttError ERR_SUBSCRIBE_REFUSED, ERR_DROPPED when some did not fit `buffer` (default 1,000,000) or `bufferBytes`
 * (default 32 MiB), ERR_CONNECTION_LOST when the connection was lost and some may be missing;
 * ERR_INVALID_OPTION; as `subscribe` of the client
 */
export async function* retained(
  client: Subscriber,
  filters: Filters,
  options: RetainedOptions = {},
): AsyncGenerator<Message, void, void> {
  const { qos = 1, signal, buffer = mostBuffered, bufferBytes = mostBytes } = options
  const quiet = wholeNumber('quiet', options.quiet, 300)
  let failure: MqttError | undefined
  const onDrop = ({ retain }: Message): void => {
    if (retain) failure ??= new MqttError('ERR_DROPPED', 'retained messages did not fit the buffer')
  }
  const subscription = await client.subscribe(filters, {
    qos,
    signal,
    buffer,
    bufferBytes,
    onDrop,
    onExit: 'unsubscribe',
  })
  const lost = new AbortController()
  const unlisten = client.on('disconnect', () => {
    failure ??= new MqttError('ERR_CONNECTION_LOST', 'retained messages may be missing', {
      fault: 'remote',
    })
    lost.abort()
  })
  const stop = onAbort(signal, () => lost.abort(signal?.reason))
  try {
    for (let until = performance.now() + quiet; ; ) {
      const message = await subscription
        .next({ timeout: Math.max(0, Math.ceil(until - performance.now())), signal: lost.signal })
        .catch((error: unknown) => {
          if (failure !== undefined) throw failure
          return silence(error)
        })
      if (failure !== undefined) throw failure
      if (message === undefined || (!message.retain && performance.now() >= until)) break
      if (!message.retain) continue
      yield message
      until = performance.now() + quiet
    }
    for (const { filter, error } of subscription.granted) {
      if (error === undefined) continue
      const { code, message, reasonCode, reasonName, fault } = error
      const details = { reasonCode, reasonName, fault, cause: error }
      throw new MqttError(code, `${message}: "${filter}"`, details)
    }
  } finally {
    stop()
    unlisten()
    subscription.unsubscribe().catch(() => undefined)
  }
}

function silence(error: unknown): undefined {
  if (!MqttError.is(error) || error.code !== 'ERR_TIMEOUT') throw error
}
