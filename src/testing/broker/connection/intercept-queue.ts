/**
 * Passes outgoing packets through the `intercept` hook. While a call is pending, later packets wait
 * here, in order.
 *
 * Without the hook every packet passes synchronously. It handles packets, not bytes.
 */
import type { ServerPacket } from '../../../wire/packets.js'
import { isPromise } from '../common/hooks.js'
import { type Intercepted, intercept } from '../common/interception.js'
import type { BrokerHooks } from '../common/options.js'
import type { CarryingConnection } from './ports.js'

/** Limit of packets that wait behind a pending hook call. */
const mostHeld = 10_000

/** Receives packets that the hook let pass. */
export interface InterceptEnds {
  /** True once the client is gone. */
  readonly isLost: boolean
  /** Takes a packet, which a fault may still hit. */
  pass(packet: ServerPacket): void
  /** Takes a packet that is still sent although the connection has ended. */
  deliver(packet: ServerPacket): void
  /** Called when the last held packet was released. */
  handleReleased(): void
}

/** See the file's comment. */
export class InterceptQueue {
  readonly #connection: CarryingConnection
  readonly #ends: InterceptEnds
  readonly #hook: BrokerHooks['intercept']
  /** Packets behind a pending hook call; undefined when none is pending. */
  #held: ServerPacket[] | undefined
  /** Ends the stream; called once no packet is held. */
  #end: (() => void) | undefined

  constructor(connection: CarryingConnection, ends: InterceptEnds) {
    this.#connection = connection
    this.#ends = ends
    this.#hook = connection.broker.settings.intercept
  }

  get isHolding(): boolean {
    return this.#held !== undefined
  }

  /** Passes a packet to the hook. */
  send(packet: ServerPacket): void {
    if (this.#hook === undefined) this.#ends.pass(packet)
    else if (this.#held === undefined) this.#ask(this.#hook, packet)
    else if (this.#held.push(packet) > mostHeld) this.#connection.end.cut()
  }

  /** Calls back when no packet is held. */
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

  /** Passes held packets to the hook one after the other, until another call is pending. */
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
