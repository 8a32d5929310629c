/**
 * One arrival of a message: topic, flags, filter, memory cost, and its acknowledgement, which is
 * decided at most once.
 */
import { Printed } from '../../printing.js'
import type { QoS } from '../../wire/packets.js'
import type { PublishView } from '../../wire/publish.js'
import { noTicket } from '../session/receive-window.js'

/** Receives the outcome of a message: the session, or an object shared by several consumers. */
export interface Settler {
  settle(ticket: number, reasonCode: number): boolean
  /** Identifier of the message, where it has one. */
  readonly id?: string | undefined
  /** One consumer has finished; others have not. */
  handleTurnEnd?(): void
  /**
   * One of several consumers leaves the decision to the others. False when it is the last one and
   * none has decided.
   */
  giveUp?(): boolean
}

/** What the first byte of a PUBLISH says. */
type Head = Pick<PublishView, 'qos' | 'retain' | 'dup'>

/** Everything about an incoming message except its bytes. */
export abstract class Arrival extends Printed implements Head {
  abstract topic: string
  abstract qos: QoS
  abstract retain: boolean
  abstract dup: boolean
  #settled = false
  #ticket = noTicket
  readonly #settler: Settler
  #origin: object | undefined
  #size: number

  constructor(size: number, settler: Settler) {
    super()
    this.#settler = settler
    this.#size = size
  }

  /** Initialises or reuses this object for an arrival. */
  protected arrive(head: Head, topic: string, ticket: number, origin: object | undefined): void {
    this.topic = topic
    this.qos = head.qos
    this.retain = head.retain
    this.dup = head.dup
    this.#settled = ticket === noTicket
    this.#ticket = ticket
    this.#origin = origin
  }

  /** True once the outcome is decided. */
  get settled(): boolean {
    return this.#settled
  }
  /** The session's number of this arrival, or `noTicket`. */
  get ticket(): number {
    return this.#ticket
  }
  /** The filter that this message came in through. */
  get origin(): object | undefined {
    return this.#origin
  }
  set origin(origin: object | undefined) {
    this.#origin = origin
  }
  /** Memory cost in bytes; 0 for a message that was only shown, never held. */
  get size(): number {
    return this.#size
  }
  set size(size: number) {
    this.#size = size
  }

  get id(): string | undefined {
    return this.#settler.id
  }

  /** Leaves the outcome to other consumers of this message; false when there is none. */
  giveUp(): boolean {
    if (this.#settler.giveUp?.() !== true) return false
    this.#settled = true
    return true
  }

  /** Decides the outcome; false when it was already decided or the session is gone. */
  settle(reasonCode: number): boolean {
    if (this.#settled) return false
    this.#settled = true
    return this.#settler.settle(this.#ticket, reasonCode)
  }
}

/** True for an unsettled message. */
export const isOwed = ({ settled }: Arrival): boolean => !settled

/**
 * One message for several consumers: acknowledged when all have settled, as success if any of them
 * succeeded.
 */
export class SharedOutcome implements Settler {
  readonly #settler: Settler
  readonly #ticket: number
  /** Consumers that have not settled. */
  #open: number
  #best = 0xff

  constructor(settler: Settler, ticket: number, consumers: number) {
    this.#settler = settler
    this.#ticket = ticket
    this.#open = consumers
  }

  get id(): string | undefined {
    return this.#settler.id
  }

  giveUp(): boolean {
    if (this.#open === 1 && this.#best === 0xff) return false
    this.settle(0, this.#best)
    return true
  }

  settle(_ticket: number, reasonCode: number): boolean {
    this.#open -= 1
    this.#best = Math.min(this.#best, reasonCode)
    if (this.#open === 0) return this.#settler.settle(this.#ticket, this.#best)
    this.#settler.handleTurnEnd?.()
    return true
  }
}
