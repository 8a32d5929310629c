/**
 * The QoS 1 and 2 messages of one connection in the order of arrival, from the oldest without an acknowledgement on: a slot of integers for each.
 *
 * A slot holds packet identifier, reason code and status, see `receive-window.ts`. A message's place here is the ticket it is given, unless an earlier
 * connection gave it one.
 */

/** Slots to begin with, and slots that are kept when all is settled. */
const initialSlots = 16
const mostIdleSlots = 1024

const noSlots = new Uint32Array(0)

/** A ring of slots. */
export class Arrivals {
  /** Place of the oldest message that is not acknowledged, and the place that comes next. Both only rise. */
  protected oldest = 0
  protected next = 0
  /** Rises when a connection ends. */
  protected ends = 0
  #slots = noSlots

  /** Messages of this connection that the application has not settled, or whose turn to be acknowledged has not come. */
  get unsettled(): number {
    return this.next - this.oldest
  }

  protected slot(place: number): number {
    return this.#slots[place & (this.#slots.length - 1)] as number
  }

  protected setSlot(place: number, slot: number): void {
    this.#slots[place & (this.#slots.length - 1)] = slot
  }

  /** Takes in the next message; gives its place. */
  protected push(slot: number): number {
    if (this.unsettled === this.#slots.length) this.#grow()
    this.setSlot(this.next, slot)
    return this.next++
  }

  /** A number of slots that was needed once is not held for ever. Only while there is no message. */
  protected rest(): void {
    if (this.#slots.length > mostIdleSlots) this.#slots = noSlots
  }

  /** Forgets all of them; their places are not given again. */
  protected clear(): void {
    this.ends += 1
    this.oldest = this.next
    this.#slots = noSlots
  }

  #grow(): void {
    const old = this.#slots
    const slots = new Uint32Array(Math.max(initialSlots, old.length * 2))
    for (let place = this.oldest; place < this.next; place++)
      slots[place & (slots.length - 1)] = old[place & (old.length - 1)] as number
    this.#slots = slots
  }
}
