/**
 * The outcome of a message, which is its acknowledgement: who takes it, and how several consumers of one message come to one.
 */

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

/** True for a message that is not settled. */
export const isOwed = ({ settled }: { readonly settled: boolean }): boolean => !settled

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
