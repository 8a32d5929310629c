/** A client that does only what a test says: it sends packets or bytes and keeps what came. */
import { expect } from 'vitest'
import { MemoryBroker, type MemoryBrokerOptions, VirtualClock } from '../../src/testing/index.js'
import type { MemoryOptions } from '../../src/transport/memory.js'
import type { Sink, Transport } from '../../src/transport/transport.js'
import {
  type Bytes,
  type ConnectInput,
  Decoder,
  encode,
  type PacketInput,
  type Properties,
  type ProtocolVersion,
  type PublishInput,
  type PublishPacket,
  type ServerPacket,
  type SubscriptionInput,
} from '../../src/wire/index.js'
import { Splitter } from '../world/reader.js'

export const text = (bytes: Uint8Array): string => new TextDecoder().decode(bytes)
export const bytes = (value: string): Bytes => new TextEncoder().encode(value)

/** Two digits. */
export const hexOfCode = (code: number): string => code.toString(16).padStart(2, '0')

/** `20 03 00` of bytes, and back. */
export const hexOf = (bytes: Iterable<number>): string => [...bytes].map(hexOfCode).join(' ')
export const bytesOf = (hex: string): number[] =>
  (hex.match(/[0-9a-f]{2}/g) ?? []).map((byte) => Number.parseInt(byte, 16))

/** UTF-8 of a string with its length in front, as hex (section 1.5.4). */
export function textOf(value: string): string {
  const encoded = bytes(value)
  return hexOf([encoded.length >> 8, encoded.length & 0xff, ...encoded])
}

/** Properties of less than 128 bytes, with their length in front. */
export const propertiesOf = (...properties: string[]): string => packetOf('', ...properties)

/** A packet from its first byte and its body, with the Remaining Length in the shortest form. */
export function packetOf(first: string, ...body: string[]): string {
  const bytes = bytesOf(body.join(' '))
  const length: number[] = []
  let rest = bytes.length
  for (; rest > 127; rest >>= 7) length.push((rest & 127) | 128)
  return hexOf([...bytesOf(first), ...length, rest, ...bytes])
}

/** Every reason code that some packet has, and some that none has. */
export const someCodes: readonly number[] = bytesOf('00 01 02 03 04 10 11 18 19 1a 7f ff').concat(
  Array.from({ length: 0x24 }, (_, at) => 0x80 + at),
)

export function codeOf(packet = ''): string | undefined {
  const bytes = packet.split(' ')
  return bytes[0] === '20'
    ? bytes[3]
    : packet === 'e0 00'
      ? '00'
      : bytes[0] === 'e0'
        ? bytes[2]
        : undefined
}

/** A refusing CONNACK without its Reason String, which is for people to read and may be left out (section 3.2.2.3.9). */
function withoutReason(packet: readonly number[]): readonly number[] {
  const [type, , , code = 0, length = 0, property, high = 0, low = 0] = packet
  const size = 3 + (high << 8) + low
  // Lengths of one byte each: longer ones are left as they are.
  if (type !== 0x20 || code < 0x80 || property !== 0x1f || packet.length > 129 || size > length)
    return packet
  return [0x20, packet.length - 2 - size, 0, code, length - size, ...packet.slice(5 + size)]
}

/** What a test says of a CONNECT: everything has a default. */
export type ConnectSettings = Omit<ConnectInput, 'protocolVersion'>

export class RawClient implements Sink {
  readonly received: ServerPacket[] = []
  readonly bytes: number[] = []
  /** False where too much comes to keep it byte by byte. */
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

  get gone(): boolean {
    return this.ended !== undefined
  }

  /** Sends packets in one write, lets everything happen that they cause, and gives what came since the last time. */
  async send(...packets: PacketInput[]): Promise<ServerPacket[]> {
    return this.sendBytes(
      ...packets.map((packet) => encode(packet, { protocolVersion: this.version })),
    )
  }

  async sendBytes(...parts: (Uint8Array | readonly number[])[]): Promise<ServerPacket[]> {
    if (parts.length > 0) this.transport.write(Uint8Array.from(parts.flatMap((part) => [...part])))
    await this.#clock.settle()
    return this.take()
  }

