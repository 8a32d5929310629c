/**
 * Incoming messages that a connection left without an acknowledgement: each keeps its ticket, and waits for the server to repeat it.
 */
import { SparseMap } from '../common/sparse.js'
import { idShift } from './numbers.js'

/** A message of an earlier connection that has no acknowledgement yet. */
export interface ParkedMessage {
  readonly ticket: number
  /** As a slot of `Arrivals`. */
  value: number
  /** Its place among the arrivals of this connection, once the server has repeated it; `nowhere` before. */
  slot: number
}

/** All of them. */
export class ParkedMessages {
  readonly #byId = new SparseMap<number, ParkedMessage>()
  readonly #byTicket = new SparseMap<number, ParkedMessage>()

  get size(): number {
    return this.#byTicket.size
  }

  /** The one with a packet identifier. */
  get(id: number): ParkedMessage | undefined {
    return this.#byId.get(id)
  }

  withTicket(ticket: number): ParkedMessage | undefined {
    return this.#byTicket.get(ticket)
  }

  /** The one that has this place among the arrivals, whose slot is given. */
  at(place: number, value: number): ParkedMessage | undefined {
    const message = this.get(value >>> idShift)
    return message?.slot === place ? message : undefined
  }

  add(message: ParkedMessage): void {
    this.#byId.set(message.value >>> idShift, message)
    this.#byTicket.set(message.ticket, message)
  }

  delete(message: ParkedMessage): void {
    this.#byId.delete(message.value >>> idShift)
    this.#byTicket.delete(message.ticket)
  }

  clear(): void {
    this.#byId.clear()
    this.#byTicket.clear()
  }
}
