/**
 * A client of an ordinary program: the public API with default options, and books of every connection.
 *
 * A connection counts as ended by us when neither the program asked for it, nor the network or the broker did it.
 */
import {
  Client,
  type ClientOptions,
  type Message,
  type MqttError,
  type PublishOptions,
} from '../../../src/client/node.js'
import type { Tally } from './figures.js'

/** How a device connects. What is left out is left to the defaults of the package. */
export interface DeviceOptions extends Omit<ClientOptions, 'protocolVersion'> {
  /** The session outlives the connection and the process: Clean Start 0, an hour. */
  readonly durable?: boolean
  readonly version?: 4 | 5
}

export interface ConsumeOptions {
  readonly qos: 0 | 1 | 2
  /** Handlers at a time. Default 1. */
  readonly concurrency?: number
  /** Default `listen`; else a `for await` loop, or manual acknowledgements. */
  readonly style?: 'listen' | 'loop' | 'manual'
}

type Handle = (message: Message) => unknown

/** Errors with which the other side, or the network, ends a connection. */
const byPeer: ReadonlySet<string> = new Set([
  'ERR_CONNECTION_LOST',
  'ERR_SERVER_DISCONNECT',
  'ERR_SESSION_TAKEN_OVER',
])

function described({ code, reasonCode, message }: MqttError): string {
  return `${code}${reasonCode === undefined ? '' : ` 0x${reasonCode.toString(16)}`} (${message.slice(0, 120)})`
}

export function clientOptions(options: DeviceOptions): ClientOptions {
  const { durable, version, receiveMaximum, ...rest } = options
  return {
    ...rest,
    ...(durable === true && { cleanStart: false }),
    ...(durable === true && version !== 4 && { sessionExpiryInterval: 3600 }),
    ...(version !== undefined && { protocolVersion: version }),
    ...(receiveMaximum !== undefined && version !== 4 && { receiveMaximum }),
  }
}

export class Device {
  readonly #client: Client
  /** What ended the client for good, if anything did. */
  end: string | undefined
  #killed = false
  readonly #tally: Tally

  private constructor(url: string, options: DeviceOptions, tally: Tally) {
    this.#tally = tally
    const client = new Client(url, clientOptions(options))
    this.#client = client
    client.on('connect', () => {
      tally.connections += 1
    })
    client.on('disconnect', ({ cause }) => this.#handleDisconnect(cause))
    client.on('error', ({ error }) => tally.fail(`error event: ${described(error)}`))
    client.on('drop', ({ direction, count, error }) => {
      const why = error === undefined ? '' : described(error)
      if (!this.#killed) tally.fail(`drop event: ${direction} ${count} ${why}`)
    })
    client.on('unclaimed', ({ message }) => tally.fail(`unclaimed: ${message.topic}`))
    client.closed.then((error) => {
      this.end = error === undefined ? 'closed' : error.code
    })
  }

  static async connect(url: string, options: DeviceOptions, tally: Tally): Promise<Device> {
    const device = new Device(url, options, tally)
    await device.#client.connect()
    return device
  }

  publish(topic: string, payload: string | Uint8Array, options?: PublishOptions): Promise<unknown> {
    return this.#client.publish(topic, payload, options)
  }

  /** A message is acknowledged when its handler is done. Gives what ends it on the broker. */
  async consume(
    filters: string | readonly string[],
    options: ConsumeOptions,
    handle: Handle,
  ): Promise<() => Promise<unknown>> {
    const { qos, concurrency = 1, style = 'listen' } = options
    if (style !== 'listen') return this.#read(filters, options, handle)
    const handling = await this.#client.listen(filters, handle, { qos, concurrency })
    return () => handling.unsubscribe()
  }

  respond(
    filter: string,
    { qos, concurrency = 1 }: ConsumeOptions,
    answer: (text: string) => string | Promise<string>,
  ): Promise<unknown> {
    return this.#client.respond(filter, (message) => answer(message.text()), { qos, concurrency })
  }

  async request(topic: string, payload: string, qos: 0 | 1): Promise<string> {
    return (await this.#client.request(topic, payload, qos === 0 ? {} : { qos })).text()
  }

  disconnect(): Promise<unknown> {
    return this.#client.disconnect()
  }

  /** The process is gone: no goodbye, nothing remembered. */
  kill(): void {
    this.#killed = true
    this.#client.destroy()
  }

  async #read(
    filters: string | readonly string[],
    { qos, style }: ConsumeOptions,
    handle: Handle,
  ): Promise<() => Promise<unknown>> {
    const ack = style === 'manual' ? 'manual' : 'auto'
    const subscription = await this.#client.subscribe(filters, { qos, ack })
    const reading = (async () => {
      for await (const message of subscription) {
        await handle(message)
        if (style === 'manual') message.ack()
      }
    })()
    reading.catch((error: unknown) => {
      if (!this.#killed) this.#tally.fail(`the loop ended: ${String(error)}`)
    })
    return () => subscription.unsubscribe()
  }

  #handleDisconnect(cause: MqttError | undefined): void {
    if (cause === undefined || this.#killed) return
    if (byPeer.has(cause.code)) this.#tally.endedByPeerBecause(described(cause))
    else this.#tally.endedByUsBecause(described(cause))
  }
}
