/**
 * A TCP link on loopback that is as bad as asked for: a rate, stalls, cuts, resets at random bytes. Otherwise it forwards at once.
 *
 * Beyond 64 KiB it does not read what it cannot carry yet, so that the sender feels it. It knows nothing of MQTT.
 */
import { createServer, type Server, type Socket, connect as tcp } from 'node:net'
import { listening } from '../support/servers.js'
import { Random } from '../world/random.js'

/** `up` is to the broker, `down` from it. */
export type Direction = 'up' | 'down'

export interface Observer {
  /** Bytes as they came in, before they are held up. */
  bytes(direction: Direction, chunk: Buffer): void
  /** A side ended its stream: which one did so first tells who ended the connection. */
  end(direction: Direction): void
}

export interface LinkSettings {
  /** Port of the broker on this machine. */
  readonly port: number
  /** Called for each connection. */
  readonly observe?: () => Observer
  /** Each connection is reset after 0 to twice as many bytes in a random direction: packets are cut anywhere. */
  readonly resets?: { readonly seed: number; readonly meanBytes: number }
}

export interface Doom {
  /** Milliseconds from the first byte that the broker says to the cut. */
  readonly after: number
  readonly times: number
  /** Nothing that the broker says after its first bytes gets through. Default false. */
  readonly mute?: boolean
}

const tick = 5
const most = 64 * 1024

class Lane {
  #held: Buffer[] = []
  #size = 0
  #ended = false
  #credit = 0
  /** Forwards what it has, and nothing that comes after it. */
  muted = false
  onFirst: (() => void) | undefined
  /** Bytes until `onSpent`. */
  left = Number.POSITIVE_INFINITY
  onSpent: () => void = () => undefined
  readonly #from: Socket
  readonly #to: Socket
  readonly #link: ShapedLink
  readonly #direction: Direction
  readonly #observer: Observer | undefined

