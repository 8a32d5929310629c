/**
 * The client for browsers, workers and every other runtime with a global WebSocket: entry file of `mqwire` there.
 *
 * One of the two places that choose a transport. Importing it has no effect.
 */
import { dialWebSocket } from '../transport/websocket.js'
import type { ClientOptions, Endpoint } from './api.js'
import { BaseClient, type ConnectOptions, opened } from './client.js'
import { hasSettings } from './endpoint.js'
import type { Platform } from './platform.js'
import { runtime } from './runtime.js'

const platform: Platform = {
  ...runtime,
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

/** Makes a client and connects it. Rejects as `new Client` and `client.connect` do. */
export function connect(endpoints: Endpoint | readonly Endpoint[], options?: ClientOptions & ConnectOptions): Promise<Client> {
  return opened((rest) => new Client(endpoints, rest), options)
}

export * from './public.js'
