/**
 * The client for browsers, workers and every other runtime with a global WebSocket: entry file of `mqwire` there.
 *
 * One of the two places that choose a transport. Importing it has no effect.
 */
import { dialWebSocket } from '../transport/websocket.js'
import type { ClientOptions, Endpoint } from './api.js'
import { BaseClient } from './client.js'
import { hasSettings } from './endpoint.js'
import type { Platform } from './platform.js'
import { invalid } from './schema.js'

const platform: Platform = {
  now: () => performance.now(),
  random: () => Math.random(),
  setTimer(callback, delay) {
    const timer = setTimeout(callback, delay)
    return () => clearTimeout(timer)
  },
  microtask: (callback) => queueMicrotask(callback),
  dialler: (scheme) => (scheme === 'ws' || scheme === 'wss' ? dialWebSocket : undefined),
  isTlsError: () => false,
  describe: (error) => error.message,
  unsupported: (target) => (['tls', 'socket', 'headers'] as const).find((name) => hasSettings(target[name])),
}

/** An MQTT client on this platform. */
export class Client extends BaseClient {
  /** @throws MqttError ERR_MISSING_BROKER, ERR_INVALID_BROKER_URL, ERR_INVALID_OPTION, ERR_UNSUPPORTED_OPTION */
  constructor(endpoints: Endpoint | readonly Endpoint[], options: ClientOptions = {}) {
    super(platform, endpoints, options)
  }
}

/** Makes a client and connects it. @throws MqttError as `new Client` and `client.connect` */
export async function connect(
  endpoints: Endpoint | readonly Endpoint[],
  options: ClientOptions & { readonly signal?: AbortSignal | undefined } = {},
): Promise<Client> {
  const { signal, ...rest } = options ?? invalid('options', 'an object')
  const client = new Client(endpoints, rest)
  await client.connect({ signal })
  return client
}

export * from './public.js'
