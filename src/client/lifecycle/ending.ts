/**
 * The end of a client in order: what its goodbye waits for, and how long.
 *
 * Shared filters are left, running turns end, acknowledgements leave, DISCONNECT is last. There is one for a client, made by the first call. It must
 * never wait longer than its most impatient caller, and never hand out what nobody can acknowledge any more.
 */
import type { MqttError } from '../../errors.js'
import type { ClientState } from '../api/index.js'
import { type Deferred, deferred, onAbort } from '../common/abort.js'
import type { Connection } from '../connection/connection.js'
import type { ClientContext } from '../context/context.js'
import type { Consumer } from '../delivery/consumer.js'
import type { Goodbye } from '../parsing/requests.js'
import type { Outbox } from '../publishing/outbound.js'
import type { Registry } from '../subscribing/registry.js'

/** Milliseconds of a goodbye after which it says what it waits for. */
const patience = 1000
/** What the end asks of the client. */
export interface EndingHost extends ClientContext {
  readonly clientId: string
  readonly outbox: Outbox
  readonly registry: Registry
  /** The connection, while it takes packets of the application. */
  readonly connection: Connection | undefined
  /** No connection will come, because of this. */
  finish(error: MqttError | undefined): void
  readonly state: ClientState
  readonly closed: Deferred<MqttError | undefined>
  /** The connection, in every state. */
  readonly link: Connection | undefined
  /** Seconds that the server keeps the session without a connection. */
  readonly sessionExpiry: number
  enter(state: ClientState): void
  /** The end of everything: all that is pending settles. */
  end(error: MqttError | undefined): void
  destroy(): void
  sessionEnds: boolean
  /** A lost connection is made anew also while the client ends. */
  draining: boolean
  /** Why no connection came any more while it ended. */
  readonly failure: MqttError | undefined
}

/** The end of one client that has not ended. */
export class Ending {
  readonly #host: EndingHost
  readonly #hurried = deferred<void>()
  /** No time is left to wait for anything. */
  #rushed = false
  #turnEnded: (() => void) | undefined
  #done: Promise<void> | undefined

  constructor(host: EndingHost) {
    this.#host = host
  }

  /** Begins the end, or joins it. */
  async disconnect(goodbye: Goodbye, drain: boolean): Promise<void> {
    const hurry = (): void => {
      this.#rushed = true
      this.#hurried.resolve()
    }
    // Of several callers, whoever is in most of a hurry decides.
    const cancel = this.#host.platform.setTimer(hurry, goodbye.timeout)
    if (goodbye.timeout === 0) hurry()
    const cease = onAbort(goodbye.signal, hurry)
    if (this.#done === undefined) {
      // Set before anybody is told, so that a listener's own call joins.
      const { promise, resolve, reject } = deferred<void>()
      this.#done = promise
      this.#stop(goodbye, drain).then(resolve, reject)
    }
    await this.#done
    cancel()
    cease()
  }

  /** To be called when a turn of a consumer ended. */
  handleTurnEnd(): void {
    this.#turnEnded?.()
  }

  async #stop({ reasonCode, properties, timeout }: Goodbye, drain: boolean): Promise<void> {
    const host = this.#host
    const { closed, outbox, registry, session, state } = host
    const atOnce = this.#rushed
    const connected = state === 'connected'
    // What is to be sent needs a connection.
    host.draining = drain && state !== 'idle'
    const waits = host.draining && outbox.size + outbox.inFlight > 0
    // Nothing to say goodbye to: an attempt that is under way is given up.
    if (!connected && registry.farewells + registry.running.length === 0 && !waits) return host.destroy()
    const hush = host.platform.setTimer(() => this.#tell(drain), patience)
    host.sessionEnds = (properties.sessionExpiryInterval ?? host.sessionExpiry) === 0
    outbox.handleStopping()
    host.enter('disconnecting')
    registry.close(host.sessionEnds && !atOnce)
    if (!connected && !host.draining) host.finish(undefined)
    await this.#patient(this.#turnsEnded())
    if (drain) await this.#patient(outbox.drained())
    registry.letGo()
    registry.flush()
    const { link } = host
    // A link that was stuck until the time was over gets no more.
    const lingers = this.#rushed && (atOnce || link?.output.writable === true)
    if (link !== undefined && session.state === 'connected') {
      link.output.flush()
      session.disconnect(reasonCode, properties)
      link.pump()
      link.end(atOnce ? undefined : timeout)
      await this.#patient(closed.promise)
    }
    // A peer that does not end its side is cut off, when our goodbye had time to leave; else the connection gives it a little longer.
    if (!lingers) link?.destroy()
    hush()
    host.end(host.failure)
  }

  // Who waits this long wants to know for what.
  #tell(drain: boolean): void {
    const { registry, outbox, connection } = this.#host
    const { size, inFlight } = outbox
    const open = registry.running.map(turnOf)
    for (const entry of registry.entries) if (entry.farewells > 0) open.push(`UNSUBACK on ${entry.filter}`)
    if (drain && size + inFlight > 0) open.unshift(`${inFlight} PUBLISH in flight, ${size} queued${connection ? '' : ', a connection'}`)
    this.#host.log('warn', `${drain ? 'drain' : 'disconnect'}() waits for `, open.slice(0, 9).join(', ') || 'the server')
  }

  #patient(wait: Promise<unknown>): Promise<unknown> {
    return Promise.race([wait, this.#hurried.promise, this.#host.closed.promise])
  }

  // Fulfils when no consumer has a message in hand, and no UNSUBSCRIBE waits for its answer. Nobody is asked twice whose turn goes on.
  async #turnsEnded(): Promise<void> {
    const { registry } = this.#host
    for (let running: Consumer[] = []; ; ) {
      while (running.at(-1)?.busy === false) running.pop()
      if (running.length + registry.farewells === 0) {
        running = registry.running
        if (running.length === 0) return
      }
      await new Promise<void>((resolve) => {
        this.#turnEnded = resolve
      })
    }
  }
}

// What ends a turn, and on which filters.
function turnOf({ onReadable, config, attended, granted }: Consumer): string {
  const what = onReadable ? 'a handler' : attended && config.ack !== 'manual' ? 'a loop' : 'next() or ack()'
  return `${what} on ${granted.map(({ filter }) => filter)}`
}
