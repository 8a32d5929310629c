/**
 * A device on mqwire: the public API, with default options.
 *
 * It keeps books of every connection. A connection counts as ended by us when neither the program asked for it, nor the network or the broker did it.
 */
import {
  Client,
  type ClientOptions,
  type Message,
  type MqttError,
} from '../../../../src/client/node.js'
import type { Books, Connect, ConsumeOptions, Device, DeviceOptions, Handle } from './device.js'

/** Errors with which the other side, or the network, ends a connection. */
const byPeer: ReadonlySet<string> = new Set([
  'ERR_CONNECTION_LOST',
  'ERR_SERVER_DISCONNECT',
  'ERR_SESSION_TAKEN_OVER',
])

function described({ code, reasonCode, message }: MqttError): string {
  return `${code}${reasonCode === undefined ? '' : ` 0x${reasonCode.toString(16)}`} (${message.slice(0, 120)})`
}

/** The options of the package for a device; only what was asked for is there. */
export function mqwireOptions(options: DeviceOptions): ClientOptions {
  const {
    clientId,
    durable,
    version,
    maximumPacketSize,
    receiveMaximum,
    username,
    password,
    keepAlive,
    will,
  } = options
  return {
    ...(clientId !== undefined && { clientId }),
    ...(durable === true && {
      cleanStart: false,
      ...(version !== 4 && { sessionExpiryInterval: 3600 }),
    }),
    ...(version !== undefined && { protocolVersion: version }),
    ...(maximumPacketSize !== undefined && { maximumPacketSize }),
    ...(receiveMaximum !== undefined && version !== 4 && { receiveMaximum }),
    ...(username !== undefined && { username }),
    ...(password !== undefined && { password }),
    ...(keepAlive !== undefined && { keepAlive }),
    ...(will !== undefined && { will }),
  }
}

class MqwireDevice implements Device {
  readonly client: Client
  end: string | undefined
  #killed = false
  readonly #books: Books

  constructor(url: string, options: DeviceOptions, books: Books) {
    this.#books = books
    this.client = new Client(
      options.ca === undefined ? url : { url, tls: { ca: options.ca } },
      mqwireOptions(options),
    )
    this.client.on('connect', () => {
      books.connections += 1
    })
    this.client.on('disconnect', ({ cause }) => this.#handleDisconnect(cause))
    this.client.on('error', ({ error }) => books.fail(`error event: ${described(error)}`))
    this.client.on('drop', ({ direction, count, error }) => {
      if (!this.#killed)
        books.fail(
          `drop event: ${direction} ${count} ${error === undefined ? '' : described(error)}`,
        )
    })
    this.client.on('unclaimed', ({ message }) => books.fail(`unclaimed: ${message.topic}`))
    this.client.closed.then((error) => {
      this.end = error === undefined ? 'closed' : error.code
    })
  }

  get version(): number {
    return this.client.negotiated?.protocolVersion ?? 0
  }

  publish(
    topic: string,
    payload: string | Uint8Array,
    options: { qos?: 0 | 1 | 2; retain?: boolean } = {},
  ): Promise<unknown> {
    return this.client.publish(topic, payload, options)
  }

  async consume(
    filters: string | readonly string[],
    options: ConsumeOptions,
    handle: Handle,
  ): Promise<() => Promise<unknown>> {
    const { qos, concurrency = 1, style = 'listen' } = options
    if (style !== 'listen') return this.#read(filters, options, handle)
    const handling = await this.client.listen(filters, handle, { qos, concurrency })
    return () => handling.unsubscribe()
  }

  respond(
    filter: string,
    { qos, concurrency = 1 }: ConsumeOptions,
    answer: (text: string) => string | Promise<string>,
  ): Promise<unknown> {
    return this.client.respond(filter, (message) => answer(message.text()), { qos, concurrency })
  }

  async request(topic: string, payload: string, qos: 0 | 1): Promise<string> {
    return (await this.client.request(topic, payload, qos === 0 ? {} : { qos })).text()
  }

  disconnect(): Promise<unknown> {
    return this.client.disconnect()
  }

  kill(): void {
    this.#killed = true
    this.client.destroy()
  }

  async #read(
    filters: string | readonly string[],
    { qos, style }: ConsumeOptions,
    handle: Handle,
  ): Promise<() => Promise<unknown>> {
    const subscription = await this.client.subscribe(filters, {
      qos,
      ack: style === 'manual' ? 'manual' : 'auto',
    })
    const each = async (message: Message): Promise<void> => {
      await handle(message)
      if (style === 'manual') message.ack()
    }
    const reading = (async () => {
      for await (const message of subscription) await each(message)
    })()
    reading.catch((error: unknown) => {
      if (!this.#killed) this.#books.fail(`the loop ended: ${String(error)}`)
    })
    return () => subscription.unsubscribe()
  }

  #handleDisconnect(cause: MqttError | undefined): void {
    if (cause === undefined || this.#killed) return
    if (byPeer.has(cause.code)) this.#books.endedByPeerBecause(described(cause))
    else this.#books.endedByUsBecause(described(cause))
  }
}

/** Connects a device on mqwire. */
export const connectMqwire: Connect = async (url, options, books) => {
  const device = new MqwireDevice(url, options, books)
  await device.client.connect()
  return device
}
