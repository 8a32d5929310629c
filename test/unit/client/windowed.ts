/** A transport that reads into the memory that the client lends it, as Node sockets do, and fills it with other bytes for the next read. */
import type { ClientOptions } from '../../../src/client/options/index.js'
import type { Answer } from '../../../src/testing/scripted-peer.js'
import type { Sink, Transport } from '../../../src/transport/transport.js'
import type { PacketInput } from '../../../src/wire/encode.js'
import { World } from './harness.js'
import { bytesOf, obliging, publish } from './incoming.js'

/** What a window holds that is to be read into next. */
const stale = 0xee

/** Windows that were handed out, oldest first, each once. */
export class Windowed implements Transport {
  readonly windows: Uint8Array[] = []
  readonly #inner: Transport
  #window: Uint8Array | undefined

  constructor(inner: Transport) {
    this.#inner = inner
  }

  get latest(): Uint8Array | undefined {
    return this.#window
  }

  open(sink: Sink): void {
    this.#inner.open({
      buffer: () => sink.buffer(),
      read: (length) => sink.read(length),
      chunk: (bytes) => {
        for (let at = 0; at < bytes.length; ) at += this.#read(sink, bytes.subarray(at))
      },
      drain: () => sink.drain(),
      closed: (cause) => sink.closed(cause),
    })
  }

  #read(sink: Sink, bytes: Uint8Array): number {
    const window = this.#window ?? sink.buffer()
    const part = bytes.subarray(0, window.length)
    window.set(part)
    sink.read(part.length)
    // Nothing but what the client was told to keep may live in a window that it gives back.
    this.#window = sink.buffer()
    if (!this.windows.includes(this.#window)) this.windows.push(this.#window)
    this.#window.fill(stale)
    return part.length
  }

  write(bytes: Uint8Array, written?: (error?: unknown) => void): boolean {
    return this.#inner.write(bytes, written)
  }
  close(): void {
    this.#inner.close()
  }
  destroy(cause?: unknown): void {
    this.#inner.destroy(cause)
  }
}

export interface WindowedWorld {
  readonly world: World
  readonly connections: Windowed[]
  /** Sends the packets as one read of 4 KiB or more, so that the connection takes windows of its own. */
  busy(): Promise<void>
  send(...packets: PacketInput[]): Promise<void>
}

/** A connected client that reads in place, of a broker that says yes to everything. */
export async function windowed(options: ClientOptions = {}, answer: Answer = obliging) {
  const connections: Windowed[] = []
  const world = new World({ keepAlive: false, ...options }, {}, 1, (_index, open) => {
    const link = new Windowed(open())
    connections.push(link)
    return link
  })
  world.answer = answer
  const connecting = world.client.connect()
  await world.settle()
  await connecting
  const send = (...packets: PacketInput[]): Promise<void> => world.sendBytes(bytesOf(packets))
  return {
    world,
    connections,
    send,
    busy: () => send(publish('nobody/wants/this', 'x'.repeat(5000))),
  }
}