  take(): ServerPacket[] {
    const news = this.received.slice(this.#taken)
    this.#taken = this.received.length
    return news
  }

  /** Sends hex in one write; gives what came since the last time. */
  async say(...hex: string[]): Promise<string[]> {
    await this.sendBytes(...hex.map(bytesOf))
    return this.heard()
  }

  /** Sends hex one byte a write; beyond the first hundred bytes, a hundred a write. */
  async drip(hex: string): Promise<string[]> {
    const bytes = Uint8Array.from(bytesOf(hex))
    for (let at = 0; at < bytes.length; at += at < 100 ? 1 : 100)
      this.transport.write(bytes.slice(at, at < 100 ? at + 1 : at + 100))
    return this.say()
  }

  /** Says what ends the connection; gives the code of the one packet that answers. */
  async refusal(...hex: string[]): Promise<string | undefined> {
    const answers = await this.say(...hex)
    expect([answers.length, this.gone]).toEqual([1, true])
    return codeOf(answers[0])
  }

  /** Forgets the bytes that came; gives them as hex, one string a packet, a refusing CONNACK without its Reason String. */
  heard(): string[] {
    return this.heardWhole().map((packet) => hexOf(withoutReason(bytesOf(packet))))
  }

  heardWhole(): string[] {
    return new Splitter().push(Uint8Array.from(this.bytes.splice(0))).map(hexOf)
  }

  /** Lets everything happen, then {@link takeMessages}. */
  async messages(): Promise<string[]> {
    await this.#clock.settle()
    return this.takeMessages()
  }

  /** The publishes that came since the last time, as `topic payload`. */
  takeMessages(): string[] {
    return this.take().flatMap((packet) =>
      packet.type === 'publish' ? [`${packet.topic} ${text(packet.payload)}`] : [],
    )
  }

  get publishes(): PublishPacket[] {
    return this.received.filter((packet) => packet.type === 'publish')
  }

  async connect(
    settings: ConnectSettings = {},
  ): Promise<Extract<ServerPacket, { type: 'connack' }>> {
    const [connack] = await this.send({
      type: 'connect',
      protocolVersion: this.version,
      clientId: 'a',
      ...settings,
    })
    if (connack?.type !== 'connack') throw new Error('no CONNACK came')
    // What came behind it is for the test.
    this.#taken = this.received.indexOf(connack) + 1
    return connack
  }

  async subscribe(
    filter: string | SubscriptionInput,
    packetId = 1,
    subscriptionIdentifier?: number,
  ): Promise<ServerPacket[]> {
    const subscription = typeof filter === 'string' ? { filter, qos: 2 } : filter
    const properties =
      subscriptionIdentifier === undefined
        ? {}
        : { properties: { subscriptionIdentifiers: [subscriptionIdentifier] } }
    return this.send({ type: 'subscribe', packetId, subscriptions: [subscription], ...properties })
  }

  async publish(
    topic: string,
    payload: string,
    rest: Omit<PublishInput, 'topic' | 'payload'> = {},
  ): Promise<ServerPacket[]> {
    return this.send({ type: 'publish', topic, payload: bytes(payload), ...rest })
  }

  async cut(): Promise<void> {
    this.transport.destroy()
    await this.#clock.settle()
  }

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

export interface World {
  readonly clock: VirtualClock
  readonly broker: MemoryBroker
  /** A stream without CONNECT. */
  dial(version?: ProtocolVersion, knobs?: MemoryOptions): RawClient
  join(clientId: string, settings?: ConnectSettings, version?: ProtocolVersion): Promise<RawClient>
}

export function world(options: MemoryBrokerOptions = {}): World {
  const clock = new VirtualClock()
  const broker = new MemoryBroker({ clock, ...options })
  const dial = (version: ProtocolVersion = 5, knobs: MemoryOptions = {}): RawClient =>
    new RawClient(clock, broker.connect(knobs), version)
  return {
    clock,
    broker,
    dial,
    async join(clientId, settings, version) {
      const client = dial(version)
      const connack = await client.connect({ clientId, ...settings })
      if (connack.reasonCode !== 0) throw new Error(`no welcome: ${JSON.stringify(connack)}`)
      return client
    },
  }
}

/** A broker with the client `a`, whose CONNACK is forgotten. */
export async function joined(
  options?: MemoryBrokerOptions,
  settings?: ConnectSettings,
): Promise<World & { client: RawClient }> {
  const all = world(options)
  const client = await all.join('a', settings)
  client.heard()
  return { ...all, client }
}

/** CONNECT settings of a session that stays, by default for an hour. */
export const staying = (sessionExpiryInterval = 3600, more: Properties = {}): ConnectSettings => ({
  cleanStart: false,
  properties: { sessionExpiryInterval, ...more },
})
export const durable = staying()
