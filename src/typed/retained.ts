/**
 * The retained messages of now. No packet says that the last one has come: a silence does.
 */

import type { Filters, Message, SubscribeOptions, Subscriber } from '../client/api/index.js'
import { MqttError } from '../errors.js'

/** Options of {@link retained}. */
export interface RetainedOptions extends Pick<SubscribeOptions, 'qos' | 'signal'> {
  /** Milliseconds without a retained message after which there are no more, 1 to 2,147,483,647. Default 300. */
  readonly quiet?: number | undefined
}

/**
 * Subscribes, gives the retained messages that the server has, and ends. Live messages are left out. Servers send retained ones right behind the grant;
 * `quiet` is for those that take their time.
 * @throws MqttError ERR_INVALID_OPTION; as `subscribe` of the client
 */
export async function* retained(client: Subscriber, filters: Filters, options: RetainedOptions = {}): AsyncGenerator<Message, void, void> {
  const { quiet = 300, qos = 1, signal } = options
  if (!Number.isInteger(quiet) || quiet < 1 || quiet > 2_147_483_647)
    throw new MqttError('ERR_INVALID_OPTION', 'quiet must be an integer from 1 to 2,147,483,647 ms', { option: 'quiet' })
  const subscription = await client.subscribe(filters, { qos, signal, retainHandling: 0, onExit: 'unsubscribe' })
  try {
    for (let until = Date.now() + quiet; ; ) {
      const message = await subscription.next({ timeout: Math.max(0, until - Date.now()), signal }).catch(silence)
      if (message === undefined) return
      if (!message.retain) continue
      yield message
      until = Date.now() + quiet
    }
  } finally {
    await subscription.unsubscribe()
  }
}

function silence(error: unknown): undefined {
  if (!MqttError.is(error) || error.code !== 'ERR_TIMEOUT') throw error
}
