/** Clients with a defect, to see each checker fail: wrappers at public seams, between a client and what checks it. */

import { BaseClient } from '../../src/client/client.js'
import type { ClientOptions, Endpoint, EndpointOptions } from '../../src/client/options/index.js'
import type { Platform } from '../../src/client/platform.js'
import type { Store } from '../../src/store/base/store.js'
import type { Dial, Transport } from '../../src/transport/transport.js'
import {
  type ClientPacket,
  decode,
  encode,
  type Packet,
  type ProtocolVersion,
  type ServerPacket,
} from '../../src/wire/index.js'

/** What is proved: it has to report a defect by one of the rules that the defect names for it. */
export type Checker =
  | 'world'
  | 'durable'
  | 'many'
  | 'programs'
  | 'fuzz session'
  | 'fuzz wire'
  | 'typed'
  | 'wasm'

export interface Line {
  /** Of this client's connections, from 1. */
  readonly number: number
  send(packet: ClientPacket): void
}

export interface Wrapper {
  /** What leaves in place of the packets of one write. */
  sent?(packets: readonly ClientPacket[], line: Line): readonly ClientPacket[]
  /** What the client reads in place of a packet of the server. */
  read?(packet: ServerPacket, line: Line): ServerPacket
  /** What the application gets in place of a client, a pool or a group. */
  facade?<T extends object>(client: T): T
  platform?(platform: Platform): Platform
  store?(store: Store): Store
  /** What a decoder gives in place of a packet. */
  decoded?(packet: Packet): Packet
}

export interface Defect {
  readonly name: string
  /** For each checker that has to report it: a seed with which it does, and the rules of which one has to be broken. */
  readonly by: Readonly<Partial<Record<Checker, readonly [seed: number, ...rules: string[]]>>>
  make(): Wrapper
}

/** `target` with some members in place of its own. Its methods run on the target itself, which may have private fields. */
export function instead<T extends object>(target: T, members: object): T {
  return new Proxy(target, {
    get(_, key) {
      if (Object.hasOwn(members, key)) return Reflect.get(members, key)
      const value: unknown = Reflect.get(target, key, target)
      return typeof value === 'function' ? value.bind(target) : value
    },
    set: (_, key, value) => Reflect.set(target, key, value, target),
  })
}

/** Packets of more bytes pass as they are: an upload that takes long has to go on. */
const largest = 16_384

/** The bytes of one direction, as packets. What is no packet passes as it is, and all behind it. */
class Passing<P extends Packet> {
  #held: Uint8Array = new Uint8Array(0)
  /** So many bytes are not looked at. */
  #raw = 0
  readonly #decode: (bytes: Uint8Array) => P

  constructor(sender: 'client' | 'server', version: () => ProtocolVersion) {
    this.#decode = (bytes) => decode(bytes, { from: sender, protocolVersion: version() }) as P
  }

  /** Bytes in place of these; `change` gets the packets that they complete. */
  push(bytes: Uint8Array, change: (packets: readonly P[]) => readonly Uint8Array[]): Uint8Array {
    const all = Buffer.concat([this.#held, bytes])
    const parts: Uint8Array[] = []
    const packets: P[] = []
    let at = 0
    while (at < all.length) {
      const size = this.#raw > 0 ? this.#raw : sizeAt(all, at)
      const part = all.subarray(at, at + size)
      if (this.#raw === 0 && size <= largest) {
        if (part.length < size) break
        try {
          packets.push(this.#decode(part))
          at += size
        } catch {
          this.#raw = Number.POSITIVE_INFINITY
        }
        continue
      }
      at += part.length
      parts.push(...change(packets.splice(0)), part)
      this.#raw = size - part.length
    }
    this.#held = all.subarray(at)
    return Buffer.concat([...parts, ...change(packets)])
  }
}

/** Bytes of the packet that begins there; without end while its length is not known. */
function sizeAt(bytes: Uint8Array, at: number): number {
  let size = 0
  for (let place = 1; place <= 4 && at + place < bytes.length; place++) {
    const byte = bytes[at + place] as number
    size += (byte & 127) * 128 ** (place - 1)
    if (byte < 128) return 1 + place + size
  }
  return largest
}

/** The stream of a defective client. `later` calls back once the write has returned. */
export function transportWith(
  wrapper: Wrapper,
  stream: Transport,
  number: number,
  later: (callback: () => void) => void = queueMicrotask,
): Transport {
  const { sent, read } = wrapper
  if (sent === undefined && read === undefined) return stream
  let version: ProtocolVersion = 5
  const bytesOf = (packets: readonly ClientPacket[]): Uint8Array[] =>
    packets.map((packet) => {
      if (packet.type === 'connect') version = packet.protocolVersion
      return encode(packet, { protocolVersion: version })
    })
  const line: Line = {
    number,
    send: (packet) => void stream.write(Buffer.concat(bytesOf([packet]))),
  }
  const leaving = new Passing<ClientPacket>('client', () => version)
  const arriving = new Passing<ServerPacket>('server', () => version)
  const write: Transport['write'] = (bytes, written) => {
    const changed = leaving.push(bytes, (packets) => bytesOf(sent?.(packets, line) ?? packets))
    if (changed.length > 0) return stream.write(changed, written)
    if (written !== undefined) later(written)
    return true
  }
  const open: Transport['open'] = (sink) => {
    const window = new Uint8Array(65_536)
    const chunk = (bytes: Uint8Array): void => {
      const changed = arriving.push(bytes, (all) =>
        all.map((packet) => encode(read?.(packet, line) ?? packet, { protocolVersion: version })),
      )
      if (changed.length > 0) sink.chunk(changed)
    }
    stream.open(
      read === undefined
        ? sink
        : instead(sink, {
            buffer: () => window,
            read: (length: number) => chunk(window.subarray(0, length)),
            chunk,
          }),
    )
  }
  return instead(stream, { write, open })
}

/** A client that is made as ever, with a wrapper around it where there is a defect. */
export function clientWith<C extends BaseClient = BaseClient>(
  defect: Defect | undefined,
  platform: Platform,
  endpoints: Endpoint | readonly Endpoint[],
  options: ClientOptions,
  Client: new (...given: ConstructorParameters<typeof BaseClient>) => C = BaseClient as never,
): C {
  if (defect === undefined) return new Client(platform, endpoints, options)
  const wrapper = defect.make()
  let streams = 0
  const dialled =
    (dial: Dial): Dial =>
    async (target, given) =>
      transportWith(wrapper, await dial(target, given), ++streams)
  const reached = (endpoint: Endpoint): Endpoint => {
    const { transport } = endpoint as EndpointOptions
    return transport === undefined
      ? endpoint
      : {
          ...(endpoint as EndpointOptions),
          transport: dialled(transport as Dial) as typeof transport,
        }
  }
  const own = instead(platform, {
    dialler: (scheme: string) => {
      const dial = platform.dialler(scheme)
      return dial && dialled(dial)
    },
  })
  const client = new Client(
    wrapper.platform?.(own) ?? own,
    [endpoints].flat().map(reached),
    withStore(wrapper, options),
  )
  return wrapper.facade?.(client) ?? client
}

function withStore({ store: wrap }: Wrapper, options: ClientOptions): ClientOptions {
  const { store } = options
  if (wrap === undefined || store === undefined) return options
  return {
    ...options,
    store: 'store' in store ? { ...store, store: wrap(store.store) } : wrap(store),
  }
}
