/**
 * One arrival of a message: its topic and flags, what it came in through, what it costs to hold, and its acknowledgement, which is decided at most once.
 */
import { Printed } from '../../printing.js'
import type { QoS } from '../../wire/packets.js'
import type { PublishView } from '../../wire/publish.js'
import { noTicket } from '../session/receive-window.js'

/** Takes the outcome of a message: the session, or what several consumers share. */
export interface Settler {
  settle(ticket: number, reasonCode: number): boolean
  /** Of the message that it was made for, where those have one. */
  readonly id?: string | undefined
  /** A consumer is done with its share, though others are not. */
  handleTurnEnd?(): void
  /** One of several consumers leaves it to the others; false when it is the last and no outcome was decided. */
  giveUp?(): boolean
}

/** What the first byte of a PUBLISH says. */
type Head = Pick<PublishView, 'qos' | 'retain' | 'dup'>

/** What is known of a message without a look at where it lies. */
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

  /** It is this arrival from now on. */
  protected arrive(head: Head, topic: string, ticket: number, origin: object | undefined): void {
    this.topic = topic
    this.qos = head.qos
    this.retain = head.retain
    this.dup = head.dup
    this.#settled = ticket === noTicket
    this.#ticket = ticket
    this.#origin = origin
  }

  /** True once its outcome is decided. */
  get settled(): boolean {
    return this.#settled
  }
  /** The session's number of this arrival, or `noTicket`. */
  get ticket(): number {
    return this.#ticket
  }
  /** What this message came in through, for those who route it. */
  get origin(): object | undefined {
    return this.#origin
  }
  set origin(origin: object | undefined) {
    this.#origin = origin
  }
  /** Bytes that holding this message costs; 0 of one that was never to be held. */
  get size(): number {
    return this.#size
  }
  set size(size: number) {
    this.#size = size
  }

  get id(): string | undefined {
    return this.#settler.id
  }

  /** Leaves the outcome to the other consumers of this message; false when no other consumer would decide it. */
  giveUp(): boolean {
    if (this.#settler.giveUp?.() !== true) return false
    this.#settled = true
    return true
  }

  /** Decides the outcome; false when it was decided before or the session is gone. */
  settle(reasonCode: number): boolean {
    if (this.#settled) return false
    this.#settled = true
    return this.#settler.settle(this.#ticket, reasonCode)
  }
}

/** True for a message that is not settled. */
export const isOwed = ({ settled }: Arrival): boolean => !settled

/** One message for several consumers: acknowledged when all have settled, as a success if any succeeded. */
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
