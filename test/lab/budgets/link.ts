/** One connection as the hostile server sees it. It reads MQTT by hand and keeps little, and never fails because the client closed: `send` says so. */
import type { Socket } from 'node:net'
import { connack, packet } from './bytes.js'
import { dataFrame, FrameReader } from './frames.js'

/** Packets that are kept until somebody asks for them. */
const mostKept = 10_000
/** Bytes after which the server looks at what came in. */
const turn = 512 * 1024

/** What the server process tells about a connection. */
export interface Told {
  readonly what: string
  readonly [detail: string]: unknown
}

/** Where a link is told what to do, and tells what it sees. */
export interface Line {
  /** Fulfils at the `n`-th word of the test to go on. */
  go(n: number): Promise<void>
  tell(told: Told): void
}

/** The server's end. */
export class Link {
  /** From 1, in the order of the connections. */
  readonly number: number
  readonly socket: Socket
  readonly way: 'tcp' | 'ws'
  /** Packets that came in, by packet type. */
  readonly counts = new Array<number>(16).fill(0)
  /** When PINGREQ came in, in milliseconds. */
  readonly pings: number[] = []
  /** Reason code of DISCONNECT, once it came. */
  disconnect: number | undefined
  /** Whether PUBREC is answered, as SUBSCRIBE and PINGREQ are. */
  releases = true
  /** Fulfils when the stream is over. */
  readonly over: Promise<void>
  ended = false
  readonly #line: Line
  readonly #kept: Buffer[] = []
  readonly #waiting: {
    readonly type: number
    readonly resolve: (packet: Buffer | undefined) => void
  }[] = []
  readonly #frames: FrameReader | undefined
  #rest: Buffer = Buffer.alloc(0)
  #gone = 0
  #inside = false
  #unyielded = 0
  readonly #late: Buffer[] = []

  constructor(socket: Socket, number: number, way: 'tcp' | 'ws', line: Line) {
    this.socket = socket
    this.number = number
    this.way = way
    this.#line = line
    this.#frames = way === 'ws' ? new FrameReader((bytes) => this.#read(bytes)) : undefined
    socket.on('error', () => undefined)
    socket.on('data', (bytes: Buffer) =>
      this.#frames ? this.#frames.push(bytes) : this.#read(bytes),
    )
    socket.on('end', () => socket.end())
    this.over = new Promise((resolve) => {
      socket.on('close', () => {
        this.ended = true
        for (const { resolve: give } of this.#waiting.splice(0)) give(undefined)
        resolve()
      })
    })
  }

  /** Sends, in one WebSocket message where there are such; fulfils when more can be sent: false when the client is gone. */
  send(bytes: Uint8Array): Promise<boolean> {
    return this.raw(this.way === 'ws' ? dataFrame(bytes) : bytes)
  }

  /** Sends bytes as they are, also where they should be frames. */
  async raw(bytes: Uint8Array): Promise<boolean> {
    if (this.ended || this.socket.destroyed) return false
    this.#unyielded += bytes.length
    if (!this.socket.write(bytes))
      await Promise.race([new Promise((resolve) => this.socket.once('drain', resolve)), this.over])
    // While the kernel takes everything at once, nothing else would have its turn: what the client says has to be read.
    if (this.#unyielded >= turn) {
      this.#unyielded = 0
      await new Promise((resolve) => setImmediate(resolve))
    }
    return !this.ended && !this.socket.destroyed
  }

  /** Sends the same bytes until `total` went out, or the client is gone. Gives what went out. */
  async flood(bytes: Uint8Array, total: number): Promise<number> {
    let out = 0
    while (out < total && (await this.send(bytes))) {
      out += bytes.length
    }
    return out
  }

  /** Waits for CONNECT and accepts it; gives CONNECT. */
  async welcome(): Promise<Buffer> {
    const connect = (await this.packet(1)) ?? Buffer.alloc(12)
    await this.send(connack())
    return connect
  }

  /** Accepts the client, waits for its subscriptions and for the test to say "go on". */
  async ready(subscriptions = 1): Promise<void> {
    await this.welcome()
    for (let count = 0; count < subscriptions; count++) await this.packet(8)
    await this.go()
  }

  /** The next packet of this type that was not taken yet; undefined when the stream ends first. */
  packet(type: number): Promise<Buffer | undefined> {
    const index = this.#kept.findIndex((packet) => (packet[0] as number) >> 4 === type)
    if (index >= 0) return Promise.resolve(this.#kept.splice(index, 1)[0])
    if (this.ended) return Promise.resolve(undefined)
    return new Promise((resolve) => this.#waiting.push({ type, resolve }))
  }

  /** A packet is being sent in parts: answers wait until it is whole. */
  inside(state: boolean): void {
    this.#inside = state
    if (!state) for (const answer of this.#late.splice(0)) void this.send(answer)
  }

  /** Waits for the test to say the next "go on". */
  go(): Promise<void> {
    this.#gone += 1
    return Promise.race([this.#line.go(this.#gone), this.over])
  }

  /** Tells the test, with what is always of interest. */
  tell(what: string, details: Readonly<Record<string, unknown>> = {}): void {
    const { counts, disconnect, number, pings } = this
    this.#line.tell({ what, number, counts, disconnect, pings, ...details })
  }

  /** Waits for the end, and tells it. */
  async finish(details: () => Readonly<Record<string, unknown>> = () => ({})): Promise<void> {
    await this.over
    this.tell('over', details())
  }

  #read(bytes: Buffer): void {
    let all = this.#rest.length === 0 ? bytes : Buffer.concat([this.#rest, bytes])
    for (let size = sizeOf(all); size > 0 && size <= all.length; size = sizeOf(all)) {
      this.#take(all.subarray(0, size))
      all = all.subarray(size)
    }
    this.#rest = Buffer.from(all)
  }

  #take(given: Buffer): void {
    const type = (given[0] as number) >> 4
    this.counts[type] = (this.counts[type] as number) + 1
    if (type === 14) this.disconnect = given.length > 2 ? given[2] : 0
    if (type === 12) this.pings.push(performance.now())
    const index = this.#waiting.findIndex((waiting) => waiting.type === type)
    if (index >= 0) this.#waiting.splice(index, 1)[0]?.resolve(Buffer.from(given))
    else if (this.#kept.length < mostKept && type !== 4 && type !== 5)
      this.#kept.push(Buffer.from(given))
    const answer = this.#answerTo(type, given)
    if (answer === undefined) return
    if (this.#inside) this.#late.push(answer)
    else void this.send(answer)
  }

  #answerTo(type: number, given: Buffer): Buffer | undefined {
    const body = bodyOf(given)
    const id = [...body.subarray(0, 2)]
    if (type === 12) return Buffer.of(0xd0, 0)
    if (type === 8) return packet(0x90, id, 0, grants(body))
    return type === 5 && this.releases ? packet(0x62, id) : undefined
  }
}

/** Size of the packet at the beginning, 0 while its header is incomplete. */
function sizeOf(bytes: Buffer): number {
  let value = 0
  for (let at = 1; at < Math.min(5, bytes.length); at++) {
    const byte = bytes[at] as number
    value += (byte & 127) * 128 ** (at - 1)
    if (byte < 128) return 1 + at + value
  }
  return 0
}

function bodyOf(bytes: Buffer): Buffer {
  let at = 1
  while ((bytes[at] as number) >= 128) at += 1
  return bytes.subarray(at + 1)
}

/** Every filter gets the QoS that it asked for. */
function grants(body: Buffer): number[] {
  const codes: number[] = []
  // Property lengths of the package's own SUBSCRIBE packets take one byte.
  let at = 3 + (body[2] as number)
  while (at < body.length) {
    at += 2 + body.readUInt16BE(at)
    codes.push((body[at] as number) & 3)
    at += 1
  }
  return codes
}
