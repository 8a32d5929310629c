/**
 * A device on MQTT.js, for comparison: its API as its own documentation shows it, with default options.
 *
 * A message is acknowledged when its handler is done, which MQTT.js offers through `handleMessage`.
 */
import mqtt, { type IClientOptions, type IPublishPacket, type MqttClient } from 'mqtt'
import type {
  Arrival,
  Books,
  Connect,
  ConsumeOptions,
  Device,
  DeviceOptions,
  Handle,
} from './device.js'

function mqttjsOptions(options: DeviceOptions): IClientOptions {
  const {
    clientId,
    durable,
    version = 5,
    maximumPacketSize,
    receiveMaximum,
    username,
    password,
    ca,
    keepAlive,
    will,
  } = options
  const properties = {
    ...(durable === true && { sessionExpiryInterval: 3600 }),
    ...(maximumPacketSize !== undefined && { maximumPacketSize }),
    ...(receiveMaximum !== undefined && { receiveMaximum }),
  }
  return {
    protocolVersion: version === 'auto' ? 5 : version,
    ...(clientId !== undefined && { clientId }),
    ...(durable === true && { clean: false }),
    ...(version !== 4 && { properties }),
    ...(username !== undefined && { username }),
    ...(password !== undefined && { password }),
    ...(ca !== undefined && { ca }),
    ...(keepAlive !== undefined && { keepalive: keepAlive }),
    ...(will !== undefined && {
      will: { ...will, payload: Buffer.from(will.payload), retain: false },
    }),
  }
}

function matches(filter: string, topic: string): boolean {
  const [wanted, given] = [filter.replace(/^\$share\/[^/]+\//, '').split('/'), topic.split('/')]
  const many = wanted.indexOf('#')
  const levels = many < 0 ? wanted : wanted.slice(0, many)
  return (
    (many >= 0 || levels.length === given.length) &&
    levels.every((level, index) => level === '+' || level === given[index])
  )
}

interface Consumer {
  readonly filters: readonly string[]
  readonly handle: (packet: IPublishPacket) => unknown
}

class MqttjsDevice implements Device {
  readonly client: MqttClient
  end: string | undefined
  #killed = false
  #requests = 0
  readonly #consumers = new Set<Consumer>()
  readonly #answers = new Map<string, (text: string) => void>()
  readonly #version: number
  #replies: Promise<string> | undefined
  #handOver: () => void = () => undefined
  /** A session that goes on brings messages before anybody can have asked for them. */
  readonly #consumed = new Promise<void>((resolve) => {
    this.#handOver = resolve
  })

  constructor(url: string, options: DeviceOptions, books: Books) {
    this.#version = options.version === 4 ? 4 : 5
    this.client = mqtt.connect(url, mqttjsOptions(options))
    this.client.on('connect', () => {
      books.connections += 1
    })
    this.client.on('close', () => {
      if (!this.#killed && !this.client.disconnecting) books.endedByPeerBecause('close')
    })
    this.client.on('error', (error) => {
      if (!this.#killed) books.endedByUsBecause(`error event: ${error.message}`)
    })
    this.client.handleMessage = (packet, done) => {
      this.#hand(packet).then(() => done(), done)
    }
  }

  get version(): number {
    return this.#version
  }

  connected(): Promise<this> {
    return new Promise((resolve, reject) => {
      this.client.once('connect', () => resolve(this))
      this.client.once('error', (error) => {
        this.client.end(true)
        reject(error)
      })
    })
  }

  publish(
    topic: string,
    payload: string | Uint8Array,
    options: { qos?: 0 | 1 | 2; retain?: boolean } = {},
  ): Promise<unknown> {
    return this.client.publishAsync(
      topic,
      typeof payload === 'string'
        ? payload
        : Buffer.from(payload.buffer, payload.byteOffset, payload.length),
      options,
    )
  }

  async consume(
    filters: string | readonly string[],
    { qos, concurrency = 1 }: ConsumeOptions,
    handle: Handle,
  ): Promise<() => Promise<unknown>> {
    const list = typeof filters === 'string' ? [filters] : [...filters]
    return this.#subscribe(
      list,
      qos,
      limited(concurrency, (packet) => handle(arrival(packet))),
    )
  }

  respond(
    filter: string,
    { qos }: ConsumeOptions,
    answer: (text: string) => string | Promise<string>,
  ): Promise<unknown> {
    const reply = async ({ payload, properties }: IPublishPacket): Promise<void> => {
      const text = await answer(payload.toString())
      const { responseTopic = '', correlationData = Buffer.alloc(0) } = properties ?? {}
      await this.client.publishAsync(responseTopic, text, { qos, properties: { correlationData } })
    }
    // Not waited for: the acknowledgement of the answer would be behind the next request.
    return this.#subscribe([filter], qos, (packet) => void reply(packet))
  }

  async request(topic: string, payload: string, qos: 0 | 1): Promise<string> {
    this.#replies ??= this.#listenForReplies()
    const responseTopic = await this.#replies
    this.#requests += 1
    const key = String(this.#requests)
    const answered = new Promise<string>((resolve) => this.#answers.set(key, resolve))
    await this.client.publishAsync(topic, payload, {
      qos,
      properties: { responseTopic, correlationData: Buffer.from(key) },
    })
    return answered
  }

  disconnect(): Promise<unknown> {
    return this.client.endAsync()
  }

  kill(): void {
    this.#killed = true
    this.client.end(true)
    this.client.stream.destroy()
  }

  async #listenForReplies(): Promise<string> {
    const topic = `replies/${this.client.options.clientId}`
    await this.#subscribe([topic], 0, ({ payload, properties }) =>
      this.#answers.get(properties?.correlationData?.toString() ?? '')?.(payload.toString()),
    )
    return topic
  }

  async #subscribe(
    filters: readonly string[],
    qos: 0 | 1 | 2,
    handle: (packet: IPublishPacket) => unknown,
  ): Promise<() => Promise<unknown>> {
    const consumer = { filters, handle }
    this.#consumers.add(consumer)
    this.#handOver()
    for (const { qos: granted } of await this.client.subscribeAsync([...filters], { qos })) {
      if (granted >= 0x80) throw new Error(`refused: 0x${granted.toString(16)}`)
    }
    return async () => {
      await this.client.unsubscribeAsync([...filters])
      this.#consumers.delete(consumer)
    }
  }

  async #hand(packet: IPublishPacket): Promise<void> {
    await this.#consumed
    const consumers = [...this.#consumers].filter(({ filters }) =>
      filters.some((filter) => matches(filter, packet.topic)),
    )
    await Promise.all(consumers.map(({ handle }) => handle(packet)))
  }
}

function arrival(packet: IPublishPacket): Arrival {
  const payload = packet.payload as Buffer
  return { topic: packet.topic, payload, retain: packet.retain, text: () => payload.toString() }
}

/** MQTT.js hands over one message at a time, whatever the handler does: with concurrency it has to be let go before it is done. */
function limited(
  concurrency: number,
  handle: (packet: IPublishPacket) => unknown,
): (packet: IPublishPacket) => unknown {
  if (concurrency === 1) return handle
  const running = new Set<Promise<unknown>>()
  return async (packet) => {
    const turn = Promise.resolve(handle(packet)).finally(() => running.delete(turn))
    running.add(turn)
    if (running.size >= concurrency) await Promise.race(running)
  }
}

/** Connects a device on MQTT.js. */
export const connectMqttjs: Connect = (url, options, books) =>
  new MqttjsDevice(url, options, books).connected()
