/**
 * The named exports of `mqwire/compat`; its default export contains all of them.
 */
import { MqttClient } from './client.js'
import type { OnErrorCallback } from './event-types.js'
import type { IClientOptions } from './types.js'

/**
 * Creates a client and starts to connect: `connect()` of MQTT.js.
 * @throws MqttError ERR_UNSUPPORTED_OPTION for an option that is not supported, ERR_INVALID_OPTION,
 * ERR_INVALID_BROKER_URL, ERR_MISSING_BROKER
 */
export function connect(
  brokerUrl: string | IClientOptions | undefined,
  opts?: IClientOptions,
): MqttClient {
  return new MqttClient(brokerUrl, opts)
}

/**
 * Creates a client and waits for its first connection. On the first `error` it rejects and ends the
 * client; without `allowRetries`, also when a connection is closed before.
 * @throws MqttError as `connect`
 */
export function connectAsync(
  brokerUrl: string | IClientOptions | undefined,
  opts?: IClientOptions,
  allowRetries = true,
): Promise<MqttClient> {
  return new Promise((resolve, reject) => {
    const client = connect(brokerUrl, opts)
    const done = (): void => {
      client.off('connect', up).off('end', up).off('error', failed).off('close', closed)
      resolve(client)
    }
    const up = (): void => done()
    const failed: OnErrorCallback = (error) => {
      reject(error)
      done()
      client.end()
    }
    const closed = (): void => failed(new Error("Couldn't connect to server"))
    client.on('connect', up).on('end', up).on('error', failed)
    if (!allowRetries) client.on('close', closed)
  })
}

export {
  type ConnectionStream,
  MqttClient,
  MqttClient as Client,
  type StreamEvents,
} from './client.js'
export { ErrorWithReasonCode } from './errors.js'
export type * from './event-types.js'
export type * from './packet-types.js'
export type * from './types.js'
