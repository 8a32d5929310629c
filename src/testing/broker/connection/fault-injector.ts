/**
 * Applies faults to one direction of one connection.
 *
 * Packets pass in order; without a fault they pass synchronously. Nothing is delivered after the
 * connection has ended.
 */
import type { ClientPacket, Packet, ServerPacket } from '../../../wire/packets.js'
import { after } from '../common/clock.js'
import type { Fault, FaultTable, ReplacedPacket } from '../common/fault-table.js'
import type { CarryingConnection } from './ports.js'

/** Receives packets from the injector. */
export interface FaultEnds<P> {
  /** Takes a packet (or bytes, outgoing). `again` is true for a copy that a fault made. */
  deliver(packet: P | Uint8Array, again: boolean): void
  /** Answers an incoming packet with a reason code, or puts the code into an outgoing one. */
  refuse(packet: P, reasonCode: number): void
}

/** Milliseconds after which a packet held by `'reorder'` continues without a next packet. */
const reorderLimit = 1000

const defaultDelay = 1000

/** Packets behind a delayed CONNECT or CONNACK. */
const mostBehind = 10_000

/** See the file's comment. */
export class FaultInjector<P extends ClientPacket | ServerPacket> {
  readonly #direction: 'in' | 'out'
  readonly #connection: CarryingConnection
  readonly #ends: FaultEnds<P>
  readonly #faults: FaultTable
  readonly #cancels = new Set<() => void>()
  #held: (() => void) | undefined
  /** Packets behind a delayed CONNACK, which nothing may overtake [MQTT-3.2.0-1]. */
  #behind: P[] | undefined

  constructor(direction: 'in' | 'out', connection: CarryingConnection, ends: FaultEnds<P>) {
    this.#direction = direction
    this.#connection = connection
    this.#ends = ends
    this.#faults = connection.broker.faults
  }

  /** True when packets passed here are delivered at once. */
  get isClear(): boolean {
    return this.#behind === undefined && this.#held === undefined && this.#faults.size === 0
  }

  /** Passes a packet, or applies a fault to it. */
  pass(packet: P): void {
    if (this.#behind !== undefined) {
      if (this.#behind.push(packet) > mostBehind) this.#connection.end.cut()
      return
    }
    const held = this.#held
    if (this.#faults.size === 0 && held === undefined) {
      this.#ends.deliver(packet, false)
      return
    }
    const { broker, peer } = this.#connection
    const fault = this.#faults.match(this.#direction, packet, peer.clientId, broker.clock.now())
    if (fault === undefined) this.#ends.deliver(packet, false)
    else this.#suffer(packet, fault)
    held?.()
  }

  /** Discards waiting packets. */
  stop(): void {
    for (const cancel of this.#cancels) cancel()
    this.#cancels.clear()
    this.#held = undefined
    this.#behind = undefined
  }

  #suffer(packet: P, fault: Fault): void {
    const { action } = fault
    const { peer, end } = this.#connection
    peer.disturbed = true
    if (typeof action === 'object') this.#change(packet, action)
    else if (action === 'delay') this.#delay(packet, fault.delay ?? defaultDelay)
    else if (action === 'reorder') this.#hold(packet)
    else if (action === 'close-before') end.cut()
    else if (action === 'restart-keep' || action === 'restart-lose')
      end.restart(action === 'restart-keep')
    else if (action !== 'drop') this.#deliverAnd(packet, action)
  }

  #deliverAnd(packet: P, action: 'twice' | 'close-after'): void {
    const { end } = this.#connection
    this.#ends.deliver(packet, false)
    if (end.over) return
    if (action === 'twice') this.#ends.deliver(packet, true)
    else if (this.#direction === 'in') end.cut()
    else end.finish()
  }

  #change(packet: P, action: Extract<Fault['action'], object>): void {
    if ('reasonCode' in action) this.#ends.refuse(packet, action.reasonCode)
    else this.#replace(packet, action)
  }

  #replace(packet: P, { replace }: ReplacedPacket): void {
    let other: P | Uint8Array
    try {
      other = replace(packet as Packet) as P | Uint8Array
    } catch (error) {
      this.#connection.end.failHook('faults', error)
      return
    }
    this.#ends.deliver(other, false)
  }

  #delay(packet: P, delay: number): void {
    if (packet.type === 'connack' || packet.type === 'connect') this.#behind = []
    this.#later(delay, () => {
      this.#ends.deliver(packet, false)
      const behind = this.#behind
      this.#behind = undefined
      for (const next of behind ?? []) if (!this.#connection.end.over) this.pass(next)
    })
  }

  #hold(packet: P): void {
    // An already held packet continues first: only one is overtaken at a time.
    this.#held?.()
    const cancel = this.#later(reorderLimit, () => release())
    const release = (): void => {
      cancel()
      // It has continued already, or the connection has ended.
      if (this.#held !== release) return
      this.#held = undefined
      this.#ends.deliver(packet, false)
    }
    this.#held = release
  }

  #later(delay: number, callback: () => void): () => void {
    const cancel = after(this.#connection.broker.clock, delay, () => {
      this.#cancels.delete(cancel)
      if (!this.#connection.end.over) callback()
    })
    this.#cancels.add(cancel)
    return () => {
      this.#cancels.delete(cancel)
      cancel()
    }
  }
}
