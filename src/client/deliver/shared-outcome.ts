/**
 * The outcome of a message, which becomes its acknowledgement: what receives it, and how several
 * consumers of one message are combined into one outcome.
 */

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

/** True for an unsettled message. */
export const isOwed = ({ settled }: { readonly settled: boolean }): boolean => !settled

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
