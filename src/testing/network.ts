/**
 * The network of a virtual world: each client has its own route to the broker, which can be cut and
 * restored.
 *
 * Nothing takes time here: the broker's in-memory streams run on the clock of the world. It must
 * never deliver anything from inside `open()` or `write()`, and data lost in a silent cut must
 * never arrive later.
 */
import { deferred, onAbort } from '../common/abort.js'
import { refuse } from '../transport/sink-holder.js'
import type { Dial, Sink, Transport } from '../transport/transport.js'

/** An active cut. */
interface Cut {
  /** Identifier of the client that is cut; undefined for all clients. */
  readonly clientId: string | undefined
  readonly silently: boolean
  readonly mended: Promise<void>
}

/** A client's route to the broker. */
export interface Way {
  /** The current client identifier; undefined or empty while it is unknown. */
  readonly clientId: string | undefined
  readonly links: Set<Link>
}

/** The routes of all clients. */
export class Network {
  readonly #dial: Dial
  readonly #ways: Way[] = []
  readonly #cuts = new Set<Cut>()

  /** @param dial reaches the broker */
  constructor(dial: Dial) {
    this.#dial = dial
  }

  /** The client identifiers of all routes. */
  get clientIds(): string[] {
    return this.#ways.flatMap(({ clientId }) => clientId || [])
  }

  /**
   * Adds a route for a client; returns its dial function. `clientId` is called whenever it is
   * needed.
   */
  add(clientId: () => string | undefined): Dial {
    const way: Way = {
      links: new Set(),
      get clientId() {
        return clientId()
      },
    }
    this.#ways.push(way)
    return async (target, options) => {
      for (let cut = this.#cutOf(way); cut !== undefined; cut = this.#cutOf(way))
        await passable(cut, options.signal)
      const link = new Link(await this.#dial(target, options), way.links)
      // Dialling takes no virtual time but is asynchronous: a cut may have begun meanwhile.
      const cut = this.#cutOf(way)
      if (cut !== undefined) link.cut(cut.silently)
      return link
    }
  }

  /** Cuts the links of a client, or of all; returns a function that undoes this cut. */
  cut(clientId: string | undefined, silently: boolean): () => void {
    const { promise, resolve } = deferred<void>()
    const cut: Cut = { clientId, silently, mended: promise }
    this.#cuts.add(cut)
    for (const way of this.#ways)
      if (isOf(way, cut)) for (const link of way.links) link.cut(silently)
    return () => {
      this.#cuts.delete(cut)
      resolve()
    }
  }

  #cutOf(way: Way): Cut | undefined {
    return [...this.#cuts].find((cut) => isOf(way, cut))
  }
}

function isOf(way: Way, cut: Cut): boolean {
  return cut.clientId === undefined || cut.clientId === way.clientId
}

/**
 * Fulfils when a silent cut is undone; rejects for a cut with notice, and with the signal's reason.
 */
async function passable({ silently, mended }: Cut, signal: AbortSignal): Promise<void> {
  if (!silently)
    throw Object.assign(new Error('the network cannot be reached: its link is cut'), {
      code: 'ENETUNREACH',
    })
  const given = deferred<never>()
  const stop = onAbort(signal, () => given.reject(signal.reason))
  try {
    await Promise.race([mended, given.promise])
  } finally {
    stop()
  }
}

/** A stream that can be cut, with or without notice to its ends. */
class Link implements Transport {
  readonly #inner: Transport
  /** The open links of the route. */
  readonly #links: Set<Link>
  #sink: Sink | undefined
  #silent = false
  #closing = false
  #over = false

  constructor(inner: Transport, links: Set<Link>) {
    this.#inner = inner
    this.#links = links
    links.add(this)
  }

  open(sink: Sink): void {
    this.#sink = sink
    const unlessSilent = (deliver: () => void): void => {
      if (!this.#silent) deliver()
    }
    this.#inner.open({
      buffer: () => sink.buffer(),
      read: (length) => unlessSilent(() => sink.read(length)),
      chunk: (bytes) => unlessSilent(() => sink.chunk(bytes)),
      drain: () => unlessSilent(() => sink.drain()),
      closed: (cause) => unlessSilent(() => this.#end(cause)),
    })
  }

  write(bytes: Uint8Array, written?: (error?: unknown) => void): boolean {
    if (!this.#silent) return this.#inner.write(bytes, written)
    if (this.#over || this.#closing) return refuse(written)
    // Data is accepted and lost, as by a kernel buffer that is never sent.
    if (written !== undefined) queueMicrotask(written)
    return true
  }

  close(): void {
    this.#closing = true
    if (this.#silent) this.#endLater(undefined)
    else this.#inner.close()
  }

  destroy(cause?: unknown): void {
    this.#closing = true
    // The other end is not informed: only its keep-alive can detect it.
    if (this.#silent) this.#endLater(cause)
    else this.#inner.destroy(cause)
  }

  /** Stops transferring data. With `silently`, neither end is notified. */
  cut(silently: boolean): void {
    if (!silently) return this.destroy(new Error('the link was cut'))
    this.#silent = true
    if (this.#closing) this.#endLater(undefined)
  }

  #endLater(cause: unknown): void {
    queueMicrotask(() => this.#end(cause))
  }

  #end(cause: unknown): void {
    if (this.#over) return
    this.#over = true
    this.#links.delete(this)
    this.#sink?.closed(cause)
  }
}
