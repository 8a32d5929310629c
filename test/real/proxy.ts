/**
 * A TCP proxy that resets both sides after a random number of bytes in a random direction, as a seed says.
 *
 * It forwards up to exactly that byte, so that packets are cut anywhere, and then sends RST to client and broker at once. It knows nothing of MQTT.
 */
import { createServer, type Socket, connect as tcp } from 'node:net'
import { closed, listening } from '../support/servers.js'
import { Random } from '../world/random.js'

/** Where the proxy leads, and how often it resets. */
export interface ProxySettings {
  /** Port of the broker on this machine. */
  readonly port: number
  readonly seed: number
  /** A connection is reset after 0 to twice as many bytes. */
  readonly meanBytes: number
}

/** A running proxy. */
export interface Proxy {
  readonly url: string
  /** Connections that were reset so far. */
  readonly resets: number
  /** Of those the ones that were reset before the broker had said anything. */
  readonly early: number
  /** Bytes forwarded, both directions. */
  readonly bytes: number
  /** Resets nothing any more: connections from now on, and those that are open, live as long as they like. */
  calm(): void
  stop(): Promise<void>
}

class Link {
  #left: number
  #over = false
  #answered = false
  readonly #proxy: ResettingProxy
  readonly #client: Socket
  readonly #broker: Socket

  constructor(
    proxy: ResettingProxy,
    client: Socket,
    broker: Socket,
    upwards: boolean,
    bytes: number,
  ) {
    this.#proxy = proxy
    this.#client = client
    this.#broker = broker
    this.#left = bytes
    this.#pipe(client, broker, upwards)
    this.#pipe(broker, client, !upwards)
  }

  end(): void {
    this.#over = true
    this.#client.destroy()
    this.#broker.destroy()
  }

  #pipe(from: Socket, to: Socket, counted: boolean): void {
    from.setNoDelay(true)
    from.on('data', (chunk: Buffer) => this.#forward(chunk, from, to, counted))
    to.on('drain', () => from.resume())
    from.on('error', () => this.end()).on('close', () => this.end())
    from.on('end', () => to.end())
  }

  #forward(chunk: Buffer, from: Socket, to: Socket, counted: boolean): void {
    if (this.#over) return
    const cut = counted && !this.#proxy.calmed && chunk.length > this.#left
    const bytes = cut ? chunk.subarray(0, this.#left) : chunk
    if (counted) this.#left -= bytes.length
    if (from === this.#broker && bytes.length > 0) this.#answered = true
    this.#proxy.bytes += bytes.length
    if (cut) return this.#cut(bytes, to)
    if (!to.write(bytes)) from.pause()
  }

  #cut(bytes: Buffer, to: Socket): void {
    this.#over = true
    this.#proxy.resets += 1
    if (!this.#answered) this.#proxy.early += 1
    // Both read what was written before, or lose it to the reset: as it happens.
    to.write(bytes, () => {
      this.#client.resetAndDestroy()
      this.#broker.resetAndDestroy()
    })
  }
}

class ResettingProxy implements Proxy {
  resets = 0
  early = 0
  bytes = 0
  calmed = false
  #port = 0
  readonly #links = new Set<Link>()
  readonly #random: Random
  readonly #settings: ProxySettings
  readonly #server = createServer({ pauseOnConnect: true }, (client) => this.#accept(client))

  constructor(settings: ProxySettings) {
    this.#settings = settings
    this.#random = new Random(settings.seed)
  }

  get url(): string {
    return `mqtt://127.0.0.1:${this.#port}`
  }

  async listen(): Promise<this> {
    this.#port = await listening(this.#server)
    return this
  }

  calm(): void {
    this.calmed = true
  }

  async stop(): Promise<void> {
    const end = closed(this.#server)
    for (const link of this.#links) link.end()
    await end
  }

  #accept(client: Socket): void {
    const { port, meanBytes } = this.#settings
    const broker = tcp(port, '127.0.0.1')
    const link = new Link(
      this,
      client,
      broker,
      this.#random.chance(0.5),
      this.#random.below(2 * meanBytes),
    )
    this.#links.add(link)
    client.once('close', () => this.#links.delete(link))
    broker.once('connect', () => client.resume())
  }
}

/** Starts a proxy in front of a broker. */
export function startProxy(settings: ProxySettings): Promise<Proxy> {
  return new ResettingProxy(settings).listen()
}