  constructor(
    link: ShapedLink,
    direction: Direction,
    from: Socket,
    to: Socket,
    observer: Observer | undefined,
  ) {
    this.#link = link
    this.#direction = direction
    this.#from = from
    this.#to = to
    this.#observer = observer
    from.on('data', (chunk: Buffer) => this.#take(chunk))
    from.on('end', () => this.#finish())
    to.on('drain', () => this.#refresh())
  }

  turn(milliseconds: number): void {
    const rate = this.#link.rates[this.#direction]
    if (this.#link.stalled) {
      this.#credit = 0
      return
    }
    // Half a second of silence does not become a burst.
    this.#credit =
      rate === undefined
        ? Number.POSITIVE_INFINITY
        : Math.min(this.#credit + (rate * milliseconds) / 1000, Math.max(rate / 20, 1))
    while (this.#credit >= 1 && this.#held.length > 0 && !this.#to.writableNeedDrain) this.#send()
    this.#refresh()
    if (this.#ended && this.#held.length === 0 && !this.#to.writableEnded) this.#to.end()
  }

  #send(): void {
    const chunk = this.#held.shift() ?? Buffer.alloc(0)
    const part = chunk.length <= this.#credit ? chunk : chunk.subarray(0, Math.floor(this.#credit))
    if (part.length < chunk.length) this.#held.unshift(chunk.subarray(part.length))
    this.#size -= part.length
    this.#credit -= part.length
    this.#link.bytes += part.length
    this.#to.write(part)
  }

  #take(chunk: Buffer): void {
    this.#observer?.bytes(this.#direction, chunk)
    if (this.muted) return
    this.onFirst?.()
    this.onFirst = undefined
    const spent = chunk.length > this.left && !this.#link.calmed
    const bytes = spent ? chunk.subarray(0, this.left) : chunk
    this.left -= bytes.length
    this.#held.push(bytes)
    this.#size += bytes.length
    if (this.#link.free(this.#direction)) this.turn(0)
    else this.#refresh()
    if (!spent) return
    this.muted = true
    // Both ends read what was written before, or lose it to the reset.
    this.#to.write('', this.onSpent)
  }

  #finish(): void {
    this.#observer?.end(this.#direction)
    this.#ended = true
    if (this.#link.free(this.#direction)) this.turn(0)
  }

  #refresh(): void {
    if (this.#size > most || this.#to.writableNeedDrain) this.#from.pause()
    else if (this.#from.isPaused()) this.#from.resume()
  }
}

class Wire {
  readonly lanes: readonly [up: Lane, down: Lane]
  readonly #down: Lane
  readonly #client: Socket
  readonly #broker: Socket

  constructor(link: ShapedLink, client: Socket, broker: Socket, observer: Observer | undefined) {
    this.#client = client
    this.#broker = broker
    this.lanes = [
      new Lane(link, 'up', client, broker, observer),
      new Lane(link, 'down', broker, client, observer),
    ]
    this.#down = this.lanes[1]
    for (const socket of [client, broker]) {
      socket.setNoDelay(true)
      socket.on('error', () => this.end()).on('close', () => this.#broker.destroyed || this.end())
    }
  }

  /** Cut soon after the broker has begun to speak. */
  doom(after: number, mute: boolean): void {
    this.#down.onFirst = () => {
      this.#down.muted = mute
      setTimeout(() => this.cut(), after)
    }
  }

  /** Reset once so many bytes have passed in one direction. */
  reset(link: ShapedLink, upwards: boolean, bytes: number): void {
    let answered = false
    this.#down.onFirst = () => {
      answered = true
    }
    const lane = this.lanes[upwards ? 0 : 1]
    lane.left = bytes
    lane.onSpent = () => {
      link.resets += 1
      if (!answered) link.early += 1
      this.cut()
    }
  }

  /** Sends RST to both sides. */
  cut(): void {
    this.#client.resetAndDestroy()
    this.#broker.resetAndDestroy()
  }

  end(): void {
    this.#client.destroy()
    this.#broker.destroy()
  }
}

export class ShapedLink {
  /** Bytes a second. Where there is none, there is no limit. */
  readonly rates: Partial<Record<Direction, number>> = {}
  /** Nothing moves. The sender's bytes are still taken in, 64 KiB of them. */
  stalled = false
  /** Bytes that got to the other end. */
  bytes = 0
  /** Connections that were reset so far, and of those the ones to which the broker had said nothing. */
  resets = 0
  early = 0
  /** True: connections are reset no more. */
  calmed = false
  port = 0
  readonly #random: Random
  #doom: Doom | undefined
  readonly #settings: LinkSettings
  readonly #wires = new Set<Wire>()
  readonly #server: Server
  #timer: NodeJS.Timeout | undefined

  private constructor(settings: LinkSettings) {
    this.#settings = settings
    this.#random = new Random(settings.resets?.seed ?? 0)
    this.#server = createServer({ allowHalfOpen: true, pauseOnConnect: true }, (client) =>
      this.#accept(client),
    )
  }

  static async start(settings: LinkSettings): Promise<ShapedLink> {
    const link = new ShapedLink(settings)
    link.port = await listening(link.#server)
    let last = performance.now()
    link.#timer = setInterval(() => {
      const now = performance.now()
      for (const wire of link.#wires) for (const lane of wire.lanes) lane.turn(now - last)
      last = now
    }, tick)
    return link
  }

  /** True when nothing holds this direction up. */
  free(direction: Direction): boolean {
    return this.rates[direction] === undefined && !this.stalled
  }

  get url(): string {
    return `mqtt://127.0.0.1:${this.port}`
  }

  doom(doom: Doom): void {
    this.#doom = doom
  }

  get doomed(): number {
    return this.#doom?.times ?? 0
  }

  cut(): void {
    for (const wire of this.#wires) wire.cut()
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer)
    const closed = new Promise((resolve) => this.#server.close(resolve))
    for (const wire of this.#wires) wire.end()
    await closed
  }

  #accept(client: Socket): void {
    const { resets } = this.#settings
    const broker = tcp({ port: this.#settings.port, host: '127.0.0.1', allowHalfOpen: true })
    const wire = new Wire(this, client, broker, this.#settings.observe?.())
    this.#wires.add(wire)
    if (this.#doom !== undefined && this.#doom.times > 0) {
      this.#doom = { ...this.#doom, times: this.#doom.times - 1 }
      wire.doom(this.#doom.after, this.#doom.mute ?? false)
    }
    if (resets !== undefined)
      wire.reset(this, this.#random.chance(0.5), this.#random.below(2 * resets.meanBytes))
    client.once('close', () => {
      this.#wires.delete(wire)
      wire.end()
    })
    broker.once('close', () => wire.end())
    broker.once('connect', () => client.resume())
  }
}
