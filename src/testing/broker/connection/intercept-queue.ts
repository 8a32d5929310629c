/**
 * Outgoing packets and the hook that sees them all: while it thinks about one, those behind it wait here, in order.
 *
 * Without the hook everything passes at once. It knows no bytes.
 */
import type { ServerPacket } from '../../../wire/packets.js'
import { isPromise } from '../common/hooks.js'
import { type Intercepted, intercept } from '../common/interception.js'
import type { BrokerHooks } from '../common/options.js'
import type { CarryingConnection } from './ports.js'

/** Packets that wait behind one that the hook thinks about. */
const mostHeld = 10_000

/** Where packets go that the hook let pass. */
export interface InterceptEnds {
  /** True once the client is gone. */
  readonly isLost: boolean
  /** Takes a packet that may meet a fault. */
  pass(packet: ServerPacket): void
  /** Takes one that leaves though the connection is over. */
  deliver(packet: ServerPacket): void
  /** Called when nothing is held any more. */
  handleReleased(): void
}

/** See the file's comment. */
export class InterceptQueue {
  readonly #connection: CarryingConnection
  readonly #ends: InterceptEnds
  readonly #hook: BrokerHooks['intercept']
  /** Packets behind one that the hook thinks about; undefined when it does not. */
  #held: ServerPacket[] | undefined
  /** Ends the stream once nothing is held any more. */
  #end: (() => void) | undefined

  constructor(connection: CarryingConnection, ends: InterceptEnds) {
    this.#connection = connection
    this.#ends = ends
    this.#hook = connection.broker.settings.intercept
  }

  get isHolding(): boolean {
    return this.#held !== undefined
  }

  /** Takes a packet to the hook. */
  send(packet: ServerPacket): void {
    if (this.#hook === undefined) this.#ends.pass(packet)
    else if (this.#held === undefined) this.#ask(this.#hook, packet)
    else if (this.#held.push(packet) > mostHeld) this.#connection.end.cut()
  }

  /** Calls back when everything is on its way. */
  end(end: () => void): void {
    this.#end = end
    if (this.#held === undefined) end()
  }

  #ask(hook: NonNullable<BrokerHooks['intercept']>, packet: ServerPacket): void {
    const { broker, peer } = this.#connection
    const given = intercept(broker, hook, peer, 'out', packet)
    if (!isPromise(given)) {
      this.#goOn(given)
      return
    }
    this.#held = []
    void given.then((taken) => {
      const held = this.#held ?? []
      this.#held = undefined
      this.#goOn(taken)
      this.#release(held)
    })
  }

  #goOn(packet: Intercepted<ServerPacket>): void {
    const { end } = this.#connection
    if (packet === undefined) end.cut()
    else if (packet !== false && !end.over) this.#ends.pass(packet)
    // Packets sent before the end are still delivered.
    else if (packet !== false && this.#end !== undefined) this.#ends.deliver(packet)
  }

  /**
   * Passes held packets to the hook one after the other, until it must decide asynchronously again.
   */
  #release(held: ServerPacket[]): void {
    const hook = this.#hook
    let next = 0
    while (
      next < held.length &&
      this.#held === undefined &&
      hook !== undefined &&
      !this.#ends.isLost
    )
      this.#ask(hook, held[next++] as ServerPacket)
    // Packets sent meanwhile are placed behind those already held.
    if (this.#held !== undefined) this.#held = [...held.slice(next), ...this.#held]
    else if (this.#end !== undefined) this.#end()
    else this.#ends.handleReleased()
  }
}
