/** A client over a transport that a test plays by hand: what `write()` answers, when bytes count as written, when `drain()` comes. */

import { BaseClient } from '../../../src/client/client.js'
import type { ClientEvents, ClientOptions } from '../../../src/client/options/index.js'
import type { ScriptedPeer } from '../../../src/testing/scripted-peer.js'
import { VirtualClock } from '../../../src/testing/virtual-clock.js'
import { virtualPlatform } from '../../../src/testing/virtual-platform.js'
import type { Sink, Transport } from '../../../src/transport/transport.js'
import { Decoder } from '../../../src/wire/decode.js'
import { encode, type PacketInput } from '../../../src/wire/encode.js'
import type { ClientPacket, Properties } from '../../../src/wire/packets.js'

export class StubTransport implements Transport {
  /** One for each `write()`, copied at once. */
  readonly writes: Uint8Array[] = []
  /** The arrays themselves, as they were handed over. */
  readonly arrays: Uint8Array[] = []
  /** What `write()` answers. */
  takes = true
  /** True keeps bytes unwritten until `release()`. */
  holds = false
  sink: Sink | undefined
  closing = false
  over = false
  readonly #unwritten: ((error?: unknown) => void)[] = []

  open(sink: Sink): void {
    this.sink = sink
  }

  write(bytes: Uint8Array, written: (error?: unknown) => void = () => undefined): boolean {
    if (this.over || this.closing) {
      queueMicrotask(() => written(new Error('the stream is closed')))
      return false
    }
    this.writes.push(bytes.slice())
    this.arrays.push(bytes)
    if (this.holds) this.#unwritten.push(written)
    else queueMicrotask(() => written())
    return this.takes
  }

  close(): void {
    this.closing = true
  }

  destroy(cause?: unknown): void {
    if (this.over) return
    this.over = true
    queueMicrotask(() => {
      for (const written of this.#unwritten.splice(0)) written(cause ?? new Error('cut'))
      this.sink?.closed(cause)
    })
  }

  /** Everything counts as written, and the client may go on. */
  release(): void {
    this.takes = true
    this.holds = false
    for (const written of this.#unwritten.splice(0)) written()
    this.sink?.drain()
  }

  /** Bytes from the server. */
  deliver(...packets: PacketInput[]): void {
    const parts = packets.map((packet) => encode(packet))
    this.sink?.chunk(Uint8Array.from(parts.flatMap((part) => [...part])))
  }

  /** Everything written so far, as packets. Throws when the bytes are not whole packets in a row. */
  get packets(): ClientPacket[] {
    const decoder = new Decoder({ protocolVersion: 5, from: 'client' })
    return this.writes.flatMap((bytes) => [...decoder.push(bytes)] as ClientPacket[])
  }

  /** Payloads of the publishes written so far, as text. */
  get payloads(): string[] {
    return this.packets.flatMap((packet) =>
      packet.type === 'publish' ? [new TextDecoder().decode(packet.payload)] : [],
    )
  }
}

/** A transport in the hands of the test, which can be paused or not. */
export class PausableTransport extends StubTransport {
  readonly calls: string[] = []
  readonly pause?: () => void

  constructor(patient = true) {
    super()
    if (patient) this.pause = () => void this.calls.push('pause')
  }

  resume(): void {
    this.calls.push('resume')
  }

  override close(): void {
    this.destroy()
  }
}

export class StubWorld {
  readonly clock = new VirtualClock()
  readonly stub = new StubTransport()
  readonly client: BaseClient
  readonly drops: ClientEvents['drop'][] = []

  constructor(options: ClientOptions = {}) {
    this.client = new BaseClient(
      virtualPlatform(this.clock),
      [{ url: 'stub://peer', transport: () => this.stub }],
      { reconnect: false, ...options },
    )
    this.client.on('drop', (event) => this.drops.push(event))
  }

  settle(): Promise<void> {
    return this.clock.settle()
  }

  /** Connects; what was written for it is forgotten. */
  async connect(properties: Properties = {}): Promise<void> {
    const connecting = this.client.connect()
    await this.settle()
    this.stub.deliver({ type: 'connack', sessionPresent: false, reasonCode: 0, properties })
    await connecting
    await this.settle()
    this.forget()
  }

  forget(): void {
    this.stub.writes.length = 0
    this.stub.arrays.length = 0
  }

  /** Sends from the server, and lets it be handled. */
  async deliver(...packets: PacketInput[]): Promise<void> {
    this.stub.deliver(...packets)
    await this.settle()
  }
}

export async function stubbed(options: ClientOptions = {}, properties: Properties = {}) {
  const world = new StubWorld(options)
  await world.connect(properties)
  return world
}

/** How a promise stands: what it gave, what it was rejected with, or `'pending'`. To be read after `settle()`. */
export function watched<T>(promise: Promise<T>): {
  value: T | undefined
  error: unknown
  state: 'pending' | 'fulfilled' | 'rejected'
  settled: number
} {
  const result: ReturnType<typeof watched<T>> = {
    value: undefined,
    error: undefined,
    state: 'pending',
    settled: 0,
  }
  promise.then(
    (value) => Object.assign(result, { value, state: 'fulfilled', settled: result.settled + 1 }),
    (error: unknown) =>
      Object.assign(result, { error, state: 'rejected', settled: result.settled + 1 }),
  )
  return result
}

export function ack(
  type: 'puback' | 'pubrec' | 'pubcomp',
  packetId: number,
  reasonCode = 0,
): PacketInput {
  return { type, packetId, reasonCode }
}

/** Of each promise `'pending'`, `'done'`, or the code of its error and the fate of the message: to be read after `settle()`. */
export function fates(...promises: Promise<unknown>[]): string[] {
  const texts = promises.map(() => 'pending')
  for (const [index, promise] of promises.entries()) {
    const end = (text: string): void => {
      texts[index] = text
    }
    promise.then(
      () => end('done'),
      ({ code, outcome }) => end(`${code} ${outcome}`),
    )
  }
  return texts
}

/** Payloads of the publishes that a connection carried, as text. */
export const texts = (peer: ScriptedPeer): string[] =>
  peer.all('publish').map(({ payload }) => new TextDecoder().decode(payload))
