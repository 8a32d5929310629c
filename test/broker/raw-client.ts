/**
 * A client in the hands of a test: it sends what it is told, packets or bytes, and says what came. Nothing is answered by itself.
 */
import { MemoryBroker, type MemoryBrokerOptions, VirtualClock } from '../../src/testing/index.js'
import type { MemoryOptions } from '../../src/transport/memory.js'
import type { Sink, Transport } from '../../src/transport/transport.js'
import {
  type Bytes,
  type ConnectInput,
  Decoder,
  encode,
  type PacketInput,
  type ProtocolVersion,
  type PublishInput,
  type ServerPacket,
  type SubscriptionInput,
} from '../../src/wire/index.js'

export const text = (bytes: Uint8Array): string => new TextDecoder().decode(bytes)
export const bytes = (value: string): Bytes => new TextEncoder().encode(value)

/** What a test says of a CONNECT: everything has a default. */
export type ConnectSettings = Omit<ConnectInput, 'protocolVersion'>

/** See the file's comment. */
export class RawClient implements Sink {
  readonly received: ServerPacket[] = []
  /** What came, byte by byte. */
  readonly bytes: number[] = []
  /** False where so much comes that nobody wants to see it byte by byte. */
  keepsBytes = true
  ended: { readonly cause: unknown } | undefined
  readonly transport: Transport
  readonly version: ProtocolVersion
  readonly #clock: VirtualClock
  readonly #decoder: Decoder
  readonly #window = new Uint8Array(65_536)
  #taken = 0

  constructor(clock: VirtualClock, transport: Transport, version: ProtocolVersion) {
    this.#clock = clock
    this.transport = transport
    this.version = version
    this.#decoder = new Decoder({ from: 'server', protocolVersion: version })
    transport.open(this)
  }

  /** Sends packets in one write, lets everything happen that they cause, and gives what came since the last time. */
  async send(...packets: PacketInput[]): Promise<ServerPacket[]> {
    return this.sendBytes(...packets.map((packet) => encode(packet, { protocolVersion: this.version })))
  }

  async sendBytes(...parts: (Uint8Array | readonly number[])[]): Promise<ServerPacket[]> {
    if (parts.length > 0) this.transport.write(Uint8Array.from(parts.flatMap((part) => [...part])))
    await this.#clock.settle()
    return this.take()
  }

  /** What came since the last time. */
  take(): ServerPacket[] {
    const news = this.received.slice(this.#taken)
    this.#taken = this.received.length
    return news
  }

  /** Lets everything happen, then {@link takeMessages}. */
  async messages(): Promise<string[]> {
    await this.#clock.settle()
    return this.takeMessages()
  }

  /** {@link take}, only publishes, as `topic payload`. */
  takeMessages(): string[] {
    return this.take().flatMap((packet) => (packet.type === 'publish' ? [`${packet.topic} ${text(packet.payload)}`] : []))
  }

  async connect(settings: ConnectSettings = {}): Promise<ServerPacket> {
    const [connack] = await this.send({ type: 'connect', protocolVersion: this.version, clientId: 'a', ...settings })
    if (connack === undefined) throw new Error('nothing came')
    // What came behind it is for the test.
    this.#taken = this.received.indexOf(connack) + 1
    return connack
  }

  async subscribe(filter: string | SubscriptionInput, packetId = 1, subscriptionIdentifier?: number): Promise<ServerPacket[]> {
    const subscription = typeof filter === 'string' ? { filter, qos: 2 } : filter
    const properties = subscriptionIdentifier === undefined ? {} : { properties: { subscriptionIdentifiers: [subscriptionIdentifier] } }
    return this.send({ type: 'subscribe', packetId, subscriptions: [subscription], ...properties })
  }

  async publish(topic: string, payload: string, rest: Omit<PublishInput, 'topic' | 'payload'> = {}): Promise<ServerPacket[]> {
    return this.send({ type: 'publish', topic, payload: bytes(payload), ...rest })
  }

  /** Cuts the stream. */
  async cut(): Promise<void> {
    this.transport.destroy()
    await this.#clock.settle()
  }

  /** The reason code of the DISCONNECT that came last. */
  get goodbye(): number | undefined {
    const last = this.received.at(-1)
    return last?.type === 'disconnect' ? last.reasonCode : undefined
  }

  buffer(): Uint8Array {
    return this.#window
  }

  read(length: number): void {
    this.chunk(this.#window.subarray(0, length))
  }

  chunk(chunk: Uint8Array): void {
    if (this.keepsBytes) for (const byte of chunk) this.bytes.push(byte)
    for (const packet of this.#decoder.push(chunk)) this.received.push(packet as ServerPacket)
  }

  drain(): void {}

  closed(cause: unknown): void {
    this.ended = { cause }
  }
}

/** A broker under virtual time. */
export interface World {
  readonly clock: VirtualClock
  readonly broker: MemoryBroker
  /** A stream without CONNECT. */
  dial(version?: ProtocolVersion, knobs?: MemoryOptions): RawClient
  /** A connected client. */
  join(clientId: string, settings?: ConnectSettings, version?: ProtocolVersion): Promise<RawClient>
}

/** Makes a broker under virtual time. */
export function world(options: MemoryBrokerOptions = {}): World {
  const clock = new VirtualClock()
  const broker = new MemoryBroker({ clock, ...options })
  const dial = (version: ProtocolVersion = 5, knobs: MemoryOptions = {}): RawClient => new RawClient(clock, broker.connect(knobs), version)
  return {
    clock,
    broker,
    dial,
    async join(clientId, settings, version) {
      const client = dial(version)
      const connack = await client.connect({ clientId, ...settings })
      if (connack.type !== 'connack' || connack.reasonCode !== 0) throw new Error(`no welcome: ${JSON.stringify(connack)}`)
      return client
    },
  }
}

/** CONNECT settings of a session that stays. */
export const durable: ConnectSettings = { cleanStart: false, properties: { sessionExpiryInterval: 3600 } }
